"""The filter: which charges, chosen adaptively, still fit under a limit.

A filter is fixed before the first charge. Under an (epsilon, delta) limit it keeps running sums of
pure epsilons, of squares of mu, and of Renyi divergences at a few orders. Squares, orders and
failures each have a share of delta. A charge is admitted if and only if afterwards the failures are
within their share and *some* sum is within its bound. A limit of another kind has its own sums and
no failures, and *all* sums must be within their bounds. docs/proofs/filter.md proves that this is
sound for charges that are chosen with all earlier answers in view. The best of several theorems,
with the whole delta each, would not be.

A charge that is neither pure nor Gaussian, such as a training run, can be counted in two ways:
plain, or among the squares by a normal value that dominates its whole profile together with a
failure. Its cost holds both ways in order of preference, and the first one that fits is taken.

A first charge that no sum admits, but whose failures are within their share, is decided by its own
cost with all of delta: a training run that was planned for this limit fits. Only pure charges can
follow it, within the epsilon that it leaves.

Sums and bounds are multiples of `RESOLUTION`, as whole numbers. Charges round up, bounds round
down. `Filter.cost` may take long; `Filter.charged`, which adds a cost to the sums, never does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from discreet._bisection import smallest_whole
from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet._exact import ball, decimal_up, fraction, precision, root_down, upper_fraction
from discreet.accounting import _theorems
from discreet.accounting._bounds import Unknown
from discreet.accounting._loss import PrivacyLoss, within_reach
from discreet.accounting.filter._domination import epsilon_of_square, largest_square
from discreet.accounting.filter._sums import (
    EXHAUSTED,
    FAILURE_RESOLUTION,
    FOR_FAILURES,
    FOR_TRAINING,
    RESOLUTION,
    SQUARES,
    Counting,
    EpsilonSum,
    FilterCost,
    FilterSum,
    MuSquaredSum,
    RenyiSum,
    RhoSum,
    Shares,
    Spent,
    Squares,
    counting_with_failure,
    default_shares,
    plain_counting,
    pure,
    room,
    rounded_up,
)
from discreet.accounting.terms._pure import Pure
from discreet.errors import InvalidArgument

_BITS = 256
_COSTS = 1024  # that are remembered
_MOST_COUNTED = 10**12
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Filter:
    """A limit, and the shares of its delta for failures, squares and orders.

    ``shares`` holds pairs of an order and its share. All shares together, with ``failures`` and the
    share of ``squares``, are at most the limit's delta. A limit without a delta has no shares.
    """

    limit: AnyLimit
    failures: Fraction = Fraction(0)
    shares: tuple[tuple[Fraction, Fraction], ...] = ()
    squares: Squares | None = None
    _hash: int = field(init=False, repr=False, compare=False)  # for many look-ups at each charge

    @staticmethod
    def for_limit(limit: AnyLimit) -> "Filter":
        """The default filter: most of delta goes to squares and to the order at which many small
        charges would fill this limit, the rest to other orders and to failures. Failures get 10 %
        of delta, and up to 50 % if epsilon is large and delta small."""
        return _shared(limit, default_shares)

    @staticmethod
    def for_training(limit: AnyLimit) -> "Filter":
        """A filter for a ledger that is mostly for training runs and normal noise: nearly all of
        delta goes to squares, which count them best. Everything else can still be charged, and
        less of it fits than by default."""
        return _shared(limit, lambda _: FOR_TRAINING)

    @staticmethod
    def for_failures(limit: AnyLimit) -> "Filter":
        """A filter for a ledger that is mostly for charges that fail with a small probability, such
        as private keys: half of delta is for them, whatever the limit."""
        return _shared(limit, lambda _: FOR_FAILURES)

    def __post_init__(self) -> None:
        squares = Fraction(0) if self.squares is None else self.squares.share
        if self.failures < 0 or any(order <= 1 or share <= 0 for order, share in self.shares):
            raise InvalidArgument("a filter's orders lie above 1 and its shares of delta above 0")
        if self.squares is not None and not (squares > 0 and self.squares.floor >= 0):
            raise InvalidArgument("a filter's squares have a share above 0 and a floor from 0 on")
        delta = self.limit.delta if isinstance(self.limit, Limit) else Fraction(0)
        if self.failures + squares + sum(share for _, share in self.shares) > delta:
            raise InvalidArgument(
                "a filter's shares of delta add up to more than the limit's delta"
            )
        object.__setattr__(self, "_hash", hash((self.limit, self.failures, self.shares)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def sums(self) -> tuple[FilterSum, ...]:
        """The running sums, in the order of those in `Spent`."""
        return _sums(self)

    @property
    def start(self) -> Spent:
        """Nothing spent."""
        return Spent(0, (0,) * len(self.sums))

    @lru_cache(maxsize=_COSTS)  # noqa: B019  # filters are values, and there are few of them
    def cost(self, loss: PrivacyLoss) -> FilterCost:
        """The cost of this charge; raises `NoBound` if no bound is known. The first time may take
        long, so a ledger asks before it locks anything."""
        plain = plain_counting(self.sums, loss)
        ways = [plain]
        if (counted := self._with_failure(loss, plain)) is not None:
            # Counted with a failure, a charge leaves the squares usable for later charges, so this
            # way comes first. Charges with failures of their own need the share of failures, too:
            # of these the way comes first in which more copies fit.
            is_first = not plain.failures or self._is_better(counted, plain)
            ways.insert(0 if is_first else 1, counted)
        fits = any(self._is_within(self.start.plus(way)) for way in ways)
        is_alone = not fits and plain.failures <= self.failure_bound
        return FilterCost(tuple(ways), self.alone(loss) if is_alone else None)

    def counting(self, spent: Spent, cost: FilterCost) -> Counting:
        """The way in which a charge of this cost is counted after these sums: the first way that
        fits, or the plain way if none does."""
        if spent.alone is not None:
            return cost.plain
        ways = (way for way in cost.ways if self._takes(spent.plus(way), way, cost))
        return next(ways, cost.plain)

    def charged(self, spent: Spent, cost: FilterCost, reserved: Counting | None = None) -> Spent:
        """The sums after a charge of this cost, whether admitted or not. It is counted in the
        first way that fits beside the reserved amount, which stays outside the sums."""
        way = self.counting(spent.beside(reserved), cost)
        after = spent.plus(way)
        if spent.alone is not None:
            return replace(after, alone=min(spent.alone + pure(way), EXHAUSTED))
        if reserved is None and spent == self.start and not self._is_within(after):
            return replace(after, alone=cost.alone)
        return after

    def add(self, spent: Spent, loss: PrivacyLoss, reserved: Counting | None = None) -> Spent:
        """The sums after this charge, whether admitted or not; raises `NoBound` if no bound is
        known."""
        return self.charged(spent, self.cost(loss), reserved)

    def recounted(self, spent: Spent, recorded: Spent, loss: PrivacyLoss) -> Spent:
        """Lower bounds on the sums after this charge, counted in the way that the recorded sums
        show. The recorded failures decide, even if another way would be chosen today."""
        cost = self.cost(loss)
        failure = (recorded.failures - spent.failures - cost.plain.failures) * FAILURE_RESOLUTION
        counted = self._with_failure(loss, cost.plain, failure) if failure > 0 else None
        if counted is not None and recorded.alone is None:
            return spent.plus(counted)
        return self.charged(spent, FilterCost((cost.plain,), cost.alone))

    def admits(self, spent: Spent) -> bool:
        """Whether these sums are within the limit."""
        if spent.alone is not None and spent.alone <= self.bounds[0]:
            return True
        return self._is_within(spent)

    def alone(self, loss: PrivacyLoss) -> int | None:
        """The cost of the charge by itself at the limit's delta, in multiples of `RESOLUTION`;
        ``None`` if it is not known, or if there is no delta."""
        if not isinstance(self.limit, Limit) or self.limit.delta == 0:
            return None
        delta = self.limit.delta
        epsilon = within_reach(lambda: _theorems.epsilon(loss, delta))
        if isinstance(epsilon, Unknown) or not epsilon < EXHAUSTED * RESOLUTION:
            return None
        return rounded_up(fraction(epsilon), RESOLUTION)

    @property
    def failure_bound(self) -> int:
        """The bound on the sum of failures, in multiples of `FAILURE_RESOLUTION`."""
        return math.floor(self.failures / FAILURE_RESOLUTION)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The bound on each sum, in multiples of `RESOLUTION`. Exhausted sums are beyond all."""
        return _bounds(self)

    def reached(self, spent: Spent) -> Fraction | None:
        """The point that these sums have reached, in the limit's own measure: epsilon at the
        filter's shares of delta, rho, mu, or the largest used part of a Renyi limit's bounds.

        The last charge was admitted if and only if this is at most the limit's number (1 for a
        Renyi limit). ``None`` if no sum decides, or if the failures are beyond their share.
        """
        if spent.alone is not None:
            return spent.alone * RESOLUTION
        if spent.failures > self.failure_bound:
            return None
        found = [
            _within(self._reached(total, each), self.limit.most, is_within=total <= _bound(each))
            for total, each in zip(spent.sums, self.sums, strict=True)
            if total < EXHAUSTED
        ]
        if isinstance(self.limit, Limit):
            return min((one for one in found if one is not None), default=None)
        reached = [one for one in found if one is not None]
        return max(reached) if len(reached) == len(spent.sums) else None

    def would_reach(self, spent: Spent, loss: PrivacyLoss) -> Fraction | None:
        """The point that these sums would reach with this charge, which is refused. A charge that
        can be counted with a failure is counted so; ``None`` if only its failure is too large."""
        cost = self.cost(loss)
        after = self.charged(spent, cost)
        beside = [way for way in cost.ways if way != cost.plain]
        if after.alone is not None or not beside:
            return self.reached(after)
        after = spent.plus(beside[0])
        reached = self.reached(replace(after, failures=min(after.failures, self.failure_bound)))
        return None if reached is not None and reached <= self.limit.most else reached

    def multiplier_left(self, spent: Spent) -> Fraction | None:
        """The smallest multiplier of one more Gaussian mechanism that the squares admit; ``None``
        if they admit none."""
        if self.squares is None or spent.alone is not None:
            return None
        left = (self.bounds[SQUARES] - spent.sums[SQUARES]) * RESOLUTION
        return decimal_up(1 / root_down(left), digits=_DIGITS) if left > 0 else None

    def pure_left(self, spent: Spent) -> Fraction:
        """The largest pure epsilon of one more charge, a multiple of 10^-9."""

        def is_admitted(billionths: int) -> bool:
            loss = PrivacyLoss.of(Pure(Fraction(billionths, 10**9)))
            plain = plain_counting(self.sums, loss)
            cost = FilterCost((plain,))  # not counted as a first charge alone
            return self.admits(self.charged(spent, cost))

        return Fraction(_most(is_admitted), 10**9)

    def count_left(self, spent: Spent, loss: PrivacyLoss) -> int:
        """The number of further charges of this privacy loss, one after the other, that would be
        admitted; at most 10^12."""
        cost, count = self.cost(loss), 0
        if spent == self.start and cost.alone is not None:
            spent = self.charged(spent, cost)
            if not self.admits(spent):
                return 0
            count = 1
        if spent.alone is not None:
            plain = cost.plain

            def is_admitted(copies: int) -> bool:
                return self.admits(self.charged(spent, FilterCost((_times(plain, copies),))))

            return count + _most(is_admitted)
        for way in cost.ways:  # a way that no longer fits never fits again
            more = self._copies(spent, way, cost)
            spent, count = spent.plus(_times(way, more)), count + more
        return min(count, _MOST_COUNTED)

    def _copies(self, spent: Spent, way: Counting, cost: FilterCost) -> int:
        def is_admitted(count: int) -> bool:
            return self._takes(spent.plus(_times(way, count)), way, cost)

        return _most(is_admitted)

    def _takes(self, after: Spent, way: Counting, cost: FilterCost) -> bool:
        """Whether a charge that leads to these sums is counted in this way. A failure helps the
        squares only, so it is spent only if they are within their bound."""
        is_of_use = way == cost.plain or after.sums[SQUARES] <= self.bounds[SQUARES]
        return is_of_use and self._is_within(after)

    def part(self, cost: FilterCost) -> Fraction | None:
        """The part of an empty filter that this charge takes, by the way that takes least;
        ``None`` if it is not known."""
        parts = (self._part(way) for way in cost.ways)
        return min((part for part in parts if part is not None), default=None)

    def _part(self, way: Counting) -> Fraction | None:
        """The larger of two parts: that of the failures, and that of the sum that it fills least
        (for limits without a delta, most)."""
        pairs = zip(way.sums, self.bounds, strict=True)
        parts = [
            Fraction(total, bound) for total, bound in pairs if bound > 0 and total < EXHAUSTED
        ]
        if not parts or (way.failures and not self.failure_bound):
            return None
        failures = Fraction(way.failures, self.failure_bound) if way.failures else Fraction(0)
        return max(failures, min(parts) if isinstance(self.limit, Limit) else max(parts))

    def _with_failure(
        self, loss: PrivacyLoss, plain: Counting, failure: Fraction | None = None
    ) -> Counting | None:
        if self.squares is None or not self.failures:
            return None
        squares = self.sums[SQUARES]
        assert isinstance(squares, MuSquaredSum)
        return counting_with_failure(squares, loss, plain, share=self.failures, failure=failure)

    def _is_better(self, one: Counting, other: Counting) -> bool:
        """Whether at least as many copies of the first way fit."""
        first, second = self._part(one), self._part(other)
        return first is not None and (second is None or first <= second)

    def _is_within(self, spent: Spent) -> bool:
        are_within = (s <= bound for s, bound in zip(spent.sums, self.bounds, strict=True))
        is_enough = any if isinstance(self.limit, Limit) else all
        return spent.failures <= self.failure_bound and is_enough(are_within)

    def _reached(self, total: int, each: FilterSum) -> Fraction | None:
        """The point to which one sum has come, in the limit's own measure."""
        if total == 0:
            return Fraction(0)
        match self.limit, each:
            case Limit(epsilon), MuSquaredSum(_, floor):
                assert self.squares is not None
                return epsilon_of_square(total * RESOLUTION + floor, self.squares.share)
            case Limit(epsilon), _:
                return max(Fraction(0), epsilon + (total - _bound(each)) * RESOLUTION)
            case MuLimit(), _:
                with precision(_BITS):
                    return upper_fraction(ball(total * RESOLUTION).sqrt())
            case RenyiLimit(), _:
                return total * RESOLUTION / each.most
        return total * RESOLUTION


