"""Commands with ``--at`` show what a service answers, as they show a table here."""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from discreet import Limit
from discreet.accounting import Pure
from discreet.cli import app
from discreet.cli._failures import error_kind
from discreet.errors import BudgetExceeded, ServiceError
from discreet.ledger import Kind, Ledger
from discreet.service import RemoteQuestion
from discreet.service._remote_ledger import RemoteLedger
from discreet.service._transport import ServiceAddress
from tests.cli.kit import Ended, Run, runner
from tests.ledger.kit import PERSON
from tests.service import kit
from tests.service.kit import BY_YEAR, Served

pytestmark = pytest.mark.long  # a whole service starts


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with kit.service(tmp_path_factory.mktemp("service"), "--workers", "1") as running:
        (running.folder / "ana.token").write_text(running.token("ana", share=5) + "\n")
        (running.folder / "owner.token").write_text(running.owner)
        yield running


@pytest.fixture
def run(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command that asks the service, in a folder without any table."""
    monkeypatch.chdir(tmp_path)
    here = runner(monkeypatch, capfd)

    def asked(*arguments: str, by: str = "ana") -> Ended:
        places = ("--at", served.url, "--token-file", str(served.folder / f"{by}.token"))
        end = 2 if arguments[0] in ("audit", "ledger") else 1
        return here(*arguments[:end], *places, *arguments[end:])

    return asked


def commands(group: object, *before: str) -> Iterator[str]:
    """The names of all commands."""
    assert isinstance(group, TyperGroup)
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            yield from commands(one, *before, name)
        else:
            yield " ".join((*before, name))


# Each command with arguments that a service answers, or with the reason why none can.
ANSWERED = {
    "tables": ("tables",),
    "ask": ("ask", "wages", BY_YEAR, "--epsilon", "0.25"),
    "explain": ("explain", "wages", BY_YEAR, "--epsilon", "0.25"),
    "check": ("check", "wages", "wage", "--epsilon", "0.25"),
    "budget": ("budget", "wages"),
    "unlock": ("unlock", "fewer", "--reason", "looked", "--allow-repeat"),
    "verify": ("verify", "receipt.json"),
    "ledger spent": ("ledger", "spent", "wages"),
    "ledger history": ("ledger", "history", "wages"),
    "ledger verify": ("ledger", "verify", "wages"),
    "ledger grant": ("ledger", "grant", "wages", "mia", "--epsilon", "0.5", "--delta", "1e-9"),
    "ledger revoke": ("ledger", "revoke", "wages", "ed"),
    "ledger shares": ("ledger", "shares", "wages"),
}
NOT_ANSWERED = {
    "declare": "it reads a file of rows here",
    "price": "it reads no table",
    "train": "it runs an example here",
    "explore": "it reads no table",
    "serve": "it starts a service itself",
    "backup": "it copies the ledger's file or database",
    "ledger backup": "it copies the ledger's file or database",
    "ledger export": "it copies the ledger's file or database",
    **{
        name: "it runs functions of yours"
        for name in commands(get_command(app))
        if name.startswith("audit ")
    },
}


def test_each_command_is_answered_or_refused_at_a_service() -> None:
    assert sorted(commands(get_command(app))) == sorted((*ANSWERED, *NOT_ANSWERED))


@pytest.mark.parametrize("name", ANSWERED)
def test_a_service_answers_a_command(run: Run, served: Served, name: str) -> None:
    if name == "verify":
        run(*ASK, "--receipt", "receipt.json", by="owner")
    if name == "ledger revoke":
        run("ledger", "grant", "wages", "ed", "--epsilon", "1", by="owner")
    if name == "unlock":
        ledger = Ledger.open(served.folder / "fewer.ledger")
        ledger.lock(ledger.charge(Pure(0.125), purpose="failed", by="ed"))
    more = entries(served) if name == "unlock" else ()
    ended = run(*ANSWERED[name], *more, by="owner")
    assert ended.code == 0, ended.err
    assert ended.out or ended.err


def entries(served: Served) -> Iterator[str]:
    """The options that name all failed questions."""
    for one in Ledger.open(served.folder / "fewer.ledger").failed():
        yield from ("--entry", str(one.number))


@pytest.mark.parametrize("name", NOT_ANSWERED)
def test_a_command_that_no_service_answers_is_refused_with_the_reason(run: Run, name: str) -> None:
    ended = run(*name.split(), "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["error"]) == (2, "usage")
    assert shown["message"].startswith(f"--at: {name}: {NOT_ANSWERED[name]}")


ASK = ("ask", "wages", BY_YEAR, "--epsilon", "0.25")


def test_a_question_has_forecast_answer_receipt_and_check(run: Run, served: Served) -> None:
    forecast = run(*ASK, "--forecast")
    assert forecast.code == 0, forecast.err
    assert "it would cost ε = 0.25" in forecast.err
    assert "standard deviation" in forecast.out
    charges = served.ledger.spent().charges
    asked = run(*ASK, "--request", "first", "--receipt", "receipt.json")
    assert asked.code == 0, asked.err
    assert asked.out.splitlines()[0].split() == ["year", "n", "interval", "pay", "interval"]
    assert "1981" in asked.out
    # the same in other forms, free of charge
    as_json = json.loads(run(*ASK, "--request", "first", "--json").out)
    assert [row["year"] for row in as_json["rows"]] == [1980, 1981, 1982]
    as_csv = run(*ASK, "--request", "first", "--csv").out.splitlines()
    assert as_csv[1].startswith(f"1980,{as_json['rows'][0]['n']},")
    assert run(*ASK, "--request", "first", "--parquet", "a.parquet").code == 0
    assert Path("a.parquet").exists()
    assert served.ledger.spent().charges == charges + 1
    # its receipt, by the service and by the ledger
    checked = run("verify", "receipt.json")
    assert checked.code == 0, checked.err
    assert "states that the ledger of wages has this charge" in checked.out
    assert run("verify", "receipt.json", by="owner").code == 0  # who did not pay it
    Path("other.json").write_text(Path("receipt.json").read_text().replace('"ana"', '"ben"'))
    assert run("verify", "other.json").code == 3


def test_a_receipt_of_another_ledger_is_refused(run: Run, tmp_path: Path) -> None:
    other = Ledger.create(tmp_path / "x.ledger", unit=PERSON, limit=Limit(1))
    receipt = other.charge(Pure(0.25), purpose=BY_YEAR, by="ana")
    Path("receipt.json").write_text(receipt.to_json())
    refused = run("verify", "receipt.json")
    assert (refused.code, "no ledger at http://127.0.0.1" in refused.message) == (3, True)


def test_a_new_request_id_is_warned_of_a_useless_answer(run: Run) -> None:
    useless = ("ask", "wages", BY_YEAR, "--epsilon", "0.0001")
    assert "warning: " in run(*useless).err
    new = run(*useless, "--request", "useless").err
    assert "warning: " in new
    assert "request useless is new" in new
    again = run(*useless, "--request", "useless").err  # it is free
    assert "warning: " not in again
    assert "is new" not in again


def test_ctrl_c_names_the_request_that_may_be_paid(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is paid and stored, and then fetched by the id in the message."""
    post = ServiceAddress.post

    def stopped(*arguments: Any, **named: Any) -> object:
        found = post(*arguments, **named)
        if arguments[-1] in ("ask", "nulls"):
            raise KeyboardInterrupt
        return found

    for command in (ASK, ("check", "wages", "wage", "--epsilon", "0.25")):
        with monkeypatch.context() as planted:
            planted.setattr(ServiceAddress, "post", stopped)
            ended = run(*command, "--json")
        failed = json.loads(ended.out)
        assert (ended.code, failed["error"]) == (130, "interrupted")
        assert failed["request"] in failed["advice"]
        assert failed["request"] in ended.err
        charges = served.ledger.spent().charges
        again = run(*command, "--json", "--request", failed["request"])
        assert (again.code, served.ledger.spent().charges) == (0, charges)


@pytest.mark.parametrize("kind", [BudgetExceeded, ServiceError, KeyboardInterrupt])
def test_a_paid_answer_is_printed_though_its_diagnosis_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def failed(*_: object, **__: object) -> None:
        raise kind("it failed")

    monkeypatch.setattr(RemoteQuestion, "diagnose", failed)
    ended = run(*ASK, "--diagnose", "0.25", "--json")
    found = json.loads(ended.out)
    assert [row["year"] for row in found["rows"]] == [1980, 1981, 1982]
    assert found["diagnosis"]["error"] == error_kind(kind()).name
    assert ended.code == error_kind(kind()).exit_code


def test_the_declared_tables_are_listed(run: Run) -> None:
    listed = run("tables")
    assert listed.code == 0, listed.err
    for word in ("wages: protects", "fewer: protects", "in_union", "boolean", "1980, 1981", "60"):
        assert word in listed.out


def test_a_diagnosis_is_charged_beside_the_question(run: Run, served: Served) -> None:
    charges = served.ledger.spent().charges
    both = (*ASK, "--diagnose", "0.125", "--request", "cuts")
    asked = run(*both)
    assert asked.code == 0, asked.err
    assert "this diagnosis cost ε = 0.125" in asked.err
    assert served.ledger.spent().charges == charges + 2
    as_json = json.loads(run(*both, "--json").out)
    assert as_json["diagnosis"]["cuts"]
    assert as_json["diagnosis"]["text"] in asked.out
    assert served.ledger.spent().charges == charges + 2  # a repetition is free


def test_budget_and_explanation(run: Run) -> None:
    assert run(*ASK, "--request", "listed").code == 0
    shown = run("budget", "wages")
    assert shown.code == 0, shown.err
    assert "ana" in shown.out
    assert "GROUP BY year" in shown.out
    assert "share ana: spent" in shown.out
    found = json.loads(run("budget", "wages", "--json").out)
    assert {"table", "limit", "history", "shares"} <= found.keys()
    explained = run("explain", "wages", BY_YEAR, "--epsilon", "0.25")
    assert explained.code == 0, explained.err
    assert "  - " in explained.out
    assert json.loads(run("explain", "wages", BY_YEAR, "--epsilon", "1", "--json").out)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("ask", "wages", "SELECT wage FROM wages", "--epsilon", "1"), 3, "query_refused"),
        (("ask", "wages", BY_YEAR, "--epsilon", "6"), 4, "budget_exceeded"),
        (("ask", "nothing", BY_YEAR, "--epsilon", "1"), 2, "invalid_argument"),
        (("budget", "nothing"), 2, "invalid_argument"),
        ((*ASK, "--by", "ben"), 2, "usage"),
        ((*ASK, "--weight", "n=2"), 2, "usage"),
        (("ask", "wages", BY_YEAR, "--within", "1"), 2, "usage"),
        (("ask", "wages", BY_YEAR), 2, "usage"),
        (("verify", "none.json", "--ledger", "x"), 2, "usage"),
    ],
)
def test_refusals_are_those_of_a_table_here(
    run: Run, arguments: tuple[str, ...], code: int, error: str
) -> None:
    ended = run(*arguments, "--json")
    assert (ended.code, json.loads(ended.out)["error"]) == (code, error)


