"""Tie breaking: equal values become different, so that a cut can divide them.

Each place becomes ``finer`` finer places. The first, second, ... row at a place goes to the first,
second, ... of its finer places, in a public order that fills them evenly (0, 1, 2, ... with
reversed bits). After the last finer place the order starts again. Which finer places are taken
depends only on the number of rows at the place. So a new row takes one more finer place and moves
no other row.
"""

from functools import cache

import numpy as np

from discreet._arrays import IndexArray

_MOST_BITS = 16
_ROOM_BITS = 62


def finer(places: int) -> int:
    """The number of finer places for each place: 65 536, or fewer so that int64 holds them."""
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
    """The numbers below a power of two, with their bits reversed."""
    found = np.zeros(1, np.int64)
    while found.size < size:
        found = np.concatenate((2 * found, 2 * found + 1))
    return found
