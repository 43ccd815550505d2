"""The service's own database: one SQLite file beside the declaration, for tokens and answers.

It holds no budget. A lost or altered file can forget tokens and stored answers, but every charge is
in the ledgers.
"""

import fcntl
import os
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    event,
)

from discreet.errors import Refused

_BUSY_SECONDS = 30.0

_METADATA = MetaData()

TOKENS = Table(
    "tokens",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("expires", Integer, nullable=False),  # seconds since 1970
    Column("revoked", Integer),  # seconds since 1970, if it was
)

ANSWERS = Table(
    "answers",
    _METADATA,
    Column("by", String, primary_key=True),
    Column("request", String, primary_key=True),
    Column("body", String, nullable=False),  # digest of the question
    Column("answer", LargeBinary),  # the bytes of the response, once they are known
)


def hold(path: Path) -> int:
    """Keep other services from this database until the returned file descriptor is closed.

    Raises `Refused` if another one holds it. The lock has a file of its own, as SQLite has its.
    """
    descriptor = os.open(path.with_name(f"{path.name}-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Refused(
            f"{path.name} is in use by another service: one service runs for one declaration"
        ) from None
    return descriptor


def open_storage(path: Path) -> Engine:
    """The database in this file, created if there is none; only its owner can read it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    engine = create_engine(
        f"sqlite+pysqlite:///{path.absolute()}", connect_args={"timeout": _BUSY_SECONDS}
    )
    event.listen(engine, "connect", _durable)
    _METADATA.create_all(engine)
    return engine


def _durable(connection: Any, _: object) -> None:  # Any: the driver's own
    """Make each commit reach the disk before it returns."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