def test_a_check_of_a_column_is_charged_once(run: Run, served: Served) -> None:
    checked = ("check", "wages", "wage", "--epsilon", "0.25", "--request", "nulls")
    first, before = run(*checked), served.ledger.spent().charges
    assert first.code == 0, first.err
    assert "of wage became NULL" in first.out.replace("\n", " ")
    assert "this check cost ε = 0.25" in first.err
    again = json.loads(run(*checked, "--json").out)
    assert again["column"] == "wage"
    assert again["share_low"] <= again["share_high"]
    assert served.ledger.spent().charges == before
    assert run("check", "wages", "nothing", "--epsilon", "0.25").code == 3


def test_the_ledger_of_a_service_is_looked_after(run: Run, served: Served) -> None:
    ledger = served.ledger
    granted = run("ledger", "grant", "wages", "bo", "--epsilon", "1", by="owner")
    assert granted.code == 0, granted.err
    assert "bo may spend" in granted.err
    with_reserve = ("ledger", "grant", "wages", "cy", "--epsilon", "2", "--reserve", "Pure(0.5)")
    assert run(*with_reserve, by="owner").code == 0
    shares = json.loads(run("ledger", "shares", "wages", "--json", by="owner").out)["shares"]
    assert {"bo", "cy"} <= {one["share"] for one in shares}
    assert [one["reserved"] for one in shares if one["share"] == "cy"] == [0.5]
    shown = run("ledger", "history", "wages", "--last", "1", by="owner").out
    assert "reserves" in shown
    assert "owner" in shown
    entries = json.loads(run("ledger", "history", "wages", "--json", by="owner").out)["entries"]
    assert [one["number"] for one in entries] == [one.number for one in ledger.history()]
    for name in ("bo", "cy"):
        assert run("ledger", "revoke", "wages", name, by="owner").code == 0
        assert ledger.history(1)[0].kind is Kind.REVOKE
    verified = run("ledger", "verify", "wages", by="owner")
    assert f"the service verified {len(ledger.history())} entries" in verified.out
    assert "share ana: spent" in run("ledger", "spent", "wages").out


