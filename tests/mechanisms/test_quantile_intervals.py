"""Quantiles with intervals: they hold what they state for any rows, and groups share one price."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet._unit import Change, Unit
from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Grid, Rows
from discreet.mechanisms.quantiles import Quantile, QuantileIntervals
from tests.mechanisms.statistics.kit import at_most
from tests.tables import one_in

DRAWS, FEW = 1_000, 300
FALSE_ALARM = 1e-9


def missed_by_none(values: list[int], level: Fraction, grid: Grid) -> tuple[float, float]:
    """The least and the largest value of the grid that miss the level by 0, by its definition."""
    found = [
        place
        for place in range(grid.size)
        if sum(v < place for v in values) <= level * len(values) <= sum(v <= place for v in values)
    ]
    return grid.value(found[0]), grid.value(found[-1])


@pytest.mark.parametrize("level", one_in(2, [Fraction(1, 2), Fraction(1, 10), Fraction(99, 100)]))
@pytest.mark.parametrize(
    "values",
    [[], [7], [0] * 30 + [99] * 30, [99] * 200, [0] * 200, list(range(0, 100, 2)) * 4],
    ids=["none", "one", "two ends", "top", "bottom", "spread"],
)
def test_the_interval_holds_the_quantile(values: list[int], level: Fraction) -> None:
    """At the stated confidence or more, for rows at their worst: not refuted at 1e-9."""
    grid, confidence = Grid(0, 99), Fraction(3, 4)
    mechanism = QuantileIntervals(level, scale=3, grid=grid, confidence=confidence)
    low, high = missed_by_none(values, level, grid)
    rows, bits = Rows((("x", grid),), np.array(values, np.int64).reshape(-1, 1)), SeededBits(5)
    drawn = np.array([mechanism.sample(rows, bits)[0] for _ in range(FEW)])
    held = int(((drawn[:, 1] <= low) & (high <= drawn[:, 2])).sum())
    assert at_most(held, FEW) >= confidence
    assert (drawn[:, 1] <= drawn[:, 0]).all()
    assert (drawn[:, 0] <= drawn[:, 2]).all()


def test_padding_is_needed() -> None:
    """With half of the padding, the intervals of rows at both ends hold too rarely."""
    grid, values = Grid(0, 99), [0] * 100 + [99] * 100
    mechanism = QuantileIntervals(scale=3, grid=grid, confidence=Fraction(9, 10))
    loose = QuantileIntervals(scale=3, grid=grid, confidence=Fraction(1, 10))
    assert loose.padding < mechanism.padding * 0.75
    low, high = missed_by_none(values, Fraction(1, 2), grid)
    rows, bits = Rows((("x", grid),), np.array(values, np.int64).reshape(-1, 1)), SeededBits(5)
    held = 0
    for _ in range(DRAWS):
        _, lower, upper = loose.sample(rows, bits)[0]
        held += lower <= low and high <= upper
    assert at_most(held, DRAWS) < Fraction(9, 10)


@pytest.mark.parametrize("change", list(Change))
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 10)])
def test_the_price_covers_the_exact_law_of_groups(change: Change, level: Fraction) -> None:
    """Two groups of a small table, and every neighbour in which one row comes, goes or moves."""
    grid, groups = Grid(0, 2), Grid(0, 1)
    mechanism = QuantileIntervals(level, scale=2, grid=grid, confidence=0.5, groups=2)
    bounded = Bounded.rows(
        lambda: np.zeros((0, 2)),
        columns={"group": groups, "x": grid},
        unit=Unit("id", change),
        name="rows",
    )
    epsilon = mechanism.privacy_loss(bounded).epsilon()
    one = [(0, 0), (0, 2), (1, 1)]
    if change is Change.REPLACE:
        others = [[*one[:2], row] for row in itertools.product((0, 1), (0, 1, 2))]
        others += [[row, *one[1:]] for row in itertools.product((0, 1), (0, 1, 2))]
    else:
        others = [one[:2], one[1:], *([*one, row] for row in itertools.product((0, 1), (0, 1, 2)))]
    worst = max(farthest(mechanism, one, other) for other in others)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= epsilon / 4  # the price is not far from what is attained


def farthest(
    mechanism: QuantileIntervals, one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> float:
    """The largest privacy loss between two tables: draws are independent, so that of each adds."""
    total = 0.0
    for group in range(mechanism.groups):
        for law in (value_law, low_law, high_law):
            p = law(mechanism, [x for g, x in one if g == group])
            q = law(mechanism, [x for g, x in other if g == group])
            total += max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True))
    return total


def value_law(mechanism: QuantileIntervals, values: list[int]) -> list[float]:
    """The probability of each place, by the definition of the miss."""
    return by_misses(mechanism, values, Fraction(0), Fraction(mechanism.scale))


def low_law(mechanism: QuantileIntervals, values: list[int]) -> list[float]:
    padded = [0] * mechanism.padding + values
    target = Fraction(mechanism.level) * len(values)
    return by_rank(mechanism, padded, target)


def high_law(mechanism: QuantileIntervals, values: list[int]) -> list[float]:
    padded = values + [mechanism.grid.size - 1] * mechanism.padding
    target = Fraction(mechanism.level) * len(values) + mechanism.padding
    return by_rank(mechanism, padded, target)


def by_misses(
    mechanism: QuantileIntervals, values: list[int], _: Fraction, scale: Fraction
) -> list[float]:
    return weights(mechanism, values, Fraction(mechanism.level) * len(values), scale)


def by_rank(mechanism: QuantileIntervals, values: list[int], target: Fraction) -> list[float]:
    return weights(mechanism, values, target, 2 * Fraction(mechanism.scale))


def weights(
    mechanism: QuantileIntervals, values: list[int], target: Fraction, scale: Fraction
) -> list[float]:
    found = []
    for place in range(mechanism.grid.size):
        below, upto = sum(v < place for v in values), sum(v <= place for v in values)
        miss = max(below - target, target - upto, Fraction(0))
        found.append(math.exp(-float(miss / scale)))
    return [weight / sum(found) for weight in found]


def test_draws_have_the_law_of_the_definition() -> None:
    """Each of the three, against the probabilities above: chi-square with 1e-9."""
    from scipy.stats import chisquare

    grid = Grid(0, 4)
    mechanism = QuantileIntervals(Fraction(1, 3), scale=2, grid=grid, confidence=Fraction(1, 4))
    values = [0, 1, 1, 4, 4, 4, 2]
    places = np.array(values, np.int64)
    ends: dict[str, list[int]] = {"low": [], "high": []}
    bits = SeededBits(3)
    for _ in range(DRAWS):
        ends["low"].append(mechanism._end(np.sort(places), mechanism.level, bits))
        mirrored = np.sort(4 - places)
        ends["high"].append(4 - mechanism._end(mirrored, 1 - mechanism.level, bits))
    for name, law in (("low", low_law), ("high", high_law)):
        counted = np.bincount(ends[name], minlength=grid.size)
        due = np.array(law(mechanism, values)) * DRAWS
        assert chisquare(counted, due).pvalue > FALSE_ALARM


def test_one_group_costs_what_quantiles_of_its_scales_cost() -> None:
    for change in Change:
        rows = Bounded.rows(
            lambda: np.zeros(3),
            columns={"x": Grid(0, 9)},
            unit=Unit("id", change),
            per_unit=3,
            name="rows",
        )
        made = QuantileIntervals(0.9, scale=5, grid=Grid(0, 9), confidence=0.9)
        value, end = (Quantile(0.9, scale=scale, grid=Grid(0, 9)) for scale in (5, 10))
        assert made.privacy_loss(rows) == value.privacy_loss(rows) + 2 * end.privacy_loss(rows)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_row_that_moves_to_another_group_goes_and_comes(level: float) -> None:
    """With several groups, a replaced row costs a removal and an addition."""
    made = QuantileIntervals(level, scale=5, grid=Grid(0, 9), confidence=0.9, groups=2)
    prices = {
        change: made.privacy_loss(
            Bounded.rows(
                lambda: np.zeros((0, 2)),
                columns={"group": Grid(0, 1), "x": Grid(0, 9)},
                unit=Unit("id", change),
                name="rows",
            )
        ).epsilon()
        for change in Change
    }
    assert prices[Change.REPLACE] == pytest.approx(2 * prices[Change.ADD_REMOVE])


def test_rows_of_other_columns_are_refused() -> None:
    made = QuantileIntervals(scale=5, grid=Grid(0, 9), confidence=0.9, groups=2)
    for columns in (
        {"x": Grid(0, 9)},
        {"g": Grid(0, 2), "x": Grid(0, 9)},
        {"g": Grid(1, 2), "x": Grid(0, 9)},
        {"g": Grid(0, 1), "x": Grid(0, 8)},
        {"g": Grid(0, 1), "x": Grid(0, 9), "y": Grid(0, 9)},
    ):
        rows = Bounded.rows(list, columns=columns, unit=Unit("id"), name="rows")
        with pytest.raises(InvalidArgument):
            made.privacy_loss(rows)
