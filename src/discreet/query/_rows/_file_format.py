"""The formats of files with rows, by the endings of their names."""

from enum import Enum
from pathlib import Path


class FileFormat(Enum):
    """The format of a table's file, or of the files of its folder."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON_LINES = "jsonl"


_SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".txt": FileFormat.CSV,
    ".jsonl": FileFormat.JSON_LINES,
    ".ndjson": FileFormat.JSON_LINES,
}


def format_of(source: Path) -> FileFormat | None:
    """The format by the ending of a file's name, or None."""
    return _SUFFIXES.get(source.suffix.lower())


def usual_delimiter(source: Path) -> str:
    """The delimiter of a CSV file that declares none."""
    return "\t" if source.suffix.lower() == ".tsv" else ","


def is_delimiter(text: str) -> bool:
    """Whether the text can be a delimiter: one character, but no quote and no line end."""
    return len(text) == 1 and text not in '"\r\n\0'