def test_amounts_are_rounded_as_those_here(run: Run, served: Served) -> None:
    """A question for as much as is shown must fit."""
    assert run("ledger", "grant", "wages", "eve", "--epsilon", "0.1234567", by="owner").code == 0
    charged = Pure(Fraction("0.02345612"))
    served.ledger.share("eve").charge(charged, purpose="x", by="eve")
    (shown,) = (
        line
        for line in run("ledger", "shares", "wages", by="owner").out.splitlines()
        if line.startswith("eve")
    )
    assert re.split(r"\s{2,}", shown)[1:] == ["ε = 0.1234567", "0.0234562", "ε = 0.1"]
    spent = run("ledger", "spent", "wages", by="owner").out
    assert "share eve: spent 0.0234562 of ε = 0.1234567; one more question may cost" in spent


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
def test_a_name_that_can_stand_in_no_address_is_refused_with_the_reason(
    run: Run, served: Served, name: str
) -> None:
    for command in (
        ("ledger", "grant", "wages", name, "--epsilon", "1"),
        ("ledger", "revoke", "wages", name),
        (*ASK, "--request", name),
    ):
        refused = run(*command, by="owner")
        assert (refused.code, "can be no part of an address" in refused.message) == (2, True)
    if name != "a/b":  # which is no route
        sent = served.send("PUT", f"/v1/tables/wages/shares/{name}", {"epsilon": 1})
        assert (sent.status, sent.error) == (400, "invalid_argument")
    assert name not in {one.share for one in served.ledger.shares()}


