"""A quantile by permute-and-flip: its law, what it costs beside `Quantile`, its worst error."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet._exact import precision
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Grid
from discreet.mechanisms.quantiles import PermuteAndFlipQuantile, Quantile, Score
from tests.mechanisms.quantiles.kit import (
    LEVELS,
    Table,
    column,
    exponential_law,
    flip_law,
    misses,
    rows,
    tables,
    worst,
)
from tests.noise.walk import BITS, assert_exact, permute_and_flip_law, walk
from tests.tables import one_in

PLACES = 4
GRID = Grid(0, PLACES - 1)


# Its law


@pytest.mark.parametrize(
    "level", [LEVELS[0], pytest.param(LEVELS[1], marks=pytest.mark.long)], ids=str
)
@pytest.mark.parametrize("table", one_in(2, [((0, 1, 1, 3, 3),), ((2,),)]), ids=str)
@pytest.mark.parametrize("score", Score, ids=str)
def test_the_tree_of_draws_has_the_law_of_permute_and_flip(
    level: Fraction, table: Table, score: Score, record_property: Callable[[str, object], None]
) -> None:
    mechanism = PermuteAndFlipQuantile(level, scale=Fraction(3, 2), grid=GRID, score=score)
    value, missed = rows(table, GRID), misses(table, PLACES, level, score)
    each = permute_and_flip_law([-m for m in missed], 1 / mechanism.scale)
    with precision(BITS):
        chances = [each(place) for place in range(PLACES)]
    assert [float(chance) for chance in chances] == pytest.approx(
        flip_law(level, mechanism.scale, PLACES, score)(table)
    )
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 4, 3)
    assert_exact(tree, chances.__getitem__, 0.4, record_property)


def test_frequencies_fit_and_half_the_scale_does_not() -> None:
    """3000 draws among 40 places, by chi-squared with 39 freedoms: beyond 145 once in 10^9."""
    grid, level = Grid(0, 39), Fraction(1, 4)
    table = tuple(np.random.default_rng(2).integers(0, 40, 25).tolist())
    value, bits = rows(table, grid), SeededBits(5)

    def distance(scale: Fraction) -> float:
        mechanism = PermuteAndFlipQuantile(level, scale=scale, grid=grid)
        drawn = [int(mechanism.sample(value, bits)) for _ in range(3000)]
        expected = 3000 * flip_law(level, Fraction(4), 40)(table)
        return float(((np.bincount(drawn, minlength=40) - expected) ** 2 / expected).sum())

    assert distance(Fraction(4)) < 145
    assert distance(Fraction(2)) > 300


def test_mean_errors_are_never_above_those_of_the_exponential_mechanism() -> None:
    """McKenna and Sheldon's Theorem, on all small tables."""
    for level in LEVELS:
        for table in tables(3, 5):
            missed = np.array([float(m) for m in misses(table, 3, level)])
            flipped = flip_law(level, Fraction(1), 3)(table)
            weighed = exponential_law(level, Fraction(1), 3)(table)
            assert flipped @ missed <= weighed @ missed + 1e-12


# Its price


def test_the_price_is_nearly_reached_where_there_are_many_places() -> None:
    """One row at place 0 above a million rows less than there: of the places between the ends,
    all but one miss as much, and a row more takes them nearer and the one farther off."""
    scale, many = Fraction(4), 10**6
    claim = PermuteAndFlipQuantile(scale=scale, grid=Grid(0, many)).privacy_loss(
        column((), Grid(0, many))
    )
    far, near = 40, 30  # rows that the one place at the end, and those between, miss

    def chance(end: float, between: float) -> float:
        t = (np.arange(10**6) + 0.5) / 10**6
        powers = math.exp(-end / float(scale)), math.exp(-between / float(scale))
        return powers[0] * float(((1 - t) * np.exp(many * np.log1p(-t * powers[1]))).mean())

    loss = math.log(chance(far - 0.5, near + 0.5) / chance(far, near))
    assert 0.9 * claim.epsilon() < loss <= claim.epsilon()


