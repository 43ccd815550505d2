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
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from discreet.audit._word_streams import (
    WordStream,
    generator_stream,
    numpy_stream,
    python_stream,
    torch_stream,
)
from discreet.mechanisms import Door

_EVENTS = {
    *("open", "os.remove", "os.rename", "os.putenv", "os.unsetenv"),
    *("socket.connect", "sqlite3.connect", "subprocess.Popen"),
}
_PYTHON, _NUMPY, _TORCH = "the module random", "NumPy's global generator", "PyTorch"
_CODE = (".py", ".pyc", ".so", ".pth")


@dataclass
class RunWatch:
    """A record of one run: ``facts`` by their names, in the order of events."""

    seed: int
    thread: int = field(default_factory=threading.get_ident)
    facts: list[tuple[str, str]] = field(default_factory=list)
    generators: list[Any] = field(default_factory=list)  # Any: NumPy's
    streams: dict[str, WordStream] = field(default_factory=dict)  # whose draws can be counted
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
        """A generator of NumPy; without a seed it gets one that is the same in each run, of a kind
        whose draws can be counted."""
        self.note("a seed of NumPy", [repr(one) for one in seeds])
        found = make(*seeds) if any(one is not None for one in seeds) else self._without_seed()
        self.generators.append(found)
        return found

    def _without_seed(self) -> Any:  # Any: NumPy's
        seed = [self.seed, len(self.generators)]
        twister = np.random.MT19937(seed)
        self.streams[_generator(seed[1])] = generator_stream(twister, seed)
        return np.random.Generator(twister)

    def seeded(self, source: str, seed: object) -> None:
        """Record that the pipeline sets a seed itself, so that its draws can't be counted."""
        self.note(f"a seed of {source}", repr(seed))
        self.streams.pop(source, None)


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


@contextmanager
def watch_run(seed: int, door: Door) -> Iterator[RunWatch]:
    """RunWatch a run in this thread, whose releases go through the door."""
    watch = RunWatch(seed)
    printed = io.StringIO()
    _AuditHook.install()
    with ExitStack() as stack:
        stack.enter_context(_seeded(watch))
        stack.enter_context(_through(door, watch))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(_logged(watch))
        _AuditHook.watch = watch
        try:
            yield watch
        finally:
            _AuditHook.watch = None
            for name, state in _states(watch):
                watch.note(f"the draws of {name}", state)
            watch.note("the printed text", printed.getvalue())


@contextmanager
def _logged(watch: RunWatch) -> Iterator[None]:
    """Each record of any logger is noted, whoever handles it."""
    handle = logging.Logger.callHandlers

    def note_and_handle(self: logging.Logger, record: logging.LogRecord) -> None:
        if watch.is_here():
            watch.note("a line of the log", (record.levelname, record.getMessage()))
        handle(self, record)

    with mock.patch.object(logging.Logger, "callHandlers", note_and_handle):
        yield


@contextmanager
def _seeded(watch: RunWatch) -> Iterator[None]:
    """All random sources in the same state; afterwards in that of before."""
    # 1. the sources that have a state
    before, numpy_before = random.getstate(), np.random.get_state()
    torch: Any = sys.modules.get("torch")  # Any: only where the user imported it
    torch_before = torch.get_rng_state() if torch else None
    random.seed(watch.seed)
    np.random.seed(watch.seed)
    watch.streams |= {_PYTHON: python_stream(watch.seed), _NUMPY: numpy_stream(watch.seed)}
    if torch:
        torch.manual_seed(watch.seed)
        watch.streams[_TORCH] = torch_stream(watch.seed)
    # 2. the sources that take from the operating system, and the seeds
    with ExitStack() as stack:
        for owner, name, here in _replaced(watch, torch):
            stack.enter_context(_here(watch, owner, name, here))
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)
            if torch:
                torch.set_rng_state(torch_before)


def _replaced(
    watch: RunWatch,
    torch: Any,  # Any: the module, or None
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Functions, by their owners and names, with those that stand in for them."""
    yield os, "urandom", watch.urandom
    yield random, "_urandom", watch.urandom
    make = np.random.default_rng
    yield np.random, "default_rng", lambda *seeds: watch.generator(make, seeds)
    setters = [(random, "seed", _PYTHON), (np.random, "seed", _NUMPY)]
    for owner, name, source in setters + ([(torch, "manual_seed", _TORCH)] if torch else []):
        yield owner, name, _noting(watch, getattr(owner, name), source)


def _noting(watch: RunWatch, seed: Callable[..., Any], source: str) -> Callable[..., Any]:
    """The function that sets the seed of a source, which is noted."""

    def set_seed(*given: Any, **named: Any) -> Any:
        watch.seeded(source, (given, named))
        return seed(*given, **named)

    return set_seed


def _here(watch: RunWatch, owner: Any, name: str, here: Callable[..., Any]) -> Any:
    """A patch of this function for the run's own thread."""
    elsewhere = getattr(owner, name)

    def ask(*given: Any, **named: Any) -> Any:
        return (here if watch.is_here() else elsewhere)(*given, **named)

    return mock.patch.object(owner, name, ask)


@contextmanager
def _through(door: Door, watch: RunWatch) -> Iterator[None]:
    """Releases of this library go through the door, which charges no ledger."""
    secure = Door.secure

    def open_door(payer: Any) -> Door:  # Any: a ledger, which is not charged
        return door if watch.is_here() else secure(payer)

    with mock.patch.object(Door, "secure", staticmethod(open_door)):
        yield


def _states(watch: RunWatch) -> Iterator[tuple[str, str]]:
    """The number of words that each source gave, or a digest of its state if a seed was set."""
    yield "the operating system", str(watch.bytes_drawn)
    states: dict[str, Callable[[], object]] = {
        _PYTHON: random.getstate,
        _NUMPY: partial(np.random.get_state, legacy=False),
    }
    for place, one in enumerate(watch.generators):
        states[_generator(place)] = partial(getattr, one.bit_generator, "state")
    torch: Any = sys.modules.get("torch")  # Any: only where the user imported it
    if torch:
        states[_TORCH] = lambda: torch.get_rng_state().numpy().tobytes()
    for source, state in states.items():
        stream = watch.streams.get(source)
        words = None if stream is None else stream.words()
        yield source, words or _digest(state())


def _generator(place: int) -> str:
    return f"NumPy's generator {place}"


def _digest(state: object) -> str:
    return hashlib.sha256(pickle.dumps(state)).hexdigest()[:16]
