"""Round numbers for people: 1, 2 or 5 times a power of ten."""

import math
from fractions import Fraction

from discreet._exact import fraction
from discreet.mechanisms import Grid

_STEPS = 1, 2, 5, 10


def round_ends(ends: tuple[float, float], *, within: Grid) -> tuple[float, float]:
    """The ends moved outwards to round numbers, or to the ends of the grid where these are nearer.

    >>> round_ends((-0.3, 1023.5), within=Grid(-8, 10**6))
    (-0.5, 2000.0)
    """
    low, high = (fraction(end) for end in ends)
    least, most = max(-_round_up(-low), within.lower), min(_round_up(high), within.upper)
    return float(least), float(most)


def _round_up(number: Fraction) -> Fraction:
    """The least round number that is not smaller."""
    if number == 0:
        return number
    size = abs(number)
    decade = Fraction(10) ** math.floor(math.log10(size))
    if decade > size:  # the logarithm was rounded
        decade /= 10
    around = [step * decade for step in _STEPS] + [10 * decade * _STEPS[1]]
    if number > 0:
        return next(one for one in around if one >= size)
    return -next(one for one in reversed(around) if one <= size)
