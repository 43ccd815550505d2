"""Tables in PostgreSQL: their addresses, who may read them, and the faults of a server."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import ComputationFailed, DeclarationError, DiscreetError, InvalidArgument
from discreet.ledger import Kind
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._engines._postgres_address import PostgresAddress, address_of, is_address
from discreet.query._engines._postgres_connections import named
from discreet.query._engines._postgres_table import (
    PostgresRows,
    PostgresTable,
    connected,
    listed,
)
from discreet.query._rows._source import kinds, place_of, served_by, source_of
from tests.ledger import postgres
from tests.query import postgres_tables
from tests.query.postgres_tables import run, url

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

UNIT = dp.Unit("person")
COUNT = "SELECT COUNT(*) FROM t"


def made(columns: str = "person int8, days int4", *, is_granted: bool = True) -> str:
    """A new table of a few rows, by its name."""
    name = postgres_tables.new_name()
    run(f"CREATE TABLE {name} ({columns})")
    if columns.startswith("person int8, days int4"):
        run(f"INSERT INTO {name} SELECT n % 9, n % 5 FROM generate_series(1, 60) AS n")
    if is_granted:
        run(f"GRANT SELECT ON {name} TO {postgres_tables.reader()}")
    return name


def table_of(source: str) -> dp.Table:
    """A table to ask."""
    return dp.Table(
        source,
        name="t",
        unit=UNIT,
        columns={"days": dp.Column.integer(0, 10)},
        rows=5,
        ledger=dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10)),
    )


def charges(table: dp.Table) -> int:
    """The number of charges in the table's ledger."""
    ledger = table.ledger
    assert isinstance(ledger, dp.Ledger)
    return sum(entry.kind is Kind.CHARGE for entry in ledger.history())


# --- addresses ---

OTHER_PARAMETERS = (  # secrets, another database, and none of libpq's
    *("passfile", "scram_client_key", "scram_server_key", "oauth_client_secret"),
    *("dbname", "secret", "PASSWORD"),
)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://reader@host:5433/shop?table=public.visits",
        "postgresql://reader@/shop?host=/tmp/a%20folder&table=public.visits",
        "postgresql:///shop?service=main&table=public.odd.name",
        "postgresql:///shop?host=/tmp/a%20folder&table=public.visits",
    ],
)
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert is_address(text)
    assert address_of(str(address_of(text))) == address_of(text)
    assert "table" not in address_of(text).database
    conninfo = pytest.importorskip("psycopg.conninfo")
    known = conninfo.conninfo_to_dict(address_of(text).database)
    assert known.get("dbname") == "shop"
    assert known.get("host", known.get("service")) in ("host", "/tmp/a folder", "main")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "postgresql://host/shop",
            "postgresql://host/?table=a.b",
            "postgresql://host/shop?table=b",
        ),
        *("postgresql://host/shop?table=.b", "postgresql://host/shop?table=a.b&table=a.c"),
        *(
            "postgresql://u:secret@host/shop?table=a.b",
            "postgresql://h/s?password=secret&table=a.b",
        ),
        "postgresql://h/s?sslpassword=secret&table=a.b",
        *(f"postgresql://h/s?{name}=secret&table=a.b" for name in OTHER_PARAMETERS),
        *(f"postgresql://u:secret{sign}x@h/s?table=a.b" for sign in "/?#"),
        *("postgresql://[secret/s?table=a.b", "postgresql://h:secret/s?table=a.b"),
    ],
)
def test_an_address_that_names_no_table_or_a_password_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        address_of(text)
    assert "secret" not in str(refusal.value)


def test_one_table_has_one_place_whatever_the_user() -> None:
    one, other, third = (
        source_of(f"postgresql://{user}@Host{port}/shop?table={name}", [])
        for user, port, name in (
            ("a", "", "public.visits"),
            ("b", ":5432", "public.visits"),
            ("a", "", "public.other"),
        )
    )
    assert place_of(one) == place_of(other) != place_of(third)


def declaration(
    source: str, *, name: str = "visits", ledger: str = "a.ledger", more: str = ""
) -> str:
    """One table of a declaration."""
    return (
        f'[tables.{name}]\nsource = "{source}"\nunit = "person"\nrows = 5\n{more}\n'
        f'[tables.{name}.ledger]\npath = "{ledger}"\nepsilon = 1\n'
        f'[tables.{name}.columns]\ndays = {{type = "integer", lower = 0, upper = 10}}\n'
    )


