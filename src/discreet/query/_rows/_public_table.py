"""A public table, which belongs to nobody: read freely, and joined with tables that don't.

Its columns' types, bounds and keys may follow from its values, since these are public, too. It is
read once, when it is given, and its digest stands among the facts of each question that names it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from discreet import _html
from discreet._unit import Unit
from discreet.errors import DeclarationError, InvalidArgument
from discreet.query._engines._conversion import declarable, has_zone
from discreet.query._facts._columns import ONE_ROW, Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._rows._file_format import FileFormat
from discreet.query._rows._files import CsvFile, FileFolder, JsonLinesFile
from discreet.query._rows._source import (
    ArrowSource,
    TableSource,
    refuse_where_it_is,
    source_of,
)

_MOST_KEYS = 10_000
_Texts = CsvFile | JsonLinesFile


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class PublicTable:
    """A public table: a path to a file of Parquet, CSV or JSON lines or to a folder of them, a
    pandas, Polars or Arrow table, or columns as lists by their names.

    Without ``columns``, all columns of known types are taken, with their least and greatest values
    as bounds and their values as keys. Nobody's presence may have decided any of its values.

    >>> PublicTable({"day": [1, 2], "holiday": [True, False]}, name="days")
    PublicTable 'days': day (integer), holiday (boolean)
    """

    declaration: Declaration
    source: TableSource
    digest: str

    def __init__(
        self,
        source: Any,  # Any: a path, or a pandas, Polars or Arrow table
        *,
        name: str,
        columns: Mapping[str, Column] | None = None,
    ) -> None:
        """Read the table."""
        rows = _read(source)
        if columns is None:
            found = {column: _facts(rows[column]) for column in rows.column_names}
            columns = {column: facts for column, facts in found.items() if facts is not None}
        missing = [column for column in columns if column not in rows.column_names]
        if missing:
            raise DeclarationError(
                f"the public table {name!r} has no column {missing[0]!r}; it has "
                f"{', '.join(rows.column_names)}"
            )
        if not columns:
            raise DeclarationError(f"the public table {name!r} has no column of a known type")
        kept = rows.select(list(columns))
        object.__setattr__(self, "declaration", Declaration(name, Unit.ROW, ONE_ROW, columns))
        object.__setattr__(self, "source", ArrowSource(kept))
        object.__setattr__(self, "digest", _digest(kept))

    def __repr__(self) -> str:
        columns = self.declaration.columns.items()
        listed = ", ".join(f"{name} ({column.type.value})" for name, column in columns)
        return f"PublicTable {self.declaration.name!r}: {listed}"

    def _repr_html_(self) -> str:
        columns = self.declaration.columns.items()
        rows = [[name, *column.in_words] for name, column in columns]
        caption = f"{self.declaration.name}: a public table"
        return _html.table(caption, ["column", "type", "values"], rows)


def _read(given: Any) -> pa.Table:  # Any: as above
    if isinstance(given, PublicTable):
        raise InvalidArgument("source: this is a public table already")
    if isinstance(given, Mapping):
        given = pa.table({str(name): list(values) for name, values in given.items()})
    names = [str(name) for name in getattr(given, "column_names", getattr(given, "columns", ()))]
    source = source_of(given, names)
    refuse_where_it_is(source, "a public table")
    if isinstance(source, _Texts):
        return _typed(source)
    if isinstance(source, FileFolder) and source.form is not FileFormat.PARQUET:
        parts = [_typed(file) for file in source.files if isinstance(file, _Texts)]
        try:
            return pa.concat_tables(parts, promote_options="permissive")
        except pa.ArrowException as cause:
            raise DeclarationError(f"{source.path}: its files differ in types ({cause})") from None
    known = [name for name, kind in source.types() if kind is not None and not has_zone(kind)]
    with source.rows(known) as rows:
        return rows if isinstance(rows, pa.Table) else _whole(rows)


def _typed(source: CsvFile | JsonLinesFile) -> pa.Table:
    """All rows of a file of texts, with types that follow from its values."""
    source.types()  # refuses a CSV file without a header, and JSON in another encoding
    try:
        if isinstance(source, CsvFile):
            options = pa_csv.ParseOptions(delimiter=source.delimiter)
            return pa_csv.read_csv(source.path, parse_options=options)
        rows = pa_json.read_json(source.path)
        rows.validate(full=True)  # texts are UTF-8
    except pa.ArrowException as cause:
        form = "CSV" if isinstance(source, CsvFile) else "JSON lines"
        raise DeclarationError(f"{source.path}: it can't be read as {form} ({cause})") from None
    return rows


def _whole(rows: Any) -> pa.Table:  # Any: an Arrow dataset or reader
    return rows.to_table() if hasattr(rows, "to_table") else rows.read_all()


def _facts(values: pa.ChunkedArray) -> Column | None:
    """The facts of a column that follow from its values; ``None`` if it has no known type."""
    kind = declarable(values.type)
    if kind is None:
        return None
    if kind is ColumnType.BOOLEAN:
        return Column.boolean()
    if kind is ColumnType.TEXT:
        return Column.text(keys=_keys(values))
    if kind is ColumnType.DATE:
        values = values.cast(pa.date32(), safe=False)
        keys = _keys(values)
        return None if keys is None else Column.date(keys=keys)
    numbers = [one for one in values.drop_null().to_pylist() if _is_finite(one)]
    if not numbers:
        return None
    low, high = (Fraction(end) for end in (min(numbers), max(numbers)))
    if kind is ColumnType.INTEGER and low >= -(2**63) and high < 2**63:
        bounds = (int(low), int(high)) if low < high else (None, None)
        return Column.integer(*bounds, keys=_keys(values))
    return Column.number(low, high if low < high else low + 1)


def _is_finite(number: Any) -> bool:  # Any: an int, a float or a Decimal
    return bool(number == number and abs(number) < float(10**100))  # noqa: PLR0124  # NaN


def _keys(values: pa.ChunkedArray) -> list[Any] | None:  # Any: values of one type
    keys = values.unique().drop_null().to_pylist()
    return sorted(keys) if 0 < len(keys) <= _MOST_KEYS else None


def _digest(rows: pa.Table) -> str:
    """A digest of the rows, the same for equal ones."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()
