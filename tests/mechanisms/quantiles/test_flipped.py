"""A quantile by permute-and-flip: its law, its price on all small tables, its worst error."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet import Ledger, Limit
from discreet.accounting import ReportNoisyMax
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.exact import precision
from discreet.mechanisms import Door, Grid, release
from discreet.mechanisms.quantiles import PermuteAndFlipQuantile, Quantile
from discreet.mechanisms.release import release_through
from discreet.unit import Unit
from tests.mechanisms.kit import PERSON, FakePayer, Wrong, number
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
    tables,
)
from tests.noise.walk import BITS, assert_exact, permute_and_flip_law, walk

LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(2, 5)]
PLACES = 4
GRID = Grid(0, PLACES - 1)

each_level = pytest.mark.parametrize("level", LEVELS, ids=str)
each_unit = pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)


def flips(powers: Chances) -> Chances:
    """p_i times the integral over t in [0, 1] of all other 1 - t p_j: at their own times, uniform,
    all candidates are visited."""
    found = []
    for i, power in enumerate(powers):
        none = np.polynomial.Polynomial([1.0])
        for other in np.delete(powers, i):
            none *= np.polynomial.Polynomial([1.0, -other])
        found.append(power * none.integ()(1.0))
    return np.array(found)


def law_of(level: Fraction, scale: Fraction, places: int = PLACES) -> Law:
    """By its definition."""

    def law(table: Table) -> Chances:
        return flips(np.exp([-float(m / scale) for m in misses(table, places, level)]))

    return law


# Its law


@pytest.mark.parametrize("level", LEVELS[:2], ids=str)
@pytest.mark.parametrize("table", [(2,), (0, 1, 1, 3, 3)], ids=str)
def test_the_tree_of_draws_has_the_law_of_permute_and_flip(
    level: Fraction, table: Table, record_property: Callable[[str, object], None]
) -> None:
    mechanism = PermuteAndFlipQuantile(level, scale=Fraction(3, 2), grid=GRID)
    value, missed = rows(table, GRID), misses(table, PLACES, level)
    each = permute_and_flip_law([-m for m in missed], 1 / mechanism.scale)
    with precision(BITS):
        chances = [each(place) for place in range(PLACES)]
    assert [float(chance) for chance in chances] == pytest.approx(
        law_of(level, mechanism.scale)(table)
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
        expected = 3000 * law_of(level, Fraction(4), 40)(table)
        return float(((np.bincount(drawn, minlength=40) - expected) ** 2 / expected).sum())

    assert distance(Fraction(4)) < 145
    assert distance(Fraction(2)) > 300


def test_it_is_never_farther_off_on_average_than_the_exponential_mechanism() -> None:
    """McKenna and Sheldon's Theorem, on all small tables."""
    for level in LEVELS:
        for table in tables(3, 5):
            missed = np.array([float(m) for m in misses(table, 3, level)])
            flipped, weighed = law_of(level, Fraction(1), 3)(table), softmax((-missed).tolist())
            assert flipped @ missed <= weighed @ missed + 1e-12


# Its price


@each_unit
@each_level
@pytest.mark.parametrize("per_unit", [1, 2])
def test_no_pair_of_small_tables_loses_more_than_is_charged(
    level: Fraction, unit: Unit, per_unit: int
) -> None:
    pairs = neighbours(3, 6 if per_unit == 1 else 5, unit, per_unit)
    scale, grid = Fraction(3, 2) * per_unit, Grid(0, 2)
    mechanism = PermuteAndFlipQuantile(level, scale=scale, grid=grid)
    claim = mechanism.privacy_loss(column((), grid, unit, per_unit))
    [(term, count)] = claim.terms
    assert isinstance(term, ReportNoisyMax)
    assert count == 1
    assert refutation(law_of(level, scale, 3), claim, pairs) is None
    assert refutation(law_of(level, scale / 2, 3), claim, pairs) is not None  # half the noise


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


def test_what_it_costs() -> None:
    for level, unit, per_unit, epsilon in [
        (0.5, PERSON, 1, 0.5),
        (0.9, PERSON, 1, 0.9),
        (0.5, PERSON, 3, 1.5),
        (0.9, REPLACED, 1, 1),
        (0.5, REPLACED, 2, 2),
    ]:
        table = column((), GRID, unit, per_unit)
        loss = PermuteAndFlipQuantile(level, scale=2, grid=GRID).privacy_loss(table)
        assert loss.epsilon() == epsilon
        assert loss.unit == unit
        made = PermuteAndFlipQuantile.for_epsilon(0.3, table, level=level)
        assert made.privacy_loss(table).epsilon() == 0.3


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


def worst(level: Fraction, miss: Fraction) -> Table:
    """Rows at both ends, so that one end misses nothing and all the rest by so much: with E rows
    at 0 and G at the top, by E - level (E + G)."""
    wanted = int(miss * level.denominator)
    for top in range(level.denominator):
        bottom, rest = divmod(wanted + level.numerator * top, level.denominator - level.numerator)
        if not rest:
            return (0,) * bottom + (999,) * top
    raise AssertionError


def test_no_small_table_misses_more_often_than_forecast() -> None:
    grid = Grid(0, 2)
    for level in LEVELS:
        for scale in [Fraction(1, 2), Fraction(1), Fraction(3)]:
            mechanism = PermuteAndFlipQuantile(level, scale=scale, grid=grid)
            for confidence in [0.5, 0.8, 0.95]:
                error = mechanism.error(confidence)
                assert error <= Quantile(level, scale=scale, grid=grid).error(confidence)
                for table in tables(3, 6):
                    law = law_of(level, scale, 3)(table)
                    within = np.array([miss <= error for miss in misses(table, 3, level)])
                    assert law[within].sum() >= confidence - 1e-12


