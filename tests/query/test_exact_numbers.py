"""Numbers with declared decimals are exact: their sums are those of decimal arithmetic."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.query import Caps, Column, ColumnType, Table
from discreet.query._facts._declaration import Declaration
from discreet.query._plan._plan import plan
from tests.query.kit import without_noise
from tests.query.wages import plan_sql

PRICES = [Decimal(n) for n in ("0.10", "0.20", "0.30", "1999.99", "-12.34", "0.01", "777.77")] * 9
TOTAL = sum(PRICES)


def _parquet(folder: Path) -> Path:
    rows = pa.table({"price": pa.array(PRICES, pa.decimal128(9, 2))})
    pq.write_table(rows, folder / "prices.parquet")
    return folder / "prices.parquet"


def _csv(folder: Path) -> Path:
    (folder / "prices.csv").write_text("\n".join(["price", *map(str, PRICES)]) + "\n")
    return folder / "prices.csv"


SOURCES: dict[str, Callable[[Path], object]] = {
    "arrow": lambda _: pa.table({"price": pa.array(PRICES, pa.decimal128(9, 2))}),
    "csv": _csv,
    "floats": lambda _: pd.DataFrame({"price": [float(price) for price in PRICES]}),
    "pandas": lambda _: pd.DataFrame({"price": PRICES}).astype(
        {"price": pd.ArrowDtype(pa.decimal128(9, 2))}
    ),
    "parquet": _parquet,
    "polars": lambda _: pl.DataFrame({"price": PRICES}, schema={"price": pl.Decimal(9, 2)}),
}


def _table(source: object, decimals: int | None = 2) -> Table:
    columns = {"price": Column.number(-1_000, 2_000, decimals=decimals)}
    return Table(source, name="t", unit=dp.Unit.ROW, columns=columns)


@pytest.mark.parametrize("source", SOURCES)
def test_a_sum_is_that_of_decimal_arithmetic(source: str, tmp_path: Path) -> None:
    table = _table(SOURCES[source](tmp_path))
    price = dp.col("price")
    asked = table.agg(
        total=dp.sum("price"), twice=dp.sum(price * 2), more=dp.sum(price + 0.5), n=dp.count()
    )
    (row,) = without_noise(asked).rows()
    assert row["total"] == float(TOTAL)
    assert row["twice"] == float(2 * TOTAL)
    assert row["more"] == float(TOTAL + Decimal("0.5") * len(PRICES))
    steps = {one.name: one.step for one in asked.plan.sums}
    assert steps["sum(price)"] == steps["sum((price * 2))"] == Fraction(1, 100)
    found = without_noise(table.where(price == 0.1).agg(n=dp.count())).rows()
    assert found[0]["n"] == 9


@settings(max_examples=20, deadline=None)
@given(st.lists(st.decimals(-900, 900, places=3), min_size=1, max_size=30), st.integers(1, 6))
def test_any_decimals_are_rounded_to_those_declared(values: list[Decimal], digits: int) -> None:
    columns = {"x": Column.number(-900, 900, decimals=digits)}
    rows = pa.table({"x": pa.array([str(value) for value in values])})
    table = Table(rows, name="t", unit=dp.Unit.ROW, columns=columns)
    (row,) = without_noise(table.agg(s=dp.sum("x")), epsilon=10**4).rows()
    found = Decimal(repr(row["s"]))
    exact = sum(values)
    assert abs(found - exact) <= (0 if digits >= 3 else len(values) * Decimal(10) ** -digits / 2)
    assert found == round(found, digits)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("SUM(price)", Fraction(1, 100)),
        ("SUM(price * price)", Fraction(1, 10_000)),
        ("SUM(price - 0.125)", Fraction(1, 1_000)),
        ("SUM(price / 3)", None),
        ("SUM(SQRT(price))", None),
        ("AVG(price)", Fraction(1, 100)),
    ],
)
def test_the_grid_has_the_decimals_of_the_argument(text: str, step: Fraction | None) -> None:
    columns = {"price": Column.number(0, 2_000, decimals=2)}
    declared = Declaration("t", dp.Unit("person"), Caps(3), columns)
    found = plan_sql(f"SELECT {text} FROM t", declared).sums[0].step
    assert found == step if step is not None else found.denominator & (found.denominator - 1) == 0
    assert plan(plan_sql(f"SELECT VARIANCE{text[3:]} FROM t", declared).query, declared).sums


@pytest.mark.parametrize(
    "make",
    [
        lambda: Column.number(0, 1, decimals=0),
        lambda: Column.number(0, 1, decimals=16),
        lambda: Column.number(0, 1, decimals=True),
        lambda: Column.number(0, 10**9, decimals=9),
        lambda: Column.number(0, 0.125, decimals=2),
        lambda: Column.number(0, 1, decimals=1, null=0.25),
        lambda: Column(ColumnType.TEXT, decimals=2),
    ],
)
def test_decimals_that_numbers_cannot_have_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgument):
        make()


def test_more_digits_than_the_caps_leave_room_for_fall_back() -> None:
    columns = {"x": Column.number(0, 1_000, decimals=12)}
    declared = Declaration("t", dp.Unit("person"), Caps(2**20), columns)
    (one,) = plan_sql("SELECT SUM(x) FROM t", declared).sums
    assert one.grid is not None
    assert one.grid.decimals == 0
