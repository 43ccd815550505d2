"""Runs tests in forks of one process that has imported all libraries, and the lower parts.

A plugin of pytest, for ``tools.mutants``: most of a mutant's time would otherwise go into starting
Python and importing libraries. Each fork imports the changed part of discreet, the parts above it
and the test files anew, from their files, so that it tests the source as it is at that moment.

The environment variable ``FORKED_TESTS`` has the file descriptor by which requests come. The
answer to each is pytest's exit code, or None if a limit was reached, the tests that failed, the
recorded tests, and the libraries that were imported. The first failure ends a fork, unless it
records.
"""

import contextlib
import functools
import gc
import importlib
import os
import pickle
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from inspect import unwrap
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

_MEMORY = 12 * 2**30  # bytes; a mutant may ask for any amount
_EVER = 10**6  # seconds
_PATIENCE = 4  # times the limit of processor time, since a mutant may also wait forever

Place = tuple[str, int]  # a file below the root, and the line where a function begins


@dataclass
class Report:
    """The tests that failed, the libraries imported, and of each recorded test its seconds and the
    functions that ran."""

    failed: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    tests: dict[str, tuple[float, set[Place]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """The test files, the tests to run in this order, or None for all, the limit in seconds of
    processor time, whether the tests are recorded (then no test begins after the limit), the
    libraries to import before the fork, and the parts of discreet that count as libraries."""

    files: list[str]
    tests: list[str] | None
    seconds: float
    is_recorded: bool
    libraries: list[str]
    below: list[str]


class Fork:
    """The plugin; in a fork also the request that the fork runs."""

    def __init__(self, connection: Connection, root: Path) -> None:
        self.connection = connection
        self.root = root
        self.result = root / "report.pickle"
        self.report = Report()
        self.begun = 0.0
        self.request = Request([], None, 0, False, [], [])
        self.caches: list[Any] = []  # Any: their type has no public name

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Answer requests until there is none; a fork returns, and collects its tests."""
        settings.register_profile(
            "forks", settings(), phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
        )  # a failure counts, and not its smallest example
        settings.load_profile("forks")
        with contextlib.suppress(EOFError):
            while True:
                request = Request(*self.connection.recv())
                _import(request.libraries)
                child = os.fork()
                if not child:
                    self._begin(session, request)
                    return
                self._answer(child, request)
        os._exit(0)

    def _answer(self, child: int, request: Request) -> None:
        code = _ended(child, _EVER if request.is_recorded else request.seconds * _PATIENCE)
        report = Report()
        if self.result.exists():
            report = pickle.loads(self.result.read_bytes())  # noqa: S301  # our own fork wrote it
            self.result.unlink()
        self.connection.send((code, report.failed, report.tests, report.libraries))

    def _begin(self, session: pytest.Session, request: Request) -> None:
        os.setsid()
        self.connection.close()
        seconds = int(min(request.seconds, _EVER)) + 1
        if not request.is_recorded:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        sys.dont_write_bytecode = not request.is_recorded
        session.config.option.maxfail = 0 if request.is_recorded else 1
        self.request = request
        self.begun = time.process_time()
        session.config.args = request.files

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose the tests of the request, in its order."""
        if self.request.is_recorded:
            self.report.libraries = self._libraries()
            self.caches = self._caches()
        if self.request.tests is not None:
            places = {name: place for place, name in enumerate(self.request.tests)}
            items[:] = [item for item in items if item.nodeid in places]
            items.sort(key=lambda item: places[item.nodeid])

    def _libraries(self) -> list[str]:
        """The modules in use from outside the root or below the part, in the order of their
        imports."""
        own = str(self.root)
        modules = [(name, getattr(it, "__file__", None)) for name, it in sys.modules.items()]
        found = [(name, file) for name, file in modules if file]
        return [name for name, file in found if self._is_below(name) or not file.startswith(own)]

    def _is_below(self, module: str) -> bool:
        package, _, inner = module.partition(".")
        return package == "discreet" and inner.partition(".")[0] in {"", *self.request.below}

    def _caches(self) -> list[Any]:  # Any: as above
        """The cached functions of the source."""
        kind = type(functools.cache(len))
        found = [each for each in gc.get_objects() if isinstance(each, kind)]
        return [each for each in found if self._is_own(getattr(unwrap(each), "__code__", None))]

    def _is_own(self, code: CodeType | None) -> bool:
        return code is not None and code.co_filename.startswith(f"{self.root}/src/")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record the time of a test, and the functions that it runs."""
        if not self.request.is_recorded:
            return (yield)
        for cache in self.caches:  # so that each test runs all that it needs
            cache.cache_clear()
        calls: dict[int, CodeType] = {}

        def called(frame: FrameType, *_: object) -> None:
            calls.setdefault(id(frame.f_code), frame.f_code)

        begun = time.perf_counter()
        sys.settrace(called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            seconds = time.perf_counter() - begun
            self.report.tests[item.nodeid] = seconds, self._places(calls.values())
            if time.process_time() - self.begun > self.request.seconds:
                item.session.shouldstop = "recorded long enough"

    def _places(self, codes: Iterable[CodeType]) -> set[Place]:
        root = f"{self.root}/"
        own = filter(self._is_own, codes)
        return {(code.co_filename.removeprefix(root), code.co_firstlineno) for code in own}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that failed."""
        if report.failed:
            self.report.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the name of a file that could not be imported."""
        if report.failed:
            self.report.failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End the fork at once."""
        self.result.write_bytes(pickle.dumps(self.report))
        os._exit(int(exitstatus))


def _ended(child: int, seconds: float) -> int | None:
    """The exit code of a fork, or None if it was killed, by its limits or after this time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.01)
    else:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    with contextlib.suppress(ProcessLookupError):  # its own children
        os.killpg(child, signal.SIGKILL)
    return code if code >= 0 else None


def _import(libraries: list[str]) -> None:
    """Import these modules, so that forks find them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in libraries:
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def pytest_configure(config: pytest.Config) -> None:
    """Connect to the process that sends requests."""
    connection: Connection[Any, Any] = Connection(int(os.environ["FORKED_TESTS"]))
    config.pluginmanager.register(Fork(connection, Path.cwd()))
