"""Uniform permutations, and uniform samples without replacement."""

import numpy as np

from discreet import _checks
from discreet._arrays import IndexArray
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._uniform import UniformLaw

_MOST = 1 << 62


def permutation(count: int, bits: Bits) -> IndexArray:
    """The numbers from 0 up to count - 1 in uniform random order.

    Each number is packed into a word with a random key, and the words are sorted. Numbers with
    equal keys are shuffled afterwards. Words of ones, which audits without noise use, keep the
    order.

    >>> from discreet.audit import SeededBits
    >>> permutation(5, SeededBits(4))
    array([1, 4, 3, 2, 0])
    """
    # 1. sort by random keys
    size = _checks.count(count=count)
    own = np.uint64(max(0, size - 1).bit_length())
    spare = np.uint64(max(0, bits.width - 64 + int(own)))
    keys = bits.words(size) >> spare
    packed = np.sort(keys << own | np.arange(size, dtype=np.uint64))
    order = (packed & (np.uint64(1) << own) - np.uint64(1)).view(np.int64)
    # 2. shuffle numbers with equal keys
    packed >>= own
    ties = np.flatnonzero(packed[1:] == packed[:-1])
    for run in np.split(ties, np.flatnonzero(np.diff(ties) > 1) + 1):
        if run.size:
            tied = slice(run[0], run[-1] + 2)
            order[tied] = order[tied][_drawn_in_turn(run.size + 1, run.size + 1, bits)]
    return order


def sample_without_replacement(count: int, size: int, bits: Bits) -> IndexArray:
    """A list of ``size`` different numbers from 0 up to count - 1. All lists are equally likely.

    >>> from discreet.audit import SeededBits
    >>> sample_without_replacement(1000, 5, SeededBits(4))
    array([630, 657, 381, 587, 211])
    """
    among, wanted = _checks.count(count=count), _checks.count(size=size)
    if among > _MOST:
        raise InvalidArgument(f"count = {count}: at most 2^62")
    if wanted > among:
        raise InvalidArgument(f"size = {size}: at most count = {count} can be drawn")
    if wanted > among // 2:
        return permutation(among, bits)[:wanted]
    law, found, missing = UniformLaw(max(among, 1)), np.empty(0, np.int64), wanted
    while missing:  # the first different numbers of an infinite list of draws
        both = np.concatenate([found, law.draws(bits, missing)])
        found = both[np.sort(np.unique(both, return_index=True)[1])]
        before, missing = missing, wanted - found.size
        if missing > before // 2:  # very rare, except in audits without noise
            return np.concatenate([found, _of_the_others(found, among, missing, bits)])
    return found


def _of_the_others(found: IndexArray, among: int, wanted: int, bits: Bits) -> IndexArray:
    """A list of ``wanted`` different numbers without the found ones.

    Whether this function is called depends only on which draws were equal. So all numbers stay
    equally likely.
    """
    ranks = _drawn_in_turn(among - found.size, wanted, bits)
    taken = np.sort(found) - np.arange(found.size)  # the number of others below each
    return ranks + np.searchsorted(taken, ranks, side="right")


def _drawn_in_turn(count: int, size: int, bits: Bits) -> IndexArray:
    """A sample without replacement, by the shuffle of Fisher and Yates."""
    moved: dict[int, int] = {}  # the number at an index, if it differs from the index
    found = np.empty(size, np.int64)
    for first in range(size):
        place = first + UniformLaw(count - first).draw(bits)
        found[first] = moved.get(place, place)
        moved[place] = moved.pop(first, first)
    return found
