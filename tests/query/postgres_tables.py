"""Tables in a real PostgreSQL for tests, and the role that reads them."""

import secrets
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from tests.ledger import postgres


@cache
def owner() -> str:
    """The address of the server, for a role that may do everything."""
    postgres.address()  # skips where there is no server
    parts = urlsplit(str(postgres.server().get_uri()))
    return urlunsplit(parts)


def run(*statements: tuple[str, Sequence[Sequence[Any]]] | str) -> None:  # Any: values of rows
    """Run statements as the owner; one with rows for each of these."""
    with import_module("psycopg").connect(owner(), autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        for one in statements:
            text, rows = (one, ()) if isinstance(one, str) else one
            if rows:
                connection.cursor().executemany(text, rows)
            else:
                connection.execute(text)


@cache
def reader() -> str:
    """A role that may only read what it is granted."""
    owner()
    name = f"reader_{secrets.token_hex(4)}"
    run(f"CREATE ROLE {name} LOGIN", f"GRANT USAGE ON SCHEMA public TO {name}")
    return name


def url(table: str, role: str | None = None) -> str:
    """The address of a table of the schema public, for the reader."""
    parts = urlsplit(owner())
    query = urlencode([*parse_qsl(parts.query), ("table", f"public.{table}")], quote_via=quote)
    place = f"{role or reader()}@{parts.hostname or ''}"
    return urlunsplit(parts._replace(netloc=place, query=query))


def new_name() -> str:
    """The name of a table that isn't there yet."""
    owner()
    return f"t{secrets.token_hex(6)}"
