"""Checks that a computation gives rows, with the columns that a mechanism needs."""

from typing import Any

from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._parts import RowsPart
from discreet.mechanisms._rows import Grid


def rows_part(bounded: Bounded[Any]) -> RowsPart:  # Any: checked here
    """The computation's only part; raises unless it gives rows."""
    part = stated(bounded).part
    if not isinstance(part, RowsPart):
        raise InvalidArgument(f"{bounded.name!r} gives {part.gives}: state rows by Bounded.rows")
    return part


def column_of(bounded: Bounded[Any]) -> tuple[RowsPart, Grid]:  # Any: checked here
    """The computation's part and its only column's grid; raises for anything else."""
    part = stated(bounded).part
    if not isinstance(part, RowsPart) or len(part.columns) != 1:
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: state rows of one column by Bounded.rows"
        )
    return part, part.columns[0][1]


def part_on(bounded: Bounded[Any], grid: Grid) -> RowsPart:  # Any: checked here
    """The computation's part; raises unless its column has this grid."""
    part, found = column_of(bounded)
    if found != grid:
        raise InvalidArgument(f"grid = {grid!r}: {bounded.name!r} is on {found!r}, give that one")
    return part
