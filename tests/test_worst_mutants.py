"""The worst changes of a text are found, and a fork with a changed function tells the truth."""

import ast
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from tools import mutants, patched_tests, worst_mutants
from tools.mutants import Module
from tools.mutations import KINDS, Mutation, mutations
from tools.weakenings import ROOT
from tools.worst_mutants import PatchedForks, _is_drawn, read, run, worst

PATH = Path("src", "toy", "one.py")
FILE = "tests/toy/test_one.py"
CODE = '''from functools import cache

LIMIT = 2


def clipped(number, most=3):
    """The number, at most 3."""
    if number < 0:
        raise ValueError(f"{number + 1} is too small")
    assert most
    return min(number, most)


@cache
def half():
    def inner(number):
        return number // 2

    return inner(LIMIT)


class Twice:
    def of(self, number):
        return [2 * each for each in (number,)][0]

    def never(self, number):
        while number:
            pass
'''
TESTS = """import pytest
from toy.one import Twice, clipped, half


def test_clipped():
    assert clipped(2) == 2 and clipped(7) == 3


@pytest.mark.parametrize("number", [-2, -1])
def test_refused(number):
    with pytest.raises(ValueError, match="small"):
        clipped(number)


def test_half():
    assert half() == 1


def test_twice():
    assert Twice().of(3) == 6


def test_never():
    assert Twice().never(0) is None


def test_that_fails():
    assert clipped(2) == 3
"""


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PatchedForks]:
    """The tests of a small package, which the current folder has."""
    folder = tmp_path_factory.mktemp("toy")
    for inner in ("src/toy", "tests/toy", "tools"):
        (folder / inner).mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "patched_tests.py", folder / "tools")
    # it hides objects from collections of garbage, and a plugin has its asserts rewritten
    rewritten = (ROOT / "conftest.py").read_text() + "pytest.register_assert_rewrite('toy')\n"
    (folder / "conftest.py").write_text(rewritten)
    (folder / PATH).write_text(CODE)
    (folder / FILE).write_text(TESTS)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(worst_mutants, "_LEAST_SECONDS", 0.9)
        changed.setattr(worst_mutants, "RESULTS", folder)
        changed.setattr(mutants, "ROOT", folder)
        changed.chdir(folder)
        with closing(PatchedForks(sys.executable, [FILE], folder / "recordings")) as opened:
            opened.record(FILE)
            yield opened


def test_a_fork_tells_the_truth(tests: PatchedForks) -> None:
    assert f"{FILE}::test_that_fails" not in tests.seconds
    lines = {line: {test.partition("::")[2] for test in named} for (_, line), named in
             tests.running.items()}  # fmt: skip
    assert lines[11] == {"test_clipped"}
    assert lines[9] == {"test_refused[-2]", "test_refused[-1]"}
    assert lines[17] == {"test_half"}
    passing = sorted(tests.seconds)

    def outcome(old: str, new: str) -> tuple[str, str]:
        assert CODE.count(old) == 1
        name, test = tests.outcome(passing, PATH, CODE, CODE.replace(old, new))
        return name, test.partition("::")[2]

    assert outcome("min(", "max(") == ("noticed", "test_clipped")
    assert outcome("raise ", "str") == ("noticed", "test_refused[-1]")
    assert outcome("// 2", "// 3") == ("noticed", "test_half")  # a function inside, behind a cache
    assert outcome("[2 * ", "[3 * ") == ("noticed", "test_twice")
    assert outcome("number < 0", "number < -0") == ("survived", "")
    assert outcome("LIMIT = 2", "LIMIT = 4") == ("outside", "")
    assert outcome("most=3", "most=4") == ("outside", "")
    moved = [f"# a line\n{text}" for text in (CODE, CODE.replace("min(", "max("))]
    assert tests.outcome(passing, PATH, *moved) == ("outside", "")  # no function has this code
    assert outcome("while number:", "while True:") == ("timeout", "")
    assert tests.outcome(passing, PATH, CODE, CODE + "\n") == ("outside", "")
    assert tests.outcome([], PATH, CODE, CODE) == ("no tests", "")
    assert PATH.read_text() == CODE


def test_a_later_run_continues(tests: PatchedForks) -> None:
    module = Module(PATH)
    first = list(run(module, tests, 1, float("inf")))
    assert {result.function for result in first} == {"clipped", "half", "of"}
    assert [result.outcome for result in first if result.function == "clipped"] == ["noticed"]
    assert list(run(module, tests, 1, until=0)) == first
    assert list(run(module, tests, 9, until=0)) == first[:1]


