"""Bisection over whole numbers, fractions and floats: where a condition begins to hold."""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

Real = TypeVar("Real", float, Fraction)


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


def halved(is_good: Callable[[Real], bool], good: Real, bad: Real, times: int) -> tuple[Real, Real]:
    """A good number and a bad one, after the distance between them was halved this many times.

    >>> halved(lambda x: x * x <= 2, 1.0, 2.0, times=3)
    (1.375, 1.5)
    """
    for _ in range(times):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good, bad
