"""A search for the pair of neighbouring datasets that a mechanism tells apart best.

1. Datasets of all sizes up to 64, of equal rows and of copies of the given ones, show where a
   further row changes most.
2. These pairs and those of `neighbours` are measured: how well a guess tells the datasets apart.
3. The best pairs of each size are changed again and again: longer and shorter datasets, equal rows,
   larger and smaller values. Some are measured again instead, so that no lucky one stays.
4. The best pairs are measured again, by more and more outputs.

An audit of the pairs that it returns draws fresh outputs, so its guarantee holds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from random import Random
from typing import Any, TypeVar

from discreet import _checks
from discreet.audit._black_box import Progress
from discreet.audit._draws import draw_of, is_failure, outputs_of_both
from discreet.audit._guesses import log_odds
from discreet.audit._neighbours import neighbours, place_of_row, variants
from discreet.audit._outputs import Outputs
from discreet.errors import InvalidArgument

T = TypeVar("T")
RowList = list[Any]  # Any: rows of any form
DatasetPair = tuple[RowList, RowList]

_RETURNED = 5
_NEAR_BEST = 0.1  # the share of the best measure by which a pair may stay below it
_MOST_ROWS = 64
_FEWEST_OUTPUTS = 40
_FEWEST_OF_SIZE = 12  # outputs of each dataset whose size is scanned
_CHOSEN_SIZES = 4  # of each scan
_PARENTS = 3  # of each size, where sizes double
_FINALISTS, _LAST = 6, 3  # pairs that are measured again, and those that are once more
_AGAIN = 0.25  # the share of tries that measure a parent again


@dataclass(frozen=True, slots=True)
class _MeasuredPair:
    """A pair, the mean of its measures, and the number of outputs that they took."""

    pair: DatasetPair
    mean: float
    outputs: int


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
    The datasets of a pair differ in one row. The search draws ``tries`` times ``outputs`` outputs:
    about a sixth of them for datasets of up to 64 rows (from 65 tries on), a third or less for
    pairs of `neighbours`, and the others for changed pairs, where rows are repeated, removed or
    made equal, and numbers grow or shrink. As many outputs again compare the best pairs. A ``seed``
    makes the choice of the changes repeatable.

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
    spent = 0

    def tried(pair: DatasetPair, count: int) -> list[_MeasuredPair]:
        nonlocal spent
        spent += count
        if progress is not None:
            progress(min(2 * most - 1, spent // each), 2 * most)
        try:
            return [_MeasuredPair(pair, _measure(mechanism, pair, count), count)]
        except InvalidArgument:
            if spent == count:
                raise
            return []

    base, others = _split_neighbours(neighbours(rows), random)
    known = [one for pair in base for one in tried(pair, each)]
    first = others[: most // 3]
    if most > _MOST_ROWS:
        count = max(_FEWEST_OF_SIZE, each * most // (12 * _MOST_ROWS))
        first = _by_size(mechanism, list(rows), count) + first
        spent += 2 * _MOST_ROWS * count
    best = [one for pair in first for one in tried(pair, each)] or known
    while spent < most * each:
        best = _changed_once(best, lambda pair: tried(pair, each), random)
    found = _best_of(known, best, most * each, tried)
    if progress is not None:
        progress(2 * most, 2 * most)
    return found


def _split_neighbours(
    pairs: list[DatasetPair], random: Random
) -> tuple[list[DatasetPair], list[DatasetPair]]:
    """The first pair, which removes a row, and those with an empty dataset; and all others, in
    another order."""
    is_base = [not place or not min(pair, key=len) for place, pair in enumerate(pairs)]
    base, others = (
        [pair for pair, known in zip(pairs, is_base, strict=True) if known == wanted]
        for wanted in (True, False)
    )
    return base, _mixed(others, random)


def _changed_once(
    known: list[_MeasuredPair],
    tried: Callable[[DatasetPair], list[_MeasuredPair]],
    random: Random,
) -> list[_MeasuredPair]:
    """The best pairs of each size, with a changed one, or with a new measure of one of them."""
    best = _parents(known)
    parent = random.choice(best)
    if random.random() > _AGAIN:
        return best + tried(_changed(parent.pair, random))
    best.remove(parent)
    return best + ([_together(parent, one) for one in tried(parent.pair)] or [parent])


def _best_of(
    base: list[_MeasuredPair],
    best: list[_MeasuredPair],
    outputs: int,
    tried: Callable[[DatasetPair, int], list[_MeasuredPair]],
) -> list[DatasetPair]:
    """The pairs that come next to the best one, by measures that did not choose them."""
    finalists = base + sorted(best, key=_mean, reverse=True)[: _FINALISTS - len(base)]
    each = max(_FEWEST_OUTPUTS, outputs // (2 * len(finalists)))
    fresh = [one for old in finalists for one in tried(old.pair, each)] or finalists
    fresh.sort(key=_mean, reverse=True)
    each = max(_FEWEST_OUTPUTS, outputs // (2 * _LAST))
    last = [_together(old, one) for old in fresh[:_LAST] for one in tried(old.pair, each)] or fresh
    last.sort(key=_mean, reverse=True)
    least = last[0].mean - _NEAR_BEST * abs(last[0].mean)
    near = [one for one in last + fresh[_LAST:] if one.mean >= least]
    return [one.pair for one in near[:_RETURNED]]


def _mean(measured: _MeasuredPair) -> float:
    return measured.mean


def _together(one: _MeasuredPair, other: _MeasuredPair) -> _MeasuredPair:
    """Two measures of one pair as one."""
    outputs = one.outputs + other.outputs
    total = one.mean * one.outputs + other.mean * other.outputs
    return _MeasuredPair(one.pair, total / outputs, outputs)


def _parents(measured: list[_MeasuredPair]) -> list[_MeasuredPair]:
    """The best pairs of each size, where sizes double."""
    sizes: dict[int, list[_MeasuredPair]] = {}
    for one in sorted(measured, key=_mean, reverse=True):
        same = sizes.setdefault(max(map(len, one.pair)).bit_length(), [])
        if len(same) < _PARENTS:
            same.append(one)
    return [one for same in sizes.values() for one in same]


def _measure(mechanism: object, pair: DatasetPair, outputs: int) -> float:
    """How well a guess tells the two datasets apart."""
    draw, both = draw_of(mechanism), ([*pair[0]], [*pair[1]])
    learning, has_failed = outputs_of_both(draw, both, outputs // 4)
    choosing, has_failed_again = outputs_of_both(draw, both, outputs // 4)
    return -math.inf if has_failed and has_failed_again else log_odds(learning, choosing)


def _by_size(mechanism: object, rows: RowList, outputs: int) -> list[DatasetPair]:
    """The pairs of equal rows, and of copies of the given rows, that differ most by this number of
    outputs of each dataset."""
    found: list[DatasetPair] = []
    for kind in ([rows[0]], rows):
        largest = list(islice(cycle(kind), _MOST_ROWS))
        drawn = [
            _halves(mechanism, largest[:size], outputs) for size in range(len(kind), _MOST_ROWS + 1)
        ]
        measures = [
            (log_odds((one[0], other[0]), (one[1], other[1])), len(kind) + place)
            for place, (one, other) in enumerate(pairwise(drawn))
            if one and other and not (one[2] and other[2])
        ]
        for _, size in sorted(measures, reverse=True)[:_CHOSEN_SIZES]:
            found.append((largest[: size + 1], largest[:size]))
    return found


def _halves(
    mechanism: object, dataset: RowList, outputs: int
) -> tuple[Outputs, Outputs, bool] | None:
    """Two times half of this number of outputs, and whether each call raised; ``None``
    if it may not raise."""
    draw = draw_of(mechanism)
    try:
        drawn = [draw.of([*dataset], outputs // 2) for _ in range(2)]
    except InvalidArgument:
        return None
    has_failed = all(is_failure(one) for each in drawn for one in each)
    return Outputs.of(drawn[0]), Outputs.of(drawn[1]), has_failed


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
