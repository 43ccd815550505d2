"""Examples of questions, made of the declared facts of a table: each can be asked as it is."""

from datetime import date

import pandas as pd
import pytest

from discreet import Column, Ledger, Limit, Table, Unit
from discreet.service._desk import _facts
from discreet.service.pages._examples import examples

WARDS = ["north", "south", "surgery", "x, 'y'"]
COLUMNS = {
    "ward": Column.text(keys=WARDS),
    "Order by": Column.integer(keys=range(7)),
    "wide": Column.integer(keys=range(1000)),
    "age": Column.integer(0, 95),
    "cost": Column.number(-1, 1e9),
    "share": Column.number(0, 1),
    "day": Column.date(date(2024, 3, 1), date(2026, 2, 1)),
    "n": Column.boolean(),
    "note": Column.text(),
}


def asked(columns: list[str], unit: Unit) -> dict[str, str]:
    """The examples of a table with these columns, by their titles; each has a forecast."""
    frame = pd.DataFrame({"person id": [1], "ward": ["north"], "Order by": [1], "wide": [2]})
    frame["age"], frame["cost"], frame["share"], frame["n"] = [3], [1.5], [0.5], [True]
    frame["day"], frame["note"] = [date(2025, 1, 2)], ["a"]
    table = Table(
        frame,
        unit=unit,
        columns={name: COLUMNS[name] for name in columns},
        rows=2 if unit.columns else None,
        ledger=Ledger.in_memory(unit=unit, limit=Limit(epsilon=1)),
        name="group",
    )
    found = {one.title: one.sql for one in examples(_facts(table.declaration))}
    for sql in found.values():
        assert table.question(sql).forecast(epsilon=0.1).lines
    return found


@pytest.mark.parametrize("unit", [Unit("person id"), Unit.ROW], ids=str)
def test_each_example_can_be_asked(unit: Unit) -> None:
    found = asked([*COLUMNS], unit)
    assert found["Rows by ward"] == 'SELECT ward, COUNT(*) AS n_ FROM "group" GROUP BY ward'
    titles = {"Mean of age", "Median of age by ward", "Histogram of age", "Rows by month of day"}
    titles |= {"The 3 most frequent values of ward", "Correlation of age and cost"}
    assert titles <= found.keys()
    assert ("How many values of person id there are" in found) == bool(unit.columns)
    assert not [sql for sql in found.values() if "wide" in sql]  # a thousand groups of noise


@pytest.mark.parametrize("name", COLUMNS)
def test_one_column_has_examples_of_its_own(name: str) -> None:
    found = asked([name], Unit("person id"))
    assert len(found) == len(set(found.values()))
    has_some = name not in ("wide", "note")
    assert (len(found) > 2) == has_some


def test_bins_have_round_edges_in_the_answer() -> None:
    found = asked(["age"], Unit("person id"))
    assert found["Histogram of age"] == (
        'SELECT FLOOR(age / 10) * 10 AS age_from, COUNT(*) AS n FROM "group" '
        "GROUP BY FLOOR(age / 10) * 10"
    )
