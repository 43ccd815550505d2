"""Without noise and within bounds, answers are what plain DuckDB says."""

import datetime
import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import (
    ComputationFailed,
    InvalidArgument,
    LedgerLocked,
    QueryRefused,
    RequestReused,
)
from discreet.query import Question, Table
from discreet.query._answers import _answer_rows
from discreet.query._engines._duckdb import DuckdbEngine
from discreet.query._engines._engine_statement import EngineStatement
from discreet.query._plan import _plan
from discreet.query._rows._files import CsvFile
from tests.query.kit import in_the_engine, without_noise

GENERATOR = np.random.default_rng(20240229)
PEOPLE = 200
ROWS = 900


def _frame() -> pd.DataFrame:
    places = np.array(["north", "south", "east"])
    return pd.DataFrame(
        {
            "person": GENERATOR.integers(0, PEOPLE, ROWS),
            "place": places[GENERATOR.integers(0, 3, ROWS)],
            "year": GENERATOR.integers(2000, 2004, ROWS),
            "wage": GENERATOR.integers(0, 60 * 64, ROWS)
            / 64,  # on the grid, so that sums are exact
            "age": GENERATOR.integers(18, 90, ROWS),
            "member": GENERATOR.integers(0, 2, ROWS).astype(bool),
            "day": [datetime.date(2024, 1, 1 + int(n)) for n in GENERATOR.integers(0, 5, ROWS)],
        }
    )


FRAME = _frame()
COLUMNS = {
    "place": dp.Column.text(keys=["north", "south", "east", "west"]),
    "year": dp.Column.integer(2000, 2003, keys=range(2000, 2004)),
    "wage": dp.Column.number(0, 60),
    "age": dp.Column.integer(0, 100),
    "member": dp.Column.boolean(),
    "day": dp.Column.date(keys=[datetime.date(2024, 1, n) for n in range(1, 6)]),
}
UNIT = dp.Unit("person")


def _table(source: Any = FRAME, columns: dict[str, dp.Column] = COLUMNS) -> Table:
    return Table(
        source, name="t", unit=UNIT, columns=columns, rows=2000, groups=40, rows_per_group=50
    )


def _plain(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("t", FRAME)
        return connection.execute(sql).fetchall()


def _values(question: Question) -> list[tuple[Any, ...]]:
    answer = without_noise(question)
    names = [
        *question.query.key_names,
        *(aggregate.name for aggregate in question.query.aggregates),
    ]
    return [tuple(row[name] for name in names) for row in answer.rows()]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS a, SUM(wage) AS b, AVG(wage) AS c FROM t",
        "SELECT year, COUNT(*) AS a, AVG(age) AS b FROM t GROUP BY year ORDER BY year",
        "SELECT place, year, SUM(age) AS a FROM t GROUP BY place, year ORDER BY place, year",
        "SELECT member, AVG(wage * 12 + age) AS a FROM t GROUP BY member ORDER BY member",
        "SELECT day, SUM(-wage / 2 - 1) AS a FROM t GROUP BY day ORDER BY day",
        "SELECT SUM(age*age) a FROM t WHERE wage > 30 AND NOT (place = 'north' OR year > 2001)",
        "SELECT COUNT(*) a FROM t WHERE place IN ('north', 'east') AND wage BETWEEN 10 AND 20.5",
        "SELECT COUNT(*) AS a FROM t WHERE member AND day <= DATE '2024-01-03' AND age <> 40",
        "SELECT COUNT(*) AS a FROM t WHERE place > 'm' AND wage IS NOT NULL",
    ],
)
def test_without_noise_it_is_what_duckdb_says(sql: str) -> None:
    question = _table().question(sql.partition(" ORDER BY")[0])
    ours = [row for row in _values(question) if row[0] != "west"]
    assert len(ours) == len(_plain(sql))
    for row, plain in zip(ours, _plain(sql), strict=True):
        for one, other in zip(row, plain, strict=True):
            assert one == (pytest.approx(other, abs=1e-6) if isinstance(other, float) else other)


def test_sql_and_calls_are_one_query() -> None:
    table = _table()
    calls = (
        table.where(dp.col("wage") > 30, ~(dp.col("place") == "north"))
        .group_by("year", "member")
        .agg(
            people=dp.count(),
            pay=dp.mean(dp.col("wage") * 12),
            old=dp.sum("age"),
            known=dp.count("wage"),
        )
    )
    sql = table.question(
        "select count(*) people, avg(wage * 12) as pay, sum(age) old, count(wage) as known from t "
        "where wage > 30.0 and not (place = 'north') group by year, member"
    )
    assert calls.query == sql.query
    assert calls == sql


