"""Zero-concentrated differential privacy."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import Pair, Side, normal
from discreet.errors import NoBound


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Zcdp(Term):
    """Anything that is rho-zero-concentrated differentially private (Bun and Steinke 2016,
    Definition 1.1), nothing else being known of it.

    >>> Zcdp(0.1)
    accounting.Zcdp(rho=0.1)
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        """Keep rho at its exact value."""
        object.__setattr__(self, "rho", _checks.not_negative(rho=rho))

    def renyi(self, order: Fraction) -> arb:
        """rho times the order, by definition."""
        return ball(self.rho * order)

    def zcdp(self) -> Fraction:
        """rho."""
        return self.rho

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """From below, the Gaussian mechanism's, which satisfies it; no pair dominates all."""
        if side is Side.UPPER:
            raise NoBound(f"no dominating pair is known of {self!r}")
        return (normal(2 * self.rho),)

    def for_group(self, size: int) -> "Zcdp":
        """size^2 * rho (Bun and Steinke 2016, Proposition 1.9)."""
        return Zcdp(size**2 * self.rho)
