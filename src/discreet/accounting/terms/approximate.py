"""Approximate, that is (epsilon, delta), differential privacy."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import checks
from discreet.accounting.loss import Term
from discreet.accounting.terms.pure import randomized_response_renyi
from discreet.exact import Number


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Approximate(Term):
    """Anything that is (epsilon, delta)-differentially private, nothing else being known of it.

    The worst such mechanism tells everything with probability delta and is randomized response
    otherwise (Kairouz, Oh and Viswanath 2015, Theorem 3.3).

    >>> (10 * Approximate(0.1, 1e-7)).epsilon(delta=1e-6)
    1.0
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        """Keep both at their exact value."""
        object.__setattr__(self, "epsilon", checks.not_negative(epsilon=epsilon))
        object.__setattr__(self, "delta", checks.delta(delta=delta))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta)."""
        return self.epsilon, self.delta

    def renyi(self, order: Fraction) -> arb:
        """Randomized response's, apart from what `leak` lets through."""
        return randomized_response_renyi(self.epsilon, order)

    def leak(self) -> Fraction:
        """delta."""
        return self.delta
