"""Moments: exact sums, exact sensitivities, what they cost, and what is made of them."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._exact import fraction
from discreet._unit import Unit
from discreet.accounting._analytic import gaussian_deltas
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    DiscreteLaplace,
    Door,
    Gaussian,
    Grid,
    Sensitivity,
    release_through,
)
from discreet.mechanisms.statistics import Moments, _products, moment_errors, moments
from discreet.mechanisms.statistics._layout import MomentLayout
from discreet.mechanisms.statistics._products import gram
from tests.mechanisms.kit import number
from tests.mechanisms.statistics.kit import (
    ADDED,
    BOTH,
    REPLACED,
    Table,
    at_least,
    at_most,
    holds,
    moves,
    people,
    released,
)

Noise = DiscreteLaplace | Gaussian

TINY: list[tuple[dict[str, Grid], int]] = [
    ({"a": Grid(0, 1)}, 2),
    ({"a": Grid(0, 1)}, 3),
    ({"a": Grid(-3, 3)}, 2),
    ({"a": Grid(0, 5, 0.5)}, 1),
    ({"a": Grid(0, 40)}, 1),
    ({"a": Grid(0, 4), "b": Grid(0, 1)}, 1),
    ({"a": Grid(0, 2), "b": Grid(0, 3)}, 1),
    ({"a": Grid(0, 2), "b": Grid(0, 1)}, 2),
    ({"a": Grid(0, 2), "b": Grid(0, 2), "c": Grid(0, 1)}, 1),
]


def claimed(columns: Mapping[str, Grid], unit: Unit, per_unit: int) -> Sensitivity:
    return moments(people(np.zeros((0, len(columns))), columns, unit, per_unit)).part.sensitivity


# Sums


@given(
    st.lists(st.tuples(*[st.integers(-(2**53) + 1, 2**53 - 1)] * 3), max_size=8),
    st.integers(1, 3),
)
def test_sums_of_products_are_exact(rows: list[tuple[int, ...]], chunk: int) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    exact = [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_products, "_CHUNK", chunk)
        assert gram(table, 2**53 - 1).tolist() == exact


@pytest.mark.parametrize("largest", [1, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**48, 2**53 - 1])
def test_a_full_chunk_of_the_largest_is_exact(largest: int) -> None:
    rows = (1 << 14) + 3
    table = np.full((rows, 2), largest)
    table[:, 1] *= -1
    square = rows * largest**2
    assert gram(table, largest).tolist() == [[square, -square], [-square, square]]


def test_moments_are_what_they_say() -> None:
    columns = {"a": Grid(-4, 5, 0.01), "b": Grid(0, 20), "c": Grid(0, 1)}
    random = np.random.default_rng(1)
    table = np.stack(
        [random.normal(0, 3, 50), random.normal(10, 9, 50), random.normal(0, 1, 50)], 1
    )
    rows = people(table, columns)
    on_grid = rows.checked(table)
    grids = list(columns.values())
    layout = MomentLayout.of(rows)

    def y(row: Any, i: int) -> Fraction:
        grid = grids[i]
        half = (grid.upper - grid.lower) / 2
        return (grid.exact(int(row[i])) - (grid.upper + grid.lower) / 2) / half

    expected = []
    for place, weight, largest in zip(layout.places, layout.weights, layout.largest, strict=True):
        total = Fraction(0)
        for row in on_grid.places:
            each = Fraction(1)
            for i in place:
                each *= y(row, i)
            total += 2 * each - 1 if len(place) == 2 and place[0] == place[1] else each
        expected.append(total * weight * largest)
    assert moments(rows).compute().tolist() == expected


# Sensitivity


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize(("columns", "per_unit"), TINY)
def test_no_unit_moves_moments_further_than_stated(
    columns: dict[str, Grid], per_unit: int, unit: Unit
) -> None:
    found, bound = moves(columns, unit, per_unit, moments)
    assert holds(found, bound)


@pytest.mark.parametrize(("columns", "per_unit"), TINY)
def test_adding_and_removing_is_exact(columns: dict[str, Grid], per_unit: int) -> None:
    found, bound = moves(columns, ADDED, per_unit, moments)
    for norm in ("l0", "l1", "l2_squared", "linf"):
        assert max(moved[norm] for moved in found) == getattr(bound, norm)


@pytest.mark.parametrize("widths", [(3, 7), (5, 11), (2, 3, 7)])
def test_the_furthest_row_moves_as_far_as_is_stated(widths: tuple[int, ...]) -> None:
    """Also if the moments' largest values differ, since the weights are whole numbers."""
    columns = {f"c{i}": Grid(0, width) for i, width in enumerate(widths)}
    row = np.array([widths], dtype=np.float64)
    moved = [abs(each) for each in moments(people(row, columns)).compute().tolist()]
    bound = claimed(columns, ADDED, 1)
    assert (bound.l1, bound.linf) == (sum(moved), max(moved))
    assert bound.l2_squared == sum(each**2 for each in moved)
    assert min(moved) < max(moved)


