"""Proposes a declared type for each column of a source, from its schema and first rows.

The owner reads the proposal and decides. Questions use only the declaration.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import DeclarationError
from discreet.query._engines._conversion import has_zone
from discreet.query._facts._columns import MOST_DECIMALS, ColumnType
from discreet.query._rows._csv_reader import records
from discreet.query._rows._file_format import FileFormat, format_of
from discreet.query._rows._files import (
    AnyFile,
    CsvFile,
    FileFolder,
    JsonLinesFile,
    ParquetFile,
    declared_file,
    format_in,
)
from discreet.query._rows._json_reader import JsonObject, json_objects, json_text
from discreet.query._rows._source import TableSource, kinds

_SAMPLE = 1000
_TRUTHS = [{"true", "false"}, {"t", "f"}, {"yes", "no"}, {"y", "n"}, {"1.0", "0.0"}]
_WHOLE = r"[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|0|[1-9]\d*)"  # 007 is a name
_NUMBER = rf"(?:{_WHOLE}(?:\.\d*)?|[+-]?\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?|nan"
_ISO = r"\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d[\d:.]*(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
_ORDERS = ("{d}{s}{m}{s}{y}", "{m}{s}{d}{s}{y}")
FORMATS = (
    *(
        order.format(d="%d", m="%m", y=year, s=separator)
        for year in ("%Y", "%y")
        for separator in "/.-"
        for order in _ORDERS
    ),
    *("%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%b %d, %Y"),
)


@dataclass(frozen=True, slots=True)
class ProposedType:
    """A proposed type, or ``None`` where the source's type has no rule. ``formats`` lists all date
    formats that fit the texts of a column not written as 2013-01-02; if several fit, the owner
    must choose. ``zone`` is that of the schema, for timestamps with one,
    and ``decimals`` those of its decimals."""

    type: ColumnType | None
    formats: tuple[str, ...] = ()
    zone: str | None = None
    decimals: int | None = None


def propose_types(source: TableSource) -> Mapping[str, ProposedType]:
    """The proposals by column: from the schema and, for texts of a file, from the first rows."""
    there = kinds(source)
    texts = [name for name, kind in there.items() if kind is ColumnType.TEXT]
    first = _first_file(source)
    sample = {} if first is None else _sample(first, texts)
    nested = _nested(_json_rows(first.path)) if isinstance(first, JsonLinesFile) else set()
    digits = {
        name: kind.scale
        for name, kind in source.types()
        if kind and pa.types.is_decimal(kind) and 1 <= kind.scale <= MOST_DECIMALS
    }
    zones = {name: _zone(kind.tz) for name, kind in source.types() if kind and has_zone(kind)}
    return {
        name: _of_texts(sample[name])
        if name in sample and name not in nested
        else ProposedType(
            None if name in nested else kind, zone=zones.get(name), decimals=digits.get(name)
        )
        for name, kind in there.items()
    }


def _zone(written: str) -> str:
    """The zone that a schema names; UTC for an offset, which is no zone."""
    return written if written in available_timezones() else "UTC"


def format_there(path: Path) -> FileFormat | None:
    """The format of a file by the ending of its name, or of a folder by those of its files."""
    return format_of(path) or (format_in(path) if path.is_dir() else None)


def readable(path: Path, form: FileFormat, delimiter: str | None) -> TableSource:
    """The source of a file or folder that nothing declares yet; of JSON, with the columns that its
    first rows have."""
    made = declared_file(path, form, delimiter)
    if isinstance(made, JsonLinesFile) or (
        isinstance(made, FileFolder) and form is FileFormat.JSON_LINES
    ):
        return replace(made, names=_json_columns(made))
    return made


def _json_columns(source: JsonLinesFile | FileFolder) -> tuple[str, ...]:
    """The keys in the first rows, in the order of their first appearance."""
    first = _first_file(source)
    assert isinstance(first, JsonLinesFile)  # its callers know
    names = tuple(dict.fromkeys(name for row in _json_rows(first.path) for name in row))
    if not names:
        raise DeclarationError(f"{first.path}: none of its first lines is an object of JSON")
    return names


def _first_file(source: TableSource) -> AnyFile | None:
    """The file whose first rows are looked at."""
    if isinstance(source, FileFolder):
        return source.files[0]
    return source if isinstance(source, AnyFile) else None


def _json_rows(path: Path) -> list[JsonObject]:
    return list(islice(json_objects(path), _SAMPLE))


def _nested(rows: Iterable[JsonObject]) -> set[str]:
    """The keys under which there is an array or an object."""
    return {name for row in rows for name, value in row.items() if isinstance(value, list | dict)}


def _sample(source: AnyFile, names: Sequence[str]) -> Mapping[str, Sequence[str | None]]:
    """The first values of these columns; none where they can't be read."""
    match source:
        case CsvFile(path, delimiter):
            _check_utf8(path)
            rows = list(islice(records(path, delimiter), _SAMPLE))
            return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        case JsonLinesFile(path):
            _check_utf8(path)
            objects = _json_rows(path)
            return {name: [json_text(one.get(name)) for one in objects] for name in names}
        case ParquetFile(path):
            try:
                batches = pq.ParquetFile(path).iter_batches(_SAMPLE, columns=list(names))
                first = next(batches, None) if names else None
                return {} if first is None else first.to_pydict()
            except (OSError, pa.ArrowException, UnicodeDecodeError):
                return {}


def _check_utf8(path: Path) -> None:
    """Refuse to propose anything for texts in another encoding. A question reads them with
    replacement characters: what a row holds must not refuse it."""
    with path.open("rb") as file:
        for number, line in enumerate(islice(file, _SAMPLE), 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                raise DeclarationError(
                    f"{path}: line {number} isn't UTF-8; convert the file, as by "
                    "iconv -f LATIN1 -t UTF-8"
                ) from None


def _of_texts(values: Iterable[str | None]) -> ProposedType:
    texts = {value.strip() for value in values if value is not None and value.strip()}
    if not texts:
        return ProposedType(ColumnType.TEXT)
    if any({text.lower() for text in texts} <= pair for pair in _TRUTHS):
        return ProposedType(ColumnType.BOOLEAN)
    if _all(texts, _WHOLE):
        return ProposedType(ColumnType.INTEGER)
    if _all(texts, _NUMBER):
        return ProposedType(ColumnType.NUMBER)
    if _all(texts, _ISO) and all(_is_day(text[:10].rstrip("T "), "%Y-%m-%d") for text in texts):
        return ProposedType(ColumnType.DATE)
    formats = tuple(form for form in FORMATS if all(_is_day(text, form) for text in texts))
    return ProposedType(ColumnType.DATE, formats) if formats else ProposedType(ColumnType.TEXT)


def _all(texts: Iterable[str], pattern: str) -> bool:
    match: Callable[[str], object] = re.compile(pattern, re.ASCII | re.IGNORECASE).fullmatch
    return all(match(text) for text in texts)


def _is_day(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)  # noqa: DTZ007  # a day has no zone
    except ValueError:
        return False
    return True
