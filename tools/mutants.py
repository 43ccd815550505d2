"""Changes the source in small ways, one at a time, and reports the changes that no test notices.

Run by ``make mutants``, in the environment of Cosmic Ray, which makes the changes. The tests run in
the project's own environment, on a copy of the tree. Results are stored in .mutants, one session
for each module and its text, so that a run continues where the last one stopped.

Each test file is recorded once: the time of each test, and the functions that it runs. For each
mutant the tests run that run the changed function, the quickest first. The near tests come first:
those in the files named after the module, and in those that use most of its definitions. If they
pass, the others of its part run, unless --near is given. The first failure ends the run. --sample
chooses this number of mutants of each module, at random by --seed, --again runs the survivors once
more, and --record ends the recording of a file after this time.
"""

import argparse
import ast
import difflib
import hashlib
import os
import pickle
import random
import re
import subprocess
import tempfile
import time
import uuid
from collections import ChainMap, Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, cast

from tools.layers import LAYERS
from tools.weakenings import ROOT, copied

SESSIONS = ROOT / ".mutants" / "sessions"

# The scope: some whole parts, and of others the modules that bound, clip and add noise. Leading
# underscores are ignored.
WHOLE = ("noise", "accounting", "mechanisms", "ledger")
MODULES = {
    "query": {
        *("answers", "bounding", "engines.conversion", "estimates", "facts", "plan", "relations"),
        *("rows", "selection", "table"),
    },
    "train": {"clipped_sums.clipping", "plans.noise", "rules"},
}

# Operators of Cosmic Ray that make likely mistakes. Others, such as ** for +, are noticed by any
# test that runs the line. Cosmic Ray takes the bar of a union of types for an operator, so bars
# are not changed.
_OPERATORS = re.compile(
    "core/("
    "NumberReplacer|AddNot|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|"
    "ReplaceFalseWithTrue|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop|"
    "ExceptionReplacer|RemoveDecorator|ReplaceUnaryOperator_(Delete_(Not|USub)|USub_UAdd)|"
    "ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_FloorDiv|Pow_Mul|"
    "LShift_RShift|RShift_LShift|BitAnd_BitOr|BitXor_BitAnd)|"
    "ReplaceComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
    ")"
)
_NAMING = 3  # test files, beside those that are named after the module
_NO_CODE = ("@dataclass", "@staticmethod", "@abstractmethod", "@overload")
_LEAST_SECONDS = 15
_PATIENCE = 10  # times the time of the tests without a mutation
_PASSED, _FAILED, _STOPPED, _NO_TESTS = 0, 1, 2, 5  # pytest's exit codes
_OPTIONS = (
    *("-o", "addopts=", "--import-mode=importlib", "-m", "not long", "-q", "--tb=no"),
    *("-p", "no:cacheprovider", "--basetemp", "temporary"),
)

_OPEN = ("survived", "no tests")  # outcomes of changes that no test noticed

Place = tuple[str, int]  # of a function: its file and first line
Recording = dict[str, tuple[float, set[Place]]]  # of each test, its seconds and functions


@dataclass(frozen=True, slots=True)
class Module:
    """A module to mutate, as its path below the root."""

    path: Path

    @property
    def parts(self) -> tuple[str, ...]:
        """Its path below src/discreet, without underscores and suffix."""
        return tuple(part.lstrip("_") for part in self.path.with_suffix("").parts[2:])

    def session(self) -> Path:
        """The file of its results, which depends on the module's text."""
        digest = hashlib.sha256((ROOT / self.path).read_bytes()).hexdigest()[:12]
        return SESSIONS / f"{'.'.join(self.parts)}.{digest}.sqlite"

    def tests(self) -> tuple[list[str], list[str]]:
        """The near test files, and the other ones of its part."""
        files = sorted((ROOT / "tests" / self.parts[0]).rglob("test_*.py"))
        beside = [file for file in files if file.parent == ROOT.joinpath("tests", *self.parts[:-1])]
        own = [file for file in beside if self.parts[-1].removesuffix("s") in file.stem]
        names = re.compile(rf"\b({'|'.join(map(re.escape, sorted(self._names())))})\b")
        counts = {file: len(names.findall(file.read_text(encoding="utf-8"))) for file in files}
        naming = sorted((file for file in files if counts[file]), key=lambda file: -counts[file])
        near = list(dict.fromkeys([*own, *naming[:_NAMING]])) or beside or files
        return _relative(near), _relative([file for file in files if file not in near])

    def _names(self) -> set[str]:
        """Its functions and classes, also the private ones, and its own name in an import."""
        tree = ast.parse((ROOT / self.path).read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.ClassDef)
        return {node.name for node in tree.body if isinstance(node, kinds)} | {
            ".".join(self.path.with_suffix("").parts[1:])
        }


