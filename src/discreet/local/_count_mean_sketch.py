"""Count-mean sketch: shares of the categories that are asked for, among very many."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._exact import Number, shown
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.local import _forecast, client
from discreet.local._estimate import Estimate, Rates, SupportCounts
from discreet.local._mechanism import (
    ONE_REPORT,
    asked,
    counted,
    half_told,
    is_row_of_truths,
    is_whole,
    replaced,
    shuffled,
)
from discreet.local._odds import in_reach, odds_below
from discreet.local.client import SketchReports
from discreet.local.client._bits import LARGEST, Integers
from discreet.local.client._hashing import is_prime
from discreet.local.client._values import categories as checked

_MOST_BUCKETS = 1 << 13


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CountMeanSketch:
    """Each client draws one of a few hash functions, and tells a noisy bit for each bucket.

    Guarantee: each report is epsilon-differentially private for its client whatever the others
    do, if a client reports once. That someone reports, and when, is not covered.

    For up to 2^62 categories: hash texts to numbers first. The functions are polynomials over a
    prime field: of two categories with d digits in base ``buckets``, at most d - 1 in ``buckets``
    functions put both into one bucket, for all data and with no seed that could be unlucky. So an
    estimate is off by at most (d - 1) / buckets through collisions, and by nothing on average
    over categories; its interval holds with them.

    >>> mechanism = CountMeanSketch(4, categories=10**9, buckets=101)
    >>> reports = mechanism.randomize([123_456_789] * 300 + [5] * 700)
    >>> answer = mechanism.estimate(reports, [123_456_789, 42])
    >>> found = answer.interval(1 - 1e-9)
    >>> bool(found.lower[0] < 0.3 < found.upper[0]), bool(found.lower[1] == 0)
    (True, True)

    More buckets have fewer collisions, and longer reports: a truth value for each.

    Apple (2017), Learning with Privacy at Scale; here with optimised unary encoding, and with
    polynomials, two of which meet in fewer places than they have coefficients.
    """

    epsilon: Fraction
    client: client.CountMeanSketch

    def __init__(self, epsilon: Number, categories: int, buckets: int = 257) -> None:
        """Odds just below e^epsilon; the number of buckets is a prime."""
        object.__setattr__(self, "epsilon", in_reach(epsilon))
        count, prime = _checks.positive_count(categories=categories), _usable(buckets)
        if not 2 <= count <= LARGEST:
            raise InvalidArgument(f"categories = {count}: give 2 to 2^62")
        added = 1 / (odds_below(self.epsilon) + 1)
        object.__setattr__(
            self, "client", client.CountMeanSketch(Fraction(1, 2), added, count, prime)
        )

    @staticmethod
    def for_error(
        error: Number, confidence: Number, reports: int, categories: int
    ) -> "CountMeanSketch":
        """The one of the smallest epsilon whose `error` is at most this."""
        return _forecast.for_error(
            lambda epsilon: CountMeanSketch(epsilon, categories), error, confidence, reports
        )

    @property
    def rates(self) -> Rates:
        """With collisions under one in ``buckets`` functions on average, and d - 1 at most."""
        kept, added = self.client.kept, self.client.added
        each = (kept - added) / self.client.buckets
        most = self.client.digits - 1
        return Rates(kept, added + each * min(most, 1), added, added + each * most)

    def randomize(self, values: object) -> SketchReports:
        """A report for one value, or one for each of several; from the operating system's
        generator. What runs is `client`, which needs no more than NumPy."""
        return asked(self.client.randomize, values)

    def sketch(self, reports: SketchReports) -> Integers:
        """How often each bucket (columns) was set under each function (rows). Sketches of several
        groups of clients add up."""
        good = self._well_formed(reports)
        buckets, bits = self.client.buckets, good.bits
        of_each = counted(good.functions, buckets)
        in_order = bits[np.argsort(good.functions, kind="stable")]
        ends = np.cumsum(of_each)
        table: Integers = np.zeros((buckets, buckets), np.int64)
        for function, (end, size) in enumerate(zip(ends, of_each, strict=True)):
            table[function] = in_order[end - size : end].sum(axis=0)
        return table

    def estimate(self, reports: SketchReports, categories: object) -> Estimate:
        """The shares of these categories among all clients, from the reports of all of them.

        The intervals hold at least their confidence for the clients' shares, collisions
        included.
        """
        try:
            wanted = np.atleast_1d(checked(categories, self.client.categories))
        except ValueError as wrong:
            raise InvalidArgument(str(wrong).replace("values", "categories", 1)) from None
        good = self._well_formed(reports)
        table = self.sketch(good)
        functions = np.arange(self.client.buckets)[:, None]
        places = self.client.bucket(wanted, functions)  # (function, category)
        counts = np.take_along_axis(table, places, axis=1).sum(axis=0)
        size = len(good.functions)
        malformed = len(reports.functions) - size
        return Estimate.of(SupportCounts(counts, size, self.rates), size, malformed)

    def _well_formed(self, reports: SketchReports) -> SketchReports:
        """Those with one of the functions, and a truth value for each bucket."""
        if not isinstance(reports, SketchReports):
            raise InvalidArgument("reports: give what randomize returned")
        if getattr(reports.functions, "ndim", 1) != 1 or len(reports.functions) != len(
            reports.bits
        ):
            raise InvalidArgument("reports: give as many rows of bits as functions")
        size, numbers, bits = self.client.buckets, reports.functions, reports.bits
        arrays = isinstance(numbers, np.ndarray) and isinstance(bits, np.ndarray)
        if arrays and numbers.dtype.kind in "iu" and bits.dtype == bool and bits.ndim == 2:
            is_good = (numbers >= 0) & (numbers < size) & (bits.shape[1] == size)
            if is_good.any():
                return SketchReports(numbers[is_good].astype(np.int64), bits[is_good])
        both = zip(numbers, bits, strict=True)
        pairs = [(one, row) for one, row in both if is_row_of_truths(row, size)]
        pairs = [(one, row) for one, row in pairs if is_whole(one) and 0 <= one < size]
        if not pairs:
            raise InvalidArgument("reports: none is a function with a truth value for each bucket")
        functions, rows = zip(*pairs, strict=True)
        return SketchReports(np.array(functions, np.int64), np.array(rows, bool))

    def privacy_loss(self, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What one report costs its client, whoever sees it: as optimised unary encoding."""
        return half_told(self.epsilon).for_unit(replaced(unit))

    def shuffled(self, reports: int, unit: Unit = ONE_REPORT) -> PrivacyLoss:
        """What one report costs if it is only seen among so many others, one for each client, in
        random order; the shuffler is trusted and shows nothing else."""
        return shuffled(self.epsilon, reports, unit)

    def error(self, confidence: Number, reports: int, share: Number | None = None) -> float:
        """What the estimate of a category of this share stays within, with at least this
        probability and whatever else the clients hold: its noise and the most collisions."""
        rates = self.rates
        noise = max(
            _forecast.share_error(Rates.of(rates.kept, added), confidence, reports, share)
            * float((rates.kept - added) / rates.spread)
            for added in (rates.least, rates.added, rates.most)
        )
        off = max(rates.most - rates.added, rates.added - rates.least) / rates.spread
        return noise + float(off) * (1 - float(share or 0))

    def __repr__(self) -> str:
        """As in code."""
        return (
            f"CountMeanSketch(epsilon={shown(self.epsilon)}, categories={self.client.categories}, "
            f"buckets={self.client.buckets})"
        )


def _usable(buckets: int) -> int:
    prime = _checks.positive_count(buckets=buckets)
    if prime <= _MOST_BUCKETS and is_prime(prime):
        return prime
    raise InvalidArgument(f"buckets = {prime}: give a prime number of at most 2^13")
