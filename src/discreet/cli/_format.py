"""Texts of costs and limits: what is spent is rounded up, what is left is rounded down."""

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet._budget import AnyLimit, BudgetUse, Limit, RhoLimit
from discreet._exact import decimal_down, decimal_up, fraction, shown

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss

_DIGITS = 6


def cost(loss: "PrivacyLoss", delta: Fraction) -> str:
    """A privacy loss in numbers: its pure epsilon if it has one, else epsilon at this delta."""
    for at in (Fraction(0), delta):
        epsilon = loss.epsilon(at)
        if epsilon < float("inf"):
            return spent_text(fraction(epsilon), at)
    return str(loss)


def charge_text(loss: "PrivacyLoss", limit: AnyLimit) -> str:
    """A charge in the measure of the limit: rho under a limit in rho, else `cost` at its delta."""
    if isinstance(limit, RhoLimit):
        return f"ρ = {shown(decimal_up(fraction(loss.zcdp()), _DIGITS))}"
    return cost(loss, limit.delta if isinstance(limit, Limit) else Fraction(0))


def spent_text(epsilon: Fraction, delta: Fraction) -> str:
    """A spent epsilon, and its delta."""
    return f"ε = {shown(decimal_up(epsilon, _DIGITS))}" + (f", δ = {shown(delta)}" * bool(delta))


def rounded_up(number: float) -> str:
    """A spent number in at most six digits."""
    return shown(decimal_up(fraction(number), _DIGITS))


def rounded_down(number: float) -> str:
    """A number that is left in at most six digits."""
    return shown(decimal_down(fraction(number), _DIGITS))


def line_of_balance(use: BudgetUse) -> str:
    """A line that says how much of a limit is spent and left."""
    reached = shown(decimal_up(use.reached, _DIGITS))
    return (
        f"spent {use.limit.symbol} = {reached} of {use.limit}; "
        f"one more question may cost at most ε = {shown(decimal_down(use.left, _DIGITS))}"
    )
