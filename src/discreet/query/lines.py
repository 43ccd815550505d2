"""CSV files, one line at a time: no line can change what another one says.

A record is a line. Values may stand in double quotes, with quotes inside doubled, but can't hold a
line break: a parser that let them would, at one stray quote, swallow the lines of other people. A
line that doesn't parse, or has more values than the header, is left out; missing and empty values
are NULL; bytes that are no UTF-8 become replacement characters.
"""

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from discreet.errors import DeclarationError

_CHUNK = 100_000
_MARK = b"\xef\xbb\xbf"

Record = list[str | None]


def header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line, and nothing behind it."""
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
    with path.open("rb") as file:
        file.readline()
        records = (record for line in file if (record := _record(line, delimiter, len(names))))
        chunks = iter(lambda: list(islice(records, _CHUNK)), [])
        batches = [_batch(chunk, schema) for chunk in chunks]
    return pa.Table.from_batches(batches, schema)


def _batch(records: list[Record], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*records, strict=True)
    return pa.record_batch([pa.array(c, pa.large_string()) for c in columns], schema=schema)


def _record(line: bytes, delimiter: str, width: int) -> Record | None:
    text = line.rstrip(b"\r\n").decode(errors="replace").replace("\0", "\ufffd")
    if not text:
        return None
    if '"' in text:
        try:
            values = next(_reader(text, delimiter))
        except (csv.Error, StopIteration):
            return None
    else:
        values = text.split(delimiter)
    if len(values) > width:
        return None
    return [value or None for value in values] + [None] * (width - len(values))


def _reader(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader([text], delimiter=delimiter, strict=True)