def test_a_locked_table_of_a_service_is_unlocked(run: Run, served: Served) -> None:
    ledger = Ledger.open(served.folder / "fewer.ledger")
    ledger.lock(ledger.charge(Pure(0.125), purpose="SELECT a failure", by="ed"))
    assert "locked until its owner acts" in run("budget", "fewer").err
    unlock = ("unlock", "fewer", "--reason", "the disk was full")
    assert (run(*unlock, by="owner").code, ledger.is_locked) == (2, True)  # nobody looked at it
    unlocked = run(*unlock, *entries(served), by="owner")
    assert unlocked.code == 0, unlocked.err
    assert "by ed:" in unlocked.err
    assert "SELECT a failure" in unlocked.err
    assert not ledger.is_locked
    again = run("unlock", "fewer", "--reason", "once more", by="owner")
    assert (again.code, "isn't locked" in again.message) == (2, True)


def test_the_command_opens_no_lock_that_it_did_not_show(
    run: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second question fails between the look at the locks and the unlock."""
    ledger = Ledger.open(served.folder / "fewer.ledger")
    charges = [ledger.charge(Pure(0.125), purpose=f"failure {n}", by="ed") for n in range(2)]
    ledger.lock(charges[0])
    unlock = RemoteLedger.unlock

    def late(*arguments: Any, **named: Any) -> object:
        monkeypatch.setattr(RemoteLedger, "unlock", unlock)
        ledger.lock(charges[1])
        return unlock(*arguments, **named)

    monkeypatch.setattr(RemoteLedger, "unlock", late)
    command = ("unlock", "fewer", "--reason", "looked")
    refused = run(*command, *entries(served), by="owner")
    assert (refused.code, "other failures lock it now" in refused.message) == (2, True)
    assert ("failure 0" in refused.err, "failure 1" in refused.err) == (True, False)
    assert ledger.is_locked
    unlocked = run(*command, *entries(served), by="owner")
    assert (unlocked.code, "failure 1" in unlocked.err) == (0, True)
    assert not ledger.is_locked


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "grant", "wages", "dan", "--epsilon", "1"),
        ("ledger", "revoke", "wages", "ana"),
        ("ledger", "verify", "wages"),
        ("unlock", "wages", "--reason", "x"),
    ],
)
def test_an_analyst_is_refused_what_is_the_owners(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert (ended.code, "role" in ended.message) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "spent", "wages", "--anchor", "x"),
        ("ledger", "verify", "wages", "--export"),
        ("ledger", "revoke", "wages", "ana", "--by", "ana"),
        ("check", "wages", "wage", "--epsilon", "1", "--by", "ana"),
        ("unlock", "wages", "--reason", "x", "--by", "ana"),
    ],
)
def test_options_of_a_ledger_here_are_refused_by_name(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments, by="owner")
    assert ended.code == 2
    assert "use it without --at" in ended.message
