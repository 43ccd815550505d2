"""Pairs of neighbouring datasets: checks, and a generator of rows that broke other mechanisms."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from discreet.audit._canonical import printed
from discreet.errors import InvalidArgument

T = TypeVar("T")

_MOST_REMOVED = 10
_SHOWN = 100
_INTEGERS = (0, 1, -1, 10**6, -(10**6), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 1e6, -1e6, 5e-324, sys.float_info.max, -sys.float_info.max),
    *(math.nan, math.inf, -math.inf),
)
_TEXTS = ("", " ", "a", "A", "\u00e9", "e\u0301", "0", "NULL", "'", "\x00", "z" * 10_000)


def checked_pairs(pairs: Iterable[Sequence[T]], example: str) -> list[tuple[T, T]]:
    """At least one pair; the example shows the form of the argument."""
    known: list[Any] = list(pairs) if isinstance(pairs, Iterable) else []  # Any: of any form
    if not known or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in known):
        raise InvalidArgument(f"pairs: give a list of pairs of neighbours, as {example}")
    if any(isinstance(dataset, Iterator) for pair in known for dataset in pair):
        raise InvalidArgument("pairs: a dataset is an iterator, empty after one run: give a list")
    return [(one, other) for one, other in known]


def pair_in_words(one: object, other: object) -> str:
    """Two datasets as they print. Long lists are shown with the row in which they differ."""
    texts = _in_words(one), _in_words(other)
    is_long = any(text.endswith("…") for text in texts)
    if not (is_long and isinstance(one, list) and isinstance(other, list)):
        return " and ".join(texts)
    small, large = sorted((one, other), key=len)
    place = place_of_row(small, large)
    rows = f"{len(small)} rows {_in_words(small)}"
    if len(small) == len(large) > place:
        return f"{rows}, with {_in_words(one[place])} and {_in_words(other[place])} in row {place}"
    if len(large) - len(small) == 1:
        order = "with and without" if large is one else "without and with"
        return f"{rows}, {order} {_in_words(large[place])}"
    return " and ".join(texts)


def place_of_row(small: Sequence[object], large: Sequence[object]) -> int:
    """The first place in which two lists differ. Rows that print alike are equal, as NaN is."""
    return next(
        (place for place, row in enumerate(small) if repr(row) != repr(large[place])), len(small)
    )


def _in_words(dataset: object) -> str:
    shown = dataset[:_SHOWN] if isinstance(dataset, list) else dataset
    return " ".join(printed(shown).split())


def neighbours(rows: Sequence[T]) -> list[tuple[list[T], list[T]]]:
    """Pairs of datasets that differ in one row, made from some rows, for `black_box`.

    A row is a number, a text, a tuple or a mapping of these. The pairs remove a row, repeat a row,
    leave a single row or none, and add a row with a value that broke other mechanisms: the largest
    and smallest floats, the next float, NaN, infinities, -0.0, integers beyond 64-bit floats,
    ``None``, empty and long texts, and texts that some collations take as equal.

    >>> pairs = neighbours([30.0, 40.0])
    >>> pairs[0]
    ([30.0, 40.0], [40.0])
    >>> all(abs(len(one) - len(other)) == 1 for one, other in pairs)
    True
    """
    known = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, str) else []
    if not known:
        raise InvalidArgument("rows: give a list of at least one row, as an example of its form")
    pairs = [
        (known, known[:place] + known[place + 1 :])
        for place in range(min(len(known), _MOST_REMOVED))
    ]
    pairs += [([known[0]], []), (known, [*known, known[0]])]
    added: dict[str, T] = {}  # by what they print, since NaN differs from itself
    for row in islice(known, _MOST_REMOVED):
        for hostile in variants(row):
            added.setdefault(f"{type(hostile).__name__} {hostile!r}", hostile)
    return pairs + [(known, [*known, row]) for row in added.values()]


def variants(row: Any) -> Iterator[Any]:  # Any: a row of any form
    """Rows like this one with a hostile value in one place."""
    if isinstance(row, Mapping):
        for key, value in row.items():
            yield from ({**row, key: hostile} for hostile in variants(value))
    elif isinstance(row, tuple | list):
        for place, value in enumerate(row):
            for hostile in variants(value):
                changed = [*row[:place], hostile, *row[place + 1 :]]
                make = getattr(
                    type(row), "_make", type(row)
                )  # a named tuple takes its values apart
                yield make(changed)
    elif isinstance(row, bool):
        yield from (True, False, None)
    elif isinstance(row, int):
        yield from (*_INTEGERS, row + 1, None)
    elif isinstance(row, float):
        yield from (*_FLOATS, math.nextafter(row, math.inf), None)
    elif isinstance(row, str):
        yield from (*_TEXTS, row.swapcase(), f"{row} ", None)
    else:
        yield None