def modules(only: str) -> list[Module]:
    """The modules in scope whose dotted name contains one of these comma-separated words."""
    source = Path("src", "discreet")
    files = [path.relative_to(ROOT) for path in sorted((ROOT / source).rglob("*.py"))]
    found = [Module(path) for path in files if path.stem != "__init__"]
    words = only.split(",")
    return [m for m in found if _is_in_scope(m) and any(w in ".".join(m.parts) for w in words)]


def _is_in_scope(module: Module) -> bool:
    part, *inner = module.parts
    names = {".".join(inner[:depth]) for depth in (1, 2)}
    return part in WHOLE or not names.isdisjoint(MODULES.get(part, ()))


def _relative(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


class Forks:
    """Runs test files in the forks of one process, and records which functions each test runs."""

    def __init__(
        self, python: str, part: str, recordings: Path, seconds: float = float("inf")
    ) -> None:
        self.recordings = recordings
        self.seconds = seconds
        self.below = _below(part)
        self.libraries: dict[str, None] = {}  # as an ordered set
        self.connection, theirs = Pipe()
        command = [python, "-m", "pytest", "-p", "tools.forked_tests", *_OPTIONS, f"tests/{part}"]
        environment = {
            **os.environ,
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": "src",
            "PYTHONDONTWRITEBYTECODE": "1",
            "FORKED_TESTS": str(theirs.fileno()),
        }
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()  # so that a process that ends at once is noticed

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.wait()

    def recorded(self, file: str) -> Recording:
        """Each test of the file, with its seconds and the functions that it runs."""
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]
        stored = self.recordings / f"{file.replace('/', '.')}.{digest}"
        if not stored.exists():
            code, failed, tests, libraries = self._ask([file], None, self.seconds, True)
            is_whole = code in (_PASSED, _FAILED, _STOPPED, _NO_TESTS)
            if not is_whole or file in failed:  # a mutant that met no test would survive
                raise SystemExit(f"{file} was not recorded: pytest ends with {code} ({failed})")
            if failed:
                print(f"left out, since it fails without a mutation: {failed} ({code})")
            tests = {test: it for test, it in tests.items() if test not in failed}
            self.recordings.mkdir(parents=True, exist_ok=True)
            stored.write_bytes(pickle.dumps((tests, libraries)))
        tests, libraries = pickle.loads(stored.read_bytes())  # noqa: S301  # we wrote it
        self.libraries.update(dict.fromkeys(libraries))
        return cast("Recording", tests)

    def outcome(self, tests: dict[str, float]) -> str:
        """The outcome of these tests, the quickest first; the first failure ends the run, and its
        test is named. A mutant that met no test has not survived."""
        if not tests:
            return "no tests"
        order = sorted(tests, key=lambda test: tests[test])
        files = list(dict.fromkeys(test.partition("::")[0] for test in order))
        limit = _LEAST_SECONDS + _PATIENCE * sum(tests.values())
        code, failed, *_ = self._ask(files, order, limit, False)
        if code in (_PASSED, _NO_TESTS):
            return "survived" if code == _PASSED else "no tests"
        if code is None:
            return "timeout"
        if not failed:
            raise SystemExit(f"pytest ends with {code}, and names no test")
        return f"noticed {failed[0]}"

    def _ask(self, *request: Any) -> Any:  # Any: what the connection carries has no type
        self.connection.send((*request, list(self.libraries), self.below))
        return self.connection.recv()


def _below(part: str) -> list[str]:
    """The parts of the package that cannot import this one: `tools.layers` checks it."""
    names = [name for names in LAYERS for name in names]
    return names[: names.index(part)] if part in names else []


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the mutants of one module in a copy of the tree."""

    module: Module
    tests: Forks
    is_near: bool

    def result(self, mutation: Any) -> Any:  # Any: Cosmic Ray has no types
        """The outcome of the near tests on a mutant and, if they pass, of the other tests of the
        part."""
        from cosmic_ray.mutating import use_mutation
        from cosmic_ray.plugins import get_operator
        from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

        path = self.module.path
        lines = function(path.read_text(encoding="utf-8"), mutation.start_pos[0])
        places = {(str(path), line) for line in lines}
        outcome, diff = "no tests", ""
        for tests in filter(None, self._stages(places)):
            operator = get_operator(mutation.operator_name)()
            with use_mutation(path, operator, mutation.occurrence) as texts:
                for cache in path.parent.glob(f"__pycache__/{path.stem}.*"):
                    cache.unlink()  # files may change faster than Python compares
                found = self.tests.outcome(tests)
            old, new = (text.splitlines() for text in texts)
            diff = "\n".join(difflib.unified_diff(old, new, lineterm=""))
            outcome = found if found != "no tests" else outcome
            if outcome not in _OPEN:
                break
        return WorkResult(
            worker_outcome=WorkerOutcome.NORMAL,
            output=outcome,
            test_outcome=TestOutcome.SURVIVED if outcome in _OPEN else TestOutcome.KILLED,
            diff=f"{path}:{mutation.start_pos[0]}\n{diff}",
        )

    def _stages(self, places: set[Place]) -> Iterator[dict[str, float]]:
        """Tests that run one of these functions, and their seconds: of the near file that has most
        of them, of the other near ones, and of the others. If no near test does, all near ones."""
        near, others = self.module.tests()
        running = sorted((self._running(file, places) for file in near), key=len, reverse=True)
        if not any(running):
            running = [self._running(file, set()) for file in near]
        yield running[0]
        yield dict(ChainMap(*running[1:]))
        if not self.is_near:
            yield dict(ChainMap(*(self._running(file, places) for file in others)))

    def _running(self, file: str, places: set[Place]) -> dict[str, float]:
        """Tests in this file that run one of these functions, or all tests if there are no
        functions, and their seconds."""
        recorded = self.tests.recorded(file).items()
        return {
            test: seconds
            for test, (seconds, functions) in recorded
            if not places or places & functions
        }


def function(text: str, row: int) -> range:
    """The lines of the function or method that has this line; none if there is no such function,
    since any test may depend on a constant or a class."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= row <= cast("int", node.end_lineno):
                return range(first, cast("int", node.end_lineno) + 1)
    return range(0)


