"""A request gives one draw, however often it is repeated."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from discreet._budget import Limit, Receipt
from discreet.errors import InvalidArgument, RequestReused
from discreet.ledger import Ledger
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    IntegerArray,
    Mechanism,
    Part,
    Sensitivity,
    Together,
    Value,
    release,
    release_through,
)
from tests.mechanisms.kit import LAPLACE, PERSON, FakePayer, ledger, number, silent_door

ARRAY = np.array([[1, -2], [2**62, 0]])
PARTS = (
    Part("people", (), Sensitivity(l1=1)),
    Part("pay", (2,), Sensitivity(l1=2)),
    Part("wide", (2,), Sensitivity(l1=2), is_wide=True),
)
JOINT: dict[str, Value] = {
    "people": 41,
    "pay": np.array([1, 2]),
    "wide": np.array([2**90, -1], dtype=object),
}
TOGETHER = Together({"wide": Gaussian(2**70), "pay": Gaussian(5), "people": LAPLACE})


def shaped(values: IntegerArray) -> Bounded[Any]:
    is_wide, shape = values.dtype == object, values.shape
    return Bounded(
        lambda: values, sensitivity=1, unit=PERSON, name="a", shape=shape, is_wide=is_wide
    )


RELEASES: dict[str, tuple[Bounded[Any], Mechanism[Any, Any]]] = {
    "a number": (number(), DiscreteLaplace(1000)),
    "a large number": (number(lambda: 3**200), DiscreteLaplace(2**80)),
    "an array": (shaped(ARRAY), DiscreteLaplace(1000)),
    "an array at its end": (shaped(ARRAY), DiscreteLaplace(2**70)),
    "an object array": (shaped(ARRAY.astype(object) * 2**80), DiscreteLaplace(2**80)),
    "an empty array": (shaped(np.zeros((0, 2), dtype=np.int64)), LAPLACE),
    "several parts": (
        Bounded.together(lambda: JOINT, parts=PARTS, unit=PERSON, name="joint"),
        TOGETHER,
    ),
}


def same(one: object, other: object) -> bool:
    """Equal in value, kind, shape and order."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and [(type(x), x) for x in one.flat] == [(type(x), x) for x in other.flat]
        )
    return type(one) is type(other) is int and one == other


@pytest.mark.parametrize("case", RELEASES)
@pytest.mark.parametrize("payer", [FakePayer, None], ids=["fake", "ledger"])
def test_a_request_gives_one_draw(case: str, payer: Callable[[], FakePayer] | None) -> None:
    bounded, mechanism = RELEASES[case]
    limit = Limit(epsilon=10, delta=1e-6)
    book: Any = payer() if payer else Ledger.in_memory(unit=PERSON, limit=limit)
    first = release(bounded, mechanism, book, request="r", by="ana")
    once = repr(book.charges) if payer else book.spent()
    again = release(bounded, mechanism, book, request="r", by="ana")
    assert same(first.value, again.value)
    assert once == (repr(book.charges) if payer else book.spent())
    assert first.receipt.number == again.receipt.number
    other = release(bounded, mechanism, book, request="s", by="ana")
    assert first.receipt.number != other.receipt.number
    if first.receipt.stored is None and "empty" not in case and "at its end" not in case:
        assert not same(first.value, other.value)  # the id gives no noise: a new one, a new draw


def test_a_repeated_request_computes_nothing() -> None:
    runs: list[int] = []
    payer = FakePayer()
    bounded = number(lambda: runs.append(1) or 41)  # type: ignore[func-returns-value]
    for _ in range(3):
        release(bounded, LAPLACE, payer, request="r")
    assert len(runs) == len(payer.charges) == 1


@pytest.mark.parametrize("payer", [FakePayer, ledger])
def test_another_question_under_the_same_request_is_refused(payer: Callable[[], Any]) -> None:
    book = payer()
    release(number(), LAPLACE, book, request="r")
    others: list[tuple[Bounded[int], Mechanism[int, int]]] = [
        (number(), DiscreteLaplace(2.0000001)),
        (number(), DiscreteLaplace(1)),
        (number(sensitivity=2), LAPLACE),
        (Bounded(lambda: 41, sensitivity=1, unit=PERSON, name="others"), LAPLACE),
    ]
    for bounded, mechanism in others:
        with pytest.raises(RequestReused):
            release(bounded, mechanism, book, request="r")
    release(number(), DiscreteLaplace(1), book, request="r", by="somebody else")


def test_only_the_answer_is_stored() -> None:
    payer = FakePayer()
    bounded, mechanism = RELEASES["several parts"]
    answer = release_through(silent_door(payer), bounded, mechanism, request="r")
    [stored] = payer._answers.values()
    assert json.loads(stored) == {
        "mapping": [
            ["people", 41],
            ["pay", {"array": ["int64", [2], [1, 2]]}],
            ["wide", {"array": ["object", [2], [2**90, -1]]}],
        ]
    }
    assert "people: 41" not in repr(answer)
    with pytest.raises(InvalidArgument, match="states no error"):
        answer.error()


def test_an_answer_that_can_not_be_stored_is_not_released() -> None:
    class Full(FakePayer):
        def keep(self, receipt: Receipt, answer: str) -> None:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        release(number(), LAPLACE, Full(), request="r")


def test_an_answer_of_any_length_is_stored() -> None:
    """Python writes no integer of more than 4300 digits, and that it is one is the data's own."""
    payer = FakePayer()
    first = release(number(lambda: 10**5000), LAPLACE, payer, request="r")
    again = release(number(lambda: 10**5000), LAPLACE, payer, request="r")
    assert first.value == again.value
    assert abs(first.value - 10**5000) < 10**4
