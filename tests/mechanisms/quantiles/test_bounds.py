"""Bounds: which bins count, how seldom a false one does, and what is missed."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet import Ledger, Limit, accounting
from discreet._unit import Unit
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door, Grid, release
from discreet.mechanisms._release import release_through
from discreet.mechanisms.quantiles import ApproximateBounds, Quantile
from discreet.noise import DiscreteLaplaceLaw, SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON
from tests.mechanisms.quantiles.kit import (
    REPLACED,
    Chances,
    Table,
    column,
    neighbours,
    refutation,
    rows,
)

WIDE = Grid(-1000, 1000)


@pytest.mark.parametrize(
    ("values", "grid", "ends"),
    [
        ([0], WIDE, (0, 0)),
        ([1], WIDE, (1, 1)),
        ([5], WIDE, (4, 7)),
        ([-5], WIDE, (-7, -4)),
        ([-5, 1], WIDE, (-7, 1)),
        ([2, 3, 900], WIDE, (2, 1000)),
        ([-1000, -1], WIDE, (-1000, -1)),
        ([-8, 0], WIDE, (-15, 0)),
        ([17], Grid(10, 100), (14, 17)),
        ([10], Grid(10, 100), (10, 10)),
        ([-17], Grid(-100, -10), (-17, -14)),
        ([0.5], Grid(-1, 4, step=0.125), (0.5, 0.875)),
        ([2.0**51], Grid(0, 2**52 - 1), (2**51, 2**52 - 1)),
    ],
)
def test_each_value_lies_in_its_bin(
    values: list[float], grid: Grid, ends: tuple[float, float]
) -> None:
    many = rows(np.repeat(values, 100), grid)
    assert ApproximateBounds(scale=1, grid=grid).sample(many, ZeroNoiseBits()) == ends


def test_bins_cover_the_grid_once() -> None:
    for grid in [Grid(-5, 9), Grid(0, 6), Grid(3, 3), Grid(-7, -2)]:
        mechanism, seen = ApproximateBounds(scale=1, grid=grid), []
        for place in range(grid.size):
            value = rows(np.full(100, grid.value(place)), grid)
            ends = mechanism.sample(value, ZeroNoiseBits())
            assert ends is not None
            assert ends[0] <= grid.value(place) <= ends[1]
            seen.append(ends)
        assert len(set(seen)) == mechanism._bins.size
        for one, other in pairwise(seen):
            assert one == other or one[1] + 1 == other[0]


def test_too_few_rows_are_not_found() -> None:
    mechanism = ApproximateBounds(scale=1, grid=WIDE)
    few = rows(np.full(mechanism.threshold - 1, 7), WIDE)
    enough = rows(np.full(mechanism.threshold, 7), WIDE)
    assert mechanism.sample(few, ZeroNoiseBits()) is None
    assert mechanism.sample(enough, ZeroNoiseBits()) == (4, 7)
    assert mechanism.sample(rows((), WIDE), ZeroNoiseBits()) is None
    with pytest.raises(InvalidArgument, match="spend more on the search"):
        mechanism.narrowed(None)


@pytest.mark.parametrize(("scale", "false_bin"), [("1/3", 0.1), ("2", 0.01), ("40", 0.001)])
def test_the_threshold_is_the_least_for_its_false_bins(scale: str, false_bin: float) -> None:
    mechanism = ApproximateBounds(scale=Fraction(scale), grid=WIDE, false_bin=false_bin)

    def falsely(threshold: int) -> float:
        reached = math.exp(-threshold / mechanism.scale) / (1 + math.exp(-1 / mechanism.scale))
        return 1 - (1 - reached) ** 21  # 10 sizes on either side, and 0

    assert falsely(mechanism.threshold) <= false_bin
    assert mechanism.threshold == 1 or falsely(mechanism.threshold - 1) > false_bin


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_forecast_and_measured_errors_agree(confidence: Fraction) -> None:
    """Of bins with as many rows as forecast, the share that counts, by 100 000 draws: wrong once
    in 1e9; with a row less it is too small."""
    mechanism, many = ApproximateBounds(scale=5, grid=WIDE), 100_000
    error = mechanism.error(confidence)
    noise = DiscreteLaplaceLaw(5).draws(SecureBits(), many)
    slack = 6.2 * math.sqrt(float(confidence * (1 - confidence)) / many)
    assert np.mean(error + noise >= mechanism.threshold) >= float(confidence) - slack
    if confidence > Fraction(1, 2):
        assert np.mean(error - 1 + noise >= mechanism.threshold) < float(confidence) + slack
    found = mechanism.threshold - np.quantile(noise, 1 - float(confidence))
    assert abs(found - error) <= max(1, 0.03 * error)


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_no_pair_of_small_tables_loses_more_than_is_charged(unit: Unit) -> None:
    """The bounds depend only on the bins that count, and these on the noise's tails."""
    grid = Grid(-1, 1)

    def law(scale: float, table: Table) -> Chances:
        chances = np.ones(1)
        for place in (0, 1, 2):
            needed = threshold - table.count(place - 1)
            tail = math.exp(-abs(needed) / scale) / (1 + math.exp(-1 / scale))
            stays = tail if needed > 0 else 1 - tail * math.exp(-1 / scale)
            chances = np.outer(chances, [1 - stays, stays]).ravel()
        return np.asarray(chances)

    mechanism = ApproximateBounds(scale=1, grid=grid, false_bin=0.4)
    threshold = mechanism.threshold
    assert threshold <= 3
    claim = mechanism.privacy_loss(column((), grid, unit))
    pairs = [
        (tuple(x - 1 for x in one), tuple(x - 1 for x in other))
        for one, other in neighbours(3, 5, unit)
    ]
    assert refutation(lambda table: law(1, table), claim, pairs) is None
    assert refutation(lambda table: law(0.5, table), claim, pairs) is not None


