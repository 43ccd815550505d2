"""The staircase law: the probability is constant on levels, and falls by a factor between them."""

from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np
from flint import arb

from discreet._exact import ball, precision
from discreet._fields import Positive, PositiveCount, frozen
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._inversion import OutcomeArray, Shape, size_of
from discreet.noise._laws import DiscreteLaplaceLaw
from discreet.noise._tail_inversion import invert_tail
from discreet.noise._uniform import UniformLaw

_BITS = 128
_INT64 = (1 << 63) - 1


@frozen
class StaircaseLaw:
    """P(x) proportional to e^(-drop * level). The magnitudes below ``top`` are on level 0, the
    ``width`` next ones on level 1, and so on (Geng and Viswanath 2016; Geng, Kairouz, Oh and
    Viswanath 2015). With a width and a top of 1 this is the discrete Laplace law.

    A level with its sign is discrete Laplace. The place on it is uniform: level 0 has 2 top - 1
    places, each other level ``width`` places on either side. Rejection: both are drawn as if every
    level had as many places as the largest one, until the level has the place. The number of
    rejections is independent of the outcome.

    >>> from discreet.audit import SeededBits
    >>> StaircaseLaw(drop=0.5, width=10, top=4).draws(SeededBits(4), 6)
    array([ -3,  11, -13,   7,   3,  16])
    """

    _: KW_ONLY
    drop: Positive
    width: PositiveCount
    top: PositiveCount

    def __post_init__(self) -> None:
        if self.top > self.width:
            raise InvalidArgument(f"top = {self.top}: give at most the width, {self.width}")

    def draw(self, bits: Bits) -> int:
        """Draw one outcome."""
        return int(self.draws(bits, 1)[0])

    def draws(self, bits: Bits, shape: Shape) -> OutcomeArray:
        """Independent outcomes: int64, or Python integers if one of them lies beyond int64."""
        count = size_of(shape)
        parts = self._parts()
        level, place = (law.draws(bits, count) for law in parts)
        inside = 2 * self.top - 1
        while (refused := np.flatnonzero(place >= np.where(level == 0, inside, self.width))).size:
            again = [law.draws(bits, refused.size) for law in parts]
            level, place = (
                _replaced(*pair, refused) for pair in zip((level, place), again, strict=True)
            )
        return self._at(level, place).reshape(shape)

    def tail(self, magnitude: int) -> arb:
        """The probability of an outcome at least this far from 0."""
        below = 1 / ball(self.drop).expm1()  # weight of all levels but level 0, per unit of width
        whole = 2 * self.top - 1 + 2 * self.width * below
        if magnitude < self.top:
            return 2 * (self.top - magnitude + self.width * below) / whole
        level, place = divmod(magnitude - self.top, self.width)
        power = ball(-self.drop * (level + 1)).exp()
        return 2 * power * (self.width - place + self.width * below) / whole

    def inverse(self, uniform: arb) -> arb:
        """The whole x as in `NoiseLaw.inverse`, searched near that of the continuous law."""
        return invert_tail(self.tail, uniform, -uniform.log() * self.width / ball(self.drop))

    def stddev(self) -> float:
        """The standard deviation, by the sums of n^j q^n over n = 0, 1, ..., with q = e^-drop."""
        with precision(_BITS):
            low = ball(-self.drop).exp()
            rest = -ball(-self.drop).expm1()
            width, top = self.width, self.top
            each = Fraction((width - 1) * (2 * width - 1), 6)
            constant = ball(top**2 + top * (width - 1) + each)
            linear = ball(Fraction(2 * width * top + width * (width - 1)))
            sums = constant + linear * low / rest + width**2 * low * (1 + low) / rest**2
            inside = ball(Fraction((top - 1) * top * (2 * top - 1), 6))
            whole = 2 * top - 1 + 2 * width * low / rest
            return float((2 * (inside + width * low / rest * sums) / whole).sqrt())

    def _parts(self) -> tuple[DiscreteLaplaceLaw, UniformLaw]:
        most = max(self.width, 2 * self.top - 1)
        return DiscreteLaplaceLaw(1 / self.drop), UniformLaw(most)

    def _at(self, level: OutcomeArray, place: OutcomeArray) -> OutcomeArray:
        farthest = (int(np.abs(level).max(initial=0)) + 2) * self.width
        if object in (level.dtype, place.dtype) or farthest > _INT64:
            level, place = level.astype(object), place.astype(object)
        below = (abs(level) - 1) * self.width + self.top + place
        inside = (place + 1) // 2 * np.where(place % 2, 1, -1)  # 0, 1, -1, 2, -2, ...
        found: OutcomeArray = np.where(level == 0, inside, np.sign(level) * below)
        return found


def _replaced(old: OutcomeArray, new: OutcomeArray, places: OutcomeArray) -> OutcomeArray:
    both = old.astype(object) if new.dtype == object else old
    both[places] = new
    return both
