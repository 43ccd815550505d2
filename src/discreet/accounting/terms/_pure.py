"""Pure epsilon-differential privacy."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number
from discreet.accounting._loss import Term
from discreet.accounting._one_bit import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import Pair, Side, randomized_response


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Pure(Term):
    """Anything that is epsilon-differentially private, nothing else being known of it.

    The worst such mechanism is randomized response on one bit (Kairouz, Oh and Viswanath 2015,
    Theorem 3.3 with delta 0), whose Renyi curve therefore bounds every other.

    >>> Pure(0.5)
    accounting.Pure(epsilon=0.5)
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        """Keep epsilon at its exact value."""
        object.__setattr__(self, "epsilon", _checks.not_negative(epsilon=epsilon))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.epsilon, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """The Renyi divergence of randomized response (Mironov 2017, Proposition 5)."""
        return randomized_response_renyi(self.epsilon, order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Randomized response on one bit."""
        return (randomized_response(self.epsilon),)

    def for_group(self, size: int) -> "Pure":
        """size * epsilon (Dwork and Roth 2014, Theorem 2.2)."""
        return Pure(size * self.epsilon)
