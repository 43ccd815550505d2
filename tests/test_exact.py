"""Exact numbers, and balls rounded in a stated direction."""

import math
import sys
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from discreet import _exact
from discreet._exact import (
    ball,
    decimal_down,
    decimal_up,
    float_down,
    float_up,
    fraction,
    is_number,
    lower_fraction,
    precision,
    root_down,
    shown,
    upper_fraction,
)

LARGEST = sys.float_info.max
TINIEST = 5e-324

numbers = st.fractions() | st.builds(fraction, st.floats(allow_nan=False, allow_infinity=False))
above_zero = numbers.map(abs).filter(bool)


class TestFraction:
    @pytest.mark.parametrize(
        ("given_", "meant"),
        [
            (0.1, Fraction(1, 10)),
            (-1e-7, Fraction(-1, 10**7)),
            (1e300, Fraction(10) ** 300),
            (TINIEST, Fraction(5, 10**324)),
            (3, Fraction(3)),
            (Decimal("0.10"), Fraction(1, 10)),
            (Fraction(2, 6), Fraction(1, 3)),
            (np.float64(0.1), Fraction(1, 10)),
            (np.int64(7), Fraction(7)),
            (np.uint8(255), Fraction(255)),
        ],
    )
    def test_means_the_shortest_decimal(self, given_: _exact.Number, meant: Fraction) -> None:
        assert is_number(given_)
        assert fraction(given_) == meant
        assert type(fraction(given_)) is Fraction
        assert type(fraction(given_).numerator) is int

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_fraction_of_a_float_is_that_float(self, value: float) -> None:
        assert float(fraction(value)) == value

    @pytest.mark.parametrize(
        "value",
        [
            True,
            np.True_,
            "1",
            b"1",
            None,
            1j,
            [1],
            math.nan,
            math.inf,
            -math.inf,
            np.float64("nan"),
            np.array([1.0, 2.0]),
            Decimal("NaN"),
            Decimal("sNaN"),
            Decimal("-Infinity"),
            arb(1),
            10**1000,
            Fraction(1, 10**1000),
            Decimal("1e999999999"),
            Decimal("1e-999999999"),
            Decimal("0e-999999999"),
        ],
        ids=lambda value: repr(value)[:30],
    )
    def test_refuses_what_is_no_finite_number(self, value: object) -> None:
        assert not is_number(value)


class TestRounding:
    @given(numbers)
    def test_up_is_the_smallest_float_that_is_enough(self, number: Fraction) -> None:
        up = float_up(number)
        assert fraction(up) >= number
        below = math.nextafter(up, -math.inf)
        assert below == -math.inf or fraction(below) < number

    @given(numbers)
    def test_down_mirrors_up(self, number: Fraction) -> None:
        assert float_down(number) == -float_up(-number)

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_float_stays(self, value: float) -> None:
        assert float_up(fraction(value)) == float_down(fraction(value)) == value

    def test_far_beyond_the_floats(self) -> None:
        huge = Fraction(10**400)
        assert (float_up(huge), float_down(huge)) == (math.inf, LARGEST)
        assert (float_up(-huge), float_down(-huge)) == (-LARGEST, -math.inf)
        assert (float_up(1 / huge), float_down(1 / huge)) == (TINIEST, 0.0)
        assert (float_up(-1 / huge), float_down(-1 / huge)) == (0.0, -TINIEST)
        assert float_up(fraction(LARGEST) + 1) == math.inf

    def test_rounding_a_ball_takes_its_end(self) -> None:
        with precision(64):
            third = arb(1) / 3
            up, down = float_up(third), float_down(third)
        assert fraction(up) > Fraction(1, 3) > fraction(down)
        assert up == math.nextafter(down, 1)

    @pytest.mark.parametrize("ball_", [arb("nan"), arb("inf"), arb("+/- inf")], ids=str)
    def test_rounding_a_ball_without_end_is_infinite(self, ball_: arb) -> None:
        assert float_up(ball_) == math.inf
        assert float_down(ball_) == -math.inf


