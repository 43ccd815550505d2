"""The protocol of a ledger's store, and the transactions in which links are read and written.

A `Store` gives transactions over one ledger's entries. They are the same on every database: rows of
one table, each read with its digest checked against the row before.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    insert,
    select,
)

from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import _chain, _entries
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._entries import ROOT, Row
from discreet.ledger._facts import Fact, LedgerState, Link, Opening

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
_LAST = select(_table).order_by(_table.c.number.desc()).limit(2)
_PAIR = (
    select(_table)
    .where(_table.c.number.in_((bindparam("before"), bindparam("number"))))
    .order_by(_table.c.number)
)
_FROM = (
    select(_table)
    .where(_table.c.number >= bindparam("first"))
    .order_by(_table.c.number)
    .limit(bindparam("most"))
)
_CHUNK = 1000  # rows that are held in memory
_NUMBER_OF_KEY = select(_table.c.number).where(_table.c.key == bindparam("key"))
_NUMBERS_OF_KEYS = select(_table.c.key, _table.c.number).where(
    _table.c.key.in_(bindparam("keys", expanding=True))
)
_INSERT = insert(_table).returning(_table.c.number)
_LONGEST_REMEMBERED = 10_000  # characters of a body


class Transaction:
    """The links of one ledger, inside one database transaction.

    An appended link is part of the ledger at once. `flush` sends all of them to the database in one
    statement.
    """

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self.connection = connection
        self.written: list[Link] = []
        self._opening: tuple[tuple[int, str], Opening] | None = None
        self._unflushed: dict[int, Row] = {}
        self._unflushed_keys: dict[str, int] = {}
        self._found: dict[str, int | None] = {}  # numbers by keys that were looked up together

    def look_up(self, keys: Collection[str]) -> None:
        """Look for these keys in one statement, so that each needs none of its own. Call it in a
        transaction that writes, where no other one can append."""
        found = self.connection.execute(_NUMBERS_OF_KEYS, {"keys": list(keys)})
        self._found = dict.fromkeys(keys)
        self._found.update((key, number) for key, number in found)

    def head(self) -> Link:
        """The last link, verified."""
        if self.written:
            return self.written[-1]
        last = list(self._read(_LAST))
        if not last:
            raise LedgerDamaged("it has no entries")
        return _verified(last[0].number, last[::-1])

    def link(self, number: int) -> Link:
        """The link of that number, verified against the digest before it."""
        if number in self._unflushed:
            return self.written[number - self.written[-1].number - 1]
        return _verified(number, list(self._read(_PAIR, before=number - 1, number=number)))

    def under(self, key: str) -> Link | None:
        """The link of that key, verified, if there is one."""
        number = self._number_of(key)
        return None if number is None else self.link(number)

    def has(self, key: str) -> bool:
        """Whether there is a link of that key."""
        return self._number_of(key) is not None

    def opening(self, head: Link) -> Opening:
        """The opening in force, checked by its digest in the head."""
        named = head.state.opening, head.state.opening_digest
        if self._opening is None or self._opening[0] != named:
            fact = self.link(head.state.opening).fact
            if not isinstance(fact, Opening) or _entries.opening_digest(fact) != named[1]:
                raise LedgerDamaged("the limit or unit in it is not the one it was charged under")
            self._opening = named, fact
        opening = self._opening[1]
        _chain.check_sums(head.state.spent, opening.filter, head.state.reserved)
        return opening

    def links(self, after: AnchorMark | None = None) -> Iterator[Link]:
        """Every link from the first, or after this one, each verified against the one before."""
        number, previous = (0, ROOT) if after is None else (after.number + 1, after.digest)
        for row in chain(self.rows(number), self._unflushed_from(number)):
            if row.number != number:
                raise LedgerDamaged(f"entry {number} is missing")
            link = _entries.read(row, previous)
            yield link
            number, previous = number + 1, link.digest

    def rows(self, first: int = 0) -> Iterator[Row]:
        """Every row in the database from this number on, as it is stored."""
        while chunk := list(self._read(_FROM, first=first, most=_CHUNK)):
            yield from chunk
            first = chunk[-1].number + 1

    def _unflushed_from(self, first: int) -> list[Row]:
        return [row for number, row in self._unflushed.items() if number >= first]

    def insert(self, rows: list[Row]) -> None:
        """Write these rows to the database as they are."""
        values = [{name: getattr(row, name) for name in _table.c.keys()} for row in rows]  # noqa: SIM118  # columns
        stored = self.connection.execute(_INSERT, values).scalars().all()
        if sorted(stored) != [row.number for row in rows]:  # a trigger or a rule left some out
            raise LedgerDamaged("its database did not store what was written to it")

    def start(self, opening: Opening) -> None:
        """Append the first link."""
        state = _chain.first_state(opening)
        row, _ = _entries.checked_row(0, _now(), opening, state, previous=ROOT)
        self._append(row)

    def append(self, head: Link, fact: Fact, state: LedgerState) -> Link:
        """The link after the head: the fact, and the state that follows from it."""
        row, link = _entries.checked_row(head.number + 1, _now(), fact, state, previous=head.digest)
        self._append(row)
        self.written.append(link)
        return link

    def flush(self) -> None:
        """Write to the database what was appended."""
        if self._unflushed:
            self.insert(list(self._unflushed.values()))
        self._unflushed.clear()
        self._unflushed_keys.clear()
        self._found.clear()

    def _append(self, row: Row) -> None:
        self._unflushed[row.number] = row
        self._unflushed_keys[row.key] = row.number

    def _number_of(self, key: str) -> int | None:
        if key in self._unflushed_keys:
            return self._unflushed_keys[key]
        if key in self._found:
            return self._found[key]
        return self.connection.execute(_NUMBER_OF_KEY, {"key": key}).scalar()

    def _read(
        self,
        query: Select[Any],  # Any: rows of a table as it is stored
        **values: int,
    ) -> Iterator[Row]:
        for found in self.connection.execute(query, values):
            yield Row(*found)


class ThreadInUse:
    """The thread whose transaction is in progress, so that it begins no other one inside it.

    A signal's handler runs in the middle of whatever its thread does. A transaction in it would
    end the one outside, or wait for it for ever.
    """

    def __init__(self) -> None:
        self._thread: int | None = None

    def check(self, name: str) -> None:
        """Raise if this thread is in the middle of a transaction."""
        if self._thread == threading.get_ident():
            raise LedgerError(
                f"{name} is in use by this thread, in the middle of a transaction: use it after "
                "that, not in a signal's handler or a finalizer"
            )

    @contextmanager
    def begun(self, name: str) -> Iterator[None]:
        """This thread's, while the block runs. Call it during the turn only."""
        self.check(name)
        try:
            self._thread = threading.get_ident()
            yield
        finally:
            self._thread = None


