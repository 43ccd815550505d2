"""Bounds the contribution of each unit, in the engine: expressions for sums and for rows.

    rows that count  ->  one row per (unit, group)  ->  at most G groups per unit,
    rows allotted within the caps, totals in proportion  ->  one row per group

Each step is a pure function of the rows of one unit, until the last, which adds integers. The
engine knows a group by its place in the plan. A public hash of a unit's id and the group's values
decides which groups the unit counts in, and such hashes round its rows and totals without bias. So
nothing of a unit depends on another unit's rows.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import ibis
import ibis.expr.types as ir

from discreet._unit import Unit
from discreet.query._bounding._carriers import carried_sums, is_small
from discreet.query._bounding._choice import first_groups, numbered, with_offset, word_table
from discreet.query._bounding._compiling import Compiler
from discreet.query._bounding._numbering import comparable, in_memory, placed, with_numbers
from discreet.query._bounding._stages import StagedValue, combined
from discreet.query._engines._conversion import clamped, id_of
from discreet.query._engines._engine import as_bytes, quotient, share
from discreet.query._facts._columns import KeyValue
from discreet.query._plan._plan import Plan
from discreet.query._plan._private_keys import most_of_one_unit, with_private_keys
from discreet.query._plan._sums import Counted

RowValue = Callable[[Compiler], StagedValue]
"""The expression of a value in each row."""

_UNIT = "unit"
PLACE = "place"
VALUE = "value"
TIMES = "times"
KEPT = "kept"
CUT_BINS = 32
_ROWS = "rows"
_COUNTED = "rows_counted"
_ALLOTTED = "rows_allotted"
_OFFSET = "offset_by_hash"
SALT_OF_ROWS = b"discreet: rows of each group, 1"
SALT_OF_TOTALS = b"discreet: totals, 1"
_SALT_OF_VALUES = b"discreet: values in each group, 1"


def bounded_sums(plan: Plan, table: ir.Table) -> ir.Table:
    """The expression of all sums: one row for each group that has rows."""
    compiler = Compiler(plan.declaration)
    is_bounded = plan.declaration.unit.column is not None
    added = carried_sums(plan)[0] if is_bounded else plan.sums_of_rows
    sums = {sum_name(number): compiler.addend(one) for number, one in enumerate(added)}
    rows = rows_that_count(plan, table, compiler, sums)
    if is_bounded:
        rows = _scaled(plan, _first_groups(plan, _per_unit(plan, rows)))
    return _of_several_units(plan, _per_group(plan, rows))


def bounded_rows(
    plan: Plan,
    table: ir.Table,
    values: Mapping[str, RowValue],
    keys: Mapping[str, Sequence[KeyValue]] | None = None,
) -> ir.Table:
    """The expression of these values in the rows themselves: (place, values..., times).

    A value that has ``keys`` is the number of its key. Rows without one of the values, or with one
    that is no key, are left out. A unit's groups, and the number of rows allotted to each, are
    chosen as for sums. Of the n rows in a group, in the order of their values, about
    every (n / allotted)th is taken: if C rows come up to and including some values, and C' before
    them, then

        (C allotted + o) div n - (C' allotted + o) div n

    rows with these values are, for an offset o from 0 to n - 1 that the unit's id and the place
    decide. So each row has the same share on average over the offsets.
    """
    compiler, names = Compiler(plan.declaration), list(values)
    expressions = {name: combined(comparable, value(compiler)) for name, value in values.items()}
    rows = rows_that_count(plan, table, compiler, expressions)
    rows = rows.filter(*[rows[name].notnull() for name in names])
    for name, listed in (keys or {}).items():
        rows = with_numbers(rows, name, listed, name)
    if plan.declaration.unit.column is None:
        return _summed(rows.mutate(**{TIMES: ibis.literal(1, "int64")}), names)
    # 1. the rows allotted in each group of a unit
    cells = rows.group_by([_UNIT, PLACE]).aggregate(**{_ROWS: rows.count()})
    cells = _allotted(plan, _first_groups(plan, numbered(cells)))
    cells = with_offset(cells, _OFFSET, _SALT_OF_VALUES, of_group=True)
    cells = cells.mutate(**{_OFFSET: cells[_OFFSET] % cells[_ROWS]})
    # 2. its values in the group, in order
    found = rows.group_by([_UNIT, PLACE, *names]).aggregate(**{TIMES: rows.count()})
    so_far = found[TIMES].sum().over(group_by=[_UNIT, PLACE], order_by=names, rows=(None, 0))
    found = found.mutate(so_far=so_far)
    found = found.inner_join(cells.select(_UNIT, PLACE, _ROWS, _ALLOTTED, _OFFSET), [_UNIT, PLACE])
    # 3. the number of rows taken of each value
    ends = (found.so_far, found.so_far - found[TIMES])
    after, before = (
        quotient(end * found[_ALLOTTED] + found[_OFFSET], found[_ROWS]) for end in ends
    )
    return _summed(found.mutate(**{TIMES: after - before}), names)


def counted_values(plan: Plan, table: ir.Table, value: RowValue) -> ir.Table:
    """The expression of the number of different values in each group: (place, times)."""
    found = bounded_rows(plan, table, {VALUE: value})
    return found.group_by(PLACE).aggregate(**{TIMES: found.count()})


def counted_keys(
    plan: Plan, table: ir.Table, value: RowValue, keys: Sequence[KeyValue]
) -> ir.Table:
    """The expression of the number of rows in each group with each key: (place, value, times)."""
    return bounded_rows(plan, table, {VALUE: value}, {VALUE: keys})


def cut_rows(plan: Plan, table: ir.Table) -> ir.Table:
    """The expression of the number of units by the rows that they lose to caps: (place, times,
    rows allotted).

    The place is a bin: 0 for no rows, n >= 1 for at least 2^(n-1) and less than 2^n rows.
    """
    compiler = Compiler(plan.declaration)
    rows = rows_that_count(plan, table, compiler, {})
    cells = numbered(rows.group_by([_UNIT, PLACE]).aggregate(**{_ROWS: rows.count()}))
    taken = _allotted(plan, _first_groups(plan, cells))
    taken = taken.group_by(_UNIT).aggregate(**{_ALLOTTED: taken[_ALLOTTED].sum()})
    there = cells.group_by(_UNIT).aggregate(**{_ROWS: cells[_ROWS].sum()})
    units = there.inner_join(taken, _UNIT)
    units = units.mutate(left_out=units[_ROWS] - units[_ALLOTTED])
    bins = [(units.left_out >= 2**n).cast("int64") for n in range(CUT_BINS - 1)]
    units = units.mutate(**{PLACE: reduce(operator.add, bins)})
    allotted = units[_ALLOTTED].sum().cast("decimal(38, 0)")
    return units.group_by(PLACE).aggregate(**{TIMES: units.count(), KEPT: allotted})


def units_by_rows(plan: Plan, table: ir.Table) -> ir.Table:
    """The expression of the number of units by their number of rows: (place, times).

    The place is a bin: 0 for one row, n >= 1 for more than 2^(n-1) and at most 2^n rows.
    """
    rows = rows_that_count(plan, table, Compiler(plan.declaration), {})
    units = rows.group_by(_UNIT).aggregate(**{_ROWS: rows.count()})
    bins = [(units[_ROWS] > 2**n).cast("int64") for n in range(CUT_BINS - 1)]
    units = units.mutate(**{PLACE: reduce(operator.add, bins)})
    return units.group_by(PLACE).aggregate(**{TIMES: units.count()})


def _summed(found: ir.Table, names: list[str]) -> ir.Table:
    """The number of times of each group and values."""
    times = found[TIMES].sum().cast("decimal(38, 0)")
    summed = found.group_by([PLACE, *names]).aggregate(**{TIMES: times})
    return summed.filter(summed[TIMES] > 0)


def rows_that_count(
    plan: Plan, table: ir.Table, compiler: Compiler, values: Mapping[str, StagedValue]
) -> ir.Table:
    """The rows that count: of a known unit, in a declared group, meeting the condition; with these
    expressions as columns."""
    columns: dict[str, StagedValue] = {}
    if plan.declaration.unit.column is not None:
        columns[_UNIT] = compiler.of_rows(lambda rows: _unit(rows, plan.declaration.unit))
    for index, key in enumerate(plan.query.named_keys):
        columns[_key(index)] = compiler.scalar(key.value)
    columns |= values
    selected = compiler.select(table, columns, plan.query.where)
    if _UNIT in columns:
        selected = selected.filter(selected[_UNIT].notnull())
    if not plan.private:
        columns_of_keys = [_key(index) for index in range(len(plan.query.keys))]
        return placed(selected, columns_of_keys, list(plan.listed_keys.values()))
    listed = [index for index in range(len(plan.query.keys)) if index not in plan.private]
    selected = placed(selected, [_key(index) for index in listed], list(plan.listed_keys.values()))
    return with_private_keys(selected, [_key(index) for index in plan.private])


def _of_several_units(plan: Plan, totals: ir.Table) -> ir.Table:
    """The groups that could be released: of private ones, those that no single unit has."""
    if not plan.private:
        return totals
    count = totals[sum_name(plan.sums_of_rows.index(plan.deciding))]
    return totals.filter(count > most_of_one_unit(plan))


def _unit(rows: ir.Table, unit: Unit) -> Any:  # Any: Ibis expressions
    """The id as a 64-bit integer, or as bytes, since a collation may take two texts for one."""
    found = id_of(rows, unit)
    return found if found.type().is_integer() else as_bytes(found)


def _per_unit(plan: Plan, rows: ir.Table) -> ir.Table:
    """One row for each unit and group: (unit, place, rows, sums of carriers..., number of the
    unit's id)."""
    carriers, _ = carried_sums(plan)
    sums = {
        sum_name(number): _sum(rows[sum_name(number)], one.addend_ends)
        for number, one in enumerate(carriers)
    }
    cells = rows.group_by([_UNIT, PLACE]).aggregate(**{_ROWS: rows.count()}, **sums)
    return numbered(cells)


def _sum(addends: Any, ends: tuple[int, int]) -> Any:  # Any: Ibis expressions
    """The sum of addends between these ends. Engines add those of 32 bits faster, as 2^31 of them
    fit 64."""
    return (addends.cast("int32") if is_small(ends) else addends).sum()


def _first_groups(plan: Plan, totals: ir.Table) -> ir.Table:
    """The first groups of each unit by the hash, as many as its cap allows."""
    if plan.private:
        return first_groups(totals, None, plan.groups_per_unit)
    if plan.groups_per_unit == len(plan.groups):
        return totals
    words = in_memory("words", word_table(plan.listed_keys))
    return first_groups(totals, words, plan.groups_per_unit)


def _scaled(plan: Plan, totals: ir.Table) -> ir.Table:
    """The totals in proportion to the rows allotted: (place, sums...).

    A total t of r rows becomes (|t| * allotted + o) div r, with its sign, for an offset o from 0 to
    r - 1 that the unit's id and the place decide. So it is right on average over the offsets, a
    count of all rows becomes the rows allotted, and no total exceeds the rows allotted times the
    largest addend. All sums of a cell share its offset, so that of two counts the larger one
    stays the larger one.
    """
    cells = with_offset(_allotted(plan, totals), _OFFSET, SALT_OF_TOTALS, of_group=True)
    cells = cells.mutate(**{_OFFSET: cells[_OFFSET] % cells[_ROWS]})
    most = plan.declaration.caps.rows_per_group
    scaled, ends = {}, {}
    carriers, carried = carried_sums(plan)
    sums = [cells[sum_name(number)] for number in range(len(carriers))]
    for number, (one, own_carrier) in enumerate(zip(plan.sums_of_rows, carried, strict=True)):
        if own_carrier is None:
            counts_units = one.counted is Counted.UNITS
            own = ibis.literal(1, "int64") if counts_units else cells[_ALLOTTED]
            scaled[sum_name(number)] = own
            continue
        (lower, upper), offset = one.ends, cells[_OFFSET]
        total = own_carrier.total(sums, cells[_ROWS])
        away = ibis.ifelse(total < 0, -offset, offset)  # the quotient is cut towards 0
        part = share(total, cells[_ALLOTTED], away, cells[_ROWS])
        is_whole = cells[_ROWS] == cells[_ALLOTTED]  # then that is the total, for less work
        scaled[sum_name(number)] = ibis.ifelse(is_whole, total, part)
        ends[sum_name(number)] = min(0, most * lower), max(0, most * upper)
    cells = cells.select(PLACE, **scaled)
    return cells.mutate(**{name: clamped(cells[name], *between) for name, between in ends.items()})


def _allotted(plan: Plan, totals: ir.Table) -> ir.Table:
    """The totals with the whole number of rows for which the unit counts in each group.

    That is all rows up to the cap in each group. Let N be the sum of these over the unit's groups,
    and R the cap on rows in all, or N if that is less. In order of place, with C the sum up to and
    including a group and C' the sum before it, the group is allotted

        (C R + o) div N - (C' R + o) div N

    rows, for an offset o from 0 to N - 1 that the unit's id decides. These add up to R, and none
    exceeds its group's rows that count. If R = N they are equal, and otherwise they are in
    proportion on average over the offsets.
    """
    caps = plan.declaration.caps
    counted = totals.mutate(**{_COUNTED: ibis.least(totals[_ROWS], caps.rows_per_group)})
    if caps.rows >= plan.groups_per_unit * caps.rows_per_group:
        return counted.mutate(**{_ALLOTTED: counted[_COUNTED]})
    cells = with_offset(counted, _OFFSET, SALT_OF_ROWS, of_group=False)
    own = cells[_COUNTED]
    cells = cells.mutate(
        in_all=own.sum().over(group_by=_UNIT),
        so_far=own.sum().over(group_by=_UNIT, order_by=PLACE, rows=(None, 0)),
    )
    offset, most = cells[_OFFSET] % cells.in_all, ibis.least(cells.in_all, caps.rows)
    ends = (cells.so_far, cells.so_far - cells[_COUNTED])
    after, before = (quotient(end * most + offset, cells.in_all) for end in ends)
    return cells.mutate(**{_ALLOTTED: after - before}).drop(_OFFSET)


def _per_group(plan: Plan, totals: ir.Table) -> ir.Table:
    """One row for each group: (place, sums...), each sum an exact decimal of 38 digits."""
    sums = {name: totals[name].sum().cast("decimal(38, 0)") for name in _sum_names(plan)}
    return totals.group_by(PLACE).aggregate(**sums)


def _sum_names(plan: Plan) -> list[str]:
    return [sum_name(number) for number in range(len(plan.sums_of_rows))]


def _key(index: int) -> str:
    return f"key{index}"


def sum_name(number: int) -> str:
    """The column of a sum of the plan."""
    return f"sum{number}"
