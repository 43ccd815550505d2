"""Arithmetic of intervals: everything that may be is inside, and the ends are reached."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.mechanisms.statistics import NoisyEstimate
from discreet.mechanisms.statistics._intervals import product, ratio, square

ends = st.integers(-8, 8).map(lambda n: n / 8)
intervals = st.tuples(ends, ends).map(lambda two: NoisyEstimate(min(two), min(two), max(two)))


@given(intervals, intervals)
def test_products_and_squares_are_tight(one: NoisyEstimate, other: NoisyEstimate) -> None:
    inside = [np.linspace(each.lower, each.upper, 161) for each in (one, other)]
    products, squares = np.outer(*inside), inside[0] ** 2
    for found, all_there in ((product(one, other), products), (square(one), squares)):
        assert found.lower == pytest.approx(float(all_there.min()), abs=1e-2)
        assert found.upper == pytest.approx(float(all_there.max()))
        assert found.lower <= all_there.min() + 1e-15


@given(st.floats(-50, 50), st.floats(-20, 100), st.sampled_from([-1.0, 0.0]))
def test_a_ratio_is_all_that_fits_the_noise(total: float, count: float, least: float) -> None:
    def reach(far: float) -> float:
        return 3 * math.hypot(1, far)

    found = ratio(total, count, reach, least)
    assert least <= found.lower <= found.value <= found.upper <= 1
    for t in np.linspace(least, 1, 101):
        if abs(total - t * count) <= reach(float(t)):
            assert found.lower <= t <= found.upper
    if count <= 0:
        assert (found.lower, found.upper) == (least, 1.0)


def test_an_interval_moves_and_narrows_as_a_whole() -> None:
    assert NoisyEstimate(1, 0, 2).moved(3, 1) == NoisyEstimate(4, 1, 7)
    assert NoisyEstimate(-1, -2, 3).within(0, 1) == NoisyEstimate(0, 0, 1)
    assert NoisyEstimate(5, 4, 6).within(0, 1) == NoisyEstimate(1, 1, 1)
    assert str(NoisyEstimate(1.25, 0, 2)) == "1.25 (from 0 to 2)"
