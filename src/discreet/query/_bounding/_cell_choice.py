"""Chooses the groups that each unit counts in, for `UnitCells` in NumPy: `_choice` in the engine.

The hash is the one of `_choice`, with the same integers.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from discreet._arrays import IndexArray
from discreet.query._bounding._cells import UnitCells
from discreet.query._bounding._choice import ROUNDS, A, B, C, P, words_of

_P_BITS = 31
_HASH_BITS = 62
_SORTED_BITS = 62  # of a unit's number and its hash


def hashes(
    cells: UnitCells, words: Sequence[IndexArray] | IndexArray, added: IndexArray | int
) -> IndexArray:
    """The hash of each cell, below 2^62: of its unit's id, with four words, of each
    cell or of all. The second round also adds ``added``."""
    first, second, third = (np.fmod(cells.ids, size).take(cells.owners) for size in (A, B, C))
    third += added
    for index in range(ROUNDS):
        second += words[index % 4]
        if index == 1:
            second += third
        second += first * first
        first, second = _near_remainder(second), first
    first -= P * (first >= P)
    second -= P * (second >= P)
    first <<= _P_BITS
    first += second
    return first


def _near_remainder(number: IndexArray) -> IndexArray:
    """A number with the same remainder by P, at most 2^31 + 2. It takes less time than a quotient,
    and squares of it fit 64 bits as those of remainders do."""
    for _ in range(2):
        above = number >> _P_BITS
        number &= P
        number += above
    return number


def offsets(cells: UnitCells, salt: bytes, added: IndexArray | int) -> IndexArray:
    """The hash of each cell under this salt."""
    words = words_of(hashlib.md5(salt, usedforsecurity=False).digest())
    return hashes(cells, words, added)


def first_cells(cells: UnitCells, words: IndexArray, most: int) -> IndexArray:
    """The indices of the cells of each unit's first groups by the hash, at most this many. Of equal
    hashes, the first place wins. ``words`` has shape (4, groups)."""
    counts = np.bincount(cells.owners, minlength=len(cells.ids))
    is_chosen = (counts <= most).take(cells.owners)
    asked = np.flatnonzero(~is_chosen)
    if asked.size == 0:
        return np.arange(is_chosen.size)
    # 1. the units with too many groups
    some = UnitCells(cells.ids, cells.owners.take(asked), cells.places.take(asked), asked, ())
    counts = counts[counts > most]
    own = np.repeat(np.arange(counts.size), counts)
    hashed = hashes(some, [word.take(some.places) for word in words], 0)
    # 2. of each, the hash of the last group that counts, without its last bits
    dropped = max(0, _HASH_BITS + counts.size.bit_length() - _SORTED_BITS)
    near = (own << (_HASH_BITS - dropped)) | (hashed >> dropped)
    last = np.sort(near)[np.cumsum(counts) - counts + most - 1][own]
    # 3. the groups up to this one, in order where several of a unit could be the last
    is_first = near <= last
    if np.count_nonzero(is_first) > most * counts.size:
        order = np.lexsort((some.places, hashed, own))
        starts = np.cumsum(counts) - counts
        is_first[order] = np.arange(own.size) - starts[own] < most
    is_chosen[asked] = is_first
    return np.flatnonzero(is_chosen)
