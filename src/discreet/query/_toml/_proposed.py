"""Proposes a declared type for each column of a source, from its schema and first rows.

The owner reads the proposal and decides. Questions use only the declaration.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.query._engines._conversion import has_zone
from discreet.query._facts._columns import MOST_DECIMALS, ColumnType
from discreet.query._rows._csv_reader import records
from discreet.query._rows._source import CsvFile, ParquetFile, TableSource, kinds

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
    sample = _sample(source, texts) if isinstance(source, ParquetFile | CsvFile) else {}
    digits = {
        name: kind.scale
        for name, kind in source.types()
        if kind and pa.types.is_decimal(kind) and 1 <= kind.scale <= MOST_DECIMALS
    }
    zones = {name: _zone(kind.tz) for name, kind in source.types() if kind and has_zone(kind)}
    return {
        name: _of_texts(sample[name])
        if name in sample
        else ProposedType(kind, zone=zones.get(name), decimals=digits.get(name))
        for name, kind in there.items()
    }


def _zone(written: str) -> str:
    """The zone that a schema names; UTC for an offset, which is no zone."""
    return written if written in available_timezones() else "UTC"


def _sample(
    source: ParquetFile | CsvFile, names: Sequence[str]
) -> Mapping[str, Sequence[str | None]]:
    """The first values of these columns; none where they can't be read."""
    if isinstance(source, CsvFile):
        rows = list(islice(records(source.path, source.delimiter), _SAMPLE))
        return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    try:
        batches = pq.ParquetFile(source.path).iter_batches(_SAMPLE, columns=list(names))
        first = next(batches, None) if names else None
        return {} if first is None else first.to_pydict()
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return {}


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
