"""Sources of a table's rows: each gives Arrow data of the named columns.

Types never depend on rows: a Parquet file's and a database table's schema counts as public, a
CSV file and Python objects are read as texts. Undeclared columns are never read.
"""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import ibis.expr.types as ir
import pyarrow as pa

from discreet._unit import Unit
from discreet.errors import DeclarationError, InvalidArgument, QueryRefused
from discreet.query._engines._address import (
    AddressedTable,
    TableOfFile,
    address_of,
    is_address,
    table_at,
)
from discreet.query._engines._conversion import (
    CONVERTIBLE,
    declarable,
    has_zone,
    read_as,
)
from discreet.query._engines._duckdb_table import DuckdbTable, plain_table
from discreet.query._engines._engine import are_in_one_place
from discreet.query._engines._file_behind import file_behind, resolved
from discreet.query._facts._columns import Column, ColumnType
from discreet.query._rows import _frames
from discreet.query._rows._files import (
    ArrowRows,
    CsvFile,
    FileFolder,
    FileSource,
    JsonLinesFile,
    ParquetFile,
    engine_type,
    file_source,
    files_now,
)


class TableSource(Protocol):
    """ArrowRows, and their schema without them."""

    @property
    def label(self) -> str:
        """A public name that tells sources apart; a file's does not depend on its folder."""
        ...

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """Each column with the type that it is read as; ``None`` for one that can't be read."""
        ...

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The rows of these columns alone, of exactly the types stated."""
        ...


class ComputedSource(ABC):
    """A source whose rows an engine computes from others. It is known by inheritance: a frame may
    have columns of any names."""

    __slots__ = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """A public name that tells sources apart."""

    @property
    @abstractmethod
    def private_tables(self) -> tuple[str, ...]:
        """The names of the tables of units from which the rows are made."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[TableSource]:
        """The sources of units' rows from which the rows are made."""

    @property
    @abstractmethod
    def is_cut(self) -> bool:
        """Whether a unit's rows beyond the caps of tables are left out before these are made."""

    @abstractmethod
    def snapshot(self) -> "ComputedSource":
        """The same source over a `snapshot` of each part."""

    @abstractmethod
    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """Each column with its type."""

    @abstractmethod
    def schema(self, names: Sequence[str]) -> pa.Schema:
        """The Arrow types of these columns, computed once for tables without rows, so that over
        the rows nothing fails for a public reason."""

    @abstractmethod
    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The rows of these columns alone."""


@dataclass(frozen=True, slots=True, repr=False)
class ArrowSource:
    """A table in memory; ``others`` are the names of undeclared columns, ``origin`` is the
    frame that it was taken from, and ``roots`` are the arrays that its columns are views of."""

    table: pa.Table
    others: tuple[str, ...] = ()
    origin: object = field(default=None, compare=False)
    roots: Sequence[object] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """Empty: tables in memory have no names."""
        return ""

    def types(self) -> Sequence[tuple[str, pa.DataType | None]]:
        """The table's own schema."""
        own = [(field.name, read_as(field.type)) for field in self.table.schema]
        return own + [(name, None) for name in self.others]

    def rows(self, names: Sequence[str]) -> AbstractContextManager[ArrowRows]:
        """The columns, cast unchecked to the types that they are read as."""
        types = dict(self.types())
        columns = {
            name: self.table[name].cast(engine_type(types[name]), safe=False) for name in names
        }
        return nullcontext(pa.table(columns))

    def __repr__(self) -> str:
        return "ArrowSource(...)"


def source_of(
    given: Any, names: Sequence[str]
) -> TableSource:  # Any: frames are known by their methods
    """The source of a path, a frame, a table, or a source; of a frame, the columns of these
    names are taken now, and no others."""
    own = FileSource | ArrowSource | DuckdbTable | TableOfFile | AddressedTable | ComputedSource
    if isinstance(given, own):
        return given
    if isinstance(given, str) and is_address(given):
        return table_at(address_of(given))
    if isinstance(given, str | Path):
        return file_source(Path(given), names)
    if isinstance(given, ir.Table):
        return plain_table(given)
    if isinstance(given, pa.Table):
        return _in_memory(_frames.arrow_table(given, names), given.column_names, given)
    module = type(given).__module__.partition(".")[0]
    if module == "pandas" and hasattr(given, "columns"):
        made = _in_memory(_frames.pandas_table(given, names), given.columns, given)
        return replace(made, roots=_frames.numpy_roots(given, names))
    if module == "polars" and hasattr(given, "to_arrow") and hasattr(given, "columns"):
        return _in_memory(_frames.polars_table(given, names), given.columns, given)
    raise InvalidArgument(
        f"source: a {type(given).__name__} can't be read; give a path, or a pandas, Polars, "
        "Arrow or Ibis table"
    )


def _in_memory(table: pa.Table, names: Sequence[object], origin: object) -> ArrowSource:
    others = tuple(str(n) for n in names if str(n) not in table.column_names)
    return ArrowSource(table, others, weakref.ref(origin))


