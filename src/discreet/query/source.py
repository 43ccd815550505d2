"""Where a table's rows come from, opened anew for each computation.

Every source gives an Ibis table on DuckDB. A schema is read without rows and counts as public.
A CSV file is read as text, so that no row decides about a type.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from discreet.errors import DeclarationError, InvalidArgument
from discreet.query.columns import ColumnType
from discreet.query.conversion import CONVERTIBLE, declarable
from discreet.query.lines import header, read_lines

_NAME = "source"


class Source(Protocol):
    """Rows, and their schema without them."""

    def schema(self) -> Mapping[str, ColumnType | None]:
        """Each column's name and closest declarable type; ``None`` for one that has none."""
        ...

    def open(self) -> ir.Table:
        """The rows as a table of an engine."""
        ...


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file."""

    path: Path

    def schema(self) -> Mapping[str, ColumnType | None]:
        """The file's own schema; its statistics are data, and aren't looked at."""
        try:
            return _types(ibis.Schema.from_pyarrow(pq.read_schema(_existing(self.path))))
        except (OSError, pa.ArrowException, NotImplementedError) as cause:
            raise DeclarationError(
                f"{self.path}: its Parquet schema can't be read ({cause})"
            ) from cause

    def open(self) -> ir.Table:
        """The file, streamed through Arrow, which takes texts that are no UTF-8 as they are."""
        return _registered(ds.dataset(self.path, format="parquet"))


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file with a header line; its columns are texts until a declaration converts them."""

    path: Path
    delimiter: str = ","

    def schema(self) -> Mapping[str, ColumnType | None]:
        """The header's names, all as text."""
        return dict.fromkeys(header(_existing(self.path), self.delimiter), ColumnType.TEXT)

    def open(self) -> ir.Table:
        """The file's lines, each read by itself."""
        return ArrowSource(read_lines(_existing(self.path), self.delimiter)).open()


@dataclass(frozen=True, slots=True, repr=False)
class ArrowSource:
    """A table in memory."""

    table: pa.Table

    def schema(self) -> Mapping[str, ColumnType | None]:
        """The table's own schema."""
        return _types(ibis.Schema.from_pyarrow(self.table.schema))

    def open(self) -> ir.Table:
        """The table, read by the engine where it is."""
        return _registered(self.table)

    def __repr__(self) -> str:
        """Never a row."""
        return "ArrowSource(...)"


@dataclass(frozen=True, slots=True, repr=False)
class IbisSource:
    """A table or expression of an Ibis connection to DuckDB."""

    table: ir.Table

    def schema(self) -> Mapping[str, ColumnType | None]:
        """The expression's own schema."""
        return _types(self.table.schema())

    def open(self) -> ir.Table:
        """The expression itself."""
        return self.table

    def __repr__(self) -> str:
        """Never a row."""
        return "IbisSource(...)"


def source_of(given: Any) -> Source:  # Any: pandas and Polars are known by their methods only
    """The source of what a user hands over: a path, a frame, a table, or a source."""
    if isinstance(given, ParquetFile | CsvFile | ArrowSource | IbisSource):
        return given
    if isinstance(given, str | Path):
        return file_source(Path(given))
    if isinstance(given, pa.Table):
        return ArrowSource(given)
    if isinstance(given, ir.Table):
        return _ibis_source(given)
    module = type(given).__module__.partition(".")[0]
    if module == "pandas" and hasattr(given, "columns"):
        return ArrowSource(_to_arrow({name: given[name] for name in given.columns}))
    if module == "polars" and hasattr(given, "to_arrow"):
        return ArrowSource(given.to_arrow())
    raise InvalidArgument(
        f"source: a {type(given).__name__} can't be read; give a path, or a pandas, Polars, "
        "Arrow or Ibis table"
    )


def file_source(path: Path, delimiter: str = ",") -> Source:
    """The source of a file, by the ending of its name."""
    match path.suffix.lower():
        case ".parquet" | ".pq":
            return ParquetFile(path)
        case ".csv" | ".tsv" | ".txt":
            return CsvFile(path, "\t" if path.suffix.lower() == ".tsv" else delimiter)
    raise DeclarationError(
        f"{path}: only .parquet, .csv and .tsv files can be read; convert it, or pass a frame "
        "in Python"
    )


def schema(source: Source) -> Mapping[str, ColumnType | None]:
    """A proposed declared type for each column, from the schema only (for CSV, from what its
    first rows look like: to be shown to the owner and confirmed by him, never used by itself)."""
    if not isinstance(source, CsvFile):
        return source.schema()
    try:
        with warnings.catch_warnings():  # between Ibis and DuckDB
            warnings.simplefilter("ignore")
            looks = _engine().read_csv(
                str(_existing(source.path)), table_name=_NAME, delim=source.delimiter, header=True
            )
    except duckdb.Error:
        return source.schema()
    seen = _types(looks.schema())
    return {name: seen.get(name, ColumnType.TEXT) for name in source.schema()}


def check_schema(source: Source, columns: Mapping[str, ColumnType], unit: str | None) -> None:
    """Refuse a source that lacks a declared column or the unit's, or has one of another kind."""
    there = source.schema()
    folded = [name.lower() for name in there]
    if twice := [name for name in there if folded.count(name.lower()) > 1]:
        raise DeclarationError(
            f"the source's columns {', '.join(twice)} differ in case only, and engines would take "
            "one for the other; rename them"
        )
    for name in [*columns, *([] if unit is None else [unit])]:
        if name not in there:
            raise DeclarationError(f"the source has no column {name!r}; it has {', '.join(there)}")
    for name, kind in columns.items():
        if (found := there[name]) not in CONVERTIBLE[kind]:
            kinds = "a type without a rule" if found is None else found.value
            raise DeclarationError(
                f"column {name!r} is declared as {kind.value}, the source has {kinds}"
            )
    if unit is not None and there[unit] is None:
        raise DeclarationError(
            f"the unit's column {unit!r} has a type without a rule; convert it to whole numbers "
            "or texts"
        )


def _types(found: ibis.Schema) -> Mapping[str, ColumnType | None]:
    return {name: declarable(kind) for name, kind in found.items()}


def _engine() -> Any:  # Any: Ibis ships no types
    """A fresh DuckDB that reads what it is told to, and installs, loads and guesses nothing."""
    connection = ibis.duckdb.connect()
    for setting in (
        "autoinstall_known_extensions",
        "autoload_known_extensions",
        "python_enable_replacements",
    ):
        connection.raw_sql(f"SET {setting} = false")
    return connection


def _registered(rows: Any) -> ir.Table:  # Any: an Arrow table or dataset
    connection = _engine()
    connection.con.register(_NAME, rows)
    return connection.table(_NAME)


def _ibis_source(given: ir.Table) -> IbisSource:
    backends = [backend.name for backend in given._find_backends()[0]]  # noqa: SLF001  # Ibis has no public form
    if backends != ["duckdb"]:
        raise InvalidArgument(
            f"source: an Ibis table of {', '.join(backends) or 'no connection'}; DuckDB is what "
            "is supported"
        )
    return IbisSource(given)


def _to_arrow(columns: Mapping[Any, Any]) -> pa.Table:  # Any: names and columns of pandas
    """The columns as an Arrow table; an error names a column, and never what is in it."""
    arrays = {}
    for name, column in columns.items():
        try:
            arrays[str(name)] = pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays[str(name)] = None
        if arrays[str(name)] is None:
            raise InvalidArgument(
                f"source: the column {name!r} can't be read; give it one type for all its values"
            )
    return pa.table(arrays)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DeclarationError(f"{path}: there is no such file")
    return path
