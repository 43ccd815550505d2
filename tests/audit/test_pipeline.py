"""Replay of a user's own pipelines finds each public fact that a row changes."""

import functools
import io
import itertools
import json
import logging
import math
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import tomllib
import warnings
from collections import deque, namedtuple
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import special, stats

import discreet as dp
from discreet.audit import Difference, neighbours, replay_pairs, replay_pipeline, report
from discreet.audit._pipeline import _LEAST_SHARE, _MOST_TEXTS, MOST_SEEDS, SEEDS
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


WRITTEN = Path(tempfile.mkdtemp()) / "written"
NO_DIGITS = str.maketrans("0123456789", "ghijklmnop")
APART = logging.getLogger("apart")
APART.propagate, APART.level = False, logging.INFO
APART.addHandler(logging.NullHandler())
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
    "a temporary file": lambda table: temporary() + len(table) + noise(),
    "a printed noisy number": lambda table: print(f"{len(table) + noise():.3f}"),
    "a generator without a seed": lambda table: len(table) + random.Random().gauss(0, 1),
    "an emptied table": lambda table: empties(table) + noise(),
    "a file of noisy numbers": lambda table: writes(f"{len(table) + noise():.3f}"),
    "a text of noisy numbers": lambda table: f"about {len(table) + noise():.3f} of 9",
    "a time in a text": lambda table: (noise(), f"{time.perf_counter_ns():x}".translate(NO_DIGITS)),
}


def empties(table: Table) -> int:
    size = len(table)
    table.clear()
    return size


def writes(text: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "draft").write_text("x")
    WRITTEN.write_text(text)
    return noise()


def renames(table: Table) -> None:
    WRITTEN.write_text(f"{len(table)} rows, {noise()}")
    WRITTEN.rename(WRITTEN.with_suffix(".new"))


def appends(table: Table) -> None:
    with WRITTEN.with_suffix(".log").open("a") as file:
        file.write(f"{len(table)} rows\n")


def temporary() -> int:
    with tempfile.NamedTemporaryFile() as file:
        return file.write(b"x") * 0


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_pipeline_passes(name: str) -> None:
    pipeline = RIGHT[name]
    for pair in ((SHORT, LONG), (LONG, SHORT), ([], SHORT)):
        replay_pipeline(pipeline, *pair)
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


def stops(table: Table) -> None:
    if len(table) > 1:
        sys.exit("too many")


def notes(table: Table) -> None:
    error = ValueError("bad data")
    error.add_note(f"{len(table)} rows")
    raise error


def chains(table: Table) -> None:
    known: dict[int, int] = {}
    try:
        known[len(table)]
    except KeyError as error:
        raise ValueError("bad data") from error


def groups(table: Table) -> None:
    raise ExceptionGroup("bad data", [ValueError(f"{len(table)} rows")])


def logs_an_error(table: Table) -> None:
    try:
        names_a_row(table)
    except ValueError:
        APART.exception("failed")


def keys_before_it_empties(table: Table) -> dict[float, float]:
    found = {value: noise() for value in table}
    table.clear()
    return found


def closure(table: Table) -> Callable[[], int]:
    size = len(table)
    return lambda: size


def with_default(table: Table) -> Any:  # Any: a function
    def rows(size: int) -> int:
        return size

    rows.__defaults__ = (len(table),)
    return rows


def with_attribute(table: Table, kind: type) -> Any:  # Any: of this class
    found = type("Own", (kind,), {})()
    found.rows = len(table)
    return found


def named(table: Table) -> object:
    make: Any = namedtuple  # Any: mypy knows constant names only
    return make("Pair", "ab"[len(table) - 1])(noise())


def attributed(table: Table) -> pandas.DataFrame:
    found = pandas.DataFrame({"n": [noise()]})
    found.attrs["source"] = f"{len(table)} rows"
    return found


def written(table: Table) -> io.StringIO:
    found = io.StringIO()
    found.write(f"{len(table)} rows")
    return found


