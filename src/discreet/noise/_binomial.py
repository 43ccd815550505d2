"""How many of n independent trials succeed."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._inversion import Outcomes, Shape, size_of

Counts = npt.NDArray[np.int64]

_MOST_TRIALS = 1 << 40
_AT_ONCE = 1 << 17  # words


@dataclass(frozen=True, slots=True, init=False)
class BinomialLaw:
    """The number of successes in n independent trials of the same rational probability.

    Each trial compares the binary digits of a U of its own with those of the probability, and
    succeeds if it is the smaller. A digit that differs decides, so that half of the trials that
    are left are decided by each digit; they are alike, so that only their number matters, and
    that is counted in random words. A draw takes about 2n random bits.

    >>> from discreet.audit import SeededBits
    >>> BinomialLaw(100, 0.3).draws(SeededBits(4), 5)
    array([30, 27, 41, 27, 24])
    """

    n: int
    probability: Fraction

    def __init__(self, n: int, probability: Number) -> None:
        """Keep the number of trials, at most 2^40, and the probability at its exact value."""
        object.__setattr__(self, "n", _checks.count(n=n))
        object.__setattr__(self, "probability", _checks.not_negative(probability=probability))
        if self.probability > 1:
            raise InvalidArgument(f"probability = {probability}: give a number from 0 to 1")
        if self.n > _MOST_TRIALS:
            raise InvalidArgument(f"n = {n}: at most 2^40 trials, each of which takes two bits")

    def draw(self, bits: Bits) -> int:
        """One outcome."""
        return int(self.draws(bits, 1)[0])

    def draws(self, bits: Bits, shape: Shape) -> Outcomes:
        """Independent outcomes, int64."""
        size = size_of(shape)
        successes = np.zeros(size, np.int64)
        left = np.full(size, self.n, np.int64)  # trials whose digits so far are the probability's
        if self.probability == 1:
            return left.reshape(shape)
        rest = self.probability
        while rest and left.any():
            rest *= 2
            ones = _ones(left, bits)
            if rest >= 1:  # a trial with digit 0 is smaller
                rest -= 1
                successes += left - ones
                left = ones
            else:  # a trial with digit 1 is larger
                left = left - ones
        return successes.reshape(shape)


def _ones(counts: Counts, bits: Bits) -> Counts:
    """For each count, how many of so many random bits are 1."""
    found = np.zeros_like(counts)
    needed = -(-counts // bits.width)
    ends = np.cumsum(needed)
    start = 0
    while start < counts.size:
        before = ends[start] - needed[start]
        stop = int(np.searchsorted(ends, before + _AT_ONCE, side="right"))
        if stop == start:
            found[start] = _ones_of_one(int(counts[start]), bits)
            start += 1
        else:
            found[start:stop] = _ones_of_some(counts[start:stop], needed[start:stop], bits)
            start = stop
    return found


def _ones_of_one(count: int, bits: Bits) -> int:
    at_once, ones = _AT_ONCE * bits.width, 0
    while count > at_once:
        ones += int(np.bitwise_count(bits.words(_AT_ONCE)).sum(dtype=np.int64))
        count -= at_once
    some = np.array([count])
    return ones + int(_ones_of_some(some, -(-some // bits.width), bits)[0])


def _ones_of_some(counts: Counts, needed: Counts, bits: Bits) -> Counts:
    """Words one after the other, those of each count ending with one of which some bits count."""
    words = bits.words(int(needed.sum()))
    ends = np.cumsum(needed)
    has_some = counts > 0
    surplus = (needed * bits.width - counts)[has_some].astype(np.uint64)
    words[ends[has_some] - 1] >>= surplus
    running = np.concatenate([[0], np.cumsum(np.bitwise_count(words), dtype=np.int64)])
    found: Counts = running[ends] - running[ends - needed]
    return found
