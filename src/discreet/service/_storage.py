"""The service's own database, for tokens, sessions and answers: one SQLite file beside the
declaration, or a schema beside the ledgers where all of these are in PostgreSQL.

It holds no budget. A lost or altered database can forget tokens and stored answers, but every
charge is in the ledgers.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    event,
)
from sqlalchemy.dialects import postgresql, sqlite

from discreet.errors import Refused
from discreet.ledger._schema_beside import SchemaBeside

_BUSY_SECONDS = 30.0
_ENDING = "_service"  # of the schema's name
_ONE_EACH = "is in use by another service: one service runs for one declaration"

_METADATA = MetaData()

TOKENS = Table(
    "tokens",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("expires", BigInteger, nullable=False),  # seconds since 1970
    Column("revoked", BigInteger),  # seconds since 1970, if it was
)

SESSIONS = Table(
    "sessions",
    _METADATA,
    Column("digest", LargeBinary, primary_key=True),  # of the text in the browser
    Column("token", String, nullable=False),  # the id of the token that signed in
    Column("ends", BigInteger, nullable=False),  # seconds since 1970
)

ANSWERS = Table(
    "answers",
    _METADATA,
    Column("by", String, primary_key=True),
    Column("request", String, primary_key=True),
    Column("body", String, nullable=False),  # digest of the question
    Column("answer", LargeBinary),  # the bytes of the response, once they are known
)

StoragePlace = Path | SchemaBeside


def place_of(file: Path, ledgers: Iterable[str | Path]) -> StoragePlace:
    """Beside the first ledger, if all ledgers are in PostgreSQL; otherwise this file."""
    found = [SchemaBeside.of(ledger, _ENDING) for ledger in ledgers]
    schemas = [one for one in found if one is not None]
    return schemas[0] if schemas and len(schemas) == len(found) else file


@contextmanager
def held_storage(file: Path, place: StoragePlace) -> Iterator[Engine]:
    """The database at this place, for this service alone within the block. A lock on a file beside
    ``file`` refuses other services; in PostgreSQL a session's lock refuses those of other hosts.

    Raises `Refused` if another service has it, and `LedgerError` if the server can't be used.
    """
    with ExitStack() as stack:
        stack.callback(os.close, hold(file))
        engine = open_storage(place)
        stack.callback(engine.dispose)
        if isinstance(place, SchemaBeside):
            stack.enter_context(place.locked(engine, _ONE_EACH))
        yield engine


def hold(path: Path) -> int:
    """Keep other services of this host from this database until the returned file descriptor is
    closed.

    Raises `Refused` if another one holds it. The lock has a file of its own, as SQLite has its.
    """
    descriptor = os.open(path.with_name(f"{path.name}-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Refused(f"{path.name} {_ONE_EACH}") from None
    return descriptor


def open_storage(place: StoragePlace) -> Engine:
    """The database at this place, created if there is none. Only its owner can read a file."""
    if isinstance(place, SchemaBeside):
        return place.open(_METADATA)
    os.close(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
    engine = create_engine(
        f"sqlite+pysqlite:///{place.absolute()}", connect_args={"timeout": _BUSY_SECONDS}
    )
    event.listen(engine, "connect", _durable)
    _METADATA.create_all(engine)
    return engine


def inserted(engine: Engine) -> sqlite.Insert | postgresql.Insert:
    """An insert into the answers, which may say what happens to a row that is there."""
    is_sqlite = engine.dialect.name == "sqlite"
    return sqlite.insert(ANSWERS) if is_sqlite else postgresql.insert(ANSWERS)


def _durable(connection: Any, _: object) -> None:  # Any: the driver's own
    """Make each commit reach the disk before it returns."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