class Store(Protocol):
    """The place of one ledger's entries: it gives transactions, one writer at a time.

    ``turns`` is held by the thread whose transaction is in progress, and ``use`` knows it. ``path``
    is the file; None if there is none.
    """

    turns: threading.RLock
    use: ThreadInUse
    path: Path | None

    @property
    def address(self) -> str | None:
        """The text that opens the ledger again; None for one in memory."""
        ...

    @property
    def name(self) -> str:
        """The name in error texts."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """A read transaction."""
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A write transaction: all that is appended is durable once the block ends, or nothing."""
        ...

    def is_passing(self, failure: Exception) -> bool:
        """Whether a transaction that failed in this way may succeed if it is tried again."""
        ...

    def check(self, rows: Transaction) -> None:
        """Raise `LedgerDamaged` if the database is damaged, or its guards were altered."""
        ...

    def copy_file(self, path: Path) -> bool:
        """Write a verified copy, marked as one, to a new file; False if the path is taken."""
        ...


def links_in_chunks(
    reading: Callable[[], AbstractContextManager[tuple[Transaction, Link]]], last: int | None = None
) -> Iterator[Link]:
    """All links up to the head, or the last ones of them, each verified against the one before.
    Each chunk has a transaction of its own, so that others charge in between."""
    with reading() as (rows, head):
        end = head.number
        first = 0 if last is None else max(0, end + 1 - last)
        until = AnchorMark.of(rows.link(first - 1)) if first else None
    while first <= end:
        with reading() as (rows, _):
            chunk = list(islice(rows.links(until), min(_CHUNK, end + 1 - first)))
        if not chunk:
            raise LedgerDamaged(f"entry {first} is missing")
        yield from chunk
        until, first = AnchorMark.of(chunk[-1]), first + len(chunk)


def _verified(number: int, pair: list[Row]) -> Link:
    """The link of this number, from its row and, unless it is the first, the row before it."""
    if [row.number for row in pair] != ([number - 1, number] if number else [0]):
        raise LedgerDamaged(f"entry {number} or the one before it is missing")
    row, previous = pair[-1], pair[0].digest if number else ROOT
    is_usual = type(row.number) is int and isinstance(row.body, str)
    is_short = is_usual and len(row.body) <= _LONGEST_REMEMBERED
    return (_remembered if is_short else _entries.read)(row, previous)


@lru_cache(maxsize=64)
def _remembered(row: Row, previous: str) -> Link:
    """As `_entries.read`, which depends on nothing else: so a head is read once, and compared with
    what is stored each time."""
    return _entries.read(row, previous)


def _now() -> datetime:
    return datetime.now(UTC)
