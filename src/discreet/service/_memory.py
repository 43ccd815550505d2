"""The memory of workers: how much each one may have, and which one has more.

A worker that takes more would make the kernel end some process, perhaps the service itself.
"""

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

_PART = 0.8  # of the host's memory, for all workers together
_PAUSE = 0.2  # seconds between two looks
_PAGE = os.sysconf("SC_PAGE_SIZE")
_GROUPS = (  # limits of a container
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class HasMemory(Protocol):
    """A process that is watched."""

    @property
    def memory(self) -> int:
        """The bytes of memory that it has."""
        ...

    def kill(self) -> None:
        """Kill the process."""
        ...


def usual_limit(workers: int) -> int:
    """The bytes that each of this number of workers, and their spare one, may have."""
    whole = os.sysconf("SC_PHYS_PAGES") * _PAGE
    for path in _GROUPS:
        try:
            whole = min(whole, int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
    return int(_PART * whole) // (workers + 1)


def memory_of(process: int) -> int:
    """The bytes of memory that a process has; 0 once it ended."""
    try:
        facts = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(facts[1]) * _PAGE


class MemoryWatch:
    """Kills each process that has more than its limit, until it is ended."""

    __slots__ = ("_end", "_every", "_limit", "_note")

    def __init__(
        self, every: Callable[[], Iterable[HasMemory]], limit: int, note: Callable[[int], object]
    ) -> None:
        """Watch these processes; ``note`` gets the memory of one that is killed."""
        self._every, self._limit, self._note = every, limit, note
        self._end = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._end.wait(_PAUSE):
            for process in self._every():
                if (found := process.memory) > self._limit:
                    process.kill()
                    self._note(found)

    def end(self) -> None:
        """Stop watching."""
        self._end.set()
