"""Reads CSV files one line at a time, so that no line changes how another one is read.

A record is a line. Values may stand in double quotes, with quotes inside doubled, but can't hold a
line break: otherwise one stray quote would swallow the rows of other units. A line is left out if
it has a stray quote, or more or fewer values than the header; so are both parts of a value that is
broken over lines. Empty values are NULL. Bytes that are not UTF-8 become replacement characters.
"""

import csv
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from discreet.errors import DeclarationError

_CHUNK = 100_000
_MARK = b"\xef\xbb\xbf"

Record = list[str | None]


def header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line; nothing else is read."""
    try:
        with path.open("rb") as file:
            line = file.readline().removeprefix(_MARK).rstrip(b"\r\n").decode()
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        names = []
    if not names or len(set(names)) < len(names) or not all(names):
        raise DeclarationError(f"{path}: its first line must name each column once, in UTF-8")
    return names


def read_lines(path: Path, delimiter: str) -> pa.Table:
    """The records as a table of texts."""
    names = header(path, delimiter)
    schema = pa.schema([(name, pa.large_string()) for name in names])
    rows = records(path, delimiter)
    chunks = iter(lambda: list(islice(rows, _CHUNK)), [])
    return pa.Table.from_batches([_batch(chunk, schema) for chunk in chunks], schema)


def records(path: Path, delimiter: str) -> Iterator[Record]:
    """The values of each line that can be read, the header left out."""
    read = _reader(delimiter, len(header(path, delimiter)))
    with path.open("rb") as file:
        file.readline()
        for line in file:
            if record := read(line):
                yield record


def _batch(records: list[Record], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*records, strict=True)
    return pa.record_batch([pa.array(c, pa.large_string()) for c in columns], schema=schema)


def _reader(delimiter: str, width: int) -> Callable[[bytes], Record | None]:
    """A function that reads one line: its values, or None for a line that is left out."""
    value = rf'(?:"(?:[^"]|"")*+"|[^"{re.escape(delimiter)}]*+)'
    well_formed = re.compile(rf"{value}(?:{re.escape(delimiter)}{value})*+")

    def read(line: bytes) -> Record | None:
        text = line.rstrip(b"\r\n").decode(errors="replace")
        text = text.replace("\0", "\ufffd").replace("\r", " ")  # what `csv` would fail on
        if '"' not in text:
            values = text.split(delimiter)
        elif well_formed.fullmatch(text) and len(text) < csv.field_size_limit():
            (values,) = csv.reader([text], delimiter=delimiter, strict=True)
        else:
            return None
        return [one or None for one in values] if text and len(values) == width else None

    return read
