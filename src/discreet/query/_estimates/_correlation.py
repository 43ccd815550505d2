"""Correlations from noisy sums, with intervals that solve one equation.

Let c be the covariance of n rows, s and t both variances, r = c / sqrt(s t) the correlation, and
h = sqrt(s / t). Then h t = s / h = sqrt(s t), so

    c - (r / 2) (s / h + h t)  =  0.

In noisy sums around the true means the left side, times n, is noise alone. The interval of r holds
all r for which it lies within that noise's quantile, for some h and some means in their intervals.
By the inequality of the means an error of h has a small effect: s / h + h t is least at the true
one. The means get a twentieth of the risk, the variances, from which h follows, another one, and
the quantile the rest (Bonferroni). So one quantile decides on the width, where an interval from
those of the covariance and of both variances would add up three.

As for covariances, the estimated means are used alone in a group of many rows, and so is the
estimate of h, where no variance may be more than twice its estimate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray
from discreet.noise._sums import weighted_half_widths
from discreet.query._estimates._estimates import (
    Estimates,
    HalfWidth,
    Noisy,
    NoisySums,
    half_of,
    nearest_float,
    ratio_of,
)
from discreet.query._estimates._second_moments import (
    TYPICAL,
    CentredColumn,
    Moment,
    corners_of,
    fewest,
    forecast_moment,
    have_many,
    level_of_means,
    range_of,
    suffices,
    two_columns,
)

_SHARE_OF_MEANS = Fraction(1, 2)  # of the part of the risk that means have in a covariance
_SHARE_OF_VARIANCES = Fraction(1, 20)  # of the risk
_SHARE_OF_QUANTILE = Fraction(9, 10)
_ROUNDS = 4
_SPARE = 1e-9
_SAFE = 1 + _SPARE

FloatEnds = tuple[float, float]
_WHOLE = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class CorrelationEstimator:
    """Correlations from a sum of products, sums of squares and of values, and a count."""

    def estimate(self, law: NoisySums, noisy: Noisy, confidence: Fraction) -> Estimates:
        products, first, last, of_first, of_last, rows = law
        counts = noisy[5]
        level = _level_of_means(confidence)
        of_all = (
            have_many((products, first, last, rows), (*noisy[:3], counts)),
            have_many((of_first, first, rows), (noisy[3], noisy[1], counts)),
            have_many((of_last, last, rows), (noisy[4], noisy[2], counts)),
        )
        has_many = [all(each) for each in zip(*of_all, strict=True)]
        columns = two_columns((first, last, rows), (*noisy[1:3], counts), has_many, level)
        joint = Moment(products, noisy[0], rows, counts, columns, has_many)
        spreads = (
            Moment(of_first, noisy[3], rows, counts, columns[:1], has_many),
            Moment(of_last, noisy[4], rows, counts, columns[1:], has_many),
        )
        ends = _Equation(joint, spreads, columns).intervals(confidence)
        low, high = [one for one, _ in ends], [other for _, other in ends]
        found = zip(joint.values(), *(one.values() for one in spreads), strict=True)
        values = [
            None if exact is None else min(max(exact, bottom), top)
            for exact, bottom, top in zip(map(_correlation, found), low, high, strict=True)
        ]
        return Estimates(values, low, high, half_of(low, high))

    def half_width(self, law: NoisySums, rows: int, confidence: Fraction) -> HalfWidth:
        """For no correlation. Of values without spread the interval is all from -1 to 1."""
        # 1. typical deviations, and how far noise moves them
        products, first, last, of_first, of_last, count = law
        usual = [float(TYPICAL * range_of(one)) ** 2 for one in (first, last)]
        level = _level_of_variances(confidence)
        wide = [
            forecast_moment((square, count), (one,), rows, level, is_typical=True)
            for square, one in ((of_first, first), (of_last, last))
        ]
        centres = [float(range_of(one)) / 4 for one in (first, last)]
        counted = fewest(count, rows, confidence)
        has_many = (
            suffices((products, first, last, count), centres, 0.0, counted)
            and suffices((of_first, first, count), centres[:1], usual[0], counted)
            and suffices((of_last, last, count), centres[1:], usual[1], counted)
        )
        if not all(spread > error for spread, error in zip(usual, wide, strict=True)):
            return HalfWidth(1.0, is_typical=True)
        least, most = (
            math.sqrt((usual[0] + sign * wide[0]) / (usual[1] - sign * wide[1])) for sign in (-1, 1)
        )
        if has_many and all(error <= spread for spread, error in zip(usual, wide, strict=True)):
            least = most = math.sqrt(usual[0] / usual[1])
        # 2. how far noise moves the means
        means = level_of_means(_level_of_means(confidence), 2)
        around = [
            0.0 if has_many else ratio_of(one, count, means).half_width(rows)
            for one in (first, last)
        ]
        # 3. the width, which the weights of the noises depend on: a fixed point
        size = 1.0
        for _ in range(_ROUNDS):
            weights = _weights(
                [(centres[0], centres[1])],
                (-size, size),
                (least, most),
                (products.shift, of_first.shift, of_last.shift),
            )
            reach = _reach(law, np.array([weights]).T, confidence)[0]
            far = float(reach) / rows + around[0] * around[1]
            size = min(far / math.sqrt(usual[0] * usual[1]), 1.0)
        return HalfWidth(size, is_typical=True)


@dataclass(frozen=True, slots=True)
class _Equation:
    """The noisy sum of products, those of squares, and both columns."""

    joint: Moment
    spreads: tuple[Moment, Moment]
    columns: tuple[CentredColumn, ...]

    def intervals(self, confidence: Fraction) -> list[FloatEnds]:
        """The ends of each group's interval; from -1 to 1 where a variance may be 0, or where no
        number fits."""
        ratios = self._ratios(_level_of_variances(confidence))
        found: list[FloatEnds] = [_WHOLE] * len(ratios)
        known = [group for group, ratio in enumerate(ratios) if ratio is not None]
        for _ in range(_ROUNDS if known else 0):  # a narrower interval makes the quantile smaller
            weights = [self._weights(group, found[group], ratios[group]) for group in known]
            below, above = (
                _reach(self._laws, np.array(side).T, confidence)
                for side in zip(*weights, strict=True)
            )
            for group, far in zip(known, zip(below, above, strict=True), strict=True):
                found[group] = self._solved(group, far, ratios[group])
        return found

    @property
    def _laws(self) -> NoisySums:
        first, last = self.columns
        squares = (one.one for one in self.spreads)
        return (self.joint.one, first.one, last.one, *squares, self.joint.rows)

    def _ratios(self, level: Fraction) -> list[FloatEnds | None]:
        """The interval of h in each group, or its estimate where both variances are known well;
        none where a variance may be 0."""
        of_first, of_last = (
            zip(one.values(), *one.intervals(level), strict=True) for one in self.spreads
        )
        found: list[FloatEnds | None] = []
        for many, (s, *s_ends), (t, *t_ends) in zip(
            self.joint.has_many, of_first, of_last, strict=True
        ):
            if s_ends[0] <= 0 or t_ends[0] <= 0:
                found.append(None)
            elif many and s and t and _is_near(s, s_ends) and _is_near(t, t_ends):
                found.append((_root(s / t), _root(s / t)))
            else:
                ends = _root(s_ends[0] / t_ends[1]), _root(s_ends[1] / t_ends[0])
                found.append((ends[0] / _SAFE, ends[1] * _SAFE))
        return found

    def _weights(
        self, group: int, within: FloatEnds, ratio: FloatEnds | None
    ) -> tuple[list[float], list[float]]:
        """The weights for the lower and for the upper end."""
        assert ratio is not None
        corners = [(float(u), float(v)) for u, v in corners_of(self.columns, group)]
        shifts = self.joint.one.shift, self.spreads[0].one.shift, self.spreads[1].one.shift
        if ratio[0] < ratio[1]:
            made = _weights(corners, within, ratio, shifts)
            return made, made
        low, high = (_weights(corners, (end, end), ratio, shifts) for end in within)
        return low, high

    def _solved(self, group: int, far: tuple[float, float], ratio: FloatEnds | None) -> FloatEnds:
        """All r with n c - r n (s / h + h t) / 2 at most this far below 0 or above."""
        assert ratio is not None
        bottom, top = (float(end) for end in self.joint.around(group))
        bottom -= float(far[0]) + abs(bottom) * 1e-12
        top += float(far[1]) + abs(top) * 1e-12
        (s, s_most), (t, t_most) = (map(float, one.around(group)) for one in self.spreads)
        least = min(_mean(s, t, h) for h in (*ratio, _inside(s, t, ratio))) / _SAFE
        most = max(_mean(s_most, t_most, h) for h in ratio) * _SAFE
        if s <= 0 or t <= 0 or least <= 0:
            return _WHOLE
        low = bottom / (least if bottom <= 0 else most)
        high = top / (least if top >= 0 else most)
        found = max(low - abs(low) * _SPARE, -1.0), min(high + abs(high) * _SPARE, 1.0)
        return found if found[0] <= found[1] else _WHOLE


def _weights(
    corners: Sequence[tuple[float, float]],
    within: FloatEnds,
    ratio: FloatEnds,
    shifts: tuple[int, int, int],
) -> list[float]:
    """The largest weights of the noises: of products, of both sums of values, of both sums of
    squares, and of the count. Those of values are linear in each mean, so corners decide."""
    size, (least, most) = max(map(abs, within)), ratio
    slopes = [r / h for r in within for h in ratio], [r * h for r in within for h in ratio]
    of_first = max(abs(slope * u - v) for u, v in corners for slope in slopes[0])
    of_last = max(abs(slope * v - u) for u, v in corners for slope in slopes[1])
    crossed = [shifts[0] + u * v for u, v in corners]
    s, t = (
        _squares(column, shift)
        for column, shift in zip(zip(*corners, strict=True), shifts[1:], strict=True)
    )
    means = (
        min(_mean(s[0], t[0], h) for h in (least, most, _inside(s[0], t[0], ratio))),
        max(_mean(s[1], t[1], h) for h in ratio),
    )
    scaled = [r * mean for r in within for mean in means]
    of_rows = max(abs(min(crossed) - max(scaled)), abs(max(crossed) - min(scaled)))
    return [1.0, of_first, of_last, size / (2 * least), size * most / 2, of_rows]


def _squares(ends: Sequence[float], shift: int) -> FloatEnds:
    """The least and the largest square of a number between these ends, and the shift."""
    least = 0.0 if min(ends) < 0 < max(ends) else min(end * end for end in ends)
    return shift + least, shift + max(end * end for end in ends)


def _mean(s: float, t: float, h: float) -> float:
    """The mean of s / h and h t."""
    return (s / h + h * t) / 2


def _inside(s: float, t: float, ratio: FloatEnds) -> float:
    """The h at which that mean is least, or the nearest one."""
    least, most = ratio
    return min(max(math.sqrt(s / t), least), most) if s > 0 and t > 0 else least


def _reach(law: NoisySums, weights: FloatArray, confidence: Fraction) -> FloatArray:
    laws = [one.mechanism.law for one in law]
    return weighted_half_widths(laws, weights, 1 - (1 - confidence) * _SHARE_OF_QUANTILE)


def _level_of_variances(confidence: Fraction) -> Fraction:
    return 1 - (1 - confidence) * _SHARE_OF_VARIANCES / 2


def _is_near(variance: Fraction, ends: Sequence[Fraction]) -> bool:
    return max(variance - ends[0], ends[1] - variance) <= variance


def _level_of_means(confidence: Fraction) -> Fraction:
    return 1 - (1 - confidence) * _SHARE_OF_MEANS


def _root(number: Fraction) -> float:
    return math.sqrt(nearest_float(number))


def _correlation(moments: tuple[Fraction | None, ...]) -> float | None:
    covariance, one, other = moments
    if covariance is None or not one or not other:
        return None
    size = math.sqrt(nearest_float(min(covariance**2 / (one * other), Fraction(1))))
    return math.copysign(size, covariance)
