"""Laws whose inverse is an affine function of a quantile function: x(U) = offset + scale * Q(U).

The magnitude is the number of whole k above 0 with k < x(U). Float64 resolves nearly all draws,
since x is known to within a proven radius; balls of growing precision resolve the others.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from discreet._exact import ball, precision
from discreet.noise._bits import Words
from discreet.noise._inversion import Inverted, Resolved, aligned
from discreet.noise._quantiles import OCTAVES, RADIUS, QuantileFunction

_SPARE_BITS = 64
_WORD = 63  # bits of U in an int64
_ROUNDING = 2.0**-50
_SIGN = np.uint64(1 << 63)
_NARROW = 1 << 11


@dataclass(frozen=True, slots=True)
class AffineQuantile:
    """A law's offset, scale and quantile function, the first two in float64."""

    quantile: QuantileFunction
    scale: float
    offset: float = 0.0

    @property
    def is_narrow(self) -> bool:
        """Whether a guide of 2^16 cells decides most draws."""
        return self.scale <= _NARROW

    def resolve_many(self, numerators: npt.NDArray[np.int64], known: int) -> Resolved:
        """The magnitudes for U in [n, n + 2^(63 - known)] / 2^63, and the indices of open ones."""
        least, radius = self._resolution(known)
        if not radius < 0.5:
            return np.zeros_like(numerators), np.arange(numerators.size)
        x = self.quantile.many(numerators * np.float64(2.0**-_WORD))
        x *= self.scale
        x += self.offset
        np.maximum(x, 0.5, out=x)  # below 1 the magnitude is 0
        whole = np.floor(x)
        x -= whole
        x -= 0.5
        np.abs(x, out=x)
        is_open = x >= 0.5 - radius
        is_open |= numerators < least
        return whole.astype(np.int64), np.flatnonzero(is_open)

    def resolve(self, numerator: int, known: int) -> int | None:
        """The magnitude for one numerator, or None if it stays open."""
        least, radius = self._resolution(known)
        if numerator < least or not radius < 0.5:
            return None
        mantissa, exponent = math.frexp(numerator)
        x = self.offset + self.scale * self.quantile.one(mantissa, exponent - _WORD)
        whole = math.floor(max(x, 0.5))
        return whole if abs(max(x, 0.5) - whole - 0.5) < 0.5 - radius else None

    def _resolution(self, known: int) -> tuple[int, float]:
        """The least numerator that float64 may resolve, and the radius of x from there on.

        From this numerator on, ln(U) is known to 2^-bits. With more bits the radius is smaller, and
        more numerators are below the least one. These bits nearly minimize the share of open draws.
        """
        if self.scale >= 2.0**_WORD:
            return 0, math.inf
        bits = max((known + math.frexp(self.scale)[1]) // 2, known - OCTAVES)
        radius = self.scale * (self.quantile.slope * 2.0**-bits + RADIUS) + _ROUNDING
        return 1 << max(_WORD - known + bits, _WORD - OCTAVES), radius


class AffineQuantileLaw(Protocol):
    """A law whose inverse is an affine function of a quantile function."""

    def inverse(self, uniform: arb) -> arb:
        """The real x with: ``uniform < tail(k)`` iff ``k < x``, for every whole k above 0."""

    def affine_quantile(self) -> AffineQuantile:
        """The inverse in float64."""


class Magnitudes(Inverted):
    """Draws of an `AffineQuantileLaw` whose outcomes are magnitudes."""

    __slots__ = ()

    @property
    def is_narrow(self: AffineQuantileLaw) -> bool:
        """Whether few outcomes are likely."""
        return self.affine_quantile().is_narrow

    def resolve(self: AffineQuantileLaw, numerator: int, size: int) -> int | None:
        """The magnitude, if it is the same for all U in [numerator, numerator + 1] / 2^size."""
        known = min(size, _WORD)
        found = self.affine_quantile().resolve(numerator >> size - known << _WORD - known, known)
        return _by_balls(self, numerator, size) if found is None else found

    def resolve_many(self: AffineQuantileLaw, numerators: Words, size: int) -> Resolved:
        """Magnitudes, and the indices of those that float64 does not decide."""
        leading = aligned(numerators, size) >> np.uint64(1)
        return self.affine_quantile().resolve_many(leading.view(np.int64), min(size, _WORD))


class Signed(Magnitudes):
    """Draws of an `AffineQuantileLaw` whose outcomes are magnitudes with a random sign."""

    __slots__ = ()

    def resolve(self: AffineQuantileLaw, numerator: int, size: int) -> int | None:
        """The magnitude with a sign. The first digit is the sign; U begins with the second."""
        magnitude = Magnitudes.resolve(self, numerator & (1 << size - 1) - 1, size - 1)
        return -magnitude if magnitude and numerator >> size - 1 else magnitude

    def resolve_many(self: AffineQuantileLaw, numerators: Words, size: int) -> Resolved:
        """Magnitudes with a sign, and the indices of those that float64 does not decide."""
        leading = aligned(numerators, size)
        magnitudes = (leading & ~_SIGN).view(np.int64)
        found, left = self.affine_quantile().resolve_many(magnitudes, size - 1)
        sign = leading.view(np.int64) >> 63  # 0 or -1
        found ^= sign
        found -= sign
        return found, left


def _by_balls(law: AffineQuantileLaw, numerator: int, size: int) -> int | None:
    with precision(size + _SPARE_BITS):
        low, high = ball(Fraction(numerator, 1 << size)), ball(Fraction(numerator + 1, 1 << size))
        x = law.inverse(low.union(high))
        if x <= 1:  # U is not below tail(1): the magnitude is 0
            return 0
        whole = x.ceil().unique_fmpz()
    return None if whole is None else max(0, int(whole) - 1)
