"""The workers of a service: started, given jobs, limited in time, and replaced when they fail."""

import json
import logging
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet import errors
from discreet.service._confinement import Barrier
from discreet.service._memory import MemoryWatch, memory_of
from discreet.service._payment import Payment
from discreet.service._slots import WorkerSlots
from discreet.service._work_order import WorkOrder
from discreet.service._worker_process import (
    StartedProcess,
    WaitingProcess,
    WorkerSettings,
    started,
)

owners_log = logging.getLogger("discreet.owner")
_LARGEST_FRAME = 1 << 28  # bytes
_READY_SECONDS = 120.0
_LAST_SECONDS = 1.0  # between the end of a connection and that of its process
_PAUSES = (0, 1, 5, 30)  # seconds before each try to start a worker
FAILED = (
    "the computation failed after it was paid: the charge stands, nothing is released and the "
    "table is locked until its owner acts"
)


class WorkerLost(Exception):
    """A worker ended, or took too long, before anything was paid."""


class Busy(Exception):
    """All workers have work, and the wait for one is over."""


class Retired(Exception):
    """The pool takes no further job: another one has its place."""


class Stale(Exception):
    """A worker lost a connection that it can't open anew, before anything was paid."""


class Worker:
    """One worker process and the channel to it. It does one job at a time."""

    __slots__ = ("_channel", "_is_ended", "_marks", "_process", "_settings", "_start", "barriers")

    def __init__(self, settings: WorkerSettings, start: StartedProcess | None = None) -> None:
        """Start a process, or take one that waits, and wait until it is confined; `WorkerLost` if
        it ends before."""
        self._settings, self._marks = settings, _marks(settings.sources)
        self._is_ended = False
        self._start = start or started(settings)
        self._process, self._channel = self._start.process, self._start.channel
        try:
            self._send(settings.text.encode())
            ready = self._limited(_READY_SECONDS, self._receive)
        except (WorkerLost, OSError, EOFError):
            self.end()
            raise WorkerLost("a worker did not start: the owner's log says why") from None
        self.barriers = tuple(Barrier(*one) for one in ready["ready"])

    @property
    def memory(self) -> int:
        """The bytes of memory that the process has."""
        return memory_of(self._process.pid)

    def kill(self) -> None:
        """End the process, as if it failed."""
        self._process.kill()

    @property
    def is_usable(self) -> bool:
        """Whether the process runs, and no file of rows was replaced since it started."""
        return self._process.poll() is None and self._marks == _marks(self._settings.sources)

    def result(self, job: WorkOrder, payment: Payment | None) -> dict[str, Any]:  # Any: JSON
        """The result of a job, or its refusal as an error of `discreet.errors`.

        If the process ends, takes too long or breaks the protocol, it is ended. The ledger is then
        locked (`ComputationFailed`) if rows may have been read; otherwise it is `WorkerLost`.
        """
        begun = time.monotonic()
        try:
            if self._channel.poll():
                raise ValueError("a worker went on after its last reply")
            reply = self._limited(self._settings.seconds, lambda: self._done(job, payment))
            if payment is not None and not payment.accepts(reply):
                raise ValueError("a worker ended a paid job in another way than it may")
            refusal = _error(*reply["error"]) if "error" in reply else None
            is_stale = "stale" in reply
            if is_stale and reply["stale"]:
                refusal = errors.DeclarationError(str(reply["stale"]))
        except Exception as cause:  # a broken process may send anything
            has_failed = not self._is_ended  # otherwise the service itself stops
            if has_failed:
                why = self._cause_of_end(cause, time.monotonic() - begun)
                owners_log.error("a worker was ended at a question to %s: %s", job.table, why)
            self.end()
            if has_failed and payment is not None and payment.has_read_rows:
                payment.lock()
                raise errors.ComputationFailed(FAILED) from None
            raise WorkerLost("a worker ended before anything was paid") from cause
        if is_stale:
            self.end()
            raise refusal or Stale
        if refusal is not None:
            raise refusal
        found: dict[str, Any] = reply["result"]
        return found

    def _done(self, job: WorkOrder, payment: Payment | None) -> dict[str, Any]:
        self._send(job.to_json())
        while not (frame := self._receive()).keys() & {"result", "error", "stale"}:
            if payment is None:
                raise ValueError("a worker asked for a payment of a free task")
            self._send(json.dumps(payment.reply(frame)).encode())
        return frame

    def _cause_of_end(self, failure: Exception, seconds: float) -> str:
        """The cause for the owner, with no word of the worker's own, which may say anything."""
        if seconds >= self._settings.seconds:
            return f"it took more than {self._settings.seconds:g} seconds"
        if not isinstance(failure, EOFError | OSError):
            return "it sent another message than it may"
        with suppress(subprocess.TimeoutExpired):
            return f"its process ended with exit code {self._process.wait(_LAST_SECONDS)}"
        return "it ended the connection"

    def _send(self, frame: bytes) -> None:
        self._channel.send_bytes(frame)

    def _receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self._channel.recv_bytes(_LARGEST_FRAME))
        return frame

    def _limited(self, seconds: float, step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The step's result; a process that takes longer is killed, which ends the step."""
        timer = threading.Timer(seconds, self.kill)
        timer.daemon = True
        timer.start()
        try:
            return step()
        finally:
            timer.cancel()

    def end(self) -> None:
        """Kill the process, and remove what it wrote."""
        self._is_ended = True
        self._start.end()


class WorkerPool:
    """Workers of one declaration, with a spare one that takes the place of one that failed.

    ``barriers`` are those around the last worker that started.
    """

    __slots__ = (
        *(
            "_all",
            "_count",
            "_idle",
            "_is_closed",
            "_is_retired",
            "_lock",
            "_slots",
            "_settings",
            "_watch",
            "barriers",
        ),
    )

    def __init__(
        self, settings: WorkerSettings, count: int, waiting: WaitingProcess | None = None
    ) -> None:
        """Start ``count`` workers and a spare, and wait for the first, which takes a process that
        waits already."""
        self._settings, self._count = settings, count
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._slots = WorkerSlots(count)
        self._all: set[Worker] = set()
        self._lock, self._is_closed, self._is_retired = threading.Lock(), False, False
        self.barriers: tuple[Barrier, ...] = ()
        self._watch = MemoryWatch(self._every, settings.memory, self._note_killed)
        self._start(None if waiting is None else waiting.take(settings))
        for _ in range(count):
            self._start_soon()

    @property
    def memory(self) -> tuple[int, ...]:
        """The bytes of memory that each worker has."""
        return tuple(worker.memory for worker in self._every())

    def _every(self) -> tuple[Worker, ...]:
        with self._lock:
            return tuple(self._all)

    def _note_killed(self, memory: int) -> None:
        most = self._settings.memory
        owners_log.error("a worker had %d bytes of memory and was ended: %d allowed", memory, most)

    def result(self, job: WorkOrder, payment: Payment | None, *, wait: float) -> dict[str, Any]:
        """The result of a job, as `Worker.result` gives it. `Busy` if no worker is free in time;
        `Retired` if the pool ends before the job begins."""
        if not self._slots.take(wait):
            raise Busy
        try:
            if self._is_retired:
                raise Retired
            for _ in range(self._count + 2):  # all may be stale, and then comes a new one
                worker = self._usable(wait)
                try:
                    return worker.result(job, payment)
                except Stale:
                    continue
                finally:
                    self._take_back(worker)
            raise Busy
        finally:
            self._slots.give_back()

    def retire(self) -> None:
        """End all workers, each after the job that it has; jobs that wait are `Retired`."""
        self._is_retired = True
        for _ in range(self._count):
            self._slots.take()
        self.close()
        for _ in range(self._count):
            self._slots.give_back()  # whoever comes now learns of it

    def _usable(self, wait: float) -> Worker:
        while True:
            try:
                worker = self._idle.get(timeout=wait)
            except queue.Empty:
                raise Busy from None
            if worker.is_usable:
                return worker
            self._replace(worker)

    def _take_back(self, worker: Worker) -> None:
        if worker.is_usable:
            self._idle.put(worker)
        else:
            self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.end()
        self._start_soon()

    def _start_soon(self) -> None:
        # the process waits for it at its end, and so for the removal of the worker's folder
        threading.Thread(target=self._start_again, daemon=False).start()

    def _start_again(self) -> None:
        for pause in _PAUSES:
            time.sleep(pause)
            if self._is_closed:
                return
            with suppress(WorkerLost):  # the log says why
                self._start()
                return

    def _start(self, process: StartedProcess | None = None) -> None:
        worker = Worker(self._settings, process)
        with self._lock:
            is_late = self._is_closed
            if not is_late:
                self._all.add(worker)
                self.barriers = worker.barriers  # they outlive the worker
        if is_late:
            worker.end()
        else:
            self._idle.put(worker)

    def close(self) -> None:
        """End all workers. Questions in progress stay paid, and no ledger is locked by it."""
        self._watch.end()
        with self._lock:
            self._is_closed, ended = True, tuple(self._all)
        for worker in ended:
            worker.end()


def _marks(sources: Sequence[Path]) -> tuple[object, ...]:
    """Changes whenever a file is replaced: a worker may open only the files of its start."""
    found: list[object] = []
    for path in sources:
        try:
            facts = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((facts.st_dev, facts.st_ino))
    return tuple(found)


def _error(name: str, text: str) -> Exception:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.DiscreetError):
        return kind(FAILED if kind is errors.ComputationFailed else text)
    return RuntimeError("a worker met an unexpected error")
