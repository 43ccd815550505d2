"""The discrete Gaussian mechanism on vectors with an L2 bound."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet import _checks
from discreet._exact import Number, ball
from discreet.accounting._loss import Term


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DiscreteGaussianVector(Term):
    """Independent integer noise with P(x) proportional to exp(-x^2 / (2 stddev^2)) on each
    coordinate of an integer vector, whose squared L2 distance to a neighbour is at most
    ``squared_sensitivity``.

    Its Renyi divergences are known; no pair of laws is known that dominates all directions of a
    move. For one coordinate, or an L1 bound, there is `DiscreteGaussian`.

    >>> (1 * DiscreteGaussianVector(10, squared_sensitivity=8)).zcdp()
    0.04
    """

    stddev: Fraction
    squared_sensitivity: Fraction

    def __init__(self, stddev: Number, squared_sensitivity: Number) -> None:
        """Keep both at their exact value."""
        object.__setattr__(self, "stddev", _checks.positive(stddev=stddev))
        square = _checks.positive(squared_sensitivity=squared_sensitivity)
        object.__setattr__(self, "squared_sensitivity", square)

    def renyi(self, order: Fraction) -> arb:
        """order * zcdp (Canonne, Kamath and Steinke 2020, Theorem 4, a coordinate at a time)."""
        return ball(order * self.zcdp())

    def zcdp(self) -> Fraction:
        """squared_sensitivity / (2 stddev^2)."""
        return self.squared_sensitivity / (2 * self.stddev**2)

    def for_group(self, size: int) -> "DiscreteGaussianVector":
        """The distance is at most ``size`` times as large."""
        return DiscreteGaussianVector(self.stddev, size**2 * self.squared_sensitivity)
