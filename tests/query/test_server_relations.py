"""Joins, unions, rows of each unit and keys of units have the same integers in every engine."""

import socket
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DeclarationError, QueryRefused
from discreet.ledger import Kind
from discreet.mechanisms import DiscreteLaplace
from discreet.query import PublicTable, Table
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._engines._address import address_of
from discreet.query._rows._source import served_by
from tests.query import postgres_tables, spark_tables

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

UNIT = dp.Unit("person")
_WARDS = ["x", "y", "é", None]


def _tables() -> dict[str, pa.Table]:
    """Units with more rows than count, rows without an id, and keys that several units have."""
    chance = np.random.default_rng(7)
    people = chance.integers(0, 30, 240)
    days = pa.array([int(n) for n in chance.integers(18000, 18400, 240)], pa.int32())
    return {
        "stays": pa.table(
            {
                "person": pa.array([None if n % 29 == 0 else int(n) for n in people], pa.int64()),
                "days": pa.array([int(n) for n in chance.integers(-3, 12, 240)], pa.int32()),
                "cost": pa.array([None if n > 9 else float(n) for n in chance.normal(3, 4, 240)]),
                "ward": pa.array([_WARDS[n] for n in chance.integers(0, 4, 240)]),
                "day": days.cast(pa.date32()),
                "bill": pa.array([int(n) for n in chance.integers(0, 90, 240)], pa.int64()),
            }
        ),
        "people": pa.table(
            {
                "person": pa.array([str(n) for n in range(2, 33)]),
                "age": pa.array([20 + n for n in range(31)], pa.int64()),
            }
        ),
        "items": pa.table(
            {
                "bill": pa.array([int(n) for n in chance.integers(0, 100, 300)], pa.int64()),
                "price": pa.array([float(n) / 4 for n in chance.integers(0, 80, 300)]),
            }
        ),
    }


COLUMNS = {
    "stays": {
        "days": dp.Column.integer(0, 10),
        "cost": dp.Column.number(0, 9),
        "ward": dp.Column.text(keys=["x", "y", "é"]),
        "day": dp.Column.date(),
        "bill": dp.Column.integer(),
    },
    "people": {"age": dp.Column.integer(0, 100)},
    "items": {"price": dp.Column.number(0, 20)},
}
QUESTIONS = [
    """SELECT ward, COUNT(*), SUM(age), COUNT_UNITS(*)
    FROM stays JOIN people ON stays.person = people.person GROUP BY ward""",
    """SELECT COUNT(*), SUM(d), SUM(n), SUM(m) FROM (SELECT person, SUM(days) AS d, AVG(cost) AS m,
    COUNT(*) AS n, SUM(cost) AS c FROM stays WHERE days > 0 GROUP BY person) AS p""",
    """SELECT SUM(c), SUM(m) FROM (SELECT person, MAX(cost) AS c, AVG(days) AS m
    FROM stays WHERE day > DATE '2019-05-01' GROUP BY person) AS p""",
    """SELECT COUNT(*), SUM(days) FROM (SELECT person, days FROM stays
    UNION ALL SELECT person, age AS days FROM people) AS p""",
    """SELECT ward, SUM(beds), COUNT(*) FROM stays JOIN wards ON stays.ward = wards.name
    GROUP BY ward""",
    """SELECT COUNT(*), MEDIAN(d) FROM (SELECT stays.person, days + age AS d FROM stays
    LEFT JOIN people ON stays.person = people.person WHERE days > 1) AS p""",
    "SELECT COUNT(*), SUM(price) FROM items",
    """SELECT ward, COUNT(DISTINCT age) FROM (SELECT stays.person, ward, age
    FROM stays JOIN people ON stays.person = people.person) AS p GROUP BY ward""",
]

Sources = Mapping[str, Any]  # Any: Arrow's tables and addresses


