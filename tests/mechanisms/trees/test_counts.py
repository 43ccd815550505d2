"""A histogram's tree: its levels, their price, and the counts that fit them best."""

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from discreet._exact import ball, fraction, precision
from discreet._unit import Change
from discreet.accounting import PrivacyLoss
from discreet.audit import SeededBits, ZeroNoiseBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    IntegerArray,
    Sensitivity,
    release_through,
)
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._release import Release
from discreet.mechanisms.trees import TreeCounts, TreeLevels, TreeNoise, consistent
from discreet.mechanisms.trees._counts import _histogram, _least_squares
from discreet.noise import SecureBits
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, FakePayer, number, silent_door
from tests.noise.walk import discrete_laplace

INT64 = np.iinfo(np.int64)
NOISES: list[TreeNoise] = [DiscreteLaplace(2), Gaussian(3), DiscreteGaussian(3)]


def histogram(
    counts: Any = None, length: int = 5, change: Change = Change.ADD_REMOVE, **norms: int
) -> Bounded[Any]:
    values = np.arange(length) if counts is None else counts
    return Bounded(
        lambda: values,
        sensitivity=Sensitivity(**(norms or {"l1": 1}), length=len(values)),
        unit=PERSON.with_change(change),
        name="ages",
        shape=(len(values),),
    )


def levels_of(counts: Any, branching: int) -> TreeLevels:
    return TreeCounts(DiscreteLaplace(1), branching=branching).sample(counts, ZeroNoiseBits())


@pytest.mark.parametrize("branching", [2, 3, 10])
@pytest.mark.parametrize("length", [1, 2, 5, 9, 100])
def test_each_level_sums_the_one_below(branching: int, length: int) -> None:
    counts = np.arange(length) ** 2
    levels = levels_of(counts, branching)
    sizes = TreeCounts(DiscreteLaplace(1), branching=branching).sizes(length)
    assert [level.size for level in levels] == sizes
    assert levels[-1].tolist() == counts.tolist()
    assert levels[0].tolist() == [counts.sum()]
    for above, below in pairwise(levels):
        parts = [below[i : i + branching].sum() for i in range(0, below.size, branching)]
        assert above.tolist() == parts


def test_sums_beyond_int64_stay_at_its_ends_and_nothing_else_shows() -> None:
    big = np.array([INT64.max, INT64.max, INT64.min, -5])
    assert levels_of(big, 2)[1].tolist() == [INT64.max, INT64.min]
    assert levels_of(big, 2)[0].tolist() == [int(INT64.max) - 1 - 5 - 0]
    huge = np.array([2**80, -(2**90)], dtype=object)
    for values in (big, huge, np.zeros(3, np.int64)):
        assert {level.dtype for level in levels_of(values, 2)} == {np.dtype(np.int64)}


