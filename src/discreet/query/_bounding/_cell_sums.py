"""Bounds the contribution of each unit in NumPy, with the integers of `_bounding.bounded_sums`.

    rows that count, from the engine  ->  cells (`_cells`)  ->  at most G cells per unit
    (`_cell_choice`), rows allotted within the caps, totals in proportion  ->  one row per group

Only plans with few groups and small addends are computed like this (`cell_sums_of`). That depends
on public facts alone. The rows decide on time and memory, as in any engine, but on no number.
"""

from dataclasses import dataclass
from decimal import Decimal

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from discreet._arrays import IndexArray
from discreet.query._bounding._bounding import (
    PLACE,
    SALT_OF_ROWS,
    SALT_OF_TOTALS,
    rows_that_count,
    sum_name,
)
from discreet.query._bounding._carriers import CarriedSum, carried_sums
from discreet.query._bounding._cell_choice import first_cells, offsets
from discreet.query._bounding._cells import ADDEND_BITS, EXACT_BITS, Batches, UnitCells, cells_of
from discreet.query._bounding._choice import word_table
from discreet.query._bounding._compiling import Compiler
from discreet.query._plan._plan import Plan
from discreet.query._plan._sums import Counted, SumOf

_MOST_GROUPS = 2**12
_CAP_BITS = 30
_HALF = 30  # bits of half a total
_FEW = 2**10


@dataclass(frozen=True, slots=True)
class CellSums:
    """The way to compute a plan's sums in cells. The engine gives the addends of ``carriers`` in
    each row, and each sum of the plan with an argument has a recipe."""

    plan: Plan
    carriers: tuple[SumOf, ...]
    recipes: tuple[CarriedSum | None, ...]

    def rows(self, table: ir.Table) -> ir.Table:
        """The expression of the rows: (unit, place, addends...)."""
        compiler = Compiler(self.plan.declaration)
        values = {sum_name(n): compiler.addend(one) for n, one in enumerate(self.carriers)}
        found = rows_that_count(self.plan, table, compiler, values)
        addends = {
            sum_name(n): found[sum_name(n)].cast("int8" if one.grid is None else "int32")
            for n, one in enumerate(self.carriers)
        }
        place = found[PLACE].cast("uint8" if len(self.plan.groups) <= 2**8 else "uint16")
        return found.select("unit", **{PLACE: place}, **addends)

    def totals(self, batches: Batches) -> pa.Table:
        """One row for each group of the plan: (place, sums...), each sum an exact decimal."""
        groups, table = len(self.plan.groups), word_table(self.plan.listed_keys)
        words = np.stack([table[f"word{n}"].to_numpy() for n in range(4)])
        totals = [[0] * groups for _ in self.plan.sums_of_rows]
        for cells in cells_of(batches, groups, [one.addend_ends for one in self.carriers]):
            for total, added in zip(totals, self._bounded(cells, words), strict=True):
                total[:] = map(int.__add__, total, added)
        columns = {
            sum_name(n): pa.array(list(map(Decimal, total)), pa.decimal128(38, 0))
            for n, total in enumerate(totals)
        }
        return pa.table({PLACE: pa.array(range(groups), pa.int64()), **columns})

    def _bounded(self, cells: UnitCells, words: IndexArray) -> list[list[int]]:
        """Each sum for each group, over these cells with their units' contributions bounded."""
        plan, caps = self.plan, self.plan.declaration.caps
        if plan.groups_per_unit < len(plan.groups):
            cells = cells.of(first_cells(cells, words, plan.groups_per_unit))
        allotted = np.minimum(cells.rows, caps.rows_per_group)
        if caps.rows < plan.groups_per_unit * caps.rows_per_group:
            allotted = _allotted(cells, allotted, caps.rows)
        # the cells of which not all rows count, and their offsets
        cut = np.flatnonzero(allotted != cells.rows)
        few = cells.of(cut)
        offset = offsets(few, SALT_OF_TOTALS, few.places) % few.rows
        found = []
        for one, recipe in zip(plan.sums_of_rows, self.recipes, strict=True):
            lower, upper = (caps.rows_per_group * end for end in one.ends)
            if recipe is None:
                is_of_units = one.counted is Counted.UNITS
                values = np.ones_like(allotted) if is_of_units else allotted
            else:
                values = np.array(recipe.total(cells.sums, cells.rows))
                values[cut] = _scaled(values[cut], allotted[cut], few.rows, offset)
                np.clip(values, min(0, lower), max(0, upper), out=values)
            found.append(_by_group(values, cells.places, len(plan.groups), max(-lower, upper)))
        return found


def cell_sums_of(plan: Plan, ids: pa.Schema) -> CellSums | None:
    """The way to compute the plan's sums in cells, for ids in columns of these types; ``None``
    where public facts don't allow it."""
    caps = plan.declaration.caps
    if plan.declaration.unit.column is None or plan.private or not plan.sums_of_rows:
        return None
    sizes = (plan.groups_per_unit * caps.rows_per_group, caps.of_rows(len(plan.groups)))
    if len(plan.groups) > _MOST_GROUPS or max(sizes) > 2**_CAP_BITS:
        return None
    if any(abs(end) >= 2**ADDEND_BITS for one in plan.sums_of_rows for end in one.ends):
        return None
    if len(ids) != 1 or not pa.types.is_integer(ids[0].type) or ids[0].type == pa.uint64():
        return None
    return CellSums(plan, *carried_sums(plan))


def _allotted(cells: UnitCells, counted: IndexArray, most: int) -> IndexArray:
    """The rows allotted in each cell, at most this many for each unit: `_bounding._allotted`."""
    starts = np.flatnonzero(np.diff(cells.owners, prepend=-1))
    sizes = np.diff(starts, append=counted.size)
    in_all = np.add.reduceat(counted, starts) if starts.size else counted
    so_far = np.cumsum(counted)
    after = so_far - np.repeat((so_far - counted)[starts], sizes)
    firsts = cells.of(starts)
    offset = np.repeat(offsets(firsts, SALT_OF_ROWS, 0) % in_all, sizes)
    due, total = np.repeat(np.minimum(in_all, most), sizes), np.repeat(in_all, sizes)
    ends = [(end * due + offset) // total for end in (after, after - counted)]
    found: IndexArray = ends[0] - ends[1]
    return found


def _scaled(
    total: IndexArray, allotted: IndexArray, rows: IndexArray, offset: IndexArray
) -> IndexArray:
    """(|total| * allotted + offset) div rows, with the sign of the total. The product could leave
    64 bits, but not those of the total's remainder by the rows."""
    size = np.abs(total)
    whole, left = np.divmod(size, rows)
    found: IndexArray = np.sign(total) * (whole * allotted + (left * allotted + offset) // rows)
    return found


def _by_group(values: IndexArray, places: IndexArray, groups: int, largest: int) -> list[int]:
    """The sum of the values of each group, none of which is larger. They are summed as floats, of
    so few that they are exact, and in two halves where these would be very few."""
    step = 2**EXACT_BITS // max(1, largest)
    if step < _FEW:
        high, low = values >> _HALF, values & (2**_HALF - 1)
        tops = _by_group(high, places, groups, (largest >> _HALF) + 1)
        bottoms = _by_group(low, places, groups, 2**_HALF)
        return [(top << _HALF) + bottom for top, bottom in zip(tops, bottoms, strict=True)]
    total = np.zeros(groups, np.int64)
    for start in range(0, values.size, step):
        some = slice(start, start + step)
        total += np.bincount(places[some], values[some], groups).astype(np.int64)
    return list(map(int, total))
