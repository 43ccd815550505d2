"""Chooses the groups that each unit counts in, for `UnitCells` in NumPy: `_choice` in the engine.

The hash is the one of `_choice`, with the same integers.
"""

import hashlib

import numpy as np

from discreet._arrays import IndexArray
from discreet.query._bounding._cells import UnitCells
from discreet.query._bounding._choice import ROUNDS, A, B, C, P, words_of

_NO_HASH = np.iinfo(np.int64).max


def hashes(cells: UnitCells, words: IndexArray, added: IndexArray | int) -> IndexArray:
    """The hash of each cell, below 2^62: of its unit's id, with four words of shape (4, cells) or
    (4,). The second round also adds ``added``."""
    first, second, third = (np.fmod(cells.ids, size)[cells.owners] for size in (A, B, C))
    third += added
    for index in range(ROUNDS):
        second += words[index % 4]
        if index == 1:
            second += third
        second += first * first
        first, second = np.fmod(second, P, out=second), first
    return first * 2**31 + second


def offsets(cells: UnitCells, salt: bytes, added: IndexArray | int) -> IndexArray:
    """The hash of each cell under this salt."""
    words = words_of(hashlib.md5(salt, usedforsecurity=False).digest())
    return hashes(cells, words, added)


def first_cells(cells: UnitCells, words: IndexArray, most: int) -> IndexArray:
    """The indices of the cells of each unit's first groups by the hash, at most this many. Of equal
    hashes, the first place wins. ``words`` has shape (4, groups)."""
    counts = np.bincount(cells.owners, minlength=len(cells.ids))
    is_chosen = counts[cells.owners] <= most
    asked = np.flatnonzero(~is_chosen)
    if asked.size == 0:
        return np.arange(is_chosen.size)
    # 1. the units with too many groups
    some = cells.of(asked)
    counts = counts[counts > most]
    starts = np.cumsum(counts) - counts
    own = np.repeat(np.arange(counts.size), counts)
    hashed = hashes(some, words[:, some.places], 0)
    # 2. of each, the hash of the last group that counts
    last = _hash_in_place(most, hashed, counts, own)[own]
    # 3. the groups before it, and as many with this hash as there is room for
    is_before, is_last = hashed < last, hashed == last
    room = most - np.add.reduceat(is_before, starts, dtype=np.int64)
    so_far = np.cumsum(is_last)
    earlier = (so_far - is_last)[starts]
    is_chosen[asked] = is_before | (is_last & (so_far - earlier[own] <= room[own]))
    return np.flatnonzero(is_chosen)


def _hash_in_place(
    most: int, hashed: IndexArray, counts: IndexArray, own: IndexArray
) -> IndexArray:
    """Of each unit's hashes, the one that is in this place when they are sorted. Units with about
    as many hashes share a matrix."""
    found = np.empty(counts.size, np.int64)
    starts = np.cumsum(counts) - counts
    bits = np.ceil(np.log2(counts)).astype(np.int64)
    for bit in np.unique(bits).tolist():
        units = np.flatnonzero(bits == bit)
        rows = np.full(counts.size, -1)
        rows[units] = np.arange(units.size)
        there = np.flatnonzero(rows[own] >= 0)
        table = np.full((units.size, 2**bit), _NO_HASH)
        table[rows[own[there]], there - starts[own[there]]] = hashed[there]
        found[units] = np.partition(table, most - 1, axis=1)[:, most - 1]
    return found