def test_one_alone_costs_as_much_as_the_other_and_many_cost_more() -> None:
    table = column((), GRID)
    flipped = PermuteAndFlipQuantile.for_epsilon(0.1, table).privacy_loss(table)
    weighed = Quantile.for_epsilon(0.1, table).privacy_loss(table)
    assert flipped.epsilon() == weighed.epsilon()
    assert (100 * flipped).epsilon(1e-6) > 1.5 * (100 * weighed).epsilon(1e-6)


# Its error


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 4)], ids=str)
def test_the_forecast_error_is_met_where_the_rows_are_at_their_worst(level: Fraction) -> None:
    """All places but one miss by a quarter or half a row more than the forecast. That one of them
    is drawn is as likely as forecast, and by 100 000 draws of permute-and-flip in NumPy, wrong once
    in 10^9; with a row less it is likelier than was allowed, and 3 % more rows are too many."""
    grid, scale, confidence, many = Grid(0, 999), Fraction(10), Fraction(9, 10), 100_000
    mechanism = PermuteAndFlipQuantile(level, scale=scale, grid=grid)
    error = mechanism.error(confidence)
    beyond = error + Fraction(1, level.denominator)
    table = worst(level, beyond)
    found = misses(table, 1000, level)
    assert sorted(set(found)) == [0, beyond]
    assert found.count(Fraction(0)) == 1

    def missed(miss: Fraction) -> float:
        power = math.exp(-float(miss / scale))
        return 1 - -math.expm1(1000 * math.log1p(-power)) / (1000 * power)

    assert missed(beyond) <= 1 - confidence < missed(beyond - 1)
    taken = np.random.default_rng(4).binomial(999, math.exp(-float(beyond / scale)), many)
    wrong = float((taken / (taken + 1)).mean())  # the choice is even among those that are taken
    slack = 6.2 * math.sqrt(wrong * (1 - wrong) / many)
    assert abs(wrong - missed(beyond)) < slack
    least = 0.97 * error
    assert missed(Fraction(least)) > 1 - confidence
    bits, value, right = SeededBits(5), rows(table, grid), grid.value(found.index(Fraction(0)))
    draws = np.mean([mechanism.sample(value, bits) != right for _ in range(2000)])
    assert abs(float(draws) - missed(beyond)) < 6.2 * math.sqrt(wrong * (1 - wrong) / 2000)


def test_errors_are_never_above_those_of_the_exponential_mechanism() -> None:
    for level in LEVELS:
        for scale in [Fraction(1, 2), Fraction(1), Fraction(3)]:
            flipped = PermuteAndFlipQuantile(level, scale=scale, grid=Grid(0, 2))
            weighed = Quantile(level, scale=scale, grid=Grid(0, 2))
            for confidence in [0.5, 0.8, 0.95]:
                assert flipped.error(confidence) <= weighed.error(confidence)


def test_no_scale_is_found_where_any_will_do() -> None:
    for confidence, narrow in [(0.3, Grid(0, 2)), (0.5, Grid(0, 1))]:
        with pytest.raises(InvalidArgument, match="any scale has it on Grid"):
            PermuteAndFlipQuantile.for_error(1, confidence, grid=narrow)
    PermuteAndFlipQuantile.for_error(1, 0.34, grid=Grid(0, 2))


def test_without_noise_it_ends_and_misses_nothing() -> None:
    for table in list(tables(4, 4))[1:]:
        grid = Grid(0, 2**52 - 1, step=1)
        value = rows(tuple(3**20 * place for place in table), grid)
        mechanism = PermuteAndFlipQuantile(scale=1, grid=grid)
        found = mechanism.sample(value, ZeroNoiseBits())
        below, above = np.mean(value.column() < found), np.mean(value.column() > found)
        assert max(below, above) <= 0.5
    assert PermuteAndFlipQuantile(scale=1, grid=grid).sample(rows((), grid), ZeroNoiseBits()) == 0
