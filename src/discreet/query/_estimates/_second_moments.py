"""Variances and covariances from noisy sums, with intervals; `_correlation` builds on them.

Let p and q be the centred values of n rows, m and k their means, and c their covariance, divided by
n. For every number u and v

    sum (p - u) (q - v)  =  n (c + (m - u) (k - v)),

and the left side is S_pq - u S_q - v S_p + u v n in the sums of the rows. So for u = m and v = k,
the noisy left side less c times the noisy count is noise alone: N_pq - m N_q - k N_p +
(m k - c) N_n. The interval of c holds all c for which that lies within its noise's quantile, for
some m and k in the intervals of the means. Those get a tenth of the risk, the quantile the rest
(Bonferroni). With n - 1 in place of n, the same holds for the covariance of a sample.

An error of the means has little effect, as it enters by the product of two. In a group of many
rows, u and v are the estimated means alone, and the tenth of the risk is left for their errors.
Such a group has a noisy count of at least 16 standard deviations of its noise, and enough rows
to make the product of both errors small: at most a tenth of the standard deviation of the noise
above. That this is enough was measured, not proven (`docs/decisions/intervals.md`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from discreet._arrays import FloatArray
from discreet.noise._sums import weighted_half_widths
from discreet.query._estimates._estimates import (
    Estimates,
    HalfWidth,
    Noisy,
    NoisySum,
    NoisySums,
    grid_of,
    half_of,
    mean_ends,
    means,
    nearest_float,
    ratio_of,
)

_SHARE_OF_MEANS = Fraction(1, 10)  # of the risk
_MANY = 16  # standard deviations of a count's noise
_SMALL_ERROR = 0.1  # of the noise of a moment, for the error that estimated means add
_ROUNDS = 3
TYPICAL = Fraction(1, 8)  # the standard deviation, as a share of the range
_SPARE = Fraction(1 + 1e-9)

ExactEnds = tuple[list[Fraction], list[Fraction]]


@dataclass(frozen=True, slots=True)
class CentredColumn:
    """The noisy centred sum of a column of values, and the interval of its mean in each group."""

    one: NoisySum
    totals: Sequence[int]
    low: list[Fraction]
    high: list[Fraction]

    @staticmethod
    def of(
        one: NoisySum, rows: NoisySum, noisy: Noisy, has_many: Sequence[bool], *, level: Fraction
    ) -> "CentredColumn":
        """The interval of each mean at this level, from noisy totals and counts; the estimate alone
        in a group of many rows."""
        low = _centres(one, noisy)
        high = list(low)
        few = [group for group, many in enumerate(has_many) if not many]
        parts = [[each[group] for group in few] for each in noisy]
        for group, *ends in zip(few, *mean_ends(ratio_of(one, rows, level), parts), strict=True):
            low[group], high[group] = ends
        return CentredColumn(one, noisy[0], low, high)

    @property
    def range(self) -> int:
        """The width of the values' range, in steps."""
        return grid_of(self.one).upper - grid_of(self.one).lower