def categories(table: Table) -> pandas.Series:
    return pandas.Series(["a"]).astype(pandas.CategoricalDtype(["a", f"{table[-1]}"]))


LEAKS: dict[str, Pipeline] = {
    "a number in a text of noise": lambda table: f"{len(table) + noise()} of {len(table)}",
    "a number in JSON of noise": lambda table: json.dumps({"a": noise(), "b": len(table)}),
    "a key in JSON of noise": lambda table: json.dumps({"xy"[len(table) - 1]: noise()}),
    "the length of a text of noise": lambda table: " " * len(table) + f"{noise():.3f}",
    "a byte beside noise": lambda table: bytes([200, len(table), *random.randbytes(4)]),
    "a number in a noisy line": lambda table: print(f"{noise():.3f} of {len(table)}"),
    "a number that is mostly exact": lambda table: (
        len(table) if random.random() < 0.9 else len(table) + noise()
    ),
    "a number that is mostly there": lambda table: len(table) if noise() < 1 else None,
    "a number after 600 noisy ones": lambda table: [*(noise() for _ in range(600)), len(table)],
    "a number in an array of noise": lambda table: np.append(
        np.random.normal(size=600), len(table)
    ),
    "an object of code": lambda table: functools.partial(max, len(table)),
    "a closure": closure,
    "a method": lambda table: SimpleNamespace(rows=len(table)).__repr__,
    "a default": with_default,
    "a class": lambda table: type("Model", (), {"rows": len(table)}),
    "an attribute of a list": lambda table: with_attribute(table, list),
    "an attribute of a text": lambda table: with_attribute(table, str),
    "a name in a named tuple": named,
    "a text in memory": written,
    "categories": categories,
    "a mask": lambda table: np.ma.masked_array([noise(), 1.0], mask=[False, len(table) > 1]),
    "attributes of a frame": attributed,
    "a name of a series": lambda table: pandas.Series([noise()], name=f"{len(table)}"),
    "a name of an index": lambda table: pandas.Series(
        [noise()], index=pandas.Index(["a"], name=f"{len(table)}")
    ),
    "an item of a queue": lambda table: deque([noise(), len(table)]),
    "keys before a table is emptied": keys_before_it_empties,
    "an exit": stops,
    "a note of an error": notes,
    "a cause of an error": chains,
    "members of an error": groups,
    "an error in a log": logs_an_error,
    "the name of a logger": lambda table: logging.getLogger(f"{len(table)}").warning("done"),
    "a place of a warning": lambda table: warnings.warn_explicit(
        "w", UserWarning, f"{len(table)}.py", 1
    ),
    "a written file": lambda table: writes(f"{noise()} of {len(table)}"),
    "a renamed file": renames,
    "a longer file": appends,
    "a command": lambda table: os.system(f"true {len(table)}") and None,
    "draws of an own generator": lambda table: [random.Random().random() for _ in table] and None,
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
    "an index of a frame": lambda table: pandas.DataFrame({"x": noise()}, index=[f"{table[-1]}"]),
    "NaN in a frame": lambda table: pandas.DataFrame({"x": [1.0, None if len(table) > 1 else 2.0]}),
    "an index of a series": lambda table: pandas.Series({f"{table[-1]}": noise()}),
    "an element of a set": lambda table: {"a"} if len(table) > 1 else {"b"},
    "the size of a set": lambda table: {noise() for _ in range(min(2, len(table)))},
    "a length in an object": lambda table: SimpleNamespace(rows=[0.0 for _ in table]),
    "a length of an iterator": lambda table: iter([0.0 for _ in table]),
    "an error of an iterator": lambda table: (1 / (2 - at) for at, _ in enumerate([*table, 0])),
    "a text without noise": lambda table: (noise(), f"{table[-1]}"),
    "a flag without noise": lambda table: {"n": noise(), "has two": len(table) > 1},
    "a number without noise": lambda table: {"n": noise(), "rows": len(table)},
    "the 70th number": lambda table: [*(noise() for _ in range(69)), float(len(table))],
    "the 600th number": lambda table: np.append(np.zeros(599), len(table)),
    "the 600th item": lambda table: [*[0] * 599, len(table)],
    "the order by true counts": lambda table: [(x, noise()) for x in sorted([1.5, *table[1:]])],
    "a variable of the environment": lambda table: os.environ.update(ROWS=f"{len(table)}"),
    "a line of a logger apart": lambda table: APART.info("%s rows", len(table)),
    "a seed of NumPy": lambda table: np.random.seed(len(table)),
    "normals, whose words vary": lambda table: np.random.normal(size=2 * len(table)) is None,
}


