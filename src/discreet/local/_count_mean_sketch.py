"""Count-mean sketch: the shares of some categories, out of a very large number."""

from fractions import Fraction
from typing import Annotated

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet._fields import field, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._mechanism import (
    ReportingMechanism,
    half_informative,
    histogram,
    is_boolean_row,
    is_integer,
    with_our_error,
)
from discreet.local._odds import LocalEpsilon, odds_below
from discreet.local.client import SketchReports
from discreet.local.client._bits import LARGEST, Integers
from discreet.local.client._hashing import is_prime
from discreet.local.client._values import category_array

_MOST_BUCKETS = 1 << 13


def _sketch_categories(**named: object) -> int:
    found = _checks.positive_count(**named)
    if 2 <= found <= LARGEST:
        return found
    (name,) = named
    raise InvalidArgument(f"{name} = {found}: give 2 to 2^62")


def _sketch_buckets(**named: object) -> int:
    prime = _checks.positive_count(**named)
    if prime <= _MOST_BUCKETS and is_prime(prime):
        return prime
    (name,) = named
    raise InvalidArgument(f"{name} = {prime}: give a prime number of at most 2^13")


@frozen
class CountMeanSketch(ReportingMechanism):
    """Each client draws one of a few hash functions, and reports a noisy bit for each bucket.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That a client reports, and when, is not covered.

    There may be up to 2^62 categories; hash texts to numbers first. The functions are polynomials
    over a prime field. If two categories have d digits in base ``buckets``, at most d - 1 of the
    ``buckets`` functions put both into one bucket; this holds for all data and needs no random
    seed. So collisions move an estimate by at most (d - 1) / buckets, and by 0 on average over
    categories. The interval includes their effect.

    >>> mechanism = CountMeanSketch(4, categories=10**9, buckets=101)
    >>> reports = mechanism.randomize([123_456_789] * 300 + [5] * 700)
    >>> answer = mechanism.estimate(reports, [123_456_789, 42])
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower[0] < 0.3 < found.upper[0]), bool(found.lower[1] == 0)
    (True, True)

    With more buckets there are fewer collisions, and a report is longer: it has a boolean for each
    bucket.

    Apple (2017), Learning with Privacy at Scale; here with optimised unary encoding, and with
    polynomials as hash functions.
    """

    epsilon: LocalEpsilon
    categories: Annotated[int, _sketch_categories]
    buckets: Annotated[int, _sketch_buckets] = field(default=257)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "CountMeanSketch":
        """The mechanism of the smallest epsilon whose `error` is at most ``error``."""
        return _forecast.for_error(
            lambda epsilon: CountMeanSketch(epsilon, categories), error, confidence, reports
        )

    @property
    def client(self) -> client.CountMeanSketch:
        """The part that runs on a device, with optimised unary encoding."""
        other = 1 / (odds_below(self.epsilon) + 1)
        return client.CountMeanSketch(Fraction(1, 2), other, self.categories, self.buckets)

    @property
    def rates(self) -> Rates:
        """The probabilities of support. Two categories collide under one of the ``buckets``
        functions on average, and under at most d - 1 of them."""
        own, other = self.client.own, self.client.other
        each = (own - other) / self.buckets
        most = self.client.digits - 1
        return Rates(own, other + each * min(most, 1), other, other + each * most)

    def randomize(self, values: object) -> SketchReports:  # type: ignore[override]  # two arrays
        """A report for one value, or one for each of several; from the operating system's
        generator. It runs `client`, which needs no more than NumPy."""
        return with_our_error(self.client.randomize, values)

    def sketch(self, reports: SketchReports) -> Integers:
        """The number of reports that set each bucket (columns) under each function (rows). Sketches
        of several groups of clients add up."""
        good = self._well_formed(reports)
        sizes = histogram(good.functions, self.buckets)
        # the rows of each function, one function after the other
        in_order = good.bits[np.argsort(good.functions, kind="stable")]
        ends = np.cumsum(sizes)
        table: Integers = np.zeros((self.buckets, self.buckets), np.int64)
        for function, (end, size) in enumerate(zip(ends, sizes, strict=True)):
            table[function] = in_order[end - size : end].sum(axis=0)
        return table

    def estimate(self, reports: SketchReports, categories: object) -> Estimate:
        """The shares of these categories among all clients, from the reports of all of them.

        The intervals hold at least their confidence for the clients' shares, collisions
        included.
        """
        try:
            wanted = np.atleast_1d(category_array(categories, self.categories))
        except ValueError as wrong:
            raise InvalidArgument(str(wrong).replace("values", "categories", 1)) from None
        good = self._well_formed(reports)
        table = self.sketch(good)
        functions = np.arange(self.buckets)[:, None]
        places = self.client.bucket(wanted, functions)  # (function, category)
        counts = np.take_along_axis(table, places, axis=1).sum(axis=0)
        size = len(good.functions)
        malformed = len(reports.functions) - size
        return Estimate.of(SupportCounts(counts, size, self.rates), size, malformed)

    def _well_formed(self, reports: SketchReports) -> SketchReports:
        """The reports that a client can have sent; the others are left out."""
        if not isinstance(reports, SketchReports):
            raise InvalidArgument("reports: give what randomize returned")
        if getattr(reports.functions, "ndim", 1) != 1 or len(reports.functions) != len(
            reports.bits
        ):
            raise InvalidArgument("reports: give as many rows of bits as functions")
        size, numbers, bits = self.buckets, reports.functions, reports.bits
        arrays = isinstance(numbers, np.ndarray) and isinstance(bits, np.ndarray)
        if arrays and numbers.dtype.kind in "iu" and bits.dtype == bool and bits.ndim == 2:
            is_good = (numbers >= 0) & (numbers < size) & (bits.shape[1] == size)
            if is_good.any():
                return SketchReports(numbers[is_good].astype(np.int64), bits[is_good])
        both = zip(numbers, bits, strict=True)
        pairs = [(one, row) for one, row in both if is_boolean_row(row, size)]
        pairs = [(one, row) for one, row in pairs if is_integer(one) and 0 <= one < size]
        if not pairs:
            raise InvalidArgument("reports: none is a function with a truth value for each bucket")
        functions, rows = zip(*pairs, strict=True)
        return SketchReports(np.array(functions, np.int64), np.array(rows, bool))

    def spent(self) -> PrivacyLoss:
        """The price of optimised unary encoding; the hash function is independent of the value."""
        return half_informative(self.epsilon)

    def error(self, confidence: Number, reports: int, share: Number | None = None) -> float:
        """An upper bound on the error of the estimate for a category of this share at this
        confidence, for any values of the other clients: its noise and the most collisions."""
        rates = self.rates
        noise = max(
            _forecast.share_error(Rates.of(rates.own, other), confidence, reports, share)
            * float((rates.own - other) / rates.spread)
            for other in (rates.least, rates.other, rates.most)
        )
        collisions = max(rates.most - rates.other, rates.other - rates.least) / rates.spread
        return noise + float(collisions) * (1 - float(share or 0))