@dataclass(frozen=True, slots=True)
class Moment:
    """A noisy sum of products of the values of two columns, or of squares of one, in groups with
    noisy counts of rows. ``has_many`` says which groups have many rows, and ``lost`` is 1 for a
    sample, whose sum is divided by n - 1."""

    one: NoisySum
    noisy: Sequence[int]
    rows: NoisySum
    counts: Sequence[int]
    columns: tuple[CentredColumn, ...]
    has_many: Sequence[bool]
    lost: int = 0

    @property
    def limits(self) -> tuple[Fraction, Fraction]:
        """The ends of its range, in steps of the products."""
        first, last = self.columns[0], self.columns[-1]
        most = Fraction(first.range * last.range, 2 if self.lost else 4)
        return (Fraction(0) if len(self.columns) == 1 else -most), most

    def values(self) -> list[Fraction | None]:
        """The estimate of each group; none where the count is too small."""
        found: list[Fraction | None] = []
        least, most = self.limits
        centres = [means(grid_of(v.one), (v.totals, self.counts)) for v in self.columns]
        for group, count in enumerate(self.counts):
            if count < 1 + self.lost:
                found.append(None)
                continue
            first, last = (own[group] or Fraction(0) for own in (centres[0], centres[-1]))
            joint = Fraction(self.noisy[group], count) + self.one.shift - first * last
            scaled = joint * Fraction(count, count - self.lost)
            found.append(min(max(scaled, least), most))
        return found

    def intervals(self, level: Fraction) -> ExactEnds:
        """The ends of each group's interval; the whole range where the count is too small, or where
        no number fits."""
        least, most = self.limits
        groups = range(len(self.counts))
        found = self.values()
        low, high = (
            [
                end if each is None or not many else each
                for many, each in zip(self.has_many, found, strict=True)
            ]
            for end in (least, most)
        )
        is_known = [count > self.lost for count in self.counts]
        around = [self.around(group) for group in groups]
        for _ in range(_ROUNDS):  # a narrower interval makes the quantile smaller
            reaches = (
                self._reach(low, _chosen(self.has_many, low, high), level),
                self._reach(_chosen(self.has_many, high, low), high, level),
            )
            for group in groups:
                if not is_known[group]:
                    continue
                divisor = self.counts[group] - self.lost
                bottom, top = (
                    (end + s * Fraction(reach[group])) / divisor
                    for end, s, reach in zip(around[group], (-1, 1), reaches, strict=True)
                )
                is_known[group] = bottom <= most and top >= least
                low[group] = max(bottom, least) if is_known[group] else least
                high[group] = min(top, most) if is_known[group] else most
        return low, high

    def around(self, group: int) -> tuple[Fraction, Fraction]:
        """The least and the largest noisy sum of products around means in their intervals."""
        count = self.counts[group]
        joint = self.noisy[group] + self.one.shift * count
        first, last = self.columns[0], self.columns[-1]

        def of(u: Fraction, v: Fraction) -> Fraction:
            return joint - u * last.totals[group] - v * first.totals[group] + u * v * count

        corners = corners_of(self.columns, group)
        ends = [of(u, v) for u, v in corners]
        if len(self.columns) == 1 and count > 0:
            (low, _), (high, _) = corners[0], corners[-1]
            middle = min(max(Fraction(first.totals[group], count), low), high)
            ends.append(of(middle, middle))
        return min(ends), max(ends)

    def _reach(self, low: list[Fraction], high: list[Fraction], level: Fraction) -> FloatArray:
        """The quantile of the noise in each group, at the largest weights in the intervals."""
        laws = [self.one, *(v.one for v in self.columns), self.rows]
        weights = np.empty((len(laws), len(self.counts)))
        for group in range(len(self.counts)):
            corners = corners_of(self.columns, group)
            crossed = [u * v for u, v in corners]
            if len(self.columns) == 1 and corners[0][0] <= 0 <= corners[-1][0]:
                crossed.append(Fraction(0))
            of_rows = max(
                abs(max(crossed) + self.one.shift - low[group]),
                abs(min(crossed) + self.one.shift - high[group]),
            )
            farthest = [max(abs(pair[place]) for pair in corners) for place in (1, 0)]
            own = farthest if len(self.columns) == 2 else [2 * farthest[0]]
            weights[:, group] = [1.0, *(float(each) for each in own), float(of_rows)]
        return weighted_half_widths([law.mechanism.law for law in laws], weights, level)


def _chosen(holds: Sequence[bool], one: list[Fraction], other: list[Fraction]) -> list[Fraction]:
    """The first where this holds, and the other one elsewhere."""
    return [each[0] if first else each[1] for first, *each in zip(holds, one, other, strict=True)]


def corners_of(columns: tuple[CentredColumn, ...], group: int) -> list[tuple[Fraction, Fraction]]:
    """The pairs of ends of the means' intervals; of one column, each end with itself."""
    if len(columns) == 1:
        return [(end, end) for end in (columns[0].low[group], columns[0].high[group])]
    first, last = ((one.low[group], one.high[group]) for one in columns)
    return list(product(first, last))


