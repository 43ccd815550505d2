"""What a filter adds up: each track has a cost for every charge, and the most it may reach.

A cost is an upper bound, known before the charge is drawn. What a term knows of itself decides
which tracks it can be counted on (`discreet.accounting._knowledge`); where it can't, the track
raises `NoBound`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet._exact import precision, upper_fraction
from discreet.accounting import _knowledge
from discreet.accounting._domination import square_of_pure
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.errors import NoBound

_BITS = 256


class Track(Protocol):
    """One running sum of a filter."""

    @property
    def most(self) -> Fraction:
        """What the sum may reach."""
        ...

    def cost(self, loss: PrivacyLoss) -> Fraction:
        """What a charge adds to the sum, at most; `NoBound` if that can't be known."""
        ...


@dataclass(frozen=True, slots=True)
class Epsilons:
    """Pure epsilons, apart from leaks (basic composition: Dwork and Roth 2014, Theorem 3.16)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction:
        """The sum of the terms' epsilons."""
        return sum((count * pure_part(term) for term, count in loss.terms), Fraction(0))


@dataclass(frozen=True, slots=True)
class Order:
    """Renyi divergences of one order (Feldman and Zrnic 2021, Theorem 3.1, for sums that are
    chosen adaptively)."""

    order: Fraction
    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction:
        """The sum of the terms' divergences."""
        with precision(_BITS):
            return upper_fraction(_knowledge.renyi(loss, self.order))


@dataclass(frozen=True, slots=True)
class Rhos:
    """The rho of zCDP (Bun and Steinke 2016, Lemma 1.7; adaptively, since it is so for the Renyi
    divergence of each order: Feldman and Zrnic 2021, Whitehouse et al. 2023)."""

    most: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction:
        """The sum of the terms' rho."""
        return _knowledge.zcdp(loss)


@dataclass(frozen=True, slots=True)
class SquaresOfMu:
    """Squares of mu of Gaussian differential privacy (Smith and Thakurta 2022, for sums that are
    chosen adaptively). Pure charges count too, by a normal law that dominates them while ``floor``
    stays unspent: ``most`` is that much below what the sum could otherwise reach."""

    most: Fraction
    floor: Fraction

    def cost(self, loss: PrivacyLoss) -> Fraction:
        """The sum of the terms' squares."""
        return sum((count * self._square(term) for term, count in loss.terms), Fraction(0))

    def counted(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The terms that have a square of their own, and those that have none."""
        parts: tuple[list[tuple[Term, int]], ...] = ([], [])
        for term, count in loss.terms:
            try:
                self._square(term)
            except NoBound:
                parts[1].append((term, count))
            else:
                parts[0].append((term, count))
        return PrivacyLoss(tuple(parts[0])), PrivacyLoss(tuple(parts[1]))

    def _square(self, term: Term) -> Fraction:
        if isinstance(term, _knowledge.KnowsGaussian):
            return term.gaussian()
        return square_of_pure(pure_part(term), self.floor)


def pure_part(term: Term) -> Fraction:
    """The epsilon that bounds a term's privacy loss everywhere but in its leaks."""
    if isinstance(term, _knowledge.KnowsApproximate):
        epsilon, delta = term.approximate()
        if delta <= (term.leak() if isinstance(term, _knowledge.Leaks) else 0):
            return epsilon
    raise NoBound(f"{term!r} has no fixed epsilon apart from its leaks")