@pytest.mark.parametrize("make", [pa.Table.from_pandas, pl.from_pandas, lambda frame: frame])
def test_every_kind_of_frame_gives_the_same(make: Any) -> None:
    question = _table(make(FRAME)).group_by("place").agg(n=dp.count(), pay=dp.mean("wage"))
    assert _values(question) == _values(
        _table().group_by("place").agg(n=dp.count(), pay=dp.mean("wage"))
    )


def test_files_and_ibis_give_the_same(tmp_path: Path) -> None:
    import ibis

    FRAME.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "t.parquet")
    connection = ibis.duckdb.connect()
    with warnings.catch_warnings():  # Ibis 12 calls what DuckDB 2 deprecates
        warnings.simplefilter("ignore")
        in_ibis = connection.create_table("frame", FRAME)
    sources = [
        tmp_path / "t.parquet",
        str(tmp_path / "t.csv"),
        CsvFile(tmp_path / "t.csv"),
        in_ibis,
    ]
    expected = None
    for source in sources:
        got = _values(
            _table(source)
            .group_by("place", "day")
            .agg(n=dp.count(), pay=dp.mean("wage"), old=dp.sum("age"))
        )
        assert expected is None or got == expected
        expected = got


@pytest.mark.parametrize("unit", [dp.Unit("patient"), dp.Unit.ROW])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", None])
def test_without_declared_columns_rows_are_counted_or_refused_free(
    tmp_path: Path, ending: str | None, unit: dp.Unit
) -> None:
    """Each row by itself needs some column to count. Rows in memory, and JSON, have those that are
    declared only."""
    frame = pd.DataFrame({"patient": [n // 2 for n in range(600)], "days": [1.5] * 600})
    path = tmp_path / f"stays.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(20))
    rows = None if unit is dp.Unit.ROW else 2
    source = frame if ending is None else path
    table = Table(source, name="stays", unit=unit, columns={}, rows=rows, ledger=ledger)
    with pytest.raises(QueryRefused, match="'days' is not declared; declared are none until now"):
        table.sql("SELECT SUM(days) FROM stays", epsilon=10)
    if unit is dp.Unit.ROW and ending in ("jsonl", None):
        with pytest.raises(QueryRefused, match="declare one first"):
            table.sql("SELECT COUNT(*) AS n FROM stays", epsilon=10)
        assert ledger.spent().charges == 0
        return
    counted = table.sql("SELECT COUNT(*) AS n FROM stays", epsilon=10).to_pandas()
    assert abs(counted["n"].item() - 600) < 40


def test_missing_values_are_as_declared() -> None:
    frame = pd.DataFrame(
        {
            "person": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0],
            "wage": [10.0, np.nan, 10.0, np.inf, -np.inf, 200.0],
            "place": ["a", "a", "a", None, "q", "b"],
        }
    )
    columns = {"wage": dp.Column.number(0, 60), "place": dp.Column.text(keys=["a", "b"])}
    skipped = _table(frame, columns).agg(n=dp.count(), known=dp.count("wage"), pay=dp.sum("wage"))
    assert _values(skipped) == [(5, 4, 10 + 60 + 0 + 60)]
    replaced = {
        "wage": dp.Column.number(0, 60, null=5),
        "place": dp.Column.text(keys=["a", "b"], null="b"),
    }
    filled = (
        _table(frame, replaced)
        .group_by("place")
        .agg(n=dp.count(), known=dp.count("wage"), pay=dp.sum("wage"))
    )
    assert _values(filled) == [("a", 2, 2, 15), ("b", 2, 2, 120)]
    is_null = _table(frame, columns).where(dp.col("wage").is_null()).agg(n=dp.count())
    assert _values(is_null) == [(1,)]


def test_text_ids_protect_units_too() -> None:
    frame = FRAME.assign(person=FRAME.person.map(lambda n: f"p{n}"))
    capped = Table(frame, name="t", unit=UNIT, columns=COLUMNS, rows=1)
    assert _values(capped.agg(n=dp.count())) == [(FRAME.person.nunique(),)]
    counts = [n for _, n in _values(capped.group_by("place").agg(n=dp.count()))]
    assert sum(counts) == FRAME.person.nunique()
    assert min(counts[i] for i in (0, 1, 2)) > PEOPLE / 9, "the hash should choose fairly"


def test_a_unit_with_more_rows_than_its_cap_is_scaled_down() -> None:
    frame = pd.DataFrame({"person": [1] * 10 + [2], "wage": [float(n) for n in range(10)] + [60.0]})
    table = Table(frame, name="t", unit=UNIT, columns={"wage": dp.Column.number(0, 60)}, rows=2)
    ((n, total, mean),) = _values(
        table.agg(n=dp.count(), total=dp.sum("wage"), mean=dp.mean("wage"))
    )
    assert n == 3
    assert total == pytest.approx(45 * 2 / 10 + 60, abs=1e-6)
    assert mean == pytest.approx(69 / 3, abs=1e-6)


def test_totals_beyond_64_bits_are_exact() -> None:
    large = 2**40
    frame = pd.DataFrame({"x": np.full(2**13, large, dtype=np.int64)})
    table = Table(frame, name="t", unit=dp.Unit.ROW, columns={"x": dp.Column.integer(0, large)})
    ((total,),) = _values(table.agg(total=dp.sum("x")))
    assert total == 2**53
    wide = Table(frame, name="t", unit=dp.Unit.ROW, columns={"x": dp.Column.integer(0, 2**59)})
    ((total,),) = _values(wide.agg(total=dp.sum(dp.col("x") * 2**19)))
    assert total == pytest.approx(2**72, rel=1e-6)


def test_categories_and_timestamps_are_read() -> None:
    frame = pd.DataFrame(
        {
            "person": [1, 2, 3],
            "ward": pd.Categorical(["a", "b", "a"]),
            "at": pd.to_datetime(["2024-01-01 12:00", "2024-01-02 23:59", "2024-01-01 00:00"]),
        }
    )
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    columns = {"ward": dp.Column.text(keys=["a", "b"]), "at": dp.Column.date(keys=days)}
    question = _table(frame, columns).group_by("ward", "at").agg(n=dp.count())
    assert _values(question) == [
        ("a", days[0], 2),
        ("a", days[1], 0),
        ("b", days[0], 0),
        ("b", days[1], 1),
    ]


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"person": [1], "x": ["a"]}, None),  # a text that may hold numbers
        ({"x": [1.0]}, "no column 'person'"),
        ({"person": [1]}, "no column 'x'"),
        ({"person": [1], "x": [True]}, "declared as number, the source has boolean"),
        ({"person": [1], "x": [[1]]}, "a type without a rule"),
    ],
)
def test_a_source_that_does_not_fit_is_refused_and_free(
    frame: dict[str, list[Any]], says: str | None
) -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    columns = {"x": dp.Column.number(0, 1)}
    table = Table(pa.table(frame), name="t", unit=UNIT, rows=1, columns=columns, ledger=ledger)
    question = table.agg(n=dp.count())
    if says is None:
        question.release(epsilon=1)
        return
    with pytest.raises(dp.DiscreetError, match=says):
        question.release(epsilon=1)
    assert ledger.spent().charges == 0


