"""Times with a zone count on the day of the zone that the declaration names, and no other."""

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DeclarationError, InvalidArgument
from discreet.ledger import Kind
from discreet.query import Table
from discreet.query._engines import _engine
from discreet.query._engines._conversion import declarable
from discreet.query._facts._columns import ColumnType
from tests.query import postgres_tables
from tests.query.kit import without_noise

ZONES = [
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "UTC",
]
_UTC = datetime.UTC
MOMENTS = [  # around midnights, changes of clocks, and the ends of years
    datetime.datetime(2024, 3, 31, 0, 59, 59, 999_999, _UTC),
    datetime.datetime(2024, 3, 31, 1, 0, tzinfo=_UTC),
    datetime.datetime(2024, 10, 27, 0, 30, tzinfo=_UTC),
    datetime.datetime(2024, 10, 27, 1, 30, tzinfo=_UTC),
    datetime.datetime(2024, 3, 10, 6, 59, tzinfo=_UTC),
    datetime.datetime(2024, 3, 10, 7, 1, tzinfo=_UTC),
    datetime.datetime(2024, 12, 31, 22, 59, 59, tzinfo=_UTC),
    datetime.datetime(2024, 12, 31, 23, 0, tzinfo=_UTC),
    datetime.datetime(2011, 12, 30, 9, 59, tzinfo=_UTC),  # a day that Apia skipped
    datetime.datetime(2011, 12, 30, 10, 1, tzinfo=_UTC),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, _UTC),
    datetime.datetime(2024, 4, 6, 14, 45, tzinfo=_UTC),
]
FIRST, LAST = datetime.date(1950, 1, 1), datetime.date(2100, 1, 1)
Source = Callable[[Path], object]


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"at": pd.to_datetime(MOMENTS, utc=True).tz_convert("Asia/Tokyo")})


def _arrow(unit: str) -> pa.Table:
    return pa.table({"at": pa.array(MOMENTS, pa.timestamp(unit, "Asia/Tokyo"))})


def _parquet(folder: Path) -> Path:
    pq.write_table(_arrow("us"), folder / "times.parquet")
    return folder / "times.parquet"


def _csv(folder: Path) -> Path:
    written = [moment.astimezone(ZoneInfo("Asia/Tokyo")).isoformat() for moment in MOMENTS]
    (folder / "times.csv").write_text("\n".join(["at", *written]) + "\n")
    return folder / "times.csv"


SOURCES: dict[str, Source] = {
    "arrow ns": lambda _: _arrow("ns"),
    "arrow us": lambda _: _arrow("us"),
    "csv": _csv,
    "pandas": lambda _: _frame(),
    "parquet": _parquet,
    "polars": lambda _: pl.from_arrow(_arrow("us")),
}


