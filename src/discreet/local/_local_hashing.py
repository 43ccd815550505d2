"""Local hashing: a small report for many categories at any epsilon."""

from fractions import Fraction
from typing import Annotated

import numpy as np

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._fields import Converted, field, frozen, optional
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Rates
from discreet.local._mechanism import (
    Categories,
    FrequencyEstimator,
    ReportingMechanism,
    Reports,
    histogram,
    integers_below,
)
from discreet.local._odds import LocalEpsilon, odds_below
from discreet.local.client._bits import Integers
from discreet.local.client._hashing import digits_of, is_prime

_PRIMES = tuple(number for number in range(62) if is_prime(number))
_MOST_REPORTS = 1 << 24  # different ones: each has its count


@frozen
class LocalHashing(ReportingMechanism, FrequencyEstimator):
    """Each client draws a hash function, and reports the own category's bucket by randomized
    response.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered. A report is a
    number that encodes the function and the bucket. Exactly one in ``buckets`` of the functions
    puts two given categories into one bucket, so estimates are unbiased for any values. ``buckets``
    is a prime; by default it is the best one for rare categories.

    >>> mechanism = LocalHashing(1, 64)
    >>> mechanism
    LocalHashing(epsilon=1, categories=64, buckets=3)
    >>> reports = mechanism.randomize([3, 3, 7])
    >>> mechanism.estimate(reports).values.shape
    (64,)

    Wang, Blocki, Li and Jha (2017); with linear functions over a prime field.
    """

    epsilon: LocalEpsilon
    categories: Categories
    buckets: Annotated[Converted[int, int | None], optional(_checks.positive_count)] = field(
        default=None
    )

    def __post_init__(self) -> None:
        """Take the best number of buckets if none is given; refuse one that is no prime."""
        if self.buckets is None:
            best = _best(odds_below(self.epsilon), self.categories)
            object.__setattr__(self, "buckets", best)
        _check_buckets(self.buckets, self.categories)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "LocalHashing":
        """The mechanism of the smallest epsilon whose `error` is at most ``error``."""
        return _forecast.for_error(
            lambda epsilon: LocalHashing(epsilon, categories), error, confidence, reports
        )

    @property
    def client(self) -> client.LocalHashing:
        """The part that runs on a device."""
        return client.LocalHashing(odds_below(self.epsilon), self.categories, self.buckets)

    @property
    def rates(self) -> Rates:
        """The probabilities that the reported bucket is the own category's, and another's."""
        return _rates(odds_below(self.epsilon), self.buckets)

    def well_formed(self, reports: Reports) -> Reports:
        """The reports that a client can have sent; the others are left out."""
        return integers_below(self.client.size, reports)

    def supports(self, reports: Reports) -> Integers:
        """For each category, the number of reports whose function puts it into their bucket."""
        prime, digits = self.buckets, self.client.digits
        # (seed digit, ..., seed digit, bucket)
        counts = histogram(reports, self.client.size).reshape((prime,) * (digits + 1))
        for axis in range(digits):
            counts = np.moveaxis(_hashed(np.moveaxis(counts, axis, 0)), 0, axis)
        return np.asarray(counts[..., 0].ravel()[: self.categories])

    def spent(self) -> PrivacyLoss:
        """Two categories share a bucket with probability 1 / g; then the report is independent of
        the value. With odds o against each of g - 1 other buckets, this is randomized response over
        o / (g - 1) + g + 1 categories. Fewer categories cost more, so rounding down is safe."""
        other = self.buckets - 1
        categories = int(odds_below(self.epsilon) / other) + other + 2
        return PrivacyLoss.of(accounting.RandomizedResponse(self.epsilon, categories))


def _hashed(counts: Integers) -> Integers:
    """Replace the first axis, a seed's digit s, by a category's digit c; on the last axis bucket b
    becomes b - s c. Going digit by digit takes far less than all functions times all
    categories."""
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
        return rates.other * (1 - rates.other) / rates.spread**2

    fit = [prime for prime in _PRIMES if _reports(categories, prime) <= _MOST_REPORTS]
    if not fit:
        raise InvalidArgument(
            f"categories = {categories}: give at most 2^23; for more, CountMeanSketch estimates "
            "those asked for"
        )
    return min(fit, key=variance)


def _check_buckets(prime: int, categories: int) -> None:
    if prime > _MOST_REPORTS or not is_prime(prime):
        raise InvalidArgument(f"buckets = {prime}: give a prime number, 2 or above")
    if _reports(categories, prime) > _MOST_REPORTS:
        raise InvalidArgument(
            f"buckets = {prime}: with {categories} categories there are "
            f"{_reports(categories, prime)} different reports, at most 2^24 can be counted; give "
            "fewer buckets, or none for the best number"
        )


def _reports(categories: int, prime: int) -> int:
    return int(prime ** (digits_of(categories, prime) + 1))
