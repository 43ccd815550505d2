"""Hands a table's rows and counts over to the mechanisms of `discreet.mechanisms`.

The unit, its caps, the bounds of columns and the rule for NULL are those that the table declares,
and the engine applies them as it does for a question. So nothing is declared again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from discreet._arrays import FloatArray
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import Bounded, IntegerArray, Rows, StagedComputation
from discreet.query._bounding._bounding import TIMES, RowValue
from discreet.query._bounding._compiled_plan import prepare, prepare_rows
from discreet.query._bounding._compiling import Compiler
from discreet.query._bounding._stages import StagedValue, combined
from discreet.query._engines import _engine
from discreet.query._engines._engine import Engine
from discreet.query._estimates._grid import SumGrid
from discreet.query._expressions._expression_text import quoted
from discreet.query._expressions._expressions import ColumnRef
from discreet.query._expressions._inference import column_of
from discreet.query._expressions._query import columns_used
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._facts._public_facts import facts_text
from discreet.query._plan._plan import Plan
from discreet.query._plan._private_keys import refuse_private_keys
from discreet.query._plan._sum_grids import value_grid
from discreet.query._rows._source import TableSource, check_schema, served_by, snapshot

Computed = TypeVar("Computed")

_BASIS = "bounded by discreet.query, from the declared caps and bounds"


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table that meet a question's condition."""

    plan: Plan
    source: TableSource

    def values(
        self, names: Sequence[str], grids: Mapping[str, SumGrid] | None = None
    ) -> Bounded[Rows]:
        """The values of these columns, compiled now and computed after a charge; on ``grids``
        instead of the usual ones, where they are given."""
        # 1. check
        are_names = all(isinstance(name, str) for name in names)
        if not names or not are_names or len(set(names)) < len(names):
            raise InvalidArgument("columns: give at least one name, each once")
        if self.plan.query.keys:
            raise InvalidArgument(
                f"these rows are grouped by {', '.join(self.plan.query.key_names)}, and a "
                "mechanism on rows takes all of them: choose a group by where(...), or ask "
                "quantiles(...)"
            )
        # 2. compile now, and again before the charge
        facts = self.plan.declaration
        columns = [
            _RowColumn(name, grids[name], is_truth=False)
            if grids and name in grids
            else _RowColumn.of(name, facts)
            for name in names
        ]
        return Bounded.rows(
            self._later(partial(self._rows, columns)),
            columns={column.name: column.grid.values for column in columns},
            per_unit=facts.caps.of_rows(1),
            unit=facts.unit,
            name=self.plan.query.of_rows(map(quoted, names)),
            basis=_BASIS,
            facts=self._facts(names),
        )

    def counts(self, shape: tuple[int, ...] | None = None) -> Bounded[IntegerArray]:
        """The number of rows in each group, in order of the groups; as an array of this shape."""
        refuse_private_keys(self.plan, "a mechanism on counts")
        (one,) = self.plan.sums
        dimensions = (len(self.plan.groups),) if shape is None else shape

        def counted(source: TableSource, engine: Engine) -> Callable[[], IntegerArray]:
            ready = prepare(self.plan, source, engine)
            return lambda: np.reshape(ready.compute(None)[one.name], dimensions)

        return Bounded(
            self._later(counted),
            sensitivity=one.sensitivity,
            unit=self.plan.declaration.unit,
            name=str(self.plan.query),
            shape=dimensions,
            is_wide=True,
            basis=_BASIS,
            facts=self._facts(()),
        )

    def _facts(self, names: Sequence[str]) -> str:
        used = dict.fromkeys([*columns_used(self.plan.query), *names])
        return facts_text(self.plan.declaration, list(used), self.source.label)

    def _later(
        self, prepared: Callable[[TableSource, Engine], Callable[[], Computed]]
    ) -> StagedComputation[Computed]:
        """The computation that is ``prepared`` for an engine: now, so that it is refused here, and
        again before the charge, from the rows that are there then."""
        facts, servers = self.plan.declaration, served_by(self.source)

        def checked() -> TableSource:
            source = snapshot(self.source)
            check_schema(source, facts.columns, facts.unit)
            return source

        @contextmanager
        def opened() -> Iterator[Callable[[], Computed]]:
            source = checked()
            with _engine.opened(servers) as engine:
                yield prepared(source, engine)

        source = checked()
        with _engine.compiling(servers) as compiling:
            prepared(source, compiling)
        return StagedComputation(opened)

    def _rows(
        self, columns: Sequence["_RowColumn"], source: TableSource, engine: Engine
    ) -> Callable[[], FloatArray]:
        names = tuple(column.name for column in columns)
        values: dict[str, RowValue] = {_value(n): c.expression for n, c in enumerate(columns)}
        use = ("rows", *columns)
        ready = prepare_rows(self.plan, source, engine, columns=names, values=values, use=use)
        return lambda: _repeated(columns, *ready.answers(None))


@dataclass(frozen=True, slots=True)
class _RowColumn:
    """A column with the grid of its values. A truth value is 0 or 1."""

    name: str
    grid: SumGrid
    is_truth: bool

    @staticmethod
    def of(name: str, facts: Declaration) -> "_RowColumn":
        column = column_of(name, facts)
        if column.type is ColumnType.BOOLEAN:
            return _RowColumn(name, SumGrid(0, 0, 0, 1), is_truth=True)
        if not column.type.is_numeric:
            raise QueryRefused(
                f"{name} is {column.type.value}: mechanisms on rows take numbers and truth values; "
                "group by it instead"
            )
        return _RowColumn(name, value_grid(ColumnRef(name), facts), is_truth=False)

    def expression(self, compiler: Compiler) -> StagedValue:
        if self.is_truth:
            value = compiler.scalar(ColumnRef(self.name))
            return combined(lambda truth: truth.cast("int64"), value)
        return compiler.point(ColumnRef(self.name), self.grid)

    def numbers(self, answer: pa.Table, name: str) -> FloatArray:
        """The values in the column's units; floats hold them exactly."""
        steps = answer[name].to_numpy().astype(np.float64) + self.grid.center
        numbers: FloatArray = steps * float(self.grid.step)
        return numbers


def _repeated(columns: Sequence[_RowColumn], answer: pa.Table) -> FloatArray:
    """The rows, shape (row, column)."""
    made = [column.numbers(answer, _value(n)) for n, column in enumerate(columns)]
    times = answer[TIMES].cast(pa.int64()).to_numpy()
    return np.repeat(np.column_stack(made), times, axis=0)


def _value(number: int) -> str:
    return f"value{number}"
