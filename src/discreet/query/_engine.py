"""A private DuckDB for one computation: it reads the Arrow data it is given, and nothing else.

What DuckDB can't hold in memory it writes to a folder of its own, which only this user can read
and which is removed at the end.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType

from discreet.errors import Refused

_SOURCE = "source"
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "ieee_floating_point_ops": True,
}


@dataclass(frozen=True, slots=True, repr=False)
class Engine:
    """A connection that nobody else has."""

    connection: Any  # Any: DuckDB's own

    def table(self, schema: pa.Schema) -> ir.Table:
        """An empty table of this schema, to compile and to try expressions on."""
        self.connection.register(_SOURCE, schema.empty_table())
        seen = self.connection.table(_SOURCE)
        types = {
            name: DuckDBType.from_string(str(kind))
            for name, kind in zip(seen.columns, seen.types, strict=True)
        }
        return ibis.table(ibis.schema(types), name=_SOURCE)

    def statement(self, expression: ir.Table) -> str:
        """The expression in the engine's own language; small public tables that it holds, such as
        declared keys, are handed to the engine now."""
        for one in expression.op().find(ops.InMemoryTable):
            self.connection.register(one.name, one.data.to_pyarrow(one.schema))
        return str(ibis.to_sql(expression, dialect="duckdb"))

    def run(self, statement: str, rows: object) -> pa.Table:
        """The statement's answer over these rows, in the place of the empty table. DuckDB turns
        Ctrl-C into an error of its own; it is turned back, since that is a person's wish and no
        failure that the data can cause."""
        self.connection.register(_SOURCE, rows)
        try:
            return self.connection.sql(statement).to_arrow_table()
        except (RuntimeError, duckdb.InterruptException) as failure:
            if "Query interrupted" in str(failure):
                raise KeyboardInterrupt from None
            raise
        finally:
            self.connection.unregister(_SOURCE)


@contextmanager
def opened() -> Iterator[Engine]:
    """A fresh engine, which installs, loads and guesses nothing, and opens no file."""
    try:
        spill = tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True)
    except OSError as cause:
        raise Refused(
            f"no temporary folder can be made ({cause.strerror}), and a question may need one; set "
            "TMPDIR to a folder that you may write to"
        ) from None
    with spill as folder:
        connection = duckdb.connect(config={"temp_directory": folder, **_SETTINGS})
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield Engine(connection)
        finally:
            connection.close()
