"""Counts under keys that nobody knows."""

import math
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet._unit import Change
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Key, KeysPart, Sensitivity
from discreet.mechanisms.thresholds import sets_of_keys
from tests.bad_values import BadValue
from tests.mechanisms.hostile import Hostile
from tests.mechanisms.kit import PERSON

WORDS: dict[Key, int] = {"ache": 41, "rash": 1, ("a", 2): 3, 5: 0}


def test_the_sensitivity_counts_keys() -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, most=3, unit=PERSON, name="words")
    assert words.part.sensitivity == Sensitivity(l0=2, linf=3)
    replaced = PERSON.with_change(Change.REPLACE)
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=replaced, name="words")
    assert words.part.sensitivity == Sensitivity(l0=4, linf=1)


def test_keys_with_count_0_are_absent() -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    assert words.checked(WORDS) == {"ache": 41, "rash": 1, ("a", 2): 3}
    assert words.checked({"a": np.int64(2)}) == {"a": 2}
    assert words.parts[0].moves({"a": 2}, {"b": 1}) == [2, 1]


@pytest.mark.parametrize("wrong", [[("a", 1)], ["a"], None, 3])
def test_anything_else_is_no_such_mapping(wrong: BadValue) -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    with pytest.raises(TypeError, match="part 'words': expected"):
        words.checked(wrong)


class Mood(StrEnum):
    GOOD = "good"


NO_KEYS: list[BadValue] = [
    None,
    math.nan,
    b"a",
    1.5,
    ("a", 1.5),
    ("a", None),
    math.inf,
    1j,
    Hostile(),
    (Hostile(),),
]
NO_KEYS += [frozenset({1}), date(2026, 5, 1), np.datetime64("2026"), Decimal("NaN"), ((1, 2),)]
EQUAL = [(True, 1), (2.0, 2), (np.int8(3), 3), (np.str_("a"), "a"), (Mood.GOOD, "good")]
EQUAL += [(Fraction(4), 4), ((1.0, np.str_("a")), (1, "a")), (10**5000, 10**5000), ("\ud800",) * 2]


@pytest.mark.parametrize("number", range(len(NO_KEYS)))
def test_bad_keys_are_left_out(number: int) -> None:
    """A value that is no key changes no count of the other units."""
    key = NO_KEYS[number]
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    assert words.checked({"a": 30, key: 40, 5: 2}) == {"a": 30, 5: 2}
    sets: dict[Key, Any] = {1: ["a", key, "b"], 2: [key], 3: None, 4: 1.5}
    made = sets_of_keys(lambda: sets, per_unit=1, unit=PERSON, name="sets").compute()
    assert made == {next(iter(made)): 1 << 20}


@pytest.mark.parametrize(("key", "own"), EQUAL, ids=lambda key: type(key).__name__)
def test_a_key_is_the_text_or_integer_that_it_equals(key: BadValue, own: Key) -> None:
    """A mapping holds them under whichever came first."""
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    (found,) = words.checked({key: 40})
    assert found == own
    assert type(found) is type(own)
    sets: list[BadValue] = [{1: [key], own: ["b", key]}, {1: [own], own: [own, "b", own]}]
    made = sets_of_keys(sets.pop, per_unit=1, unit=PERSON, name="sets")
    assert made.compute() == made.compute()


COUNTS: list[BadValue] = [(2.0, 2), (2.9, 2), (-0.5, -1), (True, 1), (np.float32(3.5), 3)]
COUNTS += [(np.True_, 1), (np.int8(-3), -3), (Decimal("4.9"), 4), (2**70, 2**70)]
COUNTS += [(Fraction(7, 2), 3), (None, 0), (math.nan, 0), (math.inf, 0), ("3", 0), (1j, 0)]
COUNTS += [(np.timedelta64(3), 0), (Hostile, 0), ([], 0)]


@pytest.mark.parametrize(("count", "whole"), COUNTS)
def test_a_count_is_rounded_down_and_0_if_it_is_no_number(count: BadValue, whole: int) -> None:
    words = Bounded.keys(lambda: WORDS, per_unit=2, unit=PERSON, name="words")
    expected = {"a": 30} | ({"b": whole} if whole else {})
    assert words.checked({"a": 30, "b": count() if count is Hostile else count}) == expected


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", None])
def test_bounds_are_whole_numbers(wrong: BadValue) -> None:
    with pytest.raises(InvalidArgument, match="per_unit = "):
        Bounded.keys(lambda: WORDS, per_unit=wrong, unit=PERSON, name="words")
    with pytest.raises(InvalidArgument, match="per_unit = "):
        KeysPart("words", wrong, Sensitivity(l0=2, linf=1))
    with pytest.raises(InvalidArgument, match="most = "):
        Bounded.keys(lambda: WORDS, per_unit=1, most=wrong, unit=PERSON, name="words")
