"""Uniform integers below a bound."""

import numpy as np

from discreet._fields import PositiveCount, frozen
from discreet.noise._bits import Bits, Words
from discreet.noise._inversion import OutcomeArray, Shape, size_of


@frozen
class UniformLaw:
    """Each integer from 0 up to m - 1 with probability 1 / m, for any m >= 1.

    Rejection: a number is made of inverted words until it lies below the largest multiple of m; its
    remainder modulo m is the outcome. The number of rejections is independent of the outcome.
    Words of ones, which audits without noise use, become 0 and are accepted.

    >>> from discreet.audit import SeededBits
    >>> UniformLaw(6).draws(SeededBits(4), 8)
    array([4, 5, 5, 3, 5, 5, 2, 1])
    """

    m: PositiveCount  # the bound, which is itself not reached

    def draw(self, bits: Bits) -> int:
        """Draw one outcome."""
        count = self._words(bits)
        accepted = self._multiple(count * bits.width)
        while True:
            number = 0
            for _ in range(count):
                number = number << bits.width | (1 << bits.width) - 1 - bits.word()
            if number < accepted:
                return number % self.m

    def draws(self, bits: Bits, shape: Shape) -> OutcomeArray:
        """Independent outcomes: int64, or Python integers if m lies beyond it."""
        size = size_of(shape)
        count = self._words(bits)
        if count * bits.width > 64 or self.m > 1 << 63:
            exact: OutcomeArray = np.empty(size, dtype=object)
            exact[:] = [self.draw(bits) for _ in range(size)]
            return (exact if self.m > 1 << 63 else exact.astype(np.int64)).reshape(shape)
        found = _joined(bits, size, count)
        last = np.uint64(self._multiple(count * bits.width) - 1)
        while (refused := np.flatnonzero(found > last)).size:
            found[refused] = _joined(bits, refused.size, count)
        found -= found // np.uint64(self.m) * np.uint64(self.m)
        return found.view(np.int64).reshape(shape)

    def _words(self, bits: Bits) -> int:
        return max(1, -(-(self.m - 1).bit_length() // bits.width))

    def _multiple(self, size: int) -> int:
        return (1 << size) // self.m * self.m


def _joined(bits: Bits, size: int, count: int) -> Words:
    """Numbers of ``count`` words each, 64 bits at most."""
    ones = np.uint64((1 << bits.width) - 1)
    words = (bits.words(size * count) ^ ones).reshape(size, count)
    found = words[:, 0].copy()
    for place in range(1, count):
        found = found << np.uint64(bits.width) | words[:, place]
    return found
