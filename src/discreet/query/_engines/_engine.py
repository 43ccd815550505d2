"""The role of an engine, which computes a plan over rows. Nothing but the engines' files names one.

A plan is an Ibis expression. An engine compiles it, checks it on an empty table, and runs it. Some
functions have another name in each SQL engine. These are declared below, and each engine defines
them:

    discreet_quotient      of integers of up to 128 bits, cut towards 0
    discreet_share         (total * part + offset) div whole, cut towards 0, if it fits 64 bits
    discreet_bytes         of a text in UTF-8
    discreet_text          a text of at most 4 096 bytes in valid UTF-8; NULL for any other
    discreet_key           a text of at most 1 024 bytes; NULL for any other
    discreet_md5           of bytes, in hexadecimal digits
    discreet_moment        the time that a text spells in a format, or NULL
    discreet_microseconds  of a time, since 1970
    discreet_nanoseconds   of a time, since 1970
    discreet_instant       the time in UTC of a text with an offset, such as +02:00, or NULL
    discreet_local_day     the day of a time in UTC in a time zone, or NULL

Besides, a plan needs integers of 64 bits that are added, multiplied and compared exactly,
remainders with the sign of the dividend, sums of 128 bits, and their cast to ``DECIMAL(38, 0)``.
"""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from discreet.errors import DeclarationError, DiscreetError, QueryRefused
from discreet.query._engines import _duckdb
from discreet.query._engines._engine_statement import EngineStatement
from discreet.query._engines._postgres_table import PostgresTable
from discreet.query._engines._spark_table import SparkTable

SOURCE = "source"
"""The name of the table whose rows a question reads."""


