"""Public tables are read from each form of file alike, alone and in a folder."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DeclarationError

ROWS = [
    {"day": f"2013-01-0{n}", "rain": n / 2, "name": "é☂"[n % 2], "wet": n > 2} for n in (1, 2, 3)
]
FORMS = ["parquet", "csv", "tsv", "jsonl"]

DECLARED = """
[tables.t]
source = "rows.csv"
row = true
[tables.t.ledger]
path = "t.ledger"
epsilon = 1
[tables.t.columns]
x = { type = "integer", lower = 0, upper = 1 }
[public.days]
"""


def _written(folder: Path, form: str, *, is_folder: bool) -> Path:
    """A file with all rows, or a folder with two files."""
    path = folder / ("days" if is_folder else f"days.{form}")
    if is_folder:
        path.mkdir()
        (path / f"a.{form}").write_bytes(_bytes(form, ROWS[:1]))
        (path / f"b.{form}").write_bytes(_bytes(form, ROWS[1:]))
    else:
        path.write_bytes(_bytes(form, ROWS))
    return path


def _bytes(form: str, rows: Sequence[Mapping[str, object]]) -> bytes:
    if form == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if form == "parquet":
        sink = io.BytesIO()
        found = pa.Table.from_pylist(rows)
        pq.write_table(found.set_column(0, "day", found["day"].cast(pa.date32())), sink)
        return sink.getvalue()
    lines = io.StringIO()
    table = csv.DictWriter(lines, list(ROWS[0]), delimiter="\t" if form == "tsv" else ",")
    table.writeheader()
    table.writerows(rows)
    return lines.getvalue().encode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_types_bounds_and_keys_follow_from_the_values(
    form: str, tmp_path: Path, *, is_folder: bool
) -> None:
    """In Python, and by a declaration."""
    path = _written(tmp_path, form, is_folder=is_folder)
    written = "csv" if form == "tsv" else form
    text = f'{DECLARED}source = "{path.name}"\n' + (f'format = "{written}"\n' * is_folder)
    if form == "tsv" and is_folder:
        text += 'delimiter = "\\t"\n'
    (tmp_path / "discreet.toml").write_text(text)
    declared = dp.open(tmp_path / "discreet.toml")
    for table in (dp.PublicTable(str(path), name="days"), declared.public["days"]):
        columns = table.declaration.columns
        assert [(name, column.type.value) for name, column in columns.items()] == [
            ("day", "date"),
            ("rain", "number"),
            ("name", "text"),
            ("wet", "boolean"),
        ]
        rain = columns["rain"]
        assert (rain.lower, rain.upper) == (Fraction(1, 2), Fraction(3, 2))
        assert columns["name"].keys == ("é", "☂")
        assert [str(day) for day in columns["day"].keys or ()] == [row["day"] for row in ROWS]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b'{"a": 1}\nno object\n'),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n'),
        ("a.jsonl", b'{"a": "\xff"}\n'),
        ("a.jsonl", '{"a": 1}\n'.encode("utf-16")),
        ("a.jsonl", b""),
        ("a.csv", b"a,b\n1\n"),
        ("a.jsonl", b'{"a": [1]}\n'),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    """Nobody's row is in a public table, so nothing of it is passed over."""
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DeclarationError):
        dp.PublicTable(path, name="days")


def test_files_of_one_folder_that_differ_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"a": "x"}\n')
    with pytest.raises(DeclarationError, match="differ in types"):
        dp.PublicTable(tmp_path, name="days")


@pytest.mark.parametrize("source", ["rows.csv", "link.csv", "folder", "."])
def test_private_rows_are_no_public_table(tmp_path: Path, source: str) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").hardlink_to(tmp_path / "rows.csv")
    path = tmp_path / "discreet.toml"
    path.write_text(f'{DECLARED}source = "{source}"\nformat = "csv"\n')
    with pytest.raises(DeclarationError, match=r"the same source as tables\.t"):
        dp.open(path)
