"""Replay of a user's own pipelines finds each public fact that a row changes."""

import logging
import os
import random
import secrets
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.audit import Difference, neighbours, replay_pipeline
from discreet.errors import InvalidArgument

pytest_plugins = "pytester"

Table = list[float]
Pipeline = Callable[[Table], Any]  # Any: outputs of any kind

SHORT, LONG = [1.0], [1.0, 2.0]
PERSON = dp.Unit("person")


def noise() -> float:
    return random.gauss(0, 1)


def counted(ledger: dp.Ledger, rows: int, scale: float = 2, purpose: str = "count") -> Any:
    bounded = dp.Bounded(lambda: rows, sensitivity=1, unit=PERSON, name=purpose)
    return dp.release(bounded, dp.DiscreteLaplace(scale), ledger).value


LEDGER = dp.Ledger.in_memory(unit=PERSON, limit=dp.Limit(epsilon=1))


def in_generators(table: Table) -> float:
    return len(table) + float(np.random.default_rng().laplace(0, 1))


def in_global_numpy(table: Table) -> float:
    return len(table) + float(np.random.laplace(0, 1))


def in_secrets(table: Table) -> float:
    return len(table) + secrets.randbelow(2**30) / 2**30


def by_system(table: Table) -> float:
    return len(table) + random.SystemRandom().gauss(0, 1)


def of_the_library(table: Table) -> int:
    value: int = counted(LEDGER, len(table))
    return value


