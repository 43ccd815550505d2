"""The running sums of a filter, and what a charge adds to them, in whole units, rounded up.

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
from typing import Protocol

from discreet._exact import precision, upper_fraction
from discreet.accounting import _bounds
from discreet.accounting._bounds import Bounds, Unknown, known
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting.filter._domination import chords, square_of_pure, with_failure

UNIT = Fraction(1, 10**18)
FAILURE_UNIT = Fraction(1, 10**60)
EXHAUSTED = 10**40  # a sum that reaches this stays here, beyond every bound
SQUARES = 1  # the place of the squares among the sums, where there are any
# The rounding of another machine may enlarge a square by this factor.
_ELSEWHERE = 1 + Fraction(1, 10**6)
_BEYOND = Fraction(10**22)  # exhausts every sum: `EXHAUSTED` units
_BITS = 256


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
    failures = units_up(_bounds.failure_probability(loss), FAILURE_UNIT)
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
    total = min(units_up(known(squares.cost(with_square)) + square, UNIT), EXHAUSTED)
    sums = (*plain.sums[:SQUARES], total, *plain.sums[SQUARES + 1 :])
    return Counting(plain.failures + units_up(chosen, FAILURE_UNIT), sums)


def _recorded(
    loss: PrivacyLoss, share: Fraction, failure: Fraction
) -> tuple[Fraction, Fraction] | Unknown:
    profile = chords(loss, share)
    if isinstance(profile, Unknown):
        return profile
    square = profile.square(failure)
    return square if isinstance(square, Unknown) else (failure, square / _ELSEWHERE)


def units_up(amount: Fraction, unit: Fraction) -> int:
    return math.ceil(amount / unit)


def _cost(each: FilterSum, loss: PrivacyLoss) -> int:
    """Terms that a sum of epsilons or squares can't count exhaust it. A charge without a Renyi
    divergence or a rho is refused by `NoBound`."""
    cost = each.cost(loss)
    if isinstance(cost, Unknown) and isinstance(each, EpsilonSum | MuSquaredSum):
        return EXHAUSTED
    return units_up(known(cost), UNIT)


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
