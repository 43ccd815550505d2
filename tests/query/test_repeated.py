"""An aggregate that is asked twice, under any spelling, is paid and drawn once."""

import pandas as pd
import pytest

import discreet as dp
from discreet.query import Question, QuestionPrice, Table
from discreet.query._expressions._aggregates import ESTIMATORS, SPELLINGS, AggregateFunction
from discreet.query._workload import plan_workload

ROWS = pd.DataFrame({"g": list("ab") * 6, "x": [1, 50, 7] * 4, "y": [3, 3, 9, 40] * 3})
COLUMNS = {
    "g": dp.Column.text(keys=["a", "b"]),
    "x": dp.Column.integer(0, 60, null=0),
    "y": dp.Column.integer(0, 60, null=0),
}
LIMIT = dp.Limit(epsilon=10**5)


def table() -> Table:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=LIMIT)
    return Table(ROWS, name="t", unit=dp.Unit.ROW, columns=COLUMNS, ledger=ledger)


def _pairs() -> dict[str, str]:
    """Each spelling of an aggregate, with another text that means the same."""
    other = {
        AggregateFunction.COUNT: "COUNT(*)",
        AggregateFunction.MEDIAN: "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC)",
        AggregateFunction.MIN: "QUANTILE(x, 0.01)",
        AggregateFunction.MAX: "QUANTILE(x, 0.99)",
        AggregateFunction.MODE: "MODE() WITHIN GROUP (ORDER BY x)",
    }
    found = {"QUANTILE(x, 0.5)": "MEDIAN(x)"}
    for name, function in SPELLINGS.items():
        if function is AggregateFunction.COUNT_UNITS:  # each row is a unit here
            continue
        takes_two, takes_level = ESTIMATORS[function].takes_two, ESTIMATORS[function].takes_level
        given = "x, y" if takes_two else "x, 0.25" if takes_level else "x"
        same = f"{function.value}({'y, x' if takes_two else given})"
        found[f"{name}({given})"] = other.get(function, same)
    return found


def priced(*aggregates: str) -> Question:
    named = (f"{text} AS c{number}" for number, text in enumerate(aggregates))
    return table().question(f"SELECT g, {', '.join(named)} FROM t GROUP BY g")


@pytest.mark.parametrize(("one", "other"), _pairs().items())
def test_a_repeated_aggregate_costs_as_much_as_once(one: str, other: str) -> None:
    price = QuestionPrice(1, 1e-6)
    once = priced("SUM(y)", one).price(price, 0.95)
    for twice in (("SUM(y)", one, other), ("SUM(y)", other, one, one)):
        assert priced(*twice).price(price, 0.95).mechanisms == once.mechanisms


def test_repeated_columns_are_equal() -> None:
    texts = {text: None for pair in _pairs().items() for text in pair}
    names = {text: f"c{number}" for number, text in enumerate(texts)}
    answer = priced(*texts).release(epsilon=1)
    for row in answer.rows():
        for pair in _pairs().items():
            for end in ("", "_low", "_high", "_error"):
                assert row[names[pair[0]] + end] == row[names[pair[1]] + end]


def test_levels_that_are_asked_twice_stay_equal_when_they_are_sorted() -> None:
    """At this noise, the quantiles of a group come out in any order."""
    asked = priced("QUANTILE(x, 0.3)", "MEDIAN(x)", "QUANTILE(x, 0.5)", "QUANTILE(x, 0.7)")
    ledger = table()
    crossed = 0
    for _ in range(5):
        for row in Question.of(ledger, asked.query).release(epsilon=0.01).rows():
            assert row["c1"] == row["c2"]
            assert row["c0"] <= row["c1"] <= row["c3"]  # type: ignore[operator]  # numbers
            crossed += row["c0"] != row["c1"]
    assert crossed


def test_a_plan_of_several_questions_pays_once() -> None:
    both = ["SELECT MEDIAN(x) AS a FROM t", "SELECT QUANTILE(x, 0.5) AS b, SUM(y) FROM t"]
    once = ["SELECT MEDIAN(x) AS a FROM t", "SELECT SUM(y) FROM t"]
    planned = [plan_workload(table(), asked, epsilon=1).questions for asked in (both, once)]
    found = [[one.question.price(one.price, 0.95).mechanisms for one in some] for some in planned]
    assert found[0] == found[1]
    assert len(found[0]) == 1


@pytest.mark.parametrize("weights", [{"a": 4}, {"b": 4}, {"a": 4, "b": 4}])
def test_the_larger_weight_counts(weights: dict[str, float]) -> None:
    asked = table().question("SELECT MEDIAN(x) AS a, QUANTILE(x, 0.5) AS b, SUM(y) AS s FROM t")
    found = asked.price(QuestionPrice(1, weights=weights), 0.95)
    assert sorted(map(float, found.shares.values())) == [0.2, 0.8]
