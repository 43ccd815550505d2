"""The rows of an answer as a table, as texts, as CSV and as Parquet."""

import datetime
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from discreet.query._expressions._query import column_names


def arrow_of(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """A table of these columns, whose types follow from the values."""
    return pa.table({name: pa.array([row[name] for row in rows]) for name in columns})


def csv_of(table: pa.Table) -> str:
    """The table as CSV text."""
    buffer = io.BytesIO()
    pc.write_csv(table, buffer, write_options=pc.WriteOptions(quoting_style="needed"))
    return buffer.getvalue().decode()


def write_parquet(table: pa.Table, path: str | Path) -> None:
    """Write the table to a Parquet file."""
    pq.write_table(table, path)


def parted(columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """The keys, and the names of the numbers, which have an interval and an error beside them."""
    there = set(columns)
    numbers = [name for name in columns if there.issuperset(column_names(name))]
    beside = {one for name in numbers for one in column_names(name)}
    return [name for name in columns if name not in beside], numbers


def text_rows(
    keys: Sequence[str], numbers: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> list[list[str]]:
    """The rows as texts below a head, keys first, each number in two columns: its value and its
    interval."""
    head = [*keys, *(text for name in numbers for text in (name, "interval"))]
    body = [
        [*(_key(row[key]) for key in keys), *(t for name in numbers for t in _number(row, name))]
        for row in rows
    ]
    return [head, *body]


def cells_by_number(cells: Sequence[Sequence[str]], keys: int) -> list[list[str]]:
    """The cells of `cells_of` with each number of a row on a line of its own, below the keys."""
    head, *rows = cells
    lines = [
        [*(row[:keys] if place == keys else [""] * keys), head[place], *row[place : place + 2]]
        for row in rows
        for place in range(keys, len(head), 2)
    ]
    return [[*head[:keys], "number", "value", "interval"], *lines]


def _number(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    value, low, high, error = (row[column] for column in column_names(name))
    if low is None and high is None:
        return (_figure(value), "–") if error is None else (_key(value), f"within {error:,} rows")
    return _figure(value), f"{_figure(low)} .. {_figure(high)}"


def _figure(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | str | datetime.date):
        return _key(value)
    if isinstance(value, float) and abs(value) < sys.float_info.min:  # the end of an open range
        return "0"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.4g}"
        if abs(cast(float, value)) < 1e4
        else f"{value:,.0f}"
    )


def _key(value: object) -> str:
    if value is None:
        return "all"
    return str(value).lower() if isinstance(value, bool) else str(value)