def _table(source: object, zone: str | None, *days: datetime.date) -> Table:
    keys = sorted(set(days)) or None
    column = dp.Column.date(FIRST, LAST, keys=keys, zone=zone)
    return Table(source, name="t", unit=dp.Unit.ROW, columns={"at": column})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_time_counts_on_its_day_in_the_declared_zone(
    source: str, zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Honolulu")
    time.tzset()
    expected = [moment.astimezone(ZoneInfo(zone)).date() for moment in MOMENTS]
    table = _table(SOURCES[source](tmp_path), zone, *expected)
    answer = without_noise(table.group_by("at").agg(n=dp.count())).rows()
    monkeypatch.undo()
    time.tzset()
    counts = {row["at"]: row["n"] for row in answer}
    assert counts == {day: expected.count(day) for day in set(expected)}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_makes_an_answer_fail(unit: str) -> None:
    ends = [-(2**63), -(2**63) + 1, -(2**62), -1, 0, 2**62, 2**63 - 1, None]
    rows = pa.table({"at": pa.array(ends, pa.timestamp(unit, "UTC"))})
    for zone in ZONES:
        table = _table(rows, zone)
        (row,) = without_noise(table.agg(n=dp.count("at"))).rows()
        assert row["n"] in range(1, len(ends))


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-31T23:30:00Z", datetime.date(2024, 4, 1)),
        ("2024-03-31 23:30:00.123456789+02:00", datetime.date(2024, 3, 31)),
        ("2024-03-31 23:30-0500", datetime.date(2024, 4, 1)),
        ("2024-03-31 23:30+00", datetime.date(2024, 4, 1)),
        ("2024-03-31 23:30:00", datetime.date(2024, 3, 31)),  # of the zone itself
        ("2024-03-31", datetime.date(2024, 3, 31)),
        ("2024-02-30 01:00Z", None),
        ("2024-03-31 25:30Z", None),
        ("9999-12-31 23:59Z", None),
        ("noon", None),
    ],
)
def test_a_text_with_an_offset_is_a_moment(text: str, day: datetime.date | None) -> None:
    table = _table(pa.table({"at": [text]}), "Europe/Berlin")
    known = table.where(dp.col("at").is_null() if day is None else dp.col("at") == day)
    assert without_noise(known.agg(n=dp.count())).rows()[0]["n"] == 1


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_text_without_a_declared_zone_is_its_written_day(zone: str | None) -> None:
    """With a zone, so is a time without an offset."""
    days = [datetime.date(2013, 1, 1), datetime.date(2012, 2, 29)]
    times = ("00:00", "05:00:00", "23:59:59.999", "12:00:00.123456789")
    offsets = ("", *(("Z", "z", "+01:00", "-0800", "+14", "-00:00") if zone is None else ()))
    texts = [
        f" {day}{sign}{time}{offset} "
        for day in days
        for sign in "Tt "
        for time in times
        for offset in offsets
    ]
    answer = without_noise(
        _table(pa.table({"at": texts}), zone, *days).group_by("at").agg(n=dp.count())
    )
    assert {row["at"]: row["n"] for row in answer.rows()} == dict.fromkeys(days, len(texts) // 2)


@pytest.mark.parametrize(
    "text", ["2013-01-01T25:00Z", "2013-02-30T01:00Z", "2013-01-01Z", "T05:00Z"]
)
def test_a_text_with_a_wrong_day_or_time_is_missing(text: str) -> None:
    answer = without_noise(_table(pa.table({"at": [text]}), None).agg(n=dp.count("at")))
    assert answer.rows()[0]["n"] == 0


def test_the_engine_knows_the_zones_of_python() -> None:
    zones = sorted({*ZONES, "Europe/London", "America/Sao_Paulo", "Africa/Casablanca"})
    instants = [
        datetime.datetime(year, month, 15, 12, tzinfo=_UTC)
        for year in (1975, 2020)
        for month in (1, 7)
    ]
    rows = pa.table(
        {"at": pa.array([one.replace(tzinfo=None) for one in instants], pa.timestamp("us"))}
    )
    with _engine.opened() as engine:
        for zone in zones:
            given = engine.table(rows.schema)
            statement = engine.statement(given.select(day=_engine.local_day(given.at, zone)))
            found = engine.run(statement, rows).column("day").to_pylist()
            there = [one.astimezone(ZoneInfo(zone)).date() for one in instants]
            assert found == there


@pytest.mark.parametrize("source", ["here", "texts", "subquery", "server", "server's texts"])
@pytest.mark.parametrize("zone", ["localtime", "Mars/Base", "CET"])
def test_a_zone_that_the_engine_does_not_know_is_refused_before_the_charge(
    source: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's zones are the host's, and those of an engine are its own."""
    monkeypatch.setattr("discreet.query._facts._columns.available_timezones", lambda: {zone})
    at = ["2024-03-31T23:30:00Z"] if source == "texts" else pa.array(MOMENTS[:1])
    rows: object = pa.table({"who": [1], "at": at})
    if source.startswith("server"):
        name = postgres_tables.new_name()
        kind = "text" if source.endswith("texts") else "timestamptz"
        postgres_tables.run(
            f"CREATE TABLE {name} (who int8, at {kind})",
            f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
        )
        rows = postgres_tables.url(name)
    unit = dp.Unit("who")
    ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1))
    columns = {"at": dp.Column.date(FIRST, LAST, zone=zone)}
    table = Table(rows, name="t", unit=unit, columns=columns, rows=2, ledger=ledger)
    part = "SELECT who, at FROM t"
    named = "t" if source != "subquery" else f"({part} UNION ALL {part}) AS s"
    if zone == "CET" and not source.startswith("server"):
        table.sql(f"SELECT COUNT(at) FROM {named}", epsilon=1)
        return
    with pytest.raises(DeclarationError, match="doesn't know the days of the time zone"):
        table.sql(f"SELECT COUNT(at) FROM {named}", epsilon=1)
    assert all(entry.kind is not Kind.CHARGE for entry in ledger.history())


def test_a_zone_is_named_where_it_is_needed_and_nowhere_else() -> None:
    for source, zone, said in (
        (_arrow("us"), None, "name the zone of its days"),
        (pa.table({"at": pa.array([FIRST])}), "UTC", "leave out its zone"),
        (pa.table({"at": pa.array([MOMENTS[0]], pa.timestamp("us"))}), "UTC", "leave out its zone"),
    ):
        with pytest.raises(DeclarationError, match=said):
            _table(source, zone).agg(n=dp.count()).release(epsilon=1)
    wrong: list[dict[str, Any]] = [{"zone": "Berlin"}, {"zone": "UTC", "format": "%Y/%m/%d"}]
    for given in wrong:
        with pytest.raises(InvalidArgument):
            dp.Column.date(FIRST, LAST, **given)
    assert declarable(pa.timestamp("us", "UTC")) is ColumnType.DATE


def test_times_with_a_zone_identify_no_unit() -> None:
    rows = _arrow("us").append_column("x", pa.array([1.0] * len(MOMENTS)))
    table = Table(rows, unit=dp.Unit("at"), rows=1, columns={"x": dp.Column.number(0, 2)})
    with pytest.raises(DeclarationError, match="a type without a rule"):
        table.agg(n=dp.count()).release(epsilon=1)


def test_a_public_table_leaves_times_with_a_zone_out() -> None:
    rows = _arrow("us").append_column("k", pa.array(range(len(MOMENTS))))
    assert list(dp.PublicTable(rows, name="times").declaration.columns) == ["k"]
