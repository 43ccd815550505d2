"""What reports tell: estimates, and intervals that hold at least their confidence.

A count of supports is a sum of independent truths whose chances differ, since some clients hold
the category and others don't. Its tails lie below those of the binomial with the same mean
(Hoeffding 1956, Theorem 4, for counts one or more away from the mean), so that the interval of
Clopper and Pearson (1934), asked one count further out, holds whatever the clients hold. As it is
that of a binomial, it also holds for a population of which they are independent draws.
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

_ROUND = 1e-12  # beyond what the quantiles of SciPy are off by, relatively


@dataclass(frozen=True, slots=True, eq=False)
class EstimateInterval:
    """Ends for each value by itself."""

    lower: RealArray
    upper: RealArray


class Evidence(Protocol):
    """What an estimate rests on."""

    def values(self) -> RealArray:
        """Unbiased."""
        ...

    def stddev(self) -> RealArray:
        """Of the values, at what they are estimated to be."""
        ...

    def interval(self, miss: float) -> EstimateInterval:
        """Ends, each of which misses with half this probability at most."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate:
    """Shares of all clients for each category, or a mean, with how wrong they may be.

    ``values`` are unbiased, so that a share may lie below 0. ``stddev`` is that of the noise, at
    these values. Both are arrays, of shape () for a mean. ``reports`` is how many of them were
    used, ``malformed`` how many were left out, since no client makes such.
    """

    values: RealArray
    stddev: RealArray
    reports: int
    malformed: int
    evidence: Evidence

    @staticmethod
    def of(evidence: Evidence, reports: int, malformed: int = 0) -> "Estimate":
        """What this evidence tells."""
        return Estimate(evidence.values(), evidence.stddev(), reports, malformed, evidence)

    def interval(self, confidence: Number = 0.95) -> EstimateInterval:
        """Ends that hold the truth with at least this probability, each value by itself; for m
        values jointly, ask for 1 - (1 - confidence) / m. They lie within the possible values."""
        return self.evidence.interval(float(1 - _checks.probability(confidence=confidence)))

    def __repr__(self) -> str:
        """The values and their standard deviations."""
        left_out = f", malformed={self.malformed}" if self.malformed else ""
        facts = f"stddev={self.stddev}, reports={self.reports}{left_out}"
        return f"Estimate(values={self.values}, {facts})"


@dataclass(frozen=True, slots=True)
class Rates:
    """With which probability a report supports a category: ``kept`` if the client holds it, else
    ``added``, or something from ``least`` to ``most`` where that depends on what is held."""

    kept: Fraction
    added: Fraction
    least: Fraction
    most: Fraction

    @staticmethod
    def of(kept: Fraction, added: Fraction) -> "Rates":
        """The same rate for all who don't hold it."""
        return Rates(kept, added, added, added)

    @property
    def spread(self) -> Fraction:
        """How much more probable support is from those who hold the category."""
        return self.kept - self.added


@dataclass(frozen=True, slots=True, eq=False)
class SupportCounts:
    """How many of all reports support each category."""

    counts: Integers
    reports: int
    rates: Rates

    def values(self) -> RealArray:
        """What is more than those without the category add."""
        excess = self.counts - float(self.reports * self.rates.added)
        return np.asarray(excess / float(self.reports * self.rates.spread))

    def stddev(self) -> RealArray:
        """That of two binomials, as many holding the category as is estimated."""
        share, rates = np.clip(self.values(), 0, 1), self.rates
        kept, added = (float(chance * (1 - chance)) for chance in (rates.kept, rates.added))
        noise = np.sqrt((share * kept + (1 - share) * added) / self.reports)
        return np.asarray(noise / float(rates.spread))

    def interval(self, miss: float) -> EstimateInterval:
        """By Clopper and Pearson, one count further out."""
        lower, upper = mean_of_truths(self.counts, self.reports, miss)
        return EstimateInterval(
            self._share(lower, self.rates.most), self._share(upper, self.rates.least)
        )

    def _share(self, chance: RealArray, added: Fraction) -> RealArray:
        share = (chance - float(added)) / float(self.rates.kept - added)
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
        """At most this."""
        return np.asarray(np.sqrt(self.variance / self.reports))

    def interval(self, miss: float) -> EstimateInterval:
        """By Bernstein's inequality: P(mean is off by t) <= e^(-n t^2 / 2 (v + r t / 3))."""
        logs = float(np.log(2 / miss))
        third = logs * self.reach / 3
        off = third + np.sqrt(third**2 + 2 * self.reports * self.variance * logs)
        off *= (1 + _ROUND) / self.reports
        ends = np.clip([self.mean - off, self.mean + off], 0, 1)
        return EstimateInterval(np.asarray(ends[0]), np.asarray(ends[1]))


@dataclass(frozen=True, slots=True, eq=False)
class ScaledShares:
    """Shares as numbers from lower to upper, which were rounded by ``slack`` at most."""

    share: Evidence
    lower: float
    upper: float
    slack: float

    def values(self) -> RealArray:
        """Shares of the way from lower to upper."""
        return np.asarray(self._number(self.share.values()))

    def stddev(self) -> RealArray:
        """In the units of the numbers."""
        return np.asarray(self.share.stddev() * (self.upper - self.lower))

    def interval(self, miss: float) -> EstimateInterval:
        """Those of the shares, wider by the slack."""
        found = self.share.interval(miss)
        lower = np.maximum(self._number(found.lower) - self.slack, self.lower)
        upper = np.minimum(self._number(found.upper) + self.slack, self.upper)
        return EstimateInterval(np.asarray(lower), np.asarray(upper))

    def _number(self, share: RealArray) -> RealArray:
        return np.asarray(self.lower + share * (self.upper - self.lower))


def mean_of_truths(counts: Integers, reports: int, miss: float) -> tuple[RealArray, RealArray]:
    """Ends for the mean chance of so many independent truths, of which each count was set.

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
