"""Joint noise on several integers whose probability depends on the largest magnitude only.

A draw is a cube of random radius, and a uniform point in it. The radius is the hard part: its law
is log-concave, so the probabilities rise and then fall. `_Blocks` bounds the probabilities, and
their sums, from both sides.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from flint import arb, ctx, fmpq

from discreet._bisection import smallest_whole
from discreet._exact import ball, precision, shown, upper_fraction
from discreet._fields import Positive, PositiveCount, frozen
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._choices import CategoricalLaw
from discreet.noise._inversion import OutcomeArray, draw
from discreet.noise._laws import GeometricLaw
from discreet.noise._steps import StepsResolved
from discreet.noise._uniform import UniformLaw

_BITS = 128
_LEAST, _MOST = Fraction(1, 10**50), Fraction(10**50)
_LONGEST = 10**9
_SMALLEST = 1024  # a bound on a probability is a multiple of 2^-1024
_FINENESS = 8  # blocks to a standard deviation of the radius
_BELOW, _ABOVE = 12, 40  # standard deviations from the mode


@frozen
class MaxNormLaw:
    """P(z) proportional to exp(-max |z_i| / scale) for z of ``length`` whole numbers: the noise
    of the K-norm mechanism (Hardt and Talwar 2010) for a cube, on the grid. The scale is at least
    10^-50 and at most 10^50.

    Up to a factor, exp(-k / scale) is the sum of exp(-j / scale) over all j >= k. So z is uniform
    in a cube [-j, j]^length of random radius j, with P(j) proportional to (2j + 1)^length
    exp(-j / scale). The radius is drawn by rejection from a law that bounds P(j) up to a factor.
    Digits of a uniform number are drawn until they decide whether a radius is accepted.

    >>> from discreet.audit import SeededBits
    >>> MaxNormLaw(2, length=4).draws(SeededBits(4))
    array([ 2, -2,  0,  3])
    """

    scale: Positive
    length: PositiveCount

    def __post_init__(self) -> None:
        if not _LEAST <= self.scale <= _MOST:
            raise InvalidArgument(
                f"scale = {shown(self.scale)}: give a number from 10^-50 to 10^50"
            )
        if self.length > _LONGEST:
            raise InvalidArgument(f"length = {self.length}: at most 10^9")

    def draws(self, bits: Bits) -> OutcomeArray:
        """One outcome: int64, or Python integers where the cube is too large for that."""
        radius = self.radius(bits)
        return UniformLaw(2 * radius + 1).draws(bits, self.length) - radius

    def radius(self, bits: Bits) -> int:
        """The radius of the cube."""
        blocks = _blocks(self.scale, self.length)
        while True:
            block = len(blocks.most) - blocks.choice.draw(bits)
            if block < len(blocks.most):
                start, size = blocks.starts[block], blocks.size_of(block)
                found, over, step = start + UniformLaw(size).draw(bits), blocks.most[block], 0
            else:
                step = GeometricLaw(1 - blocks.ratio).draw(bits)
                found, over = blocks.end + step, blocks.highest
            rejection = _RadiusRejection(blocks.chances, found, over, blocks.ratio, step)
            if draw(rejection, bits):
                return found

    def half_width(self, confidence: Fraction) -> int:
        """A whole q with P(max |z_i| <= q) at least the confidence: the smallest one, or hardly
        above it if the standard deviation of the radius is 16 or more."""
        blocks = _blocks(self.scale, self.length)
        with precision(_bits(self.scale)):
            outside = ball(1 - confidence)
            return smallest_whole(lambda q: bool(blocks.beyond(q) <= outside), 0)


@dataclass(frozen=True, slots=True)
class _Chances:
    """The probabilities of the radii, divided by the probability of the ``mode``.

    As a function of a real radius they increase up to length * scale - 1/2 and then decrease. The
    ``mode`` is the last integer up to this point.
    """

    scale: Fraction
    length: int
    mode: int

    def of(self, radius: int) -> arb:
        """The probability of a whole radius."""
        return self.of_half(2 * radius)

    def of_half(self, twice: int) -> arb:
        """The probability of the radius ``twice`` / 2."""
        away = twice - 2 * self.mode
        grown = self.length * arb(fmpq(away, 2 * self.mode + 1)).log1p()
        over, under = self.scale.as_integer_ratio()
        return (grown - arb(fmpq(away * under, 2 * over))).exp()

    def ratio(self, radius: int) -> arb:
        """The next probability over this one; it decreases with the radius."""
        grown = self.length * arb(fmpq(2, 2 * radius + 1)).log1p()
        return (grown - ball(1 / self.scale)).exp()

    def series(self, start: int) -> arb:
        """An upper bound on the sum from ``start`` on: a geometric series."""
        return self.of(start) / (1 - self.ratio(start))

    def at_most(self, start: int, size: int) -> arb:
        """An upper bound on the sum of ``size`` probabilities. Their logarithms lie below the
        tangent at the middle, and sinh(n x) / (n sinh(x)) <= sinh(n x) / (n x) <= exp((n x)^2 / 6).
        """
        if size == 1:
            return self.of(start)
        twice = 2 * start + size - 1
        slope = arb(fmpq(2 * self.length, twice + 1)) - ball(1 / self.scale)
        return size * self.of_half(twice) * ((slope * size / 2) ** 2 / 6).exp()

    def at_least(self, start: int, size: int) -> arb:
        """A lower bound on the same sum: the logarithms lie above the chord."""
        if size == 1:
            return self.of(start)
        return size * (self.of(start) * self.of(start + size - 1)).sqrt()


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The radii from 0 on in blocks. On each block the probabilities are monotone; from ``end`` on
    each is at most ``ratio`` times the one before it."""

    chances: _Chances
    starts: list[int]
    end: int
    most: list[Fraction]  # upper bound on a probability within each block,
    highest: Fraction  # and from the end on
    ratio: Fraction
    choice: CategoricalLaw  # blocks in reverse, so that words of ones choose radius 0
    sums: list[arb]  # upper bounds on the sums from each block's start on
    total: arb  # lower bound on the sum of all

    def size_of(self, block: int) -> int:
        after = self.starts[block + 1] if block + 1 < len(self.starts) else self.end
        return after - self.starts[block]

    def beyond(self, q: int) -> arb:
        """An upper bound on the probability that max |z_i| > q: the probability of all larger
        cubes, less the share of them within [-q, q]^length, which is P(q) times a series."""
        if q + 1 >= self.end:
            found = self.chances.series(q + 1)
        else:
            block = bisect_right(self.starts, q + 1) - 1
            rest = self.starts[block] + self.size_of(block) - (q + 1)
            found = self.chances.at_most(q + 1, rest) + self.sums[block + 1]
        inverse = ball(-1 / self.chances.scale)
        within = self.chances.of(q) * inverse.exp() / -inverse.expm1()
        return (found - within) / self.total


