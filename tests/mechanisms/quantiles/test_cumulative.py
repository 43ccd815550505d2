"""Cumulative counts: their law, how sums stray, and what rising does to them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import accounting
from discreet._unit import Unit
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Door, Grid
from discreet.mechanisms._release import release_through
from discreet.mechanisms.quantiles import Cumulative
from discreet.mechanisms.quantiles._cumulative import isotonic
from discreet.mechanisms.quantiles._partial_sums import most_strayed
from discreet.noise import DiscreteLaplaceLaw, SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, number
from tests.mechanisms.quantiles.kit import REPLACED, Table, column, neighbours, refutation, rows

GRID = Grid(0, 9)
EDGES = 0, 2, 5, 9


def test_without_noise_it_counts() -> None:
    value = rows((0, 1, 2, 4, 4, 9, 9), GRID)
    assert Cumulative(EDGES, scale=3).sample(value, ZeroNoiseBits()).tolist() == [2, 5, 7]
    assert Cumulative((3, 4), scale=3).sample(value, ZeroNoiseBits()).tolist() == [2]


def test_the_noise_is_that_of_independent_counts() -> None:
    """Where no sum can fall the answers are the sums of what the law draws with the same words."""
    value = rows(np.repeat(np.arange(10), 1000), GRID)
    for seed in range(20):
        drawn = Cumulative(EDGES, scale=3).sample(value, SeededBits(seed))
        noise = DiscreteLaplaceLaw(3).draws(SeededBits(seed), 3)
        counted = noise + np.array([2000, 3000, 5000])
        assert drawn.tolist() == np.cumsum(counted).tolist()


@pytest.mark.parametrize("unit", [PERSON, REPLACED], ids=str)
def test_no_pair_of_small_tables_loses_more_than_is_charged(unit: Unit) -> None:
    """The noisy counts, of which all else is a function: two bins, noise up to 30 in size."""
    scale = Fraction(3, 2)
    claim = Cumulative((0, 1, 2), scale=scale).privacy_loss(column((), Grid(0, 1), unit))

    def law(scale: Fraction, table: Table) -> np.ndarray:
        reach = np.arange(-30, 31)
        each = [np.exp(-np.abs(reach - table.count(place)) / float(scale)) for place in (0, 1)]
        one, other = (math.tanh(float(1 / (2 * scale))) * weights for weights in each)
        return np.asarray(np.outer(one, other).ravel())

    pairs = neighbours(2, 4, unit)
    assert refutation(lambda table: law(scale, table), claim, pairs) is None
    assert refutation(lambda table: law(scale / 2, table), claim, pairs) is not None


def test_privacy_loss() -> None:
    table = column((), GRID, REPLACED, 2)
    made = Cumulative.for_epsilon(0.5, table, edges=EDGES)
    assert made.scale == 8
    assert made.privacy_loss(table).terms == ((accounting.DiscreteLaplace(8, 4), 1),)


# Its error


@pytest.mark.parametrize(("scale", "bins"), [("1/2", 5), ("3", 1), ("10", 12), ("2.5", 60)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20)])
def test_forecast_and_measured_errors_agree(scale: str, bins: int, confidence: Fraction) -> None:
    """100 000 draws where no noisy sum falls: the forecast is the quantile of the farthest sum, by
    a two-sided test that is wrong once in 1e9; a row less would be too little."""
    law, many = DiscreteLaplaceLaw(Fraction(scale)), 100_000
    error = Cumulative(range(bins + 1), scale=Fraction(scale)).error(confidence)
    noise = law.draws(SecureBits(), (many, bins))
    farthest = np.abs(np.cumsum(noise, axis=1)).max(axis=1)
    slack = 6.2 * math.sqrt(float(confidence * (1 - confidence)) / many)
    assert np.mean(farthest <= error) >= float(confidence) - slack
    assert np.mean(farthest <= error - 1) < float(confidence) + slack
    measured = np.quantile(farthest, float(confidence))
    assert abs(measured - error) <= max(1, 0.03 * error)


def test_how_sums_stray_is_exact_for_one_and_two_noises() -> None:
    for scale in [Fraction(1, 3), Fraction(2), Fraction(7)]:
        reach = np.arange(-400, 401)
        mass = math.tanh(float(1 / (2 * scale))) * np.exp(-np.abs(reach) / float(scale))
        for failure in [Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**6)]:
            width = most_strayed(scale, 1, failure)
            inside = [mass[np.abs(reach) <= w].sum() for w in (width, width - 1)]
            assert inside[0] >= 1 - failure > inside[1] - 1e-12
            width = most_strayed(scale, 2, failure)
            both = [
                sum(
                    mass[first + 400] * mass[np.abs(reach + first) <= w].sum()
                    for first in range(-w, w + 1)
                )
                for w in (width, width - 1)
            ]
            assert both[0] >= 1 - failure > both[1] - 1e-12


def test_large_scales_are_rounded_to_the_safe_side() -> None:
    at_128 = most_strayed(Fraction(128), 20, Fraction(1, 20))
    for times in [3, 1000, 10**15, 10**400]:
        found = Fraction(most_strayed(Fraction(128 * times), 20, Fraction(1, 20)), times)
        assert at_128 * Fraction(99, 100) <= found <= at_128 * Fraction(102, 100)
    for tiny in [Fraction(1, 10**9), Fraction(1, 10**999)]:
        assert most_strayed(tiny, 5, Fraction(1, 20)) == 0
    with pytest.raises(InvalidArgument, match=r"at most 1 - 10\^-9"):
        Cumulative(EDGES, scale=1).error(1 - Fraction(1, 10**10))


def test_rising_numbers_are_the_nearest_that_rise() -> None:
    assert isotonic([1, 2, 3]).tolist() == [1, 2, 3]
    assert isotonic([3, 1]).tolist() == [2, 2]
    assert isotonic([1, 5, 3, 4, 9, 0]).tolist() == [1, 4, 4, 4, 4.5, 4.5]
    drawn = np.random.default_rng(4)
    for _ in range(50):
        given = drawn.integers(-20, 20, 7)
        found = isotonic(given.tolist())
        assert np.all(np.diff(found) >= 0)
        distance = np.sum((found - given) ** 2)
        for _ in range(50):
            other = np.sort(found + drawn.normal(0, 1, 7))
            assert np.sum((other - given) ** 2) >= distance


def test_rising_never_takes_the_farthest_number_farther() -> None:
    drawn = np.random.default_rng(5)
    for _ in range(300):
        truth = np.sort(drawn.integers(0, 30, 12))
        noisy = truth + drawn.integers(-15, 16, 12)
        answer = np.maximum(isotonic(noisy.tolist()), 0)
        assert np.abs(answer - truth).max() <= np.abs(noisy - truth).max() + 1e-12


def test_the_error_wanted_is_the_error_got() -> None:
    made = Cumulative.for_error(50, 0.95, edges=EDGES)
    assert made.error(0.95) == 50
    assert Cumulative(EDGES, scale=made.scale * Fraction(102, 100)).error(0.95) > 50


# The door


def test_neighbours_run_alike() -> None:
    def act(door: Door, table: Table) -> object:
        return release_through(door, column(table, GRID), Cumulative(EDGES, scale=2))

    for seed in range(5):
        replay(act, (1, 2, 3), (1, 2, 3, 9), seed=seed)
        replay(act, (), (1,), seed=seed)


def test_nothing_makes_a_draw_fail() -> None:
    value = rows((1, 2), GRID)
    for scale in [Fraction(1, 10**300), Fraction(10**300)]:
        drawn = Cumulative(EDGES, scale=scale).sample(value, SeededBits(1))
        assert np.all(np.isfinite(drawn))


def test_arguments_that_are_none() -> None:
    counts: BadValue = number()
    with pytest.raises(InvalidArgument, match="edges"):
        Cumulative((1, 0), scale=1)
    with pytest.raises(InvalidArgument, match="scale = -1"):
        Cumulative(EDGES, scale=-1)
    with pytest.raises(InvalidArgument, match="state rows of one column"):
        Cumulative(EDGES, scale=1).privacy_loss(counts)
    with pytest.raises(InvalidArgument, match="epsilon = 0"):
        Cumulative.for_epsilon(0, column((), GRID), edges=EDGES)


def test_a_mechanism_prints_as_code() -> None:
    mechanism = Cumulative((0, 0.5, 1), scale=2.5)
    assert eval(repr(mechanism)) == mechanism
