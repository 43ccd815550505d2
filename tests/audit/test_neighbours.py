"""Pairs of datasets that hold what broke other mechanisms."""

import json
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from discreet.audit import black_box, neighbours
from discreet.audit._neighbours import pair_in_words
from discreet.errors import InvalidArgument

DATA = [0.25, 0.5, 0.75]


def noise() -> float:
    """Laplace noise of scale 1, in multiples of 2^-20, so that sums are exact."""
    return round((random.expovariate(1) - random.expovariate(1)) * 2**20) / 2**20


@pytest.mark.parametrize(
    "rows", [[1, 2, 3], DATA, ["a", "b"], [("a", 1.0), ("b", 2.0)], [{"x": 1, "y": "a"}], [None]]
)
def test_each_pair_differs_in_one_row(rows: list[Any]) -> None:
    pairs = neighbours(rows)
    for one, other in pairs:
        longer, shorter = sorted((one, other), key=len, reverse=True)
        left = [repr(row) for row in longer]
        for row in shorter:
            left.remove(repr(row))
        assert len(left) == 1
    assert len({repr(pair) for pair in pairs}) >= len(rows)
    assert all(type(row) is type(rows[0]) or row is None for pair in pairs for row in pair[1])


BROKEN: dict[str, Callable[[list[float]], float]] = {
    "NaN": lambda rows: sum(min(1.0, max(0.0, row)) for row in rows) + noise(),
    "one row": lambda rows: sum(1.0 for row in rows if 0 <= row <= 1) / len(rows) + noise(),
    "large": lambda rows: sum(row for row in rows if row == row) + noise(),
    "negative zero": lambda rows: sum(math.copysign(4.0, row) for row in rows[-1:]) + noise(),
}


def clipped(row: float | None) -> float:
    return min(1.0, max(0.0, row)) if row is not None and row == row else 0.0


@pytest.mark.parametrize("name", BROKEN)
def test_the_audit_finds_the_pair_that_breaks(name: str) -> None:
    assert black_box(BROKEN[name], neighbours(DATA), 1, samples=6000).is_refuted


def test_a_right_mechanism_passes_with_all_pairs() -> None:
    audit = black_box(
        lambda rows: sum(map(clipped, rows)) + noise(), neighbours(DATA), 1, samples=6000
    )
    assert not audit.is_refuted


def test_a_pair_on_which_everything_fails_is_no_evidence() -> None:
    def refuses_nan(rows: list[float]) -> float:
        if any(row != row for row in rows):
            raise ValueError("a value is missing")
        return sum(map(clipped, rows)) + noise()

    pairs = [([math.nan], [math.nan, 1.0]), ([1.0], [1.0, 0.5])]
    audit = black_box(refuses_nan, pairs, 1, samples=4000)
    assert not audit.is_refuted
    assert audit.pair == 1
    assert black_box(refuses_nan, [([1.0], [1.0, math.nan])], 1, samples=4000).is_refuted


def test_no_rows_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one row"):
        neighbours([])


class Point(NamedTuple):
    x: int
    name: str


def test_rows_keep_their_type() -> None:
    """Also named tuples, in whatever they are."""
    for row in (Point(1, "a"), (1, "a"), [1, "a"], {"at": Point(1, "a")}):
        pairs = neighbours([row])
        assert {type(one) for pair in pairs for rows in pair for one in rows} == {type(row)}
    assert ([Point(1, "a")], [Point(1, "a"), Point(2, "a")]) in neighbours([Point(1, "a")])


LONG = [3.0] * 30


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ([1, 2], [1], "[1, 2] and [1]"),
        ([math.nan, *LONG], LONG, "30 rows [3.0, {}…, with and without nan"),
        (LONG, [*LONG, 4.0], "30 rows [3.0, {}…, without and with 4.0"),
        ([*LONG, 1], [*LONG, 2], "31 rows [3.0, {}…, with 1 and 2 in row 30"),
        ({"a": 1}, "x\n y", "{'a': 1} and 'x\\n y'"),
        (LONG, (), "[3.0, {}… and ()"),
    ],
)
def test_a_pair_is_shown_in_words(one: object, other: object, text: str) -> None:
    """Two long lists that differ in one row are not shown alike."""
    cut = f"{LONG!r}"[len("[3.0, ") : 50]
    assert pair_in_words(one, other) == text.replace("{}", cut)
    audit = black_box(lambda _: random.random() < 0.5, [(one, other)], 1, samples=100)
    assert audit.datasets == pair_in_words(one, other)
    assert audit.datasets in repr(audit)
    assert json.loads(audit.to_json())["datasets"] == audit.datasets
