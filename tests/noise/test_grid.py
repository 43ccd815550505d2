"""Noise on a grid: exact as far as floats go, and never infinite."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.audit import SeededBits
from discreet.errors import InvalidArgument
from discreet.noise import DiscreteGaussianLaw, DiscreteLaplaceLaw, OnGrid, RoundedGaussianLaw
from discreet.noise._grid import steps_of

LARGEST = sys.float_info.max
exponents = st.integers(-1022, 1022)


def nearest(steps: int, k: int) -> float:
    """By a division of whole numbers, which Python rounds rightly."""
    try:
        return steps * (1 << max(0, -k)) / (1 << max(0, k))
    except OverflowError:
        return LARGEST if steps > 0 else -LARGEST


def grid(k: int) -> OnGrid[DiscreteLaplaceLaw]:
    return DiscreteLaplaceLaw(1).on_grid(k)


@given(st.integers(-(2**63), 2**63 - 1), exponents)
def test_floats_are_the_nearest(steps: int, k: int) -> None:
    floats = grid(k).floats(np.array([steps, -1, 0]))
    assert floats.dtype == np.float64
    assert floats.tolist() == [nearest(n, k) for n in (steps, -1, 0)]
    assert grid(k).float(steps) == nearest(steps, k)


@given(st.integers(-(2**53), 2**53), exponents)
def test_up_to_53_bits_floats_are_exact(steps: int, k: int) -> None:
    found = grid(k).float(steps)
    true = Fraction(steps) / Fraction(2) ** k
    assert Fraction(found) == true or (abs(true) > LARGEST and abs(found) == LARGEST)


@given(
    st.one_of(st.integers(-(2**2100), 2**2100), st.integers(60, 2100).map(lambda e: (1 << e) - 1)),
    exponents,
)
def test_whole_numbers_of_python_are_as_good(steps: int, k: int) -> None:
    floats = grid(k).floats(np.array([[steps], [-steps]], dtype=object))
    assert floats.dtype == np.float64
    assert floats.tolist() == [[nearest(steps, k)], [nearest(-steps, k)]]


def test_the_ends_of_the_floats() -> None:
    assert grid(1022).float(1 << 1023) == 2.0
    assert grid(1022).float(1 << 1024) == 4.0
    assert grid(1022).float((1 << 2046) - 1) == LARGEST
    assert grid(-1022).float(4) == LARGEST
    assert grid(-1022).float(-4) == -LARGEST
    assert grid(-1022).floats(np.array([1, 3, 4, -4])).tolist() == [
        2.0**1022,
        3 * 2.0**1022,
        LARGEST,
        -LARGEST,
    ]


@pytest.mark.parametrize("k", [-1022, -3, 0, 10, 1022])
def test_a_scale_is_converted_to_steps(k: int) -> None:
    for law in (DiscreteLaplaceLaw(2.5), RoundedGaussianLaw(2.5), DiscreteGaussianLaw(2.5)):
        on_grid = law.on_grid(k)
        assert on_grid.k == k
        assert on_grid.law == type(law)(Fraction(5, 2) * Fraction(2) ** k)
    assert steps_of(Fraction(1, 3), k) == Fraction(1, 3) * Fraction(2) ** k


@pytest.mark.parametrize("k", [5, 40, 60, 900, 1022])
def test_a_finer_grid_has_the_same_spread(k: int) -> None:
    on_grid = RoundedGaussianLaw(1000).on_grid(k)
    floats = on_grid.floats(on_grid.law.draws(SeededBits(1), 400))
    assert 800 < floats.std() < 1200
    assert on_grid.floats(on_grid.law.draws(SeededBits(1), (2, 0))).shape == (2, 0)


@pytest.mark.parametrize("k", [1023, -1023, 10**6, True, False, 1.0, None, "3", Fraction(1)])
def test_another_k_is_refused_by_name(k: int) -> None:
    for law in (DiscreteLaplaceLaw(1), RoundedGaussianLaw(1), DiscreteGaussianLaw(1)):
        with pytest.raises(
            InvalidArgument, match=r"^k = .*: give a whole number from -1022 to 1022"
        ):
            law.on_grid(k)
