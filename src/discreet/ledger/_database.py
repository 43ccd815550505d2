"""One SQLite database on one connection, which only the ledger itself closes.

SQLAlchemy discards a connection after an interruption such as Ctrl-C. That would destroy a database
in memory, and leave one in a file in the middle of a transaction. So SQLAlchemy gets a connection
that it can't close, and a new engine after each failure. The ledger closes a connection during its
own turn, or once nothing uses it. At the interpreter's exit the connection stays open, since other
threads may be using it.
"""

import sqlite3
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from discreet._ownership import process
from discreet.errors import LedgerError
from discreet.ledger._turns import LOCKS_FOR_SQLITE, turn

_BUSY_SECONDS = 60.0  # where SQLite takes its own locks
# Closing the file anywhere in the process would release the locks that SQLite takes. So SQLite
# takes none, and the turn holds locks of its own.
_NO_LOCKS = "&vfs=unix-none" if LOCKS_FOR_SQLITE else ""
_JOURNAL_HEADER = 28  # bytes; all are 0 once a transaction ended


class _Driver(sqlite3.Connection):
    """A connection that only `undo` rolls back, and only `end` closes."""

    def __init__(self, name: str, *, uri: bool) -> None:
        """Connect to this database, without automatic transactions."""
        super().__init__(
            name, uri=uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._cursors: list[weakref.ref[sqlite3.Cursor]] = []

    def cursor(self, factory: type[sqlite3.Cursor] = sqlite3.Cursor) -> sqlite3.Cursor:  # type: ignore[override]  # SQLAlchemy gives no other argument
        made = super().cursor(factory)
        self._cursors.append(weakref.ref(made))
        return made

    def close(self) -> None:
        """Do nothing: SQLAlchemy calls this, also after an interruption."""

    def rollback(self) -> None:
        """Do nothing, as `close`: another transaction may be in progress."""

    def finish(self) -> None:
        """Reset all statements: an unfinished one would hide the changes of others."""
        for reference in self._cursors:
            if (cursor := reference()) is not None:
                cursor.close()
        self._cursors.clear()

    def undo(self) -> None:
        """Roll back everything that is not committed."""
        with suppress(sqlite3.Error):
            self.finish()
        if self.in_transaction:
            super().rollback()

    def end(self) -> None:
        """Close the connection."""
        super().close()


class Database:
    """A database, used by one thread at a time."""

    def __init__(self, make: Callable[[], _Driver], *, is_in_memory: bool) -> None:
        """Connect by ``make`` at the first use."""
        self._make, self._is_in_memory = make, is_in_memory
        self._driver: _Driver | None = None
        self._engine: Engine | None = None

    def connect(self) -> Connection:
        """The connection, for one transaction."""
        if self._engine is None:
            self._engine = create_engine(
                "sqlite+pysqlite://",
                creator=self._connected,
                poolclass=StaticPool,
                hide_parameters=True,
            )
        return self._engine.connect()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is neither committed nor rolled back."""
        return self._driver is not None and self._driver.in_transaction

    def finish(self) -> None:
        """Reset the statements of a committed transaction."""
        if self._driver is not None:
            self._driver.finish()

    def abandon(self) -> None:
        """Roll back, and drop the connection. Call it during the turn only."""
        if not self._is_in_memory:
            self.end()
            return
        self._engine = None
        if self._driver is not None:
            self._driver.undo()

    def end(self) -> None:
        """Roll back and close the connection; the next use makes a new one."""
        self._engine, driver = None, self._driver
        if driver is not None:
            with suppress(sqlite3.Error):  # the next process to open it rolls back by the journal
                driver.undo()
            self._driver = None
            driver.end()

    def _connected(self) -> _Driver:
        if self._driver is None:
            self._driver = self._make()
        return self._driver


_unsettled: list[Database] = []  # interrupted twice and in use elsewhere: never closed


def memory_database() -> Database:
    """A new database in memory."""
    return Database(lambda: _Driver(":memory:", uri=False), is_in_memory=True)


def file_database(path: Path) -> Database:
    """The database in an existing file."""
    return Database(lambda: _connect(path), is_in_memory=False)


def put_away(database: Database, path: Path | None, owner: object) -> None:
    """Disconnect, and remove the journal, unless another process uses it or left a transaction in
    it."""
    if owner != process():
        return  # a child's copy of its parent's
    with suppress(OSError, RuntimeError, LedgerError, sqlite3.Error):
        if path is None or not database.in_transaction:
            database.end()
        if path is not None:
            place = path.resolve()
            journal = place.with_name(f"{place.name}-journal")
            if journal.exists():
                with turn(place, 0):
                    database.end()
                    if not any(journal.read_bytes()[:_JOURNAL_HEADER]):
                        journal.unlink()
    if database.in_transaction:
        _unsettled.append(database)


def _connect(path: Path) -> _Driver:
    driver = _Driver(f"{path.as_uri()}?mode=rw{_NO_LOCKS}", uri=True)  # mode: it makes no file
    driver.text_factory = _text
    try:
        driver.execute("PRAGMA journal_mode = PERSIST").fetchall()
        driver.execute("PRAGMA synchronous = FULL")
    except BaseException:
        driver.end()
        raise
    return driver


def _text(raw: bytes) -> str:
    """Decode any bytes, damaged ones too: the digest decides whether the text is right."""
    return raw.decode(errors="surrogateescape")
