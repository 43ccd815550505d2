"""Bounds on single terms and on their sums: the plain data that all theorems work on.

A term states what is known of one kind of access, by the methods of `Bounds`. Where nothing is
known, a method returns `Unknown` with the reason; nothing is ever guessed. The functions below add
up what the terms of a sum state. Every bound holds in both directions, from a table to its
neighbour and back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

from flint import arb

from discreet._unit import Change
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.errors import NoBound

Known = TypeVar("Known")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Stands for a bound that is not known, and says why.

    ``term`` stands in place of ``{}`` in the text, which is written only if somebody reads it.
    """

    text: str
    term: object = None

    @property
    def reason(self) -> str:
        """The reason in words."""
        return self.text if self.term is None else self.text.format(repr(self.term))


TOO_LARGE = Unknown("its losses are too large for a grid")


def on_grid(*pairs: Pair | None) -> tuple[Pair, ...] | Unknown:
    """These pairs; `TOO_LARGE` if a grid can't hold one of them."""
    found = tuple(pair for pair in pairs if pair is not None)
    return found if len(found) == len(pairs) else TOO_LARGE


def known(found: Known | Unknown) -> Known:
    """The bound; raises `NoBound` with the reason if it is not known. For the edge only: inside,
    an `Unknown` is passed on."""
    if isinstance(found, Unknown):
        raise NoBound(found.reason)
    return found


class Bounds:
    """Bounds on the privacy loss of one kind of access. How often it happened is not known here:
    that is the sum's business.

    A term overrides the methods that it can answer. It needs `approximate` or `renyi` at least;
    the more it answers, the closer the bounds are.
    """

    __slots__ = ()

    # How neighbours must differ for the bounds to hold; None if they hold for any relation.
    change: ClassVar[Change | None] = None
    # Whether some mechanism has exactly the dominating pairs, so that no theorem can improve
    # on what follows from them.
    is_attained: ClassVar[bool] = False
    # Whether `renyi` is at least the divergence of the pairs, and `zcdp` is unknown. For one access
    # no theorem then improves on distributions and basic composition.
    follows_from_pairs: ClassVar[bool] = False
    # Whether three facts hold, apart from failures: one pair dominates in both directions;
    # exchanging its P and Q mirrors its losses; `renyi` is at least its divergence at each order.
    # A term around a sum means the exact pair here. `pairs` bounds that pair from above, on a grid.
    is_mirrored: ClassVar[bool] = False

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """Epsilon and delta of (epsilon, delta)-differential privacy, exactly."""
        return Unknown("{} has no fixed epsilon and delta", self)

    def renyi(self, order: Fraction) -> arb | Unknown:  # noqa: ARG002  # for those that know
        """A ball whose upper end bounds the Renyi divergence of an order above 1."""
        return Unknown("nothing is known of the Renyi divergence of {}", self)

    def zcdp(self) -> Fraction | Unknown:
        """The rho of rho-zCDP: the Renyi divergence of each order is at most rho times the
        order."""
        return Unknown("{} has no zCDP bound", self)

    def failure_probability(self) -> Fraction:
        """The probability with which `renyi` and `zcdp` need not hold: the delta of
        delta-approximate Renyi privacy (after Bun and Steinke 2016, Definition 8.1)."""
        return Fraction(0)

    def mu_squared(self) -> Fraction | Unknown:
        """The square of mu, if the term is exactly the Gaussian mechanism that is mu-Gaussian
        differentially private."""
        return Unknown("{} is no Gaussian mechanism", self)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:  # noqa: ARG002  # the same
        """Dominating pairs of laws: one pair for both directions; or two pairs, for a unit that is
        removed (the laws with it and without it) and for a unit that is added.
        From below, pairs that some mechanism with this term attains."""
        return Unknown("no dominating pair is known of {}", self)


class Sum(Protocol):
    """A formal sum of counted terms."""

    @property
    def terms(self) -> tuple[tuple[Bounds, int], ...]:
        """Each term with its count."""

    def __hash__(self) -> int:
        """Sums are values, of which results are cached."""


def summed(
    loss: Sum, bound: Callable[[Bounds], Known | Unknown], nothing: Known
) -> Known | Unknown:
    """The sum of each term's bound times its count; `Unknown` if the bound of any term is."""
    total: Any = nothing  # Any: numbers or balls
    for term, count in loss.terms:
        one: Any = bound(term)
        if isinstance(one, Unknown):
            return one
        total += count * one
    return total  # type: ignore[no-any-return]  # see above


def parts(loss: Sum) -> list[tuple[int, Fraction, Fraction]] | Unknown:
    """Each term's count, epsilon and delta."""
    found = []
    for term, count in loss.terms:
        one = term.approximate()
        if isinstance(one, Unknown):
            return one
        found.append((count, *one))
    return found


def approximate(loss: Sum) -> tuple[Fraction, Fraction] | Unknown:
    """Epsilon and delta by basic composition (Dwork and Roth 2014, Theorem 3.16)."""
    counted = parts(loss)
    if isinstance(counted, Unknown):
        return counted
    epsilon = sum((count * one for count, one, _ in counted), Fraction(0))
    return epsilon, sum((count * one for count, _, one in counted), Fraction(0))


def renyi(loss: Sum, order: Fraction) -> arb | Unknown:
    """A ball whose upper end bounds the sum's Renyi divergence of this order."""
    return summed(loss, lambda term: term.renyi(order), arb(0))


def renyi_curve(loss: Sum) -> Callable[[Fraction], arb] | Unknown:
    """The bound for each order; infinite at orders for which there is none."""
    if isinstance(anywhere := renyi(loss, Fraction(2)), Unknown):
        return anywhere

    def at(order: Fraction) -> arb:
        found = renyi(loss, order)
        return arb("inf") if isinstance(found, Unknown) else found

    return at


def zcdp(loss: Sum) -> Fraction | Unknown:
    """rho of the sum (Bun and Steinke 2016, Lemma 1.7)."""
    return summed(loss, lambda term: term.zcdp(), Fraction(0))


def failure_probability(loss: Sum) -> Fraction:
    """The probability with which the sum's Renyi bound need not hold (union bound)."""
    return sum((count * term.failure_probability() for term, count in loss.terms), Fraction(0))


def mu_squared(loss: Sum) -> Fraction | Unknown:
    """mu squared of a sum of Gaussian mechanisms only (Dong, Roth and Su 2022, Corollary 3.3)."""
    return summed(loss, lambda term: term.mu_squared(), Fraction(0))


def is_mirrored(loss: Sum) -> bool:
    """Whether all terms are mirrored, and so their sum."""
    return all(term.is_mirrored for term, _ in loss.terms)


def is_attained(loss: Sum) -> bool:
    """Whether some mechanism has exactly the pairs that dominate each term."""
    return all(term.is_attained for term, _ in loss.terms)


def follows_from_pairs(loss: Sum) -> bool:
    """Whether this is one access whose other bounds follow from its pairs."""
    return [(term.follows_from_pairs, count) for term, count in loss.terms] == [(True, 1)]
