"""Whether two sources have rows in common, as far as that shows without reading them: one file, one
database table, a table and its partition, one frame, or frames that are views and slices of one.

Slices count as one frame whichever rows they hold: whether they overlap may depend on the number of
rows, which is private.
"""

from collections.abc import Iterator

from discreet.query._engines._address import AddressedTable, may_be_one_table, places_at
from discreet.query._engines._engine import are_in_one_place
from discreet.query._rows._files import FileSource, places_of
from discreet.query._rows._source import ArrowSource, TableSource, place_of


def share_rows(one: TableSource, other: TableSource) -> bool:
    """Whether the sources are of one place, or hold their columns in the same memory."""
    if place_of(one) == place_of(other):
        return True
    if isinstance(one, FileSource) and isinstance(other, FileSource):
        return not places_of(one).isdisjoint(places_of(other))  # a folder, and a file in it
    if may_be_one_table(one, other):
        return True
    if isinstance(one, AddressedTable) and isinstance(other, AddressedTable):
        return are_in_one_place([one, other]) and not places_at(one).isdisjoint(places_at(other))
    if not (isinstance(one, ArrowSource) and isinstance(other, ArrowSource)):
        return False
    return not set(_memory(one)).isdisjoint(_memory(other))


def _memory(source: ArrowSource) -> Iterator[tuple[str, int]]:
    """The memory of the columns as it was before they were sliced: where Arrow's begins, and
    NumPy's arrays."""
    for column in source.table.columns:
        for chunk in column.chunks:
            yield from (("arrow", part.address) for part in chunk.buffers()[1:2] if part)
    for root in source.roots:
        yield "numpy", id(root)
