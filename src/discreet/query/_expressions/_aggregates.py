"""The aggregate functions: one row for each, with all that the rest of the package knows of it.

A row names the function's spellings in SQL, the noisy sums that it needs or the mechanism that gets
its rows, and how values, intervals and forecasts follow. Plans, answers, forecasts and the reader
of SQL take it from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.mechanisms.selection import BestOfEachGroup, PermuteAndFlip
from discreet.query._estimates._correlation import CorrelationEstimator
from discreet.query._estimates._estimates import (
    Estimates,
    Estimator,
    HalfWidth,
    Noisy,
    NoisySums,
    SumKind,
    grid_of,
    half_of,
    mean_ends,
    means,
    nearest_float,
    nearest_ratio,
    ratio_of,
)
from discreet.query._estimates._grid import SumGrid
from discreet.query._estimates._second_moments import CovarianceEstimator, VarianceEstimator


class AggregateFunction(Enum):
    """The aggregate functions, by their first name in SQL."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    VARIANCE = "VARIANCE"
    VAR_POP = "VAR_POP"
    STDDEV = "STDDEV"
    STDDEV_POP = "STDDEV_POP"
    COVAR_SAMP = "COVAR_SAMP"
    COVAR_POP = "COVAR_POP"
    CORR = "CORR"
    COUNT_DISTINCT = "COUNT_DISTINCT"
    COUNT_UNITS = "COUNT_UNITS"
    MEDIAN = "MEDIAN"
    QUANTILE = "QUANTILE"
    MIN = "MIN"
    MAX = "MAX"
    MODE = "MODE"


# --- counts and sums ---


