"""Makes the changes that would most likely weaken privacy, and reports those that no test notices.

Run by ``make mutants WORST=3``: of each function in the scope of `tools.mutants`, three of the
changes of `tools.mutations`, the worst kinds first and no two in one place. The tests are those
near the module that run the changed line, the quickest first, within a budget of processor time.
They run in forks of one process for each part (`tools.patched_tests`), on a copy of the tree.

A change survives only those tests. So each survivor needs a second look. With ``--again`` it meets
all tests of its part that run the changed line, within a larger budget. Then somebody must ask
whether it weakens privacy. Results are stored in .mutants/worst, one line of JSON for each run of a
change, the last of which counts, and a later run continues from there. ``--share`` takes this share
of the changes, at random and the same ones each time; a larger share has those of a smaller one.
"""

import argparse
import ast
import hashlib
import json
import os
import pickle
import random
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import groupby, zip_longest
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, cast

from tools.mutants import Module, function, modules
from tools.mutations import KINDS, Mutation, mutations
from tools.weakenings import ROOT, copied

RESULTS = ROOT / ".mutants" / "worst"

_NEAR = 4  # test files
_EACH = 30  # recorded sets of parameters of a test
_RECORDING = 10.0  # seconds of processor time for a test file
_BUDGET = 1.5  # seconds of the tests that one change meets
_AGAIN = 4.0  # and those that a survivor meets
_LEAST_SECONDS = 5
_PATIENCE = 3  # times the time of the tests without a change
_OPTIONS = (
    *("-o", "addopts=", "--import-mode=importlib", "-m", "not long", "-q", "--tb=no"),
    *("-p", "no:cacheprovider", "--basetemp", "temporary"),
    "--assert=plain",  # rewritten functions of the source could not be told by their code
)
_OPEN = ("survived", "no tests")
_OUTCOMES = {0: "survived", 1: "noticed", 4: "outside", None: "timeout"}


@dataclass(frozen=True, slots=True)
class Result:
    """A change, and whether a test noticed it."""

    path: str
    function: str
    line: str
    mutation: Mutation
    outcome: str
    test: str
    tests: int

    def __str__(self) -> str:
        row, new = self.mutation.begin[0], self.mutation.new
        return f"{self.path}:{row} {self.function}: {self.line}\n    {self.mutation.kind}: {new}"


class PatchedForks:
    """Test files of a part of the package, in a process that forks for each request."""

    def __init__(self, python: str, files: list[str], recordings: Path) -> None:
        self.recordings = recordings
        self.connection, theirs = Pipe()
        command = [python, "-m", "pytest", "-p", "tools.patched_tests", *_OPTIONS, *files]
        environment = {
            **os.environ,
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": "src",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATCHED_TESTS": str(theirs.fileno()),
        }
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()  # so that a process that ends at once is noticed
        self.files: dict[str, list[str]] = defaultdict(list)
        for test in cast("list[str]", self.connection.recv()):
            self.files[test.partition("::")[0]].append(test)
        self.seconds: dict[str, float] = {}
        self.breadth: dict[str, int] = {}  # the number of lines that a test runs
        self.running: dict[tuple[str, int], list[str]] = defaultdict(list)  # tests of a line
        self.known: set[str] = set()

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.wait()

    def record(self, file: str) -> None:
        """Learn which lines some tests of this file run, and how long they take."""
        if file in self.known:
            return
        self.known.add(file)
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]
        stored = self.recordings / f"{file.replace('/', '.')}.{digest}"
        if not stored.exists():
            code, report = self._ask(list(self._some(file)), _RECORDING, None)
            if code not in (0, 1):  # its tests passed, or some failed
                raise SystemExit(f"{file} was not recorded: its process ends with {code}")
            if report.failed:
                print(f"left out, since it fails without a change: {report.failed}")
            tests = {test: it for test, it in report.tests.items() if test not in report.failed}
            self.recordings.mkdir(parents=True, exist_ok=True)
            stored.write_bytes(pickle.dumps(tests))
        for test, (seconds, lines) in pickle.loads(stored.read_bytes()).items():  # noqa: S301  # ours
            self.seconds[test], self.breadth[test] = seconds, len(lines)
            for line in lines:
                self.running[line].append(test)

    def _some(self, file: str) -> Iterator[str]:
        generator = random.Random(1)  # noqa: S311  # a public choice
        by_function: dict[str, list[str]] = defaultdict(list)
        for test in self.files[file]:
            by_function[test.partition("[")[0]].append(test)
        samples = [
            generator.sample(tests, min(len(tests), _EACH)) for tests in by_function.values()
        ]
        for each in zip_longest(*samples):  # each function comes to its turn before the time ends
            yield from filter(None, each)

    def chosen(
        self, path: str, mutation: Mutation, lines: range, near: list[str], *, budget: float
    ) -> list[str]:
        """Tests that run the changed lines or, if there are none, the function, within the budget
        in seconds: one set of parameters of each test before others, the quickest first that run
        few other lines."""
        rows = range(mutation.begin[0], mutation.end[0] + 1)
        running = {test for row in rows for test in self.running[path, row]} or {
            test for row in lines for test in self.running[path, row]
        }
        ranked = sorted(running, key=lambda test: self._rank(test, near))
        turns: Counter[str] = Counter()
        turn: dict[str, int] = {}
        for test in ranked:
            turn[test] = turns[name := test.partition("[")[0]]
            turns[name] += 1
        order = sorted(ranked, key=lambda test: turn[test])
        total, found = 0.0, []
        for test in order:
            found.append(test)
            total += self.seconds[test]
            if total > budget:
                break
        return found

    def _rank(self, test: str, near: list[str]) -> float:
        is_far = test.partition("::")[0] not in near
        return self.seconds[test] + self.breadth[test] / 1000 + 0.3 * is_far

    def outcome(self, tests: list[str], path: Path, old: str, new: str) -> tuple[str, str]:
        """Whether a test notices this text of a module, and which one is the first."""
        if not tests:
            return "no tests", ""
        limit = _LEAST_SECONDS + _PATIENCE * sum(self.seconds[test] for test in tests)
        path.write_text(new, encoding="utf-8")  # for tests that start a process of their own
        try:
            code, report = self._ask(tests, limit, (str(path), old, new))
        finally:
            path.write_text(old, encoding="utf-8")
        return _OUTCOMES.get(code, "odd"), next(iter(report.failed), "")

    def _ask(self, *request: Any) -> Any:  # Any: what the connection carries has no type
        self.connection.send(request)
        return self.connection.recv()