def place_of(source: TableSource) -> Hashable:
    """Where the rows are: equal for two sources of one file, one database table, or one frame.

    Database tables of the same name are taken for one, since connections may share a database.
    """
    if isinstance(source, AddressedTable | TableOfFile):
        return source.at.place
    match source:
        case FileFolder(path):
            return resolved(path)
        case ParquetFile(path) | CsvFile(path) | JsonLinesFile(path, _):
            return file_behind(path)
        case DuckdbTable():
            return source.place
        case ArrowSource(table, _, origin):
            return id(table if origin is None else origin)  # a frame has one weak reference
    return id(source)


def refuse_where_it_is(source: object, what: str) -> None:
    """Refuse a source that is computed where it is, for a use that needs its rows here."""
    if isinstance(source, AddressedTable):
        raise QueryRefused(
            f"{what}: the rows of {source.label} stay where they are stored, and this has no rule "
            "there; ask the table by itself"
        )


def served_by(source: TableSource) -> tuple[AddressedTable, ...]:
    """The tables in a server from which the rows of a source are computed there; none for a source
    whose rows are computed in this process."""
    if isinstance(source, AddressedTable):
        return (source,)
    if isinstance(source, ComputedSource):
        return tuple(dict.fromkeys(table for part in source.parts for table in served_by(part)))
    return ()


def snapshot(source: TableSource) -> TableSource:
    """The source with the files of its folders as they are now. One that arrives later may lack a
    column, and must not make a paid question fail; the next question reads it. Refused if a file is
    now one of a table with another ledger, too."""
    if isinstance(source, FileSource):
        return files_now(source)
    return source.snapshot() if isinstance(source, ComputedSource) else source


def check_one_place(source: ComputedSource, what: str) -> None:
    """Refuse rows that no single engine can compute, since they are in several places."""
    tables = served_by(source)
    is_here = any(not served_by(part) for part in source.parts)
    if tables and (is_here or not are_in_one_place(tables)):
        raise QueryRefused(
            f"{what}: the tables are in several places, and rows stay where they are stored; "
            "name tables of one database and one role, or files"
        )


def kinds(source: TableSource) -> Mapping[str, ColumnType | None]:
    """The closest declarable type of each column; ``None`` where its type has no rule."""
    return {name: _declarable(kind) for name, kind in source.types()}


def id_columns(source: TableSource, unit: Unit) -> tuple[str, ...]:
    """The columns of the source that are the unit's id. A computed source has it in one column,
    under its whole name."""
    if isinstance(source, ComputedSource) and unit.column is not None:
        return (unit.column,)
    return unit.columns


def check_schema(
    source: TableSource, columns: Mapping[str, Column] | Mapping[str, ColumnType], unit: Unit
) -> None:
    """Refuse a source that lacks a declared column or one of the unit's, or has it in a type that
    can't be converted. Other columns are ignored."""
    # 1. each declared column, and the unit's, is there once
    there = source.types()
    ids = id_columns(source, unit)
    names = list(dict.fromkeys([*columns, *ids]))
    for name in names:
        found = [other for other, _ in there if other == name]
        if not found:
            listed = ", ".join(other for other, _ in there)
            raise DeclarationError(f"the source has no column {name!r}; it has {listed}")
        if len(found) > 1:
            raise DeclarationError(f"the source has {len(found)} columns {name!r}; rename them")
        if twins := [other for other in names if other != name and other.lower() == name.lower()]:
            raise DeclarationError(
                f"the columns {name!r} and {twins[0]!r} differ in case only, and engines may "
                "confuse them; rename one"
            )
    # 2. its type can be converted to the declared one
    known = {name: _declarable(kind) for name, kind in there if name in names}
    zoned = {name for name, kind in there if has_zone(kind)}
    for name, facts in columns.items():
        kind = facts.type if isinstance(facts, Column) else facts
        if (found_kind := known[name]) not in CONVERTIBLE[kind]:
            shown = _no_rule(source) if found_kind is None else found_kind.value
            raise DeclarationError(
                f"column {name!r} is declared as {kind.value}, the source has {shown}"
            )
        if isinstance(facts, Column):
            _check_zone(name, facts, known[name], is_zoned=name in zoned)
    for name in ids:
        if known[name] is None or name in zoned:
            raise DeclarationError(
                f"the unit's column {name!r} has {_no_rule(source)}; convert it to whole "
                "numbers or texts"
            )


def _no_rule(source: TableSource) -> str:
    return "a type without a rule" + (", or its role may not read it" if served_by(source) else "")


def _check_zone(name: str, column: Column, found: ColumnType | None, *, is_zoned: bool) -> None:
    """Refuse times with a zone of which the declaration doesn't say in which zone their days are,
    and a zone for days and times without one."""
    if is_zoned and column.zone is None:
        raise DeclarationError(
            f'column {name!r} has times with a zone: name the zone of its days, as zone = "UTC" or '
            'zone = "Europe/Berlin"'
        )
    if column.zone is not None and not is_zoned and found is not ColumnType.TEXT:
        raise DeclarationError(f"column {name!r} has no times with a zone: leave out its zone")


def arrow_schema(source: TableSource, names: Sequence[str]) -> pa.Schema:
    """The Arrow types of these columns, which must be there."""
    if isinstance(source, ComputedSource):
        return source.schema(names)
    types = dict(source.types())
    return pa.schema([(name, engine_type(types[name])) for name in names])


def _declarable(kind: pa.DataType | None) -> ColumnType | None:
    return None if kind is None else declarable(kind)
