"""The types that all aggregates share, for sums, estimates and forecasts; and means of groups."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.query._estimates._grid import SumGrid
from discreet.query._estimates._intervals import RatioLaw
from discreet.query._estimates._summed_noise import AdditiveNoise


class SumKind(Enum):
    """The sums that a function may need, over the rows where its argument is not NULL. A function
    of two values needs them over the rows where neither is NULL; those of the second value are
    named so."""

    ROWS = "of ones"
    UNITS = "of a one for each unit"
    DISTINCT = "of a one for each different value"
    VALUES = "of the values"
    CENTRED = "of the values, measured from the middle of their bounds"
    CENTRED_TO_SQUARE = "the same, on a grid coarse enough for the squares of its points"
    SQUARES = "of the squares of those"
    SECOND_CENTRED = "of the second values, as the first ones to be squared"
    SECOND_SQUARES = "of the squares of the second values"
    PRODUCTS = "of the products of both centred values"


@dataclass(frozen=True, slots=True)
class NoisySum:
    """The noise and the public form of one sum: its ``grid``, or ``None`` for a count, and the
    ``shift`` that was subtracted from each addend."""

    mechanism: AdditiveNoise
    grid: SumGrid | None
    shift: int = 0


NoisySums = tuple[NoisySum, ...]
Noisy = Sequence[Sequence[int]]  # (sum, group)
Numbers = Sequence[int | float | None]


@dataclass(frozen=True, slots=True)
class Estimates:
    """The value of each group, the ends of its interval, and its error."""

    values: Numbers
    low: Numbers
    high: Numbers
    errors: Numbers


@dataclass(frozen=True, slots=True)
class HalfWidth:
    """The forecast of half an interval's width. If it ``is_typical``, it is for values whose mean
    lies half-way between the middle and an end of their range, with a standard deviation of an
    eighth of the range; for a quantile, for rows that lie evenly around it. For other values it is
    at most ``worst``, if that is known."""

    size: float
    is_typical: bool = False
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class Estimator:
    """One row: the sums that a function needs, or the level of the quantile that it is, and what
    follows from the noisy numbers.

    ``estimate`` and ``half_width`` get `NoisySums`, the `NoisyQuantile` or the `NoisyMode`.
    ``half_width`` forecasts for a group of this many rows. With ``has_stddev`` it doesn't depend on
    them, and the error is the noise's standard deviation. With ``is_in_ranks`` it is a share of the
    group's rows, since the values that lie there are private. With ``is_key`` it chooses one of its
    argument's keys: the estimate is the number of the key, without an interval, and its error is in
    rows.
    """

    needs: tuple[SumKind, ...]
    estimate: Callable[[Any, Any, Fraction], Estimates]  # Any: as above, and their numbers
    half_width: Callable[[Any, int, Fraction], HalfWidth]  # Any: the same
    has_stddev: bool = False
    is_in_ranks: bool = False
    is_key: bool = False
    level: Fraction | None = None
    takes_level: bool = False
    takes_two: bool = False
    other_spellings: tuple[str, ...] = ()
    note: str = ""


def grid_of(one: NoisySum) -> SumGrid:
    """The sum's grid; that of single rows for a count."""
    return SumGrid(0, 0, 0, 1) if one.grid is None else one.grid


def nearest_float(exact: Fraction) -> float:
    """The number as a float; the largest float where noise takes it beyond."""
    return nearest_ratio(exact.numerator, exact.denominator)


def nearest_ratio(numerator: int, denominator: int) -> float:
    """The quotient of two integers as `nearest_float` gives it; the denominator is positive."""
    try:
        return numerator / denominator  # correctly rounded
    except OverflowError:
        return math.copysign(sys.float_info.max, numerator)


def half_of(low: Sequence[float], high: Sequence[float]) -> list[float]:
    """Half the width of each interval."""
    return [(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]


def means(grid: SumGrid, noisy: Noisy) -> list[Fraction | None]:
    """Each group's ratio in steps from the centre, clamped to the grid; none below one row."""
    least, most = Fraction(grid.lower), Fraction(grid.upper)
    return [
        None if count < 1 else min(max(Fraction(total, count), least), most)
        for total, count in zip(*noisy, strict=True)
    ]


def ratio_of(total: NoisySum, rows: NoisySum, confidence: Fraction) -> RatioLaw:
    """The law of the ratio of a sum and a count."""
    return RatioLaw(total.mechanism, rows.mechanism, grid_of(total), confidence)


def mean_ends(ratio: RatioLaw, noisy: Noisy) -> tuple[list[Fraction], list[Fraction]]:
    """The ends of each group's interval, in steps from the centre."""
    low, high = ratio.intervals(*noisy)
    return [Fraction(float(end)) for end in low], [Fraction(float(end)) for end in high]
