"""The store of a ledger in PostgreSQL: a schema of its own, whose one head row gives the turn.

A transaction that writes locks the head row first, so that several servers write one after another.
The database refuses changes by triggers, and needs no rights but to read, to insert and to lock.
Failures that pass, such as a restart of the server, are tried again; whether a commit was carried
out before the connection was lost is then read from the chain.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    create_engine,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from discreet._ownership import process
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger import _sqlite
from discreet.ledger._database import Database
from discreet.ledger._fact_json import FORMAT
from discreet.ledger._facts import Opening
from discreet.ledger._postgres import (
    GUARDS,
    SCHEMA,
    SETTINGS,
    guard_body,
    is_passing,
    plain_errors,
    secrets_of,
)
from discreet.ledger._sqlite_store import finish_copy
from discreet.ledger._store import ThreadInUse, Transaction

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LATEST = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE"  # after the wait for a turn
_head = Table(
    "head",
    MetaData(),
    Column("turn", Integer),
    Column("format", Integer),
    Column("tableoid", Integer),  # PostgreSQL's own: which table it is, whatever its name
)
_IDENTITY = select(_head.c.tableoid)
_TURN = select(_head.c.turn, _head.c.tableoid).with_for_update()
_FORMAT = select(_head.c.format)
_SCHEMA_ID = text("SELECT to_regnamespace(:name)::text")
_CONNECT_SECONDS = 10
_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        "synchronous_commit=on",
        "lock_timeout=60s",
        "idle_in_transaction_session_timeout=60s",  # a client that hangs is not waited for
    )
)
_CHUNK = 1000  # rows that a backup holds in memory


class PostgresStore:
    """The transactions of one ledger in one schema of a database."""

    def __init__(self, url: URL, schema: str) -> None:
        """Use this schema; `make` creates it and `open` checks it."""
        self.path: Path | None = None
        self.renew_turns()
        self._identity: int | None = None  # once opened, the object id of the table of heads
        self._url, self._schema = url, schema
        self._begin()
        _every.add(self)

    def renew_turns(self) -> None:
        """Forget whose turn it is: the parent's threads are not in the child."""
        self.turns, self.use = threading.RLock(), ThreadInUse()

    @staticmethod
    def make(url: URL, schema: str, opening: Opening) -> bool:
        """Create the schema with the first link; False if there is one of this name."""
        store = PostgresStore(url, schema)
        try:
            with store._transaction(_LATEST) as connection:
                if connection.execute(_SCHEMA_ID, {"name": schema}).scalar() is not None:
                    return False
                for statement in SCHEMA:
                    connection.exec_driver_sql(statement.format(schema=schema, format=FORMAT))
                rows = Transaction(connection)
                rows.start(opening)
                rows.flush()
                connection.commit()
        except LedgerError as failure:
            if getattr(failure.__cause__, "sqlstate", None) in ("42P06", "23505"):
                return False
            raise
        finally:
            store._engine.dispose()
        return True

    @staticmethod
    def open(url: URL, schema: str) -> "PostgresStore":
        """The store in an existing schema, after a check that it is durable and of this format."""
        store = PostgresStore(url, schema)
        with store._snapshot() as rows:
            query = text("SELECT to_regclass(:name)::text")
            found = rows.connection.execute(query, {"name": f"{schema}.head"})
            if found.scalar() is None:
                raise LedgerError(f"{store.name} is not there: make one by Ledger.create")
            _check_format(rows.connection, store.name)
            check_durable(rows.connection, store.name)
            store._check_guards(rows)
            store._identity = rows.connection.execute(_IDENTITY).scalar()
        return store

    @staticmethod
    def is_made(url: URL, schema: str) -> bool:
        """Whether the database has a schema of this name."""
        store = PostgresStore(url, schema)
        try:
            with store._snapshot() as rows:
                return rows.connection.execute(_SCHEMA_ID, {"name": schema}).scalar() is not None
        finally:
            store._engine.dispose()

    @property
    def name(self) -> str:
        """The name in error texts: its host and database, and nothing that may be secret."""
        host = self._url.host or self._url.query.get("host") or "this host"
        return f"the ledger {self._schema} in postgresql://{host}/{self._url.database or ''}"

    @property
    def _secrets(self) -> tuple[str, ...]:
        return secrets_of(self._url)

    @property
    def address(self) -> str:
        """The text that opens the ledger again."""
        url = self._url.set(drivername="postgresql").update_query_dict({"ledger": self._schema})
        return url.render_as_string(hide_password=False)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A read transaction, on one snapshot."""
        with self._snapshot() as rows:
            self._check_identity(rows.connection.execute(_IDENTITY).scalar())
            yield rows

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A write transaction: all that is appended is durable once the block ends, or nothing."""
        with self._transaction(_LATEST) as connection:
            heads = connection.execute(_TURN).all()
            if [turn for turn, _ in heads] != [0]:
                raise LedgerDamaged("its head row is missing")
            self._check_identity(heads[0][1])
            rows = Transaction(connection)
            yield rows
            rows.flush()
            connection.commit()

    @contextmanager
    def _snapshot(self) -> Iterator[Transaction]:
        with self._transaction(_SNAPSHOT) as connection:
            yield Transaction(connection)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with (
            self.turns,
            self.use.begun(self.name),
            plain_errors(self.name, self._secrets),
            self._begun(begin) as connection,
        ):
            yield connection

    def _check_identity(self, found: int | None) -> None:
        """Refuse a schema that was dropped and made anew: the charges in it are gone."""
        if found is not None and found != self._identity:
            raise LedgerError(
                f"{self.name} was replaced by another one since it was opened: check which is "
                "right, then open that one"
            )

    def is_passing(self, failure: Exception) -> bool:
        """Whether the same transaction may succeed if it is tried again."""
        return is_passing(failure)

    def check(self, rows: Transaction) -> None:
        """Raise `LedgerDamaged` if the guards against changes were altered."""
        self._check_guards(rows)

    def copy_file(self, path: Path) -> bool:
        """Write a verified copy, marked as one, to a new file; False if the path is taken."""
        return _sqlite.make_file(path, self._copy)

    def _copy(self, database: Database) -> None:
        with (
            self.reading() as rows,
            _sqlite.plain_errors("the copy"),
            database.connect() as connection,
        ):
            self._check_guards(rows)
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            _sqlite.create_schema(connection)
            copied, left = Transaction(connection), rows.rows()
            while chunk := list(islice(left, _CHUNK)):
                copied.insert(chunk)
            connection.commit()
        finish_copy(database)

    def _check_guards(self, rows: Transaction) -> None:
        guards = [
            tuple(row) for row in rows.connection.execute(text(GUARDS), {"schema": self._schema})
        ]
        expected = [
            ("entries_follow", "A", 7, "follow"),
            ("entries_stay", "A", 58, "stay"),
            ("head_stays", "A", 58, "stay"),
        ]
        if [guard[:4] for guard in guards] != expected:
            raise LedgerDamaged("the guards against changes were altered")
        for *_, name, source in guards:
            if source != guard_body(name, self._schema):
                raise LedgerDamaged(f"its guard {name} was altered")

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Connection]:
        """A connection with a transaction in it that has begun in this way."""
        if self._process != process():  # the parent's connections stay as they are
            leave_to_parent(self._engine)
            self._begin()
        try:
            plain = self._first(begin)
        except DBAPIError as failure:  # it may have been lost since it was last used
            if not failure.connection_invalidated:
                raise
            plain = self._first(begin)
        with plain:
            yield plain.execution_options(schema_translate_map={None: self._schema})

    def _first(self, begin: str) -> Connection:
        """A connection after its first statement."""
        plain = self._engine.connect()
        try:
            plain.exec_driver_sql(begin)
        except BaseException:
            plain.close()
            raise
        return plain

    def _begin(self) -> None:
        self._engine, self._process = engine_of(self._url), process()
        weakref.finalize(self, put_away, self._engine, self._process).atexit = False


