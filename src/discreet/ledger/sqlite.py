"""The ledger as one SQLite file: made whole, written durably, and guarded against changes.

Every connection syncs each commit to the disk (WAL with ``synchronous=FULL``). The file's own
triggers refuse changes, so that no other program alters it by mistake.
"""

import os
import secrets
import sqlite3
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, StaticPool

from discreet.errors import InvalidArgument, LedgerDamaged, LedgerError
from discreet.ledger.entries import FORMAT, FORMATS

BUSY_SECONDS = 60.0
_MARK = int.from_bytes(b"dscr")
_MARK_AT, _FORMAT_AT = 68, 60  # where SQLite keeps a file's application id, and user version
_HEADER = b"SQLite format 3\x00"
_KNOWN = " and ".join(str(known) for known in FORMATS)

_SCHEMA = {
    "entries": """CREATE TABLE entries (
    number INTEGER PRIMARY KEY NOT NULL CHECK (typeof(number) = 'integer' AND number >= 0),
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
    at TEXT NOT NULL CHECK (typeof(at) = 'text'),
    key TEXT NOT NULL UNIQUE CHECK (typeof(key) = 'text'),
    body TEXT NOT NULL CHECK (typeof(body) = 'text'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND length(digest) = 64)
)""",
    "entries_follow": """CREATE TRIGGER entries_follow BEFORE INSERT ON entries
WHEN NEW.number IS NOT (SELECT ifnull(max(number) + 1, 0) FROM entries)
    OR EXISTS (SELECT 1 FROM entries WHERE key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a ledger grows by its next entry only'); END""",
    "entries_stay": """CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    "entries_remain": """CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
}

_MEANINGS = {  # by the start of SQLite's name of an error
    "SQLITE_BUSY": (LedgerError, "others kept it busy for too long: try again"),
    "SQLITE_LOCKED": (LedgerError, "others kept it busy for too long: try again"),
    "SQLITE_FULL": (LedgerError, "the disk is full: make room and try again"),
    "SQLITE_IOERR": (LedgerError, "its disk failed, or has no room left"),
    "SQLITE_READONLY": (LedgerError, "it can't be written: may you?"),
    "SQLITE_CANTOPEN": (LedgerError, "it can't be opened: is it there, and may you?"),
    "SQLITE_PERM": (LedgerError, "it can't be opened: may you?"),
    "SQLITE_NOTADB": (LedgerDamaged, "it is damaged"),
    "SQLITE_CORRUPT": (LedgerDamaged, "it is damaged"),
}


@contextmanager
def told_plainly(name: str) -> Iterator[None]:
    """Let errors say which ledger, and those of the database what to do."""
    try:
        yield
    except LedgerDamaged as damage:
        raise LedgerDamaged(f"{name} is damaged: {damage}; it takes no charge") from damage
    except UnicodeDecodeError as mistake:  # in what SQLite says of a damaged file
        raise LedgerDamaged(f"{name}: it is damaged") from mistake
    except DBAPIError as mistake:
        cause = mistake.orig
        code = getattr(cause, "sqlite_errorname", "")
        for start, (kind, meaning) in _MEANINGS.items():
            if code.startswith(start):
                raise kind(f"{name}: {meaning} ({cause})") from cause
        raise LedgerError(f"{name}: the database refused ({cause})") from cause


def memory_engine() -> Engine:
    """A database of its own in memory, on one connection that lives as long as the engine."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    engine = _engine(lambda: connection, StaticPool)
    weakref.finalize(engine, connection.close)
    return engine


def file_engine(path: Path) -> Engine:
    """The database in an existing file; each transaction has a connection of its own."""
    return _engine(lambda: _connect(path), NullPool)


def make_file(path: Path, fill: Callable[[Engine], None]) -> bool:
    """Make a new ledger file, readable by its owner only; False if something is there already.

    It is built beside its place and appears there at once, whole.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.ledger")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            fill(file_engine(draft))
            os.link(draft, path)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as mistake:
        raise LedgerError(f"no ledger can be made at {path}: {mistake.strerror}") from mistake
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_schema(connection: Connection) -> None:
    """Make the table and its guards, and mark the file as a ledger."""
    connection.exec_driver_sql(f"PRAGMA application_id = {_MARK}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
    for statement in _SCHEMA.values():
        connection.exec_driver_sql(statement)


def check_schema(connection: Connection) -> None:
    """Raise `LedgerDamaged` unless the table and its guards are as they were made."""
    made = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    if [tuple(row) for row in connection.exec_driver_sql(made)] != list(_SCHEMA.items()):
        raise LedgerDamaged("its table or the guards against changes were altered")


def check_pages(connection: Connection) -> None:
    """Raise `LedgerDamaged` unless the file's pages and indexes agree with each other."""
    if connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() != ["ok"]:
        raise LedgerDamaged("its file is damaged")


def check_file(path: Path) -> None:
    """Raise unless a ledger's file is there, without touching what is not one."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path} is no file: give the path of a ledger's file")
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError as mistake:
        raise LedgerError(f"there is no ledger at {path}: make one by Ledger.create") from mistake
    except OSError as mistake:
        raise LedgerError(f"no ledger can be read at {path}: {mistake.strerror}") from mistake
    if header[: len(_HEADER)] != _HEADER or header[_MARK_AT : _MARK_AT + 4] != _MARK.to_bytes(4):
        raise LedgerError(f"{path} is not a ledger of discreet")
    if (found := int.from_bytes(header[_FORMAT_AT : _FORMAT_AT + 4])) not in FORMATS:
        raise LedgerError(
            f"{path} is a ledger of format {found}, this version of discreet knows {_KNOWN}: "
            "use the version that made it, or a later one"
        )


def as_path(path: str | os.PathLike[str]) -> Path:
    """The place that is meant, whatever the working folder will be."""
    if isinstance(path, str | os.PathLike) and (text := os.fspath(path)) and isinstance(text, str):
        return Path(text).absolute()
    raise InvalidArgument(f"path = {path!r}: give the path of a ledger's file")


def _engine(connect: Callable[[], sqlite3.Connection], pool: type[NullPool | StaticPool]) -> Engine:
    return create_engine(
        "sqlite+pysqlite://", creator=connect, poolclass=pool, hide_parameters=True
    )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",  # never make a file by opening it
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = _text
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _text(raw: bytes) -> str:
    """Text even from damaged bytes: whether it is right, its digest tells."""
    return raw.decode(errors="surrogateescape")
