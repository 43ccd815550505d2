"""Runs one question in a Spark session of its own, over files that are listed once.

The question is computed where its rows are. Only its integers leave the cluster, and the bounded
rows that a mechanism needs.
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from ibis.common.exceptions import IbisError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql.functions import broadcast
from pyspark.sql.pandas.types import to_arrow_schema

from discreet.query._engines._engine_statement import (
    EngineStatement,
    ServerRelation,
    check_zones,
)
from discreet.query._engines._spark_address import SparkAddress
from discreet.query._engines._spark_compiler import compiled
from discreet.query._engines._spark_forms import type_name
from discreet.query._engines._spark_session import session
from discreet.query._engines._spark_table import (
    Frames,
    Listing,
    SparkRows,
    SparkTable,
    listing,
    opened_rows,
)

_SOURCE = "source"
# a made-up row, on which the planner evaluates every expression, such as a pattern
_MADE_UP = {"BOOLEAN": "FALSE", "STRING": "''", "DATE": "DATE'2000-01-01'"}
_MADE_UP_MOMENT = "TIMESTAMP_NTZ'2000-01-01 00:00:00'"
_WAIT = 0.2  # seconds between two looks for Ctrl-C


class FilesChanged(Exception):
    """A file of the table changed while the question was computed."""


@dataclass(frozen=True, slots=True, repr=False)
class SparkEngine:
    """A session of Spark with the listed rows of its tables."""

    session: Any  # Any: pyspark's own
    frames: Mapping[SparkAddress, Frames]
    listed: Mapping[SparkAddress, Listing] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """One value for all sessions, since no statement names a table."""
        return "spark"

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of Spark, of its bridge, and of Ibis, which compiles for it."""
        return PySparkException, Py4JError, Py4JNetworkError, IbisError, RecursionError

    def is_outage(self, cause: Exception) -> bool:
        """Whether the bridge to Java failed, as it does when the application ends."""
        return isinstance(cause, Py4JNetworkError)

    def table(self, schema: pa.Schema, name: str = _SOURCE) -> ir.Table:
        """An empty table of this schema, to compile expressions on."""
        return ibis.table(ibis.Schema.from_pyarrow(schema), name=name)

    def statement(self, expression: ir.Table) -> EngineStatement:
        """The expression as a statement, which any engine of this kind runs."""
        operation = expression.op()
        check_zones(operation, self._knows)
        tables = {
            one.name: one.data.to_pyarrow(one.schema) for one in operation.find(ops.InMemoryTable)
        }
        return EngineStatement(compiled(operation), tables)

    def _knows(self, zone: str) -> bool:
        """Whether Java knows this zone of a city. A name without a slash may be an offset, so that
        only UTC is allowed."""
        if "/" not in zone or not zone.isascii():
            return zone == "UTC"
        zones = self.session._jvm.java.time.ZoneId.getAvailableZoneIds()  # noqa: SLF001  # no public form
        return bool(zones.contains(zone))

    def run(self, statement: EngineStatement, rows: object) -> pa.Table:
        """The statement's result over these rows. For a table without rows it is only planned, over
        one made-up row, whose values Spark's planner computes. Ctrl-C cancels its jobs, and raises
        `KeyboardInterrupt`."""
        return self._computed(statement, {_SOURCE: rows})

    @contextmanager
    def streamed(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> Iterator[pa.RecordBatchReader]:
        """The statement's result over the rows of each table."""
        yield self._computed(statement, rows).to_reader()

    def _computed(self, statement: EngineStatement, rows: Mapping[str, object]) -> pa.Table:
        tag = f"discreet-{secrets.token_hex(8)}"
        context = self.session.sparkContext  # a session interrupts only tags of the calling thread

        def compute() -> pa.Table:
            context.addJobTag(tag)
            try:
                return self._answer(statement, rows)
            finally:
                context.removeJobTag(tag)

        return _in_thread(compute, lambda: context.cancelJobsWithTag(tag))

    def _answer(self, statement: EngineStatement, rows: Mapping[str, object]) -> pa.Table:
        found = self._frame(statement, rows)
        if not any(map(_are_read, rows.values())):
            found._jdf.queryExecution().executedPlan()  # noqa: SLF001  # it has no public form
            return to_arrow_schema(found.schema).empty_table()
        answer = found.toArrow()
        for at, frames in self.frames.items():
            if listing(self.session, frames) != self.listed[at]:
                raise FilesChanged("a file of the table changed while it was read")
        return answer

    def _frame(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> Any:  # Any: as above
        """The statement's result, which Spark computes later."""
        for name, public in statement.tables.items():
            made = broadcast(self.session.createDataFrame(public))
            made.createOrReplaceTempView(name)
        for name, frame in {name: self._selected(given) for name, given in rows.items()}.items():
            frame.createOrReplaceTempView(name)
        return self.session.sql(statement.text)

    def _selected(self, rows: object) -> Any:  # Any: Spark's frame
        if isinstance(rows, ServerRelation):
            made = self.statement(rows.expression)
            whole = EngineStatement(made.text, {**made.tables, **rows.public})
            return self._frame(whole, rows.rows)
        if isinstance(rows, SparkRows):
            return rows.selected(self.frames[rows.table.at])
        assert isinstance(rows, pa.Table)  # one without rows
        values = [
            f"{_made_up(kind)} AS `{name.replace('`', '``')}`"
            for name, kind in ibis.Schema.from_pyarrow(rows.schema).items()
        ]
        return self.session.sql(f"SELECT {', '.join(values)}")


def _are_read(rows: object) -> bool:
    """Whether these are rows of a table, and not made up."""
    if isinstance(rows, ServerRelation):
        return any(map(_are_read, rows.rows.values()))
    return isinstance(rows, SparkRows)


def _made_up(kind: Any) -> str:  # Any: a type of Ibis
    name = type_name(kind)
    if name == "TIMESTAMP_NTZ":
        return _MADE_UP_MOMENT
    return _MADE_UP.get(name) or f"CAST(0 AS {name})"


def _in_thread(compute: Callable[[], pa.Table], cancel: Callable[[], object]) -> pa.Table:
    """The result, computed in another thread: Ctrl-C during a reply from Java would leave its
    connection unusable."""
    # 1. compute in a thread
    found: list[pa.Table] = []
    failed: list[BaseException] = []
    ended = threading.Event()  # after Ctrl-C in `join`, Python counts the thread as ended

    def work() -> None:
        try:
            found.append(compute())
        except BaseException as failure:  # noqa: BLE001  # raised again by the caller
            failed.append(failure)
        finally:
            ended.set()

    thread = InheritableThread(target=work)
    thread.daemon = True
    thread.start()
    try:
        # 2. wait; Ctrl-C cancels its jobs until it ends
        while not ended.wait(_WAIT):
            pass
    except KeyboardInterrupt:
        while not ended.is_set():  # a job may start after a call of cancel
            with suppress(Exception):  # nothing to cancel after its end
                cancel()
            ended.wait(_WAIT)
        raise
    if failed:
        raise failed[0]
    return found[0]


@contextmanager
def opened(tables: Sequence[SparkTable]) -> Iterator[SparkEngine]:
    """An engine where the rows of these tables are."""
    with session(tables[0].at.shown) as own:
        frames = {table.at: opened_rows(own, table.at) for table in tables}
        yield SparkEngine(own, frames, {at: listing(own, one) for at, one in frames.items()})
