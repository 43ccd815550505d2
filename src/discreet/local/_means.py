"""Mechanisms for the mean of values in a public range, each rounded to one of 2^30 steps."""

from abc import ABC, abstractmethod
from fractions import Fraction
from math import sqrt
from typing import Annotated, Self

import numpy as np
from scipy import special

from discreet import _checks, accounting
from discreet._exact import Number, fraction, shown
from discreet._fields import Converted, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import (
    BoundedShares,
    Estimate,
    Evidence,
    Rates,
    ScaledShares,
    SupportCounts,
)
from discreet.local._mechanism import (
    ReportingMechanism,
    Reports,
    booleans,
    histogram,
    integers_below,
)
from discreet.local._odds import LocalEpsilon, odds_below
from discreet.local.client._values import STEPS

PLACES = 1024

_FINEST = 1 << 20
_HALF = Fraction(1, 2)


def finite_float(**named: object) -> float:
    """One named finite number, as the nearest float."""
    exact = _checks.finite(**named)
    try:
        return float(exact)
    except OverflowError:
        (name,) = named
        raise InvalidArgument(f"{name} = {_checks.quoted(exact)}: give a float") from None


RangeEnd = Annotated[Converted[float, Number], finite_float]


@frozen
class MeanMechanism(ReportingMechanism, ABC):
    """The base of mechanisms for a mean."""

    epsilon: LocalEpsilon
    lower: RangeEnd = field(kw_only=True)
    upper: RangeEnd = field(kw_only=True)

    def __post_init__(self) -> None:
        lower, upper = self.lower, self.upper
        width = upper - lower
        if not (0 < width < float("inf") and width * _FINEST >= max(abs(lower), abs(upper))):
            raise InvalidArgument(
                f"lower = {shown(fraction(lower))}, upper = {shown(fraction(upper))}: give floats "
                "with lower < upper, the range being at least a millionth of either"
            )

    @classmethod
    def for_error(
        cls, error: Number, confidence: Number, reports: int, *, lower: Number, upper: Number
    ) -> Self:
        """The mechanism of the smallest epsilon whose `error` is at most ``error``."""
        return _forecast.for_error(
            lambda epsilon: cls(epsilon, lower=lower, upper=upper), error, confidence, reports
        )

    @abstractmethod
    def error(self, confidence: Number, reports: int) -> float:
        """The error of the estimate, at this confidence."""

    def _mean(self, share: Evidence, reports: int, malformed: int) -> Estimate:
        """The mean in the units of the values. Values were rounded by at most half a step, and
        float arithmetic adds less than another half."""
        slack = (self.upper - self.lower) / STEPS
        evidence = ScaledShares(share, self.lower, self.upper, slack)
        return Estimate.of(evidence, reports, malformed)


