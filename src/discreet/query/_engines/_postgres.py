"""PostgreSQL for one question: a connection of its own, one snapshot, which can only read.

The question is computed where its rows are. Only its integers leave the server, and the bounded
rows that a mechanism needs. Nothing is created there, so a role that may only read suffices.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import psycopg
import pyarrow as pa
from ibis.common.exceptions import IbisError
from psycopg import sql

from discreet.query._engines._engine_statement import (
    EngineStatement,
    ServerRelation,
    check_zones,
)
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._engines._postgres_compiler import compiled
from discreet.query._engines._postgres_forms import type_name
from discreet.query._engines._postgres_table import (
    ListedTable,
    PostgresRows,
    PostgresTable,
    connected,
    listed,
)

_SOURCE = "source"
_ARROW = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    23: pa.int64(),
    25: pa.string(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1700: pa.decimal128(38, 0),
}
_MADE_UP = {
    "bool": "FALSE",
    "int8": "0::int8",
    "float8": "0::float8",
    "text": "''::text",
    "date": "'2000-01-01'::date",
    "timestamp": "'2000-01-01'::timestamp",
}

_OUTAGES = ("", "08", "25", "40", "53", "55", "57", "58")


@dataclass(frozen=True, slots=True, repr=False)
class PostgresEngine:
    """A connection with an open transaction, and its tables in that snapshot."""

    connection: Any  # Any: psycopg's own, of any row
    place: str
    listed: Mapping[PostgresAddress, ListedTable]

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of PostgreSQL, and of Ibis, which compiles for it."""
        return psycopg.Error, IbisError, RecursionError

    def is_outage(self, cause: Exception) -> bool:
        """Whether the connection, the server's resources, another session or its owner ended it,
        by the classes of PostgreSQL's error codes; an error without a code is the client's own."""
        return isinstance(cause, psycopg.Error) and (cause.sqlstate or "")[:2] in _OUTAGES

    def table(self, schema: pa.Schema, name: str = _SOURCE) -> ir.Table:
        """An empty table of this schema, to compile expressions on."""
        return ibis.table(ibis.Schema.from_pyarrow(schema), name=name)

    def statement(self, expression: ir.Table) -> EngineStatement:
        """The expression as a statement, which any engine of this place runs."""
        operation = expression.op()
        check_zones(operation, self._knows)
        tables = {
            one.name: one.data.to_pyarrow(one.schema) for one in operation.find(ops.InMemoryTable)
        }
        return EngineStatement(compiled(operation), tables)

    def _knows(self, zone: str) -> bool:
        """Whether the server has a zone of this name. One without a slash, such as CET, may be an
        abbreviation to it, which has no summer time."""
        if "/" not in zone:
            return zone == "UTC"
        try:
            with self.connection.transaction():
                self.connection.execute("SELECT '2000-01-01'::timestamp AT TIME ZONE %s", (zone,))
        except psycopg.DataError:
            return False
        return True

    def run(self, statement: EngineStatement, rows: object) -> pa.Table:
        """The statement's result over these rows; over one made-up row for a table without rows,
        so that patterns and the names of time zones are tried, too."""
        return self._computed(statement, {_SOURCE: rows})

    @contextmanager
    def streamed(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> Iterator[pa.RecordBatchReader]:
        """The statement's result over the rows of each table."""
        yield self._computed(statement, rows).to_reader()

    def _computed(self, statement: EngineStatement, rows: Mapping[str, object]) -> pa.Table:
        given: list[Sequence[object]] = []
        text = self._whole(statement, rows, given)
        with psycopg.RawCursor(self.connection) as cursor:
            cursor.execute(text, given, binary=True)
            return _arrow(cursor.description, cursor.fetchall())

    def _whole(
        self,
        statement: EngineStatement,
        rows: Mapping[str, object],
        given: list[Sequence[object]],
    ) -> str:
        """The statement with the tables that it reads; its parameters are added to those given."""
        parts = []
        for name, table in rows.items():
            how = "" if isinstance(table, ServerRelation) else "NOT "
            parts.append(f"{_quoted(name)} AS {how}MATERIALIZED ({self._selected(table, given)})")
        for name, public in statement.tables.items():
            columns = ", ".join(map(_quoted, public.schema.names))
            kinds = ibis.Schema.from_pyarrow(public.schema).types
            arrays = []
            for kind, column in zip(kinds, public.columns, strict=True):
                given.append(column.to_pylist())
                arrays.append(f"${len(given)}::{type_name(kind)}[]")
            listed = f"SELECT * FROM unnest({', '.join(arrays)}) AS given({columns})"  # noqa: S608
            parts.append(f"{_quoted(name)} AS NOT MATERIALIZED ({listed})")
        return f"WITH {', '.join(parts)} SELECT * FROM ({statement.text}) AS answer"  # noqa: S608

    def _selected(self, rows: object, given: list[Sequence[object]]) -> str:
        if isinstance(rows, ServerRelation):
            made = self.statement(rows.expression)
            whole = EngineStatement(made.text, {**made.tables, **rows.public})
            return self._whole(whole, rows.rows, given)
        if isinstance(rows, PostgresRows):
            return rows.selected(self.listed[rows.table.at])
        assert isinstance(rows, pa.Table)  # one without rows
        schema = ibis.Schema.from_pyarrow(rows.schema)
        values = [
            f"{_MADE_UP.get(type_name(kind)) or f'0::{type_name(kind)}'} AS {_quoted(name)}"
            for name, kind in schema.items()
        ]
        return f"SELECT {', '.join(values)} OFFSET 0"


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _arrow(columns: Any, rows: list[tuple[Any, ...]]) -> pa.Table:  # Any: psycopg's own
    kinds = [_ARROW[column.type_code] for column in columns]
    sides = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [pa.array(side, kind) for side, kind in zip(sides, kinds, strict=True)]
    return pa.table(dict(zip((column.name for column in columns), arrays, strict=True)))


@contextmanager
def opened(tables: Sequence[PostgresTable]) -> Iterator[PostgresEngine]:
    """An engine where these tables are. Ctrl-C cancels its statement."""
    first = tables[0].at
    with connected(first, locked=[table.at for table in tables]) as connection:
        found = {table.at: listed(connection, table.at) for table in tables}
        yield PostgresEngine(connection, first.database, found)
