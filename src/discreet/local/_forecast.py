"""The error of an estimate before there are reports, from the exact law of its count."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Protocol, TypeVar

import numpy as np
from scipy import fft, special

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._bisection import decimal_edge
from discreet._exact import Number, decimal_up
from discreet.errors import InvalidArgument
from discreet.local._estimate import Rates
from discreet.local._odds import LARGEST, SMALLEST

_SPREAD, _ROOM = 12, 40  # counts beyond 12 stddevs + 40 have a probability below 1e-16
_MOST = 1 << 32

ClientGroup = tuple[int, Fraction]  # a number of clients, and their probability of support


class Forecasting(Protocol):
    """A mechanism with a known error."""

    def error(self, confidence: Number, reports: int) -> float:
        """The error of an estimate, at this confidence."""


M = TypeVar("M", bound=Forecasting)


def report_count(reports: int) -> int:
    """The number of reports, checked: 1 to 2^32."""
    found = _checks.positive_count(reports=reports)
    if found > _MOST:
        raise InvalidArgument(f"reports = {found}: give at most 2^32")
    return found


def share_stddev(rates: Rates, reports: int, share: Number | None) -> float:
    """The standard deviation of the estimate for a category of this share, or the largest one."""
    size = report_count(reports)
    return max(map(stddev, _cases(rates, size, share))) / float(size * rates.spread)


def share_error(rates: Rates, confidence: Number, reports: int, share: Number | None) -> float:
    """The error of the estimate at this confidence, for a category of this share or of any
    share."""
    size = report_count(reports)
    error = max(deviation(case, confidence) for case in _cases(rates, size, share))
    return error / float(size * rates.spread)


def stddev(of: Sequence[ClientGroup]) -> float:
    """The standard deviation of the number of supports."""
    return sqrt(sum(size * chance * (1 - chance) for size, chance in of))


def deviation(of: Sequence[ClientGroup], confidence: Number) -> float:
    """The smallest distance d such that the number of supports is within d of its mean at this
    confidence, by its exact law in floats."""
    wanted = float(_checks.probability(confidence=confidence))
    mean = sum(size * chance for size, chance in of)
    start, law = 0, np.ones(1)
    for size, chance in of:
        first, more = _binomial(size, chance)
        start, law = start + first, _sum(law, more)
    off = np.abs(np.arange(law.size) - float(mean - start))
    order = np.argsort(off, kind="stable")
    reached = np.searchsorted(np.cumsum(law[order]), wanted * law.sum())
    return float(off[order[min(int(reached), law.size - 1)]])


def for_error(make: Callable[[Fraction], M], error: Number, confidence: Number, reports: int) -> M:
    """The mechanism of the smallest epsilon, of four digits, whose error is at most ``error``."""
    wanted = _checks.positive(error=error)
    if (least := make(LARGEST).error(confidence, reports)) > wanted:
        raise InvalidArgument(
            f"error = {error}: with {reports} reports it is {least:.3g} even at epsilon 32; allow "
            "a larger error, or ask more clients"
        )

    def is_enough(epsilon: Fraction) -> bool:
        return make(epsilon).error(confidence, reports) <= wanted

    epsilon = min(LARGEST, decimal_edge(is_enough, LARGEST, SMALLEST, digits=4))
    while (found := make(epsilon)).error(confidence, reports) > wanted:
        epsilon = min(LARGEST, decimal_up(epsilon * Fraction(10001, 10000), 4))
    return found


def _cases(rates: Rates, reports: int, share: Number | None) -> Iterator[list[ClientGroup]]:
    """The clients with the category, rounded to an integer, and the clients without it. Without a
    share, the two extreme cases: no client or all clients hold it; every variance lies between."""
    if share is None:
        yield from ([(reports, rates.other)], [(reports, rates.own)])
        return
    exact = _checks.not_negative(share=share)
    if exact > 1:
        raise InvalidArgument(f"share = {share}: give a number from 0 to 1")
    held = round(exact * reports)
    yield [(held, rates.own), (reports - held, rates.other)]


def _binomial(size: int, chance: Fraction) -> tuple[int, FloatArray]:
    """The first count that is not negligible, and the probabilities from this count on."""
    mean, reach = float(size * chance), _SPREAD * stddev([(size, chance)]) + _ROOM
    first, last = max(0, floor(mean - reach)), min(size, ceil(mean + reach))
    k = np.arange(first, last + 1, dtype=np.float64)
    ways = special.gammaln(size + 1) - special.gammaln(k + 1) - special.gammaln(size - k + 1)
    p = float(chance)
    return first, np.exp(ways + special.xlogy(k, p) + special.xlog1py(size - k, -p))


def _sum(one: FloatArray, other: FloatArray) -> FloatArray:
    size = one.size + other.size - 1
    if min(one.size, other.size) == 1:
        return one * other
    room = fft.next_fast_len(size, real=True)
    both = fft.irfft(fft.rfft(one, room) * fft.rfft(other, room), room)[:size]
    return np.maximum(both, 0)
