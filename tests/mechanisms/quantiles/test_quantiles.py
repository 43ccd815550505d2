"""Many quantiles: their joint law, its price on all small tables, what is forecast of them."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from discreet import Ledger, Limit
from discreet._unit import Unit
from discreet.accounting import BoundedRange
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door, Grid, release
from discreet.mechanisms._release import release_through
from discreet.mechanisms.quantiles import Quantile, Quantiles, _quantiles
from discreet.mechanisms.quantiles._break_ties import break_ties, finer
from discreet.mechanisms.quantiles._splits import depth, influences, splits
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
    tables,
    widest,
)
from tests.tables import one_in

Levels = tuple[Fraction, ...]

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
QUARTILES = QUARTER, HALF, 3 * QUARTER
UNEVEN = Fraction(1, 10), HALF, Fraction(9, 10)
OUTER = QUARTER, 3 * QUARTER
SETS = [QUARTILES, UNEVEN, OUTER, (HALF,)]

PLACES, BY = 3, 2
GRID = Grid(0, PLACES - 1)
ORDER = (0, 1)  # of two finer places

each_set = pytest.mark.parametrize("levels", SETS, ids=lambda levels: str(list(map(str, levels))))


@pytest.fixture
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two finer places only, so that all outcomes can be listed."""
    monkeypatch.setattr(_quantiles, "finer", lambda places: BY)


def fine(table: Table) -> Table:
    """The finer places that a table's rows take, by their definition."""
    counted = Counter(table)
    return tuple(p * BY + ORDER[i % BY] for p, many in counted.items() for i in range(many))


def joint(levels: Levels, scale: Fraction) -> Law:
    """The law of the finer places of all levels, by its definition."""
    found = list(itertools.combinations_with_replacement(range(PLACES * BY), len(levels)))
    node = cache(split_law)

    def chance(outcome: Table, here: Table, ends: tuple[int, int], shares: Levels) -> float:
        """``here``: the rows between the ends; ``shares``: from 0 to 1 among them."""
        if not outcome:
            return 1.0
        middle = len(outcome) // 2
        place, share = outcome[middle], shares[middle]
        first = node(here, ends, share, scale)[place - ends[0]]
        lower = tuple(row for row in here if row <= place)
        upper = tuple(row for row in here if row > place)
        below = chance(
            outcome[:middle], lower, (ends[0], place), tuple(s / share for s in shares[:middle])
        )
        rest = tuple((s - share) / (1 - share) for s in shares[middle + 1 :])
        above = chance(outcome[middle + 1 :], upper, (place, ends[1]), rest)
        return float(first * below * above)

    def law(table: Table) -> Chances:
        spread_out = tuple(sorted(fine(table)))
        last = PLACES * BY - 1
        return np.array([chance(outcome, spread_out, (0, last), levels) for outcome in found])

    return cache(law)


def split_law(here: Table, ends: tuple[int, int], share: Fraction, scale: Fraction) -> Chances:
    low, high = ends
    missed = misses(tuple(row - low for row in here), high - low + 1, share)
    own = scale * 2 * max(share, 1 - share)
    return softmax([-float(miss / own) for miss in missed])


# Its law


