"""Changes the source in small ways, one at a time, and reports the changes that no test notices.

Run by ``make mutants``, in the environment of Cosmic Ray, which makes the changes. The tests run in
the project's own environment, on a copy of the tree. Results are stored in .mutants, one session
for each module and its text, so that a run continues where the last one stopped.

For each mutant the tests named after its module run first or, if there are none, those that use
most of its definitions. If they pass, all other tests of its part run, unless --near is given. The
first failure ends the run. --sample chooses this number of mutants of each module, at random by
--seed.
"""

import argparse
import ast
import hashlib
import os
import random
import re
import shlex
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.weakenings import ROOT, copied

SESSIONS = ROOT / ".mutants" / "sessions"

# The scope: some whole parts, and of others the modules that bound, clip and add noise. Leading
# underscores are ignored.
WHOLE = ("noise", "accounting", "mechanisms", "ledger")
MODULES = {
    "query": {"bounding", "choice", "numbering", "conversion", "plan", "price"},
    "train": {"clipping", "noise", "rules"},
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
_NAMING = 3  # test files, if none is named after the module
_LEAST_SECONDS = 60
_PATIENCE = 10  # times the time of the tests without a mutation


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
        near = own or naming[:_NAMING] or beside or files
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
    return part in WHOLE or (bool(inner) and inner[0] in MODULES.get(part, ()))


def _relative(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


@dataclass(slots=True)
class Runner:
    """Runs the mutants of one module in a copy of the tree, by the project's own Python."""

    module: Module
    python: str
    is_near: bool
    limits: dict[int, float] = field(default_factory=dict)

    def outcome(self, mutations: Any) -> Any:  # Any: Cosmic Ray has no types
        """The outcome of the near tests on a mutant and, if they pass, of the other tests of the
        part."""
        from cosmic_ray.mutating import mutate_and_test

        result = None
        for stage, tests in enumerate(self.module.tests()):
            if not tests or (stage and self.is_near):
                continue
            if stage not in self.limits:
                self.limits[stage] = self._limit(tests)
            result = mutate_and_test(mutations, self._command(tests), self.limits[stage])
            if result.is_killed:
                break
        return result

    def _command(self, tests: list[str]) -> str:
        return shlex.join([self.python, "-m", "pytest", "-xq", "-p", "no:cacheprovider", *tests])

    def _limit(self, tests: list[str]) -> float:
        """The time limit for the tests in seconds, from their time on the unchanged source."""
        begun = time.monotonic()
        command = shlex.split(self._command(tests))
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"the tests fail without a mutation:\n{ran.stdout[-3000:]}")
        return max(_LEAST_SECONDS, _PATIENCE * (time.monotonic() - begun))


def begun(module: Module) -> Path:
    """The module's session; makes one if there is none."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import use_db
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    session = module.session()
    if not session.exists():
        SESSIONS.mkdir(parents=True, exist_ok=True)
        new = session.with_suffix(".new")
        new.unlink(missing_ok=True)
        with use_db(str(new)) as db:
            init([module.path], db, {})
            lines = (ROOT / module.path).read_text(encoding="utf-8").splitlines()
            left_out = [i.job_id for i in db.work_items if not _is_likely(i.mutations[0], lines)]
            db.set_multiple_results(left_out, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))
        new.rename(session)
    return session


def _is_likely(mutation: Any, lines: list[str]) -> bool:  # Any: Cosmic Ray has no types
    """Whether it is a likely mistake in code. Cosmic Ray takes the star before keyword-only
    arguments for a product; `tests/test_ownership.py` covers the decorators of data classes."""
    row, column = mutation.start_pos
    text = lines[row - 1]
    is_code = not (text.lstrip().startswith("@dataclass") or text[column:].startswith("*,"))
    return is_code and bool(_OPERATORS.fullmatch(mutation.operator_name))


def chosen(db: Any, sample: int | None, seed: int) -> list[Any]:  # Any: as above
    """The module's mutants, or a sample of them, in an order that the seed decides."""
    skipped = {job for job, result in db.results if result.worker_outcome == "skipped"}
    items = [item for item in db.work_items if item.job_id not in skipped]
    items.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(seed).shuffle(items)  # noqa: S311  # a public choice
    return items[:sample]


def run(runner: Runner, sample: int | None, seed: int, until: float) -> Counter[str]:
    """Run the module's mutants without an outcome, count the outcomes of all, and print the
    survivors."""
    from cosmic_ray.work_db import use_db

    counts: Counter[str] = Counter()
    with use_db(str(begun(runner.module))) as db:
        known = dict(db.results)
        for item in chosen(db, sample, seed):
            result: Any = known.get(item.job_id)  # Any: Cosmic Ray has no types
            if result is None and time.monotonic() < until:
                result = runner.outcome(item.mutations)
                if result.is_killed or not runner.is_near:  # the others have more tests to run
                    db.set_result(item.job_id, result)
            counts[_named(result)] += 1
            if result is not None and not result.is_killed:
                print(f"survived: {result.diff}", flush=True)
    return counts


def _named(result: Any) -> str:  # Any: as above
    if result is None:
        return "not run"
    return "timeout" if result.output == "timeout" else str(result.test_outcome.value)


def main() -> None:
    """Run mutants, and print for each module how many of them tests noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run modules named with one of these words")
    parser.add_argument("--near", action="store_true", help="run near tests only")
    parser.add_argument("--sample", type=int, help="choose this number of mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(Path(folder, "src"))
        for module in modules(given.only):
            runner = Runner(module, given.python, given.near)
            counts = run(runner, given.sample, given.seed, until)
            print(f"{'.'.join(module.parts)}: {dict(counts)}", flush=True)
            total += counts
    print(f"all: {dict(total)}")


if __name__ == "__main__":
    main()
