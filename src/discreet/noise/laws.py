"""The laws of the noise: what is the chance of an outcome of at least this magnitude.

Each law is symmetric about 0. Its outcome's magnitude is at least k, for k of 1 and above, iff
a uniform U in (0, 1) lies below ``tail(k)``; ``inverse`` turns that around.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import arb

from discreet.exact import ball, precision

_BITS = 128


class Law(Protocol):
    """A symmetric law on the integers."""

    def tail(self, magnitude: int) -> arb:
        """The probability of an outcome at least this far from 0, for a magnitude above 0."""
        ...

    def inverse(self, uniform: arb) -> arb:
        """The real x with: ``uniform < tail(k)`` iff ``k < x``, for every whole k above 0."""
        ...

    def stddev(self) -> float:
        """The law's standard deviation, to one part in 10^9; one below 10^-150 may show as 0."""
        ...


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw:
    """P(x) = (1 - p) / (1 + p) p^|x| with p = exp(-1 / scale), for any rational scale above 0."""

    scale: Fraction

    def tail(self, magnitude: int) -> arb:
        """2 p^k / (1 + p)."""
        return 2 * self._power(magnitude) / (1 + self._power(1))

    def inverse(self, uniform: arb) -> arb:
        """-scale ln(U (1 + p) / 2)."""
        return -ball(self.scale) * (uniform * (1 + self._power(1)) / 2).log()

    def stddev(self) -> float:
        """sqrt(2 p) / (1 - p)."""
        with precision(_BITS):
            rest = -ball(-1 / self.scale).expm1()
            return float(arb(2).sqrt() * self._power(Fraction(1, 2)) / rest)

    def _power(self, exponent: Fraction | int) -> arb:
        return (-ball(exponent / self.scale)).exp()


@dataclass(frozen=True, slots=True)
class RoundedGaussianLaw:
    """round(Z) for Z normal about 0 with this standard deviation, for any rational one above 0."""

    sigma: Fraction

    def tail(self, magnitude: int) -> arb:
        """P(|Z| > k - 1/2)."""
        return (ball(magnitude - Fraction(1, 2)) / self._root()).erfc()

    def inverse(self, uniform: arb) -> arb:
        """sigma sqrt(2) erfc^-1(U) + 1/2."""
        return self._root() * uniform.erfcinv() + ball(Fraction(1, 2))

    def stddev(self) -> float:
        """The square root of the sum of (2k - 1) tail(k); sigma^2 + 1/12 but for a term of
        order exp(-2 pi^2 sigma^2)."""
        with precision(_BITS):
            if self.sigma >= 2:
                return float(ball(self.sigma**2 + Fraction(1, 12)).sqrt())
            return math.sqrt(sum(float((2 * k - 1) * self.tail(k)) for k in range(1, 40)))

    def _root(self) -> arb:
        return ball(self.sigma) * arb(2).sqrt()