@pytest.mark.usefixtures("_coarse")
@pytest.mark.parametrize("levels", [QUARTILES, OUTER], ids=["quartiles", "outer"])
@pytest.mark.parametrize(
    "table", one_in(2, [((),), ((1, 1, 1, 1),), ((0, 1, 1, 1, 2, 2, 2),)]), ids=str
)
def test_draws_have_the_joint_law(levels: Levels, table: Table) -> None:
    """By Pearson's statistic, with a false alarm once in 1e9; half the scale is noticed."""
    mechanism = Quantiles(levels, scale=HALF * 3, grid=GRID)
    value, bits = rows(table, GRID), SeededBits(3)
    drawn = Counter(
        tuple(int(answer) for answer in mechanism.sample(value, bits)) for _ in range(1500)
    )

    def statistic(scale: Fraction) -> float:
        chances: Counter[Table] = Counter()
        pairs = itertools.combinations_with_replacement(range(PLACES * BY), len(levels))
        for outcome, chance in zip(pairs, joint(levels, scale)(table), strict=True):
            chances[tuple(place // BY for place in outcome)] += chance
        assert sum(chances.values()) == pytest.approx(1)
        assert set(drawn) <= set(chances)
        expected = {outcome: 1500 * chance for outcome, chance in chances.items()}
        return sum((drawn[o] - many) ** 2 / many for o, many in expected.items())

    assert statistic(mechanism.scale) < 63  # 9 freedoms at most: chi2.isf(1e-9, 9) = 62.6
    if table:
        assert statistic(mechanism.scale / 2) > 63


# Its price


@each_set
@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
@pytest.mark.parametrize("per_unit", [1, 2])
def test_no_pair_of_small_tables_loses_more_than_is_charged(
    levels: Levels, unit: Unit, per_unit: int
) -> None:
    pairs = neighbours(PLACES, 5 - per_unit, unit, per_unit)
    scale = Fraction(2) * per_unit
    claim = Quantiles(levels, scale=scale, grid=GRID).privacy_loss(column((), GRID, unit, per_unit))
    [(term, count)] = claim.terms
    assert isinstance(term, BoundedRange)
    assert count == (1 if len(levels) == 1 else 2)
    assert refutation(joint(levels, scale), claim, pairs) is None
    eta = float(term.eta)
    assert widest_generation(levels, joint(levels, scale), pairs) <= eta + 1e-12
    assert widest_generation(levels, joint(levels, scale / 2), pairs) > eta  # half the noise


def widest_generation(levels: Levels, law: Law, pairs: list[tuple[Table, Table]]) -> float:
    """The longest interval that the privacy losses of the first split span, or of all splits after
    it given its place."""
    outcomes = list(itertools.combinations_with_replacement(range(PLACES * BY), len(levels)))
    first = np.array([outcome[len(levels) // 2] for outcome in outcomes])

    def of_the_first(table: Table) -> Chances:
        return np.bincount(first, weights=law(table)).astype(np.float64)

    found = [widest(of_the_first, pairs)]
    for place in range(PLACES * BY):
        at_it = first == place
        found.append(widest(lambda table, at_it=at_it: law(table)[at_it], pairs))  # type: ignore[misc]
    return max(found)


def test_the_price_of_a_generation_is_reached() -> None:
    for unit, eta in [(PERSON, 0.5), (REPLACED, 1)]:
        found = widest_generation(QUARTILES, joint(QUARTILES, Fraction(2)), neighbours(3, 5, unit))
        assert found == pytest.approx(eta)


def test_privacy_loss() -> None:
    for many, generations in [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (99, 7)]:
        levels = tuple(Fraction(i, many + 1) for i in range(1, many + 1))
        assert depth(levels) == generations
        table = column((), GRID, PERSON, 2)
        loss = Quantiles(levels, scale=4, grid=GRID).privacy_loss(table)
        assert loss.terms == ((BoundedRange(HALF), generations),)
        for unit in (PERSON, REPLACED):
            table = column((), GRID, unit)
            made = Quantiles.for_epsilon(0.3, table, levels=levels)
            assert made.privacy_loss(table).epsilon() == 0.3


def test_one_level_is_a_quantile_in_price() -> None:
    table = column((), GRID)
    one = Quantiles((0.5,), scale=3, grid=GRID)
    assert one.privacy_loss(table) == Quantile(scale=3, grid=GRID).privacy_loss(table)


def test_a_row_is_in_one_split_of_each_generation() -> None:
    levels = tuple(Fraction(i, 12) for i in range(1, 12))
    found = splits(levels)
    assert sorted(split.number for split in found) == list(range(11))
    for row in range(12):  # it lies above the first `row` levels
        on_its_way = [
            split
            for split in found
            if (split.below is None or split.below < row)
            and (split.above is None or split.above >= row)
        ]
        assert len(on_its_way) <= depth(levels)


# Equal values


def test_a_row_more_takes_one_finer_place_more() -> None:
    for by in [1, 2, 8]:
        for one, other in neighbours(3, 5, PERSON):
            few, more = sorted((one, other), key=len)
            gained = Counter(break_ties(np.array(more, np.int64), by).tolist())
            before = Counter(break_ties(np.array(few, np.int64), by).tolist())
            assert sum((gained - before).values()) == len(more) - len(few)
            assert not before - gained


def test_finer_places_are_filled_evenly() -> None:
    assert break_ties(np.full(5, 3, np.int64), 8).tolist() == [24, 25, 26, 28, 30]
    assert break_ties(np.array([1, 0, 1], np.int64), 2).tolist() == [0, 2, 3]
    assert break_ties(np.zeros(4, np.int64), 2).tolist() == [0, 0, 1, 1]
    many = break_ties(np.zeros(1 << 16, np.int64), 1 << 16)
    assert many.tolist() == list(range(1 << 16))


@pytest.mark.parametrize("size", [1, 2, 1000, 1 << 46, 1 << 52])
def test_finer_places_stay_in_int64(size: int) -> None:
    assert size * finer(size) <= 1 << 62
    assert finer(size) == (1 << 16 if size <= 1 << 46 else 1 << 10)


def test_a_single_value_is_every_quantile() -> None:
    grid = Grid(0, 10_000)
    value = rows(np.full(3000, 4321), grid)
    mechanism = Quantiles(QUARTILES, scale=2, grid=grid)
    assert mechanism.sample(value, SeededBits(1)).tolist() == [4321] * 3


def test_answers_rise_even_without_rows() -> None:
    grid = Grid(0, 5)
    mechanism = Quantiles([i / 20 for i in range(1, 20)], scale=5, grid=grid)
    bits = SeededBits(2)
    for table in [(), (5, 5), (0, 3)]:
        drawn = mechanism.sample(rows(table, grid), bits)
        assert np.all(np.diff(drawn) >= 0)
        assert drawn.shape == (19,)


# Its error


def test_how_much_splits_add_to_others() -> None:
    assert influences(splits(QUARTILES)) == {
        1: {1: 1},
        0: {0: 1, 1: HALF},
        2: {2: 1, 1: HALF},
    }
    assert influences(splits(OUTER)) == {1: {1: 1}, 0: {0: 1, 1: Fraction(1, 3)}}


@pytest.mark.usefixtures("_coarse")
@each_set
def test_no_small_table_misses_more_often_than_forecast(levels: Levels) -> None:
    scale = Fraction(1, 4)
    mechanism = Quantiles(levels, scale=scale, grid=GRID)
    outcomes = itertools.combinations_with_replacement(range(PLACES * BY), len(levels))
    places = np.array(list(outcomes)) // BY
    for confidence in [0.5, 0.9]:
        error = mechanism.error(confidence)
        for table in tables(PLACES, 6):
            if max(Counter(table).values(), default=0) > BY:
                continue
            law = joint(levels, scale)(table)
            for i, level in enumerate(levels):
                within = np.array(misses(table, PLACES, level))[places[:, i]] <= error
                assert law[within].sum() >= confidence - 1e-12


@pytest.mark.parametrize(
    "table",
    [
        np.repeat([0, 999], [600, 200]),
        np.repeat([0, 500, 999], [50, 700, 50]),
        np.arange(800) % 1000,
        np.random.default_rng(1).integers(0, 1000, 800),
    ],
    ids=["ends", "one value", "even", "random"],
)
def test_the_forecast_holds_on_tables_of_many_kinds(table: np.ndarray) -> None:
    """300 draws, the forecast at 99 %: more than 28 beyond it come once in 1e9 cases or less."""
    grid = Grid(0, 999)
    mechanism = Quantiles(UNEVEN, scale=2, grid=grid)
    error, value, bits = mechanism.error(0.99), rows(table, grid), SeededBits(8)
    ordered = np.sort(table)
    beyond = np.zeros(3)
    for _ in range(300):
        for i, answer in enumerate(mechanism.sample(value, bits)):
            below, up_to = (
                np.searchsorted(ordered, answer),
                np.searchsorted(ordered, answer, "right"),
            )
            target = float(UNEVEN[i]) * table.size
            beyond[i] += max(below - target, target - up_to) > error
    assert beyond.max() <= 28


def test_the_error_wanted_is_the_error_got() -> None:
    grid = Grid(0, 1000)
    made = Quantiles.for_error(100, 0.95, grid=grid, levels=QUARTILES)
    assert made.error(0.95) <= 100
    assert Quantiles(QUARTILES, scale=made.scale * 2, grid=grid).error(0.95) > 100
    assert Quantiles.for_error(4, 0.95, grid=grid, levels=QUARTILES).error(0.95) <= 4
    with pytest.raises(InvalidArgument, match="error = 3: give at least a row more than levels"):
        Quantiles.for_error(3, 0.95, grid=grid, levels=QUARTILES)


# The door


def test_a_release_is_stored_and_read_back() -> None:
    table = column((31, 44, 58), Grid(0, 120))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    mechanism = Quantiles.for_epsilon(1, table, levels=QUARTILES)
    answer = release(table, mechanism, ledger, request="r")
    again = release(table, mechanism, ledger, request="r")
    assert answer.value.tolist() == again.value.tolist()
    assert answer.error(0.9) == mechanism.error(0.9)


@pytest.mark.parametrize(("table", "neighbour"), [((), (5,)), ((7, 7, 7), (7, 7)), ((0, 9), (0,))])
def test_neighbours_run_alike(table: Table, neighbour: Table) -> None:
    grid = Grid(0, 9)
    mechanism = Quantiles(QUARTILES, scale=2, grid=grid)

    def act(door: Door, shown: Table) -> object:
        return release_through(door, column(shown, grid), mechanism)

    replay(act, table, neighbour, seed=1)


@pytest.mark.parametrize(
    "levels",
    [(), (0.5, 0.5), (0.5, 0.25), 0.5, "1/2", (0, 0.5), (0.5, math.nan), None, (0.001, 1 / 1009)],
)
def test_levels_that_are_none(levels: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="level"):
        Quantiles(levels, scale=1, grid=GRID)


def test_other_arguments_that_are_none() -> None:
    wrong: BadValue = [0, 1]
    with pytest.raises(InvalidArgument, match="scale = 0"):
        Quantiles(QUARTILES, scale=0, grid=GRID)
    with pytest.raises(InvalidArgument, match="give a Grid"):
        Quantiles(QUARTILES, scale=1, grid=wrong)
    with pytest.raises(InvalidArgument, match="is on Grid"):
        Quantiles(QUARTILES, scale=1, grid=Grid(0, 9)).privacy_loss(column((), GRID))
    with pytest.raises(InvalidArgument, match="epsilon = inf"):
        Quantiles.for_epsilon(math.inf, column((), GRID), levels=QUARTILES)


def test_a_mechanism_prints_as_code() -> None:
    mechanism = Quantiles((0.5,), scale=2.5, grid=GRID)
    assert eval(repr(mechanism)) == mechanism
