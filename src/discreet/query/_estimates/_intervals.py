"""Intervals for numbers with noise, by the law of the noise alone.

Each interval contains the number without noise, with at least the stated probability. It does not
cover the bias of clamping and of the caps, nor the sampling of the rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray
from discreet._bisection import halved_each
from discreet.mechanisms import DiscreteLaplace
from discreet.noise._sums import pair_half_widths
from discreet.query._estimates._grid import SumGrid
from discreet.query._estimates._summed_noise import AdditiveNoise

_SAFE = 1 + 1e-9
_KNOTS = 257
_HALVINGS = 64
_SHARES = 200  # even, so that 1/2 is a knot
_FALSE_ALARM = Fraction(1, 1000)  # in a histogram of noise alone


@dataclass(frozen=True, slots=True)
class RatioLaw:
    """The law of a noisy centred sum and a noisy count, for an interval of their ratio.

    Everything is in steps of the sum's grid, measured from its centre. With T the sum and C the
    count without noise, and t = T / C, the noisy S - t C has exactly the noise N_S - t N_C, so
    the set of all t in the bounds with |S - t C| within that noise's quantile holds the true one
    (Fieller 1954). The interval is the hull of that set: the quantile is convex in t, the noise
    being symmetric and log-concave (Bobkov 2010), so each end is one crossing.
    """

    total: AdditiveNoise
    count: AdditiveNoise
    grid: SumGrid
    confidence: Fraction

    def quantiles(self, slopes: FloatArray) -> FloatArray:
        """For each slope, at least the smallest q with P(|N_S - slope N_C| <= q) >= confidence."""
        laws, weights = (self.total.law, self.count.law), np.array([np.ones_like(slopes), slopes])
        return pair_half_widths(laws, weights, self.confidence)

    def of_exact_count(self) -> float:
        """A q with P(|N_S - slope N_C| <= q) >= confidence for every slope, where the count's noise
        is nearly always 0, and infinity elsewhere. By the union bound, each has half of the risk.
        """
        risk = (1 - self.confidence) / 2
        return math.inf if self.count.error(1 - risk) else float(self.total.error(1 - risk))

    def intervals(
        self, totals: Sequence[int], counts: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """The ends of each group's hull, in steps from the centre; the whole range where the set is
        empty. Between knots the quantile is replaced by its chord, which lies above it. Two bounds
        on the quantile give two hulls: the smaller bound at the true ratio puts it into both."""
        knots = np.linspace(float(self.grid.lower), float(self.grid.upper), _KNOTS)
        lower, upper = self._hulls(totals, counts, knots, self.quantiles(knots))
        if math.isfinite(flat := self.of_exact_count()):
            ends = self._hulls(totals, counts, knots, np.full_like(knots, flat * _SAFE))
            lower, upper = np.maximum(lower, ends[0]), np.minimum(upper, ends[1])
        return lower, upper

    def _hulls(
        self,
        totals: Sequence[int],
        counts: Sequence[int],
        knots: FloatArray,
        quantiles: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The hulls by one convex bound on the quantile, known at the knots."""
        low, high = float(self.grid.lower), float(self.grid.upper)
        total, count = np.array(totals, dtype=float), np.array(counts, dtype=float)

        def outside(slope: FloatArray) -> FloatArray:
            rounding = 1e-15 * (np.abs(total) + np.abs(slope * count))
            excess = np.abs(total - slope * count) - np.interp(slope, knots, quantiles)
            return np.asarray(excess - rounding)

        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.clip(np.where(count == 0, low, total / count), low, high)
        is_known = outside(middle) <= 0
        ends = (_crossings(outside, middle, np.full_like(middle, end)) for end in (low, high))
        lower, upper = (
            np.where(is_known, end, whole) for end, whole in zip(ends, (low, high), strict=True)
        )
        return np.asarray(lower), np.asarray(upper)

    def half_width(self, rows: int) -> float:
        """Approximately the largest half-width of the interval in a group of this many rows."""
        far = float(self.quantiles(np.array([float(self.grid.largest)]))[0])
        far = min(far, self.of_exact_count())
        return min(far / rows, (self.grid.upper - self.grid.lower) / 2)


@dataclass(frozen=True, slots=True)
class ShareLaw:
    """The law of two noisy counts of disjoint rows, for an interval of the first one's share.

    With L and R the counts without noise and p = L / (L + R), (1 - p) L - p R is 0, so its noisy
    form has exactly the noise (1 - p) N_L - p N_R: all p for which that lies within the noise's
    quantile hold the true one (Fieller 1954).
    """

    noise: DiscreteLaplace
    confidence: Fraction

    def interval(self, part: int, rest: int) -> tuple[float, float]:
        """The ends of the hull, rounded outwards to 1/200; 0 and 1 where the set is empty.

        The quantile is convex in p, so between two knots it is at most the larger of theirs.
        """
        knots = np.linspace(0, 1, _SHARES + 1)
        noisy = (1 - knots) * part - knots * rest  # (knot)
        laws, weights = (self.noise.law, self.noise.law), np.array([1 - knots, knots])
        allowed = pair_half_widths(laws, weights, self.confidence)
        least = np.minimum(np.abs(noisy[:-1]), np.abs(noisy[1:]))
        least[np.sign(noisy[:-1]) != np.sign(noisy[1:])] = 0
        (holds,) = np.nonzero(least <= np.maximum(allowed[:-1], allowed[1:]) * _SAFE)
        if len(holds) == 0:
            return 0.0, 1.0
        return float(knots[holds[0]]), float(knots[holds[-1] + 1])


def _crossings(
    outside: Callable[[FloatArray], FloatArray], inner: FloatArray, outer: FloatArray
) -> FloatArray:
    """The end of each set between a point inside it and the end of the range, rounded outwards."""
    reaches = outside(outer) <= 0
    _, crossing = halved_each(lambda points: outside(points) <= 0, inner, outer, _HALVINGS)
    return np.where(reaches, outer, crossing)


def reach_in_bins(noise: DiscreteLaplace, bins: int) -> int:
    """The number that noise alone exceeds in any of these bins with probability 1e-3 at most. One
    bin of many rows that holds noise alone would outweigh all others."""
    return noise.error(1 - _FALSE_ALARM / bins)
