"""The discrete Gaussian: the normal density, restricted to the integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from flint import arb, ctx

from discreet._exact import ball, precision
from discreet._fields import Positive, frozen
from discreet.noise import _inversion
from discreet.noise import _steps as steps
from discreet.noise._bits import Bits, Words
from discreet.noise._grid import OnGrid, steps_of
from discreet.noise._inversion import OutcomeArray, Resolved, Shape
from discreet.noise._laws import RoundedGaussianLaw
from discreet.noise._normal_tails import normal_tail, normal_variance
from discreet.noise._tail_inversion import invert_tail

_SPARE_BITS = 64
_DIGIT = 16
_HUGE = 10**200
_LARGEST_TABLE = 64  # draws come from a table up to this sigma,
_TABLE_PAYS = 64  # if there are at least this times sigma^2 of them
_CHUNK = 1 << 16


@frozen
class DiscreteGaussianLaw:
    """P(x) proportional to exp(-x^2 / (2 sigma^2)), for any rational sigma above 0 (Canonne,
    Kamath and Steinke, 2020).

    Rejection: a rounded Gaussian is accepted with a probability close to 1, the ratio of the two
    laws' probabilities over its maximum, which it has at 0. Many draws with a small sigma come from
    a table.

    >>> from discreet.audit import SeededBits
    >>> DiscreteGaussianLaw(2.5).draws(SeededBits(4), 4)
    array([ 0,  1, -1,  0])
    """

    sigma: Positive  # the standard deviation is a little smaller

    def on_grid(self, k: int) -> "OnGrid[DiscreteGaussianLaw]":
        """This law for multiples of 2^-k; its sigma is in units of the answer."""
        return OnGrid(DiscreteGaussianLaw(steps_of(self.sigma, k)), k)

    def tail(self, magnitude: int) -> arb:
        """The probability of an outcome at least this far from 0."""
        return normal_tail(self.sigma, magnitude)

    def inverse(self, uniform: arb) -> arb:
        """The whole x as in `NoiseLaw.inverse`, searched near that of the normal law."""
        near = ball(self.sigma) * arb(2).sqrt() * uniform.erfcinv()
        return invert_tail(self.tail, uniform, near)

    def stddev(self) -> float:
        """The standard deviation, which is a little smaller than sigma."""
        with precision(_SPARE_BITS):
            return float(normal_variance(self.sigma).upper().sqrt())

    def draw(self, bits: Bits) -> int:
        """Draw one outcome."""
        while True:
            found = RoundedGaussianLaw(self.sigma).draw(bits)
            if self._is_accepted(found, bits, bits.word(), bits.width):
                return found

    def draws(self, bits: Bits, shape: Shape) -> OutcomeArray:
        """Independent outcomes: int64, or Python integers if one of them lies beyond int64."""
        count = _inversion.size_of(shape)
        if self.sigma <= _LARGEST_TABLE and count >= _TABLE_PAYS * float(self.sigma) ** 2:
            return _inversion.draws(_TableLaw(self.sigma), bits, shape)
        found = RoundedGaussianLaw(self.sigma).draws(bits, count)
        for start in range(0, count, _CHUNK):
            for place in self._refused(found[start : start + _CHUNK], bits):
                again = self.draw(bits)
                if abs(again) >= 1 << 63:
                    found = found.astype(object)
                found[start + place] = again
        return found.reshape(shape)

    def _refused(self, found: OutcomeArray, bits: Bits) -> list[int]:
        """The indices of rejected outcomes. One digit each decides nearly all of them."""
        size = min(_DIGIT, bits.width)
        digits = _inversion.digits(bits, found.size, size)
        far, loose = _loose(self.sigma, size)
        unsure = np.flatnonzero((digits == 0) | (found > far) | (found < -far))
        if found.dtype != object:
            near = found[unsure].astype(np.float64)
            near *= near
            near *= loose
            unsure = unsure[digits[unsure] < near]
        return [
            i
            for i in unsure.tolist()
            if not self._is_accepted(int(found[i]), bits, int(digits[i]), size)
        ]

    def _is_accepted(self, found: int, bits: Bits, numerator: int, size: int) -> bool:
        """Whether a V, uniform on (0, 1), is at least the probability of rejection.

        That is at most 1 - (y / 2) / sinh(y / 2) <= y^2 / 24 for y = found / sigma^2, which is
        below most V. Otherwise more digits of V are drawn until they decide.
        """
        over, under = self.sigma.as_integer_ratio()
        if 24 * numerator * over**4 >= found**2 * under**4 << size:
            return True
        return _inversion.finished(_Rejection(self.sigma, abs(found)), bits, numerator, size) == 1


@dataclass(frozen=True, slots=True)
class _Rejection(steps.StepsResolved):
    """The threshold 1 - r(k) / r(0), where r is the probability under the discrete law over the
    probability under the rounded law."""

    sigma: Fraction
    k: int
    steps: int = 1

    def threshold(self, _: int) -> arb:
        """1 - exp(-k^2 / (2 sigma^2)) mass(0) / mass(k), where mass(k) is the normal probability of
        [k - 1/2, k + 1/2]. The three differences lose some bits each time sigma doubles."""
        lost = 4 * max(0, math.floor(self.sigma).bit_length())
        with precision(ctx.prec + lost):
            twice = ball(self.sigma) * arb(8).sqrt()  # sigma sqrt(2), in halves
            here = ((2 * self.k - 1) / twice).erfc() - ((2 * self.k + 1) / twice).erfc()
            z = 2 * self.k / twice
            return 1 - 2 * (-z * z).exp() * (1 / twice).erf() / here


@dataclass(frozen=True, slots=True)
class _TableLaw:
    """The discrete Gaussian for a small sigma: a sign, and the number of tails above U."""

    sigma: Fraction
    is_narrow: bool = True

    def resolve(self, numerator: int, size: int) -> int | None:
        ones = (1 << size - 1) - 1
        below = steps.resolve(_tails(self.sigma, size), ~numerator & ones, size - 1)
        return -below if below and numerator >> size - 1 else below

    def resolve_many(self, numerators: Words, size: int) -> Resolved:
        ones = np.uint64((1 << size - 1) - 1)
        found, left = steps.resolve_many(_edges(self.sigma), ~numerators & ones, size - 1)
        return np.where(numerators > ones, -found, found), left


@dataclass(frozen=True, slots=True)
class _Tails:
    """The thresholds 1 - P(|X| >= k) of V = 1 - U for k = 1, 2, ..., up to the first one above
    1 - 2^-bits."""

    thresholds: tuple[arb, ...]

    @property
    def steps(self) -> int:
        return len(self.thresholds)

    def threshold(self, step: int) -> arb:
        return self.thresholds[step]


@lru_cache(maxsize=4)
def _tails(sigma: Fraction, bits: int) -> _Tails:
    """With q = exp(-1 / (2 sigma^2)), P(k) / P(0) = q^(k^2), which is the previous ratio times
    q^(2k - 1). A geometric series bounds the terms beyond the last one."""
    size = bits + _SPARE_BITS
    last = math.ceil(sigma * (math.isqrt(3 * size // 2) + 1))  # its chance is below 2^-size
    with precision(size + _SPARE_BITS):
        ratio = (-ball(1 / (2 * sigma**2))).exp()
        square, chance, chances = ratio * ratio, arb(1), []
        for _ in range(last):
            chance *= ratio
            ratio *= square
            chances.append(chance)
        rest = chance * ratio / (1 - ratio)
        sums = list(accumulate(reversed(chances), initial=rest.union(arb(0))))[:0:-1]
        tails = [2 * one / (1 + 2 * sums[0]) for one in sums]
        reaching = next(k for k, tail in enumerate(tails) if tail * arb(2) ** bits < 1)
        return _Tails(tuple(1 - tail for tail in tails[: reaching + 1]))


@lru_cache(maxsize=16)
def _edges(sigma: Fraction) -> steps.Edges:
    """The thresholds to 64 bits, by float64. With n terms the relative error of a tail is at most
    4 (n + 3)^2 2^-53; underflow and the terms left out add at most half a word."""
    last = math.ceil(sigma * 10) + 3
    with precision(_SPARE_BITS):
        ratio = float((-ball(1 / (2 * sigma**2))).exp())
    ratios = np.full(last, ratio * ratio)
    ratios[0] = ratio
    chances = np.cumprod(np.cumprod(ratios))
    sums = np.cumsum(chances[::-1])[::-1]
    words = 2.0**65 * sums / (1 + 2 * sums[0])
    radius = 4 * (last + 3) ** 2 * 2.0**-53
    below = np.maximum(words * (1 - radius) - 1, 1).astype(np.uint64)
    above = (words * (1 + radius) + 2).astype(np.uint64)
    return steps.Edges(first=-above, last=-below)  # 2^64 - above, 2^64 - below


@lru_cache(maxsize=64)
def _loose(sigma: Fraction, size: int) -> tuple[int, float]:
    """The magnitude up to which the loose bound on rejection is at most 2^-size, and an upper bound
    on 2^size / (24 sigma^4) as a float, or `_HUGE`."""
    over, under = sigma.as_integer_ratio()
    most, least = 24 * over**4, under**4 << size
    far = min(math.isqrt(most // least), (1 << 63) - 1)
    if least > _HUGE * most:
        return far, float(_HUGE)
    return far, max(least / most * (1 + 2.0**-40), 1 / float(_HUGE))
