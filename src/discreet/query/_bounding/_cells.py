"""Adds up the rows of each cell, which is one unit in one group, in NumPy.

A row becomes a word of 64 bits, or a few: the number of its unit, its place and its addends. NumPy
sorts words faster than it looks up anything, and then the rows of a cell are next to each other.
Sorted words are computed a part at a time, so that its arrays stay in the processor's cache.
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
ADDEND_BITS = 31  # so that 2^32 addends are summed exactly as integers
_MOST_ROWS = 2**27  # in memory at once
_SLICES = 2**10  # of all units by a hash of their ids
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_TO_SLICE = np.uint64(54)
_WORD_BITS = 62  # so that no word is negative, nor one unit later
_UNIT_BITS = 40  # of ids that are close together
_PART = 2**16  # rows
_BLOCK = 2**20  # rows

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


def cells_of(batches: Batches, groups: int, ends: Sequence[tuple[int, int]]) -> Iterator[UnitCells]:
    """The cells of all units, some units at a time. Each addend is between its ends. If there are
    too many rows for memory, they are read several times, each time those of a slice of all
    units."""
    start, width = 0, _SLICES
    while start < _SLICES:
        blocks = _read(batches, start, width)
        if blocks is None:
            width //= 2
            continue
        if blocks:
            yield from _cells_of_blocks(blocks, groups, ends)
        start += width


def _read(batches: Batches, start: int, width: int) -> list[_Block] | None:
    """The rows of these slices of units; ``None`` if they are too many and can be fewer."""
    blocks: list[_Block] = []
    several: list[_Block] = []
    held = count = 0
    with batches() as found:
        for batch in found:
            rows = [column.to_numpy() for column in batch.columns]
            if width < _SLICES:
                slices = (rows[0].view(np.uint64) * _MIXER) >> _TO_SLICE
                inside = (slices >= start) & (slices < start + width)
                rows = [column[inside] for column in rows]
            several.append(rows)
            held += rows[0].size
            count += rows[0].size
            if count > _MOST_ROWS and width > 1:
                return None
            if held >= _BLOCK:
                blocks.append(_joined(several))
                held = 0
    if held:
        blocks.append(_joined(several))
    return blocks


def _joined(several: list[_Block]) -> _Block:
    """The rows of these blocks, which are removed from the list. The engine writes the next ones
    where they were, so that the system has to find memory for few large arrays only."""
    found = [np.concatenate(columns) for columns in zip(*several, strict=True)]
    several.clear()
    return found


def _cells_of_blocks(
    blocks: list[_Block], groups: int, ends: Sequence[tuple[int, int]]
) -> Iterator[UnitCells]:
    """The cells of these rows, which are removed from the list meanwhile."""
    ids = _numbered(blocks)
    place_bits = (groups - 1).bit_length()
    layout = _Layout.of(ends, _WORD_BITS - place_bits - (len(ids) - 1).bit_length())
    least = ids.start if isinstance(ids, range) else 0
    words = layout.words(blocks, least, place_bits)
    for word in words:
        word.sort()
    to_unit, start = place_bits + layout.widths[0], 0
    while start < words[0].size:
        last = words[0][min(start + _PART, words[0].size) - 1] >> to_unit
        end = int(np.searchsorted(words[0], (last + 1) << to_unit))
        part = [word[start:end] for word in words]
        yield _added_up(part, layout, ids, place_bits)
        start = end


def _numbered(blocks: list[_Block]) -> IndexArray | range:
    """Put numbers of units in the place of their ids, and return the id of each number. Ids that
    are close together are counted from the least; others are numbered as they appear."""
    least = min(int(block[0].min()) for block in blocks)
    most = max(int(block[0].max()) for block in blocks)
    if most - least < 2**_UNIT_BITS:
        return range(least, most + 1)
    encoded = pa.chunked_array([block[0] for block in blocks]).dictionary_encode()
    encoded = encoded.unify_dictionaries()
    for block, chunk in zip(blocks, encoded.chunks, strict=True):
        block[0] = chunk.indices.to_numpy().astype(np.int64)
    found: IndexArray = encoded.chunk(0).dictionary.to_numpy()
    return found


@dataclass(frozen=True, slots=True)
class _BitRange:
    """Some bits of an addend, counted from its lower end: where they are in it, and in a word."""

    addend: int
    start: int
    width: int
    word: int
    shift: int
    is_cut: bool

    def of_words(self, words: Sequence[IndexArray]) -> IndexArray:
        """The piece of each row, at its place in the addend."""
        found: IndexArray = (words[self.word] >> self.shift) & (2**self.width - 1)
        return found << self.start if self.start else found


@dataclass(frozen=True, slots=True)
class _Layout:
    """The words of a row: in each, below the number of the cell, pieces of this many bits."""

    ends: tuple[tuple[int, int], ...]
    pieces: tuple[_BitRange, ...]
    widths: tuple[int, ...]

    @staticmethod
    def of(ends: Sequence[tuple[int, int]], room: int) -> "_Layout":
        """The layout of addends between these ends, in words with room for this many bits. An
        addend is cut only if no word has room for it."""
        pieces: list[_BitRange] = []
        bits = [0]
        for addend, (lower, upper) in enumerate(ends):
            width = (upper - lower).bit_length()
            for start in range(0, width, room):
                taken = min(room, width - start)
                if bits[-1] + taken > room:
                    bits.append(0)
                pieces.append(
                    _BitRange(addend, start, taken, len(bits) - 1, bits[-1], taken < width)
                )
                bits[-1] += taken
        return _Layout(tuple(ends), tuple(pieces), tuple(bits))

    def words(self, blocks: list[_Block], least: int, place_bits: int) -> list[IndexArray]:
        """The words of all rows of these blocks, which are removed from the list meanwhile."""
        count = sum(block[0].size for block in blocks)
        found = [np.empty(count, np.int64) for _ in self.widths]
        while blocks:
            numbers, places, *addends = blocks.pop()
            rows = [word[count - numbers.size : count] for word in found]
            count -= numbers.size
            cells = numbers - least
            cells <<= place_bits
            cells |= places
            for row, width in zip(rows, self.widths, strict=True):
                np.left_shift(cells, width, out=row)
            for piece in self.pieces:
                lower, upper = self.ends[piece.addend]
                # clipped, so that no addend can reach the bits of another unit
                own = np.clip(addends[piece.addend], lower, upper).astype(np.int64)
                own -= lower
                if piece.is_cut:
                    own >>= piece.start
                    own &= 2**piece.width - 1
                own <<= piece.shift
                rows[piece.word] |= own
        return found


def _added_up(
    words: Sequence[IndexArray], layout: _Layout, ids: IndexArray | range, place_bits: int
) -> UnitCells:
    """The cells of these sorted words, which are all rows of their units."""
    numbers = words[0] >> layout.widths[0]
    starts = _starts(numbers)
    rows = _sizes(starts, numbers.size)
    cells = numbers.take(starts)
    units = cells >> place_bits
    firsts = _starts(units)
    owners = np.arange(firsts.size).repeat(_sizes(firsts, units.size))
    ends = starts + (rows - 1)
    sums = [lower * rows for lower, _ in layout.ends]
    for piece in layout.pieces:
        own = piece.of_words(words)
        if piece.width == 1 and own.all():  # a count, and no value is missing
            sums[piece.addend] += rows << piece.start
        else:
            so_far = own.cumsum().take(ends)
            sums[piece.addend] += np.diff(so_far, prepend=0)
    numbered = units.take(firsts)
    named = numbered + ids.start if isinstance(ids, range) else ids[numbered]
    return UnitCells(named, owners, cells & (2**place_bits - 1), rows, tuple(sums))


def _sizes(starts: IndexArray, size: int) -> IndexArray:
    return np.diff(starts, append=size)


def _starts(ordered: IndexArray) -> IndexArray:
    """The indices at which another number begins."""
    is_first = np.empty(ordered.size, np.bool_)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
