"""Histograms, modes, contingency tables and correlations in one call."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import InvalidArgument, QueryRefused, RequestReused
from discreet.ledger import Kind
from discreet.query import AggregateFunction, Column, Declaration, Selection, Table, aggregate
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._statistics._histogram import edges_of, most_bins
from discreet.query._statistics._statistic import Statistic
from tests.query.wages import WAGES, plan_sql

COLUMNS = {
    "g": Column.text(keys=["a", "b"]),
    "k": Column.integer(0, 9, keys=[1, 3, 5]),
    "x": Column.number(-1, 4),
    "y": Column.number(0, 10),
    "age": Column.integer(0, 100),
    "note": Column.text(),
}


def frame_of(rows: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(rows)
    x = random.normal(1, 1, rows)
    return pd.DataFrame(
        {
            "person": np.arange(rows) // 2,
            "g": random.choice(["a", "b", "z"], rows),
            "k": random.choice([1, 3, 5, 7], rows, p=[0.2, 0.5, 0.2, 0.1]),
            "x": np.where(random.random(rows) < 0.1, np.nan, x),
            "y": np.clip(2 * x + 3 + random.normal(size=rows), 0, 10),
            "age": random.integers(0, 101, rows),
            "note": "n",
        }
    )


def table_of(
    frame: pd.DataFrame,
    unit: dp.Unit = dp.Unit.ROW,
    rows: int | None = None,
    change: dp.Change = dp.Change.ADD_REMOVE,
) -> Table:
    by = unit.with_change(change)
    ledger = dp.Ledger.in_memory(unit=by, limit=dp.Limit(epsilon=10**7))
    return Table(frame, name="t", unit=by, rows=rows, columns=COLUMNS, ledger=ledger)


# --- histograms ---


@pytest.mark.parametrize("bins", [None, 1, 7, [-1, 0, 0.25, 2], [0, 1, 2, 4, 9], [-3, 9]])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_a_histogram_counts_the_rows_between_edges(bins: Any, by: tuple[str, ...]) -> None:
    frame = frame_of()
    answer = table_of(frame).histogram("x", bins, by=by, epsilon=10**4)
    assert answer.columns[: len(by) + 2] == (*by, "x_from", "x_to")
    clipped = frame.assign(x=frame.x.clip(-1, 4))
    for group in ["a", "b"] if by else [None]:
        rows = [row for row in answer.rows() if not by or row["g"] == group]
        edges = [rows[0]["x_from"], *(row["x_to"] for row in rows)]
        values = clipped.x if group is None else clipped.x[clipped.g == group]
        counts, _ = np.histogram(values.dropna(), np.array(edges, dtype=float))
        assert [row["count"] for row in rows] == counts.tolist()
    assert "x_from" in str(answer)
    assert len(answer.to_pandas()) == len(answer.rows())


def test_the_last_bin_of_whole_numbers_is_no_wider() -> None:
    columns = {"n": Column.integer(0, 5)}
    table = Declaration("t", dp.Unit.ROW, dp.query.Caps(1), columns)
    assert edges_of("n", None, table) == tuple(map(Fraction, range(7)))


_ENDS = st.decimals(-(10**6), 10**6, places=3)


@settings(max_examples=100)
@given(st.lists(_ENDS, min_size=2, max_size=2, unique=True), st.integers(2, 40), st.booleans())
def test_round_edges_cover_the_bounds_with_few_bins(
    ends: list[Any], most: int, is_whole: bool
) -> None:
    lower, upper = sorted(Fraction(end) for end in ends)
    column = Column.number(lower, upper)
    if is_whole:
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
        column = Column.integer(int(lower), int(upper))
    table = Declaration("t", dp.Unit.ROW, dp.query.Caps(1), {"x": column})
    edges = edges_of("x", None, table, most)
    steps = {after - before for before, after in pairwise(edges)}
    assert len(steps) == 1
    assert edges[0] <= lower < edges[1]
    assert edges[-2] <= upper <= edges[-1]
    (step,) = steps
    assert str(float(step)).strip("0.").replace("e+", "").strip("0.")[:2].strip("0.") in {
        *("1", "2", "25", "5", "10", "2.5"),
        *("1e", "2e", "5e", "2."),
    }
    assert len(edges) - 1 <= most + is_whole
    assert not is_whole or step.denominator == 1


def test_fewer_rows_get_fewer_bins() -> None:
    assert [most_bins(rows, 10) for rows in (1, 100, 400, 10**6)] == [2, 2, 10, 20]
    table = table_of(frame_of())
    few = table.histogram("y", group_size=100, epsilon=0.2).table.num_rows
    many = table.histogram("y", group_size=10_000, epsilon=0.2).table.num_rows
    assert 2 <= few < many == 20


# --- modes ---


@pytest.mark.parametrize("change", list(dp.Change))
@pytest.mark.parametrize(("unit", "rows"), [(dp.Unit.ROW, None), (dp.Unit("person"), 2)])
def test_a_mode_is_the_most_frequent_key(
    unit: dp.Unit, rows: int | None, change: dp.Change
) -> None:
    frame = frame_of(2_000)
    table = table_of(frame, unit, rows, change)
    found = table.mode("k", by="g", epsilon=10**4)
    assert found.rows() == [{"g": "a", "k": 3}, {"g": "b", "k": 3}]
    others = table.where(dp.col("k") != 3, dp.col("g") == "a").mode("k")
    assert others.release(epsilon=10**4).rows()[0]["k"] in (1, 5)
    assert found.error == 0
    assert "most frequent k" in str(found)
    moved = (1 if rows is None else rows) * (2 if change is dp.Change.REPLACE else 1)
    cost = table.mode("k", by="g", epsilon=1).privacy_loss.epsilon()
    assert cost == 1
    assert table.mode("k", by="g", epsilon=1).error <= 12 * moved


def test_a_mode_of_a_number_with_bounds_is_among_them() -> None:
    (row,) = table_of(frame_of(2_000)).mode("age", epsilon=0.001).rows()
    assert 0 <= int(str(row["age"])) <= 100


# --- contingency tables ---


def test_a_contingency_table_has_the_counts_of_all_pairs() -> None:
    frame = frame_of()
    found = table_of(frame).contingency("g", "k", epsilon=10**4)
    true = pd.crosstab(frame.g, frame.k).loc[["a", "b"], [1, 3, 5]]
    assert found.to_pandas().to_numpy().tolist() == true.to_numpy().tolist()
    assert [row["count"] for row in found.rows()] == true.to_numpy().ravel().tolist()
    first, second, total = found.totals
    assert (first.tolist(), second.tolist()) == (true.sum(axis=1).tolist(), true.sum().tolist())
    assert total == true.to_numpy().sum()
    assert found.error == 0
    assert found.chi_square().is_large_enough
    assert "total" in str(found)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_totals_have_errors_of_their_own(delta: float) -> None:
    frame = frame_of()
    found = table_of(frame).contingency("g", "k", epsilon=0.5, delta=delta)
    one, three, many = (found.error_of_sum(cells) for cells in (1, 3, 200))
    assert one == found.error < three < 3 * one
    assert three < many < 200 * one
    with pytest.raises(InvalidArgument):
        found.error_of_sum(0)


def test_a_test_of_dependent_rows_is_refused() -> None:
    found = table_of(frame_of(), dp.Unit("person"), 2).contingency("g", "k", epsilon=1)
    with pytest.raises(InvalidArgument, match="independent"):
        found.chi_square()


# --- correlations ---


def test_correlations_are_a_matrix_with_intervals_that_hold_together() -> None:
    frame = frame_of(3_000)
    table = table_of(frame)
    found = table.correlation("x", "y", "age", epsilon=10**5)
    clipped = frame.assign(x=frame.x.clip(-1, 4))[["x", "y", "age"]]
    true = clipped.corr().to_numpy()
    assert np.allclose(found.matrix, true, atol=1e-3)
    assert (found.low <= true + 1e-6).all()
    assert (true - 1e-6 <= found.high).all()
    assert np.array_equal(found.matrix, found.matrix.T)
    assert (np.diag(found.matrix) == 1).all()
    assert "all together at 0.95" in str(found)
    for one in (found, table.correlation("x", "y", "age", epsilon=3)):
        printed = re.findall(r"^  (\w+), (\w+): (\S+) \.\. (\S+)$", str(one), re.MULTILINE)
        assert [pair[:2] for pair in printed] == [("x", "y"), ("x", "age"), ("y", "age")]
        for i, j, low, high in printed:
            at = one.columns.index(i), one.columns.index(j)
            assert 0 <= one.low[at] - float(low) <= 0.0101
            assert 0 <= float(high) - one.high[at] <= 0.0101
    noisy = table.correlation("x", "y", "age", epsilon=0.01)
    assert (noisy.low >= -1).all()
    assert (noisy.high <= 1).all()
    assert str(noisy)
    each = table.group_by("g").correlation("x", "y", "age")
    assert [one.name for one in each.query.aggregates] == ["x_y", "x_age", "y_age"]


# --- all of them ---


def test_nothing_is_charged_for_what_is_refused() -> None:
    table = table_of(frame_of(10))
    refused: list[Callable[[], object]] = [
        lambda: table.histogram("note", epsilon=1),
        lambda: table.histogram("nobody", epsilon=1),
        lambda: table.histogram("x", 0, epsilon=1),
        lambda: table.histogram("x", True, epsilon=1),
        lambda: table.histogram("x", 10**6, epsilon=1),
        lambda: table.histogram("x", "ab", epsilon=1),  # type: ignore[arg-type]  # wrong on purpose
        lambda: table.histogram("x", [1], epsilon=1),
        lambda: table.histogram("x", [2, 1], epsilon=1),
        lambda: table.histogram("x", [1, float("nan")], epsilon=1),
        lambda: table.histogram("x", [0, Fraction(1, 3)], epsilon=1),
        lambda: table.histogram("x", group_size=0, epsilon=1),
        lambda: table.histogram("x", epsilon=0),
        lambda: table.histogram("x", epsilon=5e-324),
        lambda: table.group_by(x_from=dp.col("k")).released_histogram("x", epsilon=1),
        lambda: table.mode("note", epsilon=1),
        lambda: table.mode("x", epsilon=1),
        lambda: table.mode("k", by="k", epsilon=1),
        lambda: table.mode("k", epsilon=0),
        lambda: table.contingency("g", "g", epsilon=1),
        lambda: table.contingency("g", "x", epsilon=1),
        lambda: table.contingency("g", "k", epsilon=5e-324),
        lambda: table.group_by("g").contingency().release(epsilon=1),
        lambda: table.contingency("g", "k", epsilon=1, confidence=1),
        lambda: table.correlation("x", epsilon=1),
        lambda: table.correlation("x", "x", epsilon=1),
        lambda: table.correlation("x", "g", epsilon=1),
        lambda: table.correlation("x", 3, epsilon=1),  # type: ignore[arg-type]  # the same
        lambda: table.correlation("x", "y", epsilon=1, confidence=2),
    ]
    for call in refused:
        with pytest.raises((InvalidArgument, QueryRefused)):
            call()
    assert len(table.ledger.history()) == 1  # type: ignore[attr-defined]  # its opening


@pytest.mark.parametrize(
    "declared",
    [
        Column.integer(),
        Column.integer(keys=[0, 1]),
        Column.integer(0, 1),
        Column.number(0, 1),
        Column.text(),
        Column.text(keys=["0", "1"]),
        Column.boolean(),
        Column.date(),
        Column.date(date(2024, 1, 1), date(2024, 1, 9)),
    ],
    ids=str,
)
def test_each_call_takes_any_kind_of_column_or_refuses_it(declared: Column) -> None:
    """Without bounds, keys or a number in it, too; none is charged for being prepared."""
    frame = pd.DataFrame({"c": ["0", "1"], "x": [0.5, 1]})
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1))
    columns = {"c": declared, "x": Column.number(0, 2)}
    table = Table(frame, unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    rows = Selection(table)
    calls: list[Callable[[], object]] = [
        lambda: rows.rows("c"),
        lambda: rows.moments("x", "c"),
        lambda: rows.regression("x", on=["c"]),
        lambda: rows.regression("c", on=["x"]),
        lambda: rows.bounds("c"),
        lambda: rows.correlation("x", "c"),
        lambda: rows.quantiles("c", [0.5]),
        lambda: rows.describe("c"),
        lambda: rows.histogram("c"),
        lambda: rows.mode("c"),
        lambda: rows.group_by("c").contingency(),
        lambda: rows.group_by("c").top_k(1),
        lambda: rows.group_by("c").counts(),
        lambda: rows.group_by("c").agg(n=dp.count()).plan,
        *(
            lambda each=each: rows.agg(n=aggregate(each, "c", *["x"] * ESTIMATORS[each].takes_two))
            for each in AggregateFunction
        ),
    ]
    taken = 0
    for call in calls:
        with suppress(InvalidArgument, QueryRefused):
            call()
            taken += 1
    assert taken
    assert len(ledger.history()) == 1  # its opening


@pytest.mark.parametrize("kind", ["histogram", "mode", "contingency"])
def test_a_request_is_answered_again(kind: str) -> None:
    table = table_of(frame_of())

    def asked(least: int) -> object:
        some = table.where(dp.col("k") > least)
        match kind:
            case "histogram":
                return some.released_histogram("x", epsilon=1, request="r").rows()
            case "mode":
                return some.group_by("g").mode("k").release(epsilon=1, request="r").rows()
        return some.group_by("g", "k").contingency().release(epsilon=1, request="r").rows()

    assert asked(0) == asked(0)
    with pytest.raises(RequestReused):
        asked(1)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("HISTOGRAM(wage)", "WIDTH_BUCKET"),
        ("COVAR(wage, educ)", "COVAR_SAMP"),
        ("REGR_SLOPE(wage, educ)", r"table\.regression"),
    ],
)
def test_sql_names_the_call_that_does_it(call: str, advice: str) -> None:
    with pytest.raises(QueryRefused, match=advice):
        plan_sql(f"SELECT {call} FROM wages", WAGES)


STATISTICS: dict[str, Callable[[Selection], Statistic[Any]]] = {
    "top_k": lambda rows: rows.group_by("k").top_k(2),
    "mode": lambda rows: rows.mode("k"),
    "contingency": lambda rows: rows.group_by("g", "k").contingency(),
    "moments": lambda rows: rows.moments("x"),
    "regression": lambda rows: rows.regression("x", on=["y"]),
    "bounds": lambda rows: rows.bounds("x"),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_costs_nothing_before_it_is_released(name: str) -> None:
    """Of filtered rows; ``by`` says who asks, as of any question."""
    ledger = dp.Ledger.in_memory(unit=dp.Unit("person"), limit=dp.Limit(epsilon=10, delta=1e-3))
    table = Table(frame_of(), unit=dp.Unit("person"), rows=2, columns=COLUMNS, ledger=ledger)
    asked = STATISTICS[name](table.where(dp.col("y") > 3))
    assert name in repr(asked)
    assert ledger.spent().charges == 0
    asked.release(epsilon=1, by="ana")
    assert [entry.by for entry in ledger.history() if entry.kind is Kind.CHARGE] == ["ana"]
    if asked.is_pure:
        with pytest.raises(InvalidArgument, match=f"{name}: its noise has no use for a delta"):
            asked.release(epsilon=1, delta=1e-6)
        assert ledger.spent().charges == 1


@pytest.mark.parametrize("name", ["top_k", "mode", "contingency", "correlation"])
def test_every_answer_names_its_caps(name: str) -> None:
    table = table_of(frame_of(), dp.Unit("person"), 2)
    calls: dict[str, Callable[[], object]] = {
        "top_k": lambda: table.top_k("k", 2, epsilon=1),
        "mode": lambda: table.mode("k", epsilon=1),
        "contingency": lambda: table.contingency("g", "k", epsilon=1),
        "correlation": lambda: table.correlation("x", "y", epsilon=1),
    }
    assert "one person counts for at most 2 rows" in repr(calls[name]())


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_has_a_forecast_that_costs_nothing_or_says_why_not(name: str) -> None:
    """It reads no row, opens no ledger, and names the price of the release."""
    table = Table(frame_of(), unit=dp.Unit("person"), rows=2, columns=COLUMNS)
    asked = STATISTICS[name](table.where(dp.col("y") > 3))
    if name == "bounds":
        with pytest.raises(QueryRefused, match="no error can be forecast"):
            asked.forecast(epsilon=1)
        return
    few, much = asked.forecast(epsilon=1), asked.forecast(epsilon=100, group_size=10**6)
    assert few.privacy_loss.epsilon() <= 1
    assert list(few.errors) == list(much.errors)
    assert all(much.errors[one] < few.errors[one] for one in few.errors)
    assert str(few).startswith("expected error at 0.95 confidence")
    paid = table_of(frame_of(), dp.Unit("person"), 2).where(dp.col("y") > 3)
    STATISTICS[name](paid).release(epsilon=1)
    assert paid.table.ledger.history()[-1].loss == few.privacy_loss  # type: ignore[attr-defined]  # a ledger has it
    for wrong in ({"epsilon": 0}, {"epsilon": 1, "confidence": 1}, {"epsilon": 1, "group_size": 0}):
        with pytest.raises(InvalidArgument):
            asked.forecast(**wrong)
