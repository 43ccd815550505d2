"""Sources of words that are not secret, for tests and audits: seeded, scripted, recorded.

A `Door` with any of these is insecure, and each release through it says so.

>>> from discreet.noise import DiscreteLaplaceLaw
>>> law = DiscreteLaplaceLaw(10)
>>> recorded = RecordingBits(SeededBits(1))
>>> law.draw(recorded) == law.draw(recorded.replay())
True
>>> law.draw(ZeroNoiseBits())
0
"""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from discreet import _checks
from discreet.errors import DiscreetError, InvalidArgument
from discreet.noise import Bits, Words

_BLOCK = 1 << 13


class OutOfWords(DiscreetError):
    """A script of words ended before the draws did."""


class _BitsByWord:
    """A source that draws an array word by word."""

    def word(self) -> int:
        """The next word."""
        raise NotImplementedError

    def words(self, count: int) -> Words:
        """An array of the next words."""
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


class SeededBits(_BitsByWord):
    """The same words for the same seed, on every machine: SHAKE-256 of the seed and a counter."""

    def __init__(self, seed: int, width: int = 64) -> None:
        """Start the seed's stream of words of 1 to 64 bits."""
        self.width = _width(width)
        self._words = _seeded(seed, self.width)

    def word(self) -> int:
        """The next word."""
        return next(self._words)


class ScriptedBits(_BitsByWord):
    """The given words, one after another; then `OutOfWords`."""

    def __init__(self, words: Iterable[int], width: int = 64) -> None:
        """Give these words, each from 0 up to 2^width - 1."""
        self.width = _width(width)
        self._words = tuple(_checks.count(word=word) for word in words)
        if any(word >> self.width for word in self._words):
            raise InvalidArgument(f"a word of the script has more than {self.width} bits")
        self._left = iter(self._words)

    def word(self) -> int:
        """The next word; raises `OutOfWords` after the last one."""
        word = next(self._left, None)
        if word is None:
            raise OutOfWords(f"the script has {len(self._words)} words, and one more was drawn")
        return word


class ZeroNoiseBits(_BitsByWord):
    """Words whose bits are all 1, for which discrete Laplace and Gaussian noise is 0."""

    def __init__(self, width: int = 64) -> None:
        """Words of this many bits, 1 to 64."""
        self.width = _width(width)

    def word(self) -> int:
        """All ones."""
        return (1 << self.width) - 1


class RecordingBits(_BitsByWord):
    """The words of another source; ``seen`` lists those drawn so far."""

    def __init__(self, inner: Bits) -> None:
        self.width = inner.width
        self.seen: list[int] = []
        self._inner = inner

    def word(self) -> int:
        """The inner source's next word."""
        word = self._inner.word()
        self.seen.append(word)
        return word

    def replay(self) -> ScriptedBits:
        """A source that gives the words drawn so far once more."""
        return ScriptedBits(self.seen, self.width)


def _width(width: int) -> int:
    whole = _checks.positive_count(width=width)
    if whole > 64:
        raise InvalidArgument(f"width = {width}: give 1 to 64 bits")
    return whole


def _seeded(seed: int, width: int) -> Iterator[int]:
    block = 0
    while True:
        digest = hashlib.shake_256(f"discreet {seed} {block}".encode()).digest(_BLOCK)
        for start in range(0, _BLOCK, 8):
            yield int.from_bytes(digest[start : start + 8], "little") >> (64 - width)
        block += 1
