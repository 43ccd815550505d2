"""Objects that are no values are refused by name and are not shown."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.local import client
from discreet.local.client._values import STEPS, category_array, steps


@pytest.mark.parametrize(
    "wrong",
    [
        10,
        -1,
        [0, 10],
        1.0,
        float("nan"),
        True,
        [True, 2],
        np.array([True]),
        "1",
        None,
        [],
        [[1]],
        [1, [2]],
        2**64,
        np.uint64(2**63),
        {1},
    ],
)
def test_bad_categories_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"values: .*whole numbers from 0 to 9"):
        category_array(wrong, 10)


@pytest.mark.parametrize(
    "wrong",
    [-1.0, 20.0001, float("nan"), [1, float("inf")], True, [False], "1", None, [], [[1.0]], 1j],
)
def test_values_outside_the_range_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"values: .*numbers from 0\.0 to 20\.0"):
        steps(wrong, 0.0, 20.0)


def test_no_text_shows_the_value() -> None:
    with pytest.raises(ValueError, match="values") as refused:
        category_array([123456], 10)
    assert "123456" not in str(refused.value)
    with pytest.raises(ValueError, match="values") as refused:
        steps([123456.5], 0.0, 20.0)
    assert "123456" not in str(refused.value)


@pytest.mark.parametrize("good", [3, [3, 4], (3,), np.uint8(3), np.array([3], np.int32)])
def test_whole_numbers_of_any_kind_are_categories(good: Any) -> None:
    found = category_array(good, 10)
    assert found.dtype == np.int64
    assert found.shape == np.shape(good)


def test_steps_are_the_nearest() -> None:
    assert steps([0, 5, 20.0], 0.0, 20.0).tolist() == [0, STEPS // 4, STEPS]
    assert steps(-1.0 + 3 * 2.0**-31, -1.0, 1.0) == 1  # three quarters of a step
    assert steps(np.float32(0.1), 0.0, 1.0) == round(float(np.float32(0.1)) * STEPS)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (client.RandomizedResponse, (Fraction(1), 2)),
        (client.RandomizedResponse, (3.0, 2)),
        (client.RandomizedResponse, (Fraction(3), 1)),
        (client.HadamardResponse, (Fraction(3), True)),
        (client.UnaryEncoding, (Fraction(1, 2), Fraction(1, 4), 1.5)),
        (client.RandomizedResponse, (Fraction(3), (1 << 62) + 1)),
        (client.HadamardResponse, (Fraction(1, 2), 2)),
        (client.UnaryEncoding, (Fraction(1, 2), Fraction(1, 2), 2)),
        (client.UnaryEncoding, (Fraction(1, 2), Fraction(0), 2)),
        (client.UnaryEncoding, (Fraction(1), Fraction(1, 2), 2)),
        (client.LocalHashing, (Fraction(3), 10, 4)),
        (client.LocalHashing, (Fraction(3), 1 << 61, 61)),
        (client.CountMeanSketch, (Fraction(1, 2), Fraction(1, 4), 10, 9)),
        (client.Rappor, (Fraction(1, 2), Fraction(3, 4), 2)),
        (client.Rappor, (Fraction(3, 4), Fraction(1, 2), 2)),
        (client.DuchiMean, (Fraction(1), 0.0, 1.0)),
        (client.DuchiMean, (Fraction(3), 1.0, 1.0)),
        (client.DuchiMean, (Fraction(3), float("nan"), 1.0)),
        (client.PiecewiseMean, (Fraction(3), 10, 2, 0.0, float("inf"))),
        (client.PiecewiseMean, (Fraction(3), 10, 10, 0.0, 1.0)),
        (client.PiecewiseMean, (Fraction(3), (1 << 32) + 1, 10, 0.0, 1.0)),
        (client.PiecewiseMean, (Fraction(3), 10, 2, -1e308, 1e308)),
        (client.DuchiMean, (Fraction(3), -1e308, 1e308)),
    ],
)
def test_a_client_that_would_tell_all_or_nothing_is_refused(
    make: Any, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ValueError, match=r"give"):
        make(*arguments)


@pytest.mark.parametrize(
    "ends", [(-8e307, 8e307), (0.0, 5e-324), (-1e-310, 1e-310), (1e16, 1e16 + 2)], ids=str
)
def test_ranges_as_wide_and_as_narrow_as_floats_go(ends: tuple[float, float]) -> None:
    """The place of a report reveals no value: all its places come from the client's own noise."""
    lower, upper = ends
    inside = [lower, lower / 2 + upper / 2, upper]
    with np.errstate(all="raise"):
        assert steps([lower, upper], *ends).tolist() == [0, STEPS]
        for places in (10, 1 << 32):
            of = client.PiecewiseMean(Fraction(3), places, places // 4, *ends)
            found = of.randomize(inside * 100)
            assert found.min() >= 0
            assert found.max() < places


def test_a_permanent_answer_can_not_change() -> None:
    bits = np.array([True, False])
    kept = client.PermanentAnswers(bits)
    bits[0] = False
    assert kept.bits.tolist() == [True, False]
    with pytest.raises(ValueError, match="read-only"):
        kept.bits[0] = False
    assert "True" not in repr(kept)
    with pytest.raises(ValueError, match="bits"):
        client.PermanentAnswers(np.array([1, 0]))


def test_a_memory_takes_permanent_answers_only() -> None:
    memory = client.Rappor(Fraction(3, 4), Fraction(3, 4), 5)
    with pytest.raises(ValueError, match="permanent"):
        memory.randomize(3)
    with pytest.raises(ValueError, match="5 bits"):
        memory.randomize(client.PermanentAnswers(np.zeros(4, np.bool_)))
