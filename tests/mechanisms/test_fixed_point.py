"""Real numbers on a grid: exactly the nearest multiple, and floats made last."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.mechanisms import FixedPoint
from tests.bad_values import BadValue

STEPS = [Fraction(1), Fraction(1, 1024), Fraction(8), Fraction(1, 10), Fraction(3, 7)]
FLOATS = st.floats(-1e12, 1e12)


@pytest.mark.parametrize("step", STEPS)
@given(values=st.lists(FLOATS, max_size=6))
def test_an_array_and_its_numbers_find_the_same_multiple(
    step: Fraction, values: list[float]
) -> None:
    found = FixedPoint.nearest(np.array(values, dtype=np.float64), step).steps
    assert isinstance(found, np.ndarray)
    for value, steps in zip(values, found.tolist(), strict=True):
        assert steps == FixedPoint.nearest(value, step).steps
        assert -step / 2 <= steps * step - Fraction(value) - 0 <= step / 2


@pytest.mark.parametrize("step", STEPS)
def test_floats_beside_the_middle_of_two_multiples_go_to_the_nearest(step: Fraction) -> None:
    """Otherwise two numbers less than a step apart could become two steps apart."""
    middles = [float((2 * k + 1) * step / 2) for n in range(51) for k in (2**n, -(2**n), 2**n // 7)]
    values = [side for m in middles for side in (m, *np.nextafter(m, [-math.inf, math.inf]))]
    found = FixedPoint.nearest(np.array(values), step).steps
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [math.floor(Fraction(v) / step + Fraction(1, 2)) for v in values]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32, np.uint64, object])
def test_arrays_of_every_kind(kind: type) -> None:
    values: np.ndarray[Any, Any] = np.array([0, 1, 3, 7], dtype=kind)
    found = FixedPoint.nearest(values, Fraction(1, 4)).steps
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [0, 4, 12, 28]


@pytest.mark.parametrize("value", [2.5, Fraction(5, 2), Decimal("2.5")])
def test_numbers_of_every_kind(value: BadValue) -> None:
    assert FixedPoint.nearest(value, Fraction(1)).steps == 3  # the upper one of two
    assert FixedPoint.nearest(-value, Fraction(1)).steps == -2


def test_a_float_is_what_its_bits_say() -> None:
    """0.1 lies above a tenth, and its third above a thirtieth: no step more for its shortest
    decimal."""
    assert FixedPoint.nearest(0.05, Fraction(1, 10)).steps == (Fraction(0.05) >= Fraction(1, 20))


def test_large_numbers_are_exact_and_those_of_an_array_end_at_int64() -> None:
    """An array's kind, and with it where noise ends, must not depend on what is in it."""
    assert FixedPoint.nearest(1e300, Fraction(1)).steps == int(1e300)
    for step in (Fraction(1), Fraction(1, 10)):
        for kind in (np.float64, object):
            huge = FixedPoint.nearest(np.array([1e300, -0.0, -1e300], dtype=kind), step).steps
            assert isinstance(huge, np.ndarray)
            assert huge.dtype == np.int64
            assert huge.tolist() == [2**63 - 1, 0, -(2**63)]


NO_NUMBERS = [math.nan, math.inf, "1", None, True, 1j]


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=repr)
def test_anything_else_is_no_number(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="expected finite numbers"):
        FixedPoint.nearest(wrong, Fraction(1))
    with pytest.raises(TypeError, match="expected finite numbers"):
        FixedPoint.nearest(np.array([wrong]), Fraction(1))


def test_floats_are_made_last() -> None:
    assert FixedPoint(3, Fraction(1, 10)).floats == 0.3
    assert FixedPoint(10**400, Fraction(1)).floats == sys.float_info.max
    assert FixedPoint(-(10**400), Fraction(1)).floats == -sys.float_info.max
    many = FixedPoint(np.array([1, -2]), Fraction(1, 4)).floats
    assert isinstance(many, np.ndarray)
    assert many.tolist() == [0.25, -0.5]
    ends = FixedPoint(np.array([2**62, -(2**62)]), Fraction(10) ** 300).floats
    assert isinstance(ends, np.ndarray)
    assert ends.tolist() == [sys.float_info.max, -sys.float_info.max]


@pytest.mark.parametrize(
    "step", [*STEPS, Fraction(1, 2**100), Fraction(2**100), Fraction(10) ** 100]
)
def test_no_number_makes_a_warning_under_any_numpy_error_state(step: Fraction) -> None:
    values = [1e300, -1e300, 1e-320, -5e-324, 1e-300, 0.0]
    with np.errstate(all="raise"):
        found = FixedPoint.nearest(np.array(values), step)
        assert np.all(np.isfinite(found.floats))
    assert isinstance(found.steps, np.ndarray)
    for value, steps in zip(values, found.steps.tolist(), strict=True):
        alone = FixedPoint.nearest(value, step).steps
        assert steps == min(max(alone, -(2**63)), 2**63 - 1)
