"""Tables of a user's own DuckDB: plain tables are read, and nothing that computes."""

import datetime
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.query import Column, Table
from tests.query.kit import without_noise

# Ibis 12 calls what DuckDB 2 renames
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning")

REFUSED = "an Ibis expression|is a view|other connections see no table"
COLUMNS = {"x": Column.number(0, 1000), "s": Column.text(keys=["a", "A", "b"])}


@pytest.fixture
def connection() -> Iterator[Any]:  # Any: Ibis ships no types
    made = ibis.duckdb.connect()
    made.con.execute("CREATE TABLE t (u BIGINT, x DOUBLE, s VARCHAR)")
    made.con.execute("INSERT INTO t VALUES (1, 1, 'a'), (2, 10, 'A'), (3, 1000, 'b')")
    yield made
    made.disconnect()


def _table(source: Any, columns: Any = COLUMNS, **given: Any) -> Table:  # Any: as above
    return Table(source, name="t", unit=dp.Unit("u"), rows=1, columns=columns, **given)


def _sum(source: Any) -> object:  # Any: as above
    return without_noise(_table(source).agg(s=dp.sum("x"))).rows()[0]["s"]


def test_a_plain_table_is_read(connection: Any) -> None:
    assert _sum(connection.table("t")) == 1011.0


@pytest.mark.parametrize(
    "derive",
    [
        lambda t: t.mutate(x=t.x - t.x.mean()),
        lambda t: t.mutate(x=t.s.cast("float64")),
        lambda t: t.filter(t.x > 0),
        lambda t: t.select("u", "x", "s"),
        lambda t: t.limit(2),
        lambda t: t.order_by("x"),
        lambda t: t.distinct(),
        lambda t: t.union(t),
        lambda t: t.join(t.view(), "u", lname="", rname="{name}_2"),
        lambda t: t.alias("other"),
        lambda t: t.group_by("s").agg(u=t.u.max(), x=t.x.sum()),
        lambda t: t.mutate(x=ibis.random()),
        lambda t: t.drop_null(),
        lambda t: t.sample(0.5),
        lambda t: t.view(),
    ],
)
def test_an_expression_is_refused_by_name(connection: Any, derive: Any) -> None:
    with pytest.raises(InvalidArgument, match=REFUSED):
        _table(derive(connection.table("t")))


def test_views_and_foreign_tables_are_refused_by_name(connection: Any, tmp_path: Path) -> None:
    con = connection.con
    con.execute("CREATE VIEW v AS SELECT u, x - avg(x) OVER () AS x, s FROM t")
    con.execute("CREATE TEMP TABLE temporary AS SELECT * FROM t")
    con.sql("SELECT * FROM t").write_parquet(str(tmp_path / "t.parquet"))
    con.register("registered", con.sql("SELECT * FROM t").to_arrow_table())
    con.execute("CREATE TEMP VIEW tv AS SELECT * FROM t")
    for name in ("v", "temporary", "registered", "tv"):
        with pytest.raises(InvalidArgument, match=REFUSED):
            _table(connection.table(name))
    with pytest.raises(InvalidArgument, match=REFUSED):
        _table(connection.read_parquet(tmp_path / "t.parquet"))


def test_a_generated_column_is_refused(connection: Any) -> None:
    connection.con.execute("CREATE TABLE g (u BIGINT, s VARCHAR, x DOUBLE AS (CAST(s AS DOUBLE)))")
    with pytest.raises(dp.DiscreetError, match="a type without a rule"):
        _sum(connection.table("g"))


def test_a_view_put_in_the_tables_place_is_refused_and_free(connection: Any) -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit("u"), limit=dp.Limit(epsilon=1))
    question = _table(connection.table("t"), ledger=ledger).agg(s=dp.sum("x"))
    connection.con.execute("ALTER TABLE t RENAME TO rows")
    connection.con.execute("CREATE VIEW t AS SELECT u, x - avg(x) OVER () AS x, s FROM rows")
    with pytest.raises(dp.DiscreetError, match="is a view"):
        question.release(epsilon=0.5)
    assert ledger.spent().charges == 0


def test_settings_of_the_connection_change_nothing(connection: Any) -> None:
    answers = []
    for setting in ("default_collation = 'NOCASE'", "integer_division = true", "threads = 1"):
        connection.con.execute(f"SET GLOBAL {setting}")
        asked = _table(connection.table("t")).group_by("s").agg(n=dp.count())
        answers.append([row["n"] for row in without_noise(asked).rows()])
    assert answers == [[1, 1, 1]] * 3


