"""``discreet declare`` writes its options to the file, and nothing that it read from the rows."""

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from discreet.query._toml import _declaration_file
from tests.cli.kit import COUNT, DECLARE, Run

FILE = Path("discreet.toml")


def table(name: str = "wages") -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))["tables"][name]
    return found


def test_a_table_is_declared_as_the_options_say(run: Run) -> None:
    ended = run(*DECLARE, "--key", "job=cook,clerk", "--null", "wage=1.5", "--rows", "4")
    assert ended.code == 0
    assert table() == {
        "source": "wages.parquet",
        "unit": "person",
        "change": "add_remove",
        "rows": 4,
        "groups": 3,
        "rows_per_group": 2,
        "ledger": {"path": "wages.ledger", "epsilon": 2, "delta": 1e-6},
        "columns": {
            "year": {"type": "integer", "keys": "1980..1982"},
            "in_union": {"type": "boolean"},
            "job": {"type": "text", "keys": ["cook", "clerk"]},
            "wage": {"type": "number", "lower": 0, "upper": 60, "null": 1.5},
        },
    }
    assert "0 .. 60" in ended.out
    assert "wrote discreet.toml" in ended.err
    assert "left out hours: numbers without bounds; --bound hours=LOWER..UPPER" in ended.err
    assert "next: discreet ask wages 'SELECT COUNT(*) FROM wages'" in ended.err
    assert sorted(path.name for path in Path().iterdir()) == ["discreet.toml", "wages.parquet"]


@pytest.mark.parametrize("file", [(), ("--file", "a b.toml"), ("--file", "discreet.toml")])
def test_the_suggested_next_command_runs(file: tuple[str, ...], run: Run) -> None:
    said = run(*DECLARE, *file).err.splitlines()
    (after,) = (line.removeprefix("next: discreet ") for line in said if line.startswith("next"))
    assert run(*shlex.split(after)).code == 0


def test_bounds_and_keys_never_come_from_the_data(run: Run) -> None:
    run("declare", "wages.parquet", "--unit", "person", "--rows", "8", "--epsilon", "1")
    assert all(set(column) == {"type"} for column in table()["columns"].values())
    assert "wage" not in table()["columns"]
    assert table()["rows"] == 8


def test_a_declared_table_is_extended_and_the_rest_stays(run: Run) -> None:
    run(*DECLARE)
    written = FILE.read_text().replace("[tables.wages]", "# mine\n[tables.wages]  # too")
    FILE.write_text(written)
    assert run("declare", "wages.parquet", "--bound", "hours=0..80").code == 0
    added = 'hours = {type = "number", lower = 0, upper = 80}\n'
    assert FILE.read_text() == written + added
    assert run("declare", "wages.parquet", "--bound", "hours=0..90", "--null", "hours=0").code == 0
    assert FILE.read_text() == written + added.replace("80}", "90, null = 0}")


def test_the_same_once_more_changes_nothing(run: Run) -> None:
    run(*DECLARE)
    written = FILE.read_text()
    assert run(*DECLARE).code == 0
    assert FILE.read_text() == written


def test_a_second_table_joins_the_first(run: Run) -> None:
    run(*DECLARE)
    Path("visits.csv").write_text("id;day;kind\n1;2024-01-01;a\n")
    ended = run("declare", "visits.csv", "--row", "--delimiter", ";", "--epsilon", "1")
    assert ended.code == 0
    assert table("visits") == {
        "source": "visits.csv",
        "delimiter": ";",
        "row": True,
        "change": "add_remove",
        "ledger": {"path": "visits.ledger", "epsilon": 1, "delta": 0},
        "columns": {
            "id": {"type": "integer"},
            "day": {"type": "date"},
            "kind": {"type": "text"},
        },
    }
    assert [line[:6] for line in run("tables").out.split("\n") if "protects" in line] == [
        "wages:",
        "visits",
    ]


def test_paths_start_from_the_file(run: Run, tmp_path: Path) -> None:
    Path("sub").mkdir()
    assert run(*DECLARE, "--file", "sub/d.toml", "--ledger", "sub/own.ledger").code == 0
    table_file = _declaration_file.read(Path("sub/d.toml"))["wages"]
    assert table_file.ledger.address == Path("sub/own.ledger")
    assert Path(str(table_file.source)).resolve() == tmp_path / "wages.parquet"
    assert run("ask", "wages", COUNT, "--epsilon", "0.1", "--file", "sub/d.toml").code == 0
    assert Path("sub/own.ledger").exists()


