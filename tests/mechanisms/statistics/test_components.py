"""Second moments and principal components: sensitivity, price, forecast, answers."""

import numpy as np
import pytest

from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.accounting._analytic import gaussian_deltas
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door, Gaussian, Grid, release_through
from discreet.mechanisms.statistics import (
    nearest_positive,
    principal_components,
    second_moment_matrix,
    second_moments,
    spectral_error,
)
from discreet.mechanisms.statistics._second_moments import Ball
from tests.bad_values import BadValue
from tests.mechanisms.kit import number
from tests.mechanisms.statistics.kit import (
    BOTH,
    Table,
    all_rows,
    at_most,
    holds,
    moves,
    people,
    released,
)

TINY: list[tuple[dict[str, Grid], float | None, int]] = [
    ({"a": Grid(0, 4)}, None, 2),
    ({"a": Grid(-1, 1, 0.25)}, 0.6, 1),
    ({"a": Grid(0, 3), "b": Grid(-2, 2)}, None, 1),
    ({"a": Grid(-3, 3), "b": Grid(-2, 2)}, 2, 1),
    ({"a": Grid(-2, 2), "b": Grid(-2, 2)}, 2, 1),
    ({"a": Grid(-1, 1), "b": Grid(-1, 1), "c": Grid(0, 2)}, 1, 1),
    ({"a": Grid(0, 2), "b": Grid(0, 2)}, 1, 2),
]


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize(("columns", "norm", "per_unit"), TINY)
def test_no_unit_moves_them_further_than_stated(
    columns: dict[str, Grid], norm: float | None, per_unit: int, unit: Unit
) -> None:
    """And the price is that of the worst pair; half of the noise is caught where it is exact."""
    found, bound = moves(columns, unit, per_unit, lambda rows: second_moments(rows, norm))
    assert holds(found, bound)
    facts = second_moments(people(all_rows(columns), columns, unit, per_unit), norm)
    mechanism = Gaussian.for_epsilon(1, 1e-6, facts)
    loss = mechanism.privacy_loss(facts)
    worst = max(moved["l2_squared"] for moved in found) / mechanism.stddev**2
    for at in (0.2, 1.0, 3.0):
        claim = fraction(loss.delta(at))
        assert gaussian_deltas(worst, fraction(at))[0] <= claim
        assert gaussian_deltas(4 * worst, fraction(at))[0] > claim


def test_in_a_ball_the_l2_sensitivity_is_the_squared_norm_and_reached() -> None:
    columns = {name: Grid(-8, 8) for name in "ab"}
    found, bound = moves(columns, BOTH[0], 1, lambda rows: second_moments(rows, 8))
    assert max(moved["l2_squared"] for moved in found) == bound.l2_squared == 16**4
    found, bound = moves(columns, BOTH[1], 1, lambda rows: second_moments(rows, 8))
    assert max(moved["l2_squared"] for moved in found) == bound.l2_squared == 2 * 16**4


@pytest.mark.parametrize("norm", [0.5, 1, 3.7, 100, 1e12])
@pytest.mark.parametrize("size", [1, 20, 2**29])
def test_rows_are_shortened_to_the_norm_and_no_further(norm: float, size: int) -> None:
    columns = {"a": Grid(-size, size), "b": Grid(0, size), "c": Grid(-1, 1)}
    rows = people(np.zeros((0, 3)), columns)
    random = np.random.default_rng(1)
    whole = np.stack([random.integers(0, g.size, 1000) for g in columns.values()], axis=1)
    short = Ball.of(rows, norm).inside(whole).astype(object)
    long = 2 * whole.astype(object) - np.array([g.size - 1 for g in columns.values()], dtype=object)
    radius = int(2 * norm)
    for one, other in zip(long, short, strict=True):
        square, left = sum(v * v for v in one), sum(v * v for v in other)
        assert left <= max(radius, 0) ** 2
        if square <= radius**2:
            assert list(one) == list(other)
        else:
            shrink = radius / (square**0.5 + 1)
            pairs = list(zip(one, other, strict=True))
            assert all(abs(v * shrink) - abs(w) < 1 + 1e-6 * abs(w) for v, w in pairs)
            assert all(v * w >= 0 for v, w in pairs)


def table() -> tuple[dict[str, Grid], Table]:
    """A cloud along (3, 2, 0, 0, 1), in a cube."""
    random = np.random.default_rng(8)
    along = np.outer(random.normal(0, 0.2, 2000), [3, 2, 0, 0, 1]) + random.normal(
        0, 0.1, (2000, 5)
    )
    return {f"c{i}": Grid(-1, 1, 1 / 64) for i in range(5)}, along