def test_a_table_without_a_ledger_says_so() -> None:
    with pytest.raises(dp.DiscreetError, match="no ledger to pay from"):
        _table().agg(n=dp.count()).release(epsilon=1)


def test_a_paid_failure_stays_paid_and_locks(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"person": [1, 2], "x": [0.5, 0.25]}), path)
    content = path.read_bytes()
    path.write_bytes(b"PAR1" + bytes(60) + content[64:])  # the schema stands, the rows don't
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    columns = {"x": dp.Column.number(0, 1)}
    question = Table(path, name="t", unit=UNIT, rows=1, columns=columns, ledger=ledger).agg(
        s=dp.sum("x")
    )
    with pytest.raises(ComputationFailed, match="the charge stands") as failed:
        question.release(epsilon=0.5)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert ledger.spent().charges == 1
    with pytest.raises(LedgerLocked):
        question.release(epsilon=0.1)


@pytest.mark.parametrize("form", [nullcontext, in_the_engine])
def test_ctrl_c_is_no_failure(
    form: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where NumPy bounds contributions, nor where the engine does."""

    def over(own: DuckdbEngine, statement: EngineStatement, rows: Mapping[str, pa.Table]) -> object:
        if any(one.num_rows for one in rows.values()):  # not the trial on an empty table
            raise RuntimeError("Query interrupted")  # as DuckDB says it
        return honest(own, statement, rows)

    honest = DuckdbEngine._over
    monkeypatch.setattr(DuckdbEngine, "_over", over)
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    table = Table(FRAME, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
    with form(), pytest.raises(KeyboardInterrupt):
        table.agg(n=dp.count()).release(epsilon=0.5)
    assert ledger.spent().charges == 1
    assert not ledger.is_locked


def test_a_refusal_makes_no_ledger(tmp_path: Path) -> None:
    def opened() -> dp.Ledger:
        return dp.Ledger.create(tmp_path / "l", unit=UNIT, limit=dp.Limit(epsilon=1))

    table = Table(
        tmp_path / "none.csv", name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=opened
    )
    with pytest.raises(dp.DiscreetError, match="no such file"):
        table.agg(n=dp.count()).release(epsilon=1)
    assert not (tmp_path / "l").exists()


def test_a_repeated_request_is_the_same_answer_and_free() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    table = Table(FRAME, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
    question = table.group_by("place").agg(n=dp.count(), pay=dp.mean("wage"))
    first = question.release(epsilon=0.75, request="monday")
    again = question.release(epsilon=0.75, request="monday")
    assert first.rows() == again.rows()
    assert ledger.spent().charges == 1
    with pytest.raises(RequestReused):
        table.agg(n=dp.count()).release(epsilon=0.25, request="monday")


def test_nothing_of_a_row_is_printed() -> None:
    secret = pd.DataFrame({"person": [424242], "wage": [31.41592]})
    table = Table(secret, name="t", unit=UNIT, rows=1, columns={"wage": dp.Column.number(0, 60)})
    question = table.agg(pay=dp.sum("wage"))
    told = [
        table,
        table.source,
        question,
        question.explain(epsilon=1),
        question.forecast(epsilon=1),
    ]
    assert not any(word in f"{thing!r} {thing}" for thing in told for word in ("424242", "31.41"))


def test_an_answer_can_be_handed_on(tmp_path: Path) -> None:
    answer = without_noise(_table().group_by("member").agg(n=dp.count(), pay=dp.mean("wage")))
    assert str(answer).startswith("INSECURE")
    assert answer.receipt.is_insecure
    assert answer.to_polars().columns == list(answer.columns)
    answer.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == answer.rows()
    assert answer.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_text()
    assert answer.to_csv().splitlines()[0].replace('"', "") == ",".join(answer.columns)
    assert json.loads(answer.to_json())["rows"][0]["n"] == answer.rows()[0]["n"]
    assert "<table>" in answer._repr_html_()


def test_a_question_is_checked_and_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, int] = {"check": 0, "_plan": 0}

    def counted(name: str) -> None:
        step: Callable[..., object] = getattr(_plan, name)

        def counting(*given: Any) -> object:
            calls[name] += 1
            return step(*given)

        monkeypatch.setattr(_plan, name, counting)

    counted("check")
    counted("_plan")
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    table = Table(FRAME, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
    for is_sql in (True, False):
        question = (
            table.question("SELECT year, AVG(wage) AS pay FROM t GROUP BY year")
            if is_sql
            else table.group_by("year").agg(pay=dp.mean("wage"))
        )
        question.forecast(epsilon=1)
        str(question.explain(epsilon=1))
        question.release(epsilon=0.25)
        assert calls == {"check": 1, "_plan": 1}
        calls.update(check=0, _plan=0)


@pytest.mark.parametrize("caps", [{}, {"groups": 2}, {"groups": 2, "rows_per_group": 2}])
def test_the_rows_of_a_unit_have_no_default(caps: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument, match=r"rows: give .*query\.suggest finds it"):
        Table(FRAME, name="t", unit=UNIT, columns=COLUMNS, **caps)  # type: ignore[arg-type]


@pytest.mark.parametrize("caps", [{"rows": 2}, {"groups": 1}, {"rows_per_group": 1}])
def test_each_row_by_itself_has_no_caps(caps: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        Table(FRAME, name="t", unit=dp.Unit.ROW, columns=COLUMNS, **caps)  # type: ignore[arg-type]


def test_an_answer_states_its_caps_and_bounds() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    columns = {"wage": dp.Column.number(0, 60), "age": dp.Column.integer(0, 99)}
    table = Table(
        pa.table({"person": [1], "wage": [2.0], "age": [3]}),
        name="t",
        unit=UNIT,
        rows=8,
        groups=3,
        columns=columns,
        ledger=ledger,
    )
    answer = table.agg(pay=dp.mean("wage")).release(epsilon=1)
    note = "one person counts for at most 8 rows; wage is clamped to 0 .. 60"
    assert answer.notes[1] == note
    assert note in repr(answer)
    assert note in answer._repr_html_()
    given = json.loads(answer.to_json())
    assert given["caps"] == {"rows": 8, "groups": 3, "rows_per_group": 8}
    assert given["bounds"] == {"wage": [0.0, 60.0]}


@pytest.mark.parametrize(
    ("value", "text"),
    [(-9.881e-324, "0"), (5e-324, "0"), (0.0, "0"), (1e-300, "1e-300"), (-0.25, "-0.25"), (0, "0")],
)
def test_the_end_of_an_open_range_is_shown_as_0(value: float, text: str) -> None:
    assert _answer_rows._figure(value) == text
