"""Bisection over whole numbers and over fractions: where a condition begins to hold."""

from collections.abc import Callable
from fractions import Fraction


def smallest_whole(is_enough: Callable[[int], bool], least: int) -> int:
    """The smallest whole number from ``least`` on that is enough, as all larger ones are.

    >>> smallest_whole(lambda n: n * n >= 50, 0)
    8
    """
    below, step = least - 1, 1
    while not is_enough(below + step):
        below, step = below + step, 2 * step
    enough = below + step
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if is_enough(middle) else (middle, enough)
    return enough


def edge(
    is_good: Callable[[Fraction], bool], good: Fraction, bad: Fraction, digits: int
) -> Fraction:
    """A good number next to a bad one; they agree to this many digits of the larger one.

    >>> float(edge(lambda x: x * x <= 2, Fraction(1), Fraction(2), digits=9))
    1.41421356...
    """
    while abs(bad - good) * 10**digits > max(good, bad):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good
