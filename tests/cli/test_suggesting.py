"""`discreet declare --suggest`: caps, bounds and keys from the rows, paid and written down."""

from pathlib import Path

import pytest

from discreet.query._toml._declaration_file import read
from tests.cli.kit import Run


@pytest.fixture
def stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        f'{who},"{ward}",{5 + who % 3},2020-01-0{1 + who % 5}'
        for who in range(400)
        for ward in ("a, b" if who % 2 else 'c"d', "e")
    ]
    path = tmp_path / "stays.csv"
    path.write_text("patient,ward,days,day\n" + "\n".join(lines).replace('c"d', 'c""d') + "\n")
    return path


def test_suggestions_are_written_with_comments(stays: Path, run: Run) -> None:
    ended = run(
        "declare", "stays.csv", "--unit", "patient", "--epsilon", "900", "--delta", "1e-5",
        "--suggest", "600", "--suggest-delta", "1e-6", "--bound", "day=2020-01-01..2020-01-05",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    facts = read("discreet.toml")["stays"].declaration
    assert facts.caps.rows == 2
    assert facts.columns["ward"].keys == ("a, b", 'c"d', "e")
    assert facts.columns["days"].range_in_words == "4 .. 7"
    assert facts.columns["day"].range_in_words == "2020-01-01 .. 2020-01-05"
    text = Path("discreet.toml").read_text()
    assert text.count("# suggested from the rows, for epsilon 600, delta 1e-06 in all") == 3
    assert "rows = 2: nearly all units have at most 2" in ended.err


def test_refused_options_leave_no_file(stays: Path, run: Run) -> None:
    wrong = [
        ["--suggest", "0"],
        ["--suggest-delta", "1e-6"],
        ["--suggest", "1", "--bound", "day=2021-01-01..2020-01-01"],
        ["--suggest", "1", "--bound", "none=0..1"],
        ["--suggest", "3"],
        ["--suggest", "1", "--suggest-delta", "1e-3"],
        ["--suggest", "1e400"],
    ]
    before = sorted(stays.parent.iterdir())
    for options in wrong:
        ended = run("declare", "stays.csv", "--unit", "patient", "--epsilon", "2", *options)
        assert ended.code != 0, options
        assert sorted(stays.parent.iterdir()) == before


def test_a_declared_table_gets_what_it_lacks(stays: Path, run: Run) -> None:
    run(
        "declare", "stays.csv", "--unit", "patient", "--rows", "2", "--epsilon", "900",
        "--delta", "1e-5",
    )  # fmt: skip
    ended = run("declare", "stays.csv", "--suggest", "500", "--suggest-delta", "1e-6")
    assert ended.code == 0, ended.err
    facts = read("discreet.toml")["stays"].declaration
    assert facts.caps.rows == 2
    assert facts.columns["days"].range_in_words == "4 .. 7"
    assert facts.columns["ward"].keys == ("a, b", 'c"d', "e")
