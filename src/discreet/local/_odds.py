"""From epsilon to odds and back: rationals on the safe side of e^epsilon, by certified balls."""

from fractions import Fraction
from math import floor

from discreet import _checks
from discreet._exact import Number, ball, float_up, fraction, lower_fraction, precision, shown
from discreet.errors import InvalidArgument

SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(32)

_DIGITS = 1 << 48  # odds are multiples of one over this
_BITS = 256


def in_reach(epsilon: Number, name: str = "epsilon") -> Fraction:
    """The exact value of an epsilon for which reports tell something and hide something."""
    exact = _checks.positive(**{name: epsilon})
    if SMALLEST <= exact <= LARGEST:
        return exact
    raise InvalidArgument(
        f"{name} = {shown(exact)}: give a number from 0.000001, below which reports tell "
        "nothing, to 32, above which they hide nothing"
    )


def odds_below(epsilon: Fraction) -> Fraction:
    """Odds of at most e^epsilon, and less than 2^-48 below it."""
    with precision(_BITS):
        return Fraction(floor(lower_fraction(ball(epsilon).exp()) * _DIGITS), _DIGITS)


def epsilon_above(odds: Fraction) -> Fraction:
    """The logarithm of odds above 1, rounded up to a float's shortest decimal."""
    with precision(_BITS):
        return fraction(float_up(ball(odds).log()))


def costs_at_most(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether a worst ratio of probabilities is proven to lie at or below e^epsilon."""
    with precision(_BITS):
        return bool(ball(ratio) <= ball(epsilon).exp())
