"""A search for the pair of neighbouring datasets that a mechanism tells apart best.

It starts with the pairs of `neighbours`, and changes the best ones again and again: longer and
shorter datasets, equal rows, larger and smaller values. A few outputs of each pair serve to compare
them. An audit of the pairs that it returns draws fresh outputs, so its guarantee holds.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, TypeVar

from discreet import _checks
from discreet.audit._black_box import Progress
from discreet.audit._draws import draw_of, outputs_of_both
from discreet.audit._guesses import log_odds
from discreet.audit._neighbours import neighbours, place_of_row, variants
from discreet.errors import InvalidArgument

T = TypeVar("T")
RowList = list[Any]  # Any: rows of any form
DatasetPair = tuple[RowList, RowList]

_PARENTS = 8
_RETURNED = 5
_MOST_ROWS = 64
_FEWEST_OUTPUTS = 40


def search_pairs(
    mechanism: object,
    rows: Sequence[T],
    *,
    tries: int = 400,
    outputs: int = 400,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[tuple[list[T], list[T]]]:
    """Up to 5 pairs of datasets that a mechanism tells apart best, the best one first.

    ``mechanism`` is a function as for `black_box`, and ``rows`` are a few rows as for `neighbours`.
    The datasets of a pair differ in one row. ``tries`` pairs are compared, by this number of
    ``outputs`` each. The first half of the tries are pairs of `neighbours`; each of the others
    changes one of the best pairs so far: rows are repeated, removed or made equal, numbers grow or
    shrink. A ``seed`` makes the choice of these changes repeatable.

    No bound follows from the search, and a worse pair may exist. Audit what it returns:
    ``black_box(mechanism, search_pairs(mechanism, rows), claim)``. A function of a dataset and a
    number may not raise; pairs on which it does are left out.

    >>> def hides_few(people):  # only the 7th person shows
    ...     return max(0, len(people) - 6)
    >>> one, other = search_pairs(hides_few, [3, 4], tries=100, outputs=40)[0]
    >>> max(len(one), len(other)) > 6
    True
    """
    most = _checks.positive_count(tries=tries)
    if (each := _checks.positive_count(outputs=outputs)) < _FEWEST_OUTPUTS:
        raise InvalidArgument(f"outputs = {outputs}: give at least {_FEWEST_OUTPUTS}")
    random = Random(seed)  # noqa: S311  # no secret
    first: list[DatasetPair] = neighbours(rows)
    if len(first) > most // 2:
        first = first[:1] + _mixed(first[1:], random)[: max(0, most // 2 - 1)]
    order = count()  # of equally good pairs the later one stays, which lets datasets grow
    best: list[tuple[float, int, DatasetPair]] = []
    for place in range(most):
        pair = first[place] if place < len(first) else _changed(random.choice(best)[2], random)
        try:
            found = _difference(mechanism, pair, each)
        except InvalidArgument:
            if not place:
                raise
        else:
            heapq.heappush(best, (found, next(order), pair))
            best = heapq.nlargest(_PARENTS, best)
        if progress is not None:
            progress(place + 1, most)
    return [pair for _, _, pair in best[:_RETURNED]]


def _difference(mechanism: object, pair: DatasetPair, outputs: int) -> float:
    """How well a guess tells the two datasets apart."""
    draw, both = draw_of(mechanism), ([*pair[0]], [*pair[1]])
    learning, has_failed = outputs_of_both(draw, both, outputs // 4)
    choosing, has_failed_again = outputs_of_both(draw, both, outputs // 4)
    return -math.inf if has_failed and has_failed_again else log_odds(learning, choosing)


# Changes


def _changed(pair: DatasetPair, random: Random) -> DatasetPair:
    """The pair after one change, or several."""
    changed = random.choice((_changed_rows, _changed_rows, _changed_place, _swapped))(pair, random)
    return _changed(changed, random) if random.random() < 0.3 else changed


def _changed_rows(pair: DatasetPair, random: Random) -> DatasetPair:
    """Both datasets after the same change of the rows that they share."""
    shared, last = _split(pair)
    act = random.choice((_twice, _half, _equal, _longer, _one_changed, _all_changed))
    return _joined(act(shared, random, last)[:_MOST_ROWS], last, pair)


def _changed_place(pair: DatasetPair, random: Random) -> DatasetPair:
    """Another value of the row in which the datasets differ, which may be one of the others."""
    shared, last = _split(pair)
    others = [*shared, *last]
    row = random.choice(others) if random.random() < 0.5 else last[0]
    return _joined(shared, [_value(row, random)], pair)


def _swapped(pair: DatasetPair, random: Random) -> DatasetPair:
    """Another row is the one in which the datasets differ."""
    shared, last = _split(pair)
    if not shared:
        return pair
    place = random.randrange(len(shared))
    return _joined(shared[:place] + last + shared[place + 1 :], [shared[place]], pair)


def _split(pair: DatasetPair) -> tuple[RowList, RowList]:
    """The shared rows, and the row that one of the datasets has in addition."""
    small, large = sorted(pair, key=len)
    return small, [large[place_of_row(small, large)]]


def _joined(shared: RowList, last: RowList, pair: DatasetPair) -> DatasetPair:
    """The pair with these rows; the larger dataset stands where it stood."""
    small, large = shared, shared + last
    return (large, small) if len(pair[0]) > len(pair[1]) else (small, large)


def _twice(shared: RowList, _: Random, last: RowList) -> RowList:
    return (shared or last) * 2


def _half(shared: RowList, random: Random, _: RowList) -> RowList:
    return _mixed(shared, random)[: len(shared) // 2]


def _mixed(values: list[T], random: Random) -> list[T]:
    """The values in another order."""
    mixed = [*values]
    random.shuffle(mixed)
    return mixed


def _equal(shared: RowList, random: Random, last: RowList) -> RowList:
    return [random.choice(shared or last)] * max(1, len(shared))


def _longer(shared: RowList, random: Random, last: RowList) -> RowList:
    return [*shared, random.choice([*shared, *last])]


def _one_changed(shared: RowList, random: Random, last: RowList) -> RowList:
    if not shared:
        return last
    place = random.randrange(len(shared))
    return [*shared[:place], _value(shared[place], random), *shared[place + 1 :]]


def _all_changed(shared: RowList, random: Random, _: RowList) -> RowList:
    """All equal rows change alike."""
    seed = random.random()
    return [_value(row, Random(seed)) for row in shared]  # noqa: S311


def _value(row: Any, random: Random) -> Any:  # Any: a row of any form
    """A row like this one with another value: near, or hostile."""
    if isinstance(row, Mapping) and row:
        key = random.choice(list(row))
        return {**row, key: _value(row[key], random)}
    if isinstance(row, tuple | list) and row:
        place = random.randrange(len(row))
        changed = [*row[:place], _value(row[place], random), *row[place + 1 :]]
        return getattr(type(row), "_make", type(row))(changed)
    if isinstance(row, int | float) and not isinstance(row, bool) and random.random() < 0.8:
        return _number(row, random)
    return random.choice(list(variants(row)))


def _number(value: float, random: Random) -> float:
    """A number near this one, or twice or half of it."""
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda number: number * 2,
        lambda number: number // 2 if isinstance(number, int) else number / 2,
        lambda number: number * 10,
        lambda number: -number,
        lambda number: number + 1,
        lambda number: number - 1,
        lambda number: number * 0,
    )
    changed: float = random.choice(changes)(value)
    return changed