def test_the_error_wanted_is_the_error_got() -> None:
    grid = Grid(0, 10_000)
    for level, error in [(0.5, 10), (0.25, 40), (0.9, 0)]:
        made = PermuteAndFlipQuantile.for_error(error, 0.95, grid=grid, level=level)
        assert made.error(0.95) == error
        noisier = made.scale * Fraction(101, 100)
        assert PermuteAndFlipQuantile(level, scale=noisier, grid=grid).error(0.95) > error
    for confidence, narrow in [(0.95, Grid(0, 0)), (0.3, Grid(0, 2)), (0.5, Grid(0, 1))]:
        with pytest.raises(InvalidArgument, match="any scale has it on Grid"):
            PermuteAndFlipQuantile.for_error(1, confidence, grid=narrow)
    PermuteAndFlipQuantile.for_error(1, 0.34, grid=Grid(0, 2))


def test_where_there_is_one_place_only_nothing_is_missed() -> None:
    mechanism = PermuteAndFlipQuantile(scale=100, grid=Grid(7, 7))
    assert mechanism.error(0.999) == 0
    assert mechanism.sample(rows((), Grid(7, 7)), SeededBits(1)) == 7


# The door


def test_a_release_tells_its_error() -> None:
    table = column((31, 44, 58), Grid(0, 120))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    mechanism = PermuteAndFlipQuantile.for_epsilon(0.5, table)
    answer = release(table, mechanism, ledger)
    assert 0 <= answer.value <= 120
    assert answer.error(0.95) == mechanism.error(0.95) == 14


@pytest.mark.parametrize(
    ("table", "neighbour"),
    [((), (5,)), ((7, 7, 7), (7, 7)), ((1, 2, 3), (1, 2, 3, 9)), ((0, 9), (0,))],
)
def test_neighbours_run_alike(table: Table, neighbour: Table) -> None:
    grid = Grid(0, 9)
    mechanism = PermuteAndFlipQuantile(scale=2, grid=grid)

    def act(door: Door, shown: Table) -> object:
        return release_through(door, column(shown, grid), mechanism)

    for seed in range(5):
        replay(act, table, neighbour, seed=seed)


def test_without_noise_it_ends_and_misses_nothing() -> None:
    for table in list(tables(4, 4))[1:]:
        grid = Grid(0, 2**52 - 1, step=1)
        value = rows(tuple(3**20 * place for place in table), grid)
        mechanism = PermuteAndFlipQuantile(scale=1, grid=grid)
        found = mechanism.sample(value, ZeroNoiseBits())
        below, above = np.mean(value.column() < found), np.mean(value.column() > found)
        assert max(below, above) <= 0.5
    assert PermuteAndFlipQuantile(scale=1, grid=grid).sample(rows((), grid), ZeroNoiseBits()) == 0


def test_nothing_makes_a_draw_fail() -> None:
    grid = Grid(0, 2**52 - 1)
    for scale in [Fraction(1, 10**300), Fraction(10**300)]:
        for table in [(), (5,), (0, 2**52 - 1)]:
            for level in [Fraction(1, 10**6), Fraction(1, 2)]:
                mechanism = PermuteAndFlipQuantile(level, scale=scale, grid=grid)
                assert 0 <= mechanism.sample(rows(table, grid), SeededBits(1)) <= 2.0**52
                assert mechanism.error(0.95) >= 0


def test_nothing_is_read_of_what_it_does_not_cover() -> None:
    payer, wrong = FakePayer(), number()
    other: Wrong = wrong
    with pytest.raises(InvalidArgument, match=r"grid = Grid\(0, 3\): 'column' is on Grid\(0, 5\)"):
        release(column((1, 2), Grid(0, 5)), PermuteAndFlipQuantile(scale=1, grid=GRID), payer)
    with pytest.raises(InvalidArgument, match="state rows of one column"):
        PermuteAndFlipQuantile(scale=1, grid=GRID).privacy_loss(other)
    assert payer.events == []


def test_arguments_that_are_none() -> None:
    table, wrong = column((), GRID), (0, 3)
    grid: Wrong = wrong
    for level in (0, 1, math.nan, True, "1/2", 1e-7):
        number_or_not: Wrong = level
        with pytest.raises(InvalidArgument, match="level = "):
            PermuteAndFlipQuantile(number_or_not, scale=1, grid=GRID)
    for scale in (0, -1, math.inf, math.nan, True, "1", None):
        scale_or_not: Wrong = scale
        with pytest.raises(InvalidArgument, match="scale = "):
            PermuteAndFlipQuantile(scale=scale_or_not, grid=GRID)
    with pytest.raises(InvalidArgument, match="give a Grid"):
        PermuteAndFlipQuantile(scale=1, grid=grid)
    with pytest.raises(InvalidArgument, match="epsilon = 0"):
        PermuteAndFlipQuantile.for_epsilon(0, table)
    with pytest.raises(InvalidArgument, match="confidence = 1"):
        PermuteAndFlipQuantile(scale=1, grid=GRID).error(1)
    with pytest.raises(InvalidArgument, match="error = -1"):
        PermuteAndFlipQuantile.for_error(-1, 0.95, grid=GRID)


def test_it_is_written_as_in_code() -> None:
    mechanism = PermuteAndFlipQuantile(0.25, scale=2.5, grid=Grid(0, 10, step=0.5))
    assert eval(repr(mechanism)) == mechanism
