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
import ibis.expr.types as ir
import pyarrow as pa

_SOURCE = "source"


@dataclass(frozen=True, slots=True, repr=False)
class Engine:
    """A connection that nobody else has."""

    backend: Any  # Any: Ibis ships no types

    def table(self, schema: pa.Schema) -> ir.Table:
        """An empty table of this schema, to compile and to try expressions on."""
        self.backend.con.register(_SOURCE, schema.empty_table())
        return self.backend.table(_SOURCE)

    def statement(self, expression: ir.Table) -> str:
        """The expression in the engine's own language."""
        return str(self.backend.compile(expression))

    def run(self, statement: str, rows: object) -> pa.Table:
        """The statement's answer over these rows, in the place of the empty table. DuckDB turns
        Ctrl-C into an error of its own; it is turned back, since that is a person's wish and no
        failure that the data can cause."""
        self.backend.con.register(_SOURCE, rows)
        try:
            return self.backend.con.sql(statement).to_arrow_table()
        except (RuntimeError, duckdb.InterruptException) as failure:
            if "Query interrupted" in str(failure):
                raise KeyboardInterrupt from None
            raise
        finally:
            self.backend.con.unregister(_SOURCE)


@contextmanager
def opened() -> Iterator[Engine]:
    """A fresh engine, which installs, loads and guesses nothing, and opens no file of ours."""
    with tempfile.TemporaryDirectory(prefix="discreet-", ignore_cleanup_errors=True) as folder:
        backend = ibis.duckdb.connect(
            temp_directory=folder,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
            python_enable_replacements=False,
            ieee_floating_point_ops=True,
        )
        try:
            backend.con.execute("SET enable_external_access = false")
            backend.con.execute("SET lock_configuration = true")
            yield Engine(backend)
        finally:
            backend.con.close()
