"""Duchi's mean: a single bit from each client."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._means import ends, estimated, written_mean
from discreet.local._mechanism import ReportingMechanism, Reports, truths
from discreet.local._odds import in_reach, odds_below


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DuchiMean(ReportingMechanism):
    """Each client tells one bit, the more likely set the closer the value lies to ``upper``.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That someone reports, and when, is not covered. Values are
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

    epsilon: Fraction
    client: client.DuchiMean

    def __init__(self, epsilon: Number, *, lower: Number, upper: Number) -> None:
        """Odds just below e^epsilon."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        odds = odds_below(self.epsilon)
        object.__setattr__(self, "client", client.DuchiMean(odds, *ends(lower, upper)))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, *, lower: Number, upper: Number
    ) -> "DuchiMean":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: DuchiMean(epsilon, lower=lower, upper=upper), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """Of a set bit, at the highest value and at the lowest."""
        odds = self.client.odds
        return Rates.of(odds / (odds + 1), 1 / (odds + 1))

    def estimate(self, reports: Reports) -> Estimate:
        """The mean of all clients' values, from the bits of all of them.

        Unbiased for the values as rounded to their steps. The interval holds at least its
        confidence, for the clients' mean and for that of a population of which they are
        independent draws. ``stddev`` is an upper bound: the less the values differ, the closer.
        """
        bits = truths(reports)
        evidence = SupportCounts(np.asarray(bits.sum(dtype=np.int64)), len(bits), self.rates)
        return estimated(evidence, len(bits), self.client, len(reports) - len(bits))

    def spent(self) -> PrivacyLoss:
        """Randomized response between the two ends; other values lie between."""
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon))

    def stddev(self, reports: int) -> float:
        """The standard deviation that the estimate will have if all values lie in the middle of
        the range, where it is largest."""
        return self._in_units(_forecast.stddev([(size := _forecast.clients(reports), _HALF)]), size)

    def error(self, confidence: Number, reports: int) -> float:
        """What the estimate will be off by at most, with this probability, if all values lie in
        the middle of the range, by the exact law of the count of bits."""
        size = _forecast.clients(reports)
        return self._in_units(_forecast.deviation([(size, _HALF)], confidence), size)

    def _in_units(self, count: float, reports: int) -> float:
        width = self.client.upper - self.client.lower
        return count / float(reports * self.rates.spread) * width

    def __repr__(self) -> str:
        """As in code."""
        return written_mean(self, self.client)


_HALF = Fraction(1, 2)
