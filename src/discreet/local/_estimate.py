"""Estimates from reports, with intervals that hold at least their confidence.

A count of supports is a sum of independent booleans of different probabilities, since some clients
hold the category and others don't. Its tails lie below those of the binomial with the same mean
(Hoeffding 1956, Theorem 4, for counts one or more away from the mean), so that the interval of
Clopper and Pearson (1934), taken one count further out, holds whatever the clients hold. Since it
is that of a binomial, it also holds for a population of which they are independent draws.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from discreet import _checks
from discreet._exact import Number
from discreet.local.client._bits import Integers

RealArray = npt.NDArray[np.float64]

_ROUND = 1e-12  # above the relative error of SciPy's quantiles


@dataclass(frozen=True, slots=True, eq=False)
class EstimateInterval:
    """The ends of an interval for each value, each by itself."""

    lower: RealArray
    upper: RealArray


class Evidence(Protocol):
    """The statistic that an estimate is made from."""

    def values(self) -> RealArray:
        """The unbiased estimates."""
        ...

    def stddev(self) -> RealArray:
        """The standard deviation of each estimate, at its own value."""
        ...

    def interval(self, miss: float) -> EstimateInterval:
        """Intervals, each end of which misses with at most half this probability."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate:
    """Shares of all clients for each category, or a mean, with how wrong they may be.

    ``values`` are unbiased, so that a share may lie below 0. ``stddev`` is that of the noise, at
    these values. Both are arrays, of shape () for a mean. ``reports`` were used; ``malformed``
    ones, which no client makes, were left out.
    """

    values: RealArray
    stddev: RealArray
    reports: int
    malformed: int
    evidence: Evidence

    @staticmethod
    def of(evidence: Evidence, reports: int, malformed: int = 0) -> "Estimate":
        """The estimate from this statistic."""
        return Estimate(evidence.values(), evidence.stddev(), reports, malformed, evidence)

    def interval(self, confidence: Number = 0.95) -> EstimateInterval:
        """Ends that hold the truth with at least this probability, each value by itself; for m
        values jointly, ask for 1 - (1 - confidence) / m. They lie within the possible values."""
        return self.evidence.interval(float(1 - _checks.probability(confidence=confidence)))

    def __repr__(self) -> str:
        left_out = f", malformed={self.malformed}" if self.malformed else ""
        facts = f"stddev={self.stddev}, reports={self.reports}{left_out}"
        return f"Estimate(values={self.values}, {facts})"


@dataclass(frozen=True, slots=True)
class Rates:
    """The probabilities that a report supports a category: ``own`` if the client holds it, else
    ``other`` on average, and from ``least`` to ``most`` where that depends on the own category."""

    own: Fraction
    other: Fraction
    least: Fraction
    most: Fraction

    @staticmethod
    def of(own: Fraction, other: Fraction) -> "Rates":
        """The rates of which the second is the same for all clients that don't hold it."""
        return Rates(own, other, other, other)

    @property
    def spread(self) -> Fraction:
        """How much more probable support is from a client that holds the category."""
        return self.own - self.other


@dataclass(frozen=True, slots=True, eq=False)
class SupportCounts:
    """The number of reports that support each category, out of all."""

    counts: Integers
    reports: int
    rates: Rates

    def values(self) -> RealArray:
        """The shares: the supports beyond those that clients without the category give."""
        excess = self.counts - float(self.reports * self.rates.other)
        return np.asarray(excess / float(self.reports * self.rates.spread))

    def stddev(self) -> RealArray:
        """The standard deviation of two binomials, of the clients with the category and of the
        others, in the estimated shares."""
        share, rates = np.clip(self.values(), 0, 1), self.rates
        own, other = (float(rate * (1 - rate)) for rate in (rates.own, rates.other))
        noise = np.sqrt((share * own + (1 - share) * other) / self.reports)
        return np.asarray(noise / float(rates.spread))

    def interval(self, miss: float) -> EstimateInterval:
        """The intervals of Clopper and Pearson, one count further out."""
        lower, upper = mean_chance(self.counts, self.reports, miss)
        return EstimateInterval(
            self._share(lower, self.rates.most), self._share(upper, self.rates.least)
        )

    def _share(self, chance: RealArray, other: Fraction) -> RealArray:
        share = (chance - float(other)) / float(self.rates.own - other)
        return np.asarray(np.clip(share, 0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class BoundedShares:
    """The mean of independent shares whose variance and distance from their mean are bounded."""

    mean: float
    reports: int
    variance: float
    reach: float

    def values(self) -> RealArray:
        """The mean."""
        return np.asarray(self.mean)

    def stddev(self) -> RealArray:
        """An upper bound of the standard deviation."""
        return np.asarray(np.sqrt(self.variance / self.reports))

    def interval(self, miss: float) -> EstimateInterval:
        """Bernstein's inequality: P(error of the mean > t) <= e^(-n t^2 / 2 (v + r t / 3))."""
        logs = float(np.log(2 / miss))
        third = logs * self.reach / 3
        off = third + np.sqrt(third**2 + 2 * self.reports * self.variance * logs)
        off *= (1 + _ROUND) / self.reports
        ends = np.clip([self.mean - off, self.mean + off], 0, 1)
        return EstimateInterval(np.asarray(ends[0]), np.asarray(ends[1]))


@dataclass(frozen=True, slots=True, eq=False)
class ScaledShares:
    """Shares of the way from lower to upper, as numbers that were rounded by at most ``slack``."""

    share: Evidence
    lower: float
    upper: float
    slack: float

    def values(self) -> RealArray:
        """The numbers."""
        return np.asarray(self._number(self.share.values()))

    def stddev(self) -> RealArray:
        """The standard deviation in the units of the numbers."""
        return np.asarray(self.share.stddev() * (self.upper - self.lower))

    def interval(self, miss: float) -> EstimateInterval:
        """The intervals of the shares, widened by the slack."""
        found = self.share.interval(miss)
        lower = np.maximum(self._number(found.lower) - self.slack, self.lower)
        upper = np.minimum(self._number(found.upper) + self.slack, self.upper)
        return EstimateInterval(np.asarray(lower), np.asarray(upper))

    def _number(self, share: RealArray) -> RealArray:
        return np.asarray(self.lower + share * (self.upper - self.lower))


def mean_chance(counts: Integers, reports: int, miss: float) -> tuple[RealArray, RealArray]:
    """Intervals for the mean probability of ``reports`` independent booleans, by the number that
    are set.

    If the lower end lies above the mean chance m, then P(Bin(n, m) >= c - 1) < miss / 2 at the
    count c, so that c - 1 is above the median and c at least n m + 1, where Hoeffding's theorem
    bounds the count's tail by the binomial's. The upper end is its mirror image.
    """
    less = np.maximum(counts - 1, 0).astype(np.float64)
    more = np.minimum(counts + 1, reports).astype(np.float64)
    with np.errstate(invalid="ignore"):  # where nothing is set, or all
        lower = special.betaincinv(less, reports - less + 1, miss / 2) * (1 - _ROUND)
        unset = special.betaincinv(reports - more, more + 1, miss / 2) * (1 - _ROUND)
    return np.where(less > 0, lower, 0.0), 1 - np.where(more < reports, unset, 0.0)