def have_many(law: NoisySums, noisy: Noisy) -> list[bool]:
    """Whether each group has enough rows for its estimated means to stand for the means. The law
    is that of a sum of products or squares, of one sum or two, and of the count."""
    joint, *sums, _ = law
    products, *totals, counts = noisy
    columns = [_centres(one, (own, counts)) for one, own in zip(sums, totals, strict=True)]
    found = []
    for group, count in enumerate(counts):
        centres = [own[group] for own in columns]
        moment = (
            Fraction(products[group], count) + joint.shift - centres[0] * centres[-1]
            if count
            else Fraction(0)
        )
        found.append(suffices(law, [float(each) for each in centres], float(moment), count))
    return found


def suffices(law: NoisySums, centres: Sequence[float], moment: float, count: int) -> bool:
    """Whether this many rows are enough, with these means and this moment."""
    joint, *sums, rows = (one.mechanism.stddev_of_noise() for one in law)
    if count < max(_MANY * rows, 1):
        return False
    u, v = centres[0], centres[-1]
    # the product of the errors of both means, times the rows
    added = math.hypot(sums[0], u * rows) * math.hypot(sums[-1], v * rows) / count
    by_sums = (v * sums[0], u * sums[-1]) if len(sums) == 2 else (2 * u * sums[0],)
    return added <= _SMALL_ERROR * math.hypot(
        joint, *by_sums, (u * v + law[0].shift - moment) * rows
    )


def _centres(one: NoisySum, noisy: Noisy) -> list[Fraction]:
    """The estimated mean of each group, 0 where there is none."""
    return [found or Fraction(0) for found in means(grid_of(one), noisy)]


# --- estimators ---


