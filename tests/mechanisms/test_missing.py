"""A row with a missing value is skipped by every mechanism on rows, unless a value is named for it.

Skipped means: with the same bits the same comes out as of the table without that row.
"""

import importlib
import inspect
import itertools
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import discreet.mechanisms
from discreet._unit import Change
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    Door,
    Gaussian,
    Grid,
    Mechanism,
    Rows,
    release_through,
)
from discreet.mechanisms.quantiles import histogram
from discreet.mechanisms.statistics import (
    chi_square_scores,
    contingency,
    difference_scores,
    moments,
    second_moments,
)
from discreet.mechanisms.thresholds import LaplaceThreshold, sets_of_keys
from tests.mechanisms.computations import rows as one_column
from tests.mechanisms.hostile import Exit, Hostile, HostileNumber
from tests.mechanisms.kit import PERSON
from tests.mechanisms.registry import CASES as MECHANISMS

Table = Any  # Any: an array of numbers or of objects
Some = Any  # Any: what each mechanism takes and gives

ONE = {"x": Grid(0, 10)}
THREE = {"ill": Grid(0, 1), "x": Grid(0, 10), "y": Grid(-4, 2)}
NULL = {"ill": 1, "x": 7, "y": -3}
_VALUES = [1.0, None, "a", 3.0, float("nan")]
CONTAINERS: list[Table] = [
    np.array(_VALUES, dtype=object),
    _VALUES,
    [*_VALUES, [1, 2], (), [[1], [2]], [1, 2, 3]],
    tuple((value,) for value in _VALUES),
    pd.Series(_VALUES, dtype=object),
    pd.Series([1.0, None, 3.0]),
    pd.Series([1, None, 3], dtype="Int64"),
    pd.array([1, None, 3], dtype="Int64"),
    pd.DataFrame({"x": _VALUES}),
    pd.Series([1.0, 3.0, None], dtype="Float64"),
    pl.Series([1.0, None, 3.0]),
    pl.Series([1, None, 3]),
    pl.DataFrame({"x": [1, None, 3]}),
    pa.array([1, None, 3]),
    pa.chunked_array([[1.0], [None, 3.0]]),
]


@pytest.mark.parametrize("given", CONTAINERS, ids=lambda given: type(given).__name__)
def test_lists_series_and_frames_are_rows(given: Table) -> None:
    found = Rows.of(given, tuple(ONE.items()), "x")
    assert [ONE["x"].value(place) for place in sorted(found.column())] == [1, 3]


def test_lists_of_rows_are_tables() -> None:
    rows = [(0, 1, 2), [1, 3, -4], (1, None, 0), (1, 2), 7, [[1], [2], [3]], "abc"]
    found = Rows.of(rows, tuple(THREE.items()), "x")
    assert len(found.places) == 2


REPLACED = PERSON.with_change(Change.REPLACE)


@dataclass(frozen=True)
class Case:
    """A mechanism on rows of these columns, or on numbers that are computed from them."""

    columns: Mapping[str, Grid]
    mechanism: Mechanism[Some, Some]
    of: Callable[[Bounded[Some]], Bounded[Some]] = lambda rows: rows

    def bounded(self, table: Table, **facts: Some) -> Bounded[Some]:
        given: dict[str, Some] = {"unit": PERSON, "name": "rows"} | facts
        return self.of(Bounded.rows(lambda: table, columns=self.columns, **given))

    def outcome(self, table: Table, **facts: Some) -> Some:
        bounded = self.bounded(table, **facts)
        value = bounded.checked(bounded.compute())
        found = [self.mechanism.sample(value, SeededBits(seed)) for seed in range(3)]
        return [each.tolist() if isinstance(each, np.ndarray) else each for each in found]

    def table(self, rows: int = 7) -> Table:
        """Rows from all over the grids but their lower ends, and beyond them."""
        draw = np.random.default_rng(len(self.columns))
        made = draw.integers(1, 13, size=(rows, len(self.columns))).astype(np.float64)
        if "ill" in self.columns:
            made[:, 0] = np.arange(rows) % 2
        return made


NOISE = Gaussian(0.5)
COMPUTED: dict[str, Case] = {
    "histogram": Case(ONE, NOISE, lambda rows: histogram(rows, [0, 3, 6, 11])),
    "moments": Case(THREE, NOISE, moments),
    "second_moments": Case(THREE, NOISE, second_moments),
    "contingency": Case(THREE, NOISE, contingency),
    "difference_scores": Case(
        THREE, NOISE, lambda rows: difference_scores(rows, "ill", cases=3, controls=4)
    ),
    "chi_square_scores": Case(
        THREE, NOISE, lambda rows: chi_square_scores(rows, "ill", cases=3, controls=4)
    ),
}
LITTLE_NOISE: dict[str, Some] = {
    "ApproximateBounds": {"scale": 0.1},
    "CheckedBounds": {"scale": 0.01, "share": 0.8},
    "SmoothMedian": {"epsilon": 99},
}
LOOKING: dict[str, Case] = {
    name: Case(ONE, each.kind(**{**each.given, **LITTLE_NOISE.get(name, {})}))
    for name, each in MECHANISMS.items()
    if each.about is one_column
}
CASES = COMPUTED | LOOKING


