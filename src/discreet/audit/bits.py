"""Words that are no secret, for tests and audits: seeded, scripted, without noise, recorded.

A `Door` with any of these is insecure, and whatever comes through it says so.

>>> from fractions import Fraction
>>> from discreet.noise import DiscreteLaplaceLaw, draw
>>> law = DiscreteLaplaceLaw(Fraction(10))
>>> recorded = RecordingBits(SeededBits(1))
>>> draw(law, recorded) == draw(law, recorded.replay())
True
>>> draw(law, ZeroNoiseBits())
0
"""

import hashlib
from collections.abc import Iterable, Iterator

from discreet import checks
from discreet.errors import DiscreetError, InvalidArgument
from discreet.noise import Bits

_BLOCK = 1 << 13


class OutOfWords(DiscreetError):
    """A script of words ended before the draws did."""


class SeededBits:
    """The same words for the same seed, on every machine: SHAKE-256 of the seed and a counter."""

    def __init__(self, seed: int, width: int = 64) -> None:
        """Begin the seed's stream, in words of 1 to 64 bits."""
        self.width = _width(width)
        self._words = _seeded(seed, self.width)

    def word(self) -> int:
        """The next word."""
        return next(self._words)


class ScriptedBits:
    """The given words, one after the other; then `OutOfWords`."""

    def __init__(self, words: Iterable[int], width: int = 64) -> None:
        """Keep the words, each from 0 up to 2^width - 1."""
        self.width = _width(width)
        self._words = tuple(checks.count(word=word) for word in words)
        if any(word >> self.width for word in self._words):
            raise InvalidArgument(f"a word of the script has more than {self.width} bits")
        self._left = iter(self._words)

    def word(self) -> int:
        """The next word; raises `OutOfWords` after the last one."""
        word = next(self._left, None)
        if word is None:
            raise OutOfWords(f"the script has {len(self._words)} words, and one more was drawn")
        return word


class ZeroNoiseBits:
    """Words of ones only, for which the outcome of every law is 0."""

    def __init__(self, width: int = 64) -> None:
        """Words of this many bits, 1 to 64."""
        self.width = _width(width)

    def word(self) -> int:
        """All ones."""
        return (1 << self.width) - 1


class RecordingBits:
    """The words of another source, remembered in ``words`` as they are drawn."""

    def __init__(self, inner: Bits) -> None:
        """Draw from this source."""
        self.width = inner.width
        self.words: list[int] = []
        self._inner = inner

    def word(self) -> int:
        """The inner source's next word."""
        word = self._inner.word()
        self.words.append(word)
        return word

    def replay(self) -> ScriptedBits:
        """A source that gives the words drawn so far once more."""
        return ScriptedBits(self.words, self.width)


def _width(width: int) -> int:
    whole = checks.positive_count(width=width)
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
