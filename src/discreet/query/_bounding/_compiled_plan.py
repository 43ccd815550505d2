"""Compiles a plan for an engine before it is paid, and computes it afterwards."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from discreet._arrays import FloatArray
from discreet.errors import QueryRefused
from discreet.mechanisms import Key, Trace, Value
from discreet.query._bounding._bounding import (
    PLACE,
    TIMES,
    VALUE,
    RowValue,
    bounded_rows,
    bounded_sums,
    counted_keys,
    counted_values,
    cut_rows,
    sum_name,
    units_by_rows,
)
from discreet.query._bounding._cell_sums import CellSums, cell_sums_of
from discreet.query._bounding._compiling import Compiler
from discreet.query._engines._engine import SOURCE, Engine, is_embedded, not_compiled
from discreet.query._engines._engine_statement import EngineStatement
from discreet.query._engines._other_dialects import CompiledSql, Dialect, compiled_sql
from discreet.query._expressions._query import columns_used
from discreet.query._plan._key_counts import KeyCountsOf
from discreet.query._plan._plan import Plan, RowsOf
from discreet.query._plan._private_keys import (
    keys_of_places,
    most_of_one_unit,
    numbers_by_key,
    values_by_key,
)
from discreet.query._plan._sums import ColumnOutcome
from discreet.query._rows._source import TableSource, arrow_schema, id_columns, kinds

_MOST_KNOWN = 256
_LARGEST_FACTS = 1 << 16  # bytes
_known: dict[bytes, tuple[EngineStatement, ...]] = {}  # by public facts: a plan and a schema

UnderKeys = Mapping[Key, int] | Mapping[Key, FloatArray]


@dataclass(frozen=True, slots=True)
class CompiledStatements:
    """Statements that the engine has compiled and run on an empty table of the source's schema, so
    that over the rows they can't fail for a public reason."""

    source: TableSource
    names: tuple[str, ...]
    engine: Engine
    statements: tuple[EngineStatement, ...]

    def answers(self, trace: Trace | None, cells: CellSums | None = None) -> list[pa.Table]:
        """The answer of each statement over the source's rows. With ``cells``, these sums of the
        rows that the first one gives stand for its answer."""
        return [
            self._answer(statement, trace, None if number else cells)
            for number, statement in enumerate(self.statements)
        ]

    def _answer(
        self, statement: EngineStatement, trace: Trace | None, cells: CellSums | None
    ) -> pa.Table:
        if cells is not None:
            answer = cells.totals(partial(self._batches, statement))
        else:
            with self.source.rows(self.names) as rows:
                answer = self.engine.run(statement, rows)
        if trace is not None:
            trace.note("engine", statement.text)
            trace.note("schema", str(answer.schema))
        return answer

    @contextmanager
    def _batches(self, statement: EngineStatement) -> Iterator[pa.RecordBatchReader]:
        with (
            self.source.rows(self.names) as rows,
            self.engine.streamed(statement, {SOURCE: rows}) as found,
        ):
            yield found


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan with its statements: one for all sums, one for each count of different values, one for
    the rows by the keys of each mode, and one for the rows of each argument. With ``cells``, the
    first one gives the rows of these instead of sums."""

    plan: Plan
    compiled: CompiledStatements
    cells: CellSums | None = None

    @property
    def source(self) -> TableSource:
        """The source of the rows."""
        return self.compiled.source

    def compute(self, trace: Trace | None) -> Mapping[str, Any]:  # Any: the value of each part
        """Each part of the plan with bounded contributions: a sum for each group as an exact
        integer, and rows of a group's number and a value; or these under private keys."""
        answers = self.compiled.answers(trace, self.cells)
        return (_parts_under_keys if self.plan.private else _parts)(self.plan, answers)


def prepare(plan: Plan, source: TableSource, engine: Engine) -> CompiledPlan:
    """The plan compiled for this engine; it reads the source's schema only."""
    ids, schema, cells = id_columns(source, plan.declaration.unit), _schema(plan, source), None
    if ids and is_embedded(engine):
        cells = cell_sums_of(plan, pa.schema([schema.field(name) for name in ids]))
    made = partial(_expressions, plan, cells)
    use = "parts" if cells is None else "cells"
    return CompiledPlan(plan, _compiled(plan, source, engine, made, schema=schema, use=use), cells)