@lru_cache(maxsize=16)
def _blocks(scale: Fraction, length: int) -> _Blocks:
    # 1. where blocks begin: the mode ends one of them
    mode = max(0, math.floor(length * scale - Fraction(1, 2)))
    chances = _Chances(scale, length, mode)
    stddev = math.isqrt(math.floor(scale**2 * (length + 1))) + 1
    size = max(1, stddev // _FINENESS)
    first = mode + 1 - min(_BELOW * stddev // size, (mode + 1) // size) * size
    starts = [0] * (first > 0) + list(range(first, mode + 2 + _ABOVE * stddev, size))
    end = starts.pop()
    # 2. bounds on the probabilities and on their sums
    with precision(_bits(scale)):
        blocks = [
            (start, after - start) for start, after in zip(starts, [*starts[1:], end], strict=True)
        ]
        most = [
            _above(chances.of(start if start > mode else start + size - 1))
            for start, size in blocks
        ]
        highest, ratio = _above(chances.of(end)), _above(chances.ratio(end))
        masses = [size * one for (_, size), one in zip(blocks, most, strict=True)]
        choice = CategoricalLaw([highest / (1 - ratio), *reversed(masses)])
        sums = accumulate(
            (chances.at_most(*block) for block in reversed(blocks)), initial=chances.series(end)
        )
        total = sum((chances.at_least(*block) for block in blocks), arb(0))
        return _Blocks(chances, starts, end, most, highest, ratio, choice, list(sums)[::-1], total)


def _bits(scale: Fraction) -> int:
    return _BITS + 2 * math.ceil(scale).bit_length()


def _above(number: arb) -> Fraction:
    """The number, rounded up to a multiple of 2^-1024."""
    return Fraction(math.ceil(upper_fraction(number) * (1 << _SMALLEST)), 1 << _SMALLEST)


@dataclass(frozen=True, slots=True)
class _RadiusRejection(StepsResolved):
    """The threshold from which on U accepts a radius: 1 - its probability / (most * ratio^step)."""

    chances: _Chances
    radius: int
    most: Fraction
    ratio: Fraction
    step: int
    steps: int = 1

    def threshold(self, _: int) -> arb:
        lost = self.chances.length.bit_length() + self.radius.bit_length() + 64
        with precision(ctx.prec + lost):
            over = ball(self.most) * (self.step * ball(self.ratio).log()).exp()
            return 1 - self.chances.of(self.radius) / over
