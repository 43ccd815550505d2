"""Labels and scores of an output depend on this output alone, not on others of its batch."""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from discreet.audit import black_box
from discreet.audit._outputs import Outputs, layout
from discreet.audit._scores import learn_scores
from discreet.errors import InvalidArgument
from tests.audit.laws import generator

ODD: list[Any] = [
    *(None, True, 0.5, math.nan, -math.inf, 10**30, -(10**400), 2**63, -5),
    *(1j, "b", Decimal(1), (7, 8, 9), [1.5] * 70, np.float32(0.1), np.ones((2, 2))),
]
NUMBERS: list[Any] = [-3, -2, -1, 0, 1, 2, 2**53]
BATCHES: dict[str, list[Any]] = {
    "numbers": NUMBERS,
    "tuples": [(-1,), (-2, -3), (), (2, 0, 1)],
    "texts": ["a", "b", ""],
    "mixed": [None, 1, 2.5, "a", (1, 2)],
}


def objects(batch: list[Any]) -> Any:  # Any: an array
    found = np.empty(len(batch), dtype=object)
    found[:] = batch
    return found


def arrays(numbers: list[Any], odd: Any) -> list[Any]:  # Any: arrays
    """The numbers as arrays of all types that one more output may give them."""
    with np.errstate(over="ignore"):
        found = [np.array(numbers), np.array(numbers, float), objects([*numbers, odd])]
    if isinstance(odd, bool | int | float) and abs(odd) < 10**300:
        found.append(np.array([*numbers, odd]))
    return found


def scores_of(batches: list[Any], count: int) -> list[list[Any]]:
    """For each batch what all scores say of its first outputs."""
    learning = [Outputs.of([(-1, -2), (-3,), -1, 2, (0, 1, 2)] * 20) for _ in range(2)]
    known = learn_scores(learning[0], learning[1])
    return [[score.of(Outputs.of(batch))[:count] for score in known] for batch in batches]


def is_same(batches: list[Any], count: int) -> bool:
    found = [Outputs.of(batch) for batch in batches]
    for one in found[1:]:
        if not np.array_equal(one.labels[:count], found[0].labels[:count]):
            return False
        if not np.array_equal(one.structures[:count], found[0].structures[:count]):
            return False
    scores = scores_of(batches, count)
    return all(
        np.array_equal(one, first, equal_nan=True)
        for each in scores[1:]
        for one, first in zip(each, scores[0], strict=True)
    )


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("name", BATCHES)
def test_no_output_changes_another_one(name: str, odd: Any) -> None:
    """In a list, and in an array of objects."""
    batch = BATCHES[name]
    assert is_same([batch, [*batch, odd]], len(batch))
    assert is_same([objects(batch), objects([*batch, odd])], len(batch))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_no_output_changes_numbers_in_an_array(odd: Any) -> None:
    """An odd value may change the type of the array, but not the scores of the numbers."""
    assert is_same(arrays(NUMBERS, odd), len(NUMBERS))


def test_rows_of_numbers_are_the_same_in_each_array() -> None:
    rows = [[1, 2], [3, -4]]
    batches = [np.array(rows), np.array(rows, float), np.array([*rows, [None, 1]])]
    assert is_same(batches, 2)
    assert len(set(Outputs.of(batches[2]).labels)) == 3


def one_in_a_hundred(random: np.random.Generator, people: list[str]) -> bool:
    return "ana" in people and random.random() < 0.01


@pytest.mark.parametrize("odd", [None, math.nan, 0.5, "array"])
def test_a_rare_output_does_not_give_its_batch_away(odd: float | str | None) -> None:
    """The mechanisms satisfy delta 0.01, and an array of them shows which dataset it is of."""
    random = generator()

    def many(people: list[str], count: int) -> Any:  # Any: an array
        found = [
            odd if one_in_a_hundred(random, people) else int(random.integers(0, 3))
            for _ in range(count)
        ]
        return objects(found) if odd == "array" else np.array(found)

    audit = black_box(many, [(["ana", "ben"], ["ben"])], 0.001, delta=0.011, samples=3000)
    assert not audit.is_refuted
    audit = black_box(many, [(["ana", "ben"], ["ben"])], 0.001, delta=0.001, samples=30_000)
    assert audit.is_refuted


