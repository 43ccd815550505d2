"""No row makes a search take long: texts and patterns are short, and limited before the charge."""

import pandas as pd
import pytest

import discreet as dp
from discreet.errors import QueryRefused
from discreet.query import Table
from tests.query.kit import without_noise

LONG = "a" * 4096
ROWS = pd.DataFrame({"note": [LONG, LONG + "a", "b"]})
TABLE = Table(ROWS, name="r", unit=dp.Unit.ROW, columns={"note": dp.Column.text()})


def counted(condition: str) -> object:
    """The number of rows that meet a condition, without noise."""
    question = TABLE.question(f"SELECT COUNT(*) AS n FROM r WHERE {condition}")
    return without_noise(question).rows()[0]["n"]


def asked(patterns: list[str]) -> str:
    return " OR ".join(f"note LIKE '{one}'" for one in patterns)


@pytest.mark.parametrize("sign", ["a", "%", "_", "é"])
def test_a_pattern_has_at_most_200_characters(sign: str) -> None:
    counted(f"note LIKE '{sign * 200}'")
    for condition in (f"note LIKE '{sign * 201}'", f"(note || note) NOT LIKE '{sign * 201}'"):
        with pytest.raises(QueryRefused, match="a pattern has at most 200 characters"):
            TABLE.question(f"SELECT COUNT(*) FROM r WHERE {condition}")
    with pytest.raises(QueryRefused, match="a pattern has at most 200 characters"):
        TABLE.where(dp.col("note").like(sign * 201)).agg(n=dp.count()).forecast(epsilon=1)


def test_the_patterns_of_a_question_have_at_most_400_characters() -> None:
    both = [sign * 200 for sign in "ab"]
    assert counted(f"{asked(both)} OR {asked(both)}") == 0  # the same ones count once
    for condition in (
        asked([*both, "f"]),
        f"{asked(both)} OR LOWER(note) LIKE 'f'",
        f"CASE WHEN {asked(both)} THEN TRUE ELSE note LIKE 'f' END",
    ):
        with pytest.raises(QueryRefused, match="more than 400 characters together"):
            counted(condition)


def test_the_limit_counts_every_clause() -> None:
    both = asked([sign * 200 for sign in "ab"])
    for text in (
        f"SELECT SUM(CASE WHEN {both} THEN 1 ELSE 0 END) FROM r WHERE note LIKE 'f'",
        f"SELECT note LIKE 'f' AS k, COUNT(*) FROM r WHERE {both} GROUP BY k",
        f"SELECT COUNT(*) FROM (SELECT note FROM r WHERE note LIKE 'f') t WHERE {both}",
        f"SELECT COUNT(*) FROM (SELECT note, note LIKE 'f' AS k FROM r) t WHERE k OR {both}",
    ):
        with pytest.raises(QueryRefused, match="more than 400 characters together"):
            TABLE.question(text).forecast(epsilon=1)


def test_a_longer_text_is_null_to_functions() -> None:
    assert counted("note LIKE '%a'") == 1
    assert counted("LENGTH(note) IS NULL") == 1
    assert counted("note IS NULL") == 0
    assert counted("(note || note) LIKE 'a%'") == 0
    assert counted("((note || note) || note) IS NULL") == 2
