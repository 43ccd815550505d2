"""Random words from the operating system, and exact draws from them.

A coin compares uniform digits with the digits of its probability until one differs. So it has
exactly that probability, whatever rational it is, and uses one byte most of the time.
"""

import os
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Reports = TypeVar("Reports")

LARGEST = 1 << 62  # limit of the integers that are drawn


class Bits(Protocol):
    """A source of independent, uniform words of ``width`` bits each, 1 to 64."""

    @property
    def width(self) -> int:
        """The number of bits in a word."""

    def words(self, count: int) -> Words:
        """The next ``count`` words."""


class SystemBits:
    """64-bit words of the operating system's generator. Nothing can seed it, and neither a copy nor
    a forked process repeats them."""

    width = 64

    def words(self, count: int) -> Words:
        """The next words."""
        return np.frombuffer(os.urandom(8 * count), np.uint64)


SYSTEM = SystemBits()


class Randomizer(ABC, Generic[Reports]):
    """Draws reports of values."""

    __slots__ = ()

    def randomize(self, values: object) -> Reports:
        """Reports of one value or of several, with bits of the operating system's generator."""
        return self.draw_reports(values, SYSTEM)

    @abstractmethod
    def draw_reports(self, values: object, bits: Bits) -> Reports:
        """`randomize` with given bits: for tests only, since bits must be secret."""


def coins(chance: Fraction, count: int, bits: Bits) -> Booleans:
    """Independent booleans, each true with exactly this probability."""
    digits, size = _digits(count, bits)
    whole, rest = divmod(chance.numerator << size, chance.denominator)
    found = digits < whole
    undecided = np.flatnonzero(digits == whole) if rest else ()
    if len(undecided):
        found[undecided] = coins(Fraction(rest, chance.denominator), len(undecided), bits)
    return found


def below(limit: int, count: int, bits: Bits) -> Integers:
    """Independent integers from 0 to limit - 1, all equally likely; limit <= 2^62.

    A number is made of whole words and drawn again until it lies below the largest multiple of the
    limit. The words' bits are inverted: audits draw words of ones, and these must be accepted.
    """
    each = max(1, -(-(limit - 1).bit_length() // bits.width))
    last = np.uint64((1 << each * bits.width) // limit * limit - 1)
    found = _joined(each, count, bits)
    while len(refused := np.flatnonzero(found > last)):
        found[refused] = _joined(each, len(refused), bits)
    return (found % np.uint64(limit)).astype(np.int64)


def _digits(count: int, bits: Bits) -> tuple[npt.NDArray[np.unsignedinteger[Any]], int]:
    """Independent digits, and the bits of each: the bytes of 64-bit words, else whole words."""
    if bits.width == 64:
        return bits.words(-(-count // 8)).view(np.uint8)[:count], 8
    return bits.words(count), bits.width


def _joined(each: int, count: int, bits: Bits) -> Words:
    """``count`` integers, each made of ``each`` inverted words."""
    ones = np.uint64((1 << bits.width) - 1)
    words = (bits.words(each * count) ^ ones).reshape(count, each)
    found = words[:, 0].copy()
    for place in range(1, each):
        found = found << np.uint64(bits.width) | words[:, place]
    return found
