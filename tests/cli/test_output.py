"""Output suits its destination: terminals, pipes, and terminals that can't do much."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections import Counter
from contextlib import AbstractContextManager
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import Progress
from typer.main import get_command

from discreet.cli import _asking, app
from discreet.cli._answers import answer_table
from discreet.cli._output import StopColumn, at_charge, show, table
from discreet.mechanisms import Trace
from discreet.query._bounding._compiled_plan import CompiledPlan
from tests.cli.kit import BY_UNION, COUNT, DECLARE, Run, process, program

COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])(?:;\d+)*m")
COMMANDS = ["declare", "tables", "explain", "ask", "check", "price", "budget", "unlock"]


def on_terminal(*arguments: str, columns: str = "100", **environment: str) -> str:
    """The text on a terminal, stdout and stderr together."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(columns), 0, 0))
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")
    }
    with subprocess.Popen(
        [program(environment), *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**inherited, "TERM": "xterm-256color", **environment},
    ) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65_536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        assert child.wait() == 0, shown
    os.close(leader)
    return shown.decode()


@pytest.fixture
def asked(run: Run) -> Run:
    run(*DECLARE)
    run("ask", "wages", COUNT, "--epsilon", "0.5")
    return run


@pytest.mark.usefixtures("asked")
def test_a_terminal_gets_colours_a_bar_and_its_own_width() -> None:
    shown = on_terminal("budget", "wages")
    assert COLOUR.search(shown)
    assert "━━" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(len(line.rstrip("\r")) for line in plain.split("\n") if "spent" not in line) <= 100


NUMBERS = st.one_of(
    st.just("–"),
    st.integers(-(10**40), 10**40).map("{:,}".format),
    st.floats(allow_nan=False, allow_infinity=False).map("{:,.4g}".format),
)
INTERVALS = st.tuples(NUMBERS, NUMBERS).map(" .. ".join)
TEXTS = st.lists(st.text("ab_é键👩", min_size=1, max_size=30), min_size=1).map(" ".join)
CELLS = st.one_of(NUMBERS, INTERVALS)


@given(st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("columns", [1, 20, 40, 60, 80, 120])
@pytest.mark.parametrize("is_terminal", [False, True], ids=["pipe", "terminal"])
def test_numbers_stay_whole_at_any_width(
    columns: int, is_terminal: bool, data: st.DataObject
) -> None:
    left, right = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 9))
    kinds = [TEXTS] * left + [CELLS] * right
    rows = data.draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4))
    head = data.draw(st.tuples(*[TEXTS] * len(kinds)))
    out = shown_at(columns, is_terminal, table(head, rows, left=left))
    wanted = Counter(word for row in rows for cell in row for word in cell.split())
    assert wanted - Counter(out.split()) == Counter()
    if is_terminal:  # no line is longer than the terminal, but for words that are
        longest = max(cell_len(word) for text in (*head, *sum(rows, ())) for word in text.split())
        assert max(map(cell_len, out.splitlines())) <= max(columns, longest + 3)
        assert "…" not in out


@pytest.mark.parametrize("columns", [1, 20, 60, 80])
@given(st.lists(st.one_of(TEXTS, CELLS), min_size=1).map(" ".join))
@settings(max_examples=25)
def test_numbers_in_sentences_stay_whole_at_any_width(columns: int, line: str) -> None:
    out = shown_at(columns, True, f"{line}\n  {line}")
    assert out.split() == f"{line} {line}".split()
    longest = max(map(cell_len, line.split()))
    assert max(map(cell_len, out.splitlines())) <= max(columns, longest + 4)


def test_a_table_that_fits_is_one() -> None:
    """Not always blocks: texts and names are broken between words first."""
    made = table(["key", "standard deviation"], [["a long name", "1 .. 2"], ["b", "3"]])
    assert shown_at(40, True, made).split("\n")[1].split() == ["key", "standard", "deviation"]
    assert [line.split() for line in shown_at(24, True, made).split("\n")] == [
        *([], ["standard"], ["key", "deviation"], ["─" * 22]),
        *(["a", "long", "1", "..", "2"], ["name"], ["b", "3"], [], []),
    ]
    lines = ["key: a", "  long", "  name", "standard", "  deviation:", "  1 .. 2", ""]
    assert shown_at(9, True, made).split("\n")[:7] == lines


def test_an_answer_on_a_narrow_terminal_has_a_line_for_each_number() -> None:
    """Keys are written once for each row; where not even this fits, each value has a line."""
    cells = [
        ["k", "number_1", "interval", "number_2", "interval"],
        ["a", "1", "0 .. 2", "7", "6 .. 8"],
    ]
    cells += [["b", "3", "2 .. 4", "9", "8 .. 10"]]
    wide, narrow, blocks = (shown_at(at, True, answer_table(cells, 1)) for at in (60, 36, 20))
    assert wide.split("\n")[1].split() == cells[0]
    assert [line.split() for line in narrow.split("\n")][1:7] == [
        ["k", "number", "value", "interval"],
        ["─" * 31],
        *(["a", "number_1", "1", "0", "..", "2"], ["number_2", "7", "6", "..", "8"]),
        *(["b", "number_1", "3", "2", "..", "4"], ["number_2", "9", "8", "..", "10"]),
    ]
    assert blocks.split("\n")[:4] == ["k: a", "number: number_1", "value: 1", "interval: 0 .. 2"]


