"""The aggregate functions: one row for each, with all that the rest of the package knows of it.

A row names the function's spellings in SQL, the noisy sums that it needs or the mechanism that gets
its rows, and how values, intervals and forecasts follow. Plans, answers, forecasts and the reader
of SQL take it from here.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.query._grid import SumGrid
from discreet.query._intervals import RatioLaw


class AggregateFunction(Enum):
    """The aggregate functions, by their first name in SQL."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    VARIANCE = "VARIANCE"
    VAR_POP = "VAR_POP"
    STDDEV = "STDDEV"
    STDDEV_POP = "STDDEV_POP"
    COUNT_DISTINCT = "COUNT_DISTINCT"
    COUNT_UNITS = "COUNT_UNITS"
    MEDIAN = "MEDIAN"
    QUANTILE = "QUANTILE"
    MIN = "MIN"
    MAX = "MAX"


class SumKind(Enum):
    """The sums that a function may need, over the rows where its argument is not NULL."""

    ROWS = "of ones"
    UNITS = "of a one for each unit"
    DISTINCT = "of a one for each different value"
    VALUES = "of the values"
    CENTRED = "of the values, measured from the middle of their bounds"
    CENTRED_TO_SQUARE = "the same, on a grid coarse enough for the squares of its points"
    SQUARES = "of the squares of those"


@dataclass(frozen=True, slots=True)
class NoisySum:
    """The noise and the public form of one sum: its ``grid``, or ``None`` for a count, and the
    ``shift`` that was subtracted from each addend."""

    mechanism: DiscreteLaplace | Gaussian
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
class Estimator:
    """One row: the sums that a function needs, or the level of the quantile that it is, and what
    follows from the noisy numbers.

    ``estimate`` and ``half_width`` get `NoisySums`, or the `NoisyQuantile`. ``half_width``
    forecasts half the interval's width in a group of this many rows. With ``has_stddev`` it doesn't
    depend on them, and the error is the noise's standard deviation. With ``is_in_ranks`` it is a
    share of the group's rows, since the values that lie there are private.
    """

    needs: tuple[SumKind, ...]
    estimate: Callable[[Any, Any, Fraction], Estimates]  # Any: as above, and their numbers
    half_width: Callable[[Any, int, Fraction], float]  # Any: the same
    has_stddev: bool = False
    is_in_ranks: bool = False
    level: Fraction | None = None
    takes_level: bool = False
    other_spellings: tuple[str, ...] = ()
    note: str = ""


# --- counts and sums ---


