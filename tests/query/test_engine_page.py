"""The table of `docs/engines.md` says of each engine what it refuses, and the engines agree."""

import datetime
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.query import Table
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._rows._source import check_schema, served_by
from tests.query import postgres_tables, spark_tables
from tests.query.postgres_tables import run

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
UNIT = dp.Unit("person")
ROWS = pa.table(
    {
        "person": pa.array(range(9), pa.int64()),
        "real": [n / 2 for n in range(9)],
        "bytes": [b"a"] * 9,
        "moment": pa.array([datetime.datetime(2020, 1, 1)] * 9).cast(pa.timestamp("us", "UTC")),  # noqa: DTZ001  # cast to UTC
    }
)
REAL = {"real": dp.Column.number(0, 10)}


def _zoned(zone: str) -> dict[str, dp.Column]:
    days = datetime.date(2000, 1, 1), datetime.date(2030, 1, 1)
    return {"moment": dp.Column.date(*days, zone=zone)}


# what is asked: a text, the columns that it needs, and the kind of table
QUESTIONS: dict[str, tuple[str, dict[str, dp.Column], str]] = {
    "a view": ("SELECT COUNT(*) FROM t", REAL, "view"),
    "a role that may write": ("SELECT COUNT(*) FROM t", REAL, "writer"),
    "row security": ("SELECT COUNT(*) FROM t", REAL, "policy"),
    "tables of several places in `FROM`": (
        "SELECT COUNT(*) FROM t JOIN other ON t.person = other.person",
        REAL,
        "elsewhere",
    ),
    "joins, unions, aggregates of each unit, keys of units": (
        "SELECT COUNT(*) FROM (SELECT person, SUM(real) AS r FROM t GROUP BY person) AS p",
        REAL,
        "",
    ),
    "a remainder of floats": ("SELECT SUM(real % 2) FROM t", REAL, ""),
    "days in the zone `CET`": ("SELECT SUM(YEAR(moment)) FROM t", _zoned("CET"), ""),
    "days in the zone `Europe/Berlin`": (
        "SELECT SUM(YEAR(moment)) FROM t",
        _zoned("Europe/Berlin"),
        "",
    ),
    "a column of bytes": ("SELECT COUNT(bytes) FROM t", {"bytes": dp.Column.text()}, ""),
    "an unknown function": ("SELECT SUM(pg_sleep(real)) FROM t", REAL, ""),
}
ENGINES = ("DuckDB", "PostgreSQL", "Spark")


def stated() -> dict[tuple[str, str], str]:
    """The statements of the page, by the thing that is asked and by engine."""
    part = PAGE.read_text(encoding="utf-8").partition("## What is refused")[2]
    lines = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {
        (row[0], engine): row[1 + place] for row in cells for place, engine in enumerate(ENGINES)
    }


def _in_duckdb(kind: str, folder: Path) -> str:
    path = folder / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        connection.execute("CREATE VIEW seen AS SELECT * FROM rows")
    return f"duckdb:{path}?table=main.{'seen' if kind == 'view' else 'rows'}"


@cache
def _table_in_postgres(kind: str) -> str:
    name = postgres_tables.new_name()
    reader = postgres_tables.reader()
    run(
        f"CREATE TABLE {name} (person int8, real float8, bytes bytea, moment timestamptz)",
        f"INSERT INTO {name} SELECT n, n / 2.0, 'a', '2020-01-01' FROM generate_series(0, 8) AS n",
        f"CREATE VIEW {name}_seen AS SELECT * FROM {name}",
        f"GRANT SELECT ON {name}, {name}_seen TO {reader}",
    )
    if kind == "writer":
        run(f"GRANT UPDATE ON {name} TO {reader}")
    if kind == "policy":
        run(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    return postgres_tables.url(f"{name}_seen" if kind == "view" else name)


def _in_postgres(kind: str, folder: Path) -> str:
    del folder
    return _table_in_postgres(kind)


def _in_spark(kind: str, folder: Path) -> str:
    spark_tables.check()
    if kind == "view":
        own = __import__("pyspark.sql").sql.SparkSession.builder.getOrCreate()
        own.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW seen AS SELECT 1 AS person, 1.0 AS real")
        return "spark:global_temp.seen"
    return spark_tables.stored(ROWS, folder)


PLACES: dict[str, Callable[[str, Path], str]] = dict(
    zip(ENGINES, (_in_duckdb, _in_postgres, _in_spark), strict=True)
)


def _compute(source: str, elsewhere: str, asked: str) -> None:
    text, columns, kind = QUESTIONS[asked]
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    table = Table(source, name="t", unit=UNIT, columns=columns, rows=3, ledger=ledger)
    if kind == "elsewhere":
        others = {"n": dp.Column.number(0, 1)}
        there = Table(elsewhere, name="other", unit=UNIT, columns=others, rows=1, ledger=ledger)
        table = table.beside(there)
    question = table.question(text)
    own: Any = question.table.source
    check_schema(own, question.plan.declaration.columns, question.plan.declaration.unit)
    with _engine.opened(served_by(own)) as engine:
        prepare(question.plan, own, engine).compute(None)


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("engine", [*ENGINES[:2], pytest.param(ENGINES[2], marks=pytest.mark.long)])
def test_an_engine_refuses_what_the_page_says(engine: str, asked: str, tmp_path: Path) -> None:
    says = stated()[asked, engine]
    if says == "no roles":
        return
    pq.write_table(pa.table({"person": [1], "n": [1.0]}), tmp_path / "other.parquet")
    other = _in_postgres("", tmp_path) if engine == "DuckDB" else str(tmp_path / "other.parquet")
    source = PLACES[engine](QUESTIONS[asked][2], tmp_path)
    if says == "computed":
        _compute(source, other, asked)
    else:
        assert says == "refused"
        with pytest.raises(DiscreetError):
            _compute(source, other, asked)


def test_the_page_and_the_questions_have_the_same_rows() -> None:
    assert {asked for asked, _ in stated()} == QUESTIONS.keys()
    assert set(stated().values()) <= {"refused", "computed", "no roles"}
    assert re.search("Nobody has run them", PAGE.read_text(encoding="utf-8"))
