"""``discreet budget`` shows every charge; ``discreet unlock`` is the owner's word."""

import json
import re
import stat
from pathlib import Path

import pytest

from discreet._exact import fraction
from discreet.ledger import Ledger
from tests.cli.kit import COUNT, DECLARE, Run

SECRET = "row 17 holds 4711"


@pytest.fixture
def failed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A table whose engine failed after a question was paid."""
    run(*DECLARE)

    def fails(*_: object) -> None:
        raise RuntimeError(SECRET)

    with monkeypatch.context() as patched:
        patched.setattr("discreet.query._bounding._compiled_plan.CompiledPlan.compute", fails)
        ended = run("ask", "wages", COUNT, "--epsilon", "0.5")
    assert ended.code == 5
    assert ended.out == ""
    assert SECRET not in ended.err
    assert "wages.ledger.log" in ended.err
    return run


def test_looking_at_a_budget_makes_no_ledger(run: Run) -> None:
    run(*DECLARE)
    ended = run("budget", "wages")
    assert ended.code == 0
    assert "nothing was spent yet; the limit will be ε = 2, δ = 1e-06" in ended.err
    facts = json.loads(run("budget", "wages", "--json").out)
    assert facts["spent"] == {"epsilon": 0.0}
    assert facts["left"] == {"epsilon": 2.0}
    assert facts["charges"] == []
    assert not Path("wages.ledger").exists()


def test_a_budget_shows_what_was_spent_on_what(run: Run) -> None:
    run(*DECLARE)
    run("ask", "wages", COUNT, "--epsilon", "0.5", "--by", "ana")
    run("ask", "wages", COUNT, "--epsilon", "0.25", "--delta", "1e-8", "--noise", "gaussian")
    ended = run("budget", "wages")
    head, first, second, left = ended.out.splitlines()
    assert head.split() == ["when", "(UTC)", "by", "what", "cost"]
    assert "ana" in first
    assert COUNT in first
    assert first.endswith("ε = 0.5")
    assert second.endswith(", δ = 1e-06")
    assert left.startswith("spent ε = 0.7")
    facts = json.loads(run("budget", "wages", "--json").out)
    assert facts["charges"][0]["by"] == "ana"
    assert facts["limit"] == {"epsilon": 2.0, "delta": 1e-6}
    balance = Ledger.open("wages.ledger").spent()
    assert fraction(facts["spent"]["epsilon"]) >= balance.epsilon
    assert fraction(facts["left"]["epsilon"]) <= balance.left
    assert not facts["is_locked"]


@pytest.mark.parametrize(
    ("kind", "symbol", "cost"), [("rho", "ρ", "ρ = 0.125"), ("mu", "μ", "ε = 0.5")]
)
def test_a_budget_in_rho_or_mu(run: Run, kind: str, symbol: str, cost: str) -> None:
    run(*DECLARE)
    file = Path("discreet.toml")
    text = re.sub("^delta = .*\n", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(text.replace("epsilon = 2", f"{kind} = 0.75"))
    assert f"{symbol} = 0.75" in run("tables").out
    assert f"the limit will be {symbol} = 0.75" in run("budget", "wages").err
    before = json.loads(run("budget", "wages", "--json").out)
    assert before["limit"] == {kind: 0.75}
    assert before["spent"] == {kind: 0.0}
    asked = run("ask", "wages", COUNT, "--epsilon", "0.5")
    assert asked.code == 0
    ended = run("budget", "wages")
    *_, charge, left = ended.out.splitlines()
    assert charge.endswith(cost)
    assert left.startswith(f"spent {symbol} = ")
    facts = json.loads(run("budget", "wages", "--json").out)
    balance = Ledger.open("wages.ledger").spent()
    assert fraction(facts["spent"][kind]) >= balance.reached > 0
    assert fraction(facts["left"]["epsilon"]) <= balance.left < fraction(before["left"]["epsilon"])
    refused = run("ask", "wages", COUNT, "--epsilon", "1.5")
    assert refused.code == 4
    assert f"would reach {symbol} = " in refused.err


def test_only_the_owner_sees_a_failure(failed: Run) -> None:
    log = Path("wages.ledger.log")
    assert SECRET in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert Ledger.open("wages.ledger").spent().charges == 1


def test_a_locked_table_answers_nobody_until_its_owner_has_looked(failed: Run) -> None:
    ended = failed("ask", "wages", COUNT, "--epsilon", "0.5")
    assert ended.code == 3
    assert "discreet unlock" in ended.err
    shown = failed("budget", "wages")
    assert "locked: charge 1 failed after it was paid" in shown.out
    assert "discreet unlock wages --reason" in shown.err
    assert json.loads(failed("budget", "wages", "--json").out)["is_locked"]
    unlock = ("unlock", "wages", "--reason", "looked at it", "--by", "owner")
    unlocked = failed(*unlock, "--entry", "1")
    assert unlocked.code == 0
    assert re.search(r"failed: charge 1, 20\d\d-.* UTC, by ", unlocked.err)
    assert COUNT in unlocked.message
    assert "--allow-repeat" in unlocked.err
    assert "unlocked: looked at it" in failed("budget", "wages").out
    ended = failed("ask", "wages", COUNT, "--epsilon", "0.5")
    assert ended.code == 3
    assert "failed after it was paid (charge 1)" in ended.message
    assert failed("ask", "wages", f"{COUNT} WHERE year = 1980", "--epsilon", "0.1").code == 0
    again = failed(*unlock, "--allow-repeat", "--entry", "1")
    assert again.code == 0
    assert "may be asked again" in again.err
    assert failed("ask", "wages", COUNT, "--epsilon", "0.5").code == 0


@pytest.mark.parametrize(
    "entries", [[], ["--entry", "2"], ["--entry", "1", "--entry", "3"], ["--allow-repeat"]]
)
def test_a_script_names_the_failures_that_somebody_looked_at(
    entries: list[str], failed: Run
) -> None:
    """Else it would open whatever lock there is."""
    ended = failed("unlock", "wages", "--reason", "it runs each night", *entries)
    assert ended.code == 2
    assert "failed: charge 1" in ended.err
    assert "wages stays as it was" in ended.message
    assert ended.message.strip().endswith("here: --entry 1")
    assert Ledger.open("wages.ledger").is_locked


@pytest.mark.parametrize("more", [[], ["--reason", ""], ["--reason", "x" * 201]], ids=len)
def test_a_reason_is_needed(more: list[str], failed: Run) -> None:
    ended = failed("unlock", "wages", *more)
    assert ended.code == 2
    assert "'--reason'" in ended.message


def test_an_open_ledger_cannot_be_unlocked(run: Run) -> None:
    run(*DECLARE)
    assert run("unlock", "wages", "--reason", "x").code == 5
    run("ask", "wages", COUNT, "--epsilon", "0.5")
    ended = run("unlock", "wages", "--reason", "x")
    assert ended.code == 5
    assert "isn't locked" in ended.err


def test_a_damaged_ledger_is_an_error(run: Run) -> None:
    run(*DECLARE)
    Path("wages.ledger").write_bytes(b"no ledger" * 100)
    for arguments in (["budget", "wages"], ["ask", "wages", COUNT, "--epsilon", "1"]):
        ended = run(*arguments)
        assert ended.code == 5
        assert "wages.ledger" in ended.err
        assert "Traceback" not in ended.err


def test_a_backup_holds_the_ledger_and_takes_no_charge(run: Run) -> None:
    run(*DECLARE)
    assert run("backup", "wages", "copy").code == 5
    run("ask", "wages", COUNT, "--epsilon", "0.5")
    ended = run("backup", "wages", "copy")
    assert ended.code == 0
    assert "copy holds the ledger of wages" in ended.message
    copy = Ledger.open("copy")
    assert copy.history()[:-1] == Ledger.open("wages.ledger").history()
    assert run("backup", "wages", "copy").code == 2
    Path("copy").replace("wages.ledger")
    ended = run("ask", "wages", COUNT, "--epsilon", "0.5")
    assert ended.code == 3
    assert "this ledger is a backup" in ended.message
    shown = run("budget", "wages")
    assert "all entries before this one are a backup of another ledger" in shown.out
    assert "It is locked, since it is a backup" in shown.err
    unlock = ("unlock", "wages", "--reason", "the disk was lost")
    ended = run(*unlock)
    assert ended.code == 2
    assert run(*unlock, *re.findall(r"--entry|\d+$", ended.message.strip())).code == 0
    assert run("ask", "wages", COUNT, "--epsilon", "0.5").code == 0
