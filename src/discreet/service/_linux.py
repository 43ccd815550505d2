"""System calls of Linux by which a process gives up rights, through the C library.

Each function raises `OSError` where the kernel refuses. References: the manual pages landlock(7),
seccomp(2), unshare(2) and capabilities(7), and the kernel's headers for the numbers.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38

# Landlock has the same numbers on all machines
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION_FLAG, _LANDLOCK_PATH_RULE = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE
# all rights on files that each version of Landlock knows
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_NETWORK_RIGHTS, _NETWORK_VERSION = 3, 4  # to bind and to connect
_SCOPES, _SCOPES_VERSION = 3, 6  # abstract sockets, and signals to other processes

# For each machine: its audit number, the number of seccomp itself, and those of refused calls.
# Landlock does not cover owners, modes and attributes of files.
_REFUSED = {
    "x86_64": (
        0xC000003E,
        317,
        {
            "programs": (57, 58, 59, 322),
            "sockets": (41, 42, 43, 49, 50, 53, 288),
            "owners, modes, times and attributes of files": (
                *(90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235),
                *(260, 261, 268, 280, 452, 463, 466, 469),
            ),
            "memory and messages that processes share": (
                *(29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220),
                *(240, 241, 242, 243, 244, 245),
            ),
            "other processes": (62, 101, 129, 200, 297, 310, 311, 312, 424, 434, 438, 440),
            "mounts and namespaces": (155, 161, 165, 166, 272, 308, *range(428, 434), 442),
            "the kernel": (
                *(134, 155, 156, 163, 167, 168, 169, 172, 173, 174, 175, 176, 177, 178, 180),
                *(227, 246, 248, 249, 250, 298, 303, 304, 305, 313, 320, 321, 323, 425, 426, 427),
            ),
        },
    )
}
_X32 = 0x40000000  # a second set of numbers for the same calls
_TSYNC, _MODE_FILTER = 1, 1
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ARCHITECTURE, _NUMBER, _ARGUMENTS = 4, 0, 16  # places in the facts of a call
# calls that are refused by an argument, on x86_64
_CLONE, _CLONE3, _FCNTL, _IOCTL_CALL, _PRLIMIT, _TGKILL = 56, 435, 72, 16, 302, 234
_CLONE_THREAD = 0x10000
_SET_OWNER = (8, 15)  # of signals: F_SETOWN and F_SETOWN_EX
_SET_OWNER_BY_IOCTL = (0x8901, 0x8902)
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET = {"x86_64": 126, "aarch64": 91}


def leave_network() -> None:
    """Move to a network without any interface, in a user namespace if that is needed."""
    if _LIBC.unshare(_CLONE_NEWNET) and _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        raise _refusal()


def drop_capabilities() -> None:
    """Give up every capability of root for good."""
    machine = platform.machine()
    if machine not in _CAPSET:
        raise OSError(f"no number of the system call is known for {machine}")
    head = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_LIBC.syscall(_CAPSET[machine], head, bytes(24)))


def forbid_new_rights() -> None:
    """Let no program give this process rights, and let no other process look into it."""
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))


def restrict_files(readable: Iterable[Path], writable: Path) -> int:
    """Leave only these files and folders to read, and one folder to write, and no TCP at all.

    Returns the version of Landlock. It binds this thread and those that it starts later.
    """
    version = _checked(_LIBC.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION_FLAG))
    handled = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    rules = struct.pack(
        "=QQQ",
        handled,
        _NETWORK_RIGHTS if version >= _NETWORK_VERSION else 0,
        _SCOPES if version >= _SCOPES_VERSION else 0,
    )
    size = 24 if version >= _SCOPES_VERSION else 16 if version >= _NETWORK_VERSION else 8
    ruleset = _checked(_LIBC.syscall(_LANDLOCK_CREATE, rules, size, 0))
    try:
        for path in readable:
            _allow(ruleset, path, _READ)
        _allow(ruleset, writable, handled & ~_EXECUTE & ~_IOCTL)
        _allow(ruleset, Path(os.devnull), _READ_FILE | _WRITE_FILE)
        _checked(_LIBC.syscall(_LANDLOCK_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: Path, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        own = rights if path.is_dir() else rights & (_ON_FILES | _TRUNCATE)
        rule = struct.pack("=Qi", own, opened)
        _checked(_LIBC.syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_RULE, rule, 0))
    finally:
        os.close(opened)


def refuse_calls() -> None:
    """Refuse, in all threads, system calls that start programs or processes, open sockets, reach
    other processes, or change the system or the owners and modes of files."""
    machine = platform.machine()
    if machine not in _REFUSED:
        raise OSError(f"no table of system calls is known for {machine}")
    architecture, number, refused = _REFUSED[machine]
    steps = _filter(architecture, sorted({call for group in refused.values() for call in group}))
    code = ctypes.create_string_buffer(b"".join(steps), 8 * len(steps))
    program = struct.pack("=H6xQ", len(steps), ctypes.addressof(code))
    _checked(_LIBC.syscall(number, _MODE_FILTER, _TSYNC, program))


def _filter(architecture: int, refused: Sequence[int]) -> list[bytes]:
    """The program that the kernel runs for each call; a step is a code, two jumps and a value."""

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("=HBBI", code, then, otherwise, value)

    def by_argument(call: int, place: int, jump: int, values: Sequence[int], *, has: bool) -> bytes:
        """Decide on a call by an argument: refused if it ``has`` one of the values, or has none."""
        found, other = (refusal, allowed) if has else (allowed, refusal)
        tests = [step(jump, value, len(values) - n, 0) for n, value in enumerate(values)]
        steps = [step(_LOAD, _ARGUMENTS + 8 * place), *tests, other, found]
        return step(_JUMP_EQUAL, call, 0, len(steps)) + b"".join(steps)

    allowed, refusal = step(_RETURN, _ALLOW), step(_RETURN, _ERRNO | errno.EPERM)
    count = len(refused)
    whole = [
        step(_LOAD, _ARCHITECTURE),
        step(_JUMP_EQUAL, architecture, 1, 0),
        step(_RETURN, _KILL_PROCESS),
        step(_LOAD, _NUMBER),
        # the C library tries this call first, and then the older one, whose flags can be read
        step(_JUMP_EQUAL, _CLONE3, 0, 1),
        step(_RETURN, _ERRNO | errno.ENOSYS),
        by_argument(_CLONE, 0, _JUMP_IF_BITS, [_CLONE_THREAD], has=False),
        by_argument(_TGKILL, 0, _JUMP_EQUAL, [os.getpid()], has=False),
        by_argument(_PRLIMIT, 0, _JUMP_EQUAL, [0, os.getpid()], has=False),
        by_argument(_FCNTL, 1, _JUMP_EQUAL, _SET_OWNER, has=True),
        by_argument(_IOCTL_CALL, 1, _JUMP_EQUAL, _SET_OWNER_BY_IOCTL, has=True),
        step(_JUMP_AT_LEAST, _X32, count + 1, 0),
        *(step(_JUMP_EQUAL, call, count - place, 0) for place, call in enumerate(refused)),
        allowed,
        refusal,
    ]
    joined = b"".join(whole)
    return [joined[start : start + 8] for start in range(0, len(joined), 8)]


def _checked(result: int) -> int:
    if result < 0:
        raise _refusal()
    return result


def _refusal() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