@cache
def _stored_in_postgres() -> Sources:
    kinds = {"int64": "int8", "int32": "int4", "double": "float8", "string": "text"}
    found = {}
    for name, rows in _tables().items():
        place = postgres_tables.new_name()
        typed = ", ".join(f"{f.name} {kinds.get(str(f.type), 'date')}" for f in rows.schema)
        values = ", ".join(["%s"] * rows.num_columns)
        postgres_tables.run(
            f"CREATE TABLE {place} ({typed})",
            (f"INSERT INTO {place} VALUES ({values})", [[*r.values()] for r in rows.to_pylist()]),
            f"GRANT SELECT ON {place} TO {postgres_tables.reader()}",
        )
        found[name] = postgres_tables.url(place)
    return found


def _in_postgres(folder: Path) -> Sources:
    del folder
    return _stored_in_postgres()


def _in_spark(folder: Path) -> Sources:
    return {
        name: spark_tables.stored(rows, folder, f"{name}.parquet")
        for name, rows in _tables().items()
    }


def _world(sources: Sources) -> Mapping[str, Table]:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1000))
    made = {
        name: Table(
            sources[name], name=name, unit=UNIT, columns=COLUMNS[name], rows=rows, ledger=ledger
        )
        for name, rows in (("stays", 5), ("people", 1))
    }
    wards = PublicTable({"name": ["x", "é", "z"], "beds": [3, 4, 9]}, name="wards")
    items = made["stays"].linked(
        sources["items"], on="bill", columns=COLUMNS["items"], rows=3, name="items"
    )
    return {"stays": made["stays"].beside(made["people"], wards), "items": items}


def _integers(sources: Sources, text: str) -> Any:  # Any: arrays
    table = _world(sources)["items" if "FROM items" in text else "stays"]
    asked = table.question(text)
    source = asked.table.source
    with _engine.opened(served_by(source)) as engine:
        found = prepare(asked.plan, source, engine).compute(None)
    return {name: np.sort(np.asarray(part), axis=0).tolist() for name, part in found.items()}


@cache
def _here(text: str) -> Any:  # Any: arrays
    return _integers(_tables(), text)


@pytest.mark.parametrize("text", QUESTIONS)
@pytest.mark.parametrize("place", [_in_postgres, pytest.param(_in_spark, marks=pytest.mark.long)])
def test_a_server_computes_the_same_integers(
    place: Callable[[Path], Sources], text: str, tmp_path: Path
) -> None:
    found = _integers(place(tmp_path), text)
    assert found == _here(text)
    assert any(np.any(np.asarray(part)) for part in found.values())


@pytest.mark.parametrize(
    ("text", "moved"),
    [(QUESTIONS[0], "people"), (QUESTIONS[0], "stays"), (QUESTIONS[6], "items")],
)
def test_tables_in_several_places_are_refused_before_the_charge(
    text: str, moved: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(_tables()[moved], path)
    table = _world({**_stored_in_postgres(), moved: str(path)})[
        "items" if "items" in text else "stays"
    ]
    with pytest.raises(QueryRefused, match="in several places"):
        table.sql(text, epsilon=1)
    ledger = table.ledger
    assert isinstance(ledger, dp.Ledger)
    assert not [entry for entry in ledger.history() if entry.kind is Kind.CHARGE]


def _united(sources: tuple[str, str]) -> None:
    """Unite two tables of which each row is a unit."""
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1))
    column = {"x": dp.Column.number(0, 1)}
    one, other = (
        dp.Table(source, name=name, unit=dp.Unit.ROW, columns=column, ledger=ledger)
        for source, name in zip(sources, "ab", strict=True)
    )
    one.union_all(other).agg(n=dp.count()).release(epsilon=1)