def test_replacing_is_nearly_exact() -> None:
    found, bound = moves({"a": Grid(0, 40)}, REPLACED, 1, moments)
    assert max(moved["l1"] for moved in found) >= 0.999 * bound.l1
    assert max(moved["l2_squared"] for moved in found) >= 0.95 * bound.l2_squared
    assert max(moved["linf"] for moved in found) == bound.linf


@pytest.mark.parametrize("d", range(1, 9))
def test_no_two_points_of_a_box_are_further_apart_than_proven(d: int) -> None:
    """Climbing from many places finds nothing beyond the bounds, and comes near them."""
    columns = {f"c{i}": Grid(0, 2**20) for i in range(d)}
    bound, unit = claimed(columns, REPLACED, 1), MomentLayout(tuple(columns.items())).unit
    random = np.random.default_rng(d)
    equal = [np.r_[np.ones(d), np.full(d, 1 - 2 * t)] for t in np.linspace(0.5, 1, 26)]
    best = {"l1": 0.0, "l2_squared": 0.0}
    steps = np.linspace(-1, 1, 81)
    some = [random.choice([-1.0, 1.0, 0.0, 0.5], 2 * d) for _ in range(10)]
    for start, norm in product([*equal[::3], *some], ["l1", "l2_squared"]):
        point = start
        for _ in range(3):
            for i in range(2 * d):
                tried = np.repeat(point[np.newaxis], 81, axis=0)
                tried[:, i] = steps
                point = tried[np.argmax(apart(tried)[norm])]
        best[norm] = max(best[norm], float(apart(point[np.newaxis])[norm][0]))
    assert 0.99 * bound.l1 / unit <= best["l1"] <= bound.l1 / unit * (1 + 1e-12)
    most = bound.l2_squared / unit**2
    assert 0.9 * most <= best["l2_squared"] <= most * (1 + 1e-12)


def apart(points: Table) -> dict[str, Table]:
    """The norms of the differences of the moments of two rows of y, by the definition."""
    d = points.shape[1] // 2
    halves = []
    for y in (points[:, :d], points[:, d:]):
        pairs = [y[:, i] * y[:, j] for i in range(d) for j in range(i)]
        halves.append(np.stack([*y.T, *pairs, *(2 * y**2 - 1).T], axis=1))
    moved = np.abs(halves[0] - halves[1])
    return {"l1": moved.sum(axis=1), "l2_squared": (moved**2).sum(axis=1)}


def test_an_accuracy_of_m_cases_moves_by_one_in_m() -> None:
    """Whether each of m cases is right: replacing one moves the share of right ones by 1 / m."""
    m, columns = 50, {"right": Grid(0, 1)}
    bound = claimed(columns, REPLACED, 1)
    layout = MomentLayout(tuple(columns.items()))
    half = Fraction(1, 2)
    of_sum = Fraction(bound.linf, layout.weights[1] * layout.largest[1]) * half
    assert of_sum / m == Fraction(1, m)
    shares = [
        Fraction(int(moments(people(t, columns, REPLACED)).compute()[1]), layout.weights[1] * 2)
        for t in (np.ones(m), np.r_[np.ones(m - 1), 0])
    ]
    assert (shares[0] - shares[1]) / m == Fraction(1, m)


# Cost


