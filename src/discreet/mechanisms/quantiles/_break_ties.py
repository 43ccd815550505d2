"""Equal values made different, so that a cut can divide them, one row's influence staying one row.

Each place becomes ``finer`` finer ones. The first, second, ... row at a place goes to the first,
second, ... of its finer places in an order that is public and fills them evenly (that of the bits
of 0, 1, 2, ... read backwards); after the last one it begins anew. How many rows are at a place
says which finer places are taken, so that a row that comes in takes one more and moves no other.
"""

from functools import cache

import numpy as np

from discreet.noise._arrays import IndexArray

_MOST_BITS = 16
_ROOM_BITS = 62


def finer(places: int) -> int:
    """The number of finer places for each place: 65 536 where int64 has room for them."""
    return 1 << min(_MOST_BITS, _ROOM_BITS - (places - 1).bit_length())


def break_ties(rows: IndexArray, by: int) -> IndexArray:
    """The rows, in any order, at finer places, in rising order."""
    ordered = np.sort(rows)
    is_first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    before = np.arange(ordered.size) - np.repeat(first, np.diff(first, append=ordered.size))
    return np.sort(ordered * by + _order(by)[before % by])


@cache
def _order(size: int) -> IndexArray:
    """The numbers below a power of two, by their bits read backwards."""
    found = np.zeros(1, np.int64)
    while found.size < size:
        found = np.concatenate((2 * found, 2 * found + 1))
    return found
