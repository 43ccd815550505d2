"""Round numbers for people: 1, 1.2, 1.5, 2 and so on up to 8, times a power of ten."""

import math
from fractions import Fraction

from discreet._exact import fraction
from discreet.mechanisms import Grid

_STEPS = tuple(Fraction(tenths, 10) for tenths in (10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100))


def round_ends(ends: tuple[float, float], *, within: Grid) -> tuple[float, float]:
    """The ends moved outwards to round numbers, or to the ends of the grid where these are nearer.

    >>> round_ends((-0.3, 1023.5), within=Grid(-8, 10**6))
    (-0.3, 1200.0)
    """
    low, high = (fraction(end) for end in ends)
    least, most = max(round_down(low), within.lower), min(round_up(high), within.upper)
    return float(least), float(most)


def round_down(number: Fraction) -> Fraction:
    """The largest round number that is not larger; whole for a whole number."""
    return -round_up(-number)


def round_up(number: Fraction) -> Fraction:
    """The least round number that is not smaller; whole for a whole number."""
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
