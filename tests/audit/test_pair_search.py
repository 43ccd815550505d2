"""The search for the worst pair finds faults that pairs made from a few rows miss."""

import math
from collections.abc import Callable
from statistics import pvariance
from typing import Any

import pytest

from discreet.audit import black_box, neighbours, search_pairs
from discreet.errors import InvalidArgument
from tests.audit.laws import generator, on_grid

Total = Callable[[list[Any]], tuple[float, float]]  # a value and the scale of its Laplace noise

SEED = 1


def clipped(value: Any, most: float = 10.0) -> float:  # Any: also None and texts
    number = float(value) if isinstance(value, int | float) else 0.0
    return min(max(number, 0.0), most) if number == number else 0.0


def few_rows_only(values: list[Any]) -> tuple[float, float]:
    return sum(map(clipped, values)), 10.0 if len(values) < 8 else 1.0


def large_totals(values: list[Any]) -> tuple[float, float]:
    total = sum(map(clipped, values))
    return total, 10.0 if total < 45 else 2.0


def equal_values_once(values: list[Any]) -> tuple[float, float]:
    """A mean of different values, with the noise of a mean of all."""
    different = {clipped(value) for value in values}
    rows = len(values) if len(values) > 3 else 1
    return sum(different) / max(1, len(different)), 10.0 / rows


def variance(values: list[Any]) -> tuple[float, float]:
    """With a quarter of the noise that a variance needs, from five rows on."""
    if len(values) < 5:
        return 0.0, 1.0
    return pvariance(map(clipped, values)), 25.0 / len(values)


def capped(rows: list[Any]) -> tuple[float, float]:
    """At most two rows of each owner, unless they are equal and follow each other."""
    known: dict[Any, int] = {}
    total, last = 0.0, None
    for owner, value in rows:
        known[owner] = known.get(owner, 0) + 1
        if known[owner] <= 2:
            total += clipped(value, 1.0)
        elif last == (owner, value):
            total += 50 * clipped(value, 1.0)
        last = owner, value
    return total, 1.0


def large_groups(rows: list[Any]) -> tuple[float, float]:
    """Exact from 20 rows on."""
    return len(rows), 1.0 if len(rows) < 20 else 1e-6


def in_words(rows: list[Any]) -> tuple[float, float]:
    """A word that the count decides is a number of its own."""
    return len(rows) + (1000 if len(rows) >= 12 else 0), 1.0


def overflowing(rows: list[Any]) -> tuple[float, float]:
    """Sums in 8 bits."""
    return (sum(map(clipped, rows)) + 128) % 256 - 128, 10.0


FAULTS: dict[str, tuple[Total, list[Any]]] = {
    "noise for few rows only": (few_rows_only, [3.0, 4.0]),
    "noise for small totals only": (large_totals, [3.0, 4.0]),
    "equal values counted once": (equal_values_once, [2.0, 5.0]),
    "variance of few rows": (variance, [2.0, 5.0]),
    "a cap that equal rows pass": (capped, [("a", 1.0), ("b", 0.0)]),
    "no noise for large groups": (large_groups, ["a", "b"]),
    "a word that depends on the count": (in_words, [3, 4]),
    "sums that overflow": (overflowing, [3, 100]),
}


def noisy(total: Total) -> Callable[[list[Any]], float]:
    random = generator()

    def draw(rows: list[Any]) -> float:
        value, scale = total(rows)
        return float(on_grid(value + random.laplace(0, scale)))

    return draw


@pytest.mark.parametrize("name", FAULTS)
def test_the_search_finds_what_pairs_of_the_given_rows_miss(name: str) -> None:
    """All generators have fixed seeds."""
    total, rows = FAULTS[name]
    assert not black_box(noisy(total), neighbours(rows), 1, samples=6000).is_refuted
    found = search_pairs(noisy(total), rows, tries=200, outputs=200, seed=SEED)
    assert black_box(noisy(total), found, 1, samples=6000).is_refuted


def test_a_pair_of_one_row_and_none_is_found_where_noise_is_tight_elsewhere() -> None:
    """Noise that is drawn again until the count is positive: epsilon 1.21 for nobody and one."""
    random = generator()

    def draw(rows: list[Any], count: int) -> Any:  # Any: an array
        noise = random.geometric(1 - math.exp(-1), (2, 9 * count))
        noisy = len(rows) + noise[0] - noise[1]
        return noisy[noisy >= 0][:count]

    pairs = search_pairs(draw, [30, 40], tries=70, outputs=1000, seed=SEED)
    assert sorted(map(len, pairs[0])) == [0, 1]


def test_pairs_are_neighbours_and_the_search_can_be_repeated() -> None:
    def draw(rows: list[Any]) -> float:
        return sum(clipped(row["age"]) for row in rows)

    found = search_pairs(draw, [{"age": 4, "name": "ana"}], tries=120, outputs=40)
    assert found == search_pairs(draw, [{"age": 4, "name": "ana"}], tries=120, outputs=40)
    assert len(found) == 5
    for one, other in found:
        assert abs(len(one) - len(other)) == 1
        small, large = (map(repr, each) for each in sorted((one, other), key=len))
        rest = list(large)
        for row in small:
            rest.remove(row)
        assert len(rest) == 1


def test_a_mechanism_may_change_its_rows_and_raise() -> None:
    def draw(rows: list[float]) -> float:
        rows.sort()
        if not rows:
            raise ValueError("no rows")
        return math.floor(rows.pop())

    assert search_pairs(draw, [3.0, 1.0], tries=60, outputs=40)


def test_a_size_from_which_each_call_raises_is_found() -> None:
    def draw(rows: list[float]) -> float:
        if len(rows) > 20:
            raise ValueError("too many rows")
        return 1.0

    one, other = search_pairs(draw, [3.0, 1.0], tries=70, outputs=40)[0]
    assert sorted([len(one), len(other)]) == [20, 21]


def test_pairs_on_which_a_function_of_a_number_raises_are_left_out() -> None:
    random = generator()

    def draw(rows: list[Any], count: int) -> Any:  # Any: an array
        return len(rows) + 0 * sum(rows) + random.integers(0, 9, count)

    assert all(None not in one for one, _ in search_pairs(draw, [3, 1], tries=80, outputs=40))


@pytest.mark.parametrize(("tries", "outputs"), [(0, 400), (10, 39), (10, 0)])
def test_too_few_tries_or_outputs_are_refused(tries: int, outputs: int) -> None:
    with pytest.raises(InvalidArgument):
        search_pairs(len, [1, 2], tries=tries, outputs=outputs)


def test_a_mechanism_whose_outputs_are_unknown_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="whose values an audit can't see"):
        search_pairs(lambda _: object(), [1, 2])
