"""The store of a ledger in one SQLite file, or in memory: whose turn it is, and its transactions.

A transaction uses the ledger's file alone: threads queue at the store, processes at the file. If
it fails or is interrupted, it is rolled back before others continue. The connection stays open
between transactions, as long as the path leads to the same file. A fork waits until no transaction
is in progress, and its child opens a new connection.
"""

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from discreet._ownership import process
from discreet.errors import LedgerError
from discreet.ledger import _chain, _sqlite
from discreet.ledger._database import Database, file_database, memory_database, put_away
from discreet.ledger._facts import Backup, Opening
from discreet.ledger._store import ThreadInUse, Transaction
from discreet.ledger._turns import FileIdentity, check_locks, file_identity, is_awaited, turn

_REST = 0.003  # seconds, longer than a waiting process pauses between two attempts


class SqliteStore:
    """The transactions of one ledger; ``path`` is None for one in memory."""

    def __init__(self, database: Database, path: Path | None) -> None:
        """Use this database; `open_file` and `in_memory` make stores."""
        self.path = path
        self.turns, self.use = threading.RLock(), ThreadInUse()
        self._identity: FileIdentity | None = None  # once connected, the file's
        self._rests_until = 0.0
        self._begin(database)
        _Stores.add(self)

    @staticmethod
    def in_memory(opening: Opening) -> "SqliteStore":
        """A new store that ends with this process."""
        database = memory_database()
        _start(database, opening)
        return SqliteStore(database, None)

    @staticmethod
    def make_file(path: Path, opening: Opening) -> bool:
        """Create a file with the first link; False if the path is taken."""
        return _sqlite.make_file(path, lambda database: _start(database, opening))

    @staticmethod
    def open_file(path: Path) -> "SqliteStore":
        """The store in an existing file, after a check that it is a ledger of this format."""
        store = SqliteStore(file_database(path), path)
        with store.reading() as rows:
            _sqlite.check_schema(rows.connection)
        return store

    @property
    def address(self) -> str | None:
        """The text that opens the ledger again; None for one in memory."""
        return None if self.path is None else str(self.path)

    def is_passing(self, failure: Exception) -> bool:  # noqa: ARG002  # as `Store` says
        """Whether the transaction may succeed if it is tried again: never, since it waited."""
        return False

    def check(self, rows: Transaction) -> None:
        """Raise `LedgerDamaged` if the file is damaged, or its guards were altered."""
        _sqlite.check_schema(rows.connection)
        _sqlite.check_pages(rows.connection)

    def copy_file(self, path: Path) -> bool:
        """Write a verified copy, marked as one, to a new file; False if the path is taken."""
        return _sqlite.make_file(path, self._copy)

    def _copy(self, database: Database) -> None:
        with (
            self.reading() as rows,
            _sqlite.plain_errors("the copy"),
            database.connect() as connection,
        ):
            _sqlite.copy(rows.connection, connection)
        finish_copy(database)

    @property
    def name(self) -> str:
        """The name in error texts."""
        return "the ledger in memory" if self.path is None else f"the ledger {self.path}"

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A read transaction."""
        with self._transaction("BEGIN") as rows:
            yield rows

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A write transaction: everything appended is durable once the block ends, or nothing is.

        If another file is at the path by then, the entries went with the old file: an error.
        """
        with self._transaction("BEGIN IMMEDIATE") as rows:
            yield rows

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with (
            self.turns,
            self.use.begun(self.name),
            self._turn(),
            _sqlite.plain_errors(self.name),
        ):
            if self._database.in_transaction:  # an interruption stopped the handler below
                self._database.abandon()
            try:
                with self._database.connect() as connection:
                    connection.exec_driver_sql(begin)
                    rows = Transaction(connection)
                    yield rows
                    if not self._database.in_transaction:
                        raise LedgerError(f"{self.name}: another use of it ended a transaction")
                    rows.flush()
                    connection.commit()
                self._database.finish()
            except BaseException:
                self._database.abandon()
                raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A turn at the file, which must be the same file before and after."""
        if self._process != process():
            self._leave_parent()
        if self.path is None:
            yield
            return
        time.sleep(max(0.0, self._rests_until - time.monotonic()))
        with turn(self.path, _sqlite.BUSY_SECONDS) as descriptor:
            found = file_identity(descriptor, self.path)
            if self._identity is None:
                check_locks(self.path)
                _sqlite.check_file(descriptor, self.path)
                self._identity = found
            elif self._identity != found:
                raise LedgerError(
                    f"{self.name} was replaced by another file since it was opened: check which "
                    "file is right, then open that one"
                )
            yield
            file_identity(descriptor, self.path)
            # other processes get their turn before this one takes another
            self._rests_until = time.monotonic() + _REST if is_awaited(descriptor) else 0.0

    def _leave_parent(self) -> None:
        """Open a new connection in a child; its parent's connection is never closed here."""
        if self.path is None:
            raise LedgerError("a ledger in memory stays in its process: use a file to share one")
        _Stores.left.append(self._database)
        self._begin(file_database(self.path))

    def _begin(self, database: Database) -> None:
        self._database, self._process = database, process()
        weakref.finalize(self, put_away, database, self.path, self._process).atexit = False


class _Stores:
    """All stores of this process. A fork waits for their transactions, so that no child inherits an
    unfinished one."""

    making = threading.Lock()
    every: ClassVar["weakref.WeakSet[SqliteStore]"] = weakref.WeakSet()
    stopped: ClassVar[list[SqliteStore]] = []
    left: ClassVar[list[Database]] = []

    @classmethod
    def add(cls, store: SqliteStore) -> None:
        with cls.making:
            cls.every.add(store)

    @classmethod
    def stop(cls) -> None:
        cls.making.acquire()
        cls.stopped[:] = cls.every
        for store in cls.stopped:
            store.turns.acquire()

    @classmethod
    def go_on(cls) -> None:
        for store in cls.stopped:
            store.turns.release()
        cls.stopped.clear()
        cls.making.release()


os.register_at_fork(
    before=_Stores.stop, after_in_parent=_Stores.go_on, after_in_child=_Stores.go_on
)


def finish_copy(database: Database) -> None:
    """Verify a copy, and mark it as one."""
    with _sqlite.plain_errors("the copy"), database.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        copied = Transaction(connection)
        _sqlite.check_schema(connection)
        _sqlite.check_pages(connection)
        _chain.verify(copied.links())
        head, fact = copied.head(), Backup()
        copied.append(head, fact, _chain.next_state(head, copied.opening(head), fact))
        copied.flush()
        connection.commit()


def _start(database: Database, opening: Opening) -> None:
    with _sqlite.plain_errors("the new ledger"), database.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _sqlite.create_schema(connection)
        rows = Transaction(connection)
        rows.start(opening)
        rows.flush()
        connection.commit()
