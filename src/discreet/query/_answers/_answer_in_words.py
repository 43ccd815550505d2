"""An answer's privacy in words, for people who are not specialists."""

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet._budget import Receipt
from discreet._exact import decimal_up, fraction, shown
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.query._plan._plan import Plan

_DELTA = Fraction(1, 10**6)  # where no epsilon holds without one
_LARGEST = 100  # epsilon of which a factor says anything
_SAFE = 1 + 1e-9  # above the rounding of floats
_DIGITS = 3


def in_words(plan: Plan, loss: PrivacyLoss, receipt: Receipt, notes: Sequence[str]) -> str:
    """The question, who is protected and how well, what was cut, how sure the numbers are, and
    where it is recorded: a line each."""
    protected, privacy = protection_in_words(loss.for_unit(plan.declaration.unit))
    charge = f"charge {receipt.number}, {receipt.at:%Y-%m-%d %H:%M} UTC, by {receipt.by}"
    lines = [
        f"Question: {plan.query}",
        f"Protected: {protected}",
        f"Privacy: {privacy}",
        "Noise: random noise is added to each number; the intervals say how large it may be.",
        *(f"Note: {note}." for note in notes),
        f"Recorded: {charge}; digest {receipt.digest[:12]}.",
    ]
    return "\n".join(lines)


def protection_in_words(loss: PrivacyLoss) -> tuple[str, str]:
    """The unit that a privacy loss protects, and how well: two sentences or more."""
    unit = loss.unit or Unit.ROW
    who = "row" if unit.column is None else unit.column
    return f"{unit}.", _privacy(loss, who)


def _privacy(loss: PrivacyLoss, who: str) -> str:
    """The meaning of the privacy loss, as odds."""
    for delta in (Fraction(0), _DELTA):
        epsilon = loss.epsilon(delta)
        if epsilon < _LARGEST:
            price = f"epsilon {shown(decimal_up(fraction(epsilon), _DIGITS))}"
            factor = shown(decimal_up(fraction(math.exp(epsilon) * _SAFE), _DIGITS))
            but = f", but for a probability of {shown(delta)}" if delta else ""
            return (
                f"{price}. With or without one {who}, every result has nearly the same "
                f"probability: one is at most {factor} times the other{but}."
            )
    return f"none worth the name: {loss}."
