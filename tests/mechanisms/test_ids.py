"""Ids: one id is one however it is stored, and all that are missing are none."""

from typing import Any

import numpy as np
import pytest

from discreet.mechanisms._ids import is_missing, plain
from discreet.mechanisms.framework._sample_and_aggregate import block_of
from discreet.mechanisms.thresholds import sets_of_keys
from tests.mechanisms.hostile import Hostile
from tests.mechanisms.kit import PERSON
from tests.missing_ids import MARKS


def weights(sets: dict[Any, list[str]], per_unit: int = 3) -> dict[Any, int]:
    bounded = sets_of_keys(lambda: sets, per_unit=per_unit, unit=PERSON, name="words")
    return dict(bounded.checked(bounded.compute()))


@pytest.mark.parametrize("mark", MARKS)
def test_all_that_are_missing_are_one(mark: str) -> None:
    assert is_missing(MARKS[mark])
    assert plain(MARKS[mark]) == plain(None) == plain(str(MARKS[mark])) == ""


@pytest.mark.parametrize("own", [0, -1, 1.5, "x", b"\xff", " ", np.int64(3), 2**70, True])
def test_other_ids_are_not_missing(own: object) -> None:
    assert not is_missing(own)
    assert plain(own) != plain(None)


@pytest.mark.parametrize("number", [0, 1, -7, 10**6, 2**53 - 1, 2**53 + 1, 10**22])
def test_an_integer_is_one_id_in_every_kind_of_column(number: int) -> None:
    """A missing id turns its column into floats, and a text turns it into texts. Two ids of one
    unit would count twice."""
    forms = [
        number,
        float(number),
        np.float64(number),
        str(number),
        f"{number}.0",
        str(float(number)),
    ]
    assert {plain(form) for form in forms} == {plain(number)}
    assert {plain(str(form).encode()) for form in forms} == {plain(number)}
    assert plain(f"{number % 1000}.5") != plain(number % 1000)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_one_id_in_every_kind_of_column(value: bool) -> None:
    """A missing id turns a column of truth values into floats or objects, a text into texts."""
    forms = [value, np.bool_(value), float(value), int(value), str(value), str(value).lower()]
    assert {plain(form) for form in forms} == {int(value)}
    assert {plain(str(form).encode()) for form in forms} == {int(value)}


@pytest.mark.parametrize("mark", MARKS)
def test_rows_without_an_id_share_a_block(mark: str) -> None:
    marks = np.array([MARKS[mark], None, 5], object)
    blocks = block_of(marks, 10**6).tolist()
    assert blocks[0] == blocks[1] != blocks[2]


@pytest.mark.parametrize("mark", MARKS)
def test_sets_without_an_id_give_no_weight(mark: str) -> None:
    """NaN is no number's equal, so that a mapping may have any number of them; were each a unit,
    whoever lost an id could count as often as there are such sets."""
    known = {1: ["a", "b"], "x": ["b"]}
    nobodys = {MARKS[mark]: ["a", "c", "d", "e"], float("nan"): ["a"], float("nan"): ["a", "f"]}
    assert weights({**known, **nobodys}) == weights({**known})


def test_an_id_that_fails_when_it_is_looked_at_is_missing() -> None:
    known = {1: ["a", "b"]}
    assert weights({**known, Hostile(): [*"abcdef"]}) == weights({**known})