def _total(law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
    ((one,), (steps,)) = law, noisy
    grid, wide = grid_of(one), one.mechanism.error(confidence)
    error = one.mechanism.stddev_of_noise() * float(grid.step)
    values, low, high = (_numbers(grid, [step + far for step in steps]) for far in (0, -wide, wide))
    return Estimates(values, low, high, [error] * len(steps))


def _total_half_width(law: NoisySums, _: int, confidence: Fraction) -> HalfWidth:
    (one,) = law
    return HalfWidth(one.mechanism.error(confidence) * float(grid_of(one).step))


def _numbers(grid: SumGrid, steps: Sequence[int]) -> Sequence[int] | Sequence[float]:
    """Whole numbers clamped to 64 bits, or floats, converted only here."""
    size = grid.step
    if size == 1:
        return [min(max(step, -(2**63)), 2**63 - 1) for step in steps]
    return [
        nearest_ratio((step + grid.center) * size.numerator, size.denominator) for step in steps
    ]


# --- means ---


def _mean(law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
    total, rows = law
    grid, ratio = grid_of(total), ratio_of(total, rows, confidence)
    values = [
        None if mean is None else nearest_float(grid.value(mean)) for mean in means(grid, noisy)
    ]
    low, high = (
        [nearest_float(grid.value(end)) for end in ends] for ends in mean_ends(ratio, noisy)
    )
    return Estimates(values, low, high, half_of(low, high))


def _mean_half_width(law: NoisySums, rows: int, confidence: Fraction) -> HalfWidth:
    total, count = law
    ratio = ratio_of(total, count, confidence)
    return HalfWidth(float(ratio.grid.step) * ratio.half_width(rows))


# --- variances and covariances ---


def _variance(*other_spellings: str, is_of_sample: bool, is_rooted: bool) -> Estimator:
    one = VarianceEstimator(is_of_sample, is_rooted)
    needs = SumKind.SQUARES, SumKind.CENTRED_TO_SQUARE, SumKind.ROWS
    return Estimator(needs, one.estimate, one.half_width, other_spellings=other_spellings)


_OF_PAIRS = SumKind.PRODUCTS, SumKind.CENTRED_TO_SQUARE, SumKind.SECOND_CENTRED
_TO_SCALE = SumKind.SQUARES, SumKind.SECOND_SQUARES


def _covariance(*, is_of_sample: bool) -> Estimator:
    one = CovarianceEstimator(is_of_sample)
    return Estimator((*_OF_PAIRS, SumKind.ROWS), one.estimate, one.half_width, takes_two=True)


def _correlation() -> Estimator:
    one, needs = CorrelationEstimator(), (*_OF_PAIRS, *_TO_SCALE, SumKind.ROWS)
    return Estimator(needs, one.estimate, one.half_width, takes_two=True)


# --- quantiles ---

_ROWS_TO_PADDING = 3  # measured for levels from 0.01 to 0.5, at confidences from 0.5 to 0.999


@dataclass(frozen=True, slots=True)
class NoisyQuantile:
    """The mechanism of a quantile, whether its values are whole numbers, and their bounds where
    they were rounded to the mechanism's grid."""

    mechanism: QuantileIntervals
    is_whole: bool
    rounded_within: tuple[Fraction, Fraction] | None = None


def _quantile(law: NoisyQuantile, noisy: Sequence[Sequence[float]], _: Fraction) -> Estimates:
    """The values and intervals as they were drawn, with half of the interval as the error.

    A value is rounded by half a step at most, or moved to the grid's end by less than a step. So an
    interval reaches a step further where values are rounded, up to their bounds.
    """
    plain = int if law.is_whole else float
    values, low, high = ([plain(row[index]) for row in noisy] for index in range(3))
    if law.rounded_within is not None:
        step, (least, most) = law.mechanism.grid.step, law.rounded_within
        low = [plain(max(Fraction(end) - step, least)) for end in low]
        high = [plain(min(Fraction(end) + step, most)) for end in high]
    return Estimates(values, low, high, half_of(low, high))


def _quantile_half_width(law: NoisyQuantile, rows: int, _: Fraction) -> HalfWidth:
    """Where rows lie evenly around the quantile, half of the interval spans at most 3 times the
    padding in rows, at the interval's confidence. Elsewhere it may span more, or fewer."""
    level = law.mechanism.level
    most = float(max(level, 1 - level))
    return HalfWidth(min(_ROWS_TO_PADDING * law.mechanism.padding / rows, most), is_typical=True)


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
_NO_MEAN = "a quantile is drawn among the values within bounds, not interpolated between rows"


# --- modes ---


@dataclass(frozen=True, slots=True)
class NoisyMode:
    """The mechanism of a mode."""

    mechanism: PermuteAndFlip | BestOfEachGroup


def _mode(law: NoisyMode, noisy: Noisy, confidence: Fraction) -> Estimates:
    (numbers,) = noisy
    unknown, error = [None] * len(numbers), law.mechanism.error(confidence)
    return Estimates(numbers, unknown, unknown, [error] * len(numbers))


def _mode_half_width(law: NoisyMode, _: int, confidence: Fraction) -> HalfWidth:
    return HalfWidth(float(law.mechanism.error(confidence)))


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
    AggregateFunction.COVAR_SAMP: _covariance(is_of_sample=True),
    AggregateFunction.COVAR_POP: _covariance(is_of_sample=False),
    AggregateFunction.CORR: _correlation(),
    AggregateFunction.MEDIAN: _at_level(Fraction(1, 2), note=_NO_MEAN),
    AggregateFunction.QUANTILE: _at_level(
        None, "QUANTILE_DISC", "QUANTILE_CONT", "PERCENTILE_DISC", "PERCENTILE_CONT", note=_NO_MEAN
    ),
    AggregateFunction.MIN: _at_level(
        _EXTREME, note="MIN is the 0.01 quantile: one row in a hundred lies below it"
    ),
    AggregateFunction.MAX: _at_level(
        1 - _EXTREME, note="MAX is the 0.99 quantile: one row in a hundred lies above it"
    ),
    AggregateFunction.MODE: Estimator(
        (),
        _mode,
        _mode_half_width,
        is_key=True,
        note="a mode is a key; its error is the number of rows by which the most frequent key may "
        "have more, so in a group of fewer rows it is any key",
    ),
}

# each name that SQL has for a function
SPELLINGS = {
    name: function
    for function, estimator in ESTIMATORS.items()
    for name in (function.value, *estimator.other_spellings)
}
LISTED = ", ".join(function.value for function in AggregateFunction)