class DuchiMean(MeanMechanism):
    """Each client reports one bit, which is more often set the closer the value is to ``upper``.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. Values are
    floats from lower to upper, both public; the bit's probability is an exact rational of the
    value's step out of 2^30. It is best up to an epsilon of about 1.3; above, use `PiecewiseMean`.

    >>> import numpy as np
    >>> mechanism = DuchiMean(1, lower=0, upper=20)
    >>> answer = mechanism.estimate(mechanism.randomize(np.linspace(0, 10, 100_000)))
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower < 5 < found.upper), round(mechanism.error(0.95, reports=100_000), 2)
    (True, 0.13)

    Duchi, Jordan and Wainwright (2018), in one dimension.
    """

    __slots__ = ()

    @property
    def client(self) -> client.DuchiMean:
        """The part that runs on a device."""
        return client.DuchiMean(odds_below(self.epsilon), self.lower, self.upper)

    @property
    def rates(self) -> Rates:
        """The probabilities of a set bit, at the largest value and at the smallest."""
        odds = odds_below(self.epsilon)
        return Rates.of(odds / (odds + 1), 1 / (odds + 1))

    def estimate(self, reports: Reports) -> Estimate:
        """The mean of all clients' values, from the bits of all of them.

        The estimate is unbiased for the values as rounded to their steps. The interval holds at
        least its confidence for the clients' mean, and for the mean of a population of which they
        are independent draws. ``stddev`` is an upper bound; it is close if the values differ
        little.
        """
        bits = booleans(reports)
        evidence = SupportCounts(np.asarray(bits.sum(dtype=np.int64)), len(bits), self.rates)
        return self._mean(evidence, len(bits), len(reports) - len(bits))

    def spent(self) -> PrivacyLoss:
        """Randomized response between the two ends. Other values have probabilities between."""
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon))

    def stddev(self, reports: int) -> float:
        """The standard deviation of the estimate if all values lie in the middle of the range,
        where it is largest."""
        size = _forecast.report_count(reports)
        return self._in_units(_forecast.stddev([(size, _HALF)]), size)

    def error(self, confidence: Number, reports: int) -> float:
        """The error of the estimate at this confidence if all values lie in the middle of the
        range, by the exact law of the number of set bits."""
        size = _forecast.report_count(reports)
        return self._in_units(_forecast.deviation([(size, _HALF)], confidence), size)

    def _in_units(self, count: float, reports: int) -> float:
        return count / float(reports * self.rates.spread) * (self.upper - self.lower)


class PiecewiseMean(MeanMechanism):
    """Each client reports one of 1024 places, more often one near the value.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. Values are
    floats from lower to upper, both public; each place's probability is an exact rational of the
    value's step out of 2^30. It is best above an epsilon of about 1.3; below, use `DuchiMean`.

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

    __slots__ = ()

    @property
    def client(self) -> client.PiecewiseMean:
        """The part that runs on a device; its window has 1 / (e^(epsilon / 2) + 1) of the
        places."""
        window = max(1, int(PLACES / (odds_below(self.epsilon / 2) + 1)))
        odds = odds_below(self.epsilon)
        return client.PiecewiseMean(odds, PLACES, window, self.lower, self.upper)

    def estimate(self, reports: Reports) -> Estimate:
        """The mean of all clients' values, from the places of all of them.

        The estimate is unbiased for the values as rounded to their steps. The interval holds at
        least its confidence for the clients' mean, by Bernstein's inequality; it is about 1.4 times
        as wide as a normal one. ``stddev`` is an upper bound, for values at an end of the range.
        """
        good = integers_below(PLACES, reports)
        counts, slope = histogram(good, PLACES), self._slope
        size = int(counts.sum())
        total = sum(place * int(count) for place, count in enumerate(counts))
        share = float((Fraction(total, size) - self._lowest) / slope)
        reach = float((PLACES - 1) / slope)
        evidence = BoundedShares(share, size, float(self._largest_variance()), reach)
        return self._mean(evidence, size, len(reports) - len(good))

    def spent(self) -> PrivacyLoss:
        """Two values have two windows, and the places outside are independent of the value. So it
        is a randomized response whose categories are the windows that fit into the places."""
        categories = PLACES // self.client.window
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, categories))

    def variance(self, value: Number) -> Fraction:
        """The exact variance of the mean's estimate from one report of a client with this
        value."""
        exact, low, high = _checks.finite(value=value), fraction(self.lower), fraction(self.upper)
        if not low <= exact <= high:
            raise InvalidArgument(
                f"value = {shown(exact)}: give a number from {self.lower} to {self.upper}"
            )
        return self._variance((exact - low) / (high - low)) * (high - low) ** 2

    def stddev(self, reports: int) -> float:
        """The standard deviation of the estimate if all values lie at one end of the range, where
        it is largest."""
        variance = self._variance(Fraction(0)) / _forecast.report_count(reports)
        return sqrt(variance) * (self.upper - self.lower)

    def error(self, confidence: Number, reports: int) -> float:
        """The error of the estimate at this confidence if all values lie at one end of the range,
        by the normal approximation for many reports. The interval of an estimate doesn't use it."""
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
