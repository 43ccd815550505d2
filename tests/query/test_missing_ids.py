"""Rows without an id are nobody's: they change no answer, whatever marks them."""

from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from discreet._unit import Unit
from discreet.audit import replay
from discreet.query import Caps, Column, Declaration, Query, Question, QuestionPrice, Table
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._plan._plan import plan
from tests.missing_ids import COLUMNS, IDS
from tests.query.kit import asking, without_noise

PLACES = ["a", "b", "a", "a", "b", "b", "a"]
WAGES = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
AGGREGATES = (
    Aggregate(AggregateFunction.COUNT, None, "n"),
    Aggregate(AggregateFunction.SUM, ColumnRef("wage"), "pay"),
    Aggregate(AggregateFunction.AVG, ColumnRef("wage"), "mean"),
)
QUERIES = {"all": Query("t", AGGREGATES), "by place": Query("t", AGGREGATES, ("place",))}


def declared(caps: Caps) -> Declaration:
    columns = {"wage": Column.number(0, 100), "place": Column.text(keys=["a", "b"])}
    return Declaration("t", Unit("person"), caps, columns)


def arrow(column: Any) -> pa.Table:
    """The rows under these ids, whichever library holds them."""
    ids = column if isinstance(column, pa.Array) else pa.array(column, from_pandas=False)
    return pa.table({"person": ids, "wage": WAGES, "place": PLACES})


def answer(frame: Any, query: Query, caps: Caps) -> list[list[Any]]:
    table = Table.declared(frame, declared(caps))
    found = without_noise(Question(table, plan(query, table.declaration))).to_pandas()
    return [[*row] for row in found.itertuples(index=False)]


@pytest.mark.parametrize(
    ("query", "caps"), [("all", Caps(1)), ("by place", Caps(18, groups=9, rows_per_group=2))]
)
@pytest.mark.parametrize("column", [*COLUMNS, "decimals"])
def test_rows_without_an_id_change_no_answer(column: str, query: str, caps: Caps) -> None:
    """Numbers that are NaN, and not NULL, among them."""
    if column == "decimals":
        given: Any = pa.array([None if own is None else Decimal(own) for own in IDS])
    else:
        given = COLUMNS[column]()
    rows = arrow(given)
    known = rows.take([place for place, own in enumerate(IDS) if own is not None])
    assert answer(rows, QUERIES[query], caps) == answer(known, QUERIES[query], caps)


@pytest.mark.parametrize("column", ["floats", "objects", "texts", "a series of integers"])
def test_frames_of_pandas_are_read_alike(column: str) -> None:
    frame = pd.DataFrame({"person": COLUMNS[column](), "wage": WAGES, "place": PLACES})
    known = frame[[own is not None for own in IDS]]
    query = QUERIES["by place"]
    assert answer(frame, query, Caps(18, groups=9, rows_per_group=2)) == answer(
        known, query, Caps(18, groups=9, rows_per_group=2)
    )


def test_nobodys_rows_show_nowhere() -> None:
    """Not in the charge, the schema or the draws either: a row that loses its id is a unit's, and
    may change the sums by what that unit may."""
    act = asking(declared(Caps(1)), QUERIES["by place"], QuestionPrice(1))
    one = arrow(COLUMNS["floats"]())
    other = one.set_column(
        0, "person", pa.array([1.0, float("nan"), *one["person"].to_pylist()[2:]])
    )
    replay(act, one, other)
