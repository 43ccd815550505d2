"""Addresses of ledgers: the path of a file, or a database with the name of the ledger in it."""

import os
import re
from collections.abc import Hashable
from pathlib import Path

from sqlalchemy import URL, Dialect, make_url
from sqlalchemy.exc import ArgumentError

from discreet.errors import InvalidArgument, LedgerError
from discreet.ledger import _postgres
from discreet.ledger._anchor import Anchor, AnchorMark, AnchorPlace
from discreet.ledger._facts import Opening
from discreet.ledger._postgres_anchor import PostgresAnchor
from discreet.ledger._postgres_store import PostgresStore
from discreet.ledger._sqlite import as_path
from discreet.ledger._sqlite_store import SqliteStore
from discreet.ledger._store import Store

Address = str | os.PathLike[str]
_PORT = 5432
_VARIABLES = {
    "service": "PGSERVICE",
    "hostaddr": "PGHOSTADDR",
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
}
_SCHEME = re.compile(r"\s*postgres(ql)?(\+psycopg)?://", re.IGNORECASE)


def make_store(address: Address, opening: Opening) -> bool:
    """Make a ledger with the first link at this address; False if it is taken."""
    found = _parsed(address)
    if isinstance(found, Path):
        return SqliteStore.make_file(found, opening)
    return PostgresStore.make(*found, opening)


def open_store(address: Address) -> Store:
    """The store at this address."""
    found = _parsed(address)
    if isinstance(found, Path):
        return SqliteStore.open_file(found)
    return PostgresStore.open(*found)


def open_anchored(address: Address, anchor: Address | None) -> tuple[Store, AnchorPlace | None]:
    """The store at this address with its anchor, which the first opening makes."""
    store = open_store(address)
    if anchor is None:
        return store, None
    place = anchor_at(anchor)
    if not place.is_made:
        with store.reading() as rows:
            head = AnchorMark.of(rows.head())
        place.begin(head)
    place.check()
    return store, place


def anchor_at(address: Address) -> AnchorPlace:
    """The anchor at this path, or in this database, made or not."""
    found = _parsed(address, "anchor")
    return Anchor.at(found) if isinstance(found, Path) else PostgresAnchor(*found)


def is_in_database(anchor: str) -> bool:
    """Whether this names an anchor in a database, which has an address that can be read."""
    return not isinstance(_parsed(anchor, "anchor"), Path)


def refuse_lost(address: Address, anchor: Address | None) -> None:
    """Raise `LedgerError` if the anchor is there and the ledger is not."""
    if anchor is not None and anchor_at(anchor).is_made and not is_made(address):
        shown = named(anchor, "anchor").removeprefix("the anchor ")
        raise LedgerError(
            f"{named(address)} is not there, and its anchor {shown} is: it was moved or removed; "
            "put it back, or a backup of it"
        )


def is_taken(address: Address) -> bool:
    """Whether a file is at this address. False for a database: only a connection can tell."""
    found = _parsed(address)
    return isinstance(found, Path) and os.path.lexists(found)


def is_made(address: Address) -> bool:
    """Whether a ledger, or another file, is at this address; connects if it is a database."""
    found = _parsed(address)
    return found.exists() if isinstance(found, Path) else PostgresStore.is_made(*found)


def database_of(address: Address) -> tuple[URL, str] | None:
    """The database of a ledger, and the ledger's name there; None for a file."""
    found = _parsed(address)
    return None if isinstance(found, Path) else found


def ledger_name(address: Address) -> str | None:
    """The ledger's name in a database; None for a file."""
    found = database_of(address)
    return None if found is None else found[1]


def has_password(address: Address, word: str = "ledger") -> bool:
    """Whether the address of a database holds a password."""
    found = _parsed(address, word)
    if isinstance(found, Path):
        return False
    return bool(found[0].password) or any("pass" in key for key in found[0].query)


def address_identity(address: Address, word: str = "ledger") -> Hashable:
    """Different for two addresses of two ledgers, or of two anchors; equal for most addresses of
    one, whatever the user and the options of a connection."""
    found = _parsed(address, word)
    if isinstance(found, Path):
        return found.resolve()
    url, name = found
    return *_database(url), name


def _database(url: URL) -> tuple[str, ...]:
    """The parameters by which libpq finds a database. Those of the query come before what stands in
    front of them, and the environment says what is left open; a service's file is not read."""
    _, given = _dialect(url).create_connect_args(url)
    usual = {"port": _PORT, "dbname": given.get("user") or os.environ.get("PGUSER")}
    names = ("service", "hostaddr", "host", "port", "dbname")
    found = {name: given.get(name) or os.environ.get(_VARIABLES[name]) for name in names}
    if not found["service"]:
        found = {name: value or usual.get(name) for name, value in found.items()}
    return tuple(
        str(value or "") for value in (*found.values(), found["service"] and given.get("user"))
    )


def _dialect(url: URL) -> Dialect:
    made: Dialect = url.set(drivername="postgresql+psycopg").get_dialect()()
    return made


def named(address: Address, word: str = "ledger") -> str:
    """The address as it may be shown, without a password."""
    found = _parsed(address, word)
    if isinstance(found, Path):
        return str(found)
    return (PostgresAnchor if word == "anchor" else PostgresStore)(*found).name


def _parsed(address: Address, word: str = "ledger") -> Path | tuple[URL, str]:
    scheme = _SCHEME.match(address) if isinstance(address, str) else None
    if scheme is None:
        return as_path(address)
    try:
        url = make_url(f"postgresql://{scheme.string[scheme.end() :].strip()}")
        _dialect(url).create_connect_args(url)  # raises if hosts and ports don't fit
    except (ArgumentError, ValueError):
        url = None
    if url is None or "@" in f"{url.host}{url.database}":  # a part of a password, perhaps
        raise InvalidArgument(
            "path: this address of a database can't be read: give "
            f"postgresql://user:password@host:port/database?{word}=NAME, and write @, :, /, ? and "
            "% in a user's name or password as %40, %3A, %2F, %3F and %25"
        )
    name = url.query.get(word)
    if not isinstance(name, str) or not _postgres.NAME.fullmatch(name):
        raise InvalidArgument(
            f"path: end the database's address by ?{word}=NAME, with a name of at most 51 "
            "small letters, digits and _ that begins with a letter"
        )
    return url.difference_update_query([word]), name
