"""Post-processing: the loss and the receipt stay, and the results are what they say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Together, release_through
from discreet.mechanisms._release import Release
from discreet.mechanisms.processing import non_negative, rounded, with_total
from tests.mechanisms.kit import PERSON, FakePayer, number, silent_door

vectors = st.lists(st.integers(-50, 50), min_size=1, max_size=7)


def released(values: Any) -> Release[Any]:
    array = np.array(values)
    is_wide, shape = array.dtype == object, array.shape
    bounded: Bounded[Any] = Bounded(
        lambda: array, sensitivity=1, unit=PERSON, name="counts", shape=shape, is_wide=is_wide
    )
    return release_through(silent_door(FakePayer()), bounded, DiscreteLaplace(2))


def test_loss_and_receipt_stay_and_the_steps_are_named() -> None:
    before = released([3, -1, 4])
    after = with_total(rounded(non_negative(before), 2), 5)
    assert (after.privacy_loss, after.receipt) == (before.privacy_loss, before.receipt)
    assert after.processing == ("0 in place of less", "rounding to 2", "the total made 5")
    assert "after 0 in place of less, rounding to 2, the total made 5" in repr(after)
    with pytest.raises(InvalidArgument, match="no longer applies"):
        after.error()
    assert before.value.tolist() == [3, -1, 4]


@given(vectors)
def test_nothing_is_below_0(values: list[int]) -> None:
    found = non_negative(released(values)).value
    assert found.tolist() == [max(0, value) for value in values]
    assert found.dtype == np.int64


def test_single_numbers_and_large_ones_keep_their_kind() -> None:
    one = release_through(silent_door(FakePayer()), number(lambda: -3), DiscreteLaplace(2))
    assert (non_negative(one).value, rounded(one, 5).value) == (0, -5.0)
    assert type(non_negative(one).value) is int
    huge = non_negative(released(np.array([2**80, -(2**80)], dtype=object)))
    assert huge.value.tolist() == [2**80, 0]
    real = Bounded.real(lambda: -0.25, sensitivity=1, step=0.25, unit=PERSON, name="real")
    from discreet.mechanisms import Laplace

    near = release_through(silent_door(FakePayer()), real, Laplace(1, step=0.25))
    assert (non_negative(near).value, rounded(near).value) == (0.0, 0.0)


@given(vectors, st.integers(1, 9))
def test_rounding_goes_to_the_nearest_multiple(values: list[int], step: int) -> None:
    found = rounded(released(values), step).value
    assert isinstance(found, np.ndarray)
    for value, near in zip(values, found.tolist(), strict=True):
        assert near % step == 0
        assert -step / 2 <= value - near < step / 2 or value - near == -step / 2


@given(vectors, st.integers(0, 80))
def test_a_total_is_reached_by_the_nearest_numbers(values: list[int], total: int) -> None:
    """The conditions of Karush, Kuhn and Tucker: those that stay moved alike, the others would
    have had to move no less."""
    found = with_total(released(values), total).value
    assert found.sum() == pytest.approx(total, abs=1e-9)
    assert found.min() >= 0
    moved = np.array(values) - found
    stays = found > 1e-9
    if stays.any():
        assert moved[stays] == pytest.approx(moved[stays][0], abs=1e-9)
        assert (moved[~stays] <= moved[stays][0] + 1e-9).all()


def test_a_table_keeps_its_shape() -> None:
    found = with_total(released([[3, -1], [4, 0]]), 5).value
    assert found.shape == (2, 2)
    assert found == pytest.approx(np.array([[2, 0], [3, 0]]))


def test_a_known_case() -> None:
    """(3, 1, -1) to a total of 2: all lose 1, and what lies below 0 stays there."""
    assert with_total(released([3, 1, -1]), 2).value == pytest.approx([2, 0, 0])
    assert with_total(released([3, 1, -1]), 3).value == pytest.approx([2.5, 0.5, 0])
    assert with_total(released([0, 0]), 3).value == pytest.approx([1.5, 1.5])


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), True, "1", None])
def test_bad_input_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="total"):
        with_total(released([1]), wrong)
    with pytest.raises(InvalidArgument, match="step"):
        rounded(released([1]), wrong)


def test_values_other_than_numbers_are_refused() -> None:
    joint = Bounded.together(
        lambda: {"people": 1}, parts=(number().parts[0],), unit=PERSON, name="joint"
    )
    mapping: Any = release_through(
        silent_door(FakePayer()), joint, Together({"people": DiscreteLaplace(1)})
    )
    text: Any = released([1]).processed(str, by="text")
    for wrong in (mapping, text):
        for function in (non_negative, rounded, lambda r: with_total(r, 3)):
            with pytest.raises(InvalidArgument, match="no number"):
                function(wrong)
    with pytest.raises(InvalidArgument, match="no numbers"):
        with_total(released(np.zeros(0, np.int64)), 3)