def on_rows() -> Iterator[str]:
    """The names of all functions and mechanisms that take rows."""
    package = discreet.mechanisms
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, found in vars(importlib.import_module(info.name)).items():
            if getattr(found, "__module__", None) != info.name or name.startswith("_"):
                continue
            if inspect.isclass(found) and hasattr(found, "sample"):
                if (
                    inspect.signature(found.sample).parameters["value"].annotation.__name__
                    == "Rows"
                ):
                    yield name
            elif inspect.isfunction(found):
                signature = inspect.signature(found)
                takes = [str(each.annotation) for each in signature.parameters.values()]
                gives = str(signature.return_annotation)
                if takes and "Rows]" in takes[0] and gives.startswith("discreet"):
                    yield name


def test_every_mechanism_on_rows_is_in_the_table() -> None:
    assert set(on_rows()) - {"OneQuantile"} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_row_with_a_missing_value_is_skipped(name: str) -> None:
    """At every position, in every column, by itself, with others, and as the only row."""
    case = CASES[name]
    table, width = case.table(), len(case.columns)
    expected = case.outcome(table)
    for at, column in itertools.product(range(len(table) + 1), range(width)):
        for others in (0.0, 1e9, math.nan):
            row = np.full(width, others)
            row[column] = math.nan
            assert case.outcome(np.insert(table, at, row, axis=0)) == expected
    several = np.insert(table, [0, 2, 2, len(table)], math.nan, axis=0)
    assert case.outcome(several) == expected
    assert case.outcome(several[:1]) == case.outcome(table[:0])
    counted = np.insert(table, [0] * 5, 0.0, axis=0)
    assert case.outcome(counted) != expected, "no power: rows hardly count"


MISSING = [None, math.nan, -math.nan, np.float32("nan"), pd.NA, pd.NaT, Decimal("sNaN"), "x", 1j]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "g", "O"])
def test_whatever_kind_of_array_it_is(name: str, kind: str) -> None:
    case = CASES[name]
    table, width = case.table().astype(kind), len(case.columns)
    expected = case.outcome(case.table())
    for missing in MISSING if kind == "O" else [math.nan, -math.nan]:
        row = np.zeros(width, dtype=kind)
        row[-1] = missing
        assert case.outcome(np.vstack([table[:3], row, table[3:]])) == expected


# one value that decides which kind of array NumPy makes of a list of rows
MIXED: dict[str, Some] = {
    "text": "unknown",
    "bytes": b"unknown",
    "empty text": "",
    "None": None,
    "complex": 2 + 1j,
    "no time": np.timedelta64("NaT"),
    "moment": np.datetime64("2026-05-01"),
    "date": date(2026, 5, 1),
    "list": [1],
    "object": object(),
    "hostile": Hostile(),
    "hostile number": HostileNumber(3),
    "exit": Exit(3),
    "function": len,
}
NUMBERS: list[Some] = [True, 0, 3, 2.5, np.float64(0.1 + 0.2), np.int8(-2), 2**70, 1e300, -math.inf]


@pytest.mark.parametrize("name", CASES)
def test_no_value_makes_a_release_fail_or_alters_other_rows(name: str) -> None:
    """Rows come as lists, so that one value decides what NumPy makes of all of them."""
    case = CASES[name]
    width = len(case.columns)
    rows = [[number] * width for number in NUMBERS]
    expected = case.outcome(np.array(rows, object))
    for value, kind in itertools.product(MIXED, (None, object)):
        row = [*[1] * (width - 1), MIXED[value]]
        array = partial(_array, kind=kind, like=MIXED[value])
        assert case.outcome(array([*rows, row])) == expected, value
        assert case.outcome(array([row])) == case.outcome(np.array([])), value


