"""The Laplace mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import Pair, Side, laplace


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace(Term):
    """The Laplace mechanism; ``multiplier`` is the noise's scale over the L1 sensitivity, so that
    epsilon is 1 / multiplier.

    It stands for vectors of any length: many small moves never cost more than one of their total.

    >>> (1 * Laplace(4)).epsilon()
    0.25
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    multiplier: Fraction

    def __init__(self, multiplier: Number) -> None:
        """Keep the multiplier at its exact value."""
        object.__setattr__(self, "multiplier", _checks.positive(multiplier=multiplier))

    def approximate(self) -> tuple[Fraction, Fraction]:
        """(1 / multiplier, 0) (Dwork and Roth 2014, Theorem 3.6)."""
        return 1 / self.multiplier, Fraction(0)

    def renyi(self, order: Fraction) -> arb:
        """ln((a e^((a-1) eps) + (a-1) e^(-a eps)) / (2a-1)) / (a-1) (Mironov 2017, Proposition
        6), the largest power being taken out of the logarithm."""
        a, eps = ball(order), ball(1 / self.multiplier)
        rest = (a - 1) * ((1 - 2 * a) * eps).exp()
        return eps + ((a + rest) / (2 * a - 1)).log() / (a - 1)

    def zcdp(self) -> Fraction:
        """epsilon squared over 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return 1 / (2 * self.multiplier**2)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Two Laplace laws, one coordinate being moved by the whole sensitivity."""
        return (laplace(1 / self.multiplier),)

    def for_group(self, size: int) -> "Laplace":
        """The sensitivity is at most ``size`` times as large."""
        return Laplace(self.multiplier / size)