def worst(text: str, number: int) -> Iterator[tuple[range, Mutation]]:
    """This number of changes of each function, with the function's lines: the worst kinds first,
    and no two that begin in one place if others are left."""
    functions: dict[range, list[Mutation]] = defaultdict(list)
    for mutation in mutations(text):
        if lines := function(text, mutation.begin[0]):
            functions[lines].append(mutation)
    for lines, found in functions.items():
        generator = random.Random(str(lines))  # noqa: S311  # a public choice
        order = sorted(found, key=lambda each: (KINDS.index(each.kind) // 3, generator.random()))
        first = {each.begin: each for each in reversed(order)}.values()
        rest = [each for each in order if each not in first]
        ranked = [*sorted(first, key=order.index), *rest]
        yield from ((lines, each) for each in ranked[:number] if each.changes(text))


def run(
    module: Module,
    tests: PatchedForks,
    number: int,
    until: float,
    *,
    again: bool = False,
    share: float = 1,
) -> Iterator[Result]:
    """The results of this share of the module's worst changes, those of earlier runs included. Run
    ``again`` those that survived, and no other ones."""
    text = module.path.read_text(encoding="utf-8")
    stored = RESULTS / f"{'.'.join(module.parts)}.{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    earlier = [read(line) for line in stored.read_text().splitlines()] if stored.exists() else []
    known = {each.mutation: each for each in earlier}
    near = _near(module)
    budget = _AGAIN if again else _BUDGET
    with stored.open("a") as results:
        for lines, mutation in worst(text, number):
            earlier_one = known.get(mutation)
            if not _is_drawn(module, mutation, share) or (again and earlier_one is None):
                continue
            if earlier_one is None or (again and earlier_one.outcome in _OPEN):
                if time.monotonic() > until:
                    return
                for file in tests.files if again else near:
                    tests.record(file)
                chosen = tests.chosen(str(module.path), mutation, lines, near, budget=budget)
                outcome, test = tests.outcome(chosen, module.path, text, mutation.of(text))
                row = mutation.begin[0]
                line = text.splitlines()[row - 1].strip()
                known[mutation] = Result(
                    str(module.path), _name(text, lines), line, mutation, outcome, test, len(chosen)
                )
                print(json.dumps(asdict(known[mutation])), file=results, flush=True)
            yield known[mutation]


def _is_drawn(module: Module, mutation: Mutation, share: float) -> bool:
    """Whether this change is in the sample. A digest decides, so that samples are nested."""
    digest = hashlib.sha256(f"{module.path} {mutation}".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def _near(module: Module) -> list[str]:
    return module.tests()[0][:_NEAR]


def _loaded(module: Module, *, again: bool) -> list[str]:
    """The test files that the module's changes may meet."""
    near, others = module.tests()
    return [*near, *others] if again else near[:_NEAR]


def read(line: str) -> Result:
    """The result in a line of JSON."""
    fields = json.loads(line)
    kind, begin, end, new = fields.pop("mutation").values()
    return Result(**fields, mutation=Mutation(kind, tuple(begin), tuple(end), new))


def _name(text: str, lines: range) -> str:
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return next(node.name for node in nodes if node.lineno in lines)


def main() -> None:
    """Run changes, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int, help="changes of each function")
    parser.add_argument("--only", default="", help="run modules named with one of these words")
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    parser.add_argument("--share", type=float, default=1.0, help="run this share of the changes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    source = b"".join(file.read_bytes() for file in sorted((ROOT / "src").rglob("*.py")))
    recordings = RESULTS / "recordings" / hashlib.sha256(source).hexdigest()[:12]
    recordings.mkdir(parents=True, exist_ok=True)
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        os.chdir(folder)
        found = sorted(modules(given.only), key=lambda module: module.parts)
        for _, members in groupby(found, key=lambda module: module.parts[0]):
            part = list(members)
            files = sorted({file for module in part for file in _loaded(module, again=given.again)})
            with closing(PatchedForks(given.python, files, recordings)) as tests:
                for module in part:
                    results = list(
                        run(
                            module,
                            tests,
                            given.number,
                            until,
                            again=given.again,
                            share=given.share,
                        )
                    )
                    counts = Counter(result.outcome for result in results)
                    print(f"{'.'.join(module.parts)}: {dict(counts)}", flush=True)
                    for result in results:
                        if result.outcome in _OPEN:
                            print(f"{result.outcome}: {result}", flush=True)
                    total += counts
    print(f"all: {dict(total)}")


if __name__ == "__main__":
    main()