def shown_at(columns: int, is_terminal: bool, data: RenderableType) -> str:
    """The data as text at this width, without colours."""
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]  # a terminal if the test says so
    with (
        patch.object(sys, "stdout", stream),
        patch.dict(os.environ, COLUMNS=str(columns), TERM="xterm"),
    ):
        show(data)
    return re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("columns", [20, 80])
@pytest.mark.parametrize("more", [(), ("--forecast",)], ids=str)
def test_an_answer_on_a_terminal_has_all_its_digits(
    columns: int, more: tuple[str, ...], run: Run
) -> None:
    names = [f"an_aggregate_with_a_long_name_{i}" for i in range(4)]
    counted = ", ".join(f"COUNT(*) AS {name}" for name in names)
    sql = f"SELECT in_union, {counted} FROM wages GROUP BY in_union"
    asking = ("ask", "wages", sql, "--epsilon", "0.000001", "--request", "r", *more)
    paid = Counter(word for word in run(*asking).out.split() if word[-1].isdigit())
    shown = re.sub(r"\x1b\[[\d;]*m", "", on_terminal(*asking, columns=str(columns)))
    assert paid - Counter(names) - Counter(shown.replace(":", "").split()) == Counter()
    assert "…" not in shown


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_declined(environment: dict[str, str]) -> None:
    shown = on_terminal("budget", "wages", **environment)
    assert not COLOUR.search(shown)
    assert "spent ε = 0.5" in shown


@pytest.mark.usefixtures("asked")
def test_a_terminal_without_unicode_survives() -> None:
    for arguments in (["budget", "wages"], ["explain", "wages", BY_UNION, "--epsilon", "1"]):
        shown = on_terminal(*arguments, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert shown.isascii()
        assert "Traceback" not in shown


@pytest.mark.usefixtures("asked")
def test_a_pipe_gets_plain_lines_of_any_length() -> None:
    ended = process("budget", "wages", COLUMNS="20", TERM="xterm-256color")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    assert f"{COUNT}  ε = 0.5" in ended.out
    assert not any(line.endswith(" ") for line in ended.out.split("\n"))


@pytest.mark.usefixtures("asked")
def test_csv_is_utf_8_whatever_the_terminal_speaks(run: Run) -> None:
    run("declare", "wages.parquet", "--key", "job=clerk,Köchin")
    sql = "SELECT job, COUNT(*) AS n FROM wages GROUP BY job"
    ended = process("ask", "wages", sql, "--epsilon", "0.1", "--csv", PYTHONIOENCODING="ascii")
    assert "Köchin" in ended.out


@pytest.mark.usefixtures("asked")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    line = f"{program({})} budget wages --json | head -c 1"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ended.stdout == "{"
    assert ended.stderr == ""


def test_markup_is_shown_as_plain_text(asked: Run) -> None:
    asked("ask", "wages", COUNT, "--epsilon", "0.1", "--by", "[bold]:smile:[/x]")
    assert "[bold]:smile:[/x]" in asked("budget", "wages").out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name: str, run: Run) -> None:
    ended = run(name, "--help")
    assert ended.code == 0
    assert ended.err == ""
    assert f"discreet {name}" in ended.out.replace("Usage: discreet", "")
    for parameter in get_command(app).commands[name].params:  # type: ignore[attr-defined]
        assert parameter.help or parameter.name == "help", parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_words_of_help_fill_the_lines(name: str, run: Run) -> None:
    words = run(name, "--help").out.partition("Usage:")[2].partition("╭")[0]
    lines = [line.strip() for line in words.splitlines()[1:]]
    for line, following in pairwise(lines):
        is_one_paragraph = bool(line and following)
        assert not is_one_paragraph or len(f"{line} {following.split()[0]}") > 78, line


def test_the_command_itself(run: Run) -> None:
    assert run("--version").out.startswith("discreet 0.")
    shown = run("--help").out
    assert all(f" {name} " in shown for name in COMMANDS)
    assert run().code == 2
    assert run("aks").code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("discreet a", "ask"), ("discreet ask w", "wages"), ("discreet ask wages --no", "--noise")],
)
@pytest.mark.usefixtures("asked")
def test_a_shell_completes(typed: str, offered: str) -> None:
    words = typed.split()
    ended = process(
        COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1), _DISCREET_COMPLETE="complete_bash"
    )
    assert offered in ended.out.split()


def test_a_long_question_shows_how_to_stop_it() -> None:
    """Only the clock decides what is shown, and nothing is shown where there is no terminal."""
    clock = [0.0]
    hint = StopColumn()
    with Progress(hint, console=Console(file=io.StringIO()), get_time=lambda: clock[0]) as shown:
        shown.add_task("asking", total=None)
        assert hint.render(shown.tasks[0]).plain == ""
        clock[0] = 2.1
        assert hint.render(shown.tasks[0]).plain.startswith("Ctrl-C stops it")


def test_the_spinner_tells_when_the_charge_is_recorded(run: Run) -> None:
    """Before a private value is read."""
    run(*DECLARE)
    texts: list[str] = []

    def told(work: str) -> AbstractContextManager[None]:
        texts.append(f"paying, then {work}")
        return at_charge(lambda: texts.append("paid"))

    compute = CompiledPlan.compute

    def computed(plan: CompiledPlan, trace: Trace | None) -> object:
        texts.append("read")
        return compute(plan, trace)

    with (
        patch.object(_asking, "busy", told),
        patch.object(CompiledPlan, "compute", computed),
    ):
        for _ in range(2):
            assert run("ask", "wages", COUNT, "--epsilon", "0.5", "--request", "one").code == 0
    assert texts == ["paying, then asking DuckDB", "paid", "read", "paying, then asking DuckDB"]