def sql_of(plan: Plan, source: TableSource, dialect: Dialect) -> CompiledSql:
    """The plan's statements in the SQL of an engine on which nothing is run; it reads the source's
    schema only."""
    table = ibis.table(ibis.Schema.from_pyarrow(_schema(plan, source)), name=SOURCE)
    return compiled_sql(tuple(_expressions(plan, None, table)), dialect)


def prepare_rows(
    plan: Plan,
    source: TableSource,
    engine: Engine,
    *,
    columns: tuple[str, ...],
    values: Mapping[str, RowValue],
    use: tuple[object, ...],
) -> CompiledStatements:
    """The statement for the rows themselves, with values that need these columns and follow from
    ``use`` and the plan; it reads the source's schema only."""

    def expressions(table: ir.Table) -> list[ir.Table]:
        return [bounded_rows(plan, table, values)]

    schema = _schema(plan, source, columns)
    return _compiled(plan, source, engine, expressions, schema=schema, use=use)


def prepare_cuts(plan: Plan, source: TableSource, engine: Engine) -> CompiledStatements:
    """The statement for the rows that caps leave out; it reads the source's schema only."""

    def expressions(table: ir.Table) -> list[ir.Table]:
        return [cut_rows(plan, table)]

    schema = _schema(plan, source)
    return _compiled(plan, source, engine, expressions, schema=schema, use="cuts")


def prepare_units(plan: Plan, source: TableSource, engine: Engine) -> CompiledStatements:
    """The statement for the number of units by their rows; it reads the source's schema only."""

    def expressions(table: ir.Table) -> list[ir.Table]:
        return [units_by_rows(plan, table)]

    schema = _schema(plan, source)
    return _compiled(plan, source, engine, expressions, schema=schema, use="units")


def _compiled(
    plan: Plan,
    source: TableSource,
    engine: Engine,
    expressions: Callable[[ir.Table], Iterable[ir.Table]],
    *,
    schema: pa.Schema,
    use: str | tuple[object, ...],
) -> CompiledStatements:
    """The statements of these expressions, which follow from the plan, the schema and the ``use``,
    and are made once for all questions with the same ones."""
    names = tuple(schema.names)
    facts = pickle.dumps((use, plan, schema, engine.place))
    known = _known.get(facts)
    if known is not None:
        return CompiledStatements(source, names, engine, known)
    try:
        statements = tuple(map(engine.statement, expressions(engine.table(schema))))
        for statement in statements:
            engine.run(statement, schema.empty_table())
    except engine.failures as cause:
        raise not_compiled(engine, cause, "the engine can't compute this question") from cause
    if len(facts) <= _LARGEST_FACTS:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[facts] = statements
    return CompiledStatements(source, names, engine, statements)


def _schema(plan: Plan, source: TableSource, columns: tuple[str, ...] = ()) -> pa.Schema:
    """The types of all columns that a plan reads, and of these."""
    own = id_columns(source, plan.declaration.unit)
    names = tuple(dict.fromkeys([*own, *columns_used(plan.query), *columns]))
    if not names:  # a count of rows needs a column to count
        names = tuple(plan.declaration.columns)[:1] or _column_to_count(source)
    return arrow_schema(source, names)


def _column_to_count(source: TableSource) -> tuple[str, ...]:
    """A column of a source of which none is declared; its name and its type are public."""
    there = [name for name, _ in source.types()]
    known = [name for name, kind in kinds(source).items() if kind is not None]
    found = next((name for name in known if there.count(name) == 1), None)
    if found is None:
        raise QueryRefused("the rows can't be counted without a column: declare one first")
    return (found,)


def _expressions(plan: Plan, cells: CellSums | None, table: ir.Table) -> Iterator[ir.Table]:
    if cells is not None:
        yield cells.rows(table)
    elif plan.sums_of_rows:
        yield bounded_sums(plan, table)
    for count in plan.counts_of_values:
        assert not isinstance(count.argument, ColumnOutcome | None)  # as `_plan` makes them
        yield counted_values(plan, table, partial(Compiler.scalar, scalar=count.argument))
    for mode in plan.key_counts:
        key = partial(Compiler.scalar, scalar=mode.argument)
        yield counted_keys(plan, table, key, mode.keys)
    for one in _arguments(plan):
        value = partial(Compiler.point, argument=one.argument, grid=one.grid)
        yield bounded_rows(plan, table, {VALUE: value})


