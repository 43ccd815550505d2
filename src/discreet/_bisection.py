"""Bisection over whole numbers, fractions, floats and arrays: where a condition begins to hold."""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet._arrays import FloatArray
from discreet._exact import decimal_down, decimal_up

Real = TypeVar("Real", float, Fraction)


def smallest_whole(is_enough: Callable[[int], bool], least: int, most: int | None = None) -> int:
    """The smallest whole number from ``least`` on that is enough, as all larger ones are. With
    ``most``, this number is known to be enough.

    >>> smallest_whole(lambda n: n * n >= 50, 0)
    8
    """
    below, step = least - 1, 1
    if most is None:
        while not is_enough(below + step):
            below, step = below + step, 2 * step
        most = below + step
    found = decided_whole(is_enough, below, most)
    assert found is not None
    return found


def decided_whole(is_enough: Callable[[int], bool | None], below: int, enough: int) -> int | None:
    """The smallest whole number that is enough, above one that isn't and up to one that is.
    ``None`` as soon as ``is_enough`` returns ``None``, which stands for "not decided".

    >>> decided_whole(lambda n: None if n == 6 else n >= 7, 0, 10) is None
    True
    """
    while enough - below > 1:
        middle = (below + enough + 1) // 2
        if (is_above := is_enough(middle)) is None:
            return None
        below, enough = (below, middle) if is_above else (middle, enough)
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


def decimal_edge(
    is_good: Callable[[Fraction], bool],
    good: Fraction,
    bad: Fraction,
    *,
    digits: int,
    spare: int = 1,
) -> Fraction:
    """`edge` as a decimal number of this many digits, rounded towards the good numbers. It is
    searched to some ``spare`` digits more.

    >>> decimal_edge(lambda x: x * x <= 2, Fraction(1), Fraction(2), digits=4)
    Fraction(707, 500)
    """
    round_to_good = decimal_down if good < bad else decimal_up
    return round_to_good(edge(is_good, good, bad, digits + spare), digits=digits)


def halved(is_good: Callable[[Real], bool], good: Real, bad: Real, times: int) -> tuple[Real, Real]:
    """A good number and a bad one, after the distance between them was halved this many times.

    >>> halved(lambda x: x * x <= 2, 1.0, 2.0, times=3)
    (1.375, 1.5)
    """
    for _ in range(times):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good, bad


def float_edge(is_good: Callable[[float], bool], good: float, bad: float) -> float:
    """The good float that has a bad neighbour.

    >>> float_edge(lambda x: x * x >= 2, 2.0, 1.0)
    1.4142135623730951
    """
    while (middle := min(good, bad) + abs(good - bad) / 2) not in (good, bad):
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good


def halved_each(
    is_good: Callable[[FloatArray], npt.NDArray[np.bool_]],
    good: FloatArray,
    bad: FloatArray,
    times: int,
) -> tuple[FloatArray, FloatArray]:
    """`halved` at each place of arrays; it ends earlier if no float is left between."""
    for _ in range(times):
        middle = good + (bad - good) / 2
        if not np.any((middle != good) & (middle != bad)):
            break
        fits = is_good(middle)
        good, bad = np.where(fits, middle, good), np.where(fits, bad, middle)
    return good, bad
