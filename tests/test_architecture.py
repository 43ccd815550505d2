"""The map of the source is true: its files exist, have the functions that it names, and these are
called when a question or an epsilon is asked for."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pandas as pd
import pytest

import discreet as dp
from discreet.accounting import Gaussian, PoissonSampled, PrivacyLoss, Zcdp
from discreet.query import Table

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/discreet"
TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
SECTIONS = {one.partition("\n")[0]: one for one in re.split(r"^## ", TEXT, flags=re.MULTILINE)}
PACKAGES = sorted(one.parent.relative_to(SOURCE) for one in SOURCE.glob("*/**/__init__.py"))
FLOWS = ["A question", "A training step", "An epsilon"]
OVER_HTTP = ["A question over HTTP", "A charge from elsewhere"]
ONLY_IF_NEEDED = {
    "query/_relations/_derived.py",
    "query/_relations/_related.py",
}  # for SELECT in FROM, and for joins


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


@pytest.mark.parametrize("section", [*FLOWS, *OVER_HTTP])
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
def calling(called: set[tuple[str, str]]) -> Iterator[None]:
    """Collects the functions of the package that are called: each one's file and its name, with
    the names of the classes that it stands in."""
    start = f"{SOURCE}/"

    def seen(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(start):
            called.add((name[len(start) :], frame.f_code.co_qualname))

    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)


def is_called(file: str, function: str | None, called: set[tuple[str, str]]) -> bool:
    """Whether the function is called, a method of the class is, or any function of the file."""
    names = [name for place, name in called if place.startswith(file)]
    if function is None:
        return bool(names)
    return any(f".{function}." in f".{name}." for name in names)


def wages() -> Table:
    frame = pd.DataFrame({"person": range(40), "age": range(40)})
    unit = dp.Unit("person")
    return Table(
        frame,
        name="t",
        unit=unit,
        columns={"age": dp.Column.integer(0, 100)},
        rows=1,
        ledger=dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=1)),
    )


def ask(age: int) -> object:
    return wages().sql(f"SELECT COUNT(*) FROM t WHERE age > {age}", epsilon=0.1)


def ask_in_python(age: int) -> object:
    return wages().agg(above=dp.sum(dp.col("age") - age)).release(epsilon=0.1)


def compute(steps: int) -> object:
    return (steps * PoissonSampled(Gaussian(1.25), 0.011)).epsilon(1e-5)


def compute_gaussian(steps: int) -> object:
    return (steps * Gaussian(10)).epsilon(1e-5)


def compute_single(steps: int) -> object:
    return PrivacyLoss.of(PoissonSampled(Gaussian(1.25), steps / 1000)).epsilon(1e-5)


def compute_by_curve(steps: int) -> object:
    return (steps * Zcdp(0.001)).epsilon(1e-5)


def unnamed(package: Path) -> set[str]:
    """Files and packages in a package that the docstring of its `__init__` does not name."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    inside = {one.parent.name for one in package.glob("*/__init__.py")}
    files = {one.stem for one in package.glob("*.py")} - {"__init__"}
    quoted = {
        name for one in re.findall(r"(?<!`)`([^`]+)`(?!`)", text) for name in re.split(r"\W+", one)
    }
    return (inside | files) - quoted


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_reading_orders_name_every_file(package: Path) -> None:
    missing = unnamed(SOURCE / package)
    assert not missing, f"name {sorted(missing)} in the docstring of {package}/__init__.py"


def test_a_file_without_a_place_in_the_reading_order_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""Read `_first`, then `_third.part`."""\n')
    for name in ("_first", "_second", "_third"):
        (tmp_path / f"{name}.py").write_text("")
    assert unnamed(tmp_path) == {"_second"}


ACTS: dict[str, list[Callable[[int], object]]] = {
    "A question": [ask, ask_in_python],
    "An epsilon": [compute, compute_gaussian, compute_single, compute_by_curve],
}


@pytest.mark.parametrize("section", sorted(ACTS))
def test_each_function_is_called(section: str) -> None:
    called = set[tuple[str, str]]()
    for act in ACTS[section]:
        act(30)  # loads what is imported late
        with calling(called):
            act(31)
    missed = [
        (file, function)
        for step in steps(section)
        for file, function in located(step)
        if file not in ONLY_IF_NEEDED and not is_called(file, function, called)
    ]
    assert missed == []


def test_a_function_that_is_not_called_is_noticed() -> None:
    called = set[tuple[str, str]]()
    with calling(called):
        ask(31)
    assert is_called("query/_sql/_statement.py", "read_question", called)
    assert not is_called("query/_sql/_statement.py", "_with_quoting", called)
    assert not is_called("query/_relations/_related.py", None, called)
