"""Files of JSON lines, folders of files, and tables of DuckDB files: what they hold, and that what
a row holds never refuses a question."""

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.audit import replay
from discreet.errors import ComputationFailed, DeclarationError, DiscreetError, QueryRefused
from discreet.query import Column, Question, QuestionPrice, Table, release_question
from discreet.query._engines._address import address_of, table_at
from discreet.query._rows import _files
from discreet.query._rows._files import FileFolder, file_source
from discreet.query._rows._json_reader import read_json_lines
from discreet.query._rows._shared_rows import share_rows
from tests.query.kit import without_noise

UNIT = dp.Unit("u")
COLUMNS = {"x": Column.number(0, 10), "s": Column.text(keys=["a", "b"])}
ROWS = [{"u": str(n), "x": n % 7, "s": "ab"[n % 2]} for n in range(40)]
OTHERS = [json.dumps(row).encode() for row in ROWS]


def _table(source: Any, name: str = "t") -> Table:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1000))
    return Table(source, name=name, unit=UNIT, columns=COLUMNS, rows=4, ledger=ledger)


def _asked(source: Any) -> Question:
    return _table(source).group_by("s").agg(n=dp.count(), x=dp.sum("x"))


def _numbers(source: Any) -> list[dict[str, object]]:
    answer = without_noise(_asked(source))
    return [{key: row[key] for key in ("s", "n", "x")} for row in answer.to_arrow().to_pylist()]


def _frame(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            "u": pa.array([str(row["u"]) for row in rows], pa.string()),
            "x": pa.array([float(row["x"]) for row in rows], pa.float64()),
            "s": pa.array([str(row["s"]) for row in rows], pa.string()),
        }
    )


