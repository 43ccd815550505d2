"""Rows on public grids: whatever a value is, it becomes one of the column's own."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Grid, Rows, Sensitivity
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON

GRIDS = [Grid(0, 10), Grid(-1, 1, step=0.25), Grid(0, 100, step=0.01), Grid(5, 5), Grid(-3, 2**50)]


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
@given(values=st.lists(st.floats(), max_size=5))
def test_every_float_has_a_place(grid: Grid, values: list[float]) -> None:
    places = grid.places(np.array(values, dtype=np.float64))
    for value, place in zip(values, places.tolist(), strict=True):
        assert 0 <= place < grid.size
        inside = (
            grid.lower if math.isnan(value) else min(max(_exact(value), grid.lower), grid.upper)
        )
        assert abs(grid.exact(place) - inside) <= grid.step * Fraction(500_001, 1_000_000)


def test_no_place_is_beyond_a_grid_of_many_places() -> None:
    """Such a place would be further away than the sensitivity says."""
    ends = [-math.inf, math.inf]
    rounded_up = 0
    for step in (Fraction(1, 10), Fraction(3, 10), Fraction(7, 100)):
        for steps in range(2**51, 2**52, 2**44 + 1):
            grid = Grid(0, steps * step, step=step)
            low, high = grid.places(np.array(ends)).tolist()
            assert low == 0
            assert steps - 1 <= high <= steps
            rounded_up += float(grid.upper) / float(step) > steps
    assert rounded_up > 9  # the quotient of floats alone is beyond such a grid


def _exact(value: float) -> Fraction:
    return (
        Fraction(value)
        if math.isfinite(value)
        else Fraction(int(math.copysign(1, value))) * 2**2000
    )


def test_places_and_values() -> None:
    grid = Grid(-1, 1, step=0.25)
    assert grid.size == 9
    assert [grid.value(i) for i in (0, 4, 8)] == [-1, 0, 1]
    assert grid.places(np.array([-5, 0.1, 0.2, math.nan, math.inf])).tolist() == [0, 4, 5, 0, 8]
    assert repr(grid) == "Grid(-1, 1, step=0.25)"
    assert repr(Grid(0, 120)) == "Grid(0, 120)"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3, 2), "lower = 3 lies above upper = 2"),
        ((0, 1, 0.3), "step = 0.3: give one that goes into the range"),
        ((0, 2**53), "at most 2\\^52"),
        ((0, 1, 0), "step = 0"),
        ((math.nan, 1), "lower = nan"),
        ((0, math.inf), "upper = inf"),
        ((0, True), "upper = True"),
        ((0, 10**400, 10**399), "float64 can't distinguish"),
        ((-(2**1023), 2**1023, 2**1000), "float64 can't distinguish"),
        ((0, Fraction(1, 10**390), Fraction(1, 10**400)), "float64 can't distinguish"),
        ((10**20, 10**20 + 10), "float64 can't distinguish"),
        ((10**400, 10**400), "float64 can't distinguish"),
    ],
)
def test_a_grid_that_is_none(arguments: tuple[BadValue, ...], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        Grid(*arguments)


def rows(
    compute: Any = lambda: np.zeros(3), unit: Unit = PERSON, per_unit: int = 1
) -> Bounded[Rows]:  # Any: of every kind
    return Bounded.rows(
        compute, columns={"age": Grid(0, 120)}, per_unit=per_unit, unit=unit, name="ages"
    )


def test_the_sensitivity_is_the_histograms() -> None:
    assert rows(per_unit=3).part.sensitivity == Sensitivity(l1=3)
    replaced = rows(unit=PERSON.with_change(Change.REPLACE), per_unit=3)
    assert replaced.part.sensitivity == Sensitivity(l1=6, linf=3)


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u1", "?"])
def test_tables_of_every_kind(kind: str) -> None:
    table = np.array([0, 1, 1], dtype=kind)
    found = rows().checked(table)
    assert found.column().tolist() == [0, 1, 1]
    assert rows().checked(table[:, np.newaxis]).places.shape == (3, 1)
    assert rows().checked(table[:0]).places.shape == (0, 1)


@pytest.mark.parametrize("table", [[], np.zeros(0), np.zeros((0, 2)), np.zeros((0, 5))], ids=repr)
def test_a_list_of_no_rows_is_a_table_too(table: BadValue) -> None:
    """NumPy can't tell how many columns an empty list has: neighbours of one row are such."""
    grids = {"a": Grid(0, 10), "b": Grid(0, 1)}
    if np.shape(table) == (0, 5):
        with pytest.raises(TypeError, match="expected rows of 2 numbers"):
            Rows.of(table, tuple(grids.items()), "rows")
    else:
        assert Rows.of(np.array(table), tuple(grids.items()), "rows").places.shape == (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [{1: 2}, np.zeros((3, 2)), np.zeros((1, 1, 1)), np.array("a"), None, 3.0],
    ids=repr,
)
def test_anything_else_is_no_table(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="part 'ages': expected"):
        rows().checked(wrong)


def test_columns_are_named_grids() -> None:
    for columns in ({}, {"age": 3}, {"": Grid(0, 1)}):
        with pytest.raises(InvalidArgument, match="column"):
            Bounded.rows(lambda: np.zeros(1), columns=columns, unit=PERSON, name="a")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="per_unit = 0"):
        rows(per_unit=0)


def test_a_value_has_no_say_in_what_becomes_of_others() -> None:
    """Each row of a neighbour keeps its place, whatever the new one holds."""
    table = np.array([1.0, 5.0, 119.5])
    part = rows().parts[0]
    one = rows().checked(table)
    for new in (math.nan, math.inf, -math.inf, 1e308, -0.0, 7.2):
        other = rows().checked(np.append(table, new))
        assert sum(part.moves(one, other)) == int(not math.isnan(new))


EXTREMES = [5e-324, -1e-320, 1e-310, 1e308, -1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize(
    "grid", [*GRIDS, Grid(0, 1, step=Fraction(1, 2**50)), Grid(0, 2**1021, step=2**1000)]
)
@pytest.mark.parametrize("kind", ["f8", "g"])
def test_no_value_makes_a_warning_under_any_numpy_error_state(grid: Grid, kind: str) -> None:
    values = np.array([*EXTREMES, 3], dtype=kind)
    if kind == "g":  # where it has more bits than float64
        with np.errstate(all="ignore"):
            values = np.append(values, [values[3] * 10, values[4] * 1000, values[0] / 1000])
    with np.errstate(all="raise"):
        column = Rows.of(values, (("x", grid),), "rows").column()
    assert np.all((column >= 0) & (column < grid.size))


def test_rows_print_no_private_value() -> None:
    assert repr(rows().checked(np.array([77, 78, 79]))) == "Rows({'age': Grid(0, 120)})"