def test_names_that_are_no_words(run: Run) -> None:
    Path("a b-c.csv").write_text('x=y,odd name,"q,"\n1,2,3\n')
    ended = run(
        *("declare", "a b-c.csv", "--row", "--epsilon", "1", "--key", "x=y=1,2", "--key", "x=y=3"),
        *("--type", "odd name=text", "--key", 'odd name="a,b", c', "--bound", "q,=-1..-0.5"),
        *("--type", "q,=number"),
    )
    assert ended.code == 0, ended.err
    assert table("a_b_c")["columns"] == {
        "x=y": {"type": "integer", "keys": [1, 2, 3]},
        "odd name": {"type": "text", "keys": ["a,b", "c"]},
        "q,": {"type": "number", "lower": -1, "upper": -0.5},
    }


def test_texts_are_proposed_by_what_the_first_rows_look_like(run: Run) -> None:
    Path("visits.csv").write_text(
        "left;arrived;paid;insured;zip\n31/01/2013;01/02/2013;1,234;1.0;01234\n"
        "01/02/2013;02/02/2013;5;0.0;99999\n"
    )
    rest = ("--row", "--delimiter", ";", "--epsilon", "1")
    ended = run("declare", "visits.csv", *rest)
    assert table("visits")["columns"] == {
        "left": {"type": "date", "format": "%d/%m/%Y"},
        "paid": {"type": "integer"},
        "insured": {"type": "boolean"},
        "zip": {"type": "text"},
    }
    assert "as %d/%m/%Y" in ended.out
    options = "--date-format arrived=%d/%m/%Y or --date-format arrived=%m/%d/%Y declares it"
    assert f"left out arrived: dates whose first rows can be read in several ways; {options}" in (
        ended.message
    )
    assert run("declare", "visits.csv", "--date-format", "arrived=%m/%d/%Y").code == 0
    assert table("visits")["columns"]["arrived"] == {"type": "date", "format": "%m/%d/%Y"}
    assert run("declare", "visits.csv", "--type", "left=text").code == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--type", "day=date"],
            "'--date-format': day needs it too: add --date-format day=%d/%m/%Y",
        ),
        (["--date-format", "day=%d/%m"], "'--date-format': day: format = '%d/%m': give %d, %m"),
        (["--date-format", "day=%d/%m/%Y %H"], "'--date-format': day: format"),
        (["--date-format", "n=%d/%m/%Y", "--type", "n=text"], "n is a text column; only dates"),
        (["--date-format", "dya=%d/%m/%Y"], "no column 'dya' (did you mean day?)"),
    ],
)
def test_a_format_that_is_none_is_refused(more: list[str], message: str, run: Run) -> None:
    Path("visits.csv").write_text("day,n\n01/02/2013,x\n")
    ended = run("declare", "visits.csv", "--row", "--epsilon", "1", *more)
    assert ended.code == 2
    assert message in ended.message
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--unit", "persn"], "'--unit': no column 'persn' (did you mean person?)"),
        (["--row"], "'--unit': give either"),
        (["--groups", "0"], "'--groups'"),
        (["--groups", "x"], "'--groups'"),
        (["--bound", "wage"], "'--bound': 'wage': begin with the column's name and ="),
        (["--bound", "wag=0..60"], "'--bound': no column 'wag' (did you mean wage?)"),
        (["--bound", "hours=60"], "'--bound': hours=60: give LOWER..UPPER, such as hours=0..60"),
        (["--bound", "hours=9..0"], "'--bound': hours=9..0: give LOWER..UPPER"),
        (["--bound", "hours=0..inf"], "'--bound': hours=0..inf: give LOWER..UPPER"),
        (["--bound", "hours=0..1e999999999"], "give LOWER..UPPER"),
        (["--bound", "wage=0..9"], "'--bound': wage is given 2 times"),
        (["--bound", "job=0..9"], "'--bound': job is a text column"),
        (["--key", "hours=1,2"], "'--key': hours is a number column"),
        (["--key", "in_union=true"], "'--key': in_union is boolean"),
        (["--type", "hours=integer", "--key", "hours=1,x"], "'--key': hours: 'x' is not a whole"),
        (["--type", "hours=numeric"], "'--type': hours=numeric: give one of"),
        (["--null", "hours=0"], "'--bound': hours needs it too: add --bound hours=LOWER..UPPER"),
        (["--null", "in_union=0"], "'--null': in_union: '0' is not true or false"),
        (["--null", "wage=61"], "nothing was written"),
        (["--type", "job=integer"], None),
        (["--type", "in_union=date"], "column 'in_union' is declared as date"),
        (["--epsilon", "0"], "'--epsilon': '0': give a finite number above 0"),
        (["--epsilon", "nan"], "'--epsilon': 'nan': give a finite"),
        (["--delta", "1"], "'--delta': '1': give a number from 0 up to"),
        (["--change", "swap"], "'--change'"),
        (["--delimiter", ";"], "'--delimiter': only a CSV file has a delimiter"),
        (["--format", "xlsx"], "'--format'"),
        (["--name", ""], "'--name'"),
    ],
)
def test_an_error_names_the_option_of_a_mistake(
    more: list[str], message: str | None, run: Run
) -> None:
    ended = run(*DECLARE, *more)
    if message is None:  # what a text holds is known when it is read
        assert ended.code == 0
        return
    assert ended.code == 2
    assert message in ended.message
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wages.parquet"], "'--unit': give either"),
        (["wages.parquet", "--unit", "person"], "'--epsilon': give the limit"),
        (["wages.parquet", "--unit", "person", "--epsilon", "1"], "'--rows': give the most rows"),
        (["wages.parquet", "--unit", "person", "--epsilon", "1"], "--suggest 0.1 finds it from"),
        (["wages.parquet", "--row", "--epsilon", "1", "--rows", "2"], "'--rows': with"),
        (["gone.parquet", "--row", "--epsilon", "1"], "gone.parquet: there is no such file"),
        (["wages.xlsx", "--row", "--epsilon", "1"], "its ending names no format; add --format"),
        (["broken.parquet", "--row", "--epsilon", "1"], "its Parquet schema can't be read"),
        (["only.csv", "--row", "--epsilon", "1", "--delimiter", "ab"], "'--delimiter': 'ab': give"),
        (["only.csv", "--row", "--epsilon", "1", "--delimiter", '"'], "'--delimiter'"),
        (["empty.csv", "--row", "--epsilon", "1"], "its first line must name each column"),
    ],
)
def test_a_table_that_cannot_be_declared(arguments: list[str], message: str, run: Run) -> None:
    Path("broken.parquet").write_bytes(b"PAR1 no PAR1")
    Path("empty.csv").write_bytes(b"")
    Path("only.csv").write_text("x\n1.5\n2.5\n")
    ended = run("declare", *arguments)
    assert ended.code == 2
    assert message in ended.message
    assert not FILE.exists()