def test_a_larger_sample_has_the_smaller_one() -> None:
    module, found = Module(PATH), [mutation for _, mutation in worst(CODE, 100)]
    samples = [[_is_drawn(module, each, share / 4) for each in found] for share in range(5)]
    counts = [sum(sample) for sample in samples]
    assert counts[0] == 0
    assert counts[4] == len(found) > counts[3] > counts[1] > 0
    for smaller, larger in pairwise(samples):
        assert all(one <= other for one, other in zip(smaller, larger, strict=True))


def test_a_process_that_waits_forever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits uses no processor time, however busy the machine is."""
    monkeypatch.setattr(patched_tests, "_STUCK", 0.05)
    waits = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    begun = time.monotonic()
    assert patched_tests._ended(waits.pid, 50) is None
    assert time.monotonic() < begun + 40
    ends = subprocess.Popen(["/bin/sleep", "0"], start_new_session=True)
    monkeypatch.setattr(patched_tests, "_STUCK", 30)
    assert patched_tests._ended(ends.pid, 50) == 0
    waits.returncode = ends.returncode = 0  # both were waited for


def test_the_worst_changes_come_first_and_none_repeats_a_place() -> None:
    found = [mutation for lines, mutation in worst(CODE, 2) if 6 in lines]
    assert [KINDS.index(each.kind) // 3 for each in found] == [0, 0]
    assert len({each.begin for each in found}) == 2
    assert len({mutation for _, mutation in worst(CODE, 100)}) == len(list(worst(CODE, 100)))


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("a < b", {"a <= b"}),
        ("a >= b <= c", {"a > b <= c", "a >= b < c"}),
        ("a == b", {"a != b"}),
        ("min(a, b)", {"max(a, b)", "(a)"}),
        ("math.ceil(a)", {"math.floor(a)", "(a)"}),
        ("abs(a)", {"(a)"}),
        ("f(a)", {"pass"}),
        ("a // b", {"((a) // (b) + 1)", "((a) // (b) - 1)", "(a)"}),
        ("é * b", {"(é)", "(b)"}),
        ("a + b", {"(a)", "(b)", "(a - (b))"}),
        ("a & b", {"(a)", "(b)"}),
        ("a and b and c", {"(b and c)", "(a and c)", "(a and b)"}),
        ("not a", {"(a)"}),
        ("7", {"8", "6"}),
        ("-0.5", {"(0.5)", "-1.5", "-(-0.5)"}),
        ("True", {"False"}),
        ("b if a else c", {"(b)", "(c)"}),
        ("if a:\n    pass", {"if False:\n    pass"}),
        ("if a:\n    raise E(1)", {"if a:\n    pass"}),
        ("a += b", {"pass"}),
        ("a[:b]", {"a[:]"}),
        ("def f(x: int) -> int:\n    return g(f'{x + 1}')", set()),
        ("def __repr__(self):\n    return 1 + 2", set()),
        ("@cache(3)\ndef f():\n    return x", set()),
    ],
)
def test_each_change_is_one_mistake(code: str, changed: set[str]) -> None:
    kinds = {each.of(code) for each in mutations(code) if each.changes(code)}
    alone = isinstance(ast.parse(code).body[0], ast.Expr) and code != "f(a)"
    assert kinds - ({"pass"} if alone else set()) == changed


def test_a_change_that_is_no_code_is_left_out() -> None:
    assert not Mutation("part", (1, 0), (1, 1), ")").changes("a")
    assert not Mutation("part", (1, 0), (1, 1), "(a)").changes("a")


def test_a_result_reads_as_it_was_written(tests: PatchedForks) -> None:
    module = Module(PATH)
    written = list(run(module, tests, 1, float("inf")))
    (stored,) = worst_mutants.RESULTS.glob("one.*")
    assert [read(line) for line in stored.read_text().splitlines()] == written


def test_survivors_meet_more_tests_again(tests: PatchedForks) -> None:
    """Only those that are stored as survivors run again, and the last result counts."""
    module = Module(PATH)
    first = list(run(module, tests, 1, float("inf")))
    (stored,) = worst_mutants.RESULTS.glob("one.*")
    lines = stored.read_text().splitlines()
    chosen = next(line for line in lines if '"noticed"' in line)
    stored.write_text("\n".join([*lines, chosen.replace('"noticed"', '"survived"'), ""]))
    count = len(stored.read_text().splitlines())
    assert list(run(module, tests, 1, float("inf"))) != first
    assert list(run(module, tests, 9, float("inf"), again=True)) == first
    again = [read(line) for line in stored.read_text().splitlines()[count:]]
    assert [each.mutation for each in again if each.outcome == "noticed"] == [read(chosen).mutation]
    assert all(each.outcome != "survived" or each in first for each in again)
    assert list(run(module, tests, 1, float("inf"))) == first
