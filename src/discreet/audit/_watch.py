"""Records draws, files and printed text of a user's pipeline while it runs, for `replay_pipeline`.

All random sources that a program may use unnoticed are set to the same state before each run: the
generators of `random`, NumPy and PyTorch, and the bytes of the operating system. Other threads of
the process keep their own: a replaced function asks for the thread first.
"""

import contextlib
import hashlib
import io
import logging
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from discreet.mechanisms import Door

_EVENTS = {"open", "os.remove", "os.rename", "socket.connect", "sqlite3.connect"} | {
    "subprocess.Popen"
}
_CODE = (".py", ".pyc", ".so", ".pth")


@dataclass
class RunWatch:
    """A record of one run: ``facts`` by their names, in the order of events."""

    seed: int
    thread: int = field(default_factory=threading.get_ident)
    facts: list[tuple[str, str]] = field(default_factory=list)
    generators: list[Any] = field(default_factory=list)  # Any: NumPy's
    bytes_drawn: int = 0

    def note(self, name: str, fact: object) -> None:
        """Record a fact by its text."""
        self.facts.append((name, str(fact)))

    def is_here(self) -> bool:
        """Whether the run's own thread asks."""
        return threading.get_ident() == self.thread

    def urandom(self, size: int) -> bytes:
        """Bytes that stand in for those of the operating system."""
        start = self.bytes_drawn
        self.bytes_drawn += size
        drawn = hashlib.shake_256(f"discreet {self.seed}".encode()).digest(self.bytes_drawn)
        return drawn[start:]

    def generator(self, make: Callable[..., Any], seeds: tuple[Any, ...]) -> Any:  # Any: NumPy's
        """A generator of NumPy; without a seed it gets one that is the same in each run."""
        self.note("a seed of NumPy", [repr(one) for one in seeds])
        found = make(*(seeds or ([self.seed, len(self.generators)],)))
        self.generators.append(found)
        return found


class _AuditHook:
    """The watch of the run in progress. Python can't remove an audit hook, so one stays."""

    watch: RunWatch | None = None
    is_installed = False

    @classmethod
    def install(cls) -> None:
        if not cls.is_installed:
            cls.is_installed = True
            sys.addaudithook(cls.hear)

    @classmethod
    def hear(cls, event: str, arguments: tuple[Any, ...]) -> None:
        watch = cls.watch
        if watch is None or event not in _EVENTS or not watch.is_here():
            return
        place = str(arguments[0])
        if event != "open" or not place.endswith(_CODE):
            watch.note(event, arguments[:2])


class _LogWatch(logging.Handler):
    def __init__(self, watch: RunWatch) -> None:
        super().__init__()
        self.watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self.watch.note("a line of the log", (record.levelname, record.getMessage()))


@contextmanager
def watch_run(seed: int, door: Door) -> Iterator[RunWatch]:
    """RunWatch a run in this thread, whose releases go through the door."""
    watch = RunWatch(seed)
    printed = io.StringIO()
    log = _LogWatch(watch)
    _AuditHook.install()
    with ExitStack() as stack:
        stack.enter_context(_seeded(watch))
        stack.enter_context(_through(door, watch))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        logging.getLogger().addHandler(log)
        stack.callback(logging.getLogger().removeHandler, log)
        _AuditHook.watch = watch
        try:
            yield watch
        finally:
            _AuditHook.watch = None
            for name, state in _states(watch):
                watch.note(f"the draws of {name}", state)
            watch.note("the printed text", printed.getvalue())


@contextmanager
def _seeded(watch: RunWatch) -> Iterator[None]:
    """All random sources in the same state; afterwards in that of before."""
    # 1. the sources that have a state
    before, numpy_before = random.getstate(), np.random.get_state()
    torch: Any = sys.modules.get("torch")  # Any: only where the user imported it
    torch_before = torch.get_rng_state() if torch else None
    random.seed(watch.seed)
    np.random.seed(watch.seed)
    if torch:
        torch.manual_seed(watch.seed)
    # 2. the sources that take from the operating system
    urandom, default_rng = os.urandom, np.random.default_rng

    def draw_bytes(size: int) -> bytes:
        return watch.urandom(size) if watch.is_here() else urandom(size)

    def make_generator(*seeds: Any) -> Any:  # Any: as NumPy's own
        return watch.generator(default_rng, seeds) if watch.is_here() else default_rng(*seeds)

    patches: list[Any] = [  # Any: of functions of different types
        mock.patch.object(os, "urandom", draw_bytes),
        mock.patch.object(random, "_urandom", draw_bytes),
        mock.patch.object(np.random, "default_rng", make_generator),
    ]
    try:
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)
        if torch:
            torch.set_rng_state(torch_before)


@contextmanager
def _through(door: Door, watch: RunWatch) -> Iterator[None]:
    """Releases of this library go through the door, which charges no ledger."""
    secure = Door.secure

    def open_door(payer: Any) -> Door:  # Any: a ledger, which is not charged
        return door if watch.is_here() else secure(payer)

    with mock.patch.object(Door, "secure", staticmethod(open_door)):
        yield


def _states(watch: RunWatch) -> Iterator[tuple[str, str]]:
    """A digest of each source's state after the run."""
    yield "the operating system", str(watch.bytes_drawn)
    yield "the module random", _digest(random.getstate())
    yield "NumPy's global generator", _digest(np.random.get_state(legacy=False))
    for place, one in enumerate(watch.generators):
        yield f"NumPy's generator {place}", _digest(one.bit_generator.state)
    torch: Any = sys.modules.get("torch")  # Any: only where the user imported it
    if torch:
        yield "PyTorch", _digest(torch.get_rng_state().tolist())


def _digest(state: object) -> str:
    with np.printoptions(threshold=sys.maxsize):
        return hashlib.sha256(repr(state).encode()).hexdigest()[:16]
