"""From epsilon to odds and back: rationals on the safe side of e^epsilon, by certified balls."""

from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Annotated

from discreet import _checks
from discreet._exact import Number, ball, float_up, fraction, lower_fraction, precision, shown
from discreet._fields import Converted
from discreet.errors import InvalidArgument

SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(32)

_DIGITS = 1 << 48  # odds are multiples of one over this
_BITS = 256


def local_epsilon(**named: object) -> Fraction:
    """The exact value of one named epsilon, from 10^-6 to 32."""
    exact = _checks.positive(**named)
    if SMALLEST <= exact <= LARGEST:
        return exact
    (name,) = named
    raise InvalidArgument(
        f"{name} = {shown(exact)}: give a number from 0.000001 to 32; with less, reports are "
        "useless, and with more, they protect nothing"
    )


LocalEpsilon = Annotated[Converted[Fraction, Number], local_epsilon]


@lru_cache(maxsize=256)
def odds_below(epsilon: Fraction) -> Fraction:
    """Odds of at most e^epsilon, and less than 2^-48 below it."""
    with precision(_BITS):
        return Fraction(floor(lower_fraction(ball(epsilon).exp()) * _DIGITS), _DIGITS)


def epsilon_above(odds: Fraction) -> Fraction:
    """The logarithm of odds above 1, rounded up to a float's shortest decimal."""
    with precision(_BITS):
        return fraction(float_up(ball(odds).log()))


def costs_at_most(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether a ratio of probabilities is proven to be at most e^epsilon."""
    with precision(_BITS):
        return bool(ball(ratio) <= ball(epsilon).exp())
