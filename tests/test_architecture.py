"""The map of the source is true: its files exist, have the functions that it names, and are passed
when a question or an epsilon is asked for."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pandas as pd
import pytest

import discreet as dp
from discreet.accounting import Gaussian, PoissonSampled
from discreet.query import Table

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/discreet"
TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
SECTIONS = {one.partition("\n")[0]: one for one in re.split(r"^## ", TEXT, flags=re.MULTILINE)}
FLOWS = ["A question", "A training step", "An epsilon"]
ONLY_IF_NEEDED = {"query/_derived.py", "query/_related.py"}  # for SELECT in FROM, and for joins


def steps(section: str) -> list[list[str]]:
    """The names of files and functions in each row of the section's table."""
    rows = re.findall(r"^\| \w[^|]* \| (.+?) \| .+ \|$", SECTIONS[section], re.MULTILINE)
    return [re.findall(r"`([^`]+)`", row) for row in rows if "`" in row]


def located(step: list[str]) -> Iterator[tuple[str, str | None]]:
    """Files, relative to the package, each with the function named after it, if there is one."""
    folder, file = "", None
    for name in step:
        if name.endswith((".py", "/")):
            file = name if (SOURCE / name).exists() else f"{folder}/{name}"
            folder = str(Path(file).parent)
            yield file, None
        elif (SOURCE / folder / f"{name}.py").exists():
            yield f"{folder}/{name}.py", None
        else:
            assert file is not None, name
            yield file, name


@pytest.mark.parametrize("section", FLOWS)
def test_files_and_functions_exist(section: str) -> None:
    assert len(steps(section)) >= 5
    for step in steps(section):
        for file, function in located(step):
            path = SOURCE / file
            assert path.exists(), file
            if function is not None and path.is_file():
                last = function.rpartition(".")[2]
                assert re.search(rf"(def|class) {last}\b", path.read_text(encoding="utf-8")), (
                    function
                )


@contextmanager
def passing(passed: set[str]) -> Iterator[None]:
    """Collects the files of the package whose functions are called."""
    start = f"{SOURCE}/"

    def seen(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(start):
            passed.add(name[len(start) :])

    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)


def ask(age: int) -> object:
    frame = pd.DataFrame({"person": range(40), "age": range(40)})
    unit = dp.Unit("person")
    table = Table(
        frame,
        name="t",
        unit=unit,
        columns={"age": dp.Column.integer(0, 100)},
        rows=1,
        ledger=dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1)),
    )
    return table.sql(f"SELECT COUNT(*) FROM t WHERE age > {age}", epsilon=0.1)


def compute(steps: int) -> object:
    return (steps * PoissonSampled(Gaussian(1.25), 0.011)).epsilon(1e-5)


@pytest.mark.parametrize(("section", "act"), [("A question", ask), ("An epsilon", compute)])
def test_each_file_is_passed(section: str, act: Callable[[int], object]) -> None:
    passed = set[str]()
    act(30)  # loads what is imported late
    with passing(passed):
        act(31)
    named = {file for step in steps(section) for file, _ in located(step)} - ONLY_IF_NEEDED
    assert [file for file in sorted(named) if not any(one.startswith(file) for one in passed)] == []
