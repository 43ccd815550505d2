"""Counts under keys that nobody knows."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Key, KeysPart, Sensitivity
from discreet.unit import Change
from tests.mechanisms.kit import PERSON, Wrong

WORDS: dict[Key, int] = {"ache": 41, "rash": 1, ("a", 2): 3, 5: 0}


def test_the_sensitivity_counts_keys() -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, most=3, unit=PERSON, name="words")
    assert words.part.sensitivity == Sensitivity(l0=2, linf=3)
    replaced = PERSON.with_change(Change.REPLACE)
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=replaced, name="words")
    assert words.part.sensitivity == Sensitivity(l0=4, linf=1)


def test_what_is_0_is_absent() -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    assert words.checked(WORDS) == {"ache": 41, "rash": 1, ("a", 2): 3}
    assert words.checked({"a": np.int64(2)}) == {"a": 2}
    assert words.parts[0].moves({"a": 2}, {"b": 1}) == [2, 1]


@pytest.mark.parametrize(
    "wrong", [[("a", 1)], {"a": 1.0}, {"a": True}, {b"a": 1}, {1.5: 1}, {("a", 1.5): 1}, {True: 1}]
)
def test_anything_else_is_no_such_mapping(wrong: Wrong) -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    with pytest.raises(TypeError, match="part 'words': expected"):
        words.checked(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", None])
def test_bounds_are_whole_numbers(wrong: Wrong) -> None:
    with pytest.raises(InvalidArgument, match="per_unit = "):
        Bounded.keys(lambda: WORDS, per_unit=wrong, unit=PERSON, name="words")
    with pytest.raises(InvalidArgument, match="per_unit = "):
        KeysPart("words", wrong, Sensitivity(l0=2, linf=1))
    with pytest.raises(InvalidArgument, match="most = "):
        Bounded.keys(lambda: WORDS, per_unit=1, most=wrong, unit=PERSON, name="words")
