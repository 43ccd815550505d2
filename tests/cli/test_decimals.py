"""A declaration takes the decimals of a Parquet file's schema."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from tests.cli.kit import Run


@pytest.mark.parametrize(("upper", "is_written"), [("100", True), ("100.125", False)])
def test_the_decimals_of_the_schema_are_written(run: Run, upper: str, is_written: bool) -> None:
    prices = pa.array([Decimal("1.25")], pa.decimal128(9, 2))
    pq.write_table(pa.table({"price": prices}), "t.parquet")
    bound = f"price=0..{upper}"
    assert run("declare", "t.parquet", "--row", "--epsilon", "1", "--bound", bound).code == 0
    assert ("decimals = 2" in Path("discreet.toml").read_text(encoding="utf-8")) is is_written
    found = dp.open("discreet.toml")["t"].declaration.columns["price"].decimals
    assert found == (2 if is_written else None)