def laplace_leaks(scale: Fraction, moved: dict[str, int]) -> Fraction:
    """The epsilon of this very pair: outputs beyond both are so much likelier under one."""
    return moved["l1"] / scale


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize(("columns", "per_unit"), TINY[:3] + TINY[5:])
def test_every_pair_of_neighbours_stays_within_the_price(
    columns: dict[str, Grid], per_unit: int, unit: Unit
) -> None:
    """By the noise's exact law; half of the noise is caught."""
    facts = moments(people(np.zeros((0, len(columns))), columns, unit, per_unit))
    laplace = DiscreteLaplace.for_epsilon(0.7, facts)
    gaussian = Gaussian.for_epsilon(0.7, 1e-5, facts)
    epsilon = fraction(laplace.privacy_loss(facts).epsilon())
    loss = gaussian.privacy_loss(facts)
    found, _ = moves(columns, unit, per_unit, moments)
    worst = max(found, key=lambda moved: moved["l1"])
    assert laplace_leaks(laplace.scale, worst) <= epsilon < laplace_leaks(laplace.scale / 2, worst)
    worst = max(found, key=lambda moved: moved["l2_squared"])
    for at in (0.1, 0.7, 2.0):
        square = worst["l2_squared"] / gaussian.stddev**2
        claim = fraction(loss.delta(at))
        assert gaussian_deltas(square, fraction(at))[0] <= claim
        assert gaussian_deltas(4 * square, fraction(at))[0] > claim


@pytest.mark.parametrize("unit", BOTH, ids=str)
def test_nothing_but_the_moments_tells_neighbours_apart(unit: Unit) -> None:
    columns = {"a": Grid(0, 3), "b": Grid(0, 1)}

    def act(door: Door, table: Table) -> object:
        facts = moments(people(table, columns, unit))
        return release_through(door, facts, Gaussian(10**9))

    table = np.array([[1, 0], [2, 1], [3, 1], [0, np.nan], [np.inf, 5]])
    for row in ([0, 0], [3, 1], [1.5, -2]):
        other = np.vstack([table, [row]]) if unit is ADDED else np.vstack([table[:-1], [row]])
        replay(act, table, other)


# Forecast


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
def test_errors_are_as_forecast(kind: Callable[[Any], Noise]) -> None:
    """Of 10^5 draws the share within the forecast is its confidence, to 3 % of the rest and what
    chance adds; and 3 % nearer it is less."""
    rows = people(np.zeros((0, 2)), {"a": Grid(0, 10, 0.5), "b": Grid(0, 1)})
    layout = MomentLayout.of(rows)
    noise, draws = kind(5 * layout.unit), 100_000
    forecast = moment_errors(rows, noise, 0.9)
    assert list(forecast) == [(), ("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "b")]
    drawn = noise.sample(np.zeros(draws, dtype=np.int64), SeededBits(1))
    scales = [Fraction(scale) for scale in (1, 5, 0.5, 12.5, 2.5, 0.125)]
    factors = zip(forecast.values(), scales, layout.weights, layout.largest, strict=True)
    for error, scale, weight, largest in factors:
        moved = np.abs(drawn) * float(scale / (weight * largest))
        measured = float(np.quantile(moved, 0.9))
        assert measured == pytest.approx(float(error), rel=0.03)
        inside = int(np.count_nonzero(moved <= float(error) * (1 + 1e-9)))
        assert at_least(inside, draws) <= 0.9 <= at_most(inside, draws)


@pytest.mark.parametrize("kind", [DiscreteLaplace, Gaussian])
def test_the_finest_grids_work(kind: Callable[[Any], Noise]) -> None:
    columns = {"a": Grid(0, 2**52 - 1), "b": Grid(0, 2**52 - 1)}
    rows = people(np.array([[0.0, 2.0**52]] * 100), columns)
    facts = moments(rows)
    noise: Noise = (
        kind.for_epsilon(1, facts)
        if kind is DiscreteLaplace
        else Gaussian.for_epsilon(1, 1e-6, facts)
    )
    read = Moments.of(released(facts, noise, 1), rows)
    assert 0 < read.count < 200
    assert noise.privacy_loss(facts).epsilon(delta=1e-6) <= 1


# Bad input


def test_values_other_than_rows_are_refused_by_name() -> None:
    with pytest.raises(
        InvalidArgument, match=r"'people' gives integers: state rows by Bounded\.rows"
    ):
        moments(number())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="column 'a' has one value only"):
        moments(people(np.zeros(3), {"a": Grid(1, 1)}))
