"""Answers as text and back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.mechanisms.keeping import decoded, encoded
from tests.mechanisms.kit import Wrong

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
    again = decoded(encoded(answer))
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
    again = decoded(encoded((array,)))[0]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("wrong", [object(), {1, 2}, [1], b"1", np.float64(1)])
def test_what_would_not_come_back_is_refused(wrong: Wrong) -> None:
    with pytest.raises(TypeError, match="can't be kept"):
        encoded(wrong)
