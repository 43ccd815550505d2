"""Bounds the contribution of each unit, in the engine, and reads back exact integers.

    rows that count  ->  one row per (unit, group)  ->  at most G groups per unit,
    rows allotted within the caps, totals in proportion  ->  one row per group

Each step is a pure function of the rows of one unit, until the last, which adds integers. The
engine knows a group by its place in the plan. A public hash of a unit's id and the group's values
decides which groups the unit counts in, and such hashes round its rows and totals without bias. So
nothing of a unit depends on another unit's rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from discreet.errors import QueryRefused
from discreet.mechanisms import Trace, Value
from discreet.query._choice import first_groups, numbered, with_offset, word_table
from discreet.query._columns import KeyValue
from discreet.query._compiling import Compiler
from discreet.query._conversion import clamped, identity
from discreet.query._engine import Engine, as_bytes, quotient
from discreet.query._inference import column_of
from discreet.query._numbering import in_memory, placed
from discreet.query._plan import Plan
from discreet.query._query import columns_used
from discreet.query._source import TableSource, arrow_schema

_UNIT = "unit"
_PLACE = "place"
_ROWS = "rows"
_COUNTED = "rows_counted"
_ALLOTTED = "rows_allotted"
_OFFSET = "offset_by_hash"
_SALT_OF_ROWS = b"discreet: rows of each group, 1"
_SALT_OF_TOTALS = b"discreet: totals, 1"


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan that the engine has compiled and run on an empty table of the source's schema, so that
    over the rows it can't fail for a public reason."""

    plan: Plan
    source: TableSource
    names: tuple[str, ...]
    engine: Engine
    statement: str

    def compute(self, trace: Trace | None) -> Mapping[str, Value]:
        """Each sum of the plan for each of its groups, as exact integers with bounded
        contributions."""
        with self.source.rows(self.names) as rows:
            answer = self.engine.run(self.statement, rows)
        if trace is not None:
            trace.note("engine", self.statement)
            trace.note("schema", str(answer.schema))
        return _totals(self.plan, answer)


def prepare(plan: Plan, source: TableSource, engine: Engine) -> CompiledPlan:
    """The plan compiled for this engine; it reads the source's schema only."""
    names = tuple(dict.fromkeys([*_unit_column(plan), *columns_used(plan.query)]))
    if not names:  # a count of rows needs a column to count
        names = tuple(plan.declaration.columns)[:1]
    schema = arrow_schema(source, names)
    try:
        statement = engine.statement(bounded_sums(plan, engine.table(schema)))
        _totals(plan, engine.run(statement, schema.empty_table()))
    except engine.failures as cause:
        raise QueryRefused(
            f"the engine can't compute this question ({type(cause).__name__}); make it shorter "
            "or simpler"
        ) from cause
    return CompiledPlan(plan, source, names, engine, statement)


def _unit_column(plan: Plan) -> list[str]:
    column = plan.declaration.unit.column
    return [] if column is None else [column]


def _totals(plan: Plan, answer: pa.Table) -> Mapping[str, Value]:
    """Each sum for each group of the plan. The engine returns a row for each group that has rows,
    with the group's place."""
    places = answer[_PLACE].to_numpy()
    totals = {}
    for number, one in enumerate(plan.sums):
        totals[one.name] = np.full(len(plan.groups), 0, dtype=object)
        totals[one.name][places] = [int(value) for value in answer[_sum(number)].to_pylist()]
    return totals


def bounded_sums(plan: Plan, table: ir.Table) -> ir.Table:
    """The expression of all steps: one row for each group that has rows."""
    rows = _rows(plan, table)
    if plan.declaration.unit.column is None:
        return _per_group(plan, rows)
    return _per_group(plan, _scaled(plan, _first_groups(plan, _per_unit(plan, rows))))


def _rows(plan: Plan, table: ir.Table) -> ir.Table:
    """The rows that count: of a known unit, in a declared group, meeting the condition."""
    compiler = Compiler(table, plan.declaration)
    columns: dict[str, Any] = {}
    if plan.declaration.unit.column is not None:
        columns[_UNIT] = _unit(table[plan.declaration.unit.column])
    for index, name in enumerate(plan.query.keys):
        columns[_key(index)] = compiler.column(name)
    for number, one in enumerate(plan.sums):
        columns[_sum(number)] = compiler.addend(one)
    counted = table
    if plan.query.where is not None:
        counted = table.filter(compiler.holds(plan.query.where))
    selected = counted.select(**columns)
    if _UNIT in columns:
        selected = selected.filter(selected[_UNIT].notnull())
    columns_of_keys = [_key(index) for index in range(len(plan.query.keys))]
    return placed(selected, columns_of_keys, list(_keys(plan).values()))