def test_a_rare_long_output_does_not_give_its_batch_away() -> None:
    """The mechanism satisfies delta 0.01."""
    random = generator()

    def keys(people: list[str]) -> tuple[int, ...]:
        number = -int(random.integers(1, 4))
        return (number,) * (3 if one_in_a_hundred(random, people) else 1)

    assert not black_box(
        keys, [(["ana", "ben"], ["ben"])], 0.001, delta=0.011, samples=3000
    ).is_refuted


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        (np.zeros(500), np.array(["0"] * 500)),
        (np.zeros((500, 2)), np.zeros((500, 3))),
        (np.zeros(500), np.zeros((500, 1))),
        (np.array(["a"] * 500), objects(["a"] * 500)),
        (np.zeros(500), [0.0] * 500),
        (np.zeros(500, "M8[s]"), np.zeros(500, "M8[D]")),
        (np.array([2**53 + 1] * 500), np.array([2**53 + 1] * 500, float)),
    ],
)
def test_arrays_of_two_layouts_are_refused(usual: Any, odd: Any) -> None:
    """One output may decide the layout of an array, so the layout says nothing of one output."""
    assert layout(usual) != layout(odd)
    left = [True] * 3 + [False]  # the pilot draws four times

    def draw(_: object, count: int) -> Any:  # Any: an array
        return (usual if not left or left.pop(0) else odd)[:count]

    with pytest.raises(InvalidArgument, match="return a list of outputs"):
        black_box(draw, [(0, 1)], 1, samples=300)


def test_each_pair_may_have_a_layout_of_its_own() -> None:
    def draw(people: list[int], count: int) -> Any:  # Any: an array
        return np.zeros((count, len(people) // 2))

    black_box(draw, [([1, 2], [1, 2, 3]), ([1] * 4, [1] * 5)], 1, samples=300)


class Opaque:
    """An output whose values are not in its text."""

    def __init__(self, value: int) -> None:
        self.value = value


async def later(_: object) -> int:
    return 1


@pytest.mark.parametrize(
    "make",
    [
        Opaque,
        lambda one: [1, {"a": Opaque(one)}],
        lambda one: (one for _ in range(3)),
        lambda one: lambda: one,
        iter,
    ],
)
def test_outputs_without_values_are_refused(make: Any) -> None:
    """A generator that never ran, too: the audit would say that nothing was refuted."""
    with pytest.raises(InvalidArgument, match="whose values an audit can't see"):
        black_box(make, [([1], [])], 1, samples=200)


def test_a_list_that_holds_itself_is_refused() -> None:
    found: list[Any] = []
    found.append(found)
    with pytest.raises(InvalidArgument, match="nested more than"):
        Outputs.of([found])


def test_a_coroutine_is_refused() -> None:
    drawn = later(0)
    with pytest.raises(InvalidArgument, match="coroutine"):
        Outputs.of([drawn])
    drawn.close()


def test_datasets_that_can_be_read_once_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="iterator"):
        black_box(sum, [(iter([1, 2]), iter([1]))], 1, samples=200)


def test_a_batch_that_raises_is_no_output() -> None:
    def draw(people: list[int], count: int) -> list[float]:
        return [1 / len(people)] * count

    with pytest.raises(InvalidArgument, match="the mechanism raised ZeroDivisionError"):
        black_box(draw, [([1], [])], 1, samples=200)


# Numbers inside other values


@dataclass
class Answer:
    value: Any  # Any: of any kind
    unit: str = "person"


class Colour(Enum):
    RED = 1


DIFFERENT: list[Any] = [
    *(None, True, 0, 1, -1, 2**63, 2**64, 2**64 + 1, -(10**5000), -0.0, 1.5, 5e-324),
    *(math.nan, math.inf, -math.inf, "", "a", "5 of 7", "5 of 8", b"a", b"\xff", b"\xfe", 1j),
    *(Decimal(1), Decimal("1.00"), Decimal("sNaN"), Fraction(1, 3), np.longdouble(1) / 3),
    *(date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), time(3, 4), timedelta(5), pandas.NaT),
    *((), (-2,), (-2, -2), [], [1, 2.5], {}, {"x": -1.5}, {"x": -1.5, "y": -1}, {3, 1}),
    *(Answer(2.5), Answer([1]), Colour.RED, np.datetime64("2026-01-03"), np.zeros((0, 2))),
    *(np.ones((2, 2)), np.array([math.nan, -1]), np.array([1, None]), range(3)),
]


