"""The Gaussian mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet.accounting._loss import Term
from discreet.accounting.pld._dominating_pairs import Pair, Side, normal


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian(Term):
    """The Gaussian mechanism; ``multiplier`` is its standard deviation over the L2 sensitivity.

    It stands for vectors of any length, and for rounded Gaussian noise on integers too: rounding
    v + Z, for an integer v, is adding the rounded Z, so it is post-processing.

    >>> (1 * Gaussian(4.0)).epsilon(delta=1e-6)
    1.0607018623282738
    """

    is_mirrored: ClassVar[bool] = True
    is_attained: ClassVar[bool] = True

    multiplier: Fraction

    def __init__(self, multiplier: Number) -> None:
        """Keep the multiplier at its exact value."""
        object.__setattr__(self, "multiplier", _checks.positive(multiplier=multiplier))

    def gaussian(self) -> Fraction:
        """mu squared, mu being 1 / multiplier (Dong, Roth and Su 2022, Theorem 2.7)."""
        return 1 / self.multiplier**2

    def renyi(self, order: Fraction) -> arb:
        """order / (2 multiplier^2) (Mironov 2017, Proposition 7)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """1 / (2 multiplier^2) (Bun and Steinke 2016, Proposition 1.6)."""
        return 1 / (2 * self.multiplier**2)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """Two normal laws, one standard deviation over the multiplier apart."""
        return (normal(self.gaussian()),)

    def for_group(self, size: int) -> "Gaussian":
        """The sensitivity is at most ``size`` times as large."""
        return Gaussian(self.multiplier / size)