RIGHT: dict[str, Pipeline] = {
    "random": lambda table: len(table) + noise(),
    "generators of NumPy": in_generators,
    "NumPy's global generator": in_global_numpy,
    "secrets": in_secrets,
    "the system's generator": by_system,
    "this library": of_the_library,
    "a data frame": lambda table: pandas.DataFrame({"n": [len(table) + noise()]}),
    "a decision by noise": lambda table: len(table) + noise() > 1,
    "constants": lambda table: {"a": 1, "b": [None, "x"]},
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_pipeline_passes(name: str) -> None:
    pipeline = RIGHT[name]
    for pair in ((SHORT, LONG), (LONG, SHORT), ([], SHORT)):
        replay_pipeline(pipeline, *pair)
        if name not in {"a data frame", "a decision by noise"}:
            replay_pipeline(pipeline, *pair, sensitivity=1)
    assert LEDGER.spent().charges == 0


def opens(table: Table) -> None:
    with Path(os.devnull if len(table) > 1 else "/dev/zero").open("rb"):
        pass


def warns(table: Table) -> None:
    warnings.warn(f"{len(table)} rows", stacklevel=1)


def fails(table: Table) -> float:
    return 1 / (len(table) - 1)


def names_a_row(table: Table) -> None:
    raise ValueError(f"{max(table)} is too much")


LEAKS: dict[str, Pipeline] = {
    "draws of random": lambda table: [noise() for _ in table] and None,
    "draws of NumPy": lambda table: np.random.normal(size=len(table)) is None,
    "draws of a generator": lambda table: np.random.default_rng().normal(size=len(table)) is None,
    "another generator": lambda table: [np.random.default_rng() for _ in table] and None,
    "bytes of the system": lambda table: os.urandom(len(table)) and None,
    "a seed": lambda table: float(np.random.default_rng(int(sum(table))).normal()),
    "a seed of random": lambda table: random.seed(len(table)),
    "a charge": lambda table: counted(LEDGER, 1, scale=len(table)),
    "a purpose": lambda table: counted(LEDGER, 1, purpose=f"{len(table)} rows"),
    "an uncharged retry": lambda table: [counted(LEDGER, 1) for _ in table] and None,
    "a file": opens,
    "a line of the log": lambda table: logging.getLogger("x").warning("%s rows", len(table)),
    "a printed text": lambda table: print(len(table)),
    "a printed error": lambda table: print(len(table), file=sys.stderr),
    "a warning": warns,
    "an error": fails,
    "an error's text": names_a_row,
    "a type": lambda table: len(table) if len(table) > 1 else 1.0,
    "a length": lambda table: [1.0 for _ in table],
    "a key": lambda table: dict.fromkeys(table, 1.0),
    "the order of keys": lambda table: {"a": 1, "b": 2} if len(table) > 1 else {"b": 2, "a": 1},
    "NaN": lambda table: sum(table) * (1.0 if len(table) == 1 else float("nan")),
    "NaN in an array": lambda table: np.array([1.0, np.nan if len(table) > 1 else 2.0]),
    "an array's type": lambda table: np.array([1, 2 if len(table) > 1 else 2.0]),
    "rows of a frame": lambda table: pandas.DataFrame({"x": [1.0] * len(table)}),
    "columns of a frame": lambda table: pandas.DataFrame({f"x{len(table)}": [1.0]}),
    "types of a frame": lambda table: pandas.DataFrame({"x": [1 if len(table) > 1 else 1.0]}),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_each_fact_that_a_row_changes_is_found(leak: str) -> None:
    """And a table that is its own neighbour passes."""
    pipeline = LEAKS[leak]
    for one, other in ((SHORT, LONG), (LONG, SHORT)):
        replay_pipeline(pipeline, one, [*one])
        with pytest.raises(Difference, match=r"differs|one run has another event"):
            replay_pipeline(pipeline, one, other)


def test_a_move_beyond_the_sensitivity_is_found() -> None:
    def doubled(table: Table) -> list[float]:
        return [len(table) + noise(), len(table) + noise()]

    replay_pipeline(doubled, SHORT, LONG, sensitivity=2)
    with pytest.raises(Difference, match="moved by 2 with the same noise, its sensitivity is 1"):
        replay_pipeline(doubled, SHORT, LONG, sensitivity=1)


def test_hostile_rows_find_a_missing_clamp() -> None:
    def unchecked(shares: list[float]) -> float:
        return sum(min(share, 1.0) for share in shares if share is not None) + noise()

    def clamped(shares: list[float]) -> float:
        known = [share for share in shares if share is not None and share == share]
        return sum(min(max(share, 0.0), 1.0) for share in known) + noise()

    found = 0
    for pair in neighbours([0.5, 0.9]):
        replay_pipeline(clamped, *pair, sensitivity=1)
        try:
            replay_pipeline(unchecked, *pair, sensitivity=1)
        except Difference:
            found += 1
    assert found >= 4  # below 0, NaN and infinite


EARLIER = np.random.default_rng(5)
CALLS: list[int] = []


def with_state(table: Table) -> int:
    CALLS.append(1)
    return len(CALLS)


@pytest.mark.parametrize(
    "pipeline",
    [lambda table: len(table) + EARLIER.normal(), lambda table: time.perf_counter_ns(), with_state],
)
def test_a_run_that_cannot_be_repeated_is_refused(pipeline: Pipeline) -> None:
    """Else noise of another run would hide, or cause, a difference."""
    with pytest.raises(InvalidArgument, match="two runs on the same table differ"):
        replay_pipeline(pipeline, SHORT, LONG)


def test_all_is_as_before_afterwards_and_in_other_threads() -> None:
    before = random.getstate(), os.urandom, np.random.default_rng, dp.mechanisms.Door.secure
    elsewhere: list[bytes] = []

    def pipeline(table: Table) -> int:
        thread = threading.Thread(target=lambda: elsewhere.append(os.urandom(16)))
        thread.start()
        thread.join()
        return 1

    replay_pipeline(pipeline, SHORT, LONG)
    assert len(set(elsewhere)) == 3  # secret, and so never the same
    after = random.getstate(), os.urandom, np.random.default_rng, dp.mechanisms.Door.secure
    assert before == after


PROJECT = """
import random
import pytest

ROWS = [{"age": 30.0}, {"age": 40.0}]

def mean(rows):
    known = [row["age"] for row in rows if row["age"] is not None]
    return sum(known) / len(known) + random.gauss(0, 1)

def count(rows):
    return len(rows) + random.gauss(0, 1)

@pytest.mark.neighbours(ROWS)
def test_count(neighbours, replay):
    replay(count, *neighbours, sensitivity=1)

@pytest.mark.neighbours(ROWS)
def test_mean(neighbours, replay):
    replay(mean, *neighbours)

def test_unmarked(neighbours):
    pass
"""


def test_the_plugin_works_in_a_project_of_its_own(pytester: pytest.Pytester) -> None:
    """It is loaded by name where an older installation does not list it yet."""
    pytester.makepyfile(PROJECT)
    is_installed = entry_points(group="pytest11", name="discreet")
    loaded = [] if is_installed else ["-p", "discreet._pytest_plugin"]
    found = pytester.runpytest_inprocess(*loaded, "--strict-markers", "-p", "no:cacheprovider")
    outcomes = found.parseoutcomes()
    pairs = len(neighbours([{"age": 30.0}, {"age": 40.0}]))
    assert outcomes["passed"] + outcomes["failed"] == 2 * pairs
    assert 1 <= outcomes["failed"] < pairs / 2
    assert outcomes["errors"] == 1
    found.stdout.fnmatch_lines_random(
        ["*mark the test with @pytest.mark.neighbours(rows)*", "*ZeroDivisionError*"]
    )
    assert "test_count[" not in found.stdout.str()


def test_the_plugin_is_listed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"discreet": "discreet._pytest_plugin"}