def test_without_noise_to_speak_of_it_is_numpys() -> None:
    columns, data = table()
    rows = people(data, columns)
    on_grid = (2 * rows.checked(data).places - 128) / 128
    matrix = second_moment_matrix(released(second_moments(rows), Gaussian(0.01), 0), rows)
    np.testing.assert_allclose(matrix, on_grid.T @ on_grid, rtol=1e-12, atol=1e-12)
    first = principal_components(matrix, 2)
    values, vectors = np.linalg.eigh(on_grid.T @ on_grid)
    np.testing.assert_allclose(first.values, values[::-1][:2])
    assert np.abs(first.directions @ vectors[:, ::-1][:, :2]) == pytest.approx(np.eye(2), abs=1e-9)


def test_directions_have_one_sign() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        square = random.normal(size=(4, 4))
        found = principal_components(square @ square.T, 4).directions
        assert np.all(found.max(axis=1) == np.abs(found).max(axis=1))


def test_a_private_direction_is_near() -> None:
    columns, data = table()
    rows = people(data, columns)
    facts = second_moments(rows, norm=1)
    mechanism = Gaussian.for_epsilon(1, 1e-6, facts)
    first = principal_components(second_moment_matrix(released(facts, mechanism, 1), rows), 1)
    truth = np.array([3, 2, 0, 0, 1]) / 14**0.5
    assert first.directions[0] @ truth > 0.99
    assert first.values[0] > 5 * spectral_error(rows, mechanism)


@pytest.mark.parametrize(("d", "too_much"), [(1, 8), (2, 5), (5, 3), (20, 2)])
def test_eigenvalues_stay_within_the_forecast(d: int, too_much: int) -> None:
    """1000 matrices of noise, at a false alarm of 10^-9. A bound divided by ``too_much`` fails."""
    rows = people(np.zeros((0, d)), {f"c{i}": Grid(-1, 1, 0.125) for i in range(d)})
    mechanism, trials = Gaussian(100), 1000
    forecast = spectral_error(rows, mechanism, 0.5)
    upper = np.triu_indices(d)
    drawn = mechanism.sample(np.zeros((trials, len(upper[0])), dtype=np.int64), SeededBits(1))
    matrices = np.zeros((trials, d, d))
    matrices[:, upper[0], upper[1]] = drawn * 0.125**2 / 4
    matrices += np.triu(matrices, 1).transpose(0, 2, 1)
    largest = np.abs(np.linalg.eigvalsh(matrices)).max(axis=1)
    assert at_most(int(np.count_nonzero(largest <= forecast)), trials) >= 0.5
    assert at_most(int(np.count_nonzero(largest <= forecast / too_much)), trials) < 0.5


@pytest.mark.parametrize("unit", BOTH, ids=str)
def test_nothing_but_the_sums_tells_neighbours_apart(unit: Unit) -> None:
    columns = {"a": Grid(0, 3), "b": Grid(0, 2)}

    def act(door: Door, data: Table) -> object:
        return release_through(door, second_moments(people(data, columns, unit), 1), Gaussian(9))

    data = np.array([[1, 0], [2, 1], [0, np.nan]])
    for row in ([0, 0], [3, 2], [np.inf, -2]):
        is_added = unit.change is Change.ADD_REMOVE
        replay(act, data, np.vstack([data if is_added else data[:-1], [row]]))


def test_the_nearest_positive_matrix_drops_what_lies_below_0() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
    np.testing.assert_allclose(nearest_positive(matrix), [[1.5, 1.5], [1.5, 1.5]])


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1"])
def test_a_norm_lies_above_0(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="norm = "):
        second_moments(people(np.zeros(1), {"a": Grid(0, 4)}), wrong)


def test_unfit_columns_are_refused_by_name() -> None:
    rows = people(np.zeros((1, 2)), {"a": Grid(0, 4), "b": Grid(0, 4)})
    with pytest.raises(InvalidArgument, match="state rows by"):
        second_moments(number())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="has several steps"):
        second_moments(people(np.zeros((1, 2)), {"a": Grid(0, 4), "b": Grid(0, 4, 0.5)}))
    with pytest.raises(InvalidArgument, match="too many values"):
        second_moments(people(np.zeros(1), {"a": Grid(0, 2**40)}))
    with pytest.raises(InvalidArgument, match="at least half a step"):
        second_moments(rows, 0.4)
    with pytest.raises(InvalidArgument, match="release of the second moments of"):
        second_moment_matrix(
            released(second_moments(people(np.zeros(1), {"a": Grid(0, 4)})), Gaussian(1), 0), rows
        )
    for count in (0, 3, 1.5, True):
        with pytest.raises(InvalidArgument, match="count = "):
            principal_components(np.eye(2), count)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="confidence = "):
        spectral_error(rows, Gaussian(1), 1)
