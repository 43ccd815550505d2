"""Approximate, that is (epsilon, delta), differential privacy."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, decimal_up, precision, upper_fraction
from discreet.accounting._loss import Term
from discreet.accounting._one_bit import randomized_response_renyi
from discreet.accounting.pld._dominating_pairs import Pair, Side, randomized_response
from discreet.errors import NoBound

_BITS = 256


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Approximate(Term):
    """Anything that is (epsilon, delta)-differentially private, nothing else being known of it.

    The worst such mechanism tells everything with probability delta and is randomized response
    otherwise (Kairouz, Oh and Viswanath 2015, Theorem 3.3).

    >>> (10 * Approximate(0.1, 1e-7)).epsilon(delta=1e-6)
    1.0
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        """Keep both at their exact value."""
        object.__setattr__(self, "epsilon", _checks.not_negative(epsilon=epsilon))
        object.__setattr__(self, "delta", _checks.delta(delta=delta))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta)."""
        return self.epsilon, self.delta

    def renyi(self, order: Fraction) -> arb:
        """Randomized response's, apart from what `leak` lets through."""
        return randomized_response_renyi(self.epsilon, order)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4), with the same care."""
        return self.epsilon**2 / 2

    def leak(self) -> Fraction:
        """delta."""
        return self.delta

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Randomized response, unless everything is told."""
        return (randomized_response(self.epsilon, leak=self.delta),)

    def for_group(self, size: int) -> "Approximate":
        """size * epsilon, and delta times the sum of e^(i epsilon) for i below the size (as in
        Dwork and Roth 2014, Theorem 2.2, a step at a time), rounded up to 12 digits."""
        with precision(_BITS):
            grown = ball(size * self.epsilon).expm1()
            steps = grown / ball(self.epsilon).expm1() if self.epsilon else arb(size)
            total = ball(self.delta) * steps
        if size == 1 or not self.delta:
            return Approximate(size * self.epsilon, self.delta)
        if not total < 1 or (delta := decimal_up(upper_fraction(total), digits=12)) >= 1:
            raise NoBound(f"{self!r} leaves no guarantee for a group of {size}")
        return Approximate(size * self.epsilon, delta)