def _partitions() -> list[tuple[str, str]]:
    """A table and its partition, a table and the child of its child, and one table's name twice."""
    name = postgres_tables.new_name()
    made = [f"{name}{part}" for part in ("", "_p", "_q", "_parent", "_child", "_grandchild")]
    table, part, other, parent, child, grandchild = made
    postgres_tables.run(
        f"CREATE TABLE {table} (x float8, y int4) PARTITION BY LIST (y)",
        f"CREATE TABLE {part} PARTITION OF {table} FOR VALUES IN (1)",
        f"CREATE TABLE {other} PARTITION OF {table} FOR VALUES IN (2)",
        f"CREATE TABLE {parent} (x float8)",
        f"CREATE TABLE {child} () INHERITS ({parent})",
        f"CREATE TABLE {grandchild} () INHERITS ({child})",
        *(f"GRANT SELECT ON {one} TO {postgres_tables.reader()}" for one in made),
    )
    urls = dict(zip(made, map(postgres_tables.url, made), strict=True))
    _united((urls[part], urls[other]))  # these have no row in common
    pairs = [(table, part), (part, table), (parent, grandchild), (child, parent), (part, part)]
    return [(urls[one], urls[other]) for one, other in pairs]


def _paths(folder: Path) -> list[tuple[str, str]]:
    """A folder and one in it, a file in it, a link to it, and other spellings of it."""
    inner = folder / "f" / "in"
    inner.mkdir(parents=True)
    address = spark_tables.stored(pa.table({"x": [1.0]}), inner)
    (folder / "link").symlink_to(folder / "f")
    other = spark_tables.stored(pa.table({"x": [1.0]}), folder)
    whole = f"spark:{folder}/f"
    _united((whole, other))
    spellings = [f"spark:{folder}/f/in", address, f"spark:{folder}/link", f"spark:{folder}/./f"]
    return [(whole, one) for one in [*spellings, f"spark:file://{folder}/f"]]


@pytest.mark.parametrize(
    "pairs",
    [lambda _: _partitions(), pytest.param(_paths, marks=pytest.mark.long)],
    ids=["postgres", "spark"],
)
def test_no_row_that_is_a_unit_counts_twice(
    pairs: Callable[[Path], list[tuple[str, str]]], tmp_path: Path
) -> None:
    for pair in pairs(tmp_path):
        with pytest.raises(QueryRefused, match="have the same rows"):
            _united(pair)


def test_a_part_that_is_attached_after_a_hand_over_is_refused_before_the_charge() -> None:
    name = postgres_tables.new_name()
    postgres_tables.run(
        f"CREATE TABLE {name} (x float8, y int4) PARTITION BY LIST (y)",
        f"CREATE TABLE {name}_p (x float8, y int4)",
        f"GRANT SELECT ON {name}, {name}_p TO {postgres_tables.reader()}",
    )
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=1))
    one, other = (
        dp.Table(
            postgres_tables.url(place),
            name=label,
            unit=dp.Unit.ROW,
            columns={"x": dp.Column.number(0, 1)},
            ledger=ledger,
        )
        for place, label in ((name, "a"), (f"{name}_p", "b"))
    )
    counts = one.union_all(other).group_by().counts()
    noise = DiscreteLaplace.for_epsilon(1, counts)
    postgres_tables.run(f"ALTER TABLE {name} ATTACH PARTITION {name}_p FOR VALUES IN (1)")
    with pytest.raises(QueryRefused, match="have the same rows"):
        dp.release(counts, noise, ledger)
    assert not ledger.is_locked
    assert not [entry for entry in ledger.history() if entry.kind is Kind.CHARGE]


@pytest.mark.parametrize(
    ("table", "attach"),
    [
        ("PARTITION BY LIST (y)", "ALTER TABLE {0} ATTACH PARTITION {0}_p FOR VALUES IN (1)"),
        ("", "ALTER TABLE {0}_p INHERIT {0}"),
    ],
)
def test_a_part_that_is_attached_in_mid_question_is_for_the_next_one(
    table: str, attach: str
) -> None:
    name = postgres_tables.new_name()
    postgres_tables.run(
        f"CREATE TABLE {name} (x float8, y int4) {table}",
        f"CREATE TABLE {name}_p (x float8, y int4)",
        f"INSERT INTO {name}_p VALUES (1, 1), (1, 1)",
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
    )
    column = {"x": dp.Column.number(0, 1)}
    own = dp.Table(postgres_tables.url(name), name="t", unit=dp.Unit.ROW, columns=column)
    asked, counts = own.agg(n=dp.count()).plan, []
    for statement in (attach.format(name), "SELECT 1"):
        with _engine.opened(served_by(own.source)) as engine:
            ready = prepare(asked, own.source, engine)
            postgres_tables.run(statement)
            (count,) = ready.compute(None).values()
            counts.append(int(count[0]))
    assert counts == [0, 2]


