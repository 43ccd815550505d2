"""Answers as text and back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.mechanisms import Bounded, DiscreteLaplace, release
from discreet.mechanisms._serialize import deserialize, serialize, written
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, ledger

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
ANSWERS = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner, max_size=3)
    ),
)


@given(ANSWERS)
def test_text_and_back_is_the_same(answer: Any) -> None:  # Any: answers of all kinds
    again = deserialize(serialize(answer))
    assert again == answer
    assert repr(again) == repr(answer)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, 2], [3, 4]]),
        np.zeros((0, 2)),
        np.array([2**100, -1], dtype=object),
        np.array([1.5, np.inf, -0.0]),
        np.array([True, False]),
        np.array(3),
    ],
)
def test_arrays_keep_kind_and_shape(array: np.ndarray[Any, Any]) -> None:
    again = deserialize(serialize((array,)))[0]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("wrong", [object(), {1, 2}, [1], b"1", np.float64(1)])
def test_values_that_would_not_come_back_are_refused(wrong: BadValue) -> None:
    with pytest.raises(TypeError, match="can't be stored"):
        serialize(wrong)


LARGE = 10**5000


MANY_DIGITS: list[Any] = [LARGE, -LARGE, (LARGE,), (1, "a", LARGE), {"n": LARGE, "a": None}]
MANY_DIGITS += [np.array([LARGE, 3], object), {"n": (np.array([[LARGE]], object), 2.5)}]


@pytest.mark.parametrize("answer", MANY_DIGITS, ids=lambda answer: type(answer).__name__)
def test_integers_of_any_size_are_written(answer: BadValue) -> None:
    """Python itself refuses to write more than 4 300 digits."""
    with pytest.raises(ValueError, match="digits"):
        str(answer)
    assert "1" + "0" * 5000 in written(answer).replace("\n", "")


@pytest.mark.parametrize("answer", [3, 2.5, None, "a", (1,), {"n": 3}, np.arange(3)])
def test_other_answers_are_written_as_python_does(answer: BadValue) -> None:
    assert written(answer) == str(answer)
    inside = "array([0, 1, 2])" if isinstance(answer, np.ndarray) else repr(answer)
    many = "1" + "0" * 5000
    found = written({"a": answer, "n": LARGE})
    assert found in (f"{{'a': {inside}, 'n': {many}}}", f"{{'a': {answer}, 'n': {many}}}")


def test_a_release_of_an_integer_of_many_digits_prints() -> None:
    made = Bounded(lambda: LARGE, sensitivity=1, unit=PERSON, name="people")
    assert len(str(release(made, DiscreteLaplace(1), ledger()))) > 5000
