"""The piecewise mean: a report is a place on a public grid."""

from fractions import Fraction
from math import sqrt

from scipy import special

from discreet import _checks, accounting
from discreet._exact import Number, fraction
from discreet._fields import field, frozen
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import BoundedShares, Estimate
from discreet.local._means import RangeEnd, check_range, estimated_mean, share_of
from discreet.local._mechanism import ReportingMechanism, Reports, histogram, integers_below
from discreet.local._odds import LocalEpsilon, odds_below

PLACES = 1024


@frozen
class PiecewiseMean(ReportingMechanism):
    """Each client reports one of 1024 places, more often one near the value.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. Values are
    floats from lower to upper, both public; each place's probability is an exact rational of the
    value's step out of 2^30. Best above an epsilon of some 1.3; `DuchiMean` below.

    The window moves with the value, so that a report's mean is linear in it, exactly, and its
    variance is known exactly: the discrete form of the piecewise mechanism.

    >>> import numpy as np
    >>> mechanism = PiecewiseMean(4, lower=0, upper=20)
    >>> answer = mechanism.estimate(mechanism.randomize(np.linspace(0, 10, 100_000)))
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower < 5 < found.upper), round(mechanism.error(0.95, reports=100_000), 3)
    (True, 0.03)

    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), Algorithm 2.
    """

    epsilon: LocalEpsilon
    lower: RangeEnd = field(kw_only=True)
    upper: RangeEnd = field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse ranges that floats can't divide into steps."""
        check_range(self.lower, self.upper)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, *, lower: Number, upper: Number
    ) -> "PiecewiseMean":
        """The mechanism of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: PiecewiseMean(epsilon, lower=lower, upper=upper),
            error,
            confidence,
            reports,
        )

    @property
    def client(self) -> client.PiecewiseMean:
        """The part that runs on a device; its window has 1 / (e^(epsilon / 2) + 1) of the
        places."""
        window = max(1, int(PLACES / (odds_below(self.epsilon / 2) + 1)))
        odds = odds_below(self.epsilon)
        return client.PiecewiseMean(odds, PLACES, window, self.lower, self.upper)

    def estimate(self, reports: Reports) -> Estimate:
        """The mean of all clients' values, from the places of all of them.

        Unbiased for the values as rounded to their steps. The interval holds at least its
        confidence for the clients' mean, by Bernstein's inequality: it is some 1.4 times as wide
        as a normal one. ``stddev`` is an upper bound: that of values at an end of the range.
        """
        good = integers_below(PLACES, reports)
        counts, slope = histogram(good, PLACES), self._slope
        size = int(counts.sum())
        total = sum(place * int(count) for place, count in enumerate(counts))
        share = float((Fraction(total, size) - self._lowest) / slope)
        reach = float((PLACES - 1) / slope)
        evidence = BoundedShares(share, size, float(self._largest_variance()), reach)
        return estimated_mean(evidence, size, self, len(reports) - len(good))

    def spent(self) -> PrivacyLoss:
        """Two windows at most tell the values apart, and the places outside tell nothing: as
        randomized response with one category for each window that the places hold."""
        categories = PLACES // self.client.window
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, categories))

    def variance(self, value: Number) -> Fraction:
        """The exact variance of the mean's estimate from one report of a client with this
        value."""
        width = fraction(self.upper) - fraction(self.lower)
        return self._variance(share_of(value, self)) * width**2

    def stddev(self, reports: int) -> float:
        """The standard deviation of the estimate if all values lie at one end of the range, where
        it is largest."""
        variance = self._variance(Fraction(0)) / _forecast.report_count(reports)
        return sqrt(variance) * (self.upper - self.lower)

    def error(self, confidence: Number, reports: int) -> float:
        """The error that the estimate stays within, with this probability, if all values lie at
        one end of the range; by the normal law, which many reports come close to. The interval of
        an estimate doesn't rely on it."""
        tail = float(1 - _checks.probability(confidence=confidence)) / 2
        return float(-special.ndtri(tail)) * self.stddev(reports)

    @property
    def _slope(self) -> Fraction:
        """The mean place of the largest value, less that of the smallest."""
        return self.client.truth * self.client.starts

    @property
    def _lowest(self) -> Fraction:
        """The mean place of the smallest value."""
        truth = self.client.truth
        return truth * Fraction(self.client.window - 1, 2) + (1 - truth) * Fraction(PLACES - 1, 2)

    def _variance(self, share: Fraction) -> Fraction:
        """The variance of a report, in units of the range: the mean of squares less the square of
        the mean."""
        truth, window = self.client.truth, self.client.window
        whole, rest = divmod(share * self.client.starts, 1)
        inside = (1 - rest) * _squares(whole, window) + rest * _squares(whole + 1, window)
        everywhere = _squares(0, PLACES)
        mean = self._lowest + self._slope * share
        return (truth * inside + (1 - truth) * everywhere - mean**2) / self._slope**2

    def _largest_variance(self) -> Fraction:
        """An upper bound of all variances: at whole starts the variance is a convex function of
        the start, and a start that is drawn adds at most a quarter."""
        return self._variance(Fraction(0)) + self.client.truth / 4 / self._slope**2


def _squares(first: int, count: int) -> Fraction:
    """The mean of the squares of ``count`` consecutive integers from ``first`` on."""
    middle = first + Fraction(count - 1, 2)
    return middle**2 + Fraction(count**2 - 1, 12)
