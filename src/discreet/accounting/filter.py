"""The filter: which charges, chosen adaptively, still fit under a limit.

A filter is fixed before the first charge. It holds a finite set of orders, a share of delta for
each, a share for leaks, and keeps one running sum of Renyi divergences per order and one of pure
epsilons. A charge is admitted iff afterwards the leaks stay within their share and *some* sum
stays within its bound. Why that is sound for charges chosen with all earlier answers in view is
in docs/proofs/filter.md; taking the best of several theorems with the whole delta each is not.

Sums and bounds are whole numbers of `UNIT`; charges round up, bounds round down.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import knowledge
from discreet.accounting.loss import PrivacyLoss
from discreet.accounting.terms import Pure
from discreet.accounting.theorems import log_conversion
from discreet.errors import InvalidArgument, NoBound
from discreet.exact import ball, decimal_up, lower_fraction, precision, upper_fraction
from discreet.payment import Limit

UNIT = Fraction(1, 10**18)
LEAK_UNIT = Fraction(1, 10**60)
_BITS = 256
_EXHAUSTED = 10**40
_LEAK_PART = Fraction(1, 10)
_SPREAD = (  # how far an order lies from the best one, and its part of delta: the higher ones
    (Fraction(1, 2), Fraction(5, 100)),  # are for what is left after large pure charges
    (Fraction(1), Fraction(55, 100)),
    (Fraction(2), Fraction(15, 100)),
    (Fraction(4), Fraction(5, 100)),
    (Fraction(10), Fraction(5, 100)),
    (Fraction(30), Fraction(5, 100)),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """The running sums of a filter, in whole units: leaks, pure epsilons, one per order.

    A sum that reaches ``_EXHAUSTED`` stays there: beyond every bound, it decides nothing more.
    """

    leak: int
    pure: int
    orders: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A limit with what is needed to decide: orders, and how delta is shared among them.

    ``shares`` holds (order, its share of delta); the shares and ``leak`` add up to at most the
    limit's delta.
    """

    limit: Limit
    leak: Fraction
    shares: tuple[tuple[Fraction, Fraction], ...]

    @staticmethod
    def for_limit(limit: Limit) -> "Filter":
        """The default filter: most of delta goes to the order at which many small charges
        would fill this limit, the rest to other orders and to leaks."""
        if limit.delta == 0:
            return Filter(limit, Fraction(0), ())
        best = _best_order(limit)
        shares = tuple((1 + (best - 1) * factor, limit.delta * part) for factor, part in _SPREAD)
        return Filter(limit, limit.delta * _LEAK_PART, shares)

    def __post_init__(self) -> None:
        """Refuse shares that would add up to more than the limit's delta."""
        if self.leak < 0 or any(order <= 1 or share <= 0 for order, share in self.shares):
            raise InvalidArgument("a filter's orders lie above 1 and its shares of delta above 0")
        if self.leak + sum(share for _, share in self.shares) > self.limit.delta:
            raise InvalidArgument(
                "a filter's shares of delta add up to more than the limit's delta"
            )

    @property
    def start(self) -> Spent:
        """Nothing spent."""
        return Spent(0, 0, (0,) * len(self.shares))

    def add(self, spent: Spent, loss: PrivacyLoss) -> Spent:
        """The sums after this charge, whether admitted or not; `NoBound` if they can't be known."""
        leak = _units_up(knowledge.leak(loss), LEAK_UNIT)
        with precision(_BITS):
            orders = tuple(
                _capped(total + _units_up(upper_fraction(knowledge.renyi(loss, order)), UNIT))
                for total, (order, _) in zip(spent.orders, self.shares, strict=True)
            )
        return Spent(spent.leak + leak, _capped(spent.pure + _pure(loss)), orders)

    def admits(self, spent: Spent) -> bool:
        """Whether these sums are within the limit."""
        if spent.leak > self.leak_bound:
            return False
        return any(total <= bound for total, bound in zip(_sums(spent), self.bounds, strict=True))

    @property
    def leak_bound(self) -> int:
        """The most that the leaks may add up to, in whole `LEAK_UNIT`."""
        return math.floor(self.leak / LEAK_UNIT)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The most that each sum may reach, in whole `UNIT`: the pure one, then each order's.
        No limit is so large that an exhausted sum would be within it."""
        with precision(_BITS):
            above = (self.limit.epsilon + _room(order, share) for order, share in self.shares)
            bounds = (math.floor(bound / UNIT) for bound in (self.limit.epsilon, *above))
            return tuple(min(bound, _EXHAUSTED - 1) for bound in bounds)

    def epsilon(self, spent: Spent) -> Fraction | None:
        """The epsilon that these sums have reached, at the filter's own shares of delta: the
        charge that brought them was admitted iff this is at most the limit's. ``None`` if every
        sum is exhausted or the leaks are beyond their share."""
        if spent.leak > self.leak_bound:
            return None
        pairs = zip(_sums(spent), self.bounds, strict=True)
        least = min((total - bound for total, bound in pairs if total < _EXHAUSTED), default=None)
        return None if least is None else max(Fraction(0), self.limit.epsilon + least * UNIT)

    def pure_left(self, spent: Spent) -> Fraction:
        """The largest single pure epsilon, to one part in 10^9, that would still be admitted."""

        def is_admitted(billionths: int) -> bool:
            loss = PrivacyLoss.of(Pure(Fraction(billionths, 10**9)))
            return self.admits(self.add(spent, loss))

        low, high = 0, 1  # high is refused in the end: a pure sum is within a bound or beyond it
        while is_admitted(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_admitted(middle) else (low, middle)
        return Fraction(low, 10**9)


def _sums(spent: Spent) -> tuple[int, ...]:
    return (spent.pure, *spent.orders)


def _pure(loss: PrivacyLoss) -> int:
    """Without a pure bound the pure sum is exhausted; a leak is counted apart from it."""
    try:
        epsilon, _ = knowledge.approximate(loss)
    except NoBound:
        return _EXHAUSTED
    return _units_up(epsilon, UNIT)


def _units_up(amount: Fraction, unit: Fraction) -> int:
    return math.ceil(amount / unit)


def _capped(total: int) -> int:
    return min(total, _EXHAUSTED)


def _room(order: Fraction, share: Fraction) -> Fraction:
    """ln(share / c) / (order - 1), rounded down: what a Renyi sum may lie above epsilon."""
    return lower_fraction((ball(share).log() - log_conversion(order)) / ball(order - 1))


def _best_order(limit: Limit) -> Fraction:
    """The order at which rho-zCDP charges of the largest total rho fit: it has the largest
    bound / order."""
    half = limit.delta / 2
    with precision(_BITS):
        steps = (decimal_up(Fraction(10 ** (step / 20)), digits=3) for step in range(-80, 181))
        orders = (1 + step for step in steps)
        return max(orders, key=lambda order: (limit.epsilon + _room(order, half)) / order)
