"""Scores of attributes: what they are, how far they move, and that the best are found."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet._unit import Unit
from discreet.audit import SeededBits, replay
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Door, Gaussian, Grid, Rows, release_through
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms.selection import TopK
from discreet.mechanisms.statistics import CHI_SQUARE_STEP, chi_square_scores, difference_scores
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer, number
from tests.mechanisms.statistics.kit import ADDED, BOTH, REPLACED, Table, holds, moves, people

Scores = Callable[..., Bounded[IntegerArray]]
SCORES: list[Scores] = [difference_scores, chi_square_scores]
GENOTYPES = {"case": Grid(0, 1), "one": Grid(0, 2), "two": Grid(0, 1)}


def study(cases: int, controls: int) -> Table:
    """Random genotypes."""
    random = np.random.default_rng(6)
    status = np.r_[np.ones(cases), np.zeros(controls)]
    count = cases + controls
    return np.stack([status, random.integers(0, 3, count), random.integers(0, 2, count)], axis=1)


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize("per_unit", [1, 2])
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize(
    ("cases", "controls", "there"), [(3, 3, (3, 3)), (4, 2, (3, 2)), (1, 5, (2, 6)), (3, 3, (0, 0))]
)
def test_no_unit_moves_a_score_further_than_stated(
    scores: Scores, cases: int, controls: int, there: tuple[int, int], per_unit: int, unit: Unit
) -> None:
    """Whether the declared numbers are those that are there, or more, or fewer."""

    def of(rows: Bounded[Rows]) -> Bounded[IntegerArray]:
        return scores(rows, "case", cases=cases, controls=controls)

    found, bound = moves(GENOTYPES, unit, per_unit, of, study(*there))
    assert holds(found, bound)


def statistic(cases: tuple[int, ...], controls: tuple[int, ...]) -> Fraction:
    """Chi-square by its definition."""
    total = Fraction(0)
    n = sum(cases) + sum(controls)
    for row in (cases, controls):
        for j, count in enumerate(row):
            if column := cases[j] + controls[j]:
                expected = Fraction(sum(row) * column, n)
                total += (count - expected) ** 2 / expected
    return total


def tables(total: int, size: int) -> list[tuple[int, ...]]:
    return [t for t in product(range(total + 1), repeat=size) if sum(t) == total]


@pytest.mark.parametrize(("r", "s"), [(1, 1), (2, 2), (4, 4), (2, 5), (6, 3)])
def test_the_literatures_sensitivity_is_exact(r: int, s: int) -> None:
    """Over all 2 x 3 tables with these margins, one exchange in a group moves chi-square by at
    most N^2 / (R S) (1 - 1 / (max(R, S) + 1)), and by so much; for R = S that is 4 N / (N + 2)."""
    n, worst = r + s, Fraction(0)
    for a, b in product(tables(r, 3), tables(s, 3)):
        for group, (j, k) in product((a, b), product(range(3), repeat=2)):
            if group[j]:
                moved = tuple(c - (i == j) + (i == k) for i, c in enumerate(group))
                other = statistic(moved, b) if group is a else statistic(a, moved)
                worst = max(worst, abs(other - statistic(a, b)))
    assert worst == Fraction(n * n, r * s) * (1 - Fraction(1, max(r, s) + 1))
    if r == s:
        assert worst == Fraction(4 * n, n + 2)
    columns = {"case": Grid(0, 1), "one": Grid(0, 2)}
    bounded = chi_square_scores(people(study(r, s)[:, :2], columns), "case", cases=r, controls=s)
    assert worst / CHI_SQUARE_STEP <= bounded.part.sensitivity.linf <= worst / CHI_SQUARE_STEP + 2


def test_scores_are_what_they_say() -> None:
    data, r, s = study(40, 25), 40, 25
    differences = difference_scores(people(data, GENOTYPES), "case", cases=r, controls=s).compute()
    squares = chi_square_scores(people(data, GENOTYPES), "case", cases=r, controls=s).compute()
    for i, score, square in zip((1, 2), differences, squares, strict=True):
        case, control = (data[data[:, 0] == status][:, i].astype(int) for status in (1, 0))
        means = Fraction(int(case.sum()), r) - Fraction(int(control.sum()), s)
        assert score == abs(means) * 2 * r * s / 5
        counts = (tuple(np.bincount(g, minlength=3).tolist()) for g in (case, control))
        exact = statistic(*counts) / CHI_SQUARE_STEP
        assert exact - 3 < square <= exact


def test_more_or_fewer_than_declared_are_cut_or_filled() -> None:
    columns = {"case": Grid(0, 1), "one": Grid(0, 2)}
    data = np.array([[1, 0], [1, 1], [1, 2], [0, 2]])
    found = chi_square_scores(people(data, columns), "case", cases=2, controls=3).compute()
    exact = statistic((1, 1, 0), (2, 0, 1)) / CHI_SQUARE_STEP  # without a 2, and two 0 more
    assert exact - 3 < found[0] <= exact


def test_sums_are_exact_for_the_finest_grids() -> None:
    columns = {"case": Grid(0, 1), "one": Grid(0, 2**52 - 1)}
    data = np.array([[1.0, 2**52 - 1]] * 9000 + [[0.0, 0.0]] * 9000)
    found = difference_scores(people(data, columns), "case", cases=9000, controls=9000).compute()
    assert found[0] == 18000 * (2**52 - 1)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("unit", BOTH, ids=str)
def test_the_attribute_that_matters_is_found_in_private(scores: Scores, unit: Unit) -> None:
    random, size = np.random.default_rng(9), 1000
    status = np.r_[np.ones(size), np.zeros(size)]
    shares = np.full((2 * size, 50), 0.3)
    shares[:size, 17] = 0.5
    data = np.concatenate([status[:, np.newaxis], random.binomial(2, shares)], axis=1)
    columns = {"case": Grid(0, 1)} | {f"snp{i}": Grid(0, 2) for i in range(50)}
    bounded = scores(people(data, columns, unit), "case", cases=size, controls=size)
    values = bounded.compute()
    assert int(np.argmax(values)) == 17
    top = TopK.for_epsilon(1, bounded, range(50), k=1)
    assert top.privacy_loss(bounded).epsilon() == pytest.approx(1)
    for seed in range(20):
        door = Door(FakePayer(), SeededBits(seed), None)
        assert release_through(door, bounded, top).value == (17,)


def test_replacing_moves_by_one_exchange_in_each_group() -> None:
    columns = {"case": Grid(0, 1), "one": Grid(0, 2)}
    data = study(50, 50)[:, :2]
    both: list[Any] = [
        chi_square_scores(people(data, columns, unit), "case", cases=50, controls=50).part
        for unit in (ADDED, REPLACED)
    ]
    assert both[0].sensitivity.linf == -(-400 * 1024 // 102) + 1
    assert both[1].sensitivity.linf == -(-800 * 1024 // 102) + 3
    linear = difference_scores(people(data, columns, REPLACED), "case", cases=50, controls=50)
    assert linear.part.sensitivity.linf == 4


@pytest.mark.parametrize("unit", BOTH, ids=str)
@pytest.mark.parametrize("scores", SCORES)
def test_nothing_but_the_scores_tells_neighbours_apart(scores: Scores, unit: Unit) -> None:
    def act(door: Door, data: Table) -> object:
        bounded = scores(people(data, GENOTYPES, unit), "case", cases=3, controls=3)
        return release_through(door, bounded, Gaussian(9))

    data = study(3, 2)
    for row in ([0, 0, 0], [1, 2, 1], [np.nan, np.inf, -2]):
        replay(act, data, np.vstack([data if unit is ADDED else data[:-1], [row]]))


@pytest.mark.parametrize("scores", SCORES)
def test_bad_input_is_refused_by_name(scores: Scores) -> None:
    rows = people(study(2, 2), GENOTYPES)
    with pytest.raises(InvalidArgument, match="state rows by"):
        scores(number(), "case", cases=1, controls=1)
    with pytest.raises(InvalidArgument, match="outcome = 'none': give one of"):
        scores(rows, "none", cases=1, controls=1)
    with pytest.raises(InvalidArgument, match=r"it must be on Grid\(0, 1\)"):
        scores(rows, "one", cases=1, controls=1)
    with pytest.raises(InvalidArgument, match="give one of several columns"):
        scores(people(np.zeros(1), {"case": Grid(0, 1)}), "case", cases=1, controls=1)
    wrongs: list[BadValue] = [0, -1, 1.5, float("nan"), True, "3"]
    for wrong in wrongs:
        with pytest.raises(InvalidArgument, match="cases = "):
            scores(rows, "case", cases=wrong, controls=1)
        with pytest.raises(InvalidArgument, match="controls = "):
            scores(rows, "case", cases=1, controls=wrong)


def test_attributes_of_too_many_values_are_refused() -> None:
    columns = {"case": Grid(0, 1), "one": Grid(0, 2**30)}
    with pytest.raises(InvalidArgument, match="take coarser grids"):
        chi_square_scores(people(np.zeros((1, 2)), columns), "case", cases=1, controls=1)