_left: list[Engine] = []  # of a parent: never closed here
_every: "weakref.WeakSet[PostgresStore]" = weakref.WeakSet()


def _renew_in_child() -> None:
    for store in list(_every):
        store.renew_turns()


os.register_at_fork(after_in_child=_renew_in_child)


def put_away(engine: Engine, owner: object) -> None:
    """Close the connections of this process; those of its parent stay as they are."""
    if owner == process():
        engine.dispose()
    else:
        leave_to_parent(engine)


def leave_to_parent(engine: Engine) -> None:
    """Never close these connections here, in a child of the process that made them."""
    _left.append(engine)


def _check_format(connection: Connection, name: str) -> None:
    found = connection.execute(_FORMAT).scalar()
    if found != FORMAT:
        raise LedgerError(
            f"{name} is of format {found}, and this version of discreet reads format {FORMAT}: use "
            "the version of discreet that made the ledger"
        )


def check_durable(connection: Connection, name: str) -> None:
    """Raise `LedgerError` unless a commit of the server survives a crash."""
    for setting, wanted in SETTINGS.items():
        found = connection.exec_driver_sql(f"SHOW {setting}").scalar()
        if found != wanted:
            raise LedgerError(
                f"{name}: its server has {setting} = {found}, so that charges could be lost or "
                f"forgotten: set it to {wanted}"
            )


def engine_of(url: URL, *, is_asked_first: bool = False) -> Engine:
    """An engine whose commits are durable. ``is_asked_first``: each use of a connection asks first
    whether it was lost, and then takes another one."""
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=QueuePool,
            hide_parameters=True,
            pool_pre_ping=is_asked_first,
            connect_args={"options": _OPTIONS, "connect_timeout": _CONNECT_SECONDS},
        )
    except (ModuleNotFoundError, NoSuchModuleError) as mistake:
        raise LedgerError(
            "a ledger in PostgreSQL needs psycopg: pip install 'discreet[postgres]'"
        ) from mistake
