"""Transactions over a database, and the links that are read and written in them.

A transaction uses the ledger's file alone: threads queue at the store, processes at the file. If
it fails or is interrupted, it is rolled back before others continue. The connection stays open
between transactions, as long as the path leads to the same file. A fork waits until no transaction
is in progress, and its child opens a new connection.
"""

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    func,
    insert,
    select,
)

from discreet._ownership import process
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import _chain, _entries, _sqlite
from discreet.ledger._database import Database, file_database, memory_database, put_away
from discreet.ledger._entries import ROOT, Row
from discreet.ledger._facts import Backup, Fact, LedgerState, Link, Opening
from discreet.ledger._turns import FileIdentity, check_locks, identity, turn

log = logging.getLogger("discreet.ledger")
log.addHandler(logging.NullHandler())

_table = Table(
    "entries",
    MetaData(),
    Column("number", Integer, primary_key=True),
    Column("kind", Text),
    Column("at", Text),
    Column("key", Text),
    Column("body", Text),
    Column("digest", Text),
)


class Transaction:
    """The links of one ledger, inside one database transaction."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self.connection = connection
        self.written: Link | None = None

    def head(self) -> Link:
        """The last link, verified."""
        number = self.connection.execute(select(func.max(_table.c.number))).scalar()
        if number is None:
            raise LedgerDamaged("it has no entries")
        return self.link(number)

    def link(self, number: int) -> Link:
        """The link of that number, verified against the digest before it."""
        wanted = [number - 1, number] if number else [0]
        pair = list(self._read(select(_table).where(_table.c.number.in_(wanted))))
        if [row.number for row in pair] != wanted:
            raise LedgerDamaged(f"entry {number} or the one before it is missing")
        return _entries.read(pair[-1], pair[0].digest if number else ROOT)

    def under(self, key: str) -> Link | None:
        """The link of that key, verified, if there is one."""
        number = self.connection.execute(
            select(_table.c.number).where(_table.c.key == key)
        ).scalar()
        return None if number is None else self.link(number)

    def has(self, key: str) -> bool:
        """Whether there is a link of that key."""
        found = select(_table.c.number).where(_table.c.key == key)
        return self.connection.execute(found).scalar() is not None

    def opening(self, head: Link) -> Opening:
        """The opening in force, checked by its digest in the head."""
        fact = self.link(head.state.opening).fact
        if (
            not isinstance(fact, Opening)
            or _entries.opening_digest(fact) != head.state.opening_digest
        ):
            raise LedgerDamaged("the limit or unit in it is not the one it was charged under")
        _chain.check_sums(head.state.spent, fact.filter)
        return fact

    def links(self) -> Iterator[Link]:
        """Every link from the first, each verified against the one before."""
        number, previous = 0, ROOT
        for row in self._read(select(_table)):
            if row.number != number:
                raise LedgerDamaged(f"entry {number} is missing")
            link = _entries.read(row, previous)
            yield link
            number, previous = number + 1, link.digest

    def start(self, opening: Opening) -> None:
        """Write the first link."""
        self._insert(_entries.write(0, _now(), opening, _chain.first_state(opening), previous=ROOT))

    def append(self, head: Link, fact: Fact, state: LedgerState) -> Link:
        """The link after the head, written: the fact, and the state that follows from it."""
        row = _entries.write(head.number + 1, _now(), fact, state, previous=head.digest)
        self._insert(row)
        self.written = _entries.read(row, head.digest)
        return self.written

    def _read(self, query: Select[Any]) -> Iterator[Row]:  # Any: rows of a table as it is stored
        for found in self.connection.execute(query.order_by(_table.c.number)):
            yield Row(*found)

    def _insert(self, row: Row) -> None:
        values = {column.name: getattr(row, column.name) for column in _table.columns}
        self.connection.execute(insert(_table).values(values))


class Store:
    """The transactions of one ledger; ``path`` is None for one in memory."""

    def __init__(self, database: Database, path: Path | None) -> None:
        """Use this database; `open_file` and `in_memory` make stores."""
        self.path = path
        self.turns = threading.RLock()
        self._identity: FileIdentity | None = None  # once connected, the file's
        self._begin(database)
        _Stores.add(self)

    @staticmethod
    def in_memory(opening: Opening) -> "Store":
        """A new store that ends with this process."""
        database = memory_database()
        _start(database, opening)
        return Store(database, None)

    @staticmethod
    def make_file(path: Path, opening: Opening) -> bool:
        """Create a file with the first link; False if the path is taken."""
        return _sqlite.make_file(path, lambda database: _start(database, opening))

    @staticmethod
    def open_file(path: Path) -> "Store":
        """The store in an existing file, after a check that it is a ledger of this format."""
        store = Store(file_database(path), path)
        with store.reading() as rows:
            _sqlite.check_schema(rows.connection)
        return store

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
        with _sqlite.plain_errors("the copy"), database.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            copied = Transaction(connection)
            _sqlite.check_schema(connection)
            _sqlite.check_pages(connection)
            _chain.verify(copied.links())
            head, fact = copied.head(), Backup()
            copied.append(head, fact, _chain.next_state(head, copied.opening(head), fact))
            connection.commit()

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
        with self.turns, self._turn(), _sqlite.plain_errors(self.name):
            if self._database.in_transaction:  # an interruption stopped the handler below
                self._database.abandon()
            try:
                with self._database.connect() as connection:
                    connection.exec_driver_sql(begin)
                    yield Transaction(connection)
                    if not self._database.in_transaction:
                        raise LedgerError(f"{self.name}: another use of it ended a transaction")
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
        with turn(self.path, _sqlite.BUSY_SECONDS) as descriptor:
            found = identity(descriptor, self.path)
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
            identity(descriptor, self.path)

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
    every: ClassVar["weakref.WeakSet[Store]"] = weakref.WeakSet()
    stopped: ClassVar[list[Store]] = []
    left: ClassVar[list[Database]] = []

    @classmethod
    def add(cls, store: Store) -> None:
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


def _start(database: Database, opening: Opening) -> None:
    with _sqlite.plain_errors("the new ledger"), database.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _sqlite.create_schema(connection)
        Transaction(connection).start(opening)
        connection.commit()


def _now() -> datetime:
    return datetime.now(UTC)
