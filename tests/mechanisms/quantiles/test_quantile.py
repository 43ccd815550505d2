"""One quantile: its law, its price on all small tables, its error in the worst case."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet import Ledger, Limit
from discreet.accounting import BoundedRange
from discreet.audit import SeededBits, replay
from discreet.errors import BudgetExceeded, InvalidArgument, Refused
from discreet.exact import ball, precision
from discreet.mechanisms import Bounded, Door, Grid, release
from discreet.mechanisms.quantiles import Quantile
from discreet.mechanisms.quantiles.ranks import stretches
from discreet.mechanisms.release import release_through
from discreet.unit import Unit
from tests.mechanisms.kit import PERSON, FakePayer, Wrong, number
from tests.mechanisms.quantiles.kit import (
    REPLACED,
    Law,
    Table,
    column,
    misses,
    neighbours,
    refutation,
    rows,
    softmax,
    tables,
    widest,
)
from tests.noise.walk import BITS, assert_exact, walk, weighted

LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(2, 5), Fraction(9, 10)]
PLACES = 4
GRID = Grid(0, PLACES - 1)

each_level = pytest.mark.parametrize("level", LEVELS, ids=str)
each_unit = pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)


def law_of(level: Fraction, scale: Fraction, places: int = PLACES) -> Law:
    """By its definition."""
    return lambda table: softmax([-float(m / scale) for m in misses(table, places, level)])


# Its law


@pytest.mark.parametrize("level", LEVELS[:4], ids=str)
@pytest.mark.parametrize("table", [(), (2,), (0, 1, 1, 3, 3), (0, 0, 3, 3)], ids=str)
def test_the_tree_of_draws_has_the_law_of_the_exponential_mechanism(
    level: Fraction, table: Table, record_property: Callable[[str, object], None]
) -> None:
    mechanism = Quantile(level, scale=Fraction(3, 2), grid=GRID)
    value = rows(table, GRID)
    missed = misses(table, PLACES, level)
    with precision(BITS):
        weights = [ball(-m / mechanism.scale).exp() for m in missed]
        chances = [weight / sum(weights, arb(0)) for weight in weights]
    chance = weighted(1, 1, 1, 1) if len(set(missed)) == 1 else chances.__getitem__
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 4, 4)
    assert_exact(tree, chance, 0.05, record_property)


def test_a_wrong_rate_is_refuted_by_the_same_tree() -> None:
    value = rows((0, 1, 1, 3, 3), GRID)
    mechanism = Quantile(scale=1, grid=GRID)
    chances = law_of(Fraction(1, 2), Fraction(2))((0, 1, 1, 3, 3))
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 4, 4)
    assert any(float(mass) > chances[place] for place, mass in tree.decided.items())


@each_level
def test_stretches_say_what_each_place_misses(level: Fraction) -> None:
    drawn = np.random.default_rng(1)
    for count in [0, 1, 2, 5, 30]:
        table = tuple(sorted(drawn.integers(0, 20, count).tolist()))
        found = stretches(np.array(table, dtype=np.int64), lower=0, upper=19, level=level)
        spread = np.repeat(found.misses, found.lengths)
        assert found.lengths.min() > 0
        assert found.starts.tolist() == [0, *np.cumsum(found.lengths)[:-1]]
        wanted = [level.denominator * miss for miss in misses(table, 20, level)]
        assert spread.tolist() == wanted
        assert min(wanted) == 0


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
        law = law_of(level, mechanism.scale, 100)(ages)
        assert law[place] / law[place - 1] == pytest.approx(math.exp(odds / mechanism.scale))
        bits = SeededBits(11)
        value = rows(ages, grid)
        drawn = np.array([mechanism.sample(value, bits) for _ in range(2000)])
        counts = np.bincount(drawn.astype(int), minlength=100)
        assert chi_squared(counts, law) < 250  # 99 freedoms: beyond that with less than 1e-9
        assert chi_squared(counts, law_of(level, mechanism.scale / 2, 100)(ages)) > 300


def chi_squared(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


# Its price


@each_unit
@each_level
@pytest.mark.parametrize("per_unit", [1, 2])
def test_no_pair_of_small_tables_loses_more_than_is_charged(
    level: Fraction, unit: Unit, per_unit: int
) -> None:
    pairs = neighbours(3, 6 if per_unit == 1 else 5, unit, per_unit)
    scale = Fraction(3, 2) * per_unit
    grid = Grid(0, 2)
    claim = Quantile(level, scale=scale, grid=grid).privacy_loss(column((), grid, unit, per_unit))
    [(term, count)] = claim.terms
    assert isinstance(term, BoundedRange)
    assert count == 1
    assert widest(law_of(level, scale, 3), pairs) <= float(term.eta) + 1e-12
    assert refutation(law_of(level, scale, 3), claim, pairs) is None
    assert refutation(law_of(level, scale / 2, 3), claim, pairs) is not None  # half the noise


@pytest.mark.parametrize(
    ("level", "unit", "most"),
    [
        (Fraction(1, 2), PERSON, 5),
        (Fraction(3, 4), PERSON, 5),
        (Fraction(1, 2), REPLACED, 5),
        (Fraction(1, 4), REPLACED, 5),
    ],
)
def test_the_price_is_reached(level: Fraction, unit: Unit, most: int) -> None:
    scale = Fraction(2)
    claim = Quantile(level, scale=scale, grid=GRID).privacy_loss(column((), GRID, unit))
    found = widest(law_of(level, scale), neighbours(PLACES, most, unit))
    assert found == pytest.approx(claim.epsilon())


def test_what_it_costs() -> None:
    for level, unit, per_unit, eta in [
        (0.5, PERSON, 1, 0.5),
        (0.9, PERSON, 1, 0.9),
        (0.5, PERSON, 3, 1.5),
        (0.9, REPLACED, 1, 1),
        (0.5, REPLACED, 2, 2),
    ]:
        table = column((), GRID, unit, per_unit)
        loss = Quantile(level, scale=2, grid=GRID).privacy_loss(table)
        assert loss.epsilon() == eta
        assert loss.unit == unit
        made = Quantile.for_epsilon(0.3, table, level=level)
        assert made.privacy_loss(table).epsilon() == 0.3


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
    law = law_of(exact, scale, 1000)(table)
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
    row_less = law_of(exact, scale, 1000)(less)
    assert 1 - row_less[misses(less, 1000, exact).index(Fraction(0))] > 1 - confidence


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
            mechanism = Quantile(level, scale=scale, grid=grid)
            for confidence in [0.5, 0.8, 0.95]:
                error = mechanism.error(confidence)
                for table in tables(3, 6):
                    law = law_of(level, scale, 3)(table)
                    within = np.array([miss <= error for miss in misses(table, 3, level)])
                    assert law[within].sum() >= confidence - 1e-12


def test_the_error_wanted_is_the_error_got() -> None:
    grid = Grid(0, 10_000)
    for level, error in [(0.5, 10), (0.25, 40), (0.9, 0)]:
        made = Quantile.for_error(error, 0.95, grid=grid, level=level)
        assert made.error(0.95) == error
        assert Quantile(level, scale=made.scale * Fraction(101, 100), grid=grid).error(0.95) > error
    with pytest.raises(InvalidArgument, match=r"any scale has it on Grid\(0, 0\)"):
        Quantile.for_error(1, 0.95, grid=Grid(0, 0))


def test_where_there_is_one_place_only_nothing_is_missed() -> None:
    mechanism = Quantile(scale=100, grid=Grid(7, 7))
    assert mechanism.error(0.999) == 0
    assert mechanism.sample(rows((), Grid(7, 7)), SeededBits(1)) == 7


# The door


def test_a_release_tells_its_error() -> None:
    table = column((31, 44, 58), Grid(0, 120))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    mechanism = Quantile.for_epsilon(0.5, table)
    answer = release(table, mechanism, ledger)
    assert 0 <= answer.value <= 120
    assert answer.error(0.95) == mechanism.error(0.95) == 15
    with pytest.raises(BudgetExceeded):
        release(table, Quantile.for_epsilon(0.6, table), ledger)


@pytest.mark.parametrize(
    ("table", "neighbour"),
    [((), (5,)), ((7, 7, 7), (7, 7)), ((1, 2, 3), (1, 2, 3, 9)), ((0, 9), (0,))],
)
def test_neighbours_run_alike(table: Table, neighbour: Table) -> None:
    grid = Grid(0, 9)
    mechanism = Quantile(scale=2, grid=grid)

    def act(door: Door, shown: Table) -> object:
        return release_through(door, column(shown, grid), mechanism)

    for seed in range(5):
        replay(act, table, neighbour, seed=seed)


def test_nothing_makes_a_draw_fail() -> None:
    grid = Grid(0, 2**52 - 1)
    for scale in [Fraction(1, 10**300), Fraction(10**300)]:
        for table in [(), (5,), (0, 2**52 - 1)]:
            for level in [Fraction(1, 10**6), Fraction(1, 2)]:
                mechanism = Quantile(level, scale=scale, grid=grid)
                assert 0 <= mechanism.sample(rows(table, grid), SeededBits(1)) <= 2.0**52


def test_nothing_is_read_of_what_it_does_not_cover() -> None:
    payer = FakePayer()
    other = column((1, 2), Grid(0, 5))
    with pytest.raises(InvalidArgument, match=r"grid = Grid\(0, 3\): 'column' is on Grid\(0, 5\)"):
        release(other, Quantile(scale=1, grid=GRID), payer)
    with pytest.raises(InvalidArgument, match="state rows of one column"):
        Quantile(scale=1, grid=GRID).privacy_loss(Wrong_kind(number()))
    two = Bounded.rows(
        lambda: np.zeros((1, 2)), columns={"x": GRID, "y": GRID}, unit=PERSON, name="two"
    )
    with pytest.raises(InvalidArgument, match="state rows of one column"):
        Quantile.for_epsilon(1, two)
    with pytest.raises(Refused):
        Quantile.for_epsilon(
            1,
            Wrong_kind(Bounded.together(dict, parts=(number().part,), unit=PERSON, name="p")),
        )
    assert payer.events == []


def Wrong_kind(bounded: Wrong) -> Wrong:  # noqa: N802
    return bounded


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, math.nan, True, "1/2", None, 1e-7])
def test_levels_that_are_none(level: Wrong) -> None:
    with pytest.raises(InvalidArgument, match="level = "):
        Quantile(level, scale=1, grid=GRID)


@pytest.mark.parametrize("scale", [0, -1, math.inf, math.nan, True, "1", None])
def test_scales_that_are_none(scale: Wrong) -> None:
    with pytest.raises(InvalidArgument, match="scale = "):
        Quantile(scale=scale, grid=GRID)


def test_other_arguments_that_are_none() -> None:
    table = column((), GRID)
    wrong: Wrong = (0, 3)
    with pytest.raises(InvalidArgument, match="give a Grid"):
        Quantile(scale=1, grid=wrong)
    with pytest.raises(InvalidArgument, match="epsilon = 0"):
        Quantile.for_epsilon(0, table)
    with pytest.raises(InvalidArgument, match="confidence = 1"):
        Quantile(scale=1, grid=GRID).error(1)
    with pytest.raises(InvalidArgument, match="error = -1"):
        Quantile.for_error(-1, 0.95, grid=GRID)


def test_it_is_written_as_in_code() -> None:
    mechanism = Quantile(0.25, scale=2.5, grid=Grid(0, 10, step=0.5))
    assert repr(mechanism) == "Quantile(0.25, scale=2.5, grid=Grid(0, 10, step=0.5))"
    assert eval(repr(mechanism)) == mechanism
