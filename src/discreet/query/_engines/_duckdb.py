"""A DuckDB instance for one computation, which reads the given Arrow data and nothing else.

Data that don't fit into memory are written to a temporary folder that only this user can read and
that is removed at the end. To make an instance takes longer than to compile a small question. So
one instance of the process compiles all questions, over tables without rows.
"""

import os
import resource
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType
from ibis.common.exceptions import IbisError

from discreet.errors import Refused
from discreet.query._engines._engine_statement import EngineStatement, check_zones

# what the functions of `_engine` are here
FUNCTIONS = {
    "discreet_quotient(dividend, divisor)": "divide(dividend, divisor)",
    "discreet_share(total, part, away, whole)": (
        "CAST(divide(CAST(total AS HUGEINT) * part + away, whole) AS BIGINT)"
    ),
    "discreet_bytes(given)": "encode(given)",
    "discreet_text(given)": (
        "CASE WHEN octet_length(encode(given)) <= 4096 THEN try(decode(encode(given))) END"
    ),
    "discreet_key(given)": "CASE WHEN octet_length(encode(given)) <= 1024 THEN given END",
    "discreet_md5(given)": "md5(given)",
    "discreet_moment(given, form)": "try_strptime(given, form)",
    "discreet_microseconds(given)": "epoch_us(given)",
    "discreet_nanoseconds(given)": "epoch_ns(given)",
    "discreet_instant(given)": "timezone('UTC', try_cast(given AS TIMESTAMPTZ))",
    "discreet_local_day(given, zone)": (
        "try(CAST(timezone(zone, timezone('UTC', given)) AS DATE))"
    ),
}
_SOURCE = "source"
_TEXTS = 64
_BATCH = 1 << 17
_SETTINGS: dict[str, Any] = {  # Any: of each setting's type
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "ieee_floating_point_ops": True,
    "arrow_large_buffer_size": True,  # else long texts of one unit could fail a batch
}
_WITHOUT_ROWS: dict[str, Any] = {
    "temp_directory": "",
    "threads": 1,
}  # nothing to spill or to divide


@dataclass(frozen=True, slots=True, repr=False)
class DuckdbEngine:
    """A DuckDB connection of its own. Unless it ``takes_rows``, all questions of the process share
    its instance."""

    connection: Any  # Any: DuckDB's own
    takes_rows: bool = True

    @property
    def place(self) -> str:
        """Empty: each instance in this process runs the statements of any other."""
        return ""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of DuckDB, and of Ibis, which compiles for it."""
        return duckdb.Error, IbisError, RecursionError

    def is_outage(self, cause: Exception) -> bool:
        """Never: it computes in this process."""
        del cause
        return False

    def table(self, schema: pa.Schema, name: str = _SOURCE) -> ir.Table:
        """An empty table of this schema, to compile and to try expressions on."""
        self.connection.register(name, schema.empty_table())
        found = self.connection.table(name)
        types = {
            column: DuckDBType.from_string(str(kind))
            for column, kind in zip(found.columns, found.types, strict=True)
        }
        return ibis.table(ibis.schema(types), name=name)

    def statement(self, expression: ir.Table) -> EngineStatement:
        """The expression as a statement, which any engine of this kind runs."""
        operation = expression.op()
        check_zones(operation, self._knows)
        tables = {
            one.name: one.data.to_pyarrow(one.schema) for one in operation.find(ops.InMemoryTable)
        }
        constants = tuple(repr(one.value) for one in operation.find(ops.Literal))
        return EngineStatement(_text(operation.replace(_without_rows), constants), tables)

    def _knows(self, zone: str) -> bool:
        text = "SELECT timezone($1, TIMESTAMP '2000-01-01') IS NULL"
        try:
            self.connection.execute(text, [zone]).fetchall()
        except duckdb.Error:
            return False
        return True

    def run(self, statement: EngineStatement, rows: object) -> pa.Table:
        """The statement's result over these rows, which replace the empty table. DuckDB turns
        Ctrl-C into its own error; here it becomes `KeyboardInterrupt` again, since the data can't
        cause it."""
        try:
            with _interruptible():
                return self._over(statement, {_SOURCE: rows}).to_arrow_table()
        finally:
            self.connection.unregister(_SOURCE)

    @contextmanager
    def streamed(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> Iterator[pa.RecordBatchReader]:
        """The statement's result over the rows of each table, a batch at a time."""
        with _interruptible():
            yield self._over(statement, rows).to_arrow_reader(_BATCH)

    def _over(
        self, statement: EngineStatement, rows: Mapping[str, object]
    ) -> Any:  # Any: DuckDB's own
        """The statement's result, not yet computed, over these rows of each table."""
        assert self.takes_rows or not any(map(_has_rows, rows.values()))
        for name, given in {**statement.tables, **rows}.items():
            self.connection.register(name, given)
        return self.connection.sql(statement.text)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError, duckdb.InterruptException) as failure:
        if "Query interrupted" in str(failure):
            raise KeyboardInterrupt from None
        raise