AT = "postgresql://reader@host/shop?table=public.visits"
OTHER_USER = AT.replace("reader", "other")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (declaration(AT.replace("@", ":secret@")), "holds a password"),
        (declaration(AT, more='format = "csv"'), "only a file has it"),
        (declaration(AT, more='delimiter = ";"'), "only a file has it"),
        (declaration("postgresql://host/shop"), "reads postgresql://"),
        (declaration("postgresql://one:1,other:2/shop?table=a.b"), "reads postgresql://"),
        (declaration("postgresql://u:secret/x@host/shop?table=a.b"), "reads postgresql://"),
        (
            declaration(AT) + declaration(OTHER_USER, name="b", ledger="b.ledger"),
            "one dataset has one budget",
        ),
        (declaration(AT) + f'[public.p]\nsource = "{AT}"\n', "a public table is a file"),
    ],
)
def test_a_declaration_is_refused_by_name(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_text(text)
    with pytest.raises(DeclarationError, match=why) as refusal:
        dp.open(file)
    assert "secret" not in str(refusal.value)


def test_a_declared_table_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_text(declaration(url(made())))
    answer = dp.open(file)["visits"].sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert answer.to_pandas()["n"][0] > 0


# --- rights, and tables that are none ---


def _view(name: str) -> str:
    run(f"CREATE VIEW {name}v AS SELECT * FROM {name}")
    run(f"GRANT SELECT ON {name}v TO {postgres_tables.reader()}")
    return url(f"{name}v")


def _with_policies(name: str) -> str:
    run(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    return url(name)


def _writable(name: str) -> str:
    run(f"GRANT UPDATE ON {name} TO {postgres_tables.reader()}")
    return url(name)


def _writable_column(name: str) -> str:
    run(f"GRANT UPDATE (days) ON {name} TO {postgres_tables.reader()}")
    return url(name)


def _writable_part(name: str) -> str:
    run(
        f"CREATE TABLE {name}c () INHERITS ({name})",
        f"CREATE TABLE {name}d () INHERITS ({name}c)",
        f"GRANT INSERT ON {name}d TO {postgres_tables.reader()}",
    )
    return url(name)


def _ungranted(name: str) -> str:
    reader = postgres_tables.reader()
    run(f"REVOKE SELECT ON {name} FROM {reader}", f"GRANT SELECT (person) ON {name} TO {reader}")
    return url(name)


def _full(name: str) -> str:
    role = f"{postgres_tables.reader()}_full"
    run(f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    return url(name, role)


def _foreign_child(name: str) -> str:
    run(
        f"CREATE FOREIGN DATA WRAPPER {name}w",
        f"CREATE SERVER {name}s FOREIGN DATA WRAPPER {name}w",
        f"CREATE TABLE {name}c () INHERITS ({name})",
        f"CREATE FOREIGN TABLE {name}f () INHERITS ({name}c) SERVER {name}s",
    )
    return url(name)


def _of_a_group(name: str) -> str:
    """A role that inherits nothing of a group that may write, and may still become it."""
    run(
        f"CREATE ROLE {name}g",
        f"GRANT INSERT ON {name} TO {name}g",
        f"CREATE ROLE {name}m LOGIN NOINHERIT IN ROLE {name}g",
        f"GRANT SELECT ON {name} TO {name}m",
        f"GRANT USAGE ON SCHEMA public TO {name}m",
    )
    return url(name, f"{name}m")


def _of_an_owner(name: str) -> str:
    """An owner without the right to write, which it may take back."""
    run(
        f"CREATE ROLE {name}o LOGIN",
        f"GRANT USAGE ON SCHEMA public TO {name}o",
        f"ALTER TABLE {name} OWNER TO {name}o",
        f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER ON {name} FROM {name}o",
    )
    return url(name, f"{name}o")


def _unreadable(name: str) -> str:
    run(f"REVOKE SELECT ON {name} FROM {postgres_tables.reader()}")
    return url(name)


def _without_login(name: str) -> str:
    run(f"CREATE ROLE {name}r NOLOGIN")
    return url(name, f"{name}r")


def _by_password(name: str) -> str:
    role = f"{postgres_tables.reader()}_secret"
    run(f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
    rules = Path(postgres.server().pgdata) / "pg_hba.conf"
    old = rules.read_text()
    if role not in old:
        rules.write_text(f"local all {role} scram-sha-256\n{old}")
    run("SELECT pg_reload_conf()")
    time.sleep(0.2)
    return url(name, role)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_view, "no table that stores rows"),
        (_foreign_child, "no table that stores rows"),
        (_with_policies, "row security"),
        (_writable, "may change"),
        (_writable_column, "may change"),
        (_writable_part, "may change"),
        (_of_a_group, "may change"),
        (_of_an_owner, "may change"),
        (_ungranted, "a type without a rule, or its role may not read it"),
        (_unreadable, "may read no column"),
        (_without_login, "lets this role not log in"),
        (_full, "no connection left"),
        (_by_password, "refuses the password"),
        (lambda name: url(name, "postgres"), "may change"),
        (lambda name: url(name, "nobody_of_this_name"), "no such database, role or table"),
        (lambda name: url(f"{name}x"), "has no table"),
        (lambda _: "postgresql://reader@127.0.0.1:1/x?table=a.b", "no server answers"),
    ],
)
def test_a_table_that_may_not_be_asked_is_refused_before_the_charge(
    change: Callable[[str], str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong-and-secret")
    table = table_of(change(made()))
    with pytest.raises(DiscreetError, match=why) as refusal:
        table.sql(COUNT, epsilon=1)
    assert "wrong-and-secret" not in str(refusal.value)
    assert charges(table) == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("SSL error: certificate verify failed", "certificate"),
        ('server certificate for "a" does not match host name "b"', "certificate"),
        ('root certificate file "/root.crt" does not exist', "certificate"),
        ("server does not support SSL, but SSL was required", "has no TLS"),
        ('connection to server at "h" failed: fe_sendauth: no password supplied', "password"),
    ],
)
def test_a_connection_refused_by_tls_is_told_apart_from_a_server_that_is_away(
    said: str, why: str
) -> None:
    """In libpq's words, as servers with another certificate and without TLS made it say them."""
    at = address_of("postgresql://reader@h/x?table=a.b")
    assert isinstance(at, PostgresAddress)
    with pytest.raises(DeclarationError, match=why), named(at):
        raise import_module("psycopg").OperationalError(said)


def test_types_without_a_rule_are_named() -> None:
    listed = {
        "a": ("bigint[]", None),
        "b": ("jsonb", None),
        "c": ("bytea", None),
        "d": ("interval", None),
        "e": ("numeric(50, 2)", "text"),
        "f": ("numeric(5, -2)", "text"),
        "g": ("char(5)", "text"),
        "h": ("uuid", "text"),
        "i": ("time", None),
        "j": ("timestamptz", "date"),
        "k": ("real", "number"),
    }
    name = made(", ".join(f"{column} {kind}" for column, (kind, _) in listed.items()))
    found = kinds(source_of(url(name), []))
    assert {one: kind and kind.value for one, kind in found.items()} == {
        column: kind for column, (_, kind) in listed.items()
    }


ENDS = {
    "timestamp": ("4714-11-24 BC", "294276-12-31 23:59:59.999999", "infinity", "-infinity"),
    "timestamptz": ("4714-11-24 BC", "294276-12-31 23:59:59.999999", "infinity", "-infinity"),
    "date": ("4714-11-24 BC", "5874897-12-31", "infinity", "-infinity"),
    "numeric": ("NaN", "Infinity", "-Infinity", f"{'9' * 131_000}", f"0.{'0' * 16_000}1"),
    "float8": ("NaN", "Infinity", "4.9e-324", "1.7976931348623157e308", "-1e308"),
    "int8": ("9223372036854775807", "-9223372036854775808"),
}


@pytest.mark.parametrize("kind", [kind for kind in ENDS if kind != "timestamptz"])
def test_no_end_of_a_type_makes_an_id_fail(kind: str) -> None:
    name = made(f"person {kind}, days int4")
    run((f"INSERT INTO {name} VALUES (%s::{kind}, 1)", [[end] for end in ENDS[kind]]))
    table = table_of(url(name))
    with _engine.opened(served_by(table.source)) as engine:
        prepare(table.question(COUNT).plan, table.source, engine).compute(None)


@pytest.mark.parametrize("kind", [kind for kind in ENDS if "time" in kind or kind == "date"])
def test_no_end_of_a_type_makes_a_day_fail(kind: str) -> None:
    name = made(f"person int8, days {kind}")
    run((f"INSERT INTO {name} VALUES (1, %s::{kind})", [[end] for end in ENDS[kind]]))
    zone = "Pacific/Kiritimati" if kind == "timestamptz" else None
    table = dp.Table(
        url(name), name="t", unit=UNIT, columns={"days": dp.Column.date(zone=zone)}, rows=5
    )
    asked: Any = table.question("SELECT SUM(MONTH(days)), COUNT(days) FROM t")
    with _engine.opened(served_by(table.source)) as engine:
        prepare(asked.plan, table.source, engine).compute(None)


def test_a_label_is_read_without_its_owners_cast() -> None:
    name = postgres_tables.new_name()
    run(f"CREATE TYPE {name}e AS ENUM ('a', 'b')", f"CREATE DOMAIN {name}d AS {name}e")
    run(
        f"CREATE FUNCTION {name}f({name}e) RETURNS text LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN RAISE EXCEPTION 'no'; END $$",
        f"CREATE CAST ({name}e AS text) WITH FUNCTION {name}f({name}e)",
        f"CREATE TABLE {name} (person int8, mood {name}e, other {name}d)",
        f"INSERT INTO {name} VALUES (1, 'a', 'b'), (2, NULL, NULL)",
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
    )
    source: Any = source_of(url(name), [])
    with source.rows(["mood", "other"]) as rows, connected(source.at) as connection:
        found = connection.execute(rows.selected(listed(connection, source.at))).fetchall()
    assert found == [("a", "b"), (None, None)]


SETTINGS = {
    "search_path": "odd, pg_catalog",
    **dict.fromkeys(("statement_timeout", "lock_timeout", "transaction_timeout"), "'50s'"),
    "timezone": "'Asia/Tokyo'",
    "datestyle": "'German'",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_no_setting_of_the_role_decides(name: str) -> None:
    role = f"{postgres_tables.reader()}_{name}"
    place = made()
    run(
        f"DROP ROLE IF EXISTS {role}",
        f"CREATE ROLE {role} LOGIN",
        "CREATE SCHEMA IF NOT EXISTS odd",
        "CREATE OR REPLACE FUNCTION odd.set_config(text, text, boolean) RETURNS text LANGUAGE sql "
        "AS $$ SELECT 'ignored'::text $$",
        f"GRANT USAGE ON SCHEMA odd TO {role}",
        f"GRANT SELECT ON {place} TO {role}",
    )
    try:
        run(f"ALTER ROLE {role} SET {name} = {SETTINGS[name]}")
    except import_module("psycopg").errors.UndefinedObject:
        pytest.skip("an older server, which lacks this setting")
    here, there = (source_of(url(place, user), []) for user in (None, role))
    assert isinstance(there, PostgresTable)
    assert isinstance(here, PostgresTable)
    found = []
    for one in (here, there):
        with connected(one.at) as connection:
            row = connection.execute("SELECT pg_catalog.current_setting(%s)", (name,)).fetchone()
            found.append(row)
    assert found[1] == found[0]


TEXT_KINDS = ("text", "varchar", "char(10000000)")


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_no_longer_text_is_read_than_the_server_can_compute_with(kind: str) -> None:
    name = made(f"person {kind}, days int4")
    run(f"INSERT INTO {name} SELECT repeat('é', n), 1 FROM unnest(ARRAY[5, 32768, 32769]) AS n")
    source: Any = source_of(url(name), [])
    with source.rows(["person"]) as rows, connected(source.at) as connection:
        found = connection.execute(rows.selected(listed(connection, source.at))).fetchall()
    assert [one and len(one) for (one,) in found] == [5, 1 << 15, None]


@pytest.mark.long
@pytest.mark.parametrize("column", ["person", "days", "name"])
def test_no_long_text_makes_a_question_fail(column: str) -> None:
    name = made("person text, days text, name text")
    row = {"person": "'p'", "days": "'1'", "name": "'a'", column: "repeat('é', 70000000)"}
    run(f"INSERT INTO {name} SELECT {', '.join(row.values())}")
    columns = {"days": dp.Column.integer(0, 9), "name": dp.Column.text(keys=["a", "b"])}
    table = dp.Table(url(name), name="t", unit=UNIT, columns=columns, rows=5)
    asked: Any = table.question("SELECT name, COUNT(*), SUM(days) FROM t GROUP BY name")
    with _engine.opened(served_by(table.source)) as engine:
        prepare(asked.plan, table.source, engine).compute(None)


def test_a_domain_is_read_as_its_base() -> None:
    name = postgres_tables.new_name()
    run(f"CREATE DOMAIN {name}d AS int4 CHECK (value > 0)")
    run(f"CREATE TABLE {name} (person int8, days {name}d)")
    run(f"GRANT SELECT ON {name} TO {postgres_tables.reader()}")
    assert kinds(source_of(url(name), []))["days"] == dp.Column.integer(0, 1).type


# --- faults after the charge ---


@contextmanager
def waiting(
    kind: str, then: Callable[[int], None], patch: pytest.MonkeyPatch | None = None
) -> Iterator[None]:
    """Once a server process of the reader waits for an event of this kind, it gets what follows.
    With a patch, each row is read in a minute."""
    if patch is not None:
        slow = PostgresRows.selected
        patch.setattr(
            PostgresRows,
            "selected",
            lambda *given: f"SELECT * FROM ({slow(*given)}) AS r WHERE pg_sleep(60) IS NOT NULL",
        )

    def act() -> None:
        with import_module("psycopg").connect(postgres_tables.owner(), autocommit=True) as other:
            for _ in range(600):
                found = other.execute(
                    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = %s AND usename = %s",
                    (kind, postgres_tables.reader()),
                ).fetchone()
                if found:
                    then(found[0])
                    return
                time.sleep(0.05)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_server_that_ends_in_mid_question_leaves_it_paid_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = made()
    table = table_of(url(name))

    def end(process: int) -> None:
        run(f"SELECT pg_terminate_backend({process})")

    with waiting("Timeout", end, monkeypatch), pytest.raises(ComputationFailed) as failure:
        table.sql(COUNT, epsilon=1)
    assert "terminat" not in str(failure.value)
    assert name not in str(failure.value)
    assert charges(table) == 1


def test_ctrl_c_cancels_the_statement_in_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(url(made()))

    def interrupt(process: int) -> None:
        del process
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # test workers ignore it
    try:
        with waiting("Timeout", interrupt, monkeypatch), pytest.raises(KeyboardInterrupt):
            table.sql(COUNT, epsilon=1)
    finally:
        signal.signal(signal.SIGINT, before)
    with import_module("psycopg").connect(postgres_tables.owner()) as owner:
        left = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active'"
        assert owner.execute(left, (postgres_tables.reader(),)).fetchone() == (0,)


def test_rows_that_a_subquery_computes_one_by_one_are_asked() -> None:
    table = table_of(url(made()))
    text = "SELECT COUNT(*) AS n FROM (SELECT person, days + 1 AS d FROM t WHERE days > 2) AS p"
    assert table.sql(text, epsilon=9).to_pandas()["n"][0] > 0


CHANGES = (
    *("TRUNCATE {0}", "DROP TABLE {0}", "ALTER TABLE {0} DROP COLUMN days"),
    *("ALTER TABLE {0} RENAME TO {0}x", "ALTER TABLE {0} ALTER days TYPE text"),
)


@pytest.mark.parametrize("change", CHANGES)
def test_no_table_changes_between_the_charge_and_the_answer(change: str) -> None:
    name = made()
    table = table_of(url(name))
    asked: Any = table.question(COUNT)
    refused = import_module("psycopg").errors.LockNotAvailable
    with _engine.opened(served_by(table.source)) as engine:
        ready = prepare(asked.plan, table.source, engine)
        with pytest.raises(refused):
            run(f"SET lock_timeout = '50ms'; {change.format(name)}")
        assert sum(next(iter(ready.compute(None).values()))) == 45


def test_a_load_that_is_under_way_is_waited_for() -> None:
    name = made()
    table = table_of(url(name))
    asked: Any = table.question(COUNT)
    with import_module("psycopg").connect(postgres_tables.owner()) as load:
        load.execute(f"TRUNCATE {name}")
        load.execute(f"INSERT INTO {name} SELECT n, 1 FROM generate_series(1, 30) AS n")

        def commit(_: int) -> None:
            load.commit()

        with waiting("Lock", commit), _engine.opened(served_by(table.source)) as engine:
            found = prepare(asked.plan, table.source, engine).compute(None)
    assert sum(next(iter(found.values()))) == 30


def test_a_role_that_may_read_some_columns_only_is_refused() -> None:
    name = made(is_granted=False)
    run(f"GRANT SELECT (person, days) ON {name} TO {postgres_tables.reader()}")
    table = table_of(url(name))
    with pytest.raises(DiscreetError, match="may not read all columns"):
        table.sql(COUNT, epsilon=1)
    assert charges(table) == 0


def test_the_role_needs_only_to_read_and_the_transaction_can_not_write() -> None:
    table = table_of(url(made()))
    with _engine.opened(served_by(table.source)) as engine:
        connection: Any = engine.connection  # type: ignore[attr-defined]  # PostgreSQL's alone
        found = connection.execute(
            "SELECT current_setting('transaction_read_only'), "
            "current_setting('transaction_isolation'), current_setting('search_path')"
        ).fetchone()
    assert found == ("on", "repeatable read", "pg_catalog")
