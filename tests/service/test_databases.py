"""Tables in a database: listed ones only, asked by workers that reach nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from discreet.errors import DeclarationError, Refused
from discreet.query._engines._address import address_of
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._toml._declaration_file import read_text, service_facts
from discreet.service._databases import check_listed
from discreet.service.pages._declarations import told_apart
from tests.query import postgres_tables
from tests.service import kit
from tests.service.kit import Served
from tests.service.pages_kit import Browser

NAME = "stays_of_the_service"
OTHER = "postgresql://reader@nowhere.example/other"
COUNT = "SELECT ward, COUNT(*) AS n, AVG(days) AS days FROM stays GROUP BY ward"


@pytest.fixture(scope="module")
def table() -> Iterator[PostgresAddress]:
    """A table of 400 patients with three rows each, which one role may only read."""
    postgres_tables.owner()
    rows = "SELECT n / 3, CASE WHEN n % 2 = 0 THEN 'north' ELSE 'south' END, n % 9 "
    postgres_tables.run(
        f"DROP TABLE IF EXISTS {NAME}",
        f"CREATE TABLE {NAME} (patient int, ward text, days float8)",
        f"INSERT INTO {NAME} {rows} FROM generate_series(0, 1199) AS n",
        f"GRANT SELECT ON {NAME} TO {postgres_tables.reader()}",
    )
    found = address_of(postgres_tables.url(NAME))
    assert isinstance(found, PostgresAddress)
    yield found
    postgres_tables.run(f"DROP TABLE {NAME}")


@pytest.fixture(scope="module")
def served(table: PostgresAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    more = f"\n[service]\ndatabases = {json.dumps([table.database, OTHER])}\n"
    with kit.service(folder, "--workers", "1", more=more) as running:
        yield running


def ask(served: Served, request: str) -> kit.Reply:
    body = {"sql": COUNT, "epsilon": 5, "request": request}
    return served.send("POST", "/v1/tables/stays/ask", body)


def test_the_owner_declares_a_table_of_a_listed_database(
    served: Served, table: PostgresAddress
) -> None:
    """By the pages, and then it is asked, also after its server ended the connections."""
    owner = Browser(served).sign_in(served.owner)
    # 1. the databases are shown without their roles; a server that isn't there is named
    shown = owner.get("/desk/declare")
    assert "postgresql://nowhere.example/other" in shown.words
    assert "reader@" not in shown.text
    form = {"database": "0", "table": NAME}
    for wrong in (
        {"database": "2"},
        {"database": "x"},
        {"table": "."},
        {"table": "a."},
        {"table": "a\0b"},
    ):
        assert owner.send("/desk/declare", "/desk/declare/look", **{**form, **wrong}).status == 400
    missing = owner.send("/desk/declare", "/desk/declare/look", database="0", table="none")
    assert (missing.status, "has no table public.none" in missing.words) == (400, True)
    away = owner.send("/desk/declare", "/desk/declare/look", database="1", table="none")
    assert (away.status, "no server answers there" in away.words) == (400, True)
    # 2. its columns are looked at, and it is declared
    looked = owner.send("/desk/declare", "/desk/declare/look", **form)
    assert f"what is public of public.{NAME}" in looked.words
    assert 'value="patient"' in looked.text
    fields = {"column-0": "patient", "type-0": "integer", "source": looked.hidden("source")}
    fields |= {"column-1": "ward", "type-1": "text", "use-1": "yes", "keys-1": "north, south"}
    fields |= {"column-2": "days", "type-2": "number", "use-2": "yes", "lower-2": "0"}
    fields |= {"upper-2": "9", "unit": "0", "rows": "3", "name": "stays", "epsilon": "90"}
    made = owner.post("/desk/declare", {**fields, "key": looked.hidden("key")})
    assert (made.status, made.to) == (303, "/tables/stays/columns"), made.words
    # 3. it is asked; tables in files are, too
    rows = ask(served, "first").json["rows"]
    assert [row["ward"] for row in rows] == ["north", "south"]
    assert all(abs(row["n"] - 600) < 40 and abs(row["days"] - 4) < 1 for row in rows)
    assert served.ask("file").status == 200
    state = served.send("GET", "/v1/status").json
    kit.needs_barriers(one["name"] for one in state["barriers"] if not one["is_up"])
    # 4. the server ends all connections: another worker has new ones, and nothing is locked
    role = table.database.partition("//")[2].partition("@")[0]
    postgres_tables.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
    )
    again = ask(served, "second")
    assert again.status == 200, again.body
    assert served.send("GET", "/v1/status").json["locked"] == []
    # 5. its ledger is a file, as all others are
    assert (served.folder / "stays.ledger").exists()


def test_no_other_database_is_reached(served: Served, table: PostgresAddress) -> None:
    """Whoever forges a form, or writes another role, port or host, is refused before a worker
    starts."""
    database = table.database
    role = database.partition("//")[2].partition("@")[0]
    others = [
        "postgresql://reader@127.0.0.1:1/postgres?table=public.t",
        str(PostgresAddress(database.replace(role, "postgres"), "public", NAME)),
        str(PostgresAddress(database.replace("/postgres?", "/template1?"), "public", NAME)),
        f"{OTHER}?host=127.0.0.1&table=public.t",
        f"{OTHER}?service=other&table=public.t",
        f"spark:/{quote('rows')}",
        "duckdb:rows.duckdb?table=main.t",
    ]
    for source in others:
        found = served.send("POST", "/v1/sources", {"source": source})
        assert (found.status, found.error) == (400, "invalid_argument"), source
        facts = {"source": source, "row": True, "epsilon": 1}
        body = {"facts": json.dumps(facts)}
        assert served.send("PUT", "/v1/tables/other", body).status == 400, source
    body = {"source": "postgresql://reader:secret@host/db?table=public.t"}
    assert "secret" not in served.send("POST", "/v1/sources", body).body.decode()
    assert served.send("GET", "/v1/tables/other").status == 404


def test_a_declared_table_of_another_database_is_refused_at_the_start() -> None:
    text = kit.TEXT.replace('"wages.parquet"', f'"{OTHER}?table=public.wages"')
    declared = read_text(text, Path("discreet.toml"))
    check_listed(declared, [OTHER])
    with pytest.raises(Refused, match="may not reach; list it"):
        check_listed(declared, ["postgresql://other@nowhere.example/other"])


@pytest.mark.parametrize(
    ("databases", "message"),
    [
        ('["mysql://a@b/c"]', "the address of a database reads"),
        ('["postgresql://a:b@c/d"]', "holds a password"),
        ('["postgresql://a@c/d?table=public.t"]', "the address of a database reads"),
        ('["postgresql://a@c"]', "the address of a table in PostgreSQL reads"),
        ('"postgresql://a@c/d"', "give a list"),
        ("[1]", "give a list"),
    ],
)
def test_a_database_is_named_by_an_address_without_a_password(databases: str, message: str) -> None:
    text = f"{kit.TEXT}\n[service]\ndatabases = {databases}\n"
    with pytest.raises(DeclarationError, match=message) as caught:
        service_facts(text, Path("discreet.toml"))
    assert ":b@" not in str(caught.value)


def test_listed_databases_are_told_apart() -> None:
    addresses = [
        "postgresql://db/a",
        "postgresql://db:6000/a",
        "postgresql://reader@db/a",
        "postgresql://ro%C3%B6t@db/a",
        "postgresql:///a?host=/run/one",
        "postgresql:///a?host=/run/one&port=6000",
        "postgresql:///a?user=reader",
    ]
    shown = told_apart(addresses)
    assert len(set(shown)) == len(addresses)
    assert "postgresql://roöt@db/a" in shown
    assert told_apart(addresses[2:3]) == ["postgresql://db/a"]