@pytest.mark.parametrize("end", [INT64.min, INT64.max], ids=["min", "max"])
@pytest.mark.parametrize("share", [1, 2, 3])
def test_no_sum_wraps_round(end: int, share: int) -> None:
    """A sum that wraps round would jump by 2^64 when one unit moves it by 1."""
    counts = np.full(9, int(end) // share)
    for level, parts in zip(levels_of(counts, 3), (9, 3, 1), strict=True):
        exact = parts * (int(end) // share)
        assert set(level.tolist()) == {max(int(INT64.min), min(exact, int(INT64.max)))}


# Price


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_a_tree_costs_what_its_levels_do(noise: TreeNoise) -> None:
    """One unit in one bin: each level is as sensitive as the counts."""
    loss = TreeCounts(noise, branching=2).privacy_loss(histogram())
    assert loss == 4 * noise.privacy_loss(number())


def test_upper_levels_gather_what_a_unit_moves() -> None:
    """Two counts moved by 1 each may be one sum moved by 2."""
    loss = TreeCounts(Gaussian(3), branching=2).privacy_loss(histogram(l0=2, linf=1))
    by_level = [2, 4, 4, 4]
    exact = [Gaussian(3).privacy_loss(histogram(l2_squared=square)) for square in by_level]
    assert loss == sum(exact, PrivacyLoss(unit=PERSON))


@pytest.mark.parametrize("change", Change)
@pytest.mark.parametrize("branching", [2, 3])
def test_no_neighbour_of_a_small_universe_loses_more(change: Change, branching: int) -> None:
    """All tables of up to two units in four bins: the exact privacy loss of the tree's sums, each
    place's worst ratio being reached, against the claim; half the noise is found out."""
    scale = Fraction(3)
    l1 = 1 if change is Change.ADD_REMOVE else 2
    bounded = histogram(length=4, change=change, l1=l1, linf=1)
    claimed = fraction(
        TreeCounts(DiscreteLaplace(scale), branching=branching).privacy_loss(bounded).epsilon()
    )
    tables = [
        np.bincount(rows, minlength=4) for n in range(3) for rows in product(range(4), repeat=n)
    ]
    worst = Fraction(0)
    for one, other in product(tables, repeat=2):
        moved = np.abs(one - other).sum()
        is_near = (
            moved == 1 if change is Change.ADD_REMOVE else (moved == 2 and one.sum() == other.sum())
        )
        if is_near:
            levels = zip(levels_of(one, branching), levels_of(other, branching), strict=True)
            worst = max(worst, sum(Fraction(int(np.abs(a - b).sum())) for a, b in levels) / scale)
    assert worst <= claimed + Fraction(1, 10**12)
    assert 2 * worst > claimed
    chance = discrete_laplace(scale)
    with precision(128):  # what a place loses is its move over the scale
        assert abs((chance(0) / chance(1)).log() - ball(1 / scale)) < 1e-30


def of_units(places: tuple[int, ...], bins: int) -> IntegerArray:
    """The counts of units, each in one of the bins or, at the last place, in none."""
    return np.bincount(places, minlength=bins + 1)[:bins]


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("total", [0, 1])
def test_replaced_units_move_the_total_by_less(total: int, branching: int) -> None:
    """All tables of two units in six bins, one of them replaced; of total 1, units that are in no
    bin too. The exact loss is what is claimed; and each level moves no further than is said."""
    bins, scale = 6, 3
    bounded = histogram(length=bins, change=Change.REPLACE, l1=2, linf=1)
    tree = TreeCounts(DiscreteLaplace(scale), branching=branching, total=total)
    stated = list(tree._sensitivities(_histogram(bounded)))
    if total == 0:
        stated.append(Sensitivity(l1=0))
    worst = moved = 0
    for before, after, other in product(range(bins + total), repeat=3):
        pair = (of_units((place, other), bins) for place in (before, after))
        levels = [levels_of(counts, branching)[::-1] for counts in pair]
        moves = [np.abs(a - b) for a, b in zip(*levels, strict=True)]
        for move, level in zip(moves, stated, strict=True):
            assert move.sum() <= level.l1
            assert move.max() <= level.linf
            assert (move**2).sum() <= level.l2_squared
        worst = max(worst, sum(int(move.sum()) for move in moves))
        moved = max(moved, int(moves[-1].sum()))
    assert moved == total
    assert tree.privacy_loss(bounded).epsilon() >= worst / scale - 1e-12
    if total == 0:
        assert tree.privacy_loss(bounded).epsilon() == pytest.approx(worst / scale)
    plain = TreeCounts(DiscreteLaplace(scale), branching=branching).privacy_loss(bounded)
    assert tree.privacy_loss(bounded).epsilon() < plain.epsilon()
    made = TreeCounts.for_epsilon(1, bounded, branching=branching, total=total)
    assert made.privacy_loss(bounded).epsilon() == 1
    as_moved = TreeCounts.for_epsilon(1, bounded, branching=branching)
    assert made.error(0.9) < as_moved.error(0.9)


def test_calibration_meets_its_target() -> None:
    for l1 in (1, 3):
        for epsilon in (0.1, 1, 3):
            bounded = histogram(length=50, l1=l1)
            tree = TreeCounts.for_epsilon(epsilon, bounded, branching=4)
            assert tree.privacy_loss(bounded).epsilon() == epsilon
    tree = TreeCounts.for_error(20, 0.9)
    assert tree.error(0.9) <= 20


@pytest.mark.parametrize("change", Change)
def test_neighbours_draw_and_show_alike(change: Change) -> None:
    def act(door: Any, counts: Any) -> object:
        return release_through(door, histogram(counts), TreeCounts(Gaussian(2), branching=2)).value

    replay(act, np.array([3, 0, 0, 1, 7]), np.array([3, 0, 1, 1, 7]))


# Consistency


def released(counts: Any, tree: TreeCounts) -> Release[TreeLevels]:
    return release_through(silent_door(FakePayer()), histogram(counts), tree)


def test_without_noise_nothing_changes() -> None:
    counts = np.array([3, 0, 0, 1, 7])
    answer = consistent(released(counts, TreeCounts(DiscreteLaplace(2), branching=2)))
    assert answer.value == pytest.approx(counts)


def matrix(length: int, branching: int) -> Any:
    """Which counts each sum adds up, row by row."""
    columns = [
        np.concatenate(levels_of(np.eye(length, dtype=np.int64)[i], branching))
        for i in range(length)
    ]
    return np.array(columns).T


@pytest.mark.parametrize("branching", [2, 3, 16])
@pytest.mark.parametrize("length", [1, 2, 5, 11, 16])
def test_the_counts_are_those_of_least_squares(branching: int, length: int) -> None:
    """By the normal equations, on noise of any kind."""
    sums = matrix(length, branching)
    noisy = np.random.default_rng(1).normal(size=sums.shape[0]) * 100
    sizes = TreeCounts(DiscreteLaplace(1), branching=branching).sizes(length)
    levels = tuple(np.split(noisy, np.cumsum(sizes)[:-1]))
    best = np.linalg.lstsq(sums, noisy, rcond=None)[0]
    assert _least_squares(levels, branching) == pytest.approx(best)


@pytest.mark.parametrize("branching", [2, 4])
def test_a_ranges_forecast_is_the_linear_models_and_the_measured_one(branching: int) -> None:
    tree, length = TreeCounts(DiscreteLaplace(5), branching=branching), 21
    sums = matrix(length, branching)
    inverse, spread = np.linalg.inv(sums.T @ sums), tree.noise.stddev_of_noise()
    for first, stop in ((0, 21), (3, 4), (2, 17)):
        among = np.zeros(length)
        among[first:stop] = 1
        exact = spread * math.sqrt(among @ inverse @ among)
        assert tree.stddev_of_range(first, stop, length=length) == pytest.approx(exact)
    weights = sums @ inverse @ among
    drawn = tree.noise.law.draws(SecureBits(), (100_000, weights.size)) @ weights
    assert np.std(drawn) == pytest.approx(exact, rel=0.03)


def test_consistency_makes_long_ranges_better_than_adding_counts() -> None:
    bounded = histogram(length=1024)
    tree = TreeCounts.for_epsilon(1, bounded)
    flat = DiscreteLaplace.for_epsilon(1, bounded)
    adding = flat.stddev_of_noise() * math.sqrt(500)
    assert tree.stddev_of_range(100, 600, length=1024) < adding * 0.75


def test_loss_and_receipt_stay() -> None:
    before = released(np.arange(5), TreeCounts(DiscreteLaplace(2), branching=2))
    after = consistent(before)
    assert (after.privacy_loss, after.receipt) == (before.privacy_loss, before.receipt)
    assert after.processing == ("least squares on the tree",)
    with pytest.raises(InvalidArgument, match="unprocessed"):
        consistent(after)  # type: ignore[arg-type]  # that is the test
    plain = release_through(silent_door(FakePayer()), histogram(), DiscreteLaplace(2))
    with pytest.raises(InvalidArgument, match="unprocessed"):
        consistent(plain)


# Bad input


@pytest.mark.parametrize("wrong", [0, 1, -1, 1.5, True, "2", None])
def test_a_branching_is_a_whole_number_of_2_or_more(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="branching"):
        TreeCounts(DiscreteLaplace(1), branching=wrong)


def test_other_noise_and_other_computations_are_refused() -> None:
    tree = TreeCounts(DiscreteLaplace(1))
    with pytest.raises(InvalidArgument, match="noise"):
        TreeCounts(5)  # type: ignore[arg-type]  # that is the test
    square: Bounded[Any] = Bounded(list, sensitivity=1, unit=PERSON, name="s", shape=(2, 2))
    empty: Bounded[Any] = Bounded(list, sensitivity=1, unit=PERSON, name="s", shape=(0,))
    keys = Bounded.keys(dict, per_unit=1, unit=PERSON, name="k")
    wrong: list[Bounded[Any]] = [number(), square, empty, keys]
    for bounded in wrong:
        with pytest.raises(InvalidArgument, match=r"dimension|integers"):
            tree.privacy_loss(bounded)
    for first, stop in ((-1, 2), (2, 2), (0, 6), (True, 3)):
        with pytest.raises(InvalidArgument, match="first"):
            tree.stddev_of_range(first, stop, length=5)


def test_the_noise_is_the_laws_own() -> None:
    for noise in NOISES:
        tree = TreeCounts(noise, branching=2)
        levels = tree.sample(np.zeros(3, np.int64), SeededBits(4))
        bits = SeededBits(4)
        alone = [noise.sample(np.zeros(n, np.int64), bits) for n in (1, 2, 3)]
        assert [level.tolist() for level in levels] == [level.tolist() for level in alone]
