"""The running sums of a filter, and what a charge adds to them, as whole numbers, rounded up.

Squares, orders and failures each have a share of delta. The shares must add up to at most the
limit's delta: a strategy may spend the failures in nearly all transcripts, and the squares in the
few transcripts in which they matter.

Each running sum has a bound. It computes a cost for every charge: an upper bound that is known
before anything is drawn. The cost is `Unknown` if the sum can't count a term of the charge.

A charge is counted in one or two ways. In the plain way, each term counts by itself. The other way
combines the terms that have no square of mu, such as the steps of a training run: together they
count as one Gaussian mechanism that fails with a small probability. Only failures and squares
depend on the way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from discreet._budget import Limit
from discreet._exact import (
    ball,
    decimal_down,
    decimal_up,
    lower_fraction,
    precision,
    upper_fraction,
)
from discreet.accounting import _bounds
from discreet.accounting._bounds import Bounds, Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting._renyi import log_conversion
from discreet.accounting.filter._domination import (
    chords,
    largest_square,
    square_of_pure,
    with_failure,
)

RESOLUTION = Fraction(1, 10**18)
FAILURE_RESOLUTION = Fraction(1, 10**60)
EXHAUSTED = 10**40  # a sum that reaches this stays here, beyond every bound
SQUARES = 1  # the place of the squares among the sums, where there are any
# The rounding of another machine may enlarge a square by this factor.
_ELSEWHERE = 1 + Fraction(1, 10**6)
_BEYOND = Fraction(10**22)  # exhausts every sum: `EXHAUSTED` in multiples of `RESOLUTION`
_BITS = 256
_LARGEST_EPSILON = 10**6  # squares are counted under limits up to here
# The epsilon * ln(1/delta) at which the formula for failures would give all of delta.
_FULL_SHARE_AT = 220


# Shares of delta. The default serves all kinds of charges. The shares for training give nearly all
# of delta to squares, which give the tightest cost of training runs and Gaussian noise. The shares
# for failures give half of delta to charges that fail with a small probability, such as private
# keys. If epsilon is large and delta small, the default also gives failures a large share.


@dataclass(frozen=True, slots=True)
class Squares:
    """How a filter counts squares of mu: at this share of delta. A part ``floor`` of the largest
    sum of squares stays unspent, which makes small pure charges cheaper."""

    share: Fraction
    floor: Fraction


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of delta for failures, for squares and for orders, and the part of the squares that
    stays unspent. An order is given as (order - 1) / (best order - 1)."""

    failures: Fraction
    squares: Fraction
    floor: Fraction
    orders: tuple[tuple[int, Fraction], ...]

    def towards(self, other: "Shares", weight: Fraction) -> "Shares":
        """The mean of these shares and the other ones, with this weight for the others; both have
        the same orders."""

        def between(one: Fraction, two: Fraction) -> Fraction:
            return one + weight * (two - one)

        pairs = zip(self.orders, other.orders, strict=True)
        return Shares(
            between(self.failures, other.failures),
            between(self.squares, other.squares),
            between(self.floor, other.floor),
            tuple((times, between(one, two)) for (times, one), (_, two) in pairs),
        )

    def of_failures(self, limit: Limit) -> Fraction:
        """The part of this limit's delta for failures."""
        return limit.delta * self.failures

    def of_orders(self, limit: Limit) -> tuple[tuple[Fraction, Fraction], ...]:
        """Each order with its part of this limit's delta."""
        best = _best_order(limit)
        return tuple((1 + (best - 1) * times, limit.delta * part) for times, part in self.orders)

    def of_squares(self, limit: Limit) -> Squares | None:
        """The counting of squares; none if epsilon is too large to be useful."""
        if limit.epsilon > _LARGEST_EPSILON:
            return None
        share = limit.delta * self.squares
        floor = decimal_up(largest_square(limit.epsilon, share) * self.floor, digits=3)
        return Squares(share, floor)


FOR_SMALL_LIMITS = Shares(
    failures=Fraction(10, 100),
    squares=Fraction(42, 100),
    floor=Fraction(1, 100),
    orders=(
        (1, Fraction(35, 100)),
        (2, Fraction(5, 100)),  # this order and larger ones serve
        (4, Fraction(3, 100)),  # after large pure charges
        (10, Fraction(3, 100)),
        (30, Fraction(2, 100)),
    ),
)
FOR_TRAINING = Shares(
    failures=Fraction(10, 100),
    squares=Fraction(88, 100),
    floor=Fraction(1, 200),
    orders=((1, Fraction(2, 100)),),
)