def begun(module: Module) -> Path:
    """The module's session; makes one if there is none."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names
    from cosmic_ray.work_db import use_db
    from cosmic_ray.work_item import MutationSpec, WorkItem

    session = module.session()
    if session.exists():
        return session
    SESSIONS.mkdir(parents=True, exist_ok=True)
    new = session.with_suffix(".new")
    new.unlink(missing_ok=True)
    nodes = list(ast_nodes(get_ast_from_path(module.path)))
    lines = (ROOT / module.path).read_text(encoding="utf-8").splitlines()
    with use_db(str(new)) as db:
        for name in filter(_OPERATORS.fullmatch, operator_names()):
            operator = get_operator(name)()
            places = (place for node in nodes for place in operator.mutation_positions(node))
            db.add_work_items(
                WorkItem.single(uuid.uuid4().hex, MutationSpec(module.path, name, number, *place))
                for number, place in enumerate(places)
                if _is_likely(place[0], lines)
            )
    new.rename(session)
    return session


def _is_likely(begin: tuple[int, int], lines: list[str]) -> bool:
    """Whether a change here is a likely mistake in code. Cosmic Ray takes the star before
    keyword-only arguments for a product; `tests/test_ownership.py` covers the decorators of data
    classes; and a static method called by its class does not need its decorator."""
    row, column = begin
    text = lines[row - 1]
    return not (text.lstrip().startswith(_NO_CODE) or text[column:].startswith("*,"))


def chosen(db: Any, sample: int | None, seed: int) -> list[Any]:  # Any: as above
    """The module's mutants, or a sample of them, in an order that the seed decides."""
    items = list(db.work_items)
    items.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(seed).shuffle(items)  # noqa: S311  # a public choice
    return items[:sample]


def run(runner: Runner, given: argparse.Namespace, until: float) -> Counter[str]:
    """Run the module's mutants without an outcome, count the outcomes of all, and print
    those that no test noticed."""
    from cosmic_ray.work_db import use_db

    counts: Counter[str] = Counter()
    with use_db(str(begun(runner.module))) as db:
        known = dict(db.results)
        for item in chosen(db, given.sample, given.seed):
            result: Any = known.get(item.job_id)  # Any: Cosmic Ray has no types
            is_open = result is None or (not result.is_killed and given.again)
            if is_open and time.monotonic() < until:
                result = runner.result(item.mutations[0])
                db.set_result(item.job_id, result)
            outcome = "not run" if result is None else result.output
            counts[outcome if outcome in ("not run", *_OPEN) else outcome.partition(" ")[0]] += 1
            if outcome in _OPEN:
                print(f"{outcome}: {result.diff}", flush=True)
    return counts


def _digest(folder: Path) -> str:
    """A digest of all code below this folder."""
    files = sorted(folder.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def main() -> None:
    """Run mutants, and print for each module how many of them tests noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run modules named with one of these words")
    parser.add_argument("--near", action="store_true", help="run near tests only")
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    parser.add_argument("--sample", type=int, help="choose this number of mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument(
        "--record", type=float, default=float("inf"), help="record a file for this many seconds"
    )
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    recordings = SESSIONS.with_name("recordings") / _digest(ROOT / "src")
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        os.chdir(folder)
        found = sorted(modules(given.only), key=lambda module: module.parts)
        for part, members in groupby(found, key=lambda module: module.parts[0]):
            with closing(Forks(given.python, part, recordings, given.record)) as tests:
                for module in members:
                    counts = run(Runner(module, tests, given.near), given, until)
                    print(f"{'.'.join(module.parts)}: {dict(counts)}", flush=True)
                    total += counts
    print(f"all: {dict(total)}")
    if total["no tests"]:
        raise SystemExit(f"{total['no tests']} mutants met no test, so they are no survivors")


if __name__ == "__main__":
    main()
