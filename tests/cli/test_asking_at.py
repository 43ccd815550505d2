"""Commands with ``--at`` need a service and a token; tests/service/test_commands_at.py has both."""

import json
from pathlib import Path

import pytest

from discreet.cli._exit_codes import failure_of
from discreet.service._transport import _error
from tests.cli.kit import COUNT, Run

AT = ("--at", "http://127.0.0.1:1/")
COMMANDS = [
    ("ask", "wages", COUNT, "--epsilon", "1", "--request", "1"),
    ("ask", "wages", COUNT, "--epsilon", "1", "--forecast"),
    ("explain", "wages", COUNT, "--epsilon", "1"),
    ("budget", "wages"),
    ("verify", "receipt.json"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((*AT, "--token-file", "missing"), "usage"),
        ((*AT, "--token-file", "."), "usage"),
        (AT, "usage"),
        (("--token-file", "token"), "usage"),
        ((*AT, "--token-file", "two"), "invalid_argument"),
        (("--at", "http://example.org/", "--token-file", "token"), "invalid_argument"),
    ],
)
def test_a_token_and_a_safe_address_are_needed(
    run: Run, command: tuple[str, ...], options: tuple[str, ...], error: str
) -> None:
    Path("token").write_text("discreet_x\n")
    Path("two").write_text("discreet_x discreet_y")
    ended = run(*command, *options, "--json")
    assert (ended.code, json.loads(ended.out)["error"]) == (2, error)


def test_a_service_that_is_not_there_fails_by_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.service._transport._PAUSE", 0.01)
    Path("token").write_text("discreet_x\n")
    for command in COMMANDS[:-1]:
        ended = run(*command, *AT, "--token-file", "token", "--json")
        assert (ended.code, json.loads(ended.out)["error"]) == (5, "service")
        assert "discreet_x" not in ended.out + ended.err


def test_tables_need_a_service_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service._transport._PAUSE", 0.01)
    Path("token").write_text("discreet_x\n")
    for options, code in ((AT, 2), ((*AT, "--token-file", "token"), 5)):
        assert run("tables", *options).code == code


def test_the_cause_of_a_failure_there_is_in_the_log_there() -> None:
    url = "https://private.example.org/"
    failed = {"error": "computation_failed", "message": "it failed"}
    hint = failure_of(_error(url, 500, failed)).hint
    assert url in hint
    assert "discreet unlock" not in hint  # which would look for a table here


TOKEN = f"discreet_{'0' * 16}_{'x' * 43}"


@pytest.mark.parametrize(
    "options",
    [
        ("--at", f"http://ana:{TOKEN}@127.0.0.1:1/", "--token-file", "token"),
        ("--at", f"https://{TOKEN}@example.org/", "--token-file", "token"),
        ("--at", f"http://127.0.0.1:1/?token={TOKEN}", "--token-file", "token"),
        ("--at", f"http://127.0.0.1:1/#{TOKEN}", "--token-file", "token"),
        ("--at", TOKEN, "--token-file", "token"),
        (*AT, "--token-file", TOKEN),
        (*AT, "--token-file", f"./{TOKEN}"),
    ],
)
def test_no_error_shows_a_token_in_the_wrong_place(run: Run, options: tuple[str, ...]) -> None:
    Path("token").write_text(TOKEN)
    for ended in (run("budget", "wages", *options), run("budget", "wages", *options, "--json")):
        assert ended.code == 2
        assert TOKEN not in ended.message.replace(" ", "") + ended.out