def test_different_outputs_have_different_labels() -> None:
    found = Outputs.of(DIFFERENT)
    assert len(set(found.labels.tolist())) == len(DIFFERENT)


WRAPPED: dict[str, Callable[[float], Any]] = {
    "Decimal": Decimal,
    "Fraction": Fraction,
    "complex": lambda number: complex(0, number),
    "NumPy's complex": lambda number: np.array([number + 0j]),
    "long float": np.longdouble,
    "dataclass": Answer,
    "datetime": lambda number: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
    "date": lambda number: date(2026, 1, 1) + timedelta(days=round(1000 * number)),
    "time": lambda number: (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)).time(),
    "duration": lambda number: timedelta(seconds=number),
    "NumPy's duration": lambda number: np.timedelta64(round(1e6 * number), "us"),
    "set": lambda number: {number},
    "dict": lambda number: {"a": [None, number]},
    "text": lambda number: f"{number:.6f} people",
    "JSON": lambda number: f'{{"n": {number}}}',
    "text in bytes": lambda number: str(number).encode(),
    "float in bytes": lambda number: struct.pack(">d", number),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_small_differences_are_seen_inside_values_of_each_kind(kind: str) -> None:
    """The outputs never repeat; noise of scale 1/100 leaves epsilon 100."""
    random = generator()

    def noisy(people: list[str]) -> Any:  # Any: of this kind
        return WRAPPED[kind](float(len(people) + 1 + random.laplace(0, 0.01)))

    assert black_box(noisy, [(["ana", "ben"], ["ben"])], 1, samples=1500).epsilon() > 3


LAST: dict[str, Callable[[int], Any]] = {
    "int": lambda number: number,
    "list": lambda number: [1.5, number],
    "Decimal": lambda number: Decimal(number).scaleb(-20),
    "Fraction": lambda number: Fraction(number, 2**70),
    "digits in a text": lambda number: f"{number} people",
}


@pytest.mark.parametrize("kind", LAST)
def test_digits_that_no_float_holds_are_seen(kind: str) -> None:
    """The noise is wide, but a multiple of 16, and so the last digit is not hidden."""
    random = generator()

    def noisy(people: list[str]) -> Any:  # Any: of this kind
        return LAST[kind](2**65 + (int(random.integers(2**30)) << 4) + len(people))

    assert black_box(noisy, [(["ana", "ben"], ["ben"])], 1, samples=1500).epsilon() > 3


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object])
def test_digits_that_no_float_holds_are_seen_in_arrays(kind: type) -> None:
    random = generator()

    def noisy(people: list[str], count: int) -> Any:  # Any: an array
        return (2**60 + 16 * random.integers(2**30, size=count) + len(people)).astype(kind)

    assert black_box(noisy, [(["ana", "ben"], ["ben"])], 1, samples=1500).epsilon() > 3


def test_an_output_that_changes_later_is_read_at_once() -> None:
    """The mechanisms fill the same list, or the same array, again."""
    random, one, many = generator(), [0.0], np.zeros(5000)

    def fill(people: list[str]) -> list[float]:
        one[0] = len(people) + random.laplace(0, 0.01)
        return one

    def fill_many(people: list[str], count: int) -> Any:  # Any: an array
        many[:count] = len(people) + random.laplace(0, 0.01, count)
        return many[:count]

    for mechanism in (fill, fill_many):
        assert black_box(mechanism, [(["ana", "ben"], ["ben"])], 1, samples=1500).epsilon() > 3


@pytest.mark.parametrize(
    "make", [pandas.DataFrame, lambda _: pandas.NA, lambda _: int, lambda _: Path()]
)
def test_a_type_of_unknown_values_is_refused_by_name(make: Any) -> None:
    output = make([[1]])
    with pytest.raises(InvalidArgument, match=f"of type {type(output).__name__}, whose"):
        Outputs.of([output])
