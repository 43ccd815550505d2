"""Output fits narrow terminals: numbers stay whole, and wide files take one screen."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from tests.cli.kit import BY_UNION, COUNT, DECLARE, Run, process
from tests.cli.test_output import on_terminal

WIDTHS = ["40", "80"]
NUMBER = re.compile(r"-?\d(?:[\d,.]*\d)?")
LINES = 24  # of a terminal


def lines_on(columns: str, *arguments: str) -> list[str]:
    """The lines of a terminal, broken where it breaks them, without its control sequences."""
    text = on_terminal(*arguments, columns=columns, NO_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n")
    width = int(columns)
    return [
        line[start : start + width]
        for line in plain.splitlines()
        for start in range(0, max(len(line), 1), width)
    ]


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_answer_has_whole_numbers_and_one_footer(run: Run, columns: str) -> None:
    run(*DECLARE)
    asked = ("ask", "wages", BY_UNION, "--epsilon", "0.9", "--request", "r", "--by", "a")
    plain = run(*asked, "--csv").out
    lines = lines_on(columns, *asked)
    shown = "\n".join(lines)
    counts = [int(line.split(",")[5]) for line in plain.splitlines()[1:]]
    for count in counts:
        assert any(f"{count:,}" in NUMBER.findall(line) for line in lines), (count, shown)
    together = "".join(lines).replace("\n", "")
    assert "one person counts for at most 6 rows" in together
    assert "wage is clamped to 0 .. 60" in together
    assert "at 0.95 confidence" in together


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_forecast_has_whole_numbers(run: Run, columns: str) -> None:
    run(*DECLARE)
    asked = ("ask", "wages", BY_UNION, "--epsilon", "0.01", "--forecast")
    half_widths = re.findall(r"± ([\d,.]+)", run(*asked).out)
    lines = lines_on(columns, *asked)
    for figure in half_widths:
        assert any(f"± {figure}" in line for line in lines)


def wide(path: Path, count: int) -> None:
    """A table with this number of columns of all kinds, some with odd names."""
    odd = ["straße", "a b", "c" * 60, "\u202eright", "数量", "x=1", "LOWER..UPPER"]
    names = [*odd, *(f"column_{n}" for n in range(count - len(odd) - 1))]
    kinds = [[1.5], ["a"], [3], [True]]
    pq.write_table(pa.table({"id": [1], **{n: kinds[i % 4] for i, n in enumerate(names)}}), path)


@pytest.mark.parametrize("count", [67, 300])
def test_declaring_a_wide_file_takes_one_screen(run: Run, count: int) -> None:
    wide(Path("wide.parquet"), count)
    lines = lines_on(
        "80", "declare", "wide.parquet", "--unit", "id", "--rows", "3", "--epsilon", "1"
    )
    assert len([line for line in lines if line.strip()]) <= LINES
    shown = "".join(lines)
    assert "numbers without bounds" in shown
    assert "more)" in shown
    assert all(cell_len(line) <= 160 for line in lines)
    # the whole list is one command away, and complete
    assert len(run("tables").out.splitlines()) > count * 3 / 4


def test_the_short_form_counts_every_column(run: Run) -> None:
    wide(Path("wide.parquet"), 67)
    ended = run("declare", "wide.parquet", "--unit", "id", "--rows", "3", "--epsilon", "1")
    said = ended.out + ended.err
    counted = sum(int(more) + 3 for more in re.findall(r"… \((\d+) more\)", said))
    assert counted == 66


def test_few_columns_stay_on_lines_of_their_own(run: Run) -> None:
    ended = run(*DECLARE)
    assert [line.split()[0] for line in ended.out.splitlines()[4:]] == [
        *("year", "in_union", "job", "wage")
    ]
    assert "left out hours: numbers without bounds; --bound hours=LOWER..UPPER" in ended.err


def test_a_pipe_gets_unbroken_lines(run: Run) -> None:
    wide(Path("wide.parquet"), 67)
    declare = ("declare", "wide.parquet", "--unit", "id", "--rows", "3", "--epsilon", "1")
    ended = process(*declare, COLUMNS="40")
    assert ended.code == 0
    assert "c" * 60 in ended.out + ended.err


def test_files_below_the_working_folder_are_named_from_there(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However deep the folder is, its path breaks no line."""
    folder = Path("a" * 50, "b" * 50)
    folder.mkdir(parents=True)
    Path("wages.parquet").rename(folder / "wages.parquet")
    monkeypatch.chdir(folder)
    Path("plan.toml").write_text(f'table = "wages"\nepsilon = 1\nquestions = ["{COUNT}"]\n')
    asked = ("ask", "wages", COUNT, "--epsilon", "0.1")
    commands = [
        DECLARE,
        ("tables",),
        ("price", "--plan", "plan.toml"),
        asked,
        asked,
        ("budget", "wages"),
    ]
    for command in [*commands, ("price", "--plan", "plan.toml")]:
        ended = run(*command)
        assert ended.code == 0
        assert "aaaa" not in ended.out + ended.err
    assert "by wages.ledger" in run("tables").out
