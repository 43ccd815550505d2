"""Adds up the rows of each cell, which is one unit in one group, in NumPy.

A cell's number, unit times groups plus place, is an index into an array, so that no row is looked
up or sorted. Units are computed a part at a time: these arrays stay in the processor's cache.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet._arrays import IndexArray

Batches = Callable[[], AbstractContextManager[Iterable[pa.RecordBatch]]]
"""Reads all rows once, a batch at a time: (id, place, addends...), all integers and none NULL."""

EXACT_BITS = 53  # of a float
ADDEND_BITS = 31  # so that 2^22 addends are summed exactly as floats, and 2^32 as integers
_MOST_ROWS = 2**27  # in memory at once
_SLICES = 2**10  # of all units by a hash of their ids
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_TO_SLICE = np.uint64(54)
_SIZE = 2**20  # of an array of cells
_MOST_PARTS = 2**12
_ROWS_OF_PART = 2**11  # on average, in the rows that are divided at once
_SPARSE = 16  # cells in an array for each row
_SMALL_ARRAY = 2**16  # cells, for which an array is made even for one row
_EXACT_ROWS = 2 ** (EXACT_BITS - ADDEND_BITS)  # are summed as floats

_Block = list[npt.NDArray[np.integer]]  # ids or numbers of units, places, addends...


@dataclass(frozen=True, slots=True)
class UnitCells:
    """Cells in the order of units and places: each with its unit's number in ``ids``, its place,
    its rows and the sum of each addend."""

    ids: IndexArray
    owners: IndexArray
    places: IndexArray
    rows: IndexArray
    sums: tuple[IndexArray, ...]

    def of(self, chosen: IndexArray) -> "UnitCells":
        """The cells with these indices."""
        sums = tuple(total[chosen] for total in self.sums)
        return UnitCells(
            self.ids, self.owners[chosen], self.places[chosen], self.rows[chosen], sums
        )


def cells_of(batches: Batches, groups: int) -> Iterator[UnitCells]:
    """The cells of all units, some units at a time. If there are too many rows for memory, they are
    read several times, each time those of a slice of all units."""
    start, width = 0, _SLICES
    while start < _SLICES:
        blocks = _read(batches, start, width)
        if blocks is None:
            width //= 2
            continue
        if blocks:
            yield from _cells_of_blocks(blocks, groups)
        start += width


def _read(batches: Batches, start: int, width: int) -> list[_Block] | None:
    """The rows of these slices of units; ``None`` if they are too many and can be fewer."""
    blocks, count = [], 0
    with batches() as found:
        for batch in found:
            rows = [column.to_numpy() for column in batch.columns]
            if width < _SLICES:
                slices = (rows[0].view(np.uint64) * _MIXER) >> _TO_SLICE
                inside = (slices >= start) & (slices < start + width)
                rows = [column[inside] for column in rows]
            if rows[0].size:
                blocks.append(rows)
            count += rows[0].size
            if count > _MOST_ROWS and width > 1:
                return None
    return blocks


def _cells_of_blocks(blocks: list[_Block], groups: int) -> Iterator[UnitCells]:
    """The cells of these rows, which are removed from the list meanwhile."""
    ids = _numbered(blocks)
    units = 2 ** max(0, (_SIZE // groups).bit_length() - 1, (len(ids) // _MOST_PARTS).bit_length())
    for part, pieces in enumerate(_divided(blocks, groups, units, -(-len(ids) // units))):
        if not pieces:
            continue
        indices, *addends = map(np.concatenate, zip(*pieces, strict=True))
        pieces.clear()
        own = ids[part * units : (part + 1) * units]
        indices -= part * units * groups
        found = _summed(indices, addends, len(own) * groups)
        owners = found.cells // groups
        numbers = np.arange(len(own)) + own.start if isinstance(own, range) else own
        yield UnitCells(numbers, owners, found.cells - owners * groups, found.rows, found.sums)


def _numbered(blocks: list[_Block]) -> IndexArray | range:
    """Put numbers of units in the place of their ids, and return the id of each number. Ids that
    are close together are counted from the least; others are numbered as they appear."""
    least = min(int(block[0].min()) for block in blocks)
    most = max(int(block[0].max()) for block in blocks)
    if most - least < _SPARSE * sum(block[0].size for block in blocks):
        for block in blocks:
            block[0] = block[0] - least
        return range(least, most + 1)
    encoded = pa.chunked_array([block[0] for block in blocks]).dictionary_encode()
    encoded = encoded.unify_dictionaries()
    for block, chunk in zip(blocks, encoded.chunks, strict=True):
        block[0] = chunk.indices.to_numpy().astype(np.int64)
    found: IndexArray = encoded.chunk(0).dictionary.to_numpy()
    return found


def _divided(blocks: list[_Block], groups: int, units: int, parts: int) -> list[list[_Block]]:
    """The rows of each part, which has this many units: the numbers of their cells, and addends."""
    kind, shift = np.uint8 if parts <= 2**8 else np.uint16, units.bit_length() - 1
    found: list[list[_Block]] = [[] for _ in range(parts)]
    while blocks:
        taken = [blocks.pop()]
        while blocks and sum(rows[0].size for rows in taken) < parts * _ROWS_OF_PART:
            taken.append(blocks.pop())
        numbers, places, *addends = map(np.concatenate, zip(*taken, strict=True))
        indices = numbers * groups
        indices += places
        if parts == 1:
            found[0].append([indices, *addends])
            continue
        part = (numbers >> shift).astype(kind)
        order = np.argsort(part, kind="stable")  # by counting, since there are few parts
        rows = [indices[order], *(addend[order] for addend in addends)]
        ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
        for own, start, end in zip(found, [0, *ends], ends, strict=False):
            if start < end:
                own.append([column[start:end] for column in rows])
    return found


@dataclass(frozen=True, slots=True)
class _SummedCells:
    """Cells with rows by their numbers, in order."""

    cells: IndexArray
    rows: IndexArray
    sums: tuple[IndexArray, ...]


def _summed(
    indices: IndexArray, addends: Sequence[npt.NDArray[np.integer]], size: int
) -> _SummedCells:
    """The cells of these rows, each below this size."""
    if size > max(_SMALL_ARRAY, _SPARSE * indices.size):
        order = np.argsort(indices)
        ordered = indices[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        sums = tuple(np.add.reduceat(each[order], starts, dtype=np.int64) for each in addends)
        return _SummedCells(ordered[starts], np.diff(starts, append=ordered.size), sums)
    counts = np.bincount(indices, minlength=size)
    cells = np.flatnonzero(counts)
    rows = counts[cells]
    totals = []
    for addend in addends:
        if addend.dtype == np.int8 and addend.all():  # a count, and no value is missing
            totals.append(rows)
            continue
        total = np.zeros(cells.size, np.int64)
        for start in range(0, indices.size, _EXACT_ROWS):
            some = slice(start, start + _EXACT_ROWS)
            total += np.bincount(indices[some], addend[some], size)[cells].astype(np.int64)
        totals.append(total)
    return _SummedCells(cells, rows, tuple(totals))