def _arguments(plan: Plan) -> list[RowsOf]:
    """One of the plan's parts for each argument whose rows are wanted."""
    return list({(one.argument, one.grid): one for one in plan.rows}.values())


def _parts(plan: Plan, answers: list[pa.Table]) -> Mapping[str, Value | FloatArray]:
    """The parts of the plan, from the answers to its statements."""
    parts: dict[str, Value | FloatArray] = {}
    left = list(answers)
    if plan.sums_of_rows:
        parts |= _totals(plan, left.pop(0))
    for count in plan.counts_of_values:
        parts[count.name] = _by_place(plan, left.pop(0), TIMES)
    for mode in plan.key_counts:
        parts[mode.name] = _by_key(plan, mode, left.pop(0))
    rows = {
        (one.argument, one.grid): _rows(one, answer)
        for one, answer in zip(_arguments(plan), left, strict=True)
    }
    return parts | {one.name: rows[one.argument, one.grid] for one in plan.rows}


def _parts_under_keys(plan: Plan, answers: list[pa.Table]) -> Mapping[str, UnderKeys]:
    """The parts of a plan with private keys, for the groups that no single unit has."""
    first, *left = answers
    keys = keys_of_places(plan, first[PLACE].to_pylist())
    parts: dict[str, UnderKeys] = {
        one.name: numbers_by_key(first, sum_name(number), keys)
        for number, one in enumerate(plan.sums_of_rows)
    }
    most, name = most_of_one_unit(plan), plan.deciding.name
    parts[name] = {key: int(count) - most for key, count in parts[name].items()}
    for count in plan.counts_of_values:
        parts[count.name] = numbers_by_key(left.pop(0), TIMES, keys)
    for argument, answer in zip(_arguments(plan), left, strict=True):
        steps = answer[VALUE].to_numpy().astype(np.float64) + argument.grid.center
        found = values_by_key(
            answer[PLACE],
            steps * float(argument.grid.step),
            answer[TIMES].cast(pa.int64()).to_numpy(),
            keys,
        )
        same = (argument.argument, argument.grid)
        parts |= {one.name: found for one in plan.rows if (one.argument, one.grid) == same}
    return parts


def _totals(plan: Plan, answer: pa.Table) -> Mapping[str, Value]:
    """Each sum for each group of the plan. The engine returns a row for each group that has rows,
    with the group's place."""
    return {
        one.name: _by_place(plan, answer, sum_name(number))
        for number, one in enumerate(plan.sums_of_rows)
    }


def _by_place(plan: Plan, answer: pa.Table, name: str) -> Value:
    """A column of the answer for each group of the plan, 0 for groups without rows."""
    numbers = np.full(len(plan.groups), 0, dtype=object)
    numbers[answer[PLACE].to_numpy()] = [int(value) for value in answer[name].to_pylist()]
    return numbers


def _by_key(plan: Plan, mode: KeyCountsOf, answer: pa.Table) -> Value:
    """The number of rows with each key in each group."""
    numbers = np.full((len(plan.groups), len(mode.keys)), 0, dtype=np.int64)
    times = answer[TIMES].cast(pa.int64()).to_numpy()
    numbers[answer[PLACE].to_numpy(), answer[VALUE].to_numpy()] = times
    return numbers.reshape(mode.shape(len(plan.groups)))


def _rows(one: RowsOf, answer: pa.Table) -> FloatArray:
    """An array of (group, value), a row for each time that the value occurs in the group."""
    times = answer[TIMES].cast(pa.int64()).to_numpy()
    steps = answer[VALUE].to_numpy().astype(np.float64) + one.grid.center
    values = steps * float(one.grid.step)  # exact: both have few bits
    places = answer[PLACE].to_numpy().astype(np.float64)
    return np.repeat(np.column_stack([places, values]), times, axis=0)
