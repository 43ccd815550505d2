"""Confines a process that reads private rows: it can reach no network, program or other file.

The order matters. Libraries are imported before; DuckDB connects after, because some barriers bind
only the calling thread and those that it starts later. A barrier that the host forbids is reported
and left out, since the engine's own settings (no external access, locked configuration) hold
without it.
"""

import os
import pwd
import resource
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.service import _linux

_NOBODY = "nobody"
_OPEN_FILES = 512
_PACKAGE = Path(__file__).parents[1]
# Libraries, time zones, and facts about memory and processors, which some libraries read late
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/proc", "/sys", "/dev/random", "/dev/urandom", "/dev/zero"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/timezone"),
)


@dataclass(frozen=True, slots=True)
class Barrier:
    """One barrier around a process: whether it is up, and a note in words."""

    name: str
    is_up: bool
    note: str


def confine(readable: Sequence[Path], writable: Path, memory: int) -> tuple[Barrier, ...]:
    """Raise all barriers that the host allows, for good, and return what became of each.

    The process may read Python, the system's libraries and ``readable``, and may write below
    ``writable`` only. ``memory`` is the number of bytes above which its parent ends it.
    """
    files = [*readable, *_python(), *map(Path, _SYSTEM)]
    present = [path for path in dict.fromkeys(path.resolve() for path in files) if path.exists()]
    return (
        _raised("threads", _check_one_thread),
        _raised("network", _linux.leave_network),
        _raised("user", lambda: _leave_root(present, writable)),
        _raised("limits", lambda: _limit(memory)),
        _raised("new rights", _linux.forbid_new_rights),
        _raised("files", lambda: f"Landlock {_linux.restrict_files(present, writable)}"),
        _raised("system calls", _linux.refuse_calls),
    )


def _raised(name: str, step: Callable[[], str | None]) -> Barrier:
    try:
        return Barrier(name, True, step() or "")
    except (OSError, ValueError, KeyError) as cause:
        return Barrier(name, False, str(cause))


def _check_one_thread() -> None:
    """Raise if there are other threads, which the files' barrier would not bind."""
    count = len(list(Path("/proc/self/task").iterdir()))
    if count != 1:
        raise OSError(f"{count} threads run already")


def _python() -> list[Path]:
    return [_PACKAGE, *map(Path, (sys.prefix, sys.base_prefix, *filter(None, sys.path)))]


def _leave_root(readable: Sequence[Path], writable: Path) -> str:
    """Become a user without rights. If only root can read the rows or Python, stay root without any
    capability."""
    if os.geteuid() != 0:
        return "not root"
    closed = next((path for path in readable if not _is_open_to_all(path)), None)
    if closed is not None:
        _linux.drop_capabilities()
        return f"root without capabilities, because only root can read {closed}"
    nobody = pwd.getpwnam(_NOBODY)
    os.chown(writable, nobody.pw_uid, nobody.pw_gid)
    os.setgroups([])
    os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
    os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)
    return _NOBODY


def _is_open_to_all(path: Path) -> bool:
    """Whether every user can read the path, by the modes of it and of the folders above it."""
    wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    return path.stat().st_mode & wanted == wanted and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in path.parents
    )


def _limit(memory: int) -> None:
    """No core files, which would hold rows, few open files, and the limit of memory, which DuckDB
    reads. If the host has no memory left, the kernel ends this process before others."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, wanted in ((resource.RLIMIT_NOFILE, _OPEN_FILES), (resource.RLIMIT_RSS, memory)):
        _, most = resource.getrlimit(kind)
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (allowed, allowed))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
