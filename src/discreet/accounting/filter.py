"""The filter: which charges, chosen adaptively, still fit under a limit.

A filter is fixed before the first charge. Under an (epsilon, delta) limit it keeps several
running sums: of pure epsilons, of squares of mu, and of Renyi divergences at a few orders, each
with its share of delta, and a share for leaks. A charge is admitted iff afterwards the leaks stay
within their share and *some* sum stays within its bound. A limit of another kind has its own
sums, no leaks, and *all* sums stay within their bounds. Why that is sound for charges chosen with
all earlier answers in view is in docs/proofs/filter.md; taking the best of several theorems with
the whole delta each is not.

A first charge that no sum admits, whose leaks are within their share, is decided by what it costs
by itself, all of delta being its own: a training run that was planned for this very limit fits into
it. Only pure charges can follow, within what it leaves of epsilon.

Sums and bounds are whole numbers of `UNIT`; charges round up, bounds round down.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.accounting import knowledge
from discreet.accounting.domination import epsilon_of_square, largest_square
from discreet.accounting.loss import PrivacyLoss
from discreet.accounting.terms import Pure
from discreet.accounting.theorems import log_conversion
from discreet.accounting.tracks import Epsilons, Order, Rhos, SquaresOfMu, Track
from discreet.errors import InvalidArgument, NoBound
from discreet.exact import ball, decimal_up, fraction, lower_fraction, precision, upper_fraction
from discreet.payment import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit

UNIT = Fraction(1, 10**18)
LEAK_UNIT = Fraction(1, 10**60)
_BITS = 256
_EXHAUSTED = 10**40
_LARGEST_EPSILON = 10**6  # squares are counted under limits up to here
_LEAK_PART = Fraction(10, 100)
_SQUARES_PART = Fraction(40, 100)
_FLOOR_PART = Fraction(2, 100)  # of the largest square
_SPREAD = (  # how far an order lies from the best one, and its part of delta: the higher ones
    (Fraction(1), Fraction(36, 100)),  # are for what is left after large pure charges
    (Fraction(2), Fraction(6, 100)),
    (Fraction(4), Fraction(3, 100)),
    (Fraction(10), Fraction(3, 100)),
    (Fraction(30), Fraction(2, 100)),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """The running sums of a filter, in whole units: the leaks, and one sum for each of its tracks.

    ``alone`` is there once a first charge was beyond them all: what it costs by itself with all
    of delta, and the pure epsilons since. A sum that reaches ``_EXHAUSTED`` stays there: beyond
    every bound, it decides nothing more.
    """

    leak: int
    sums: tuple[int, ...]
    alone: int | None = None


@dataclass(frozen=True, slots=True)
class Squares:
    """How a filter counts squares of mu: at this share of delta. Of what the squares could add
    up to, ``floor`` stays unspent, which makes small pure charges cheaper."""

    share: Fraction
    floor: Fraction


@dataclass(frozen=True, slots=True)
class Filter:
    """A limit with what is needed to decide: how delta is shared among leaks, squares and orders.

    ``shares`` holds (order, its share of delta); they, ``leak`` and the share of ``squares`` add
    up to at most the limit's delta. Limits that have no delta have nothing to share.
    """

    limit: AnyLimit
    leak: Fraction = Fraction(0)
    shares: tuple[tuple[Fraction, Fraction], ...] = ()
    squares: Squares | None = None

    @staticmethod
    def for_limit(limit: AnyLimit) -> "Filter":
        """The default filter: most of delta goes to squares and to the order at which many small
        charges would fill this limit, the rest to other orders and to leaks."""
        if not isinstance(limit, Limit) or limit.delta == 0:
            return Filter(limit)
        best = _best_order(limit)
        shares = tuple((1 + (best - 1) * factor, limit.delta * part) for factor, part in _SPREAD)
        return Filter(limit, limit.delta * _LEAK_PART, shares, _squares(limit))

    def __post_init__(self) -> None:
        """Refuse shares that would add up to more than the limit's delta."""
        squares = Fraction(0) if self.squares is None else self.squares.share
        if self.leak < 0 or any(order <= 1 or share <= 0 for order, share in self.shares):
            raise InvalidArgument("a filter's orders lie above 1 and its shares of delta above 0")
        if self.squares is not None and not (squares > 0 and self.squares.floor >= 0):
            raise InvalidArgument("a filter's squares have a share above 0 and a floor from 0 on")
        delta = self.limit.delta if isinstance(self.limit, Limit) else Fraction(0)
        if self.leak + squares + sum(share for _, share in self.shares) > delta:
            raise InvalidArgument(
                "a filter's shares of delta add up to more than the limit's delta"
            )

    @property
    def tracks(self) -> tuple[Track, ...]:
        """What is added up, in the order of the sums in `Spent`."""
        return _tracks(self)

    @property
    def start(self) -> Spent:
        """Nothing spent."""
        return Spent(0, (0,) * len(self.tracks))

    def add(self, spent: Spent, loss: PrivacyLoss) -> Spent:
        """The sums after this charge, whether admitted or not; `NoBound` if they can't be known."""
        after = self._summed(spent, loss)
        if spent.alone is not None:
            return replace(after, alone=min(spent.alone + self._pure(loss), _EXHAUSTED))
        if spent == self.start and after.leak <= self.leak_bound and not self._is_within(after):
            return replace(after, alone=self.alone(loss))
        return after

    def admits(self, spent: Spent) -> bool:
        """Whether these sums are within the limit."""
        if spent.alone is not None and spent.alone <= self.bounds[0]:
            return True
        return self._is_within(spent)

    def alone(self, loss: PrivacyLoss) -> int | None:
        """What the charge costs by itself at the limit's delta, in whole `UNIT`; ``None`` if that
        is not known, or there is no delta."""
        if not isinstance(self.limit, Limit) or self.limit.delta == 0:
            return None
        try:
            epsilon = loss.epsilon(self.limit.delta)
        except NoBound:
            return None
        exact = fraction(epsilon) if math.isfinite(epsilon) else None
        return _units_up(exact, UNIT) if exact is not None and exact < _EXHAUSTED * UNIT else None

    @property
    def leak_bound(self) -> int:
        """The most that the leaks may add up to, in whole `LEAK_UNIT`."""
        return math.floor(self.leak / LEAK_UNIT)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The most that each sum may reach, in whole `UNIT`. No limit is so large that an
        exhausted sum would be within it."""
        return tuple(_bound(track) for track in self.tracks)

    def reached(self, spent: Spent) -> Fraction | None:
        """How far these sums have come, in the limit's own measure: epsilon at the filter's own
        shares of delta, rho, mu, or the largest part of a Renyi limit's bound at some order. The
        charge that brought them was admitted iff this is at most the limit's (1, of a Renyi
        limit). ``None`` if no sum tells, or the leaks are beyond their share."""
        if spent.alone is not None:
            return spent.alone * UNIT
        if spent.leak > self.leak_bound:
            return None
        found = [
            _within(self._reached(total, track), self.limit.most, is_within=total <= _bound(track))
            for total, track in zip(spent.sums, self.tracks, strict=True)
            if total < _EXHAUSTED
        ]
        if isinstance(self.limit, Limit):
            return min((one for one in found if one is not None), default=None)
        kept = [one for one in found if one is not None]
        return max(kept) if len(kept) == len(spent.sums) else None

    def pure_left(self, spent: Spent) -> Fraction:
        """The largest single pure epsilon, to one part in 10^9, that the sums would still admit."""

        def is_admitted(billionths: int) -> bool:
            loss = PrivacyLoss.of(Pure(Fraction(billionths, 10**9)))
            if spent.alone is not None:
                return self.admits(self.add(spent, loss))
            return self._is_within(self._summed(spent, loss))

        low, high = 0, 1  # high is refused in the end: each sum is within its bound or beyond it
        while is_admitted(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_admitted(middle) else (low, middle)
        return Fraction(low, 10**9)

    def _summed(self, spent: Spent, loss: PrivacyLoss) -> Spent:
        leak = _units_up(knowledge.leak(loss), LEAK_UNIT)
        pairs = zip(spent.sums, self.tracks, strict=True)
        sums = (min(total + _cost(track, loss), _EXHAUSTED) for total, track in pairs)
        return Spent(spent.leak + leak, tuple(sums))

    def _is_within(self, spent: Spent) -> bool:
        are_within = (s <= bound for s, bound in zip(spent.sums, self.bounds, strict=True))
        is_enough = any if isinstance(self.limit, Limit) else all
        return spent.leak <= self.leak_bound and is_enough(are_within)

    def _pure(self, loss: PrivacyLoss) -> int:
        """What the charge adds to a pure sum where no leak is allowed."""
        return _EXHAUSTED if knowledge.leak(loss) else _cost(self.tracks[0], loss)

    def _reached(self, total: int, track: Track) -> Fraction | None:
        """What one sum says of how far the charges have come."""
        if total == 0:
            return Fraction(0)
        match self.limit, track:
            case Limit(epsilon), SquaresOfMu(_, floor):
                assert self.squares is not None
                return epsilon_of_square(total * UNIT + floor, self.squares.share)
            case Limit(epsilon), _:
                return max(Fraction(0), epsilon + (total - _bound(track)) * UNIT)
            case MuLimit(), _:
                with precision(_BITS):
                    return upper_fraction(ball(total * UNIT).sqrt())
            case RenyiLimit(), _:
                return total * UNIT / track.most
        return total * UNIT


@lru_cache(maxsize=256)
def _tracks(chosen: Filter) -> tuple[Track, ...]:
    limit = chosen.limit
    match limit:
        case RhoLimit(rho):
            return (Rhos(rho),)
        case MuLimit(mu):
            return (SquaresOfMu(mu**2, Fraction(0)),)
        case RenyiLimit(bounds):
            return tuple(Order(order, most) for order, most in bounds)
    tracks: list[Track] = [Epsilons(limit.epsilon)]
    if chosen.squares is not None:
        share, floor = chosen.squares.share, chosen.squares.floor
        tracks.append(SquaresOfMu(largest_square(limit.epsilon, share) - floor, floor))
    with precision(_BITS):
        tracks += (Order(a, limit.epsilon + _room(a, share)) for a, share in chosen.shares)
    return tuple(tracks)


def _cost(track: Track, loss: PrivacyLoss) -> int:
    """Of terms that it can't count, a sum of epsilons or of squares is exhausted; without a
    Renyi divergence or a rho, a charge is refused."""
    try:
        return _units_up(track.cost(loss), UNIT)
    except NoBound:
        if isinstance(track, Epsilons | SquaresOfMu):
            return _EXHAUSTED
        raise


def _bound(track: Track) -> int:
    return min(math.floor(track.most / UNIT), _EXHAUSTED - 1)


def _within(number: Fraction | None, full: Fraction, *, is_within: bool) -> Fraction | None:
    """The number on the side of the limit that the whole units decided for."""
    if number is None:
        return None
    return min(number, full) if is_within else max(number, full + UNIT)


def _units_up(amount: Fraction, unit: Fraction) -> int:
    return math.ceil(amount / unit)


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


def _squares(limit: Limit) -> Squares | None:
    if limit.epsilon > _LARGEST_EPSILON:
        return None
    share = limit.delta * _SQUARES_PART
    floor = decimal_up(largest_square(limit.epsilon, share) * _FLOOR_PART, digits=3)
    return Squares(share, floor)
