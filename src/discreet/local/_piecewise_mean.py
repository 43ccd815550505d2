"""The piecewise mean: a place on a public grid from each client."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from scipy import special

from discreet import _checks, accounting
from discreet._exact import Number, fraction
from discreet.accounting import PrivacyLoss
from discreet.local import _forecast, client
from discreet.local._estimate import BoundedShares, Estimate
from discreet.local._means import ends, estimated, share_of, written_mean
from discreet.local._mechanism import ReportingMechanism, Reports, counted, places_below
from discreet.local._odds import in_reach, odds_below

PLACES = 1024


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PiecewiseMean(ReportingMechanism):
    """Each client tells one of 1024 places, more often one near the value.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That someone reports, and when, is not covered. Values are
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

    epsilon: Fraction
    client: client.PiecewiseMean

    def __init__(self, epsilon: Number, *, lower: Number, upper: Number) -> None:
        """Odds just below e^epsilon, and a window of 1 / (e^(epsilon / 2) + 1) of all places."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        odds = odds_below(self.epsilon)
        window = max(1, int(PLACES / (odds_below(self.epsilon / 2) + 1)))
        made = client.PiecewiseMean(odds, PLACES, window, *ends(lower, upper))
        object.__setattr__(self, "client", made)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, *, lower: Number, upper: Number
    ) -> "PiecewiseMean":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: PiecewiseMean(epsilon, lower=lower, upper=upper),
            error,
            confidence,
            reports,
        )

    def estimate(self, reports: Reports) -> Estimate:
        """The mean of all clients' values, from the places of all of them.

        Unbiased for the values as rounded to their steps. The interval holds at least its
        confidence for the clients' mean, by Bernstein's inequality: it is some 1.4 times as wide
        as a normal one. ``stddev`` is an upper bound: that of values at an end of the range.
        """
        counts = counted(good := places_below(self.client.places, reports), self.client.places)
        size, slope = int(counts.sum()), self._slope
        total = sum(place * int(count) for place, count in enumerate(counts))
        share = float((Fraction(total, size) - self._lowest) / slope)
        reach = float((self.client.places - 1) / slope)
        evidence = BoundedShares(share, size, float(self._most()), reach)
        return estimated(evidence, size, self.client, len(reports) - len(good))

    def spent(self) -> PrivacyLoss:
        """Two windows at most tell the values apart, and the places outside tell nothing: so many
        places to a window, so many categories of a randomized response."""
        categories = self.client.places // self.client.window
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, categories))

    def variance(self, value: Number) -> Fraction:
        """The exact variance of what one report says of the mean, by a client of this value."""
        width = fraction(self.client.upper) - fraction(self.client.lower)
        return self._variance(share_of(value, self.client)) * width**2

    def stddev(self, reports: int) -> float:
        """The standard deviation that the estimate will have if all values lie at one end of the
        range, where it is largest."""
        width = self.client.upper - self.client.lower
        return sqrt(self._variance(Fraction(0)) / _forecast.clients(reports)) * width

    def error(self, confidence: Number, reports: int) -> float:
        """What the estimate will be off by, with this probability, if all values lie at one end
        of the range; by the normal law, which many reports come close to (the interval of an
        estimate makes no such use of it)."""
        tail = float(1 - _checks.probability(confidence=confidence)) / 2
        return float(-special.ndtri(tail)) * self.stddev(reports)

    @property
    def _slope(self) -> Fraction:
        """By how much the mean place grows from the lowest value to the highest."""
        return self.client.truth * self.client.starts

    @property
    def _lowest(self) -> Fraction:
        """The mean place of the lowest value."""
        truth = self.client.truth
        return truth * Fraction(self.client.window - 1, 2) + (1 - truth) * Fraction(PLACES - 1, 2)

    def _variance(self, share: Fraction) -> Fraction:
        """Of a report, in units of the range: the mean of squares less the square of the mean."""
        truth, window = self.client.truth, self.client.window
        whole, rest = divmod(share * self.client.starts, 1)
        inside = (1 - rest) * _squares(whole, window) + rest * _squares(whole + 1, window)
        everywhere = _squares(0, self.client.places)
        mean = self._lowest + self._slope * share
        return (truth * inside + (1 - truth) * everywhere - mean**2) / self._slope**2

    def _most(self) -> Fraction:
        """At least every variance: at whole starts it is a convex function of them, and a start
        that is drawn adds at most a quarter."""
        return self._variance(Fraction(0)) + self.client.truth / 4 / self._slope**2

    def __repr__(self) -> str:
        """As in code."""
        return written_mean(self, self.client)


def _squares(first: int, count: int) -> Fraction:
    """The mean of the squares of so many numbers, from the first on."""
    middle = first + Fraction(count - 1, 2)
    return middle**2 + Fraction(count**2 - 1, 12)
