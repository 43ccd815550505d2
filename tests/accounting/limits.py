"""Limits to try filters on, and what fits within them."""

from fractions import Fraction
from functools import cache

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet.accounting import (
    Filter,
    PrivacyLoss,
    Spent,
    Term,
)
from discreet.accounting.filter._filter import _shared
from discreet.accounting.filter._sums import FOR_SMALL_LIMITS

EPSILONS = [1e-3, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0]
DELTAS = [0.0, 1e-30, 1e-9, 1e-6, 1e-3, 0.3]
LIMITS = [Limit(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
USUAL = Limit(1, 1e-6)
OTHER_LIMITS: list[AnyLimit] = [
    RhoLimit(0.5),
    RhoLimit(1e-3),
    MuLimit(1),
    MuLimit(0.01),
    RenyiLimit({2: 0.5, 8: 1.5, 32: 10}),
]


@cache
def made(limit: AnyLimit) -> Filter:
    return Filter.for_limit(limit)


@cache
def evenly_shared(limit: Limit) -> Filter:
    """The filter of a version that gave 10 % of delta to failures under every limit."""
    return _shared(limit, lambda _: FOR_SMALL_LIMITS)


def fits(limit: AnyLimit, *losses: PrivacyLoss | Term) -> bool:
    """Whether the charges, one after the other, end within the limit."""
    filter_ = made(limit)
    spent = filter_.start
    for loss in losses:
        spent = filter_.add(spent, PrivacyLoss() + loss)
    return filter_.admits(spent)


def most(limit: AnyLimit, loss: PrivacyLoss, before: PrivacyLoss | None = None) -> int:
    """The largest count of the loss that is admitted, by two charges: a first one may be alone."""
    filter_ = made(limit)
    spent = filter_.add(filter_.start, before or loss)
    low, high = 0, 1
    while filter_.admits(filter_.add(spent, high * loss)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        admitted = filter_.admits(filter_.add(spent, middle * loss))
        low, high = (middle, high) if admitted else (low, middle)
    return low if before else low + 1


def beyond(filter_: Filter) -> Spent:
    """Every sum one unit beyond its bound, and no failure."""
    return Spent(0, tuple(bound + 1 for bound in filter_.bounds))


def orders_of(filter_: Filter, spent: Spent) -> list[tuple[int, Fraction]]:
    """Each Renyi sum with its order."""
    count = len(filter_.shares)
    totals = spent.sums[len(spent.sums) - count :]
    return [(total, order) for total, (order, _) in zip(totals, filter_.shares, strict=True)]