def _has_rows(given: object) -> bool:
    return not isinstance(given, pa.Table) or given.num_rows > 0


def _without_rows(node: ops.Node, changed: dict[str, Any] | None) -> ops.Node:  # Any: its parts
    """A node of an expression; a small table as its name and schema only."""
    if isinstance(node, ops.InMemoryTable):
        return ops.UnboundTable(name=node.name, schema=node.schema)
    return node if changed is None else node.__recreate__(changed)


@lru_cache(maxsize=_TEXTS)
def _text(operation: ops.Relation, _constants: tuple[str, ...]) -> str:
    """The SQL of an expression of public facts. Ibis takes most of a small question's time for it,
    so texts are reused. The written constants are part of what is looked up: 0.0 equals -0.0."""
    return str(_compiler().to_sqlglot(operation.to_expr()).sql("duckdb"))


@cache
def _compiler() -> Any:  # Any: Ibis' own, which has no types
    """Ibis' compiler for DuckDB, which writes each step as a query of its own. Merging them takes
    Ibis a third of the time of a new question, and DuckDB merges them as well. Ibis' own option for
    that belongs to the whole process, so only this copy of its method reads another value."""
    from ibis.backends.sql.compilers import base, duckdb  # all dialects, which take a while

    plain = base.SQLGlotCompiler.translate
    options = SimpleNamespace(sql=SimpleNamespace(fuse_selects=False))
    translate = FunctionType(plain.__code__, vars(base) | {"options": options})
    translate.__kwdefaults__ = plain.__kwdefaults__
    return type("EachStepByItself", (duckdb.DuckDBCompiler,), {"translate": translate})()


def define_functions(connection: Any, macro: str = "TEMPORARY MACRO") -> None:  # Any: DuckDB's own
    """Define the functions that `_engine` declares; temporary ones for this connection only."""
    definitions = [f"CREATE {macro} {name} AS {FUNCTIONS[name]}" for name in FUNCTIONS]
    connection.execute(";".join(definitions))


def load() -> None:
    """Import what the first connection would import."""
    import pandas  # noqa: F401


@contextmanager
def opened() -> Iterator[DuckdbEngine]:
    """A new engine, which installs and loads no extension and opens no file."""
    with _temporary_folder() as folder:
        connection = duckdb.connect(
            config={"temp_directory": folder, **_memory_limit(), **_SETTINGS}
        )
        try:
            define_functions(connection)
            _lock(connection)
            yield DuckdbEngine(connection)
        finally:
            connection.close()


@contextmanager
def compiling() -> Iterator[DuckdbEngine]:
    """An engine to compile for `opened`, which takes no rows. It raises the same error where no
    temporary folder can be made, so that a later charge is not lost."""
    with _temporary_folder():
        connection = _compiling_instance().cursor()  # tables of one cursor are not seen by another
    try:
        yield DuckdbEngine(connection, takes_rows=False)
    finally:
        connection.close()


def _memory_limit() -> dict[str, str]:
    """Half of the memory that this process may have, if there is a limit (`ulimit -m`): then DuckDB
    writes what needs more to its folder, and the rest is for everything else."""
    most, _ = resource.getrlimit(resource.RLIMIT_RSS)
    return {} if most == resource.RLIM_INFINITY else {"memory_limit": f"{most // 2}B"}


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True)
    except OSError as cause:
        raise Refused(
            f"no temporary folder can be made ({cause.strerror}), and a question may need one; set "
            "TMPDIR to a folder with write permission"
        ) from None


@cache
def _compiling_instance() -> Any:  # Any: DuckDB's own
    connection = duckdb.connect(config={**_SETTINGS, **_WITHOUT_ROWS})
    define_functions(connection, "MACRO")
    _lock(connection)
    return connection


# a forked child that ends with an instance of its parent fails or waits forever
os.register_at_fork(before=_compiling_instance.cache_clear)


def _lock(connection: Any) -> None:  # Any: DuckDB's own
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