def _array(rows: list[Some], kind: Any, like: Some) -> Table:
    if kind is None and type(like) not in (list, Hostile, HostileNumber, Exit):
        return np.array(rows)
    made = np.empty((len(rows), len(rows[0]) if rows else 0), object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            made[i, j] = value
    return made


PLAIN = st.floats() | st.integers() | st.booleans() | st.complex_numbers() | st.none()
OTHERS = st.decimals() | st.fractions() | st.timedeltas()
TEXTS = st.text() | st.text("12.e-\0j", max_size=4)
BYTES = st.binary() | st.sampled_from([b"1.5", b"True", b"2"])


@hypothesis.given(
    values=st.lists(PLAIN | TEXTS) | st.lists(PLAIN | BYTES) | st.lists(PLAIN | OTHERS | TEXTS)
)
def test_a_row_is_the_same_in_whichever_array_it_is(values: list[Some]) -> None:
    """Each value by itself, or the whole list as the array that NumPy makes of it."""
    columns = (("x", Grid(-4, 4, step=0.5)),)

    def places(given: Table) -> list[int]:
        return list(Rows.of(given, columns, "rows").column())

    each = [place for value in values for place in places(np.array([value], object))]
    assert places(np.array(values, object)) == each
    assert places(np.array(values)) == each


@pytest.mark.parametrize("kind", ["M8[ns]", "m8[D]", "V3", "S3", "U3", "c16", "O", "T"])
def test_arrays_of_every_kind_are_rows(kind: str) -> None:
    for name, case in CASES.items():
        table = np.zeros((3, len(case.columns)), "u1").astype(kind)
        assert case.outcome(table) in (
            case.outcome(np.zeros(table.shape)),
            case.outcome(np.empty((0, len(case.columns)))),
        ), name


@pytest.mark.parametrize("name", CASES)
def test_a_value_that_is_named_stands_for_it(name: str) -> None:
    """For the columns that have one; a row is skipped only for the others."""
    case = CASES[name]
    table, width = case.table(), len(case.columns)
    null = {column: NULL[column] for column in case.columns}
    for column, named in enumerate(null):
        missing, meant = table.copy(), table.copy()
        missing[[1, 4], column], meant[[1, 4], column] = math.nan, null[named]
        expected = case.outcome(meant)
        for given in (null, {named: null[named]}):
            assert case.outcome(missing, null=given) == expected
            assert case.outcome(missing.astype(object), null=given) == expected
        assert case.outcome(missing, null={}) == case.outcome(np.delete(table, [1, 4], axis=0))
    others = {key: value for key, value in null.items() if key != named}
    assert case.outcome(missing, null=others) == case.outcome(missing)
    filled = np.tile(np.array(list(null.values())), (2, 1))
    assert case.outcome(np.full((2, width), math.nan), null=null) == case.outcome(filled)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_neighbours_by_a_missing_value_differ_in_nothing_else(
    name: str, null: bool, unit: Any
) -> None:
    """Record and replay: a row whose value is missing comes, goes, or takes another's place."""
    case = CASES[name]
    table, width = case.table(), len(case.columns)
    facts: dict[str, Some] = {"unit": unit}
    if null:
        facts["null"] = {column: NULL[column] for column in case.columns}
    mechanism = SilentLook(case.mechanism) if name in LOOKING else case.mechanism

    def act(door: Door, given: Table) -> object:
        return release_through(door, case.bounded(given, **facts), mechanism)

    for at, column in itertools.product((0, 3, 6), range(width)):
        other = table.copy()
        other[at, column] = math.nan
        if unit is PERSON:
            replay(act, np.delete(table, at, axis=0), other)
            replay(act, other, np.delete(table, at, axis=0))
        else:
            replay(act, table, other)
            replay(act, other.astype(object), table.astype(object))


@dataclass(frozen=True)
class SilentLook:
    """A mechanism that draws nothing: how many bits a look at rows takes depends on them."""

    mechanism: Mechanism[Some, Some]

    def privacy_loss(self, bounded: Bounded[Some]) -> Some:
        return self.mechanism.privacy_loss(bounded)

    def sample(self, value: Some, bits: Some) -> int:
        return 0


@pytest.mark.parametrize(
    "null",
    [{"x": 11}, {"x": 0.5}, {"x": math.nan}, {"z": 1}, {"x": None}, {"x": True}, 3, [("x", 1)]],
)
def test_only_a_value_of_the_grid_can_be_named(null: Some) -> None:
    with pytest.raises(InvalidArgument, match="null = "):
        Bounded.rows(lambda: 1 / 0, columns=ONE, null=null, unit=PERSON, name="rows")


def test_numbers_beyond_all_floats_are_not_missing() -> None:
    found = Bounded.rows(lambda: 0, columns=ONE, unit=PERSON, name="rows").checked(
        np.array([10**400, -(10**400), Fraction(10**400, 3), Decimal("-1e999"), True, None], object)
    )
    assert found.column().tolist() == [10, 0, 10, 0, 1]


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), ("a", None), (1, math.nan)])
def test_keys_that_are_missing_are_skipped(missing: Some) -> None:
    counts = Bounded.keys(
        lambda: {"a": 30, missing: 40, "b": 1}, per_unit=1, unit=PERSON, name="keys"
    )
    assert counts.checked(counts.compute()) == {"a": 30, "b": 1}
    sets: list[Some] = [{1: ["a", missing, "b"], 2: [missing]}, {1: ["a", "b"], 2: []}]
    made = sets_of_keys(sets.pop, per_unit=2, unit=PERSON, name="sets")
    assert made.compute() == made.compute()
    mechanism = LaplaceThreshold.for_epsilon(1, 1e-6, counts)
    assert "a" in mechanism.sample(counts.checked(counts.compute()), SeededBits(1))
