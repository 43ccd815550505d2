"""Reads a table of a DuckDB database file, which is opened for reading only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from discreet.errors import DeclarationError, InvalidArgument
from discreet.query._engines._duckdb_address import DuckdbAddress
from discreet.query._engines._duckdb_table import DuckdbTable

# the same for each connection, since those of one process to one file share an instance
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "lock_configuration": True,
}


@dataclass(frozen=True, slots=True)
class DuckdbFile:
    """A table that stores rows, in a database file. Those ``apart`` from it have another budget."""

    at: DuckdbAddress
    apart: tuple[DuckdbAddress, ...] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """The names of the schema and the table."""
        return self.at.label

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The table's schema; None for a generated column, or one of a type without a rule."""
        for other in self.apart:
            if other.place == self.at.place:
                raise DeclarationError(
                    f"{self.at.shown} and {other.shown} have a file in common by now, but two "
                    "ledgers; one dataset has one budget: give both the same ledger and anchor, or "
                    "remove the link"
                )
        with self._table() as table:
            try:
                return table.types()
            except InvalidArgument as cause:
                raise DeclarationError(f"{self.at.shown}: {cause}") from None
            except duckdb.Error:
                raise self._unreadable() from None

    @contextmanager
    def rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatchReader]:
        """The columns, streamed."""
        with self._table() as table, table.rows(names) as rows:
            yield rows

    @contextmanager
    def _table(self) -> Iterator[DuckdbTable]:
        at = self.at
        if not at.path.is_file():
            raise DeclarationError(f"{at.path}: there is no such file")
        try:
            connection = duckdb.connect(str(at.path), read_only=True, config=_SETTINGS)
            found = connection.execute("SELECT current_database()").fetchall()
        except duckdb.Error:
            raise self._unreadable() from None
        try:
            yield DuckdbTable(connection, (str(found[0][0]), at.schema, at.name))
        finally:
            connection.close()

    def _unreadable(self) -> DeclarationError:
        return DeclarationError(
            f"{self.at.path}: DuckDB can't open it for reading; see that it is a whole database of "
            "this version, and that no program has it open for writing, or give the table of this "
            "program's own connection (Ibis)"
        )
