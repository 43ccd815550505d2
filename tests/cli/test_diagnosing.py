"""`discreet ask --diagnose`: two charges, both checked before the first."""

import json
from pathlib import Path

import pytest

from discreet.cli._failures import error_kind
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger import Kind, Ledger
from discreet.query import Question
from tests.cli.kit import COUNT, DECLARE, Run

BY_YEAR = "SELECT year, AVG(wage) AS pay FROM wages GROUP BY year"


def _charges() -> int:
    return sum(entry.kind is Kind.CHARGE for entry in Ledger.open("wages.ledger").history())


def test_the_cuts_follow_the_answer(run: Run) -> None:
    run(*DECLARE)
    ended = run("ask", "wages", BY_YEAR, "--epsilon", "0.5", "--diagnose", "0.25")
    assert ended.code == 0, ended.err
    assert "the caps leave out about" in ended.out
    assert "this diagnosis cost ε = 0.25" in ended.err
    assert _charges() == 2


def test_json_has_both_and_a_repeated_request_is_free(run: Run) -> None:
    run(*DECLARE)
    asked = "ask", "wages", BY_YEAR, "--epsilon", "0.5", "--diagnose", "0.25", "--json"
    one, other = (run(*asked, "--request", "mine").out for _ in range(2))
    found = json.loads(one)
    assert found["diagnosis"]["cuts"]
    assert found["diagnosis"] == json.loads(other)["diagnosis"]
    assert _charges() == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", "1.5", "--diagnose", "1"],
        ["--epsilon", "0.5", "--diagnose", "0"],
        ["--epsilon", "0.5", "--diagnose", "1e-300"],
        ["--epsilon", "0.5", "--diagnose", "0.1", "--confidence", f"0.{'9' * 31}"],
    ],
    ids=str,
)
def test_questions_that_would_fail_later_are_refused_first(run: Run, options: list[str]) -> None:
    run(*DECLARE)
    run("ask", "wages", COUNT, "--epsilon", "0.1")
    assert run("ask", "wages", BY_YEAR, *options).code != 0
    assert _charges() == 1


def test_either_both_are_paid_or_none(run: Run) -> None:
    """Around the limit, where a sum is admitted as one charge and not as two."""
    run(*DECLARE)
    counts = set()
    for epsilon in ("0.99", "1", "1.005", "1.01", "1.02", "1.05"):
        Path("wages.ledger").unlink(missing_ok=True)
        asked = "ask", "wages", BY_YEAR, "--epsilon", epsilon, "--diagnose", epsilon
        is_paid = run(*asked, "--request", "one").code == 0
        counts.add(_charges())
        assert _charges() == (2 if is_paid else 0), epsilon
        if is_paid:  # again it is free, whatever is left
            assert run(*asked, "--request", "one").code == 0
    assert counts == {0, 2}


@pytest.mark.parametrize(
    "source",
    [
        "wages AS a JOIN wages AS b USING (person)",
        "(SELECT person, MAX(wage) AS wage FROM wages GROUP BY person) AS p",
    ],
)
def test_a_diagnosis_that_computed_rows_refuse_is_refused_before_the_question_is_paid(
    run: Run, source: str
) -> None:
    run(*DECLARE)
    run("ask", "wages", COUNT, "--epsilon", "0.1")
    text = f"SELECT COUNT(*) AS n FROM {source}"
    ended = run("ask", "wages", text, "--epsilon", "0.1", "--diagnose", "0.1")
    assert "diagnose each table by itself" in ended.err
    assert ended.code != 0
    assert _charges() == 1


@pytest.mark.parametrize("kind", [BudgetExceeded, LedgerError, KeyboardInterrupt, MemoryError])
def test_a_paid_answer_is_printed_though_its_diagnosis_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Another process spends what is left between the two, or the disk fails."""

    def failed(*_: object, **__: object) -> None:
        raise kind("it failed")

    run(*DECLARE)
    monkeypatch.setattr(Question, "diagnose", failed)
    ended = run("ask", "wages", BY_YEAR, "--epsilon", "0.5", "--diagnose", "0.25", "--json")
    found = json.loads(ended.out)
    assert [row["year"] for row in found["rows"]] == [1980, 1981, 1982]
    assert found["diagnosis"]["error"] == error_kind(kind()).name
    assert ended.code == error_kind(kind()).exit_code
    assert _charges() == 1
