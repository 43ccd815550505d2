"""What is shown suits where it goes: terminals, pipes, and terminals that can't do much."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from typer.main import get_command

from discreet.cli import app
from tests.cli.kit import BY_UNION, COUNT, DECLARE, Run, process

COMMAND = str(Path(sys.executable).with_name("discreet"))
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])(?:;\d+)*m")
COMMANDS = ["declare", "tables", "explain", "ask", "check", "price", "budget", "unlock"]


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal of 100 columns gets, stdout and stderr together."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")
    }
    with subprocess.Popen(
        [COMMAND, *arguments],
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
    line = f"{COMMAND} budget wages --json | head -c 1"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ended.stdout == "{"
    assert ended.stderr == ""


def test_what_looks_like_markup_is_shown_as_it_is(asked: Run) -> None:
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
