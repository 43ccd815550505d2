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
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
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
    *("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"),
    *("os.truncate", "os.chdir", "os.chmod", "os.putenv", "os.unsetenv", "os.system"),
    *("os.exec", "os.posix_spawn", "subprocess.Popen", "sqlite3.connect"),
    *("socket.bind", "socket.connect", "socket.sendto", "socket.getaddrinfo"),
}
_OF_SOCKETS = "socket.bind", "socket.connect", "socket.sendto"  # the first argument is a socket
_MOST_BYTES = 10**6  # of a file that was written
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
    own: list[Random] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # written ones, and their sizes before

    def note(self, name: str, fact: object) -> None:
        """Record a fact by its text."""
        self.facts.append((name, str(fact)))

    def opens(self, path: object, flags: object) -> None:
        """Remember a file that is opened to be written."""
        is_written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if is_written and isinstance(path, str | os.PathLike):
            known = Path(path)
            is_longer = flags & os.O_APPEND and known.is_file()  # type: ignore[operator]
            self.files.setdefault(os.fspath(path), known.stat().st_size if is_longer else 0)

    def written(self) -> Iterator[tuple[str, bytes]]:
        """The bytes that the run added to each file that is left, in order of opening."""
        for place, (path, start) in enumerate(self.files.items()):
            if Path(path).is_file():
                with suppress(OSError), Path(path).open("rb") as file:
                    file.seek(start)
                    yield f"the content of the written file {place}", file.read(_MOST_BYTES)

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

    def seed_of(self, one: Random, given: Any) -> Any:  # Any: a seed of any kind
        """The seed of an object of `random.Random`; without one, it is the same in each run."""
        name = _own(len(self.own))
        self.own.append(one)
        if given is None:
            given = f"{self.seed} {name}"
            self.streams[name] = python_stream(given, one.getstate)
        else:
            self.note("a seed of an object of random.Random", repr(given))
        return given

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
        if event == "open" and str(arguments[0]).endswith(_CODE):
            return
        if event == "open":
            watch.opens(arguments[0], arguments[2])
        if event == "os.rename" and (size := watch.files.pop(str(arguments[0]), None)) is not None:
            watch.files[str(arguments[1])] = size
        watch.note(event, arguments[1:2] if event in _OF_SOCKETS else arguments[:2])


@contextmanager
def watch_run(seed: int, door: Callable[[], Door]) -> Iterator[RunWatch]:
    """Watch a run in this thread, whose releases go through the door."""
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
            error = record.exc_info[1] if record.exc_info else None
            shown = record.name, record.levelname, record.getMessage()
            watch.note("a line of the log", shown if error is None else (*shown, error_text(error)))
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
        stack.enter_context(mock.patch.object(random, "Random", _random_class(watch)))
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)
            if torch:
                torch.set_rng_state(torch_before)


def _random_class(watch: RunWatch) -> type[Random]:
    """`random.Random`, whose objects without a seed get one that is the same in each run."""

    class OwnRandom(Random):
        def __init__(self, x: Any = None) -> None:  # Any: a seed of any kind
            if watch.is_here():
                x = watch.seed_of(self, x)
            super().__init__(x)

    OwnRandom.__module__, OwnRandom.__qualname__ = Random.__module__, Random.__qualname__
    OwnRandom.__name__ = Random.__name__
    return OwnRandom


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
def _through(door: Callable[[], Door], watch: RunWatch) -> Iterator[None]:
    """Releases of this library go through the door, which charges no ledger."""
    secure = Door.secure

    def open_door(payer: Any) -> Door:  # Any: a ledger, which is not charged
        return door() if watch.is_here() else secure(payer)

    with mock.patch.object(Door, "secure", staticmethod(open_door)):
        yield


def _states(watch: RunWatch) -> Iterator[tuple[str, str]]:
    """The number of words that each source gave, or a digest of its state if a seed was set."""
    yield "the operating system", str(watch.bytes_drawn)
    states: dict[str, Callable[[], object]] = {
        _PYTHON: random.getstate,
        _NUMPY: partial(np.random.get_state, legacy=False),
    }
    for place, other in enumerate(watch.own):
        states[_own(place)] = other.getstate
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


def _own(place: int) -> str:
    return f"random.Random {place}"


def _digest(state: object) -> str:
    return hashlib.sha256(pickle.dumps(state)).hexdigest()[:16]


def error_text(error: BaseException) -> str:
    """An error as its traceback shows it, without lines of code: its notes, its cause and its
    members, too."""
    shown = traceback.TracebackException.from_exception(error, limit=0, lookup_lines=False)
    return "".join(_error_lines(shown)).strip()


def _error_lines(shown: traceback.TracebackException) -> Iterator[str]:
    yield from shown.format_exception_only()
    for member in shown.exceptions or ():
        yield from _error_lines(member)
    before = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    if before is not None:
        yield "after "
        yield from _error_lines(before)
