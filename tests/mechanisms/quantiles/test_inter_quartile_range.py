"""The inter-quartile range: two quartiles, their price and their common error."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet._unit import Unit
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door, Grid
from discreet.mechanisms._release import release_through
from discreet.mechanisms.quantiles import InterQuartileRange
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON
from tests.mechanisms.quantiles.kit import (
    REPLACED,
    Chances,
    Law,
    Table,
    column,
    misses,
    neighbours,
    refutation,
    rows,
    softmax,
)

QUARTERS = Fraction(1, 4), Fraction(3, 4)
GRID = Grid(0, 3)


def law_of(scale: Fraction, places: int = 4) -> Law:
    """The law of both quartiles, by its definition."""

    def law(table: Table) -> Chances:
        low, high = (
            softmax([-float(miss / scale) for miss in misses(table, places, level)])
            for level in QUARTERS
        )
        return np.asarray(np.outer(low, high).ravel())

    return law


def test_draws_have_the_law_of_two_quartiles() -> None:
    """By Pearson's statistic, with a false alarm once in 1e9; half the scale is noticed."""
    table, scale = (0, 0, 1, 2, 3, 3, 3), Fraction(2)
    mechanism, bits = InterQuartileRange(scale=scale, grid=GRID), SeededBits(3)
    drawn = Counter(int(mechanism.sample(rows(table, GRID), bits)) for _ in range(1500))
    low, high = np.divmod(np.arange(16), 4)

    def statistic(scale: Fraction) -> float:
        chances = np.bincount(np.maximum(high - low, 0), weights=law_of(scale)(table))
        counts = np.array([drawn[i] for i in range(4)])
        return float(((counts - 1500 * chances) ** 2 / (1500 * chances)).sum())

    assert statistic(scale) < 46  # 3 freedoms: chi2.isf(1e-9, 3) = 45
    assert statistic(scale / 2) > 46


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_no_pair_of_small_tables_loses_more_than_is_charged(unit: Unit) -> None:
    pairs = neighbours(3, 5, unit)
    mechanism = InterQuartileRange(scale=Fraction(3), grid=Grid(0, 2))
    claim = mechanism.privacy_loss(column((), Grid(0, 2), unit))
    assert refutation(law_of(Fraction(3), 3), claim, pairs) is None
    assert refutation(law_of(Fraction(3, 2), 3), claim, pairs) is not None


def test_privacy_loss() -> None:
    for unit, epsilon in [(PERSON, 1), (REPLACED, Fraction(4, 3))]:
        loss = InterQuartileRange(scale=3, grid=GRID).privacy_loss(column((), GRID, unit))
        assert loss.epsilon() == pytest.approx(float(epsilon))
        made = InterQuartileRange.for_epsilon(0.5, column((), GRID, unit))
        assert made.privacy_loss(column((), GRID, unit)).epsilon() == 0.5


def test_the_forecast_error_is_met_where_the_rows_are_at_their_worst() -> None:
    """Half the rows at either end: then both quartiles miss by as much or not at all."""
    grid, scale, confidence = Grid(0, 299), Fraction(2), Fraction(4, 5)
    mechanism = InterQuartileRange(scale=scale, grid=grid)
    error = mechanism.error(confidence)
    each = 2 * error + Fraction(1, 2)
    for half in range(int(each), int(each) + 3):
        table = (0,) * half + (299,) * half
        missed = [max(misses(table, 300, level)) for level in QUARTERS]
        assert missed[0] == missed[1]
        law = law_of(scale, 300)(table).reshape(300, 300)
        right = law[0, 299]
        if missed[0] > error:
            assert right >= float(confidence)
    bits, value = SeededBits(1), rows(table, grid)
    found = sum(mechanism.sample(value, bits) == 299 for _ in range(3000)) / 3000
    assert found == pytest.approx(right, abs=6.2 * math.sqrt(right * (1 - right) / 3000))  # 1e-9
    measured = error + float(scale) * math.log((1 - math.sqrt(found)) / (1 - math.sqrt(right)))
    assert measured == pytest.approx(error, rel=0.03)
    less = (0,) * (half - 4) + (299,) * (half - 4)
    assert max(misses(less, 300, QUARTERS[0])) <= error
    assert law_of(scale, 300)(less).reshape(300, 300)[0, 299] < float(confidence)


def test_the_error_wanted_is_the_error_got() -> None:
    made = InterQuartileRange.for_error(25, 0.95, grid=Grid(0, 1000))
    assert made.error(0.95) == 25
    more = InterQuartileRange(scale=made.scale * Fraction(101, 100), grid=made.grid)
    assert more.error(0.95) > 25


def test_a_single_value_has_no_range() -> None:
    grid = Grid(0, 100, step=0.5)
    mechanism = InterQuartileRange(scale=1, grid=grid)
    assert mechanism.sample(rows(np.full(500, 40), grid), SeededBits(1)) == 0
    value = rows(np.repeat([10, 70], 300), grid)
    assert mechanism.sample(value, SeededBits(1)) == 60


def test_neighbours_run_alike() -> None:
    def act(door: Door, table: Table) -> object:
        mechanism = InterQuartileRange(scale=2, grid=GRID)
        return release_through(door, column(table, GRID), mechanism)

    replay(act, (1, 2, 3), (1, 2, 3, 3))
    replay(act, (), (1,))


def test_arguments_that_are_none() -> None:
    wrong: BadValue = None
    with pytest.raises(InvalidArgument, match="scale = 0"):
        InterQuartileRange(scale=0, grid=GRID)
    with pytest.raises(InvalidArgument, match="give a Grid"):
        InterQuartileRange(scale=1, grid=wrong)
    with pytest.raises(InvalidArgument, match="is on Grid"):
        InterQuartileRange(scale=1, grid=Grid(0, 9)).privacy_loss(column((), GRID))
    with pytest.raises(InvalidArgument, match="confidence = nan"):
        InterQuartileRange(scale=1, grid=GRID).error(math.nan)


def test_a_mechanism_prints_as_code() -> None:
    mechanism = InterQuartileRange(scale=2.5, grid=GRID)
    assert eval(repr(mechanism)) == mechanism