class TestBalls:
    @given(numbers, st.sampled_from([53, 64, 256]))
    def test_contain_their_number(self, number: Fraction, bits: int) -> None:
        with precision(bits):
            low, high = lower_fraction(ball(number)), upper_fraction(ball(number))
        assert low <= number <= high
        assert high - low <= abs(number) * Fraction(1, 2 ** (bits - 2))

    def test_tiny_numbers_round_to_their_side(self) -> None:
        with precision(64):
            tiny = (-(arb(10) ** 12)).exp()  # it has 10^12 binary digits
        assert 0 < upper_fraction(tiny) < Fraction(1, 10**1000)
        assert lower_fraction(tiny) == 0
        assert upper_fraction(-tiny) == 0
        assert 0 > lower_fraction(-tiny) > -Fraction(1, 10**1000)

    def test_huge_numbers_are_refused(self) -> None:
        with precision(64), pytest.raises(OverflowError):
            upper_fraction((arb(10) ** 12).exp())
        assert upper_fraction(arb(2) ** 1000) == 2**1000

    @pytest.mark.parametrize("take", [upper_fraction, lower_fraction])
    def test_without_end_have_no_fraction(self, take: Callable[[arb], Fraction]) -> None:
        with pytest.raises(ValueError, match="finite"):
            take(arb("nan"))

    def test_precision_ends_with_the_block(self) -> None:
        before = ctx.prec
        with precision(99):
            assert ctx.prec == 99
            with precision(33):
                assert ctx.prec == 33
            assert ctx.prec == 99
        assert ctx.prec == before

    def test_precision_is_one_threads_alone(self) -> None:
        seen: list[int] = []
        inside, done = threading.Event(), threading.Event()

        def other() -> None:
            inside.set()
            with precision(33):
                seen.append(ctx.prec)
            done.set()

        with precision(99):
            thread = threading.Thread(target=other)
            thread.start()
            inside.wait()
            assert not done.wait(0.05)
            assert ctx.prec == 99
        thread.join()
        assert seen == [33]


class TestDecimals:
    @given(above_zero, st.integers(1, 15))
    def test_up_and_down_enclose_the_number(self, number: Fraction, digits: int) -> None:
        low, high = decimal_down(number, digits), decimal_up(number, digits)
        assert low <= number <= high
        assert high - low <= number / 10 ** (digits - 1)
        assert significant(low) <= digits
        assert significant(high) <= digits

    @pytest.mark.parametrize(
        ("number", "digits", "low", "high"),
        [
            (Fraction(1, 3), 3, "0.333", "0.334"),
            (Fraction(2, 3), 1, "0.6", "0.7"),
            (Fraction(9996, 10**6), 3, "0.00999", "0.01"),
            (Fraction(123456), 2, "120000", "130000"),
            (Fraction(5, 2), 2, "2.5", "2.5"),
            (Fraction(1), 4, "1", "1"),
            (Fraction(1, 1000), 4, "0.001", "0.001"),
        ],
    )
    def test_examples(self, number: Fraction, digits: int, low: str, high: str) -> None:
        assert decimal_down(number, digits) == Fraction(low)
        assert decimal_up(number, digits) == Fraction(high)

    @given(above_zero)
    def test_root_lies_just_below(self, square: Fraction) -> None:
        root = root_down(square)
        assert root**2 <= square < (root * (1 + Fraction(1, 2**60))) ** 2

    def test_root_of_nothing(self) -> None:
        assert root_down(Fraction(0)) == 0


class TestShown:
    @pytest.mark.parametrize(
        ("number", "text"),
        [
            (Fraction(4), "4"),
            (Fraction(-4), "-4"),
            (Fraction(1, 10), "0.1"),
            (Fraction(1, 10**6), "1e-06"),
            (Fraction(1, 3), "1/3"),
            (Fraction(10**400), str(10**400)),
            (Fraction(10**400, 3), f"{10**400}/3"),
            (Fraction(1, 10**400), f"1/{10**400}"),
        ],
        ids=lambda value: str(value)[:12],
    )
    def test_as_a_person_would_write_it(self, number: Fraction, text: str) -> None:
        assert shown(number) == text

    @given(numbers)
    def test_says_the_number_exactly(self, number: Fraction) -> None:
        assert Fraction(shown(number)) == number


def significant(number: Fraction) -> int:
    """The number of digits from the first to the last that is not 0."""
    while number.denominator != 1:
        number *= 10
    return len(str(abs(number.numerator)).rstrip("0"))