@lru_cache(maxsize=256)
def _sums(chosen: Filter) -> tuple[FilterSum, ...]:
    limit = chosen.limit
    match limit:
        case RhoLimit(rho):
            return (RhoSum(rho),)
        case MuLimit(mu):
            return (MuSquaredSum(mu**2, Fraction(0)),)
        case RenyiLimit(bounds):
            return tuple(RenyiSum(order, most) for order, most in bounds)
    sums: list[FilterSum] = [EpsilonSum(limit.epsilon)]
    if chosen.squares is not None:
        share, floor = chosen.squares.share, chosen.squares.floor
        sums.append(MuSquaredSum(largest_square(limit.epsilon, share) - floor, floor))
    with precision(_BITS):
        sums += (RenyiSum(a, limit.epsilon + room(a, share)) for a, share in chosen.shares)
    return tuple(sums)


def _times(way: Counting, count: int) -> Counting:
    return Counting(way.failures * count, tuple(min(one * count, EXHAUSTED) for one in way.sums))


def _most(is_admitted: Callable[[int], bool]) -> int:
    """The largest number that is admitted, or 10^21 if no smaller one is refused."""
    far = _MOST_COUNTED * 10**9
    return smallest_whole(lambda count: count > far or not is_admitted(count), 1) - 1


def _shared(limit: AnyLimit, shares_of: Callable[[Limit], Shares]) -> Filter:
    if not isinstance(limit, Limit) or limit.delta == 0:
        return Filter(limit)
    shares = shares_of(limit)
    failures, orders = shares.of_failures(limit), shares.of_orders(limit)
    return Filter(limit, failures, orders, shares.of_squares(limit))


@lru_cache(maxsize=256)
def _bounds(chosen: Filter) -> tuple[int, ...]:
    return tuple(_bound(each) for each in chosen.sums)


def _bound(each: FilterSum) -> int:
    return min(math.floor(each.most / RESOLUTION), EXHAUSTED - 1)


def _within(number: Fraction | None, full: Fraction, *, is_within: bool) -> Fraction | None:
    """The number, moved to the side of the limit on which the whole units lie."""
    if number is None:
        return None
    return min(number, full) if is_within else max(number, full + RESOLUTION)
