"""The median by smooth sensitivity: the bound, the noise, and what a pair of tables loses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import accounting
from discreet._unit import Unit
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Grid, release
from discreet.mechanisms.quantiles import SmoothMedian
from discreet.noise import _laws
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, lost
from tests.mechanisms.quantiles.kit import (
    REPLACED,
    Chances,
    Table,
    column,
    neighbours,
    rows,
    tables,
)

GRID = Grid(0, 2)
EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10)


def median(table: Table) -> int:
    """The lower one of two; 0 of none."""
    return sorted(table)[(len(table) - 1) // 2] if table else 0


def scale_of(mechanism: SmoothMedian, table: Table) -> Fraction:
    return mechanism._scale(np.sort(np.array(table, dtype=np.int64)))


@pytest.mark.parametrize("table", [(), (1,), (0, 0, 2), (0, 1), (2, 2, 2, 2)], ids=str)
def test_without_noise_it_is_the_median(table: Table) -> None:
    mechanism = SmoothMedian(epsilon=1, delta=0.1, grid=GRID)
    assert mechanism.sample(rows(table, GRID), ZeroNoiseBits()) == median(table)


@pytest.mark.parametrize(("unit", "per_unit"), [(PERSON, 1), (PERSON, 2), (REPLACED, 1)], ids=str)
def test_the_bound_is_smooth_and_a_bound(unit: Unit, per_unit: int) -> None:
    """Of all pairs of small tables: no median moves by more than either's scale allows, and no
    scale is more than a factor 1 + 1/m above a neighbour's."""
    grid = Grid(0, 9)
    moved = column((), grid, unit, per_unit).part.sensitivity.l1
    mechanism = SmoothMedian(epsilon=EPSILON, delta=DELTA, grid=grid, moved=moved)
    step = 1 + Fraction(1, mechanism._m)
    drawn, pairs = np.random.default_rng(1), []
    for _ in range(300):
        one = drawn.integers(0, 10, drawn.integers(0, 12)).tolist()
        gone = 0 if unit.change.value == "add_remove" else per_unit
        other = one[min(gone, len(one)) :] + drawn.integers(0, 10, per_unit).tolist()
        pairs.append((tuple(one), tuple(other)))
    for one, other in pairs + neighbours(3, 4, unit, per_unit):
        s, t = (scale_of(mechanism, table) * EPSILON / 2 for table in (one, other))
        assert abs(median(one) - median(other)) <= min(s, t)
        assert max(s, t) <= step * min(s, t)


def test_equal_values_ask_for_hardly_any_noise() -> None:
    grid = Grid(0, 1000)
    mechanism = SmoothMedian(epsilon=2, delta=1e-6, grid=grid)
    assert scale_of(mechanism, (500,) * 2001) == 1  # the smallest s there is, 2 s / epsilon
    assert scale_of(mechanism, (0,) * 5 + (1000,) * 5) >= 1000
    assert scale_of(mechanism, ()) >= 1000


def test_the_bound_is_that_of_the_paper_for_tables_of_one_size() -> None:
    """Nissim, Raskhodnikova and Smith's Proposition 3.4 takes, for k rows replaced, the largest
    step between ranks that are k + 1 apart about the median; ours takes ranks that are at most
    2 k + 2 apart, so that it is no smaller, and its decay is the same."""
    grid = Grid(0, 63)
    mechanism = SmoothMedian(epsilon=1, delta=0.01, grid=grid, moved=2)
    decay = math.log1p(1 / mechanism._m)
    drawn = np.random.default_rng(2)
    for _ in range(20):
        table = np.sort(drawn.integers(0, 64, 21))
        padded = np.concatenate((np.zeros(40), table, np.full(40, 63)))
        middle = 40 + 10
        theirs = max(
            math.exp(-decay * k)
            * max(padded[middle + t] - padded[middle + t - k - 1] for t in range(k + 2))
            for k in range(30)
        )
        ours = float(scale_of(mechanism, tuple(table.tolist()))) / 2
        assert ours >= theirs * (1 - 1e-9)
        assert ours <= 3 * theirs + 1


@pytest.mark.parametrize(("unit", "noise"), [(PERSON, 0.5), (REPLACED, 0.25)], ids=str)
def test_no_pair_of_small_tables_loses_more_than_is_charged(unit: Unit, noise: float) -> None:
    """The median with its noise before the ends of the grid are minded, from the exact law. A
    half of the noise is noticed, or a quarter: replaced rows cost it some sharpness."""
    grid, epsilon, delta = Grid(0, 40), 2, 1e-3
    bounded = column((), grid, unit)
    mechanism = SmoothMedian.for_epsilon(epsilon, delta, bounded)
    places = {0: 0, 1: 20, 2: 40}
    reach = np.arange(-4000, 4041)

    def law(share: float, table: Table) -> Chances:
        spread = tuple(places[place] for place in table)
        scale = float(scale_of(mechanism, spread)) * share
        weights = np.exp(-np.abs(reach - median(spread)) / scale)
        return np.asarray(math.tanh(1 / (2 * scale)) * weights)

    pairs = neighbours(3, 6, unit)
    claim = mechanism.privacy_loss(bounded)
    assert claim.terms == ((accounting.Approximate(epsilon, delta), 1),)

    def beyond(share: float) -> float:
        chances = {table: law(share, table) for table in tables(3, 6)}
        return max(lost(chances[one], chances[other], epsilon) for one, other in pairs)

    assert beyond(1) <= delta
    assert beyond(noise) > delta


