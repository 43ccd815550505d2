"""A mutant counts as noticed only if a test fails for it, in a fork as in a process of its own."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import Forks, function
from tools.weakenings import ROOT

CODE = """from functools import cache


def half(number):
    return number / 2


@cache
def three():
    return 3
"""
TESTS = """import time

import pytest
from hypothesis import given, strategies as st
from toy import half, three


@given(st.integers(0, 100))
def test_half(number):
    time.sleep(0.001)
    assert 2 * half(number) == number


def test_three():
    assert three() == 3


def test_half_and_three():
    assert half(three()) == 1.5


def test_neither():
    pass


def test_that_fails_here():
    assert half(2) == 2


@pytest.mark.skip
def test_skipped():
    assert half(2) == 1
"""
FILE = "tests/toy/test_toy.py"


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    """The tests of a small package, which the current folder has."""
    monkeypatch.setattr(mutants, "_LEAST_SECONDS", 1)  # so that one that never ends takes 2
    monkeypatch.setattr(mutants, "_PATIENCE", 0)
    for folder in ("src", "tests/toy", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "forked_tests.py", tmp_path / "tools")
    (tmp_path / "src" / "toy.py").write_text(CODE)
    (tmp_path / FILE).write_text(TESTS)
    monkeypatch.chdir(tmp_path)
    with closing(Forks(sys.executable, "toy", tmp_path / "recordings")) as opened:
        yield opened


def test_a_recording_has_the_tests_that_pass_and_what_they_run(
    tests: Forks, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = tests.recorded(FILE)
    half, three = ("src/toy.py", 4), ("src/toy.py", 8)
    assert {test.partition("::")[2]: functions for test, (_, functions) in recorded.items()} == {
        "test_half": {half},
        "test_three": {three},
        "test_half_and_three": {half, three},  # also if the value is cached already
        "test_neither": set(),
        "test_skipped": set(),
    }
    assert "test_that_fails_here" in capsys.readouterr().out
    assert tests.recorded(FILE) == recorded


def test_only_a_failure_counts_as_noticed(tests: Forks) -> None:
    seconds = {test: time for test, (time, _) in tests.recorded(FILE).items()}
    slowest = f"{FILE}::test_half"
    assert max(seconds, key=lambda test: seconds[test]) == slowest

    def outcome(change: Callable[[str], str]) -> str:
        Path("src", "toy.py").write_text(change(CODE))
        return tests.outcome(seconds)

    assert outcome(str) == "survived"
    assert (
        outcome(lambda code: code.replace("/ 2", "/ 3")) == f"noticed {FILE}::test_half_and_three"
    )
    assert outcome(lambda code: code.replace("/ 2", "/ 2 + (number == 77)")) == f"noticed {slowest}"
    assert outcome(lambda code: f"missing\n{code}") == f"noticed {FILE}"
    assert outcome(lambda code: f"{code}\nwhile True:\n    pass\n") == "timeout"
    assert outcome(str) == "survived"
    assert tests.outcome({f"{FILE}::test_that_is_gone": 1.0}) == "no tests"
    assert tests.outcome({}) == "no tests"


INTERNAL = """class Plugin:
    def pytest_runtest_logreport(self, report):
        raise KeyError


def test_it(pytestconfig):
    pytestconfig.pluginmanager.register(Plugin())
"""
BROKEN = {
    "an internal error": INTERNAL,
    "no import": "import missing\n",
    "an exit": "import os\n\nos._exit(7)\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_was_not_recorded_is_refused_by_name(tests: Forks, text: str) -> None:
    """Otherwise all mutants that only its tests notice would count as survivors."""
    Path(FILE).write_text(text)
    for _ in range(2):
        with pytest.raises(SystemExit, match=f"{FILE} was not recorded"):
            tests.recorded(FILE)


@pytest.mark.parametrize(("row", "lines"), [(1, range(0)), (5, range(4, 6)), (8, range(8, 11))])
def test_a_change_concerns_its_function_or_all_tests(row: int, lines: range) -> None:
    assert function(CODE, row) == lines


def test_a_process_that_ends_at_once_is_no_wait_for_ever(tmp_path: Path) -> None:
    ended = Forks("false", "noise", tmp_path)
    with pytest.raises((EOFError, BrokenPipeError, ConnectionResetError)):
        ended.recorded(__file__)
    ended.close()