class Engine(Protocol):
    """An engine for one question: a connection or cursor of its own, with settings of its own."""

    @property
    def place(self) -> str:
        """Equal for two engines of which each runs the statements of the other; empty for those
        that compute in this process."""
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors that it raises where it can't compile or run a statement."""
        ...

    def is_outage(self, cause: Exception) -> bool:
        """Whether its server ended the statement or the connection, whatever the statement was."""
        ...

    def table(self, schema: pa.Schema, name: str = SOURCE) -> ir.Table:
        """An empty table of this schema, to compile and to try expressions on."""
        ...

    def statement(self, expression: ir.Table) -> EngineStatement:
        """The expression as a statement, which any engine of this kind runs."""
        ...

    def run(self, statement: EngineStatement, rows: object) -> pa.Table:
        """The statement's result over these rows of the one table; Ctrl-C raises
        `KeyboardInterrupt`."""
        ...

    def streamed(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        """The statement's result over the rows of each table, a batch at a time."""
        ...


def load() -> None:
    """Import what the engine for files needs, which the first question would import."""
    from discreet.query._engines import _duckdb

    _duckdb.load()


def opened(tables: Sequence[PostgresTable | SparkTable] = ()) -> AbstractContextManager[Engine]:
    """A new engine where these tables are, which are all in one place; in this process, if there
    are none."""
    servers = [table for table in tables if isinstance(table, PostgresTable)]
    if servers:
        from discreet.query._engines import _postgres  # psycopg is an extra

        return _postgres.opened(servers)
    if tables:
        from discreet.query._engines import _spark  # pyspark is an extra

        return _spark.opened([table for table in tables if isinstance(table, SparkTable)])
    return _duckdb.opened()


def compiling(tables: Sequence[PostgresTable | SparkTable] = ()) -> AbstractContextManager[Engine]:
    """An engine that compiles for `opened`, and runs statements over tables without rows only. In
    this process it is ready at once."""
    return opened(tables) if tables else _duckdb.compiling()


def not_compiled(engine: Engine, cause: Exception, refusal: str) -> DiscreetError:
    """The error for a question that was not compiled before the charge: this refusal, unless its
    server failed and not the question."""
    kind = type(cause).__name__
    if engine.is_outage(cause):
        return DeclarationError(
            f"the server of the table ended its work before the charge ({kind}): try again"
        )
    return QueryRefused(f"{refusal} ({kind}); make it shorter or simpler")


def are_in_one_place(tables: Sequence[PostgresTable | SparkTable]) -> bool:
    """Whether one engine can read all of these tables: one role in one database, or Spark."""
    databases = {table.at.database for table in tables if isinstance(table, PostgresTable)}
    return len(databases) + any(isinstance(table, SparkTable) for table in tables) <= 1


def described(schema: pa.Schema, name: str = SOURCE) -> ir.Table:
    """A table of this schema, to make expressions for a server."""
    return ibis.table(ibis.Schema.from_pyarrow(schema), name=name)


def is_embedded(engine: Engine) -> bool:
    """Whether the engine computes in this process, and so gives rows at the cost of a copy."""
    return not engine.place


@ibis.udf.scalar.builtin(name="discreet_quotient")  # type: ignore[untyped-decorator]  # Ibis ships no types
def quotient(dividend: int, divisor: int) -> int:  # type: ignore[empty-body]  # the engine's own
    """The quotient of two integers of up to 128 bits, cut towards 0."""


@ibis.udf.scalar.builtin(name="discreet_share")  # type: ignore[untyped-decorator]  # Ibis ships no types
def share(total: int, part: int, offset: int, whole: int) -> int:  # type: ignore[empty-body]  # the engine's own
    """The quotient of total * part + offset by the whole, cut towards 0; it fits 64 bits."""


@ibis.udf.scalar.builtin(name="discreet_bytes")  # type: ignore[untyped-decorator]  # Ibis ships no types
def as_bytes(text: str) -> bytes:  # type: ignore[empty-body]  # the engine's own
    """The bytes of a text, to which no collation applies."""


@ibis.udf.scalar.builtin(name="discreet_text")  # type: ignore[untyped-decorator]  # Ibis ships no types
def valid_text(text: str) -> str:  # type: ignore[empty-body]  # the engine's own
    """The text, if it has at most 4 096 bytes, which are valid UTF-8; otherwise NULL."""


@ibis.udf.scalar.builtin(name="discreet_key")  # type: ignore[untyped-decorator]  # Ibis ships no types
def short_text(text: str) -> str:  # type: ignore[empty-body]  # the engine's own
    """The text, if it has at most 1 024 bytes in UTF-8; otherwise NULL."""


@ibis.udf.scalar.builtin(name="discreet_md5")  # type: ignore[untyped-decorator]  # Ibis ships no types
def md5(given: bytes) -> str:  # type: ignore[empty-body]  # the engine's own
    """The MD5 of bytes in hexadecimal digits."""


@ibis.udf.scalar.builtin(name="discreet_moment")  # type: ignore[untyped-decorator]  # Ibis ships no types
def moment(text: str, form: str) -> datetime.datetime:  # type: ignore[empty-body]  # the engine's own
    """The time that the text spells in this format, or NULL."""


@ibis.udf.scalar.builtin(name="discreet_microseconds")  # type: ignore[untyped-decorator]  # Ibis ships no types
def microseconds(moment: datetime.datetime) -> int:  # type: ignore[empty-body]  # the engine's own
    """Microseconds since 1970."""


@ibis.udf.scalar.builtin(name="discreet_nanoseconds")  # type: ignore[untyped-decorator]  # Ibis ships no types
def nanoseconds(moment: datetime.datetime) -> int:  # type: ignore[empty-body]  # the engine's own
    """Nanoseconds since 1970."""


@ibis.udf.scalar.builtin(name="discreet_instant")  # type: ignore[untyped-decorator]  # Ibis ships no types
def instant(text: str) -> datetime.datetime:  # type: ignore[empty-body]  # the engine's own
    """The time in UTC that a text with an offset spells, or NULL."""


@ibis.udf.scalar.builtin(name="discreet_local_day")  # type: ignore[untyped-decorator]  # Ibis ships no types
def local_day(moment: datetime.datetime, zone: str) -> datetime.date:  # type: ignore[empty-body]  # the engine's own
    """The day on which a time in UTC falls in this time zone, or NULL."""