def test_a_table_under_a_name_that_is_taken(run: Run) -> None:
    run(*DECLARE)
    Path("other.csv").write_text("person\n1\n")
    ended = run("declare", "other.csv", "--name", "wages", "--row", "--epsilon", "1")
    assert ended.code == 2
    assert "declares a table 'wages' already" in ended.message


@pytest.mark.parametrize(
    "change", [["--row"], ["--unit", "year"], ["--change", "replace"]], ids=str
)
def test_whom_a_declared_table_protects_changes_by_hand_only(change: list[str], run: Run) -> None:
    run(*DECLARE)
    ended = run("declare", "wages.parquet", *change)
    assert ended.code == 2
    assert "is declared already" in ended.message


def test_once_there_is_a_ledger_it_rules(run: Run) -> None:
    run(*DECLARE)
    assert run("declare", "wages.parquet", "--epsilon", "3").code == 0
    assert run("ask", "wages", COUNT, "--epsilon", "0.1").code == 0
    written = FILE.read_text()
    ended = run("declare", "wages.parquet", "--epsilon", "2")
    assert ended.code == 3
    assert "the ledger decides" in ended.message
    assert FILE.read_text() == written
    FILE.write_text(written.replace("add_remove", "replace"))
    assert run("ask", "wages", COUNT, "--epsilon", "0.1").code == 3
    assert run("budget", "wages").code == 3


def test_an_empty_file_is_filled(run: Run) -> None:
    FILE.write_text("# mine\n")
    assert run("tables").code == 2
    assert run(*DECLARE).code == 0
    assert FILE.read_text().startswith("# mine\n")
    assert run("tables").code == 0


def test_an_error_names_the_line_of_a_mistake_in_the_file(run: Run) -> None:
    run(*DECLARE)
    FILE.write_text(FILE.read_text().replace("groups = 3", "groups = 0"))
    for arguments in (DECLARE, ("tables",), ("budget", "wages"), ("explain", "wages", COUNT)):
        price = ("--epsilon", "1") if arguments[0] == "explain" else ()
        ended = run(*arguments, *price)
        assert ended.code == 2
        assert "discreet.toml, line 10: tables.wages.groups = 0: give a whole" in ended.message


def test_an_id_of_several_columns_is_declared_by_naming_each(run: Run) -> None:
    columns = ["--unit", "person", "--unit", "year"]
    ended = run("declare", "wages.parquet", *columns, "--rows", "1", "--epsilon", "1")
    assert ended.code == 0
    assert table()["unit"] == ["person", "year"]
    assert "year" not in table()["columns"]
    asked = run("ask", "wages", "SELECT COUNT_UNITS(*) FROM wages", "--epsilon", "0.5", "--json")
    assert asked.code == 0
    assert run("declare", "wages.parquet", *columns, "--bound", "wage=0..9").code == 0
    assert run("declare", "wages.parquet", "--unit", "person").code == 2
    wrong = ["--unit", "person", "--unit", "yaer", "--name", "other"]
    ended = run("declare", "wages.parquet", *wrong, "--rows", "1", "--epsilon", "1")
    assert "no column 'yaer' (did you mean year?)" in ended.err