def _total(law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
    ((one,), (steps,)) = law, noisy
    grid, wide = _grid(one), one.mechanism.error(confidence)
    error = one.mechanism.stddev_of_noise() * float(grid.step)
    values, low, high = ([_number(grid, step + far) for step in steps] for far in (0, -wide, wide))
    return Estimates(values, low, high, [error] * len(steps))


def _total_half_width(law: NoisySums, _: int, confidence: Fraction) -> float:
    (one,) = law
    return one.mechanism.error(confidence) * float(_grid(one).step)


def _grid(one: NoisySum) -> SumGrid:
    return SumGrid(0, 0, 0, 1) if one.grid is None else one.grid


def _number(grid: SumGrid, step: int) -> int | float:
    """A whole number clamped to 64 bits, or a float, converted only here."""
    if grid.exponent == 0:
        return min(max(step, -(2**63)), 2**63 - 1)
    return _float(grid.value(Fraction(step)))


def _float(exact: Fraction) -> float:
    """The number as a float; the largest float where noise takes it beyond."""
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(sys.float_info.max, exact)


# --- means ---


def _mean(law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
    total, rows = law
    grid, ratio = _grid(total), _ratio(total, rows, confidence)
    values = [None if mean is None else _float(grid.value(mean)) for mean in _means(grid, noisy)]
    low, high = ([_float(grid.value(end)) for end in ends] for ends in _ends(ratio, noisy))
    errors = [(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]
    return Estimates(values, low, high, errors)


def _mean_half_width(law: NoisySums, rows: int, confidence: Fraction) -> float:
    total, count = law
    ratio = _ratio(total, count, confidence)
    return float(ratio.grid.step) * ratio.half_width(rows)


def _means(grid: SumGrid, noisy: Noisy) -> list[Fraction | None]:
    """Each group's ratio in steps from the centre, clamped to the grid; none below one row."""
    least, most = Fraction(grid.lower), Fraction(grid.upper)
    return [
        None if count < 1 else min(max(Fraction(total, count), least), most)
        for total, count in zip(*noisy, strict=True)
    ]


def _ratio(total: NoisySum, rows: NoisySum, confidence: Fraction) -> RatioLaw:
    return RatioLaw(total.mechanism, rows.mechanism, _grid(total), confidence)


def _ends(ratio: RatioLaw, noisy: Noisy) -> tuple[list[Fraction], list[Fraction]]:
    low, high = ratio.intervals(*noisy)
    return [Fraction(float(end)) for end in low], [Fraction(float(end)) for end in high]


# --- variances ---


@dataclass(frozen=True, slots=True)
class _VarianceEstimator:
    """Variances from a sum, a sum of squares and a count, all on one grid.

    A variance is the mean square less the square of the mean. Let the risk be 1 - confidence. The
    interval of the mean square fails with at most an equal share of it, and so does that of the
    mean, and that of the number of rows for a sample's variance (Bonferroni). Where none fails, the
    smallest and the largest variance that they allow enclose the true one. It lies within 0 and a
    quarter of the range's square, for a sample within half of it.
    """

    is_of_sample: bool
    is_rooted: bool

    def estimate(self, law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
        squares, total, rows = law
        grid, counts = _grid(total), noisy[2]
        level = 1 - (1 - confidence) / (2 + self.is_of_sample)
        # 1. values
        pairs = zip(
            _means(_squared_grid(squares), (noisy[0], counts)),
            _means(grid, (noisy[1], counts)),
            counts,
            strict=True,
        )
        values = [self._value(squares, *pair) for pair in pairs]
        # 2. what the intervals of the three parts allow
        square_low, square_high = _ends(
            _ratio(replace(squares, grid=_squared_grid(squares)), rows, level), (noisy[0], counts)
        )
        mean_low, mean_high = _ends(_ratio(total, rows, level), (noisy[1], counts))
        reach = rows.mechanism.error(level)
        low, high = [], []
        for group, count in enumerate(counts):
            squared = mean_low[group] ** 2, mean_high[group] ** 2
            is_across = mean_low[group] <= 0 <= mean_high[group]
            least = square_low[group] + squares.shift - max(squared)
            most = square_high[group] + squares.shift - (0 if is_across else min(squared))
            low.append(self._low(grid, self._scaled(least, count + reach, grid)))
            high.append(self._high(grid, self._scaled(most, count - reach, grid)))
        errors = [(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]
        return Estimates(values, low, high, errors)

    def half_width(self, law: NoisySums, rows: int, confidence: Fraction) -> float:
        """The half-width for the worst mean, without what the number of rows adds."""
        squares, total, count = law
        level = 1 - (1 - confidence) / (2 + self.is_of_sample)
        squared = _ratio(replace(squares, grid=_squared_grid(squares)), count, level)
        of_mean = 2 * _grid(total).largest * _ratio(total, count, level).half_width(rows)
        wide = float(_grid(total).step) ** 2 * (squared.half_width(rows) + of_mean)
        wide = min(wide, float(self._limit(_grid(total)) * _grid(total).step ** 2) / 2)
        return math.sqrt(wide / 2) if self.is_rooted else wide

    def _value(
        self, squares: NoisySum, square: Fraction | None, mean: Fraction | None, count: int
    ) -> float | None:
        if square is None or mean is None or count < 1 + self.is_of_sample:
            return None
        grid = _grid(squares)
        exact = self._scaled(square + squares.shift - mean**2, count, grid) * grid.step**2
        return math.sqrt(_float(exact)) if self.is_rooted else _float(exact)

    def _scaled(self, variance: Fraction, count: int, grid: SumGrid) -> Fraction:
        """The variance within its limits, times n / (n - 1) for a sample of n rows."""
        ratio = Fraction(max(count, 2), max(count, 2) - 1) if self.is_of_sample else 1
        return min(max(variance, Fraction(0)) * ratio, self._limit(grid))

    def _limit(self, grid: SumGrid) -> Fraction:
        """The largest variance of numbers on the grid, in squared steps."""
        return Fraction((grid.upper - grid.lower) ** 2, 2 if self.is_of_sample else 4)

    def _low(self, grid: SumGrid, exact: Fraction) -> float:
        return max(0.0, math.nextafter(self._rooted(exact * grid.step**2), -math.inf))

    def _high(self, grid: SumGrid, exact: Fraction) -> float:
        return math.nextafter(self._rooted(exact * grid.step**2), math.inf)

    def _rooted(self, variance: Fraction) -> float:
        return math.sqrt(_float(variance)) if self.is_rooted else _float(variance)


def _squared_grid(squares: NoisySum) -> SumGrid:
    """The grid of the squares, measured from their shift."""
    largest = _grid(squares).largest ** 2
    return SumGrid(0, 0, -squares.shift, largest - squares.shift)


def _variance(*other_spellings: str, is_of_sample: bool, is_rooted: bool) -> Estimator:
    one = _VarianceEstimator(is_of_sample, is_rooted)
    needs = SumKind.SQUARES, SumKind.CENTRED_TO_SQUARE, SumKind.ROWS
    return Estimator(needs, one.estimate, one.half_width, other_spellings=other_spellings)


# --- quantiles ---


@dataclass(frozen=True, slots=True)
class NoisyQuantile:
    """The mechanism of a quantile, and whether its values are whole numbers."""

    mechanism: QuantileIntervals
    is_whole: bool


def _quantile(law: NoisyQuantile, noisy: Sequence[Sequence[float]], _: Fraction) -> Estimates:
    """The values and intervals as they were drawn, with half of the interval as the error."""
    plain = int if law.is_whole else float
    values, low, high = ([plain(row[index]) for row in noisy] for index in range(3))
    errors = [(top - bottom) / 2 for bottom, top in zip(low, high, strict=True)]
    return Estimates(values, low, high, errors)


def _quantile_half_width(law: NoisyQuantile, rows: int, _: Fraction) -> float:
    """At the interval's confidence an end lies within twice the padding of the level's rank."""
    level = law.mechanism.level
    return min(2 * law.mechanism.padding / rows, float(max(level, 1 - level)))


def _at_level(level: Fraction | None = None, *other_spellings: str, note: str = "") -> Estimator:
    return Estimator(
        (),
        _quantile,
        _quantile_half_width,
        is_in_ranks=True,
        level=level,
        takes_level=level is None,
        other_spellings=other_spellings,
        note=note,
    )


_EXTREME = Fraction(1, 100)


# --- the table ---

ESTIMATORS: dict[AggregateFunction, Estimator] = {
    AggregateFunction.COUNT: Estimator((SumKind.ROWS,), _total, _total_half_width, has_stddev=True),
    AggregateFunction.COUNT_UNITS: Estimator(
        (SumKind.UNITS,), _total, _total_half_width, has_stddev=True
    ),
    AggregateFunction.COUNT_DISTINCT: Estimator(
        (SumKind.DISTINCT,), _total, _total_half_width, has_stddev=True
    ),
    AggregateFunction.SUM: Estimator((SumKind.VALUES,), _total, _total_half_width, has_stddev=True),
    AggregateFunction.AVG: Estimator(
        (SumKind.CENTRED, SumKind.ROWS), _mean, _mean_half_width, other_spellings=("MEAN",)
    ),
    AggregateFunction.VARIANCE: _variance("VAR_SAMP", is_of_sample=True, is_rooted=False),
    AggregateFunction.VAR_POP: _variance(is_of_sample=False, is_rooted=False),
    AggregateFunction.STDDEV: _variance("STDDEV_SAMP", is_of_sample=True, is_rooted=True),
    AggregateFunction.STDDEV_POP: _variance(is_of_sample=False, is_rooted=True),
    AggregateFunction.MEDIAN: _at_level(Fraction(1, 2)),
    AggregateFunction.QUANTILE: _at_level(None, "QUANTILE_DISC", "PERCENTILE_DISC"),
    AggregateFunction.MIN: _at_level(
        _EXTREME, note="MIN is the 0.01 quantile: one row in a hundred lies below it"
    ),
    AggregateFunction.MAX: _at_level(
        1 - _EXTREME, note="MAX is the 0.99 quantile: one row in a hundred lies above it"
    ),
}

# each name that SQL has for a function
SPELLINGS = {
    name: function
    for function, estimator in ESTIMATORS.items()
    for name in (function.value, *estimator.other_spellings)
}
LISTED = ", ".join(function.value for function in AggregateFunction)