def _declared(folder: Path, sources: tuple[str, str]) -> Mapping[str, Table]:
    text = "".join(
        f'[tables.{name}]\nsource = "{one}"\nrow = true\n'
        + ('format = "parquet"\n' if ":" not in one else "")
        + f'ledger = {{ path = "{name}.ledger", epsilon = 9 }}\n[tables.{name}.columns]\n'
        'x = { type = "number", lower = 0, upper = 1 }\n'
        for name, one in zip("ab", sources, strict=True)
    )
    (folder / "discreet.toml").write_text(text)
    return dp.open(folder / "discreet.toml")


def test_a_table_and_its_parts_have_one_budget(tmp_path: Path) -> None:
    """Whichever of both is asked is refused before the charge, until one ledger has both."""
    pairs = _partitions()
    with pytest.raises(DeclarationError, match="two ledgers"):
        _declared(tmp_path, pairs.pop())  # one table's name twice
    for pair in pairs:
        for name, one in _declared(tmp_path, pair).items():
            with pytest.raises(DeclarationError, match=r"rows in common .* but two ledgers"):
                one.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=1)
    assert not [*tmp_path.glob("*.ledger")]
    (table, part), (parent, _) = pairs[0], pairs[2]
    apart = [(table, parent), (part, f"{part.removesuffix('_p')}_q"), (part, f"{table}_none")]
    for pair in apart:
        declared = _declared(tmp_path, pair)
        declared["a"].sql("SELECT COUNT(*) AS n FROM a", epsilon=1)
    text = (tmp_path / "discreet.toml").read_text().replace(apart[-1][1], table)
    (tmp_path / "discreet.toml").write_text(text.replace("b.ledger", "a.ledger"))
    for name, one in dp.open(tmp_path / "discreet.toml").items():
        one.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=1)


def test_a_part_of_the_table_that_has_the_keys_has_their_budget(tmp_path: Path) -> None:
    name = postgres_tables.new_name()
    postgres_tables.run(
        f"CREATE TABLE {name} (person int8, x float8) PARTITION BY LIST (person)",
        f"CREATE TABLE {name}_p (person int8, x float8)",
        f"CREATE TABLE {name}_events (x float8)",
        f"GRANT SELECT ON {name}, {name}_p, {name}_events TO {postgres_tables.reader()}",
    )
    columns = '[tables.{}.columns]\nx = {{ type = "number", lower = 0, upper = 1 }}\n'
    text = "".join(
        f'[tables.{own}]\nsource = "{postgres_tables.url(place)}"\nunit = "person"\nrows = 1\n'
        f'ledger = {{ path = "{ledger}.ledger", epsilon = 9 }}\n{through}{columns.format(own)}'
        for own, place, ledger, through in (
            ("keys", name, "a", ""),
            ("events", f"{name}_events", "a", 'through = { table = "keys", on = "x" }\n'),
            ("part", f"{name}_p", "b", ""),
        )
    )
    (tmp_path / "discreet.toml").write_text(text)
    tables = dp.open(tmp_path / "discreet.toml")
    for own in tables:
        tables[own].sql(f"SELECT COUNT(*) AS n FROM {own}", epsilon=1)
    postgres_tables.run(f"ALTER TABLE {name} ATTACH PARTITION {name}_p FOR VALUES IN (1)")
    for own in tables:
        with pytest.raises(DeclarationError, match=r"rows in common .* but two ledgers"):
            tables[own].sql(f"SELECT COUNT(*) AS n FROM {own}", epsilon=1)


