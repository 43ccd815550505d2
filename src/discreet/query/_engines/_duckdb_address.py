"""The address of a table in a DuckDB file: ``duckdb:/folder/clinic.duckdb?table=main.visits``."""

from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidArgument
from discreet.query._engines._file_behind import file_behind

_SCHEME = "duckdb:"
_FORM = (
    "the address of a table in a DuckDB database reads duckdb:folder/file.duckdb?table=schema.name"
)


@dataclass(frozen=True, slots=True)
class DuckdbAddress:
    """A table of a database file."""

    path: Path
    schema: str
    name: str

    @property
    def label(self) -> str:
        """The names of the schema and the table."""
        return f"{self.schema}.{self.name}"

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for the addresses of one table, by whatever link they name its file; DuckDB
        compares names without case."""
        return "duckdb", file_behind(self.path), self.schema.lower(), self.name.lower()

    @property
    def shown(self) -> str:
        """The address, for people."""
        return str(self)

    def __str__(self) -> str:
        return f"{_SCHEME}{self.path.as_posix()}?table={self.label}"


def is_duckdb_address(text: str) -> bool:
    """Whether a source is named by an address of a DuckDB database."""
    return text.lower().startswith(_SCHEME)


def duckdb_address(text: str) -> DuckdbAddress:
    """The table that a text names."""
    path, _, named = text[len(_SCHEME) :].rpartition("?table=")
    schema, _, name = named.partition(".")
    if not path or not schema or not name:
        raise InvalidArgument(_FORM)
    return DuckdbAddress(Path(path), schema, name)