@pytest.mark.parametrize("leak", LEAKS)
def test_each_fact_that_a_row_changes_is_found(leak: str) -> None:
    """And a table that is its own neighbour passes."""
    pipeline = LEAKS[leak]
    for one, other in ((SHORT, LONG), (LONG, SHORT)):
        replay_pipeline(pipeline, one, [*one])
        with pytest.raises(Difference, match=r"differs|one run has another event"):
            replay_pipeline(pipeline, one, other)


def hits(table: Table) -> list[bool]:
    """Sparse vector: it stops at the first hit."""
    threshold, found = 2 + noise(), [False]
    while not found[-1] and len(found) < 9:
        found.append(len(table) + 4 * noise() >= threshold)
    return found


def frequent(table: Table) -> dict[float, float]:
    noisy = {value: table.count(value) + noise() for value in (1.0, 2.0)}
    return {value: number for value, number in noisy.items() if number >= 1}


def divided(table: Table) -> float:
    if (count := len(table) + noise()) < 1:
        raise ValueError("too few people")
    return 1 / count


DECIDED_BY_NOISE: dict[str, Pipeline] = {
    "a path": hits,
    "keys": frequent,
    "an error": divided,
    "a type": lambda table: None if (count := len(table) + noise()) < 2 else count,
    "a length": lambda table: [0.0] * max(0, round(len(table) + 2 * noise())),
    "an index": lambda table: pandas.Series(frequent(table), dtype=float),
}


@pytest.mark.parametrize("name", DECIDED_BY_NOISE)
def test_a_form_or_path_that_noise_decides_is_no_fault(name: str) -> None:
    """But it is reported, since noise may be too small. All seeds are fixed."""
    pairs = [([1.0] * size, [1.0] * size + [row]) for size in range(8) for row in (1.0, 2.0)]
    found = replay_pairs(DECIDED_BY_NOISE[name], pairs)
    assert not found.differences
    assert found.undecided
    assert "audit their outputs by black_box" in repr(found)
    assert not report(found).has_fault
    assert "Undecided, pair" in " ".join(report(found).found)


def test_a_certain_difference_is_found_beside_undecided_ones() -> None:
    """A leak in one place is not hidden by noise that decides the form of another place."""
    found = replay_pairs(lambda table: (hits(table), [1.0 for _ in table]), [(SHORT, LONG)] * 2)
    assert [one.is_certain for one in found.differences] == [True, True]
    assert "the form of the output[1] differs" in found.differences[0].text


@pytest.mark.parametrize(("share", "is_certain"), [(1.0, True), (0.9, True), (0.4, False)])
def test_a_fact_that_one_table_shows_often_and_the_other_never(
    share: float, *, is_certain: bool
) -> None:
    def draw(table: Table) -> dict[str, None]:
        is_shown = random.random() < share
        return {"two rows" if is_shown and len(table) == 2 else "key": None}

    found = replay_pairs(draw, [(SHORT, LONG), (LONG, SHORT)] * 2)
    assert len(found.differences) == (4 if is_certain else 0)