def test_a_table_that_gets_the_name_in_mid_question_is_not_read() -> None:
    """The lock of a reader doesn't stop a schema from being renamed."""
    name = postgres_tables.new_name()
    reader = postgres_tables.reader()
    postgres_tables.run(
        f"CREATE SCHEMA {name}",
        f"CREATE SCHEMA {name}other",
        *(f"GRANT USAGE ON SCHEMA {one} TO {reader}" for one in (name, f"{name}other")),
        f"CREATE TABLE {name}.t (x float8)",
        f"INSERT INTO {name}.t VALUES (1)",
        f"CREATE TABLE {name}other.t (x float8)",
        f"INSERT INTO {name}other.t VALUES (1), (1), (1)",
        f"GRANT SELECT ON {name}.t, {name}other.t TO {reader}",
    )
    column = {"x": dp.Column.number(0, 1)}
    place = postgres_tables.url(name).replace(f"public.{name}", f"{name}.t")
    own = dp.Table(place, name="t", unit=dp.Unit.ROW, columns=column)
    with _engine.opened(served_by(own.source)) as engine:
        ready = prepare(own.agg(n=dp.count()).plan, own.source, engine)
        postgres_tables.run(
            f"ALTER SCHEMA {name} RENAME TO {name}old",
            f"ALTER SCHEMA {name}other RENAME TO {name}",
        )
        (count,) = ready.compute(None).values()
    assert int(count[0]) != 3


