"""The densest interval: every place of a grid has its probability, without being visited."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.audit import SeededBits, ZeroNoiseBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, FloatArray, Grid, Rows
from discreet.mechanisms.selection import DensestInterval
from tests.bad_values import BadValue
from tests.mechanisms.kit import lost, number
from tests.noise.walk import assert_exact, assert_refuted, softmax, walk
from tests.tables import one_in

GRID = Grid(0, 5)
HALF = Fraction(1, 2)
REPLACED = Unit.ROW.with_change(Change.REPLACE)


def rows(places: Any, unit: Unit = Unit.ROW, per_unit: int = 1) -> Bounded[Rows]:  # Any: numbers
    return Bounded.rows(
        lambda: np.array(places, float), columns={"x": GRID}, per_unit=per_unit, unit=unit, name="x"
    )


def scores(places: tuple[int, ...], width: int) -> list[int]:
    """By its definition."""
    return [sum(x <= place < x + width for place in places) for x in range(GRID.size)]


def law(places: tuple[int, ...], width: int, rate: float) -> FloatArray:
    weights = np.exp(rate * np.array(scores(places, width)))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("places", [(), (2,), (0, 0, 5, 4), (5, 5, 5)], ids=str)
@pytest.mark.parametrize("width", one_in(2, [1, 2, 5]))
def test_each_place_has_its_probability(places: tuple[int, ...], width: int) -> None:
    bounded = rows(places)
    value, chance = bounded.checked(bounded.compute()), softmax(scores(places, width), HALF)
    mechanism = DensestInterval(GRID, width=width, rate=HALF)
    tree = walk(lambda bits: int(mechanism.sample(value, bits)), 5, 2)
    if len(set(scores(places, width))) > 1:
        assert_exact(tree, chance, 0.6, lambda *_: None)
        wrong = DensestInterval(GRID, width=width, rate=4)
        if places[0] < 5:
            assert_refuted(walk(lambda bits: int(wrong.sample(value, bits)), 5, 2), chance)
    else:
        shares = {mass / (1 - tree.undecided[-1]) for mass in tree.decided.values()}
        assert (len(tree.decided), len(shares)) == (GRID.size, 1)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 5))
def test_the_pieces_are_those_of_the_scores(places: list[int], width: int) -> None:
    mechanism = DensestInterval(GRID, width=width, rate=1)
    starts, found = mechanism._pieces(np.array(places, np.int64))
    lengths = np.diff(starts, append=GRID.size)
    assert np.repeat(found, lengths).tolist() == scores(tuple(places), width)


@pytest.mark.parametrize("unit", [Unit.ROW, REPLACED], ids=str)
def test_neighbours_lose_no_more_than_is_charged(unit: Unit) -> None:
    loss = DensestInterval(GRID, width=2, rate=HALF).privacy_loss(rows((), unit))
    claims = {e: loss.delta(e) for e in (0.0, loss.epsilon() / 2, loss.epsilon())}

    def excess(rate: float) -> float:
        known = {
            table: law(table, 2, rate)
            for size in (2, 3)
            for table in itertools.combinations_with_replacement(range(6), size)
        }
        found = -1.0
        for table in itertools.combinations_with_replacement(range(6), 3):
            for other, chances in known.items():
                if is_neighbour(table, other, unit):
                    for p, q in itertools.permutations([known[table], chances]):
                        found = max(found, *(lost(p, q, e) - c for e, c in claims.items()))
        return found

    assert excess(0.5) <= 1e-12
    assert excess(1.0) > 1e-3  # half the noise is caught


def is_neighbour(table: tuple[int, ...], other: tuple[int, ...], unit: Unit) -> bool:
    ours, theirs = Counter(table), Counter(other)
    gone, new = (ours - theirs).total(), (theirs - ours).total()
    return (gone, new) in ([(1, 0)] if unit is Unit.ROW else [(1, 1), (1, 0)])


def test_privacy_loss_is_the_calibrated_one() -> None:
    for unit, per_unit, eta in [(Unit.ROW, 1, 1), (REPLACED, 1, 2), (Unit("id"), 3, 3)]:
        bounded = rows((), unit, per_unit)
        mechanism = DensestInterval.for_epsilon(0.4, bounded, width=2)
        assert mechanism.privacy_loss(bounded).epsilon() == 0.4
        plain = DensestInterval(GRID, width=2, rate=1).privacy_loss(bounded)
        assert plain == PrivacyLoss.of(BoundedRange(eta), unit=unit)


def test_a_grid_of_2_to_the_40_takes_no_longer() -> None:
    grid = Grid(0, 2**40)
    bounded = Bounded.rows(
        lambda: np.full(3000, 7e11), columns={"x": grid}, unit=Unit.ROW, name="x"
    )
    mechanism = DensestInterval.for_epsilon(0.1, bounded, width=1000)
    drawn = mechanism.sample(bounded.checked(bounded.compute()), SeededBits(1))
    assert 7e11 - 1000 < drawn <= 7e11
    assert mechanism.error(0.95) == math.ceil(math.log(19 * 2**40) / 0.1) - 1
    empty = np.zeros((0, 1), np.int64)
    assert mechanism.sample(Rows((("x", grid),), empty), SeededBits(1)) > 1e9


def test_the_forecast_is_reached_with_the_most_noise() -> None:
    made = DensestInterval.for_error(20, 0.9, GRID, width=1)
    assert made.error(0.9) <= 20
    assert DensestInterval(GRID, width=1, rate=made.rate * Fraction(9, 10)).error(0.9) > 20
    share = law((0,) * 21, 1, float(made.rate))[0]  # one place is 21 rows ahead of all others
    assert 0.9 <= share < 0.91


def test_without_noise_the_densest_is_chosen() -> None:
    bounded = rows((1, 3, 3, 4))
    value = bounded.checked(bounded.compute())
    one, other = (DensestInterval(GRID, width=w, rate=1) for w in (1, 2))
    assert one.sample(value, ZeroNoiseBits()) == 3
    assert other.sample(value, ZeroNoiseBits()) == 3
    assert repr(other) == "DensestInterval(Grid(0, 5), width=2, rate=1)"


@pytest.mark.parametrize("wrong", [0, -1, 6, 0.5, float("nan"), True, "1"], ids=repr)
def test_the_width_is_a_number_of_steps(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="width = "):
        DensestInterval(GRID, width=wrong, rate=1)


def test_the_rows_have_one_column_on_this_grid() -> None:
    mechanism = DensestInterval(GRID, width=1, rate=1)
    with pytest.raises(InvalidArgument, match="rows of one column"):
        mechanism.privacy_loss(number())  # type: ignore[arg-type]
    two = Bounded.rows(
        lambda: np.zeros((1, 2)), columns={"x": GRID, "y": GRID}, unit=Unit.ROW, name="x"
    )
    with pytest.raises(InvalidArgument, match="rows of one column"):
        mechanism.privacy_loss(two)
    with pytest.raises(InvalidArgument, match=r"on Grid\(0, 5\)"):
        DensestInterval(Grid(0, 6), width=1, rate=1).privacy_loss(rows(()))
    for wrong in (Grid(3, 3), 5):
        with pytest.raises(InvalidArgument, match="grid = "):
            DensestInterval(wrong, width=1, rate=1)  # type: ignore[arg-type]
    for bad in (0, -1, float("inf"), True):
        with pytest.raises(InvalidArgument, match="rate = "):
            DensestInterval(GRID, width=1, rate=bad)