FOR_FAILURES = Shares(
    failures=Fraction(50, 100),
    squares=Fraction(26, 100),
    floor=Fraction(1, 100),
    orders=(
        (1, Fraction(20, 100)),
        (2, Fraction(2, 100)),
        (4, Fraction(1, 100)),
        (10, Fraction(1, 200)),
        (30, Fraction(1, 200)),
    ),
)


def default_shares(limit: Limit) -> Shares:
    """The default shares. The part for failures is epsilon * ln(1/delta) / 220, at least 10 % and
    at most 50 %; with it the other parts go from those of `FOR_SMALL_LIMITS` to `FOR_FAILURES`.

    Under a large epsilon many charges fit, so their failures run out first. The smaller delta is,
    the less the other sums lose if a part of it is taken from them.
    """
    least, most = FOR_SMALL_LIMITS.failures, FOR_FAILURES.failures
    with precision(_BITS):
        part = lower_fraction(-ball(limit.delta).log() * ball(limit.epsilon)) / _FULL_SHARE_AT
    part = least if part <= least else min(decimal_down(part, digits=3), most)
    return FOR_SMALL_LIMITS.towards(FOR_FAILURES, (part - least) / (most - least))


def room(order: Fraction, share: Fraction) -> Fraction:
    """ln(share / c) / (order - 1), rounded down: how far a Renyi sum may exceed epsilon."""
    return lower_fraction((ball(share).log() - log_conversion(order)) / ball(order - 1))


@lru_cache(maxsize=64)  # hundreds of logarithms; most ledgers have one of few limits
def _best_order(limit: Limit) -> Fraction:
    """The order at which zCDP charges of the largest total rho fit: bound / order is largest."""
    half = limit.delta / 2
    with precision(_BITS):
        steps = (decimal_up(Fraction(10 ** (step / 20)), digits=3) for step in range(-80, 181))
        orders = (1 + step for step in steps)
        return max(orders, key=lambda order: (limit.epsilon + room(order, half)) / order)


# The running sums


class FilterSum(Protocol):
    """One running sum of a filter, at most ``most``."""

    @property
    def most(self) -> Fraction:
        """The bound on the sum."""

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """An upper bound on what the charge adds to the sum."""


@dataclass(frozen=True, slots=True)
class EpsilonSum:
    """Pure epsilons; failures are counted apart (basic composition: Dwork and Roth 2014, Theorem
    3.16)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        return _bounds.summed(loss, pure_part, Fraction(0))


@dataclass(frozen=True, slots=True)
class RenyiSum:
    """Renyi divergences of one order (Feldman and Zrnic 2021, Theorem 3.1, for sums that are
    chosen adaptively)."""

    order: Fraction
    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        with precision(_BITS):
            divergence = _bounds.renyi(loss, self.order)
            if not isinstance(divergence, Unknown) and not divergence.is_finite():
                return _BEYOND  # this order's sum is exhausted
            return divergence if isinstance(divergence, Unknown) else upper_fraction(divergence)


@dataclass(frozen=True, slots=True)
class RhoSum:
    """The rho of zCDP (Bun and Steinke 2016, Lemma 1.7). It adds up for adaptive charges too, as
    Renyi divergences of each order do (Feldman and Zrnic 2021, Whitehouse et al. 2023)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        return _bounds.zcdp(loss)


