"""Questions compile to the SQL of engines on which nothing is run."""

import re
from html import escape

import pytest
import sqlglot

import discreet as dp
from discreet.query import CompiledSql, Dialect, Question, Table
from tests.query import nasty_table
from tests.query.nasty_questions import COLUMNS, DATES, GROUPS, NUMBER_TERMS, TEXT_TERMS, of_days

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

FEW = ["SELECT wide, COUNT(*), SUM(small), SUM(zoned - day) FROM t GROUP BY wide", GROUPS[0]]
OTHERS = [
    *(f"SELECT {terms} FROM t" for terms in (*TEXT_TERMS, *NUMBER_TERMS)),
    *map(of_days, DATES),
    *GROUPS[1:],
]


def _question(text: str) -> Question:
    unit = dp.Unit("id")
    made: Question = Table(
        nasty_table.arrow_table(), name="t", unit=unit, columns=COLUMNS, rows=9
    ).question(text)
    return made


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("questions", [FEW, pytest.param(OTHERS, marks=pytest.mark.long)])
def test_each_question_compiles_and_is_parsed(dialect: Dialect, questions: list[str]) -> None:
    for text in questions:
        found = _question(text).compile(dialect)
        assert found.statements
        for statement in found.statements:
            tree = sqlglot.parse_one(statement, read=dialect.value)
            assert {table.name for table in tree.find_all(sqlglot.exp.Table)} & {"source"}
            called = set(re.findall(r"(discreet_\w+)\(", statement.lower()))
            assert called <= set(found.functions)


def test_the_text_says_that_nothing_was_run_and_what_is_missing() -> None:
    made = _question("SELECT SUM(small) FROM t").compile(Dialect.TRINO)
    text = str(made)
    assert made._repr_html_() == f"<pre>{escape(text)}</pre>"
    first, second, *_ = text.splitlines()
    assert first == "-- compiled for trino, not run; its results are not private"
    assert second.startswith("-- functions that it lacks: discreet_")


def test_a_text_that_the_dialect_can_not_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlglot.ParseError("SECRET")

    monkeypatch.setattr(sqlglot, "parse_one", fail)
    with pytest.raises(dp.errors.QueryRefused, match="no form in trino") as refusal:
        _compiled()
    assert "SECRET" not in str(refusal.value)


def _compiled() -> CompiledSql:
    return _question("SELECT COUNT(*) FROM t").compile(Dialect.TRINO)
