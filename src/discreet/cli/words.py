"""Costs and limits as a person reads them: what was spent rounded up, what is left rounded down."""

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.accounting import PrivacyLoss
from discreet.exact import decimal_down, decimal_up, fraction, shown
from discreet.payment import Limit

if TYPE_CHECKING:
    from discreet.ledger import Balance

_DIGITS = 6


def cost(loss: PrivacyLoss, delta: Fraction) -> str:
    """A privacy loss in numbers: its pure epsilon if it has one, else epsilon at this delta."""
    for at in (Fraction(0), delta):
        epsilon = loss.epsilon(at)
        if epsilon < float("inf"):
            return spent(fraction(epsilon), at)
    return str(loss)


def spent(epsilon: Fraction, delta: Fraction) -> str:
    """An epsilon that was, or would be, spent, and its delta."""
    return f"ε = {shown(decimal_up(epsilon, _DIGITS))}{_delta(delta)}"


def limit(most: Limit) -> str:
    """A limit, exactly."""
    return f"ε = {shown(most.epsilon)}{_delta(most.delta)}"


def left(balance: "Balance") -> str:
    """What of a limit is spent and left, in a line."""
    return (
        f"spent ε = {shown(decimal_up(balance.epsilon, _DIGITS))} of {limit(balance.limit)}; "
        f"one more question may cost at most ε = {shown(decimal_down(balance.left, _DIGITS))}"
    )


def _delta(delta: Fraction) -> str:
    return f", δ = {shown(delta)}" if delta else ""
