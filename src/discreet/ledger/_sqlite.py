"""The ledger as one SQLite file: created whole, written durably, guarded against changes.

Every commit is synced to the disk, with a rollback journal and ``synchronous=FULL``. Between
transactions the one file holds everything, so that it can be moved or copied. The journal stays
beside it, emptied, while a process has the ledger open: creating and removing it for each commit
would cost more than the commit. Triggers in the file refuse changes, so that no other program
alters it by mistake.
"""

import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from discreet import _checks
from discreet.errors import AnchorDiffers, InvalidArgument, LedgerDamaged, LedgerError
from discreet.ledger._database import Database, file_database
from discreet.ledger._fact_json import FORMAT
from discreet.ledger._turns import turn

BUSY_SECONDS = 60.0
_MARK = int.from_bytes(b"dscr")
_MARK_AT, _FORMAT_AT = 68, 60  # where SQLite keeps a file's application id, and user version
_HEADER = b"SQLite format 3\x00"
_ADDRESS = re.compile(r"://|^\s*[a-z][\w+.-]+:/", re.IGNORECASE)  # `Path` shortens :// to :/
_LONGEST_PATH = 512  # bytes that SQLite takes, the journal's ending included

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
    "SQLITE_BUSY": (LedgerError, "others used it for too long: try again"),
    "SQLITE_LOCKED": (LedgerError, "others used it for too long: try again"),
    "SQLITE_FULL": (LedgerError, "the disk is full: make room and try again"),
    "SQLITE_IOERR": (LedgerError, "its disk failed, or has no room left"),
    "SQLITE_READONLY": (LedgerError, "it can't be written: permission denied"),
    "SQLITE_CANTOPEN": (LedgerError, "it can't be opened: it is missing, or permission is denied"),
    "SQLITE_PERM": (LedgerError, "it can't be opened: permission denied"),
    "SQLITE_NOTADB": (LedgerDamaged, "it is damaged"),
    "SQLITE_CORRUPT": (LedgerDamaged, "it is damaged"),
}


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Name the ledger in errors, and turn those of the database into ours, with what to do."""
    try:
        yield
    except AnchorDiffers as difference:
        raise AnchorDiffers(f"{name} takes no charge: {difference}") from difference
    except LedgerDamaged as damage:
        raise LedgerDamaged(f"{name} is damaged: {damage}; it takes no charge") from damage
    except UnicodeDecodeError as mistake:  # SQLite's own text about a damaged file
        raise LedgerDamaged(f"{name}: it is damaged") from mistake
    except (DBAPIError, sqlite3.Error) as mistake:
        cause = mistake.orig if isinstance(mistake, DBAPIError) else mistake
        code = getattr(cause, "sqlite_errorname", "")
        for start, (kind, meaning) in _MEANINGS.items():
            if code.startswith(start):
                raise kind(f"{name}: {meaning} ({cause})") from cause
        raise LedgerError(f"{name}: the database refused ({cause})") from cause


def make_file(path: Path, fill: Callable[[Database], None]) -> bool:
    """Create a ledger file that only its owner can read; False if the path is taken.

    The file is built under another name and then linked to its path, whole.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.ledger")
    try:
        _check_length(path)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with turn(draft, BUSY_SECONDS):  # no process opens it before it has one name
                database = file_database(draft)
                try:
                    fill(database)
                finally:
                    database.end()
                os.link(draft, path)
                draft.unlink()
        finally:
            for suffix in ("", "-journal"):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as mistake:
        raise LedgerError(f"no ledger can be made at {path}: {mistake.strerror}") from mistake
    return True


def _check_length(path: Path) -> None:
    """Refuse paths that are too long for the journal's name, before the first charge needs it."""
    journal = path.with_name(f"{path.name}-journal")
    most = os.pathconf(path.parent, "PC_NAME_MAX")
    for text, longest in ((journal.name, most), (str(journal.resolve()), _LONGEST_PATH)):
        if len(os.fsencode(text)) > longest:
            raise InvalidArgument(
                f"path = {_checks.quoted(str(path))}: its journal would be {_checks.quoted(text)}, "
                f"which is longer than {longest} bytes: give a shorter path"
            )


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it are durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_schema(connection: Connection) -> None:
    """Create the table and its triggers, and mark the file as a ledger."""
    connection.exec_driver_sql(f"PRAGMA application_id = {_MARK}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
    for statement in _SCHEMA.values():
        connection.exec_driver_sql(statement)


def copy(source: Connection, target: Connection) -> None:
    """Copy a whole database, page by page, into an empty one."""
    source_driver = source.connection.driver_connection
    target_driver = target.connection.driver_connection
    assert isinstance(source_driver, sqlite3.Connection)
    assert isinstance(target_driver, sqlite3.Connection)
    source_driver.backup(target_driver)


def check_schema(connection: Connection) -> None:
    """Raise `LedgerDamaged` if the table or its triggers were altered."""
    made = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    if [tuple(row) for row in connection.exec_driver_sql(made)] != list(_SCHEMA.items()):
        raise LedgerDamaged("its table or the guards against changes were altered")


def check_pages(connection: Connection) -> None:
    """Raise `LedgerDamaged` unless the file's pages and indexes agree with each other."""
    if connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() != ["ok"]:
        raise LedgerDamaged("its file is damaged")


def check_file(descriptor: int, path: Path) -> None:
    """Raise unless this open file is a ledger; other files are left untouched."""
    header = os.pread(descriptor, 100, 0)
    if header[: len(_HEADER)] != _HEADER or header[_MARK_AT : _MARK_AT + 4] != _MARK.to_bytes(4):
        raise LedgerError(f"{path} is not a ledger of discreet")
    if (found := int.from_bytes(header[_FORMAT_AT : _FORMAT_AT + 4])) != FORMAT:
        raise LedgerError(
            f"{path} is a ledger of format {found}, and this version of discreet reads format "
            f"{FORMAT}: use the version of discreet that made the ledger"
        )


def as_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path, so that a later change of the working folder doesn't matter."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    shown = os.fsdecode(text) if isinstance(text, bytes) else text
    if isinstance(shown, str) and _ADDRESS.search(shown):  # it may hold a password
        raise InvalidArgument(
            "path: this is an address of a database, not the path of a file; a ledger has a path, "
            "or postgresql://host/database?ledger=NAME"
        )
    if isinstance(text, str) and text and "\0" not in text:
        with suppress(UnicodeEncodeError):
            os.fsencode(text)
            if Path(text).absolute().name:  # not the root folder
                return Path(text).absolute()
    raise InvalidArgument(f"path = {_checks.quoted(path)}: give the path of a ledger's file")
