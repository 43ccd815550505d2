"""Laws of noise: discrete Laplace, rounded Gaussian and geometric.

The first two are symmetric about 0. For whole k >= 1 the magnitude is at least k iff a uniform U in
(0, 1) lies below ``tail(k)``; ``inverse`` gives the magnitude for a U.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from flint import arb

from discreet._exact import ball, precision, shown
from discreet._fields import Positive, frozen
from discreet.errors import InvalidArgument
from discreet.noise._affine_quantile import AffineQuantile, Magnitudes, Signed
from discreet.noise._bits import Bits
from discreet.noise._grid import OnGrid, steps_of
from discreet.noise._inversion import OutcomeArray, Shape
from discreet.noise._quantiles import EXPONENTIAL, HALF_NORMAL

_BITS = 128
_FEWEST_BITS, _MOST_BITS = 64, 1 << 14  # of half-widths


class Law(Protocol):
    """Draws integers, each with exactly its probability."""

    def draw(self, bits: Bits) -> int:
        """Draw one outcome."""

    def draws(self, bits: Bits, shape: Shape) -> OutcomeArray:
        """Independent outcomes in this shape: int64, or Python integers if one exceeds int64."""


class NoiseLaw(Law, Protocol):
    """A law that is symmetric about 0, with a known tail."""

    def tail(self, magnitude: int) -> arb:
        """The probability of an outcome at least this far from 0, for a magnitude above 0."""

    def inverse(self, uniform: arb) -> arb:
        """The real x such that ``uniform < tail(k)`` iff ``k < x``, for every whole k above 0."""

    def stddev(self) -> float:
        """The standard deviation, with relative error 10^-9; below 10^-150 it may be 0."""


def half_width(law: NoiseLaw, confidence: Fraction) -> int:
    """The smallest whole q with P(|outcome| <= q) at least the confidence, exactly."""
    size = _FEWEST_BITS
    while size <= _MOST_BITS:
        with precision(size):
            whole = law.inverse(ball(1 - confidence)).ceil().unique_fmpz()
        if whole is not None:
            return max(0, int(whole) - 1)
        size *= 2
    near = float(confidence)
    raise InvalidArgument(f"confidence = {near}...: too close to a jump of the law to be decided")


@frozen
class DiscreteLaplaceLaw(Signed):
    """P(x) = (1 - p) / (1 + p) p^|x| with p = exp(-1 / scale), for any rational scale above 0.

    >>> from discreet.audit import SeededBits
    >>> DiscreteLaplaceLaw(2.5).draws(SeededBits(4), (2, 4))
    array([[ 0,  1, -1,  0],
           [ 0,  3,  4,  4]])
    """

    scale: Positive

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

    def affine_quantile(self) -> AffineQuantile:
        """The inverse in float64."""
        return _laplace(self.scale)

    def _power(self, exponent: Fraction | int) -> arb:
        return (-ball(exponent / self.scale)).exp()

    def on_grid(self, k: int) -> "OnGrid[DiscreteLaplaceLaw]":
        """This law for multiples of 2^-k; its scale is in units of the answer."""
        return OnGrid(DiscreteLaplaceLaw(steps_of(self.scale, k)), k)


@frozen
class RoundedGaussianLaw(Signed):
    """round(Z) for Z normal with mean 0 and standard deviation sigma, a rational above 0.

    >>> from discreet.audit import SeededBits
    >>> RoundedGaussianLaw(2.5).draws(SeededBits(4), 4)
    array([ 0,  1, -1,  0])
    """

    sigma: Positive

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

    def affine_quantile(self) -> AffineQuantile:
        """The inverse in float64."""
        return AffineQuantile(HALF_NORMAL, _near(self.sigma), 0.5)

    def _root(self) -> arb:
        return ball(self.sigma) * arb(2).sqrt()

    def on_grid(self, k: int) -> "OnGrid[RoundedGaussianLaw]":
        """This law for multiples of 2^-k; its sigma is in units of the answer."""
        return OnGrid(RoundedGaussianLaw(steps_of(self.sigma, k)), k)


@frozen
class GeometricLaw(Magnitudes):
    """P(x) = s (1 - s)^x for x = 0, 1, ...: the number of failures before the first success.

    Each trial succeeds with probability s, any rational above 0 and up to 1.

    >>> from discreet.audit import SeededBits
    >>> GeometricLaw(0.25).draws(SeededBits(4), 4)
    array([0, 4, 0, 2])
    """

    success: Positive

    def __post_init__(self) -> None:
        if self.success > 1:
            raise InvalidArgument(f"success = {shown(self.success)}: a probability is at most 1")

    def tail(self, magnitude: int) -> arb:
        """The probability (1 - s)^k of k or more."""
        return ball(1 - self.success) ** magnitude

    def inverse(self, uniform: arb) -> arb:
        """ln U / ln(1 - s)."""
        return uniform.log() * _geometric_scale(self.success) if self.success < 1 else arb(0)

    def affine_quantile(self) -> AffineQuantile:
        """The inverse in float64."""
        return _geometric(self.success)


@lru_cache(maxsize=64)
def _laplace(scale: Fraction) -> AffineQuantile:
    """x = -scale ln U + scale ln(2 / (1 + p))."""
    with precision(_BITS):
        exact = ball(scale)
        offset = -exact * ((-1 / exact).expm1() / 2).log1p()
    return AffineQuantile(EXPONENTIAL, _near(scale), float(offset))


@lru_cache(maxsize=64)
def _geometric(success: Fraction) -> AffineQuantile:
    with precision(_BITS):
        return AffineQuantile(EXPONENTIAL, -float(_geometric_scale(success)))


def _geometric_scale(success: Fraction) -> arb:
    """1 / ln(1 - s), or 0 if s = 1."""
    if success == 1:
        return arb(0)
    return 1 / (ball(1 - success).log() if 2 * success > 1 else ball(-success).log1p())


def _near(number: Fraction) -> float:
    """The nearest float, or infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf
