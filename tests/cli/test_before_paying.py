"""``discreet ask`` warns before it pays for an answer that will tell nothing."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from discreet.accounting import Pure
from discreet.ledger import Ledger
from tests.cli.kit import COUNT, DECLARE, Run, program

LEDGER = Path("wages.ledger")
PAY = "SELECT AVG(wage) AS pay FROM wages"
USELESS = ("ask", "wages", PAY, "--epsilon", "0.001")


@pytest.fixture
def declared(run: Run) -> Run:
    run(*DECLARE)
    return run


def at_terminal(typed: bytes, *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and terminal of a command whose stdin and stderr are a terminal."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    with subprocess.Popen(
        [program(environment={}), *arguments],
        stdin=follower,
        stderr=follower,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        os.write(leader, typed)
        out, _ = process.communicate(timeout=60)
    os.close(follower)
    shown = b""
    while part := read(leader):
        shown += part
    os.close(leader)
    return process.returncode, out.decode(), shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def charges() -> int:
    return Ledger.open(LEDGER).spent().charges if LEDGER.exists() else 0


def test_an_unlock_at_a_terminal_shows_the_failures_and_asks(declared: Run) -> None:
    declared("ask", "wages", COUNT, "--epsilon", "0.1")
    ledger = Ledger.open(LEDGER)
    ledger.lock(ledger.charge(Pure(0.1), purpose="SELECT a failure", by="ed"))
    unlock = ("unlock", "wages", "--reason", "looked")
    code, _, shown = at_terminal(b"n\n", *unlock)
    assert (code, ledger.is_locked) == (3, True)
    assert shown.index("SELECT a failure") < shown.index("Unlock wages? [y/N]")
    code, _, shown = at_terminal(b"y\n", *unlock, "--entry", "1")  # another one than it shows
    assert (code, ledger.is_locked, "[y/N]" in shown) == (2, True, False)
    code, _, shown = at_terminal(b"y\n", *unlock)
    assert (code, ledger.is_locked) == (0, False)


def test_a_script_is_warned_and_goes_on(declared: Run) -> None:
    ended = declared(*USELESS)
    assert ended.code == 0
    warning, *_ = ended.err.splitlines()
    assert warning.startswith("warning: pay: in a group of 10,000 rows the interval is as wide")
    assert "you would need at least epsilon 0.00" in warning
    assert "pay" in ended.out
    assert charges() == 1


def test_the_size_of_groups_decides(declared: Run) -> None:
    useful = declared("ask", "wages", COUNT, "--epsilon", "0.1")
    assert "warning" not in useful.err
    ended = declared("ask", "wages", COUNT, "--epsilon", "0.1", "--group-size", "50")
    assert "in a group of 50 rows the interval is as wide as the group itself" in ended.err


@pytest.mark.parametrize(("typed", "is_paid"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_at_a_terminal_it_asks(declared: Run, typed: bytes, is_paid: bool) -> None:
    code, out, shown = at_terminal(typed, *USELESS)
    assert "Pay for this answer? [y/N]" in shown
    assert charges() == is_paid
    assert (code, bool(out)) == ((0, True) if is_paid else (3, False))
    assert ("nothing was paid or read" in shown) != is_paid
    assert LEDGER.exists() == is_paid


def test_a_broken_off_question_costs_nothing(declared: Run) -> None:
    code, out, _ = at_terminal(b"\x04", *USELESS)  # the end of the input
    assert (code, out) == (3, "")
    assert not LEDGER.exists()


@pytest.mark.parametrize("option", ["--yes", "--json"])
def test_options_that_do_not_ask(declared: Run, option: str) -> None:
    code, out, shown = at_terminal(b"", *USELESS, option)
    assert code == 0
    assert "warning: pay" in shown.replace("\r\n", " ")
    assert "[y/N]" not in shown
    assert out


def test_a_paid_request_is_fetched_without_a_question(declared: Run) -> None:
    asked = (*USELESS, "--request", "r", "--by", "ana")
    assert "warning" in declared(*asked).err
    code, _, shown = at_terminal(b"", *asked)
    assert code == 0
    assert "warning" not in shown


def test_the_warning_is_in_the_forecast(declared: Run) -> None:
    ended = declared(*USELESS, "--forecast", "--json")
    assert json.loads(ended.out)["warnings"][0].startswith("pay: in a group of 10,000 rows")
    assert "warning: pay" in declared(*USELESS, "--forecast").err
    assert "warning: pay" in declared("explain", *USELESS[1:]).out
    assert not LEDGER.exists()


def test_the_least_epsilon_for_an_accuracy(declared: Run) -> None:
    ask = ("ask", "wages", "SELECT AVG(wage) AS pay, COUNT(*) AS n FROM wages")
    within = ("--within", "pay=3", "--within", "n=100", "--group-size", "500")
    predicted = json.loads(declared(*ask, *within, "--forecast", "--json").out)
    widths = {line["name"]: line["half_width"] for line in predicted["expected"]}
    assert widths["pay"] <= 3
    assert widths["n"] <= 100
    less = str(predicted["epsilon"] * 0.99)
    other = json.loads(
        declared(*ask, "--epsilon", less, "--group-size", "500", "--forecast", "--json").out
    )
    widths = {line["name"]: line["half_width"] for line in other["expected"]}
    assert widths["pay"] > 3 or widths["n"] > 100
    ended = declared(*ask, *within)
    assert ended.code == 0
    assert "this accuracy needs ε = " in ended.err
    assert charges() == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "Missing option '--epsilon', or '--within'"),
        (["--within", "1", "--epsilon", "1"], "'--within': use it without --epsilon"),
        (["--within", "0"], "'--within': '0': give a finite number above 0"),
        (["--within", "m=1"], "'--within': 'm=1': give NAME=NUMBER for one of n"),
        (["--within", "1", "--within", "2"], "'--within': '1': give NAME=NUMBER"),
    ],
)
def test_a_wrong_accuracy_costs_nothing(declared: Run, more: list[str], message: str) -> None:
    ended = declared("ask", "wages", COUNT, *more)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.message
    assert not LEDGER.exists()


@pytest.mark.parametrize(
    ("sql", "more", "message"),
    [
        ("AVG(wage)", ["--within", "1"], "'--group-size': give the number of rows in a group"),
        (
            "AVG(wage)",
            ["--within", "1e-9", "--group-size", "9"],
            "'--within': no epsilon up to 10,000",
        ),
        ("MEDIAN(wage)", ["--within", "1", "--group-size", "9"], "'--within': the error of median"),
    ],
)
def test_an_accuracy_out_of_reach_names_the_option(
    declared: Run, sql: str, more: list[str], message: str
) -> None:
    ended = declared("ask", "wages", f"SELECT {sql} FROM wages", *more)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.message
    assert not LEDGER.exists()
