"""Runs tests in forks of one process that has imported everything, with changed functions.

A plugin of pytest, for ``tools.mutants``. It collects the tests once. Each fork gets a changed
text of one module, compiles it, gives each existing function its changed code, and runs the
tests, the first failure being the last. So a mutant takes as long as its tests.

That is sound only for a change inside of functions: a constant, a default value or a class body
has been run already, and is refused. A result that a function computed at import stays too, so a
mutant that survives is tested once more by `tools.forked_tests`, which imports it anew. A failure
cannot be wrong for that reason: the changed function ran.

The environment variable ``PATCHED_TESTS`` has the file descriptor by which requests come.
"""

import ast
import builtins
import contextlib
import functools
import gc
import os
import pickle
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

_MEMORY = 16 * 2**30  # bytes; a mutant may ask for any amount
_PATIENCE = 10  # times the limit of processor time, since the machine may be busy
_STUCK = 15.0  # seconds in which a fork and its children use no processor time: it waits forever

Line = tuple[str, int]


@dataclass
class Report:
    """The tests that failed, and of each recorded test its seconds and lines."""

    failed: list[str] = field(default_factory=list)
    tests: dict[str, tuple[float, set[Line]]] = field(default_factory=dict)


class _Probes(ast.NodeTransformer):
    """Puts a probe before each statement of a function, with the file and the line."""

    def __init__(self, file: str, lines: list[Line]) -> None:
        self.file = file
        self.lines = lines

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function with probes."""
        for each in ast.walk(node):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(each, name, None)
                if isinstance(block, list) and not isinstance(each, ast.ClassDef):
                    setattr(each, name, [new for old in block for new in self._probed(old)])
        return node

    def _probed(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text:
            name = ast.Name("__probe__", ast.Load())
            number = ast.Constant(len(self.lines))
            self.lines.append((self.file, statement.lineno))
            probe = ast.Expr(ast.Call(name, [number], []))
            ast.copy_location(probe, statement)
            yield ast.fix_missing_locations(probe)
        yield statement


class Patched:
    """The plugin."""

    def __init__(self, connection: Connection, root: Path) -> None:
        self.connection = connection
        self.root = f"{root}/"
        self.result = root / "patched.pickle"
        self.report = Report()
        self.seconds = 0.0
        self.is_recorded = False
        self.lines: list[Line] = []
        self.probed: set[int] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer requests until there is none."""
        settings.register_profile(
            "forks", settings(), phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
        )
        settings.load_profile("forks")
        items = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # conftest.py froze all; `gc.get_objects` leaves out frozen objects
        self.functions = self._functions()
        if not self.functions:
            raise pytest.UsageError("no function of the source is imported by these tests")
        self.caches = self._cached()
        gc.collect()
        gc.freeze()
        self.connection.send(list(items))
        with contextlib.suppress(EOFError):
            while True:
                tests, seconds, change = self.connection.recv()
                found = [items[test] for test in tests if test in items]
                child = os.fork()
                if not child:
                    self._run(found, seconds, change)
                self.connection.send(self._answer(child, seconds))
        os._exit(0)

    def _answer(self, child: int, seconds: float) -> tuple[int | None, Report]:
        code = _ended(child, seconds * _PATIENCE)
        report = Report()
        if self.result.exists():
            with contextlib.suppress(EOFError, pickle.UnpicklingError):
                report = pickle.loads(self.result.read_bytes())  # noqa: S301  # our own fork's
            self.result.unlink()
        return code, report

    def _run(self, items: list[pytest.Item], seconds: float, change: Any) -> None:
        os.setsid()
        code = 3
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            if change is not None:
                limit = int(seconds) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
                if not self._patch(*change):
                    os._exit(4)
            else:
                self._probe()
            self.is_recorded, self.seconds = change is None, seconds
            code = self._tested(items)
            self.result.write_bytes(pickle.dumps(self.report))
        finally:
            os._exit(code)

    def _tested(self, items: list[pytest.Item]) -> int:
        until = time.process_time() + self.seconds  # a busy machine records as much
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.report.failed and not self.is_recorded:
                return 1
            if self.is_recorded and time.process_time() > until:
                break
        return bool(self.report.failed)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record the lines of a test; one that takes too long is skipped."""
        for cache in self.caches:
            cache.cache_clear()
        if not self.is_recorded:
            return (yield)
        signal.signal(signal.SIGVTALRM, _too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, _SLOWEST)
        self.probed.clear()
        begun = time.process_time()
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            seconds = time.process_time() - begun
            if seconds < _SLOWEST:
                own = {self.lines[number] for number in self.probed}
                self.report.tests[item.nodeid] = seconds, own

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that failed."""
        if report.failed:
            self.report.failed.append(report.nodeid)

    def _functions(self) -> dict[str, dict[CodeType, list[FunctionType]]]:
        """The functions of the source, by their file and code."""
        found: dict[str, dict[CodeType, list[FunctionType]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for each in gc.get_objects():
            if type(each) is FunctionType:  # some of the tests' objects fail when asked
                file = each.__code__.co_filename
                if file.startswith(self.root + "src/"):
                    found[file.removeprefix(self.root)][each.__code__].append(each)
        return found

    def _cached(self) -> list[Any]:
        kind = type(functools.cache(len))
        found = [each for each in gc.get_objects() if type(each) is kind]
        return [
            each
            for each in found
            if getattr(getattr(each.__wrapped__, "__code__", None), "co_filename", "").startswith(
                self.root + "src/"
            )
        ]

    def _probe(self) -> None:
        """Give all functions of the source code with probes."""
        builtins.__probe__ = self.probed.add  # type: ignore[attr-defined]
        for path, functions in self.functions.items():
            text = Path(self.root, path).read_text(encoding="utf-8")
            old = compile(text, self.root + path, "exec", dont_inherit=True)
            tree = _Probes(path, self.lines).visit(ast.parse(text))
            new = compile(tree, self.root + path, "exec", dont_inherit=True)
            for one, other in _all_pairs(old, new):
                for function in functions.get(one, ()):
                    function.__code__ = other

    def _patch(self, path: str, old: str, new: str) -> bool:
        """Give the functions of this module their code in the new text. False if something else
        changed, or if there is no function with the old code: then a test would tell nothing."""
        file = self.root + path
        before, after = (compile(text, file, "exec", dont_inherit=True) for text in (old, new))
        try:
            pairs = list(_pairs(before, after))
        except _Outside:
            return False
        found = [
            (function, other)
            for one, other in pairs
            for function in self.functions[path].get(one, ())
        ]
        for function, other in found:
            function.__code__ = other
        return bool(found)


def _codes(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _all_pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for one, other in zip(_codes(old), _codes(new), strict=True):
        yield from _all_pairs(one, other)
        if one.co_flags & 2 and one.co_freevars == other.co_freevars:
            yield one, other


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions' codes that differ; none if anything differs outside of functions."""
    constants = list(zip(old.co_consts, new.co_consts, strict=False))
    codes = [pair for pair in constants if isinstance(pair[0], CodeType)]
    is_function = bool(old.co_flags & 2)  # CO_NEWLOCALS
    if not is_function and not _same(old, new):
        raise _Outside
    for one, other in codes:
        if not isinstance(other, CodeType):
            raise _Outside
        yield from _pairs(one, other)
    if is_function and old != new:
        if old.co_freevars != new.co_freevars:
            raise _Outside
        yield old, new


class _Outside(Exception):
    """Something outside of a function was changed."""


def _same(old: CodeType, new: CodeType) -> bool:
    def plain(code: CodeType) -> object:
        constants = [
            (type(each), repr(each)) for each in code.co_consts if not isinstance(each, CodeType)
        ]
        return code.co_code, constants, code.co_names, len(code.co_consts)

    return plain(old) == plain(new)


_SLOWEST = float(os.environ.get("PATCHED_SLOWEST", "3"))


def _too_long(*_: object) -> None:
    pytest.skip("too long")


def _ended(child: int, seconds: float) -> int | None:
    """The exit code of a fork, or None if it was killed, by its limits or after this time."""
    until = time.monotonic() + seconds
    pause, used, waited = 0.001, -1, time.monotonic()
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
        if time.monotonic() > waited + _STUCK:
            if (now := _ticks(child)) == used:
                until = 0
            used, waited = now, time.monotonic()
    else:
        with contextlib.suppress(ProcessLookupError):  # it may be no leader yet
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    with contextlib.suppress(ProcessLookupError):  # its own children
        os.killpg(child, signal.SIGKILL)
    return code if code >= 0 else None


def _ticks(group: int) -> int:
    """The processor time that the processes of this group have used, in ticks of the kernel."""
    total = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            values = file.read_text().rpartition(")")[2].split()
            total += (int(values[2]) == group) * sum(map(int, values[11:15]))
    return total


def pytest_configure(config: pytest.Config) -> None:
    """Connect to the process that sends requests."""
    connection: Connection[Any, Any] = Connection(int(os.environ["PATCHED_TESTS"]))
    config.pluginmanager.register(Patched(connection, Path.cwd()))
