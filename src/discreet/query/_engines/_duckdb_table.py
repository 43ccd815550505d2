"""Reads tables of a user's DuckDB database, through a cursor of our own.

Only tables that store rows are read. A view, an Ibis expression or a generated column can compute
one row from others, or fail for one row.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

from discreet.errors import DeclarationError, InvalidArgument
from discreet.query._engines._conversion import has_zone

_BATCH = 1 << 17
_AS_TEXT = ("HUGEINT", "UHUGEINT", "UUID", "ENUM", "BIGNUM")  # no Arrow type holds all of them
_AS_THEY_ARE = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
)
_MOMENT = "TIMESTAMP WITH TIME ZONE"  # Arrow gives the session's zone as its label
_COLUMNS = """
    SELECT column_name, data_type, is_generated FROM information_schema.columns
    WHERE (table_catalog, table_schema, table_name) = (?, ?, ?) ORDER BY ordinal_position
"""
_KIND = """
    SELECT table_type FROM information_schema.tables
    WHERE (table_catalog, table_schema, table_name) = (?, ?, ?)
"""
_DATABASE = "SELECT type FROM duckdb_databases() WHERE database_name = ?"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DuckdbTable:
    """A table that stores rows, in a database of an open connection."""

    connection: duckdb.DuckDBPyConnection
    place: tuple[str, str, str]

    @property
    def label(self) -> str:
        """The names of the schema and the table, without the database."""
        return ".".join(self.place[1:])

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The table's schema; None for a generated column, or one of a type without a rule."""
        with self._cursor() as cursor:
            _check_holds_rows(cursor, self.place)
            found = cursor.execute(_COLUMNS, self.place).fetchall()
            return [
                (name, _arrow_type(cursor, kind) if generated == "NEVER" else None)
                for name, kind, generated in found
            ]

    @contextmanager
    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatchReader]:
        """The columns, streamed."""
        with self._cursor() as cursor:
            kinds = {
                name: kind for name, kind, _ in cursor.execute(_COLUMNS, self.place).fetchall()
            }
            columns = ", ".join(_selected(name, kinds[name]) for name in names)
            source = ".".join(_quoted(part) for part in self.place)
            selected = f"SELECT {columns} FROM {source}"  # noqa: S608  # names, quoted
            yield _without_zones(cursor.sql(selected).to_arrow_reader(_BATCH))

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A separate connection to the same database, so that threads can share the table."""
        try:
            cursor = self.connection.cursor()
        except duckdb.Error:
            raise DeclarationError(
                f"{self!r}: its connection is closed; open it, or give the table anew"
            ) from None
        try:
            yield cursor
        finally:
            cursor.close()

    def __repr__(self) -> str:
        return f"DuckdbTable({'.'.join(self.place)!r})"


def plain_table(given: ir.Table) -> DuckdbTable:
    """The database table behind an Ibis table; an expression or a view is refused by name."""
    backends = [backend.name for backend in given._find_backends()[0]]  # noqa: SLF001  # Ibis has no public form
    if backends != ["duckdb"]:
        raise InvalidArgument(
            f"source: an Ibis table of {', '.join(backends) or 'no connection'}; DuckDB is what "
            "is supported"
        )
    operation = given.op()
    if type(operation) is not ops.DatabaseTable:
        raise InvalidArgument(
            f"source: an Ibis expression ({type(operation).__name__}), which could compute one "
            "row from others; give the table itself, as in connection.table('name'), and put "
            "filters and arithmetic into the question"
        )
    backend = given.get_backend()
    place = (
        operation.namespace.catalog or backend.current_catalog,
        operation.namespace.database or backend.current_database,
        operation.name,
    )
    table = DuckdbTable(backend.con, place)
    table.types()  # refuses what holds no rows
    return table


def _check_holds_rows(cursor: Any, place: tuple[str, str, str]) -> None:  # Any: DuckDB's cursor
    kinds = cursor.execute(_KIND, place).fetchall()
    databases = cursor.execute(_DATABASE, place[:1]).fetchall()
    if not kinds:
        raise InvalidArgument(
            f"source: other connections see no table {'.'.join(place)}; commit it, and give a "
            "table that is not temporary"
        )
    if kinds != [("BASE TABLE",)]:
        raise InvalidArgument(
            f"source: {'.'.join(place)} is a view, which could compute one row from others; "
            "give the table or the file that it reads, or store it by CREATE TABLE ... AS"
        )
    if databases != [("duckdb",)]:
        raise InvalidArgument(
            f"source: {place[0]} is not stored by DuckDB itself; copy the table into a DuckDB "
            "database by CREATE TABLE ... AS"
        )


def _arrow_type(cursor: Any, kind: str) -> pa.DataType | None:  # Any: DuckDB's cursor
    """The Arrow type of a column of this type; taken from an empty result."""
    if kind == _MOMENT:
        return pa.timestamp("us", "UTC")
    if kind.partition("(")[0] not in (*_AS_TEXT, *_AS_THEY_ARE) or kind.endswith("]"):
        return None
    empty = f"SELECT CAST(NULL AS {_wide(kind)}) LIMIT 0"  # a type from our list
    return cursor.sql(empty).to_arrow_table().schema.types[0]


def _without_zones(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows, with moments as their time in UTC: the zone of a session can't decide."""
    types = [pa.timestamp("us") if has_zone(kind) else kind for kind in rows.schema.types]
    if types == rows.schema.types:
        return rows
    schema = pa.schema(list(zip(rows.schema.names, types, strict=True)))
    batches = (
        pa.RecordBatch.from_arrays(
            [
                one if one.type == kind else one.view(pa.int64()).view(kind)
                for one, kind in zip(batch.columns, types, strict=True)
            ],
            schema=schema,
        )
        for batch in rows
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _selected(name: str, kind: str) -> str:
    column = _quoted(name)
    return column if _wide(kind) == kind else f"CAST({column} AS {_wide(kind)}) AS {column}"


def _wide(kind: str) -> str:
    """The type that a column is read as: a decimal as the widest one of its scale."""
    base, _, rest = kind.partition("(")
    if base in _AS_TEXT:
        return "VARCHAR"
    return f"DECIMAL(38,{rest.partition(',')[2]}" if base == "DECIMAL" else kind


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
