"""Local hashing: a small report for many categories at any epsilon."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks, accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    counted,
    places_below,
    several,
    written,
)
from discreet.local._odds import in_reach, odds_below
from discreet.local.client._bits import Integers
from discreet.local.client._hashing import digits_of, is_prime

_PRIMES = tuple(number for number in range(62) if is_prime(number))
_MOST_REPORTS = 1 << 24  # different ones: each has its count


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LocalHashing(ReportingMechanism, FrequencyEstimator):
    """Each client draws a hash function and tells the own category's bucket by randomized response.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That someone reports, and when, is not covered. A report is a
    number that holds the function and the bucket. As exactly one in ``buckets`` of the functions
    puts two given categories together, estimates are unbiased whatever the clients hold. Without
    a number of ``buckets``, which is a prime, the one that is best for rare categories is taken.

    >>> mechanism = LocalHashing(1, 64)
    >>> mechanism
    LocalHashing(epsilon=1, categories=64, buckets=3)
    >>> reports = mechanism.randomize([3, 3, 7])
    >>> mechanism.estimate(reports).values.shape
    (64,)

    Wang, Blocki, Li and Jha (2017); with linear functions over a prime field.
    """

    epsilon: Fraction
    client: client.LocalHashing

    def __init__(self, epsilon: Number, categories: int, buckets: int | None = None) -> None:
        """Odds just below e^epsilon."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        odds, count = odds_below(self.epsilon), several(categories)
        prime = _best(odds, count) if buckets is None else _usable(buckets, count)
        object.__setattr__(self, "client", client.LocalHashing(odds, count, prime))

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "LocalHashing":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: LocalHashing(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """The bucket told truly; and another category's, the same for one in ``buckets``."""
        return _rates(self.client.odds, self.client.buckets)

    def well_formed(self, reports: Reports) -> Reports:
        """Those that are one of a client's reports."""
        return places_below(self.client.size, reports)

    def supports(self, reports: Reports) -> Integers:
        """For each category, the number of reports whose function puts it into their bucket."""
        prime, digits = self.client.buckets, self.client.digits
        counts = counted(reports, self.client.size).reshape((prime,) * (digits + 1))
        for axis in range(digits):
            counts = np.moveaxis(_hashed(np.moveaxis(counts, axis, 0)), 0, axis)
        return np.asarray(counts[..., 0].ravel()[: self.client.categories])

    def spent(self) -> PrivacyLoss:
        """Two categories share a bucket, which tells nothing, with probability 1 / g. With odds o
        against each of g - 1 other buckets, that is randomized response over
        o / (g - 1) + g + 1 categories; fewer cost more, and so cover this."""
        other = self.client.buckets - 1
        categories = int(self.client.odds / other) + other + 2
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, categories))

    def __repr__(self) -> str:
        """As in code."""
        return written(self, categories=self.client.categories, buckets=self.client.buckets)


def _hashed(counts: Integers) -> Integers:
    """A seed's digit s, on the first axis, becomes a category's digit c; the last axis, from
    bucket b to what is left of it, b - s c. Digit by digit, so that it takes far less than asking
    all functions for all categories."""
    prime = len(counts)
    places = np.arange(prime)
    shape = (prime, *counts.shape[1:])
    found = np.zeros((*shape[1:-1], prime, prime), counts.dtype)  # (..., category digit, bucket)
    for seed in range(prime):
        found += counts[seed][..., (places + seed * places[:, None]) % prime]
    return np.moveaxis(found, -2, 0)


def _rates(odds: Fraction, buckets: int) -> Rates:
    return Rates.of(odds / (odds + buckets - 1), Fraction(1, buckets))


def _best(odds: Fraction, categories: int) -> int:
    def variance(prime: int) -> Fraction:
        rates = _rates(odds, prime)
        return rates.added * (1 - rates.added) / rates.spread**2

    fit = [prime for prime in _PRIMES if _reports(categories, prime) <= _MOST_REPORTS]
    if not fit:
        raise InvalidArgument(
            f"categories = {categories}: give at most 2^23; for more, CountMeanSketch estimates "
            "those asked for"
        )
    return min(fit, key=variance)


def _usable(buckets: int, categories: int) -> int:
    prime = _checks.positive_count(buckets=buckets)
    if prime > _MOST_REPORTS or not is_prime(prime):
        raise InvalidArgument(f"buckets = {prime}: give a prime number, 2 or above")
    if _reports(categories, prime) > _MOST_REPORTS:
        raise InvalidArgument(
            f"buckets = {prime}: with {categories} categories there are "
            f"{_reports(categories, prime)} different reports, at most 2^24 can be counted; give "
            "fewer buckets, or none for the best number"
        )
    return prime


def _reports(categories: int, prime: int) -> int:
    return int(prime ** (digits_of(categories, prime) + 1))
