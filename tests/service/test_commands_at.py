"""Commands with ``--at`` show what a service answers, as they show a table here."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.kit import Ended, Run, runner
from tests.service import kit
from tests.service.kit import BY_YEAR, Served

pytestmark = pytest.mark.long  # a whole service starts


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with kit.service(tmp_path_factory.mktemp("service"), "--workers", "1") as running:
        (running.folder / "ana.token").write_text(running.token("ana", share=5) + "\n")
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
    places = ("--at", served.url, "--token-file", str(served.folder / "ana.token"))

    def asked(*arguments: str) -> Ended:
        return here(arguments[0], *places, *arguments[1:])

    return asked


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
    assert "states the same receipt" in checked.out
    Path("other.json").write_text(Path("receipt.json").read_text().replace('"ana"', '"ben"'))
    assert run("verify", "other.json").code == 3


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
