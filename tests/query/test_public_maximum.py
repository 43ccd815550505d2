"""COUNT(DISTINCT x) and its interval stay within the number of values that x can have."""

import datetime
from itertools import product
from typing import Any

import pandas as pd
import pytest

import discreet as dp
from tests.query.kit import without_noise

FIRST = datetime.date(2024, 1, 1)
GROUPS = 60
COLUMNS = {
    "g": dp.Column.integer(keys=range(GROUPS)),
    "i": dp.Column.integer(-1, 3),
    "b": dp.Column.boolean(),
    "d": dp.Column.date(FIRST, FIRST + datetime.timedelta(2)),
    "m": dp.Column.number(0, 1, decimals=1),
    "x": dp.Column.number(0, 1),
    "k": dp.Column.integer(keys=[1, 2]),
    "t": dp.Column.text(keys=["a", "b"]),
}
MOST = {  # and the number in rows that have every value, some of them out of bounds
    "i": 5,
    "b": 2,
    "d": 3,
    "m": 11,
    "i * 2": 9,
    "i > 0": 2,
    "x": None,
    "k": None,
    "t": None,
}
FOUND = {"i": 5, "b": 2, "d": 3, "m": 11, "i * 2": 5, "i > 0": 2, "x": 20, "k": 20, "t": 20}


def _table(epsilon: float = 999) -> dp.Table:
    rows = [
        {
            "g": place % GROUPS,
            "i": value - 5,
            "b": value % 2 == 0,
            "d": FIRST + datetime.timedelta(value),
            "m": value / 10,
            "x": value / 20,
            "k": value,
            "t": str(value),
        }
        for place in range(GROUPS)
        for value in range(20)
    ]
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=epsilon))
    frame = pd.DataFrame(rows)
    return dp.Table(frame, name="t", unit=dp.Unit.ROW, columns=COLUMNS, ledger=ledger)


@pytest.mark.parametrize("argument", MOST)
def test_no_number_is_above_the_public_maximum(argument: str) -> None:
    """Noise of this size exceeds it in nearly half of the groups: that none does by chance has a
    probability below 2^-50."""
    question = _table().question(f"SELECT g, COUNT(DISTINCT {argument}) AS n FROM t GROUP BY g")
    most, answers = MOST[argument], question.release(epsilon=0.01).rows()
    for ending in ("", "_low", "_high"):
        numbers: list[Any] = [row[f"n{ending}"] for row in answers]
        if most is None:
            assert ending == "_low" or max(numbers) > 20
        else:
            assert max(numbers) <= most
    high: list[Any] = [row["n_high"] for row in answers]
    assert most is None or high.count(most) > len(high) / 4


@pytest.mark.parametrize("argument", MOST)
def test_the_maximum_cuts_no_number_without_noise(argument: str) -> None:
    """Rows may have values that are not among the declared keys, so keys are no maximum."""
    question = _table().question(f"SELECT COUNT(DISTINCT {argument}) AS n FROM t")
    assert without_noise(question).rows()[0]["n"] == FOUND[argument]


@pytest.mark.parametrize(
    "argument", ["m - p", "m + p", "0.1 * i + 0.1 * j", "m + 0.1 * i", "m * p", "i + j", "m"]
)
def test_all_floats_of_a_result_are_counted(argument: str) -> None:
    """0.1 + 0.2 and 0.3 are two, though exact arithmetic has one number with one decimal."""
    tenths = [n / 10 for n in range(11)]
    rows = [
        {"m": m, "p": p, "i": i, "j": j}
        for m, p in product(tenths, tenths)
        for i, j in product(range(6), range(6))
    ]
    columns = {
        **{name: dp.Column.number(0, 1, decimals=1) for name in "mp"},
        **{name: dp.Column.integer(0, 5) for name in "ij"},
    }
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1))
    frame = pd.DataFrame(rows)
    table = dp.Table(frame, name="t", unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    found = without_noise(table.question(f"SELECT COUNT(DISTINCT {argument}) AS n FROM t"))
    assert found.rows()[0]["n"] == len({eval(argument, {}, row) for row in rows})


def test_where_lowers_the_maximum_and_sums_are_computed_from_cut_numbers() -> None:
    text = (
        "SELECT g, COUNT(DISTINCT i) AS n, COUNT(DISTINCT b) AS m, COUNT(DISTINCT i) - "
        "COUNT(DISTINCT b) AS c FROM t WHERE i < 1 GROUP BY g"
    )
    for row in _table().sql(text, epsilon=0.05).rows():
        numbers: Any = row
        assert numbers["n"] <= numbers["n_high"] <= 2
        assert numbers["c"] == max(numbers["n"], 0) - max(numbers["m"], 0)
        assert numbers["c_low"] <= numbers["c"] <= numbers["c_high"]


def test_a_forecast_says_when_the_interval_is_as_wide_as_the_maximum() -> None:
    question = _table().question("SELECT COUNT(DISTINCT b) AS n, COUNT(DISTINCT x) AS m FROM t")
    warnings = question.forecast(epsilon=1, group_size=500).warnings
    assert [text.partition(":")[0] for text in warnings] == ["n"]
