"""A quantile by the exponential mechanism: its law, how long its losses' interval is, its error."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet._unit import Unit
from discreet.accounting import BoundedRange
from discreet.audit import SeededBits
from discreet.mechanisms import Grid
from discreet.mechanisms.quantiles import Quantile, Score
from discreet.mechanisms.quantiles._ranks import stretches
from tests.mechanisms.kit import PERSON
from tests.mechanisms.quantiles.kit import (
    LEVELS,
    REPLACED,
    Table,
    column,
    exponential_law,
    misses,
    neighbours,
    rows,
    widest,
    worst,
)
from tests.noise.walk import BITS, assert_exact, walk, weighted
from tests.tables import one_in

PLACES = 4
GRID = Grid(0, PLACES - 1)

each_score = pytest.mark.parametrize("score", Score, ids=str)
each_level = pytest.mark.parametrize("level", LEVELS, ids=str)


# Its law


TREE_TABLES = [((0, 1, 1, 3, 3),), ((2,),), ((),), ((0, 0, 3, 3),)]


@pytest.mark.parametrize("level", one_in(2, LEVELS[:4]), ids=str)
@pytest.mark.parametrize("table", one_in(2, TREE_TABLES), ids=str)
@each_score
def test_the_tree_of_draws_has_the_law_of_the_exponential_mechanism(
    level: Fraction, table: Table, score: Score, record_property: Callable[[str, object], None]
) -> None:
    mechanism = Quantile(level, scale=Fraction(3, 2), grid=GRID, score=score)
    value = rows(table, GRID)
    missed = misses(table, PLACES, level, score)
    with precision(BITS):
        weights = [ball(-m / mechanism.scale).exp() for m in missed]
        chances = [weight / sum(weights, arb(0)) for weight in weights]
    chance = weighted(1, 1, 1, 1) if len(set(missed)) == 1 else chances.__getitem__
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 4, 4)
    assert_exact(tree, chance, 0.05, record_property)


def test_a_wrong_rate_is_refuted_by_the_same_tree() -> None:
    value = rows((0, 1, 1, 3, 3), GRID)
    mechanism = Quantile(scale=1, grid=GRID)
    chances = exponential_law(Fraction(1, 2), Fraction(2), PLACES)((0, 1, 1, 3, 3))
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 4, 4)
    assert any(float(mass) > chances[place] for place, mass in tree.decided.items())


@each_level
@each_score
def test_stretches_say_what_each_place_misses(level: Fraction, score: Score) -> None:
    drawn = np.random.default_rng(1)
    for count in [0, 1, 2, 5, 30]:
        table = tuple(sorted(drawn.integers(0, 20, count).tolist()))
        sorted_rows = np.array(table, dtype=np.int64)
        found = stretches(sorted_rows, lower=0, upper=19, level=level, score=score)
        spread = np.repeat(found.misses, found.lengths)
        assert found.lengths.min() > 0
        assert found.starts.tolist() == [0, *np.cumsum(found.lengths)[:-1]]
        wanted = [score.parts(level) * miss for miss in misses(table, 20, level, score)]
        assert spread.tolist() == wanted
        assert score is Score.MID_RANK or min(wanted) == 0


def test_the_median_and_the_quartiles_of_a_small_table() -> None:
    """Ages of nine people: which values miss by how much, and so their odds, by hand."""
    ages = (23, 29, 31, 31, 35, 40, 44, 52, 61)
    assert misses(ages, 100, Fraction(1, 2))[35] == 0
    assert misses(ages, 100, Fraction(1, 2))[34] == Fraction(1, 2)
    assert misses(ages, 100, Fraction(1, 2))[31] == Fraction(1, 2)
    assert misses(ages, 100, Fraction(1, 4))[31] == 0
    assert misses(ages, 100, Fraction(1, 4))[30] == Fraction(1, 4)
    assert misses(ages, 100, Fraction(3, 4))[44] == 0
    grid = Grid(0, 99)
    for level, place, odds in [(Fraction(1, 2), 35, 0.5), (Fraction(1, 4), 31, 0.25)]:
        table = column(ages, grid)
        mechanism = Quantile.for_epsilon(1, table, level=level)
        law = exponential_law(level, mechanism.scale, 100)(ages)
        assert law[place] / law[place - 1] == pytest.approx(math.exp(odds / mechanism.scale))
        bits = SeededBits(11)
        value = rows(ages, grid)
        drawn = np.array([mechanism.sample(value, bits) for _ in range(2000)])
        counts = np.bincount(drawn.astype(int), minlength=100)
        assert chi_squared(counts, law) < 250  # 99 freedoms: beyond that with less than 1e-9
        assert chi_squared(counts, exponential_law(level, mechanism.scale / 2, 100)(ages)) > 300


def chi_squared(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


# Its price


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
@each_level
@pytest.mark.parametrize("per_unit", [1, 2])
@each_score
def test_losses_of_small_tables_lie_in_the_interval_that_is_charged(
    level: Fraction, unit: Unit, per_unit: int, score: Score
) -> None:
    scale, grid = Fraction(3, 2) * per_unit, Grid(0, 2)
    mechanism = Quantile(level, scale=scale, grid=grid, score=score)
    claim = mechanism.privacy_loss(column((), grid, unit, per_unit))
    pairs = neighbours(3, 6 if per_unit == 1 else 5, unit, per_unit)
    [(term, _)] = claim.terms
    assert isinstance(term, BoundedRange)
    assert widest(exponential_law(level, scale, 3, score), pairs) <= float(term.eta) + 1e-12


@pytest.mark.parametrize(
    ("level", "unit", "most"),
    [
        (Fraction(1, 2), PERSON, 5),
        (Fraction(3, 4), PERSON, 5),
        (Fraction(1, 2), REPLACED, 5),
        (Fraction(1, 4), REPLACED, 5),
    ],
)
@each_score
def test_the_price_is_reached(level: Fraction, unit: Unit, most: int, score: Score) -> None:
    scale = Fraction(2)
    mechanism = Quantile(level, scale=scale, grid=GRID, score=score)
    claim = mechanism.privacy_loss(column((), GRID, unit))
    law = exponential_law(level, scale, PLACES, score)
    found = widest(law, neighbours(PLACES, most, unit))
    assert found == pytest.approx(claim.epsilon())


# Its error


@pytest.mark.parametrize("level", ["1/2", "1/4", "3/4"])
def test_the_forecast_error_is_met_where_the_rows_are_at_their_worst(
    level: str,
) -> None:
    """All places but one miss by a quarter or half a row more than the forecast, which is drawn as
    seldom as forecast, or so often that 3 % more rows would make it so; a row less is wrong."""
    exact, grid, scale, confidence = Fraction(level), Grid(0, 999), Fraction(10), Fraction(9, 10)
    mechanism = Quantile(exact, scale=scale, grid=grid)
    error = mechanism.error(confidence)
    beyond = error + Fraction(1, exact.denominator)
    table = worst(exact, beyond)
    found = misses(table, 1000, exact)
    assert sorted(set(found)) == [0, beyond]
    assert found.count(Fraction(0)) == 1
    law = exponential_law(exact, scale, 1000)(table)
    missed = 1 - law[found.index(Fraction(0))]
    assert missed <= 1 - confidence
    bits, value = SeededBits(5), rows(table, grid)
    right = grid.value(found.index(Fraction(0)))
    many = 4000
    wrong = sum(mechanism.sample(value, bits) != right for _ in range(many)) / many
    assert abs(wrong - missed) < 6.2 * math.sqrt(missed * (1 - missed) / many)  # 1e-9
    measured = error + float(scale) * math.log(wrong / float(1 - confidence))
    assert measured == pytest.approx(error, rel=0.03)
    less = worst(exact, beyond - 1)
    row_less = exponential_law(exact, scale, 1000)(less)
    assert 1 - row_less[misses(less, 1000, exact).index(Fraction(0))] > 1 - confidence
