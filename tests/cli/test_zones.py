"""A declaration takes the time zone that a Parquet file's schema names."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from tests.cli.kit import Run


@pytest.mark.parametrize(("zone", "written"), [("Asia/Tokyo", "Asia/Tokyo"), ("+02:00", "UTC")])
def test_the_zone_of_the_schema_is_written(run: Run, zone: str, written: str) -> None:
    moment = datetime.datetime(2024, 3, 31, 1, tzinfo=datetime.UTC)
    pq.write_table(pa.table({"at": pa.array([moment], pa.timestamp("us", zone))}), "t.parquet")
    assert run("declare", "t.parquet", "--row", "--epsilon", "1").code == 0
    assert f'zone = "{written}"' in Path("discreet.toml").read_text(encoding="utf-8")
    table = dp.open("discreet.toml")["t"]
    assert table.declaration.columns["at"].zone == written
    assert table.agg(n=dp.count("at")).release(epsilon=0.1).rows()