@dataclass(frozen=True, slots=True)
class VarianceEstimator:
    """Variances from a sum of squares, a sum and a count. A variance lies within 0 and a quarter of
    the range's square, for a sample within half of it."""

    is_of_sample: bool
    is_rooted: bool

    def estimate(self, law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
        squares, total, rows = law
        counts = noisy[2]
        has_many = have_many(law, noisy)
        level = level_of_means(confidence, 1)
        values = CentredColumn.of(total, rows, noisy[1:], has_many, level=level)
        moment = Moment(
            squares, noisy[0], rows, counts, (values,), has_many, int(self.is_of_sample)
        )
        low, high = moment.intervals(_level_of_moments(confidence, 1))
        step = grid_of(total).step
        estimates = [
            None if exact is None else self._rooted(exact, step)
            for exact in moved(moment.values(), low, high)
        ]
        bottom = [max(0.0, math.nextafter(self._rooted(end, step), -math.inf)) for end in low]
        top = [math.nextafter(self._rooted(end, step), math.inf) for end in high]
        return Estimates(estimates, bottom, top, half_of(bottom, top))

    def half_width(self, law: NoisySums, rows: int, confidence: Fraction) -> HalfWidth:
        """The half-width of a root is largest where the variance is as small as its error."""
        total, step = law[1], grid_of(law[1]).step
        most = range_of(total) ** 2 / (2 if self.is_of_sample else 4)
        wide, widest = (
            min(forecast_moment(law, (total,), rows, confidence, is_typical=each), most / 2)
            for each in (True, False)
        )
        if not self.is_rooted:
            sizes = (nearest_float(Fraction(each) * step**2) for each in (wide, widest))
            return typical(*sizes)
        usual = float(TYPICAL * range_of(total)) ** 2
        ends = math.sqrt(max(usual - wide, 0.0)), math.sqrt(min(usual + wide, most))
        size = math.sqrt(most) / 2 if wide == most / 2 else (ends[1] - ends[0]) / 2
        return typical(size * float(step), math.sqrt(widest / 2) * float(step))

    def _rooted(self, variance: Fraction, step: Fraction) -> float:
        """The variance or its root, in the values' units. A root is taken in steps, since the
        square of a small step is no float."""
        if self.is_rooted:
            return math.sqrt(nearest_float(variance)) * float(step)
        return nearest_float(variance * step**2)


@dataclass(frozen=True, slots=True)
class CovarianceEstimator:
    """Covariances from a sum of products, two sums and a count. A covariance lies within a quarter
    of the product of both ranges around 0, for a sample within half of it."""

    is_of_sample: bool

    def estimate(self, law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
        products, first, last, rows = law
        has_many = have_many(law, noisy)
        columns = two_columns((first, last, rows), noisy[1:], has_many, confidence)
        moment = Moment(
            products, noisy[0], rows, noisy[3], columns, has_many, int(self.is_of_sample)
        )
        low, high = moment.intervals(_level_of_moments(confidence, 1))
        step = grid_of(first).step * grid_of(last).step
        values = [
            None if exact is None else nearest_float(exact * step)
            for exact in moved(moment.values(), low, high)
        ]
        bottom = [math.nextafter(nearest_float(end * step), -math.inf) for end in low]
        top = [math.nextafter(nearest_float(end * step), math.inf) for end in high]
        return Estimates(values, bottom, top, half_of(bottom, top))

    def half_width(self, law: NoisySums, rows: int, confidence: Fraction) -> HalfWidth:
        """Cut to the range."""
        products, first, last, count = law
        most = range_of(first) * range_of(last) / (2 if self.is_of_sample else 4)
        step = grid_of(first).step * grid_of(last).step
        wide, widest = (
            forecast_moment((products, count), (first, last), rows, confidence, is_typical=each)
            for each in (True, False)
        )
        return typical(
            *(nearest_float(Fraction(min(each, most)) * step) for each in (wide, widest))
        )


def two_columns(
    law: NoisySums, noisy: Noisy, has_many: Sequence[bool], confidence: Fraction
) -> tuple[CentredColumn, ...]:
    """Both columns of values, from their noisy totals, and the counts."""
    *sums, rows = law
    level = level_of_means(confidence, 2)
    return tuple(
        CentredColumn.of(one, rows, (own, noisy[-1]), has_many, level=level)
        for one, own in zip(sums, noisy[:-1], strict=True)
    )


def level_of_means(confidence: Fraction, count: int) -> Fraction:
    return 1 - (1 - confidence) * _SHARE_OF_MEANS / count


def _level_of_moments(confidence: Fraction, count: int) -> Fraction:
    return 1 - (1 - confidence) * (1 - _SHARE_OF_MEANS) / count


def moved(
    values: list[Fraction | None], low: list[Fraction], high: list[Fraction]
) -> list[Fraction | None]:
    """Each value, moved into its interval."""
    return [
        None if value is None else min(max(value, bottom), top)
        for value, bottom, top in zip(values, low, high, strict=True)
    ]


# --- forecasts ---


def forecast_moment(
    law: tuple[NoisySum, ...],
    values: tuple[NoisySum, ...],
    rows: int,
    confidence: Fraction,
    *,
    is_typical: bool,
) -> float:
    """Half the width of a moment's interval in a group of this many rows, in steps: at most, or for
    typical means, half as far from the middles as can be. The first part of the law is the moment's
    sum, the last one the count."""
    joint, count = law[0], law[-1]
    far = [float(grid_of(one).largest) / (2 if is_typical else 1) for one in values]
    own = far[::-1] if len(far) == 2 else [2 * far[0]]
    weights = np.array([[1.0], *([each] for each in own), [far[0] * far[-1] + joint.shift]])
    laws = [one.mechanism.law for one in (joint, *values, count)]
    (reach,) = weighted_half_widths(laws, weights, _level_of_moments(confidence, 1))
    usual = math.prod(float(TYPICAL * range_of(one)) for one in (values[0], values[-1]))
    if suffices((joint, *values, count), far, usual, fewest(count, rows, confidence)):
        return float(reach) / rows
    level = level_of_means(confidence, len(values))
    around = [ratio_of(one, count, level).half_width(rows) for one in values]
    return float(reach) / rows + around[0] * around[-1] / (2 if len(values) == 1 else 1)


def fewest(count: NoisySum, rows: int, confidence: Fraction) -> int:
    """The least noisy count of a group of this many rows, at this confidence: it decides whether
    they are many."""
    return rows - int(count.mechanism.error(confidence))


def typical(size: float, worst: float) -> HalfWidth:
    return HalfWidth(size, is_typical=True, worst=worst)


def range_of(one: NoisySum) -> int:
    return grid_of(one).upper - grid_of(one).lower
