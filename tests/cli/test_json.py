"""With ``--json`` a command prints exactly one JSON object, whether it succeeds or fails."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from discreet import errors
from discreet.cli import _asking
from discreet.cli._failures import KINDS, error_kind
from discreet.query import Question
from tests.cli.kit import BY_UNION, COUNT, DECLARE, Ended, Run
from tests.cli.test_exit_codes import SECRET, kinds

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
ASK = ("ask", "wages", COUNT)
NAMES = {kind.name for _, kind in KINDS}

# command lines that fail, each with the exit code and the name of its failure
FAILING: list[tuple[tuple[str, ...], int, str]] = [
    (("ask", "--json"), 2, "usage"),
    (("asks", "--json"), 2, "usage"),
    (("--json",), 2, "usage"),
    ((*ASK, "--json"), 2, "usage"),
    ((*ASK, "--epsilon", "nan", "--json"), 2, "usage"),
    ((*ASK, "--epsilon", "0.1", "--jsn", "--json"), 2, "usage"),
    ((*ASK, "--epsilon", "0.1", "--csv", "--json"), 2, "usage"),
    (("declare", "--json"), 2, "usage"),
    (("ask", "nobody", COUNT, "--epsilon", "0.1", "--json"), 2, "invalid_argument"),
    ((*ASK, "--epsilon", "0.1", "--file", "missing.toml", "--json"), 2, "declaration"),
    (("ask", "wages", "DROP TABLE wages", "--epsilon", "0.1", "--json"), 3, "query_refused"),
    (
        ("ask", "wages", 'SELECT MAX(\u202e") FROM x', "--epsilon", "1", "--json"),
        3,
        "query_refused",
    ),
    (("explain", "wages", "SELECT", "--epsilon", "0.1", "--json"), 3, "query_refused"),
    (("check", "wages", "nothing", "--epsilon", "0.1", "--json"), 3, "query_refused"),
    ((*ASK, "--epsilon", "9", "--json"), 4, "budget_exceeded"),
    ((*ASK, "--epsilon", "1e-300", "--json"), 2, "invalid_argument"),
    (("price", "Pure(", "--json"), 2, "invalid_argument"),
    (("price", "Gaussian(4)", "--json"), 3, "no_bound"),
    (("price", "n * Pure(1)", "--find", "n", "--epsilon", "0.5", "--json"), 3, "no_bound"),
    (("verify", "wages.parquet", "--json"), 3, "receipt_differs"),
    (("budget", "wages", "--json", "--file", "broken.toml"), 2, "declaration"),
]


def the_object(ended: Ended) -> dict[str, Any]:
    """The one JSON object on stdout."""
    found: dict[str, Any] = json.loads(ended.out)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def declared(run: Run) -> Run:
    run(*DECLARE)
    Path("broken.toml").write_text("[tables")
    return run


@pytest.mark.parametrize(("command", "code", "name"), FAILING, ids=lambda one: str(one)[:60])
def test_a_refusal_is_one_object(
    declared: Run, command: tuple[str, ...], code: int, name: str
) -> None:
    ended = declared(*command)
    found = the_object(ended)
    assert (ended.code, found["error"]) == (code, name)
    assert set(found) == {"error", "message", "advice"}
    assert all(isinstance(text, str) and text for text in found.values())
    assert found["message"] in ended.err  # for people


@pytest.mark.parametrize(("command", "code", "name"), FAILING, ids=lambda one: str(one)[:60])
def test_without_json_stdout_is_empty_and_the_code_the_same(
    declared: Run, command: tuple[str, ...], code: int, name: str
) -> None:
    ended = declared(*(word for word in command if word != "--json"))
    if ended.code == 0:  # nothing but the option was wrong, or the parser wants more
        return
    assert ended.code in (code, 2)
    assert '"error"' not in ended.out


def test_every_error_has_a_name_of_the_list(declared: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of error, raised inside a command."""
    for kind in [*kinds(), ZeroDivisionError, KeyboardInterrupt, MemoryError]:
        raised = kind(SECRET)

        def raises(*_: object, error: BaseException = raised, **__: object) -> None:
            raise error

        monkeypatch.setattr(Question, "release", raises)
        ended = declared(*ASK, "--epsilon", "0.1", "--json")
        found = the_object(ended)
        assert found["error"] == error_kind(raised).name
        assert ended.code == error_kind(raised).exit_code
        is_ours = kind.__module__ == errors.__name__
        assert (SECRET in ended.out) == is_ours
        assert is_ours or SECRET not in ended.err


def test_a_failure_before_the_last_act_is_the_only_object(
    declared: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(SECRET)

    monkeypatch.setattr(_asking, "say_cost", fails)
    ended = declared(*ASK, "--epsilon", "0.1", "--json")
    assert the_object(ended)["error"] == "unexpected"
    assert ended.code == 5
    assert "repeat it with --request" in ended.err


def test_names_are_of_one_fixed_list() -> None:
    """Each error has a kind of its own, and subclasses stand before their bases."""
    assert len(NAMES) == len(KINDS)
    for place, (base, kind) in enumerate(KINDS):
        if issubclass(base, errors.DiscreetError):
            assert error_kind(base()) == kind, place
    listed = {base for base, _ in KINDS}
    assert set(kinds()) <= listed


def test_the_page_lists_every_name_with_its_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == {kind.name: str(kind.exit_code) for _, kind in KINDS}


ANSWERS: list[tuple[str, ...]] = [
    (*ASK, "--epsilon", "0.1"),
    ("ask", "wages", BY_UNION, "--epsilon", "0.5", "--delta", "1e-7", "--noise", "gaussian"),
    (*ASK, "--epsilon", "0.1", "--forecast"),
    ("explain", "wages", BY_UNION, "--epsilon", "0.1"),
    ("check", "wages", "wage", "--epsilon", "0.1"),
]


@pytest.mark.parametrize("command", ANSWERS, ids=lambda one: " ".join(one)[:60])
def test_an_answer_has_its_cost(declared: Run, command: tuple[str, ...]) -> None:
    found = the_object(declared(*command, "--json"))
    epsilon = float(command[command.index("--epsilon") + 1])
    assert 0 < found["epsilon"] <= epsilon * (1 + 1e-6)
    assert found["delta"] == (1e-7 if "--delta" in command else 0)
    assert found["privacy_loss"]["terms"]
    is_paid = command[0] != "explain" and "--forecast" not in command
    assert ("receipt" in found) == is_paid


def test_an_answer_has_caps_bounds_and_a_receipt_that_passes(declared: Run) -> None:
    found = the_object(declared("ask", "wages", BY_UNION, "--epsilon", "0.5", "--json"))
    assert found["caps"] == {"rows": 6, "groups": 3, "rows_per_group": 2}
    assert found["bounds"] == {"wage": [0, 60]}
    Path("receipt.json").write_text(json.dumps(found["receipt"], indent=2))
    assert declared("verify", "receipt.json", "--ledger", "wages.ledger").code == 0


def test_json_as_a_value_is_no_option(declared: Run) -> None:
    ended = declared("ask", "--epsilon", "0.1", "--", "wages", "--json")
    assert ended.code == 3
    assert ended.out == ""
