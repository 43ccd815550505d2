"""The running sums of a filter: each has a cost for every charge, and a bound.

A cost is an upper bound, known before anything is drawn. It is `Unknown` for a charge with terms
that the sum can't count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet._exact import precision, upper_fraction
from discreet.accounting import _bounds
from discreet.accounting._bounds import Bounds, Unknown
from discreet.accounting._domination import square_of_pure
from discreet.accounting._loss import PrivacyLoss, Term

_BITS = 256


_BEYOND = Fraction(10**22)  # every bound, in units of 10^-18 a sum that is exhausted


class FilterSum(Protocol):
    """One running sum of a filter."""

    @property
    def most(self) -> Fraction:
        """The bound on the sum."""
        ...

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """The most that a charge adds to the sum."""
        ...


@dataclass(frozen=True, slots=True)
class Epsilons:
    """Pure epsilons, apart from leaks (basic composition: Dwork and Roth 2014, Theorem 3.16)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """The sum of the terms' epsilons."""
        return _sum_of(loss, pure_part)


@dataclass(frozen=True, slots=True)
class Order:
    """Renyi divergences of one order (Feldman and Zrnic 2021, Theorem 3.1, for sums that are
    chosen adaptively)."""

    order: Fraction
    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """The sum of the terms' divergences."""
        with precision(_BITS):
            divergence = _bounds.renyi(loss, self.order)
            if not isinstance(divergence, Unknown) and not divergence.is_finite():
                return _BEYOND  # this order's sum is exhausted
            return divergence if isinstance(divergence, Unknown) else upper_fraction(divergence)


@dataclass(frozen=True, slots=True)
class Rhos:
    """The rho of zCDP (Bun and Steinke 2016, Lemma 1.7; adaptively, since it is so for the Renyi
    divergence of each order: Feldman and Zrnic 2021, Whitehouse et al. 2023)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """The sum of the terms' rho."""
        return _bounds.zcdp(loss)


@dataclass(frozen=True, slots=True)
class SquaresOfMu:
    """Squares of mu of Gaussian differential privacy (Smith and Thakurta 2022, for sums that are
    chosen adaptively). Pure charges count too, by a normal law that dominates them while ``floor``
    stays unspent: ``most`` is that much below what the sum could otherwise reach."""

    most: Fraction
    floor: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction | Unknown:
        """The sum of the terms' squares."""
        return _sum_of(loss, self._square)

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
    """The epsilon that bounds a term's privacy loss but with its failure probability."""
    whole = term.approximate()
    if isinstance(whole, Unknown) or whole[1] > term.failure_probability():
        return Unknown(f"{term!r} has no fixed epsilon apart from its leaks")
    return whole[0]


def _sum_of(loss: PrivacyLoss, cost: Callable[[Bounds], Fraction | Unknown]) -> Fraction | Unknown:
    total = Fraction(0)
    for term, count in loss.terms:
        one = cost(term)
        if isinstance(one, Unknown):
            return one
        total += count * one
    return total
