"""Reads JSON lines, one at a time, so that no line changes how another one is read.

A record is a line with one object. Any other line is left out. Each value becomes a text, which a
declaration converts: a number is read as it is written, and NULL stands for null, for a key that
isn't there, and for arrays and objects. So no row can make a question fail.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from discreet.errors import DeclarationError

_CHUNK = 100_000
_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")  # of UTF-16 and UTF-32
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_TRUTHS = {True: "true", False: "false"}

JsonObject = Mapping[str, object]


def check_mark(path: Path) -> None:
    """Refuse a file that begins with the mark of another encoding than UTF-8. No row can have it,
    and nothing else is read."""
    try:
        with path.open("rb") as file:
            first = file.read(4)
    except OSError as cause:
        raise DeclarationError(f"{path}: it can't be read ({cause.strerror})") from None
    if first.startswith(_OTHER_MARKS):
        raise DeclarationError(f"{path}: it is written in UTF-16 or UTF-32; convert it to UTF-8")


def json_objects(path: Path) -> Iterator[JsonObject]:
    """The object of each line that has one; numbers as texts."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            found = _object_in(line if number else line.removeprefix(_MARK))
            if found is not None:
                yield found


def _object_in(line: bytes) -> JsonObject | None:
    try:
        found = _DECODER.decode(line.decode(errors="replace").strip())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_text(value: object) -> str | None:
    """The text of a value; None for null, arrays and objects."""
    if isinstance(value, bool):
        return _TRUTHS[value]
    return value if isinstance(value, str) else None


def read_json_lines(path: Path, names: Sequence[str]) -> pa.Table:
    """The values under these keys as a table of texts."""
    schema = pa.schema([(name, pa.large_string()) for name in names])
    objects = json_objects(path)
    chunks = iter(lambda: list(islice(objects, _CHUNK)), [])
    return pa.Table.from_batches([_batch(chunk, schema) for chunk in chunks], schema)


def _batch(objects: Sequence[JsonObject], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([_bytes(one.get(name)) for one in objects], pa.large_binary()).view(
            pa.large_string()
        )
        for name in schema.names
    ]
    return pa.record_batch(columns, schema=schema)


def _bytes(value: object) -> bytes | None:
    """The text of a value in UTF-8; a lone surrogate becomes bytes that are no UTF-8."""
    text = json_text(value)
    return None if text is None else text.encode("utf-8", "surrogatepass")