def test_privacy_loss_and_a_sum_within_the_bounds() -> None:
    values = np.random.default_rng(1).lognormal(8, 1, 5000)
    wide = column(values, Grid(-(2**40), 2**40))
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    search = ApproximateBounds.for_epsilon(0.2, wide)
    found = release(wide, search, ledger)
    assert found.privacy_loss.terms == ((accounting.DiscreteLaplace(5, 1), 1),)
    narrow = search.narrowed(found.value)
    assert narrow.size < 2**17
    median = release(column(values, narrow), Quantile(scale=2, grid=narrow), ledger)
    assert abs(np.mean(values < median.value) - 0.5) < 0.02
    assert Quantile(scale=2, grid=narrow).error(0.95) < Quantile(
        scale=2, grid=Grid(-(2**40), 2**40)
    ).error(0.95)


def test_a_narrower_grid_lies_on_the_same_values() -> None:
    grid = Grid(-10, 10, step=Fraction(1, 3))
    mechanism = ApproximateBounds(scale=1, grid=grid)
    ends = mechanism.sample(rows(np.repeat([-2.0, 3.0], 200), grid), ZeroNoiseBits())
    assert mechanism.narrowed(ends) == Grid(Fraction(-7, 3), 5, step=Fraction(1, 3))


def test_the_error_wanted_is_the_error_got() -> None:
    made = ApproximateBounds.for_error(100, 0.95, grid=WIDE)
    assert made.error(0.95) == 100
    assert ApproximateBounds(scale=made.scale * Fraction(102, 100), grid=WIDE).error(0.95) > 100
    with pytest.raises(InvalidArgument, match="error = 0: give 1 row or more"):
        ApproximateBounds.for_error(0, 0.95, grid=WIDE)


def test_neighbours_run_alike() -> None:
    """Noise being the same, a row can decide whether a bin counts, and with it the answer's type;
    that is the answer, not its way. These are far from the threshold."""

    def act(door: Door, table: Table) -> object:
        mechanism = ApproximateBounds(scale=1, grid=Grid(0, 100))
        return release_through(door, column(table, Grid(0, 100)), mechanism)

    for seed in range(5):
        replay(act, (50,) * 90, (50,) * 91, seed=seed)


def test_nothing_makes_a_draw_fail() -> None:
    for scale in [Fraction(1, 10**300), Fraction(10**300)]:
        mechanism = ApproximateBounds(scale=scale, grid=WIDE)
        mechanism.sample(rows((1, 2), WIDE), SeededBits(1))


def test_arguments_that_are_none() -> None:
    wrong: BadValue = None
    with pytest.raises(InvalidArgument, match="scale = 0"):
        ApproximateBounds(scale=0, grid=WIDE)
    with pytest.raises(InvalidArgument, match="false_bin = 1"):
        ApproximateBounds(scale=1, grid=WIDE, false_bin=1)
    with pytest.raises(InvalidArgument, match=r"false_bin = .*: give 1e-299 or more"):
        ApproximateBounds(scale=1, grid=WIDE, false_bin=Fraction(1, 10**301))
    with pytest.raises(InvalidArgument, match="give a Grid"):
        ApproximateBounds(scale=1, grid=wrong)
    with pytest.raises(InvalidArgument, match="is on Grid"):
        ApproximateBounds(scale=1, grid=WIDE).privacy_loss(column((), Grid(0, 1)))


def test_a_mechanism_prints_as_code() -> None:
    mechanism = ApproximateBounds(scale=2.5, grid=WIDE, false_bin=0.01)
    assert eval(repr(mechanism)) == mechanism