def test_a_fact_accuses_a_right_mechanism_of_epsilon_2_as_seldom_as_is_said() -> None:
    """A text with probability p on one table has at least q on the other one."""
    half, bound = MOST_SEEDS // 2, math.exp(-2)
    least = math.ceil(_LEAST_SHARE * half)
    # 1. one text: there and not here with all seeds, or with most of the larger number
    p = np.linspace(_LEAST_SHARE / 2, 1, 20001)
    q = np.clip(np.maximum(p * bound, 1 - (1 - p) / bound), 0, 1)
    always = (p * (1 - q)) ** SEEDS
    there = stats.binom.sf(least - 1, half, p) * (1 - q) ** MOST_SEEDS
    here = stats.binom.sf(least - 1, half, 1 - q) * p**MOST_SEEDS
    assert np.max(always + there + here) < 1e-9
    # 2. some of equally likely texts are never here, and the most frequent ones of them count
    for count, share in itertools.product(range(1, 60), np.linspace(_LEAST_SHARE / 2, 1, 50)):
        some, p = np.arange(1, count + 1), share / count
        sets = special.comb(count, some)
        never = np.minimum(sets * np.maximum(1 - some * p * bound, 0) ** MOST_SEEDS, 1)
        counted = stats.binom.sf(least - 1, half, np.minimum(some, _MOST_TEXTS) * p)
        assert never @ counted < 1e-9


def test_randomized_response_is_not_accused() -> None:
    """With epsilon 1, all of 101 answers agree on either table with probability below 1e-25."""

    def answer(table: Table) -> bool:
        return (len(table) > 1) == (random.random() < 0.731)

    for seed in range(20):
        replay_pipeline(answer, SHORT, LONG, seed=seed)


def test_objects_of_unknown_types_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"the output\['a'\] is of type lock, whose values"):
        replay_pipeline(lambda table: {"a": threading.Lock()}, SHORT, LONG)
    with pytest.raises(InvalidArgument, match="an iterator of more than"):
        replay_pipeline(lambda table: itertools.count(), SHORT, LONG)


def test_stored_answers_are_refused() -> None:
    """These functions are right, but a replay can't set their noise."""
    stored: dict[str, float] = {}

    def answer(table: Table) -> float:
        if f"{table}" not in stored:
            stored[f"{table}"] = len(table) + noise()
        return stored[f"{table}"]

    with pytest.raises(InvalidArgument, match="answers are stored"):
        replay_pipeline(answer, SHORT, LONG)
    stored.pop(f"{LONG}")
    with pytest.raises(InvalidArgument, match="answers are stored"):
        replay_pipeline(answer, SHORT, LONG)


def test_draws_alone_are_named_as_seen_by_time_only() -> None:
    found = replay_pairs(lambda table: [noise() for _ in table] and None, [(SHORT, LONG)])
    assert "running time alone may show" in found.differences[0].text


def test_rounded_noise_of_epsilon_3_is_not_accused() -> None:
    """A pair is accused with probability below 1e-4; all seeds are fixed."""

    def answer(table: Table) -> int:
        steps = [int(math.log(1 - random.random()) / -3) for _ in range(2)]
        return len(table) + steps[0] - steps[1]

    for seed in range(10):
        replay_pipeline(answer, SHORT, LONG, seed=seed * 1000)


def test_a_first_run_may_draw_more_than_later_ones() -> None:
    """A module draws a seed when it is loaded."""
    loaded: list[float] = []

    def draw(table: Table) -> float:
        if not loaded:
            loaded.append(random.random())
        return len(table) + noise()

    replay_pipeline(draw, SHORT, LONG, sensitivity=1)


def test_a_report_of_numbers_that_move_too_far_accuses_the_noise_only() -> None:
    found = replay_pairs(lambda table: 2 * len(table) + noise(), [(SHORT, LONG)], sensitivity=1)
    assert not found.differences[0].is_certain
    words = report(found)
    assert words.verdict == "On 1 pair the numbers move by more than the sensitivity"
    assert not any("can tell whether your row is there" in one for one in words.meaning)
    assert any("by more than their noise is made for" in one for one in words.meaning)


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