SPELLINGS = [
    "postgresql://r@localhost/d",
    "postgres://other@LOCALHOST.:5432/d",
    "postgresql://127.0.0.1/%64",
    "postgresql://127.0.1.1/d?application_name=k",
    "postgresql://[::1]:5432/d",
    "postgresql://[0:0:0:0:0:0:0:1]/d",
    "postgresql://[::ffff:127.0.0.1]/d",
    *(
        f"postgresql://{host}/d"
        for host in ("0.0.0.0", "[::]", "127.1", "2130706433", "0x7f000001")
    ),
    f"postgresql://{socket.gethostname()}/d",
    "postgresql://localhost/d?port=05432",
    "postgresql://db.localhost/d",
    "postgresql://ip6-localhost/d",
    "postgresql://far.example:9/d?host=&port=",
    "postgresql:///d",
    "postgresql://%2Frun%2Fpostgresql/d",
    "postgresql:///d?host=/run/postgresql&port=5432",
    "postgresql://far.example/d?hostaddr=127.0.0.1",
    "postgresql://far.example:9/d?host=localhost&port=5432",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_database_of_this_host_has_one_place(spelling: str, tmp_path: Path) -> None:
    mark = "&" if "?" in spelling else "?"
    for other, is_shared in (("d", True), ("e", False)):
        pair = (f"postgresql:///{other}?table=s.t", f"{spelling}{mark}table=s.%74")
        if is_shared:
            with pytest.raises(DeclarationError, match="two ledgers"):
                _declared(tmp_path, pair)
        else:
            assert len(_declared(tmp_path, pair)) == 2


def test_databases_of_other_hosts_and_ports_are_apart(tmp_path: Path) -> None:
    others = ["//far.example/d?", "//localhost:5433/d?", "//10.0.0.1/d?", "//far.example:9/d?"]
    others += [
        "//10.1/d?",
        "//[::ffff:10.0.0.2]/d?",
        "//localhost/d?host=nearer.example&",
        "//localhost/d?port=9&",
        "///d?service=k&",
    ]
    places = {address_of(f"postgresql:{one}table=s.t").place for one in ["///d?", *others]}
    assert len(places) == len(others) + 1


def test_files_that_spark_reads_have_one_budget(tmp_path: Path) -> None:
    """No session is asked: the paths tell, and links of this host."""
    inner = tmp_path / "f" / "in"
    inner.mkdir(parents=True)
    pq.write_table(pa.table({"x": [0.5]}), inner / "a.parquet")
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "other.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    (tmp_path / "hard").mkdir()
    (tmp_path / "hard" / "b.parquet").hardlink_to(inner / "a.parquet")
    whole = f"spark:{tmp_path}/f"
    for folder, name in (("nameless", "part-0"), ("hidden", "_a.parquet")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).hardlink_to(inner / "a.parquet")
    (tmp_path / "deep" / "sub").mkdir(parents=True)
    (tmp_path / "deep" / "sub" / "linked").symlink_to(inner)
    (inner / "loop").symlink_to(tmp_path / "f")
    (tmp_path / "empty").mkdir()
    spellings = ["f/in", "f/in/a.parquet", "link", "link/in", "hard", "./f"]
    spellings += ["nameless", "hidden", "deep"]
    shared = [(whole, f"spark:{tmp_path}/{one}") for one in spellings]
    shared += [(whole, f"{tmp_path}/{one}") for one in spellings]
    shared += [
        (whole, f"spark:file://{tmp_path}/link"),
        ("spark:hdfs://h/a", "spark:hdfs://h/a/./b"),
        *(("spark:t", f"spark:{one}") for one in ("default.T", "spark_catalog.default.t")),
    ]
    for pair in [*shared, *((other, one) for one, other in shared)]:
        with pytest.raises(DeclarationError, match="two ledgers"):
            _declared(tmp_path, pair)
    apart = [(whole, f"{tmp_path}/other.parquet"), ("spark:hdfs://h/a", "spark:hdfs://h/ab")]
    apart += [
        ("spark:t", "spark:other.t"),
        ("spark:c.s.t", "spark:s.t"),
        (whole, f"spark:{tmp_path}/empty"),
    ]
    for pair in [*apart, (whole, f"spark:{tmp_path}/other.parquet")]:
        assert len(_declared(tmp_path, pair)) == 2


@pytest.mark.parametrize("is_joined", [True, False])
def test_the_rows_of_a_question_are_those_that_were_checked_for_it(is_joined: bool) -> None:
    """An earlier question read a column whose type has changed since; this one doesn't read it."""
    stays, others = postgres_tables.new_name(), postgres_tables.new_name()
    key, of_row = ("person", "n % 9") if is_joined else ("bill", "n")
    postgres_tables.run(
        f"CREATE TABLE {stays} (person int8, bill int8)",
        f"CREATE TABLE {others} ({key} int8, price float8)",
        f"INSERT INTO {stays} SELECT n % 9, n FROM generate_series(1, 60) AS n",
        f"INSERT INTO {others} SELECT {of_row}, n FROM generate_series(1, 60) AS n",
        f"GRANT SELECT ON {stays}, {others} TO {postgres_tables.reader()}",
    )
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    price = {"price": dp.Column.number(0, 20)}
    bill = {"bill": dp.Column.integer()}
    first = dp.Table(
        postgres_tables.url(stays), name="stays", unit=UNIT, columns=bill, rows=9, ledger=ledger
    )
    if is_joined:
        second = dp.Table(
            postgres_tables.url(others), name="o", unit=UNIT, columns=price, rows=9, ledger=ledger
        )
        table = first.join(second, "person")
    else:
        table = first.linked(
            postgres_tables.url(others), on="bill", columns=price, rows=3, name="o"
        )
    few, more = table.agg(n=dp.count()), table.agg(n=dp.count(), s=dp.sum("price"))
    for question in (few, more):
        question.release(epsilon=1)
    postgres_tables.run(f"ALTER TABLE {others} ALTER price TYPE text")
    for question in (few, more, few):
        question.release(epsilon=1)
    assert not ledger.is_locked


def test_no_connection_is_opened_after_the_charge() -> None:
    """A server that has no connection left can't fail a question that is paid."""
    asked = _world(_stored_in_postgres())["stays"].question(QUESTIONS[0])
    source = asked.table.source
    with _engine.opened(served_by(source)) as engine:
        ready = prepare(asked.plan, source, engine)
        postgres_tables.run(f"ALTER ROLE {postgres_tables.reader()} CONNECTION LIMIT 0")
        try:
            assert ready.compute(None)
        finally:
            postgres_tables.run(f"ALTER ROLE {postgres_tables.reader()} CONNECTION LIMIT -1")
