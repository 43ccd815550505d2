"""Forecasts for choices: the distance of the chosen score from the best one, for any scores.

The worst scores for "the choice lies at least a gap below the best" are one best candidate, and all
others exactly the gap below it. Lowering scores above this line to it, or raising scores below it,
only increases the probability that one of them is chosen, for every noise here.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._bisection import smallest_whole
from discreet._exact import Number, ball, precision, upper_fraction
from discreet.errors import InvalidArgument

_BITS = 192
_LEAST = Fraction(1, 10**250)  # far above where float64 ends


def smallest_gap(chance: Callable[[int], arb | float], confidence: Number) -> int:
    """The smallest whole q with ``chance(q + 1)`` at most 1 - confidence.

    ``chance(gap)`` is the probability that the choice lies at least this gap below the best; it
    decreases. Scores are integers.
    """
    allowed = left_over(confidence)
    with precision(_BITS + math.ceil(1 / allowed).bit_length()):
        return smallest_whole(lambda gap: _at_most(chance(gap + 1), allowed), 0)


def left_over(confidence: Number) -> Fraction:
    """Return 1 - confidence; raise if it is too small for float64."""
    allowed = 1 - _checks.probability(confidence=confidence)
    if allowed < _LEAST:
        raise InvalidArgument("confidence: give a number of at most 1 - 10^-250")
    return allowed


def exponential_chance(rate: Fraction, others: int) -> Callable[[int], arb]:
    """For the exponential mechanism: the weights of all others over all weights."""

    def chance(gap: int) -> arb:
        weight = others * ball(-rate * gap).exp()
        return weight / (1 + weight)

    return chance


def flip_chance(rate: Fraction, others: int) -> Callable[[int], arb]:
    """For permute-and-flip: 1 - (1 - (1 - p)^n) / (n p). All positions of the best candidate in the
    order are equally likely, and each candidate before it is passed over with probability 1 - p."""

    def chance(gap: int) -> arb:
        fallen, all_of_them = ball(-rate * gap), others + 1
        taken = fallen.exp()
        left = (-taken).log1p() if 2 * taken < 1 else (-fallen.expm1()).log()
        passed = (all_of_them * left).expm1()
        found = 1 + passed / (all_of_them * taken)
        return found if found.is_finite() else others * taken / 2  # an upper bound for tiny p

    return chance


def top_chance(rate: Fraction, tops: int, others: int) -> Callable[[int], float]:
    """For ``tops`` choices without repetition: the probability that some choice is not one of the
    ``tops`` best candidates. With Gumbel noise each choice sets the j best that are left against
    all others."""

    def chance(gap: int) -> float:
        weight = float(ball(-rate * gap).exp()) * others
        logarithm = math.fsum(math.log1p(weight / j) for j in range(1, tops + 1))
        return -math.expm1(-logarithm) * (1 + 1e-9)

    return chance


def _at_most(chance: arb | float, allowed: Fraction) -> bool:
    if isinstance(chance, float):
        return Fraction(chance) <= allowed
    return upper_fraction(chance) <= allowed
