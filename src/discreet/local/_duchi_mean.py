"""Duchi's mean: a report is one bit."""

from fractions import Fraction

import numpy as np

from discreet import accounting
from discreet._exact import Number
from discreet._fields import field, frozen
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._means import RangeEnd, check_range, estimated_mean
from discreet.local._mechanism import ReportingMechanism, Reports, booleans
from discreet.local._odds import LocalEpsilon, odds_below

_HALF = Fraction(1, 2)


@frozen
class DuchiMean(ReportingMechanism):
    """Each client reports one bit, which is more often set the closer the value is to ``upper``.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. Values are
    floats from lower to upper, both public; the bit's probability is an exact rational of the
    value's step out of 2^30. Best up to an epsilon of some 1.3; `PiecewiseMean` above.

    >>> import numpy as np
    >>> mechanism = DuchiMean(1, lower=0, upper=20)
    >>> answer = mechanism.estimate(mechanism.randomize(np.linspace(0, 10, 100_000)))
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower < 5 < found.upper), round(mechanism.error(0.95, reports=100_000), 2)
    (True, 0.13)

    Duchi, Jordan and Wainwright (2018), in one dimension.
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
    ) -> "DuchiMean":
        """The mechanism of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: DuchiMean(epsilon, lower=lower, upper=upper), error, confidence, reports
        )

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

        Unbiased for the values as rounded to their steps. The interval holds at least its
        confidence, for the clients' mean and for that of a population of which they are
        independent draws. ``stddev`` is an upper bound: the less the values differ, the closer.
        """
        bits = booleans(reports)
        evidence = SupportCounts(np.asarray(bits.sum(dtype=np.int64)), len(bits), self.rates)
        return estimated_mean(evidence, len(bits), self, len(reports) - len(bits))

    def spent(self) -> PrivacyLoss:
        """Randomized response between the two ends; other values lie between."""
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon))

    def stddev(self, reports: int) -> float:
        """The standard deviation of the estimate if all values lie in the middle of the range,
        where it is largest."""
        size = _forecast.report_count(reports)
        return self._in_units(_forecast.stddev([(size, _HALF)]), size)

    def error(self, confidence: Number, reports: int) -> float:
        """The error that the estimate stays within, with this probability, if all values lie in
        the middle of the range, by the exact law of the count of bits."""
        size = _forecast.report_count(reports)
        return self._in_units(_forecast.deviation([(size, _HALF)], confidence), size)

    def _in_units(self, count: float, reports: int) -> float:
        return count / float(reports * self.rates.spread) * (self.upper - self.lower)