def _unit(raw: Any) -> Any:  # Any: Ibis expressions
    """The id as a 64-bit integer, or as bytes, since a collation may take two texts for one."""
    unit = identity(raw)
    if unit.type().is_integer():
        return unit
    if raw.type().is_floating():  # a whole one is written as an integer is
        near = raw.try_cast("int64")
        unit = ibis.ifelse(near.cast("float64") == raw, near.cast("string"), unit)
    return as_bytes(unit)


def _per_unit(plan: Plan, rows: ir.Table) -> ir.Table:
    """One row for each unit and group: (unit, place, rows, sums..., number of the unit's id)."""
    cells = rows.group_by([_UNIT, _PLACE]).aggregate(
        **{_ROWS: rows.count()}, **{name: rows[name].sum() for name in _sum_names(plan)}
    )
    return numbered(cells)


def _first_groups(plan: Plan, totals: ir.Table) -> ir.Table:
    """The first groups of each unit by the hash, as many as its cap allows."""
    if plan.groups_per_unit == len(plan.groups):
        return totals
    words = in_memory("words", word_table(_keys(plan)))
    return first_groups(totals, words, plan.groups_per_unit)


def _scaled(plan: Plan, totals: ir.Table) -> ir.Table:
    """The totals in proportion to the rows allotted: (place, sums...).

    A total t of r rows becomes (|t| * allotted + o) div r, with its sign, for an offset o from 0 to
    r - 1 that the unit's id and the place decide. So it is right on average over the offsets, a
    count of all rows becomes the rows allotted, and no total exceeds the rows allotted times the
    largest addend. All sums of a cell share its offset, so that of two counts the larger one
    stays the larger one.
    """
    cells = with_offset(_allotted(plan, totals), _OFFSET, _SALT_OF_TOTALS, of_group=True)
    cells = cells.mutate(**{_OFFSET: cells[_OFFSET] % cells[_ROWS]})
    most = plan.declaration.caps.rows_per_group
    scaled = {}
    for number, one in enumerate(plan.sums):
        (lower, upper), total, offset = one.ends, cells[_sum(number)], cells[_OFFSET]
        away = ibis.ifelse(total < 0, -offset, offset)  # the quotient is cut towards 0
        total = quotient(total * cells[_ALLOTTED] + away, cells[_ROWS])
        scaled[_sum(number)] = clamped(total, min(0, most * lower), max(0, most * upper))
    return cells.select(_PLACE, **scaled)


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
    cells = with_offset(counted, _OFFSET, _SALT_OF_ROWS, of_group=False)
    own = cells[_COUNTED]
    cells = cells.mutate(
        in_all=own.sum().over(group_by=_UNIT),
        so_far=own.sum().over(group_by=_UNIT, order_by=_PLACE, rows=(None, 0)),
    )
    offset, most = cells[_OFFSET] % cells.in_all, ibis.least(cells.in_all, caps.rows)
    ends = (cells.so_far, cells.so_far - cells[_COUNTED])
    after, before = (quotient(end * most + offset, cells.in_all) for end in ends)
    return cells.mutate(**{_ALLOTTED: after - before}).drop(_OFFSET)


def _per_group(plan: Plan, totals: ir.Table) -> ir.Table:
    """One row for each group: (place, sums...), each sum an exact decimal of 38 digits."""
    sums = {name: totals[name].sum().cast("decimal(38, 0)") for name in _sum_names(plan)}
    return totals.group_by(_PLACE).aggregate(**sums)


def _keys(plan: Plan) -> dict[str, tuple[KeyValue, ...]]:
    """The declared keys of each column that the query groups by."""
    return {name: column_of(name, plan.declaration).keys or () for name in plan.query.keys}


def _sum_names(plan: Plan) -> list[str]:
    return [_sum(number) for number in range(len(plan.sums))]


def _key(index: int) -> str:
    return f"key{index}"


def _sum(number: int) -> str:
    return f"sum{number}"
