"""Turns at a ledger's file: exclusive locks on the file itself, by whatever name it is opened.

A ``flock`` excludes other processes of discreet. On Linux a second lock, on the bytes that SQLite
locks, excludes all other programs that read the file by SQLite: they would mistake the journal of
a transaction in progress for that of a crash, and roll it back. Both locks belong to one open
descriptor, so that closing the file elsewhere in the process does not release them. They also
belong to the file, so that two names of it share them.
"""

import fcntl
import io
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import LedgerError

_SHORTEST, _LONGEST = 0.0002, 0.002  # seconds between two attempts to lock a file
_SQLITE_BYTES = 0x40000000, 512  # the pending, reserved and shared locks: first byte, length
_SQLITE_PENDING = 0x40000000, 1  # while it is held, no new reader starts
_WAITING_BYTE = 0x40000000 + 512, 1  # shared by those who wait for their turn
_BYTE_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
_BYTE_LOCK_ASKED: int = getattr(fcntl, "F_OFD_GETLK", 0)
LOCKS_FOR_SQLITE = _BYTE_LOCK is not None  # then SQLite must take no locks during a turn
_DRAFT = re.compile(r"\.[0-9a-f]{16}\.ledger")  # the name under which a new ledger is built


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The identity of a file, whatever its name."""

    device: int
    inode: int


@contextmanager
def turn(path: Path, seconds: float) -> Iterator[int]:
    """Lock the file inside the block, and yield its descriptor; others wait for their turn.

    Raises `LedgerError` if others hold it for longer than ``seconds``, or if its file system has no
    such locks.
    """
    with ExitStack() as stack:
        file = _opened(path, stack)
        _wait(file.fileno(), path, seconds)
        yield file.fileno()


def file_identity(descriptor: int, path: Path) -> FileIdentity:
    """The identity of an open file, after a check that it is the one at this path and has no other
    name."""
    opened = os.fstat(descriptor)
    if opened.st_nlink > 1:
        _remove_drafts(path, opened)
        opened = os.fstat(descriptor)
    if opened.st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has {opened.st_nlink} names (hard links), and each would seem a "
            "ledger of its own: remove all but one"
        )
    try:
        named = path.stat()
    except OSError:
        named = None
    if named is None or not os.path.samestat(opened, named):
        raise LedgerError(
            f"the ledger {path} can't be opened: it was renamed, replaced or deleted meanwhile; "
            "see what is there now, then open that one"
        )
    return FileIdentity(opened.st_dev, opened.st_ino)


def check_locks(path: Path) -> None:
    """Raise `LedgerError` if the locks on this file, which this process holds, don't exclude
    others."""
    with ExitStack() as stack:
        other = _opened(path, stack)
        if _flock(other.fileno(), path) or (
            LOCKS_FOR_SQLITE and _lock_bytes(other.fileno(), path, _SQLITE_BYTES)
        ):
            raise _no_locks(path, "a second lock was given")


def is_awaited(descriptor: int) -> bool:
    """Whether others wait for a turn at this file, which this descriptor has."""
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, *_WAITING_BYTE, 0)
    if not LOCKS_FOR_SQLITE:
        return False
    answer: bytes = fcntl.fcntl(descriptor, _BYTE_LOCK_ASKED, asked)
    return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)


def _opened(path: Path, stack: ExitStack) -> io.FileIO:
    """Open the file, and let the stack close it, also if Ctrl-C comes at once."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path} is no file: give the path of a ledger's file")
        return stack.enter_context(io.FileIO(path, "r+"))
    except FileNotFoundError as mistake:
        raise LedgerError(
            f"there is no ledger at {path}, or it can't be opened: make one by Ledger.create"
        ) from mistake
    except OSError as mistake:
        raise LedgerError(f"the ledger {path} can't be opened: {mistake.strerror}") from mistake


def _wait(descriptor: int, path: Path, seconds: float) -> None:
    end, pause = time.monotonic() + seconds, _SHORTEST
    while not _acquires(descriptor, path):
        if LOCKS_FOR_SQLITE:
            _lock_bytes(descriptor, path, _WAITING_BYTE, fcntl.F_RDLCK)
        if time.monotonic() > end:
            raise LedgerError(f"the ledger {path}: others used it for too long: try again")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


def _acquires(descriptor: int, path: Path) -> bool:
    """Try to take both locks, and return whether this descriptor holds both."""
    if not _flock(descriptor, path):
        return False
    if not LOCKS_FOR_SQLITE or _lock_bytes(descriptor, path, _SQLITE_BYTES):
        return True
    _lock_bytes(descriptor, path, _SQLITE_PENDING)  # so that no new reader starts
    return False


def _flock(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as mistake:
        raise _no_locks(path, f"flock: {mistake.strerror}") from mistake
    return True


def _lock_bytes(
    descriptor: int, path: Path, region: tuple[int, int], kind: int = fcntl.F_WRLCK
) -> bool:
    assert _BYTE_LOCK is not None
    lock = struct.pack("hhqqi4x", kind, os.SEEK_SET, *region, 0)
    try:
        fcntl.fcntl(descriptor, _BYTE_LOCK, lock)
    except (BlockingIOError, PermissionError):  # another program reads
        return False
    except OSError as mistake:
        raise _no_locks(path, f"open file description locks: {mistake.strerror}") from mistake
    return True


def _no_locks(path: Path, cause: str | None) -> LedgerError:
    return LedgerError(
        f"the ledger {path}: its file system can't lock files ({cause}), so that two "
        "processes could spend one budget twice: keep the ledger's folder on a local disk"
    )


def _remove_drafts(path: Path, opened: os.stat_result) -> None:
    """Remove the name under which the file was built, which a killed process left behind. No such
    process is still running: it would hold the lock."""
    folder = path.resolve().parent
    for draft in folder.iterdir():
        if _DRAFT.fullmatch(draft.name) and os.path.samestat(draft.lstat(), opened):
            draft.unlink()
