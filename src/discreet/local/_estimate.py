"""Estimates from reports, with intervals that hold at least their confidence.

A count of supports is a sum of independent booleans with different probabilities, since some
clients hold the category and others don't. Its tails lie below those of the binomial law with the
same mean (Hoeffding 1956, Theorem 4), for counts at least 1 away from the mean. So the interval of
Clopper and Pearson (1934), taken one count further out, holds for any values of the clients. Being
an interval for the binomial law, it also holds for a population of which the clients are
independent draws.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from scipy import special

from discreet import _checks, _html
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet.local.client._bits import Integers

_ROWS_SHOWN = 60
_ROUND = 1e-12  # above the relative error of SciPy's quantiles


@dataclass(frozen=True, slots=True, eq=False)
class EstimateInterval:
    """The ends of an interval for each value, each by itself."""

    lower: FloatArray
    upper: FloatArray


class Evidence(Protocol):
    """The statistic that an estimate is made from."""

    def values(self) -> FloatArray:
        """The unbiased estimates."""

    def stddev(self) -> FloatArray:
        """The standard deviation of each estimate, at its own value."""

    def interval(self, miss: float) -> EstimateInterval:
        """Intervals; each end excludes the truth with at most half this probability."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate:
    """Shares of all clients for each category, or a mean, with their errors.

    ``values`` are unbiased, so a share may lie below 0. ``stddev`` is the standard deviation of the
    noise, at these values. Both are arrays, of shape () for a mean. ``reports`` counts the reports
    that were used, ``malformed`` those that no client makes and that were left out.
    """

    values: FloatArray
    stddev: FloatArray
    reports: int
    malformed: int
    evidence: Evidence

    @staticmethod
    def of(evidence: Evidence, reports: int, malformed: int = 0) -> "Estimate":
        """The estimate from this statistic."""
        return Estimate(evidence.values(), evidence.stddev(), reports, malformed, evidence)

    def interval(self, confidence: Number = 0.95) -> EstimateInterval:
        """Intervals that hold the truth with at least this probability, each value by itself. For m
        values together, ask for 1 - (1 - confidence) / m. All ends are possible values."""
        return self.evidence.interval(float(1 - _checks.probability(confidence=confidence)))

    def _repr_html_(self) -> str:
        numbers = [map(float, np.atleast_1d(part)) for part in (self.values, self.stddev)]
        rows = [
            [str(n), f"{one:.6g}", f"{stddev:.6g}"]
            for n, (one, stddev) in enumerate(zip(*numbers, strict=True))
        ]
        left_out = f", and {self.malformed:,} were left out" if self.malformed else ""
        caption = f"estimates from {self.reports:,} reports{left_out}"
        return _html.table(caption, ["", "value", "stddev"], rows[:_ROWS_SHOWN]) + _html.notes(
            [f"{len(rows) - _ROWS_SHOWN:,} more values"] if len(rows) > _ROWS_SHOWN else []
        )

    def __repr__(self) -> str:
        left_out = f", malformed={self.malformed}" if self.malformed else ""
        facts = f"stddev={self.stddev}, reports={self.reports}{left_out}"
        return f"Estimate(values={self.values}, {facts})"


@dataclass(frozen=True, slots=True)
class Rates:
    """The probabilities that a report supports a category: ``own`` if the client holds it, and
    otherwise ``other`` on average, from ``least`` to ``most`` depending on the client's category.
    """

    own: Fraction
    other: Fraction
    least: Fraction
    most: Fraction

    @staticmethod
    def of(own: Fraction, other: Fraction) -> "Rates":
        """Rates for which all clients that don't hold the category have the same probability."""
        return Rates(own, other, other, other)

    @property
    def spread(self) -> Fraction:
        """The difference of the two probabilities of support."""
        return self.own - self.other


@dataclass(frozen=True, slots=True, eq=False)
class SupportCounts:
    """The number of reports that support each category, out of all."""

    counts: Integers
    reports: int
    rates: Rates

    def values(self) -> FloatArray:
        """The shares, from the number of supports above the number expected without the
        category."""
        excess = self.counts - float(self.reports * self.rates.other)
        return np.asarray(excess / float(self.reports * self.rates.spread))

    def stddev(self) -> FloatArray:
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

    def _share(self, chance: FloatArray, other: Fraction) -> FloatArray:
        share = (chance - float(other)) / float(self.rates.own - other)
        return np.asarray(np.clip(share, 0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class BoundedShares:
    """The mean of independent shares. Their variances and their distances from their means are
    bounded."""

    mean: float
    reports: int
    variance: float
    reach: float

    def values(self) -> FloatArray:
        """The mean."""
        return np.asarray(self.mean)

    def stddev(self) -> FloatArray:
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
    """Shares as numbers from ``lower`` to ``upper``, which were rounded by at most ``slack``."""

    share: Evidence
    lower: float
    upper: float
    slack: float

    def values(self) -> FloatArray:
        """The numbers."""
        return np.asarray(self._number(self.share.values()))

    def stddev(self) -> FloatArray:
        """The standard deviation in the units of the numbers."""
        return np.asarray(self.share.stddev() * (self.upper - self.lower))

    def interval(self, miss: float) -> EstimateInterval:
        """The intervals of the shares, widened by the slack."""
        found = self.share.interval(miss)
        lower = np.maximum(self._number(found.lower) - self.slack, self.lower)
        upper = np.minimum(self._number(found.upper) + self.slack, self.upper)
        return EstimateInterval(np.asarray(lower), np.asarray(upper))

    def _number(self, share: FloatArray) -> FloatArray:
        return np.asarray(self.lower + share * (self.upper - self.lower))


def mean_chance(counts: Integers, reports: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Intervals for the mean probability m of ``reports`` independent booleans, from the number c
    of those that are set.

    If the lower end lies above m, then P(Bin(n, m) >= c - 1) < miss / 2. So c - 1 is above the
    median, and c is at least n m + 1. There Hoeffding's theorem bounds the tail of the count by the
    tail of the binomial. The upper end is the mirror image.
    """
    less = np.maximum(counts - 1, 0).astype(np.float64)
    more = np.minimum(counts + 1, reports).astype(np.float64)
    with np.errstate(invalid="ignore"):  # if none or all are set
        lower = special.betaincinv(less, reports - less + 1, miss / 2) * (1 - _ROUND)
        unset = special.betaincinv(reports - more, more + 1, miss / 2) * (1 - _ROUND)
    return np.where(less > 0, lower, 0.0), 1 - np.where(more < reports, unset, 0.0)
