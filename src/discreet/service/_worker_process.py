"""Starts the processes of workers. One can wait for its declaration: it has imported all that it
needs, which takes longer than all else, and has read nothing.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, BinaryIO

from discreet.service._databases import variables_for_databases

_ROOT = Path(__file__).parents[2]  # the folder of this very package
# A thread that a library starts before the confinement would escape it.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ")  # variables that a worker needs
_IDLE_SECONDS = 900.0  # after which a process that waits is ended


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """All that workers need: the declaration's file and text, the files of rows, the owner's log,
    the seconds that a job may take, the bytes of memory that each worker may have, and whether
    rows are in databases, too."""

    file: Path
    text: str
    sources: Sequence[Path]
    log: Path
    seconds: float
    memory: int
    has_databases: bool = False

    @property
    def of_process(self) -> tuple[object, ...]:
        """The settings that a process needs at its start; it gets the others later."""
        return self.file, self.log, self.memory, self.has_databases


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """A process that waits for the text of its declaration on its channel, and its own folder."""

    process: "subprocess.Popen[bytes]"
    channel: "Connection[Any, Any]"
    folder: str

    def end(self) -> None:
        """Kill the process, and remove what it wrote."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class WaitingProcess:
    """At most one process that was started before it is needed."""

    __slots__ = ("_lock", "_settings", "_started", "_timer")

    def __init__(self) -> None:
        """Start none yet."""
        self._lock = threading.Lock()
        self._started: StartedProcess | None = None
        self._settings: tuple[object, ...] = ()
        self._timer: threading.Timer | None = None

    def prepare(self, settings: WorkerSettings) -> None:
        """Start one for settings like these, unless one waits already; it ends after some
        minutes."""
        with self._lock:
            if self._started is None:
                self._started, self._settings = started(settings), settings.of_process
                self._timer = threading.Timer(_IDLE_SECONDS, self.end)
                self._timer.daemon = True
                self._timer.start()

    def take(self, settings: WorkerSettings) -> StartedProcess:
        """The process that waits, if it runs and was started for these settings, or a new one."""
        with self._lock:
            found = self._started
            if found is not None and self._settings == settings.of_process:
                self._forget()
                if found.process.poll() is None:
                    return found
                found.end()
        return started(settings)

    def end(self) -> None:
        """End the process that waits, if there is one."""
        with self._lock:
            found = self._started
            self._forget()
        if found is not None:
            found.end()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._started = self._timer = None


def started(settings: WorkerSettings) -> StartedProcess:
    """A new process, which imports while others go on."""
    folder = tempfile.mkdtemp(prefix="discreet-worker-")
    channel, theirs = Pipe()
    with theirs, _opened_log(settings.log) as log:
        return StartedProcess(_start(settings, theirs, folder, log.fileno()), channel, folder)


def _start(
    settings: WorkerSettings, theirs: "Connection[Any, Any]", folder: str, log: int
) -> "subprocess.Popen[bytes]":
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    if settings.has_databases:
        passed |= variables_for_databases()
    return subprocess.Popen(  # noqa: S603  # this Python, with paths of the service's own
        [
            *(sys.executable, "-P", "-m", "discreet.service._worker"),
            *(str(settings.file), str(theirs.fileno()), folder, str(settings.memory)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        cwd="/",
        env={**passed, **_ONE_THREAD, "PYTHONPATH": str(_ROOT), "TMPDIR": folder},
        pass_fds=[theirs.fileno()],
        start_new_session=True,  # Ctrl-C is for the service, which ends its workers in order
    )


def _opened_log(path: Path) -> BinaryIO:
    return open(path, "ab", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