@pytest.mark.parametrize("delta", [0.9, 0.5, 0.1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 5])
def test_the_number_m_suffices_and_half_of_it_does_not(epsilon: float, delta: float) -> None:
    """The worst case of `test_the_bound_is_smooth_and_a_bound`: scales differ by a factor 1 + 1/m,
    and medians as far apart as the smaller of the two allows. By the exact law of the noise. Where
    delta is larger or epsilon smaller, the slack of the proof hides a factor of 2."""
    m = SmoothMedian(epsilon=epsilon, delta=delta, grid=GRID)._m
    apart = 200

    def beyond(m: int) -> float:
        scales = 2 * apart / epsilon, 2 * apart / epsilon * (1 + 1 / m)
        reach = np.arange(-int(40 * scales[1]), int(40 * scales[1]))
        near, far = (
            math.tanh(1 / (2 * scale)) * np.exp(-np.abs(reach - middle) / scale)
            for scale, middle in zip(scales, (0, apart), strict=True)
        )
        return max(lost(near, far, epsilon), lost(far, near, epsilon))

    assert beyond(m) <= delta
    if delta <= 1e-6 and epsilon >= 0.5:
        assert beyond(m // 2) > 2 * delta


@pytest.mark.parametrize(
    ("apart", "rows", "moved"), [(1, 401, 1), (7, 100, 2), (0, 60, 1), (40, 11, 1)]
)
def test_the_forecast_is_the_errors_quantile(apart: int, rows: int, moved: int) -> None:
    """Of values that lie just so far apart: the smallest q with |noise| <= q this often, by the
    law's own chances; nearer values have a smaller error."""
    grid = Grid(0, apart * (rows + 1) + 10)
    mechanism = SmoothMedian(epsilon=2, delta=1e-3, grid=grid, moved=moved)
    table = np.arange(1, rows + 1) * apart
    narrow = SmoothMedian(
        epsilon=2, delta=1e-3, grid=Grid(0, max(1, apart * (rows + 1))), moved=moved
    )
    scale = float(narrow._scale(table))
    forecast = int(narrow.error(0.9, apart=apart))
    decay = math.exp(-1 / scale)
    within = 1 - 2 * decay ** (forecast + 1) / (1 + decay)
    before = 1 - 2 * decay**forecast / (1 + decay) if forecast else 0
    assert forecast == narrow.grid.size - 1 or before < 0.9 <= within
    assert mechanism.error(0.9) == grid.upper
    assert mechanism.error(0.9, apart=apart) <= mechanism.error(0.99, apart=apart + 3)


def test_the_smallest_epsilon_for_an_error_is_found() -> None:
    grid = Grid(0, 10**6)
    made = SmoothMedian.for_error(500, 0.95, delta=1e-6, grid=grid, apart=1)
    assert made.error(0.95, apart=1) <= 500
    less = SmoothMedian(epsilon=made.epsilon * Fraction(99, 100), delta=1e-6, grid=grid)
    assert less.error(0.95, apart=1) > 500
    with pytest.raises(InvalidArgument, match="error = 2000000: every value"):
        SmoothMedian.for_error(2_000_000, 0.95, delta=1e-6, grid=grid)
    with pytest.raises(InvalidArgument, match="error = 0: epsilon 1000000"):
        SmoothMedian.for_error(0, 0.95, delta=1e-6, grid=grid, apart=10**5, moved=100)


def test_a_unit_that_moves_more_is_refused() -> None:
    mechanism = SmoothMedian(epsilon=1, delta=1e-6, grid=GRID)
    payer = FakePayer()
    for table in [column((), GRID, REPLACED), column((), GRID, PERSON, 3)]:
        with pytest.raises(InvalidArgument, match="moved = 1: a unit of 'column' changes"):
            release(table, mechanism, payer)
        made = SmoothMedian.for_epsilon(1, 1e-6, table)
        made.privacy_loss(table)
    assert payer.events == []


def test_the_private_scale_is_remembered_nowhere() -> None:
    before = _laws._laplace.cache_info().currsize, _laws._laplace.cache_info().misses
    SmoothMedian(epsilon=1.2345, delta=1e-6, grid=GRID).sample(rows((1, 2), GRID), SeededBits(1))
    assert before == (_laws._laplace.cache_info().currsize, _laws._laplace.cache_info().misses)


def test_nothing_makes_a_draw_fail() -> None:
    for grid in [Grid(3, 3), Grid(0, 2**52 - 1)]:
        mechanism = SmoothMedian(epsilon=1, delta=1e-9, grid=grid, moved=10**30)
        for table in [(), (5,), (0, 2**52)]:
            assert grid.lower <= mechanism.sample(rows(table, grid), SeededBits(1)) <= grid.upper


def test_arguments_that_are_none() -> None:
    wrong: BadValue = None
    with pytest.raises(InvalidArgument, match="delta = 0"):
        SmoothMedian(epsilon=1, delta=0, grid=GRID)
    with pytest.raises(InvalidArgument, match="epsilon = 0"):
        SmoothMedian(epsilon=0, delta=0.1, grid=GRID)
    with pytest.raises(InvalidArgument, match="too small for this median; take Quantile"):
        SmoothMedian(epsilon=1e-4, delta=0.1, grid=GRID)
    with pytest.raises(InvalidArgument, match="moved = 0"):
        SmoothMedian(epsilon=1, delta=0.1, grid=GRID, moved=0)
    with pytest.raises(InvalidArgument, match="give a Grid"):
        SmoothMedian(epsilon=1, delta=0.1, grid=wrong)


def test_a_mechanism_prints_as_code() -> None:
    mechanism = SmoothMedian(epsilon=0.5, delta=1e-6, grid=GRID, moved=2)
    assert eval(repr(mechanism)) == mechanism