@dataclass(frozen=True, slots=True)
class MuSquaredSum:
    """Squares of mu of Gaussian differential privacy (Smith and Thakurta 2022, for sums that are
    chosen adaptively).

    Pure charges count by a normal law that dominates them while ``floor`` stays unspent. So
    ``most`` already leaves the floor out.
    """

    most: Fraction
    floor: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        return _bounds.summed(loss, self._square, Fraction(0))

    def split(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The terms that have a square of their own, and those that have none."""
        parts: tuple[list[tuple[Term, int]], ...] = ([], [])
        for term, count in loss.terms:
            has_none = isinstance(self._square(term), Unknown)
            parts[has_none].append((term, count))
        return PrivacyLoss(tuple(parts[0])), PrivacyLoss(tuple(parts[1]))

    def _square(self, term: Bounds) -> Fraction | Unknown:
        square = term.mu_squared()
        if not isinstance(square, Unknown):
            return square
        epsilon = pure_part(term)
        return epsilon if isinstance(epsilon, Unknown) else square_of_pure(epsilon, self.floor)


def pure_part(term: Bounds) -> Fraction | Unknown:
    """The epsilon that bounds a term's privacy loss, except with its failure probability."""
    whole = term.approximate()
    if isinstance(whole, Unknown) or whole[1] > term.failure_probability():
        return Unknown(f"{term!r} has no fixed epsilon apart from its failures")
    return whole[0]


# Costs of charges


@dataclass(frozen=True, slots=True)
class Counting:
    """One way to count a charge: its additions to the failures and to each sum."""

    failures: int
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FilterCost:
    """The addition of a charge to the sums of one filter. It is known before anything is drawn,
    and it doesn't depend on earlier charges.

    ``ways`` holds one or two ways to count it, in order of preference. ``alone`` is the cost of the
    charge by itself with all of delta, if it fits the filter in no way.
    """

    ways: tuple[Counting, ...]
    alone: int | None = None

    @property
    def plain(self) -> Counting:
        """The way that adds the least to the failures."""
        return min(self.ways, key=lambda way: way.failures)


def plain_counting(sums: Sequence[FilterSum], loss: PrivacyLoss) -> Counting:
    """Each term counted by itself."""
    failures = rounded_up(_bounds.failure_probability(loss), FAILURE_RESOLUTION)
    return Counting(failures, tuple(_cost(each, loss) for each in sums))


def counting_with_failure(
    squares: MuSquaredSum,
    loss: PrivacyLoss,
    plain: Counting,
    *,
    share: Fraction,
    failure: Fraction | None = None,
) -> Counting | None:
    """Count the terms without a square as one Gaussian mechanism that may fail.

    Without ``failure``, the probability of the failure lets the most copies fit into the ``share``.
    With a ``failure`` that an earlier charge recorded, the normal value is the one for it, reduced
    by the largest difference between machines. ``None`` if there are no such terms, or no such
    normal value.
    """
    with_square, rest = squares.split(loss)
    if not rest.terms or _bounds.failure_probability(rest):
        return None
    both = (
        with_failure(rest, share, squares.most)
        if failure is None
        else _recorded(rest, share, failure)
    )
    if isinstance(both, Unknown):
        return None
    chosen, square = both
    total = min(rounded_up(known(squares.cost(with_square)) + square, RESOLUTION), EXHAUSTED)
    sums = (*plain.sums[:SQUARES], total, *plain.sums[SQUARES + 1 :])
    return Counting(plain.failures + rounded_up(chosen, FAILURE_RESOLUTION), sums)


def _recorded(
    loss: PrivacyLoss, share: Fraction, failure: Fraction
) -> tuple[Fraction, Fraction] | Unknown:
    profile = chords(loss, share)
    if isinstance(profile, Unknown):
        return profile
    square = profile.square(failure)
    return square if isinstance(square, Unknown) else (failure, square / _ELSEWHERE)


def rounded_up(amount: Fraction, unit: Fraction) -> int:
    return math.ceil(amount / unit)


def _cost(each: FilterSum, loss: PrivacyLoss) -> int:
    """Terms that a sum of epsilons or squares can't count exhaust it. A charge without a Renyi
    divergence or a rho is refused by `NoBound`."""
    cost = each.cost(loss)
    if isinstance(cost, Unknown) and isinstance(each, EpsilonSum | MuSquaredSum):
        return EXHAUSTED
    return rounded_up(known(cost), RESOLUTION)


# The totals


@dataclass(frozen=True, slots=True)
class Spent:
    """The failures and the running sums of a filter, in whole units.

    ``alone`` is set if the first charge was beyond all sums: its cost by itself with all of delta,
    plus the pure epsilons since then. A sum that reaches ``EXHAUSTED`` stays there, beyond every
    bound.
    """

    failures: int
    sums: tuple[int, ...]
    alone: int | None = None

    def plus(self, added: Counting | None) -> "Spent":
        """These sums with these additions; ``alone`` stays as it is."""
        if added is None:
            return self
        pairs = zip(self.sums, added.sums, strict=True)
        sums = tuple(min(total + more, EXHAUSTED) for total, more in pairs)
        return Spent(self.failures + added.failures, sums, self.alone)

    def beside(self, reserved: Counting | None) -> "Spent":
        """The sums as if the reserved amount were spent, too."""
        after = self.plus(reserved)
        if reserved is None or self.alone is None:
            return after
        return Spent(after.failures, after.sums, min(self.alone + pure(reserved), EXHAUSTED))


def pure(added: Counting) -> int:
    """The addition to the pure epsilons where no failure may follow a first charge alone."""
    return EXHAUSTED if added.failures else added.sums[0]
