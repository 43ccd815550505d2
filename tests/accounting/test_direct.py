"""A single law, and plain convolutions of short laws, against exact sums in balls."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import precision
from discreet.accounting.pld import _convolution
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._convolution import SumMasses, convolved_directly
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, UncomposedPld
from tests.accounting.sums import (
    BITS,
    DELTAS,
    UNDER,
    Case,
    Law,
    cases,
    check_delta,
    check_epsilon,
    hockey_stick,
    power,
)
from tests.accounting.test_continuous import exact

CLOSE = 1e-10  # relative


def law(seed: int, size: int, width: int, count: int, fall: float = 0.0) -> Law:
    """Masses at some of the integers within a width, some twice; with a fall, most are tiny."""
    random = np.random.default_rng(seed)
    index = random.integers(-width, width, size)
    mass = random.exponential(size=size) * np.exp(-fall * (index + width))
    mass[random.random(size) < 0.1] = 0.0
    return index.tolist(), (mass / mass.sum()).tolist(), count


def points(laws: Sequence[Law], step: float = 2.0**-8) -> list[tuple[Points, int]]:
    return [
        (Points(np.array(index), np.array(share), 0.0, step, 0.0), count)
        for index, share, count in laws
    ]


LAWS: dict[str, list[Law]] = {
    "one": [([3], [1.0], 1)],
    "two": [law(1, 5, 9, 1), law(2, 40, 30, 1)],
    "repeated": [law(3, 20, 15, 7)],
    "mixed": [law(4, 9, 4, 3), law(5, 30, 50, 2), law(6, 2, 60, 1)],
    "far tails": [law(7, 60, 60, 2, fall=3.0), law(8, 60, 60, 1, fall=2.0)],
    "lost in underflow": [law(9, 80, 80, 3, fall=4.0)],
    "on both sides of 0": [([-5, 5], [0.5, 0.5], 8), ([-1, 0, 1], [1e-9, 1 - 2e-9, 1e-9], 2)],
}


def assert_bounds(laws: Sequence[Law], side: Side, found: SumMasses) -> None:
    """Each mass, and what lies below and above, from the side; and close to it."""
    with precision(BITS):
        masses, least = power(laws)
        sums = {least + place: mass for place, mass in enumerate(masses)}
        end = found.start + len(found.mass)
        pairs = [
            (claimed, sums.pop(found.start + place, arb(0)))
            for place, claimed in enumerate(found.mass.tolist())
        ]
        pairs.append((found.below, sum((m for i, m in sums.items() if i < found.start), arb(0))))
        pairs.append((found.above, sum((m for i, m in sums.items() if i >= end), arb(0))))
        for claimed, mass in pairs:
            if side is Side.UPPER:
                assert exact(claimed) >= mass or mass > 1 - arb(CLOSE)
                assert exact(claimed) <= mass * (1 + arb(CLOSE)) + UNDER * 10**10
            else:
                assert exact(claimed) <= mass
                assert exact(claimed) >= mass * (1 - arb(CLOSE)) - UNDER * 10**10


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("case", LAWS)
def test_each_mass_is_bounded(case: str, side: Side) -> None:
    laws = LAWS[case]
    for start, size in [(-500, 1200), (0, 30), (-20, 21), (5, 1), (-5000, 10), (5000, 10)]:
        masses = convolved_directly(points(laws), side, (start, size))
        assert masses is not None
        assert (masses.start, len(masses.mass)) == (start, size)
        assert_bounds(laws, side, masses)


@pytest.mark.parametrize("side", list(Side))
def test_rounding_that_is_not_charged_is_noticed(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_convolution, "ROUND", 0.0)
    monkeypatch.setattr(_convolution, "_UNDERFLOW", 0.0)
    laws = LAWS["mixed"]
    masses = convolved_directly(points(laws), side, (-500, 1200))
    assert masses is not None
    with pytest.raises(AssertionError):
        assert_bounds(laws, side, masses)


@pytest.mark.parametrize(
    ("laws", "step"),
    [
        ([law(1, 5, 9, 33)], 2.0**-8),
        ([law(1, 50, 5000, 2)], 2.0**-8),
        ([law(1, 5, 9, 1)], 100.0),
        ([law(1, 5, 9, 30)], 3.0),
    ],
    ids=["many", "long", "large losses", "a large sum"],
)
def test_laws_that_other_ways_suit_are_left_to_them(laws: list[Law], step: float) -> None:
    assert convolved_directly(points(laws, step), Side.UPPER, (-100, 200)) is None


def test_at_the_largest_losses_underflow_is_negligible() -> None:
    lost = _convolution._UNDERFLOW * _convolution._MOST_PRODUCTS
    assert math.exp(_convolution._LARGEST_SUM) * lost < 1e-30


def law_of(points: Points, side: Side) -> UncomposedPld:
    order = np.argsort(points.loss)
    loss = points.loss[order]
    doubt = 4 * ROUND * (np.abs(loss) + 2 * abs(points.offset))
    moved = loss + doubt if side is Side.UPPER else loss - doubt
    return UncomposedPld(side, moved, points.mass[order], points.infinite)


@given(cases(), st.lists(st.floats(0, 1.1), max_size=3))
@settings(max_examples=100)
def test_a_single_law_on_both_sides(case: Case, places: list[float]) -> None:
    points, _ = case.parts[0]
    with precision(BITS):
        law = replace(case, parts=[(points, 1)]).law()
        span = float(abs(law[0][0]).max(abs(law[0][-1])))
        for side in Side:
            found = law_of(points, side)
            for epsilon in (place * span for place in places):
                check_delta(found, law, epsilon)
                check_epsilon(found, law, float(hockey_stick(law, exact(epsilon)).mid()))
            for delta in DELTAS:
                check_epsilon(found, law, delta)


def test_the_ends_of_a_single_law_meet() -> None:
    points = Points(np.array([3, 1, 1, 9]), np.array([0.2, 0.3, 0.1, 1e-9]), 1e-12, 0.1, 0.0)
    for delta in (1e-11, 1e-9, 1e-3, 0.05):
        lower, upper = (law_of(points, side).epsilon(delta) for side in (Side.LOWER, Side.UPPER))
        assert 0 < lower <= upper <= lower * (1 + 1e-12)
