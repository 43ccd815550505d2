"""Counts in bins with public edges: those of NumPy, and how far neighbours are apart."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Ledger, Limit
from discreet._unit import Unit
from discreet.audit import replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import DiscreteLaplace, Door, Gaussian, Grid, Sensitivity, release
from discreet.mechanisms._release import release_through
from discreet.mechanisms.quantiles import histogram
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, number
from tests.mechanisms.quantiles.kit import REPLACED, Table, column, neighbours

GRID = Grid(0, 100)


@pytest.mark.parametrize(
    "edges",
    [(0, 100), (0, 10, 20, 100), (5, 5.5, 6, 99.5), (-10, 0, 50, 1000), (100, 101), (-3, -1)],
)
def test_the_bins_are_those_of_numpy(edges: tuple[float, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 101, 500)
    for grid in (GRID, Grid(0, 100, step=0.001)):  # counted by place, and searched
        counts = histogram(column(values, grid), edges)
        assert counts.compute().tolist() == np.histogram(values, edges)[0].tolist()
        assert counts.part.sensitivity.l1 == 1


def test_edges_and_values_meet_exactly() -> None:
    """A tenth is no float, and yet 0.3 lies in the bin that begins with 0.3."""
    grid = Grid(0, 1, step=0.1)
    tenths = column(np.arange(11) / 10, grid)
    edges = [Fraction(i, 10) for i in range(11)]
    assert histogram(tenths, edges).compute().tolist() == [1] * 9 + [2]
    assert histogram(tenths, [i / 10 for i in range(11)]).compute().tolist() == [1] * 9 + [2]


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
@pytest.mark.parametrize("per_unit", [1, 2])
@pytest.mark.parametrize("edges", [(0, 1, 2, 3), (0, 3), (1, 2, 3)])
def test_neighbours_are_as_far_apart_as_stated(
    unit: Unit, per_unit: int, edges: tuple[int, ...]
) -> None:
    grid = Grid(0, 2)
    stated = histogram(column((), grid, unit, per_unit), edges).part.sensitivity
    most = Sensitivity(l1=0, linf=0)
    for one, other in neighbours(3, 4, unit, per_unit):
        a, b = (histogram(column(table, grid), edges).compute() for table in (one, other))
        moved = np.abs(a - b)
        assert int((moved > 0).sum()) <= stated.l0
        assert moved.sum() <= stated.l1
        assert (moved**2).sum() <= stated.l2_squared
        assert moved.max() <= stated.linf
        most = max(most, Sensitivity(l1=int(moved.sum()), linf=int(moved.max())), key=_size)
    if len(edges) == 4:
        assert (most.l1, most.linf) == (stated.l1, stated.linf)


def _size(sensitivity: Sensitivity) -> tuple[int, int]:
    return sensitivity.l1, sensitivity.linf


def test_a_histogram_is_released_like_any_counts() -> None:
    ages = column(np.arange(100), GRID)
    by_decade = histogram(ages, range(0, 110, 10))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=2, delta=1e-6))
    laplace = DiscreteLaplace.for_epsilon(1, by_decade)
    gaussian = Gaussian.for_epsilon(0.5, 1e-7, by_decade)
    assert release(by_decade, laplace, ledger).error(0.95) == laplace.error(0.95)
    assert release(by_decade, gaussian, ledger).error(0.95) == gaussian.error(0.95)
    assert release(by_decade, laplace, FakePayer()).value.shape == (10,)


def test_other_edges_are_another_question() -> None:
    ages = column((), GRID)
    names = {histogram(ages, range(0, 100, k)).name for k in (1, 2, 3, 50)}
    assert len(names) == 4
    assert histogram(ages, (0, 50, 100)).name == "column by (0, 50, 100)"
    assert histogram(ages, range(0, 110, 10)).name.startswith("column by 11 edges (0, ..., 100;")


def test_neighbours_run_alike() -> None:
    def act(door: Door, table: Table) -> object:
        counts = histogram(column(table, GRID), (0, 50, 100))
        return release_through(door, counts, DiscreteLaplace(2))

    replay(act, (1, 99), (1, 99, 50))
    replay(act, (), (1,))


@pytest.mark.parametrize(
    "edges", [(), (1,), (1, 1), (2, 1), (0, math.nan), (0, math.inf), "012", 5, None, (0, True)]
)
def test_edges_that_are_none(edges: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="edges"):
        histogram(column((), GRID), edges)


def test_only_one_column_has_a_histogram() -> None:
    counts: BadValue = number()
    with pytest.raises(InvalidArgument, match="state rows of one column"):
        histogram(counts, (0, 1))