def test_collations_make_no_groups_of_their_own(connection: Any) -> None:
    connection.con.execute(
        "CREATE TABLE c (u VARCHAR COLLATE NOCASE, x DOUBLE, s VARCHAR COLLATE NOCASE)"
    )
    connection.con.execute("INSERT INTO c VALUES ('p', 1, 'A'), ('P', 1, 'B'), ('q', 1, 'b')")
    table = _table(connection.table("c"))
    found = without_noise(table.group_by("s").agg(n=dp.count())).rows()
    assert [(row["s"], row["n"]) for row in found] == [("A", 1), ("a", 0), ("b", 1)]
    where = without_noise(table.where(dp.col("s") == "a").agg(n=dp.count())).rows()
    assert where[0]["n"] == 0


def test_wide_integers_and_enumerations_are_read(connection: Any) -> None:
    con = connection.con
    con.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
    con.execute("CREATE TABLE w (u UUID, x HUGEINT, s mood)")
    con.execute("INSERT INTO w VALUES (uuid(), 170141183460469231731687303715884105727, 'a')")
    con.execute("INSERT INTO w VALUES (uuid(), 7, 'b')")
    assert _sum(connection.table("w")) == 1007.0


def test_threads_share_a_connection(connection: Any) -> None:
    table = _table(connection.table("t"))
    failures: list[Exception] = []
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.extend(without_noise(table.agg(s=dp.sum("x"))).rows()[0]["s"] for _ in range(4))
        except Exception as failure:  # noqa: BLE001  # whatever it is, a thread would swallow it
            failures.append(failure)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert answers == [1011.0] * 16


def test_a_closed_connection_is_refused_and_free(connection: Any) -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit("u"), limit=dp.Limit(epsilon=1))
    question = _table(connection.table("t"), ledger=ledger).agg(s=dp.sum("x"))
    connection.con.close()
    with pytest.raises(dp.DiscreetError, match="its connection is closed"):
        question.release(epsilon=0.5)
    assert ledger.spent().charges == 0


def test_other_databases_are_refused_by_name() -> None:
    unbound = ibis.table({"u": "int64", "x": "float64"}, name="t")
    for source in (unbound, ibis.memtable({"u": [1], "x": [1.0]})):
        with pytest.raises(InvalidArgument, match=r"what is supported|an Ibis expression"):
            _table(source)


def test_names_with_quotes_are_names() -> None:
    made = ibis.duckdb.connect()
    made.con.execute('CREATE SCHEMA "a b"')
    made.con.execute('CREATE TABLE "a b"."t\'s; DROP" (u BIGINT, "x""y" DOUBLE)')
    made.con.execute('INSERT INTO "a b"."t\'s; DROP" VALUES (1, 5)')
    source = made.table("t's; DROP", database="a b")
    table = _table(source, {'x"y': Column.number(0, 10)})
    assert without_noise(table.agg(s=dp.sum('x"y'))).rows()[0]["s"] == 5.0
    made.disconnect()


@pytest.mark.parametrize("session", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_timestamps_with_a_zone_count_on_the_declared_zones_day(
    connection: Any, session: str
) -> None:
    """The zone of the session doesn't matter. Moments beyond all dates count as missing."""
    connection.con.execute(f"SET TimeZone = '{session}'")
    connection.con.execute('CREATE TABLE m (u BIGINT, "at" TIMESTAMPTZ)')
    moments = ["2024-03-31 23:30:00+00", "2024-03-31 10:00:00+00", "2024-04-01 23:30:00+09"]
    values = ", ".join(f"({n}, TIMESTAMPTZ '{text}')" for n, text in enumerate(moments))
    connection.con.execute(f"INSERT INTO m VALUES {values}, (9, NULL)")
    first, last = datetime.date(2024, 3, 30), datetime.date(2024, 4, 2)
    for zone, days in [("Asia/Tokyo", [0, 1, 2, 0]), ("UTC", [0, 2, 1, 0])]:
        columns = {"at": Column.date(first, last, zone=zone)}
        question = _table(connection.table("m"), columns).group_by("at").agg(n=dp.count())
        assert [row["n"] for row in without_noise(question).rows()] == days
    connection.con.execute("INSERT INTO m VALUES (10, 'infinity'), (11, '-infinity')")
    connection.con.execute("INSERT INTO m VALUES (12, '290000-01-01 00:00:00+00')")
    moved = [row["n"] for row in without_noise(question).rows()]
    assert moved[1:3] == days[1:3]
