"""What can be known of a term, each kind as a role of one method; a term has those it states.

A question for which a term has no role raises `NoBound`; nothing is ever guessed. Every bound
holds in both directions, from a table to its neighbour and back.
"""
# mypy: disable-error-code="type-abstract"

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Protocol, TypeGuard, TypeVar, runtime_checkable

from flint import arb

from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting.pld._dominating_pairs import Pair, Side, normal, tells_nothing
from discreet.errors import NoBound


@runtime_checkable
class KnowsApproximate(Protocol):
    """(epsilon, delta)-DP, as two exact numbers."""

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta."""
        ...


@runtime_checkable
class KnowsRenyi(Protocol):
    """A ball whose upper end bounds the Renyi divergence of an order above 1."""

    def renyi(self, order: Fraction) -> arb:
        """The ball for this order."""
        ...


@runtime_checkable
class KnowsZcdp(Protocol):
    """rho-zCDP: the Renyi divergence of each order is at most rho times the order."""

    def zcdp(self) -> Fraction:
        """rho."""
        ...


@runtime_checkable
class KnowsGaussian(Protocol):
    """mu squared, where the term is exactly the Gaussian mechanism that is mu-Gaussian DP."""

    def gaussian(self) -> Fraction:
        """mu squared."""
        ...


@runtime_checkable
class KnowsGroups(Protocol):
    """What the same access costs several units together."""

    def for_group(self, size: int) -> Term:
        """The term for neighbours that are this many steps apart."""
        ...


@runtime_checkable
class Leaks(Protocol):
    """The probability with which the term's Renyi bound need not hold (delta-approximate
    Renyi, after Bun and Steinke 2016, Definition 8.1); 0 for terms without this role."""

    def leak(self) -> Fraction:
        """That probability."""
        ...


@runtime_checkable
class Mirrored(Protocol):
    """Whether one pair dominates in both orders of the neighbours, exchanging P and Q mirrors its
    losses, and `renyi` is nowhere below its divergence; all apart from leaks. Nothing of this is
    taken for granted of terms without this role."""

    @property
    def is_mirrored(self) -> bool:
        """Whether all of that is so."""
        ...


@runtime_checkable
class KnowsPairs(Protocol):
    """Dominating pairs of laws, for neighbours in either order."""

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """One pair that serves both orders; or the pair for a unit that goes, that is of the table
        with it and the one without, and the pair for one that comes. From below, pairs that some
        mechanism with this term attains."""
        ...


Role = TypeVar("Role")


def plays(term: Term, role: type[Role]) -> TypeGuard[Role]:
    """Whether the term has this role: `isinstance`, asked once for each kind of term, since of
    protocols it takes long to answer."""
    return _plays(type(term), role)  # type: ignore[arg-type]  # types are hashable


@cache
def _plays(kind: type[Term], role: type) -> bool:
    return issubclass(kind, role)


def approximate(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """Epsilon and delta by basic composition (Dwork and Roth 2014, Theorem 3.16)."""
    counted = list(parts(loss))
    epsilon = sum((count * one for count, one, _ in counted), Fraction(0))
    return epsilon, sum((count * one for count, _, one in counted), Fraction(0))


def parts(loss: PrivacyLoss) -> Iterator[tuple[int, Fraction, Fraction]]:
    """How often each term happened, its epsilon and its delta."""
    for term, count in loss.terms:
        if not plays(term, KnowsApproximate):
            raise NoBound(f"{term!r} has no fixed epsilon and delta")
        yield count, *term.approximate()


def renyi(loss: PrivacyLoss, order: Fraction) -> arb:
    """A ball whose upper end bounds the sum's Renyi divergence of this order."""
    total = arb(0)
    for term, count in loss.terms:
        if not plays(term, KnowsRenyi):
            raise NoBound(f"nothing is known of the Renyi divergence of {term!r}")
        total += count * term.renyi(order)
    return total


def zcdp(loss: PrivacyLoss) -> Fraction:
    """rho of the sum (Bun and Steinke 2016, Lemma 1.7)."""
    rho = Fraction(0)
    for term, count in loss.terms:
        if not plays(term, KnowsZcdp):
            raise NoBound(f"{term!r} has no zCDP bound")
        rho += count * term.zcdp()
    return rho


def gaussian(loss: PrivacyLoss) -> Fraction:
    """mu squared of the sum, which must be of Gaussian mechanisms only (Dong, Roth and Su 2022,
    Corollary 3.3)."""
    mu_squared = Fraction(0)
    for term, count in loss.terms:
        if not plays(term, KnowsGaussian):
            raise NoBound(f"{term!r} is no Gaussian mechanism")
        mu_squared += count * term.gaussian()
    return mu_squared


def leak(loss: PrivacyLoss) -> Fraction:
    """The probability with which the sum's Renyi bound need not hold (union bound)."""
    return sum((n * t.leak() for t, n in loss.terms if plays(t, Leaks)), Fraction(0))


def is_mirrored(loss: PrivacyLoss) -> bool:
    """Whether all terms are `Mirrored`, and so their sum."""
    return all(isinstance(term, Mirrored) and term.is_mirrored for term, _ in loss.terms)


def is_attained(loss: PrivacyLoss) -> bool:
    """Whether, for all terms, some mechanism has just the pairs that dominate: then no theorem can
    say less of the sum than these do."""
    return all(term.is_attained for term, _ in loss.terms)


def pairs(loss: PrivacyLoss, side: Side) -> list[list[tuple[Pair, int]]]:
    """For each order of the neighbours, or once for both, the pairs of all terms, counted.
    Gaussian mechanisms together are one (Dong, Roth and Su 2022, Corollary 3.3)."""
    known: list[tuple[tuple[Pair, ...], int]] = []
    mu_squared = Fraction(0)
    for term, count in loss.terms:
        if plays(term, KnowsGaussian):
            mu_squared += count * term.gaussian()
            continue
        if not plays(term, KnowsPairs):
            raise NoBound(f"no dominating pair is known of {term!r}")
        both = term.pairs(side)
        if not all(tells_nothing(pair) for pair in both):
            known.append((both, count))
    if mu_squared:
        known.append(((normal(mu_squared),), 1))
    orders = max((len(pair) for pair, _ in known), default=1)
    return [[(both[min(n, len(both) - 1)], count) for both, count in known] for n in range(orders)]


def for_group(loss: PrivacyLoss, size: int) -> PrivacyLoss:
    """The sum for neighbours that are this many steps apart."""
    if size == 1:
        return loss
    terms = []
    for term, count in loss.terms:
        if not plays(term, KnowsGroups):
            raise NoBound(f"nothing is known of what {term!r} costs a group")
        terms.append((term.for_group(size), count))
    return PrivacyLoss(tuple(terms), loss.unit)