def _written(path: Path, rows: Sequence[dict[str, object]]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _json_lines(folder: Path, lines: Sequence[bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "t.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def _csv_folder(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    for number in range(2):
        part = folder / f"day={number}" / "part.csv"
        part.parent.mkdir(parents=True)
        names = ("u", "x", "s") if number else ("s", "u", "x")  # each file has an order of its own
        lines = [",".join(names)]
        lines += [",".join(str(row[name]) for name in names) for row in rows[number::2]]
        part.write_text("\n".join(lines) + "\n")
    return folder


def _parquet_folder(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    half = len(rows) // 2
    pq.write_table(_frame(rows[:half]), folder / "1.parquet")
    later = _frame(rows[half:]).select(["s", "x", "u"])
    pq.write_table(later.set_column(1, "x", later["x"].cast(pa.int32())), folder / "2.parquet")
    (folder / "_SUCCESS").write_text("")
    (folder / ".part.parquet").write_text("no rows are read here")
    return folder


def _database(folder: Path, rows: Sequence[dict[str, Any]]) -> str:
    path = folder / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", _frame(rows))
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        connection.execute("CREATE VIEW seen AS SELECT * FROM rows")
    return f"duckdb:{path}?table=main.rows"


@pytest.mark.parametrize(
    "write",
    [
        lambda folder, rows: _json_lines(folder, [json.dumps(row).encode() for row in rows]),
        lambda folder, rows: _csv_folder(folder / "rows", rows),
        lambda folder, rows: _parquet_folder(folder / "rows", rows),
        _database,
    ],
    ids=["json lines", "csv folder", "parquet folder", "duckdb file"],
)
def test_all_sources_have_the_same_integers(
    write: Callable[[Path, list[dict[str, Any]]], Any], tmp_path: Path
) -> None:
    assert _numbers(write(tmp_path, ROWS)) == _numbers(_frame(ROWS))


ODD_LINES = [
    b'{"u": "900", "x": NaN, "s": "a"}',
    b'{"u": "900", "x": Infinity, "s": "a"}',
    b'{"u": "900", "x": 1e999999, "s": "a"}',
    b'{"u": "900", "x": ' + b"9" * 5000 + b', "s": "a"}',
    b'{"u": "900", "x": [1, 2], "s": {"a": 1}}',
    b'{"u": "900", "x": 1, "s": "\\ud800"}',
    b'{"u": "900", "x": 1, "s": "a\\u0000"}',
    b'{"u": "900", "x": 1, "s": "\xff\xfe"}',
    b'{"u": "900", "x": 1, "x": "two", "s": true}',
    b'{"u": {"u": 1}, "x": 1, "s": "a"}',
    b'{"u": "900"}',
    b'{"u": "900", "x": 1, "s": "a"',
    b"[" * 100_000,
    b'{"u":' * 5000,
    b"\xff\xfe{\x00}\x00",
    b"\x00",
    b"null",
    b"",
]


def test_no_line_of_json_changes_what_others_say(tmp_path: Path) -> None:
    with_them = _json_lines(tmp_path / "with", [*ODD_LINES, *OTHERS, *ODD_LINES])
    without_them = _json_lines(tmp_path / "without", OTHERS)

    def act(door: Any, path: Path) -> object:
        return release_question(door, _asked(path), QuestionPrice(1))

    assert replay(act, with_them, without_them).facts("released")


def test_values_of_json_become_texts(tmp_path: Path) -> None:
    lines = [
        b'\xef\xbb\xbf{"u": 7, "x": 1.50, "s": ""}',
        b' {"u": "7", "x": true, "s": null} \r',
        b'{"x": [], "s": {}}',
        b"no object",
        b'{"u": -0, "x": 1E5, "s": "caf\xc3\xa9 \xff"}',
    ]
    found = read_json_lines(_json_lines(tmp_path, lines), ["u", "x", "s"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("7", "1.50", ""),
        ("7", "true", None),
        (None, None, None),
        ("-0", "1E5", "café \ufffd"),
    ]


def test_the_first_row_does_not_decide_on_the_columns(tmp_path: Path) -> None:
    """A key that no row has is a column of missing values."""
    path = _json_lines(tmp_path, [b'{"other": 1}', *OTHERS])
    assert [name for name, _ in file_source(path, ["u", "x", "s"]).types()] == ["u", "x", "s"]
    assert _numbers(_json_lines(tmp_path / "none", [])) == _numbers(_frame([]))


def _spent(table: Table, error: type[DiscreetError] = DeclarationError) -> float:
    with pytest.raises(error):
        table.agg(n=dp.count()).release(epsilon=1)
    ledger = table.ledger
    assert isinstance(ledger, dp.Ledger)
    return float(ledger.spent().epsilon)


def _utf16(folder: Path) -> str:
    (folder / "t.jsonl").write_bytes('{"u": 1}\n'.encode("utf-16"))
    return str(folder / "t.jsonl")


def _utf16_csv(folder: Path) -> str:
    (folder / "t.csv").write_bytes("u,x,s\n1,2,a\n".encode("utf-16"))
    return str(folder / "t.csv")


def _no_files(folder: Path) -> FileFolder:
    (folder / "_SUCCESS").write_text("")
    pq.write_table(_frame(ROWS), folder / "old.parquet")
    made = file_source(folder)
    (folder / "old.parquet").unlink()
    assert isinstance(made, FileFolder)
    return made


def _other_type(folder: Path) -> Path:
    _parquet_folder(folder / "f", ROWS)
    rows = _frame(ROWS)
    pq.write_table(rows.set_column(1, "x", pa.array(["1"] * len(ROWS))), folder / "f" / "3.parquet")
    return folder / "f"


def _lacking(folder: Path) -> Path:
    _parquet_folder(folder / "f", ROWS)
    pq.write_table(_frame(ROWS).drop_columns(["x"]), folder / "f" / "3.parquet")
    return folder / "f"


def _changed(folder: Path, change: Callable[[Path], object]) -> str:
    address = _database(folder, ROWS)
    change(folder / "t.duckdb")
    return address


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(5000)


def _replaced(path: Path) -> None:
    path.unlink()
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE rows (u INTEGER, y INTEGER)")


@pytest.mark.parametrize(
    "source",
    [
        _utf16,
        _utf16_csv,
        _no_files,
        _other_type,
        _lacking,
        partial(_changed, change=Path.unlink),
        partial(_changed, change=_cut),
        partial(_changed, change=_replaced),
        partial(_changed, change=lambda path: path.write_bytes(b"no database" * 1000)),
        lambda folder: _database(folder, ROWS).replace("main.rows", "main.seen"),
        lambda folder: _database(folder, ROWS).replace("main.rows", "main.gone"),
    ],
)
def test_a_source_that_changed_is_refused_before_the_charge(
    source: Callable[[Path], Any], tmp_path: Path
) -> None:
    assert _spent(_table(source(tmp_path))) == 0


def test_a_database_that_another_connection_writes_is_refused(tmp_path: Path) -> None:
    table = _table(_database(tmp_path, ROWS))
    with duckdb.connect(tmp_path / "t.duckdb"):
        assert _spent(table) == 0
    table.agg(n=dp.count()).release(epsilon=1)


def test_a_folder_has_the_files_that_are_there(tmp_path: Path) -> None:
    """A file that is added has more rows, as a file that grows has; its missing values, and the
    types that these cause, refuse nothing."""
    folder = _parquet_folder(tmp_path / "f", ROWS)
    table = _frame([{"u": "901", "x": 1, "s": "a"}])
    pq.write_table(table.set_column(1, "x", pa.nulls(1)), folder / "3.parquet")
    pq.write_table(table.set_column(1, "x", pa.array([5], pa.uint8())), folder / "4.parquet")
    more = [{"u": "901", "x": 5, "s": "a"}]
    found, before = _numbers(folder), _numbers(_frame(ROWS))
    assert _numbers(_frame([*ROWS, *more]))[0]["x"] == found[0]["x"]
    assert [row["n"] for row in found] == [int(str(before[0]["n"])) + 2, before[1]["n"]]


def test_a_file_that_vanishes_after_the_charge_stays_paid(tmp_path: Path) -> None:
    path = _json_lines(tmp_path, OTHERS)
    table = _table(path)
    ledger = table.ledger

    class Payer:
        def __getattr__(self, name: str) -> Any:
            return getattr(ledger, name)

        def charge(self, *given: Any, **named: Any) -> Any:
            receipt = ledger.charge(*given, **named)
            path.unlink()
            return receipt

    asked = Table.declared(table.source, table.declaration, Payer()).agg(n=dp.count())
    with pytest.raises(ComputationFailed) as error:
        asked.release(epsilon=1)
    assert str(path) not in str(error.value)
    assert isinstance(ledger, dp.Ledger)
    assert float(ledger.spent().epsilon) == 1


WAYS = {  # to the rows of one file: two sources, of which each reads them
    "hard link": ("a.parquet", "hard.parquet"),
    "symbolic link": ("a.parquet", "soft.parquet"),
    "folder and hard link": ("f", "hard-in-f.parquet"),
    "folder and folder with a link": ("f", "g"),
    "database and hard link": ("duckdb:a.duckdb?table=main.t", "duckdb:hard.duckdb?table=main.t"),
    "database and symbolic link": ("duckdb:a.duckdb?table=main.t", "duckdb:s.duckdb?table=MAIN.T"),
}


@pytest.fixture
def linked_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files, a database, and links to them; it is the current one."""
    pq.write_table(_frame(ROWS), tmp_path / "a.parquet")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "a.parquet")
    (tmp_path / "soft.parquet").symlink_to(tmp_path / "a.parquet")
    inner = _parquet_folder(tmp_path / "f", ROWS) / "1.parquet"
    (tmp_path / "hard-in-f.parquet").hardlink_to(inner)
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "soft.parquet").symlink_to(inner)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 0.5 AS x")
    (tmp_path / "hard.duckdb").hardlink_to(tmp_path / "a.duckdb")
    (tmp_path / "s.duckdb").symlink_to(tmp_path / "a.duckdb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("sources", WAYS.values(), ids=[*WAYS])
def test_one_file_has_one_budget_by_whatever_way(
    sources: tuple[str, str], linked_files: Path
) -> None:
    text = "".join(
        f'[tables.{name}]\nsource = "{one}"\nrow = true\n'
        + ('format = "parquet"\n' if "duckdb" not in one else "")
        + f'ledger = {{ path = "{name}.ledger", epsilon = 1 }}\n[tables.{name}.columns]\n'
        'x = { type = "number", lower = 0, upper = 1 }\n'
        for name, one in zip("ab", sources, strict=True)
    )
    (linked_files / "discreet.toml").write_text(text)
    with pytest.raises(DeclarationError, match="two ledgers"):
        dp.open(linked_files / "discreet.toml")
    (linked_files / "discreet.toml").write_text(text.replace("b.ledger", "a.ledger"))
    first, second = dp.open(linked_files / "discreet.toml").values()
    with pytest.raises(QueryRefused, match="have the same rows"):
        first.union_all(second).agg(n=dp.count()).release(epsilon=1)


@pytest.mark.parametrize("is_linked_through", [False, True])
@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_a_file_linked_later_keeps_one_budget(
    form: str, link: Callable[[Path, Path], None], is_linked_through: bool, tmp_path: Path
) -> None:
    """A service reads its declarations once; the owner adds files to folders while it runs."""
    alone, folder = tmp_path / f"alone.{form}", tmp_path / "f"
    folder.mkdir()
    for number, path in enumerate((alone, folder / f"own.{form}")):
        _written(path, [{"person": number, "x": 0.5}])
    unit = 'unit = "person"\nrows = 1\n'
    text = "".join(
        f'[tables.{name}]\nsource = "{source}"\nformat = "{form}"\n{unit}'
        f'ledger = {{ path = "{name}.ledger", epsilon = 1 }}\n[tables.{name}.columns]\n'
        'x = { type = "number", lower = 0, upper = 1 }\n'
        for name, source in (("a", alone.name), ("b", "f"))
    )
    if is_linked_through:  # the units of b are behind keys of another table
        text = text.replace(
            f'[tables.b]\nsource = "f"\nformat = "{form}"\n{unit}',
            f'[tables.keys]\nsource = "f"\nformat = "{form}"\n{unit}'
            'ledger = { path = "b.ledger", epsilon = 1 }\n[tables.keys.columns]\n'
            'x = { type = "number", lower = 0, upper = 1 }\n'
            f'[tables.b]\nsource = "events.{form}"\nformat = "{form}"\nunit = "person"\nrows = 1\n'
            'through = { table = "keys", on = "x" }\n',
        )
        _written(tmp_path / f"events.{form}", [{"x": 0.5}])
    (tmp_path / "discreet.toml").write_text(text)
    tables = dp.open(tmp_path / "discreet.toml")
    for name in "ab":
        tables[name].agg(n=dp.count()).release(epsilon=0.25)
    spent = [str(tables[name].ledger) for name in "ab"]
    link(folder / f"late.{form}", alone)
    for name in "ab":
        with pytest.raises(DeclarationError, match=r"a file in common .* two ledgers"):
            tables[name].agg(n=dp.count()).release(epsilon=0.25)
    with pytest.raises(DeclarationError, match=r"a file in common .* two ledgers"):
        tables["a"].quantiles("x", [0.5], epsilon=0.25)
    assert [str(tables[name].ledger) for name in "ab"] == spent  # it says what was charged
    (folder / f"late.{form}").unlink()
    for name in "ab":
        tables[name].agg(n=dp.count()).release(epsilon=0.25)


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
def test_a_database_file_linked_later_keeps_one_budget(
    link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    for name in "ab":
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as made:
            made.execute("CREATE TABLE t AS SELECT 0.5 AS x")
    text = "".join(
        f'[tables.{name}]\nsource = "duckdb:{name}.duckdb?table=main.t"\nrow = true\n'
        f'ledger = {{ path = "{name}.ledger", epsilon = 1 }}\n[tables.{name}.columns]\n'
        'x = { type = "number", lower = 0, upper = 1 }\n'
        for name in "ab"
    )
    (tmp_path / "discreet.toml").write_text(text)
    tables = dp.open(tmp_path / "discreet.toml")
    for one in tables.values():
        one.agg(n=dp.count()).release(epsilon=0.25)
    spent = [str(one.ledger) for one in tables.values()]
    (tmp_path / "b.duckdb").unlink()
    link(tmp_path / "b.duckdb", tmp_path / "a.duckdb")
    for one in tables.values():
        with pytest.raises(DeclarationError, match=r"a file in common .* two ledgers"):
            one.agg(n=dp.count()).release(epsilon=0.25)
    assert [str(one.ledger) for one in tables.values()] == spent


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
def test_a_public_file_linked_to_a_private_one_is_not_read(
    link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    for name in ("own", "open"):
        _written(tmp_path / f"{name}.csv", [{"key": 1, "x": 0.5}])
    (tmp_path / "discreet.toml").write_text(
        '[tables.own]\nsource = "own.csv"\nrow = true\nledger = { path = "l", epsilon = 1 }\n'
        '[tables.own.columns]\nkey = { type = "integer", lower = 0, upper = 9 }\n'
        '[public.open]\nsource = "open.csv"\n'
    )
    tables = dp.open(tmp_path / "discreet.toml")
    (tmp_path / "open.csv").unlink()
    link(tmp_path / "open.csv", tmp_path / "own.csv")
    with pytest.raises(DeclarationError, match="whose rows are private"):
        tables["own"].sql(
            "SELECT COUNT(*) AS n FROM own JOIN open ON own.key = open.key", epsilon=1
        )
    with pytest.raises(DeclarationError, match="whose rows are private"):
        tables.public["open"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # between Ibis and DuckDB
def test_a_connection_may_read_the_file_of_another_source(linked_files: Path) -> None:
    """Which file it reads is not asked: tables of one name are taken for one."""
    connected = ibis.duckdb.connect(str(linked_files / "a.duckdb"))
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9))
    declare = partial(Table, unit=dp.Unit.ROW, columns={"x": Column.number(0, 1)}, ledger=ledger)
    one = declare(connected.table("t"), name="a")
    source = table_at(address_of("duckdb:hard.duckdb?table=main.t"))
    assert share_rows(one.source, source)
    assert share_rows(source, one.source)


def test_a_folder_reads_a_file_once_by_however_many_links(tmp_path: Path) -> None:
    folder = _parquet_folder(tmp_path / "f", ROWS)
    before = [*file_source(folder).types()], _count(folder)
    (folder / "latest.parquet").symlink_to(folder / "1.parquet")
    (folder / "z").mkdir()
    (folder / "z" / "again.parquet").hardlink_to(folder / "1.parquet")
    assert ([*file_source(folder).types()], _count(folder)) == before


def _count(folder: Path) -> object:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9))
    columns = {"x": dp.Column.number(0, 1)}
    table = dp.Table(folder, name="t", unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    return without_noise(table.agg(n=dp.count())).rows()[0]["n"]


def test_a_folder_shares_rows_with_its_files(tmp_path: Path) -> None:
    folder = _parquet_folder(tmp_path / "f", ROWS)
    pq.write_table(_frame(ROWS), tmp_path / "other.parquet")
    whole = file_source(folder)
    assert share_rows(whole, file_source(folder / "1.parquet"))
    assert share_rows(file_source(tmp_path / "f" / ".." / "f"), whole)
    assert not share_rows(whole, file_source(tmp_path / "other.parquet"))
    for source, is_shared in (("f/1.parquet", True), ("other.parquet", False)):
        text = "".join(
            f'[tables.{name}]\nsource = "{one}"\nformat = "parquet"\nrow = true\n'
            f'ledger = {{ path = "{name}.ledger", epsilon = 1 }}\n[tables.{name}.columns]\n'
            'x = { type = "number", lower = 0, upper = 1 }\n'
            for name, one in (("a", "f"), ("b", source))
        )
        (tmp_path / "discreet.toml").write_text(text)
        if is_shared:
            with pytest.raises(DeclarationError, match="two ledgers"):
                dp.open(tmp_path / "discreet.toml")
        else:
            assert [*dp.open(tmp_path / "discreet.toml")] == ["a", "b"]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("name", [b"loop", b"na\xffme"])
def test_an_odd_file_of_a_folder_is_read_or_refused_by_name(
    form: str, name: bytes, tmp_path: Path
) -> None:
    """A link that leads to itself, and a name that is no UTF-8."""
    folder, other = tmp_path / "f", tmp_path / f"other.{form}"
    folder.mkdir()
    odd = folder / f"{os.fsdecode(name)}.{form}"
    if name == b"loop":
        odd.symlink_to(odd)
    elif form == "parquet":
        odd.write_bytes(b"PAR1")
    else:
        odd.write_text("x\n1\n" if form == "csv" else '{"x": 1}\n')
    other.write_bytes(b"")
    text = "".join(
        f'[tables.{one}]\nsource = "{source}"\nformat = "{form}"\nrow = true\n'
        f'ledger = {{ path = "{one}.ledger", epsilon = 1 }}\n[tables.{one}.columns]\n'
        'x = { type = "number", lower = 0, upper = 1 }\n'
        for one, source in (("a", "f"), ("b", other.name))
    )
    (tmp_path / "discreet.toml").write_text(text)
    table = dp.open(tmp_path / "discreet.toml")["a"]
    if name == b"loop" or form == "parquet":
        with pytest.raises(DeclarationError, match=form):
            table.sql("SELECT COUNT(*) AS n FROM a", epsilon=1)
        assert not (tmp_path / "a.ledger").exists()
    else:
        table.sql("SELECT COUNT(*) AS n FROM a", epsilon=1)


def test_the_work_for_a_folder_grows_with_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column is looked for in all files once, and not once for each file that has it."""
    looked, kinds = list[str](), _files._kinds

    def counted(by_file: Any, name: str) -> Any:  # Any: types of Arrow
        looked.append(name)
        return kinds(by_file, name)

    monkeypatch.setattr(_files, "_kinds", counted)
    for number in range(20):
        (tmp_path / f"{number}.csv").write_text("x,y\n1,2\n")
    assert len(file_source(tmp_path).types()) == 2
    assert looked == ["x", "y"]
