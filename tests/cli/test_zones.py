"""Time zones and decimals of columns: those of a Parquet file's schema, and those of options."""

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


def test_options_state_zones_and_decimals(run: Run) -> None:
    moment = datetime.datetime(2024, 3, 31, 23, tzinfo=datetime.UTC)
    columns = {"at": pa.array([moment], pa.timestamp("us", "UTC")), "pay": [1.25], "k": [1]}
    pq.write_table(pa.table(columns), "t.parquet")
    given = ["declare", "t.parquet", "--row", "--epsilon", "1", "--bound", "pay=0..10"]
    options = ["--zone", "at=Asia/Tokyo", "--decimals", "pay=2"]
    assert run(*given, *options).code == 0
    facts = dp.open("discreet.toml")["t"].declaration.columns
    assert (facts["at"].zone, facts["pay"].decimals) == ("Asia/Tokyo", 2)
    assert run("declare", "t.parquet", "--zone", "at=Europe/Berlin").code == 0
    changed = dp.open("discreet.toml")["t"].declaration.columns
    assert changed["at"].zone == "Europe/Berlin"
    assert changed["pay"] == facts["pay"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--zone", "at=Asia/Tokio"], "did you mean 'Asia/Tokyo'"),
        (["--zone", "k=UTC", "--type", "k=integer"], "only dates have one"),
        (["--decimals", "pay=0"], "from 1 to"),
        (["--decimals", "pay=two"], "from 1 to"),
        (["--decimals", "k=2"], "only numbers have decimals"),
        (["--decimals", "pay=2", "--decimals", "pay=3"], "give it once"),
    ],
)
def test_wrong_zones_and_decimals_are_refused(run: Run, options: list[str], said: str) -> None:
    moment = datetime.datetime(2024, 3, 31, 23, tzinfo=datetime.UTC)
    columns = {"at": pa.array([moment], pa.timestamp("us", "UTC")), "pay": [1.25], "k": [1]}
    pq.write_table(pa.table(columns), "t.parquet")
    found = run("declare", "t.parquet", "--row", "--epsilon", "1", "--bound", "pay=0..10", *options)
    assert found.code == 2
    assert said in found.message
    assert not Path("discreet.toml").exists()
