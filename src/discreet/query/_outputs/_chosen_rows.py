"""Chooses and sorts the rows of an answer, by its keys and its noisy numbers alone.

A condition has SQL's three values: a comparison with NULL is unknown, and HAVING takes the rows for
which it is known to hold. NULL comes last in either direction, unless NULLS FIRST is asked for.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet._arrays import FloatArray
from discreet.query._expressions._expressions import (
    Both,
    Branch,
    Case,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._expressions._query import PostProcessing, SortKey
from discreet.query._facts._columns import KeyValue
from discreet.query._functions._scalar_rules import ScalarFunction

_RELATIONS: dict[Relation, Callable[[Any, Any], Any]] = {  # Any: comparable values
    Relation.EQUAL: operator.eq,
    Relation.UNEQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.AT_MOST: operator.le,
    Relation.GREATER: operator.gt,
    Relation.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The rows of an answer: its keys' values, and a function that computes a number in each."""

    keys: Mapping[Scalar, Sequence[KeyValue | None]]
    numbers: Callable[[Scalar], FloatArray]
    count: int

    def values(self, value: Scalar) -> list[Any]:  # Any: a key or number, None for NULL
        """A value in each row."""
        if value in self.keys:
            return list(self.keys[value])
        match value:
            case Literal(constant):
                return [constant] * self.count
            case Truth(condition):
                true, false = true_and_false(condition, self)
                return [
                    None if one == other else one for one, other in zip(true, false, strict=True)
                ]
            case Case(branches, otherwise):
                return self._of_case(branches, otherwise)
            case FunctionCall(ScalarFunction.COALESCE, arguments):
                columns = zip(*(self.values(one) for one in arguments), strict=True)
                return [next((v for v in row if v is not None), None) for row in columns]
        return [None if math.isnan(one) else one for one in self.numbers(value).tolist()]

    def _of_case(
        self, branches: Sequence[Branch], otherwise: Scalar | None
    ) -> list[Any]:  # Any: as above
        found = [None] * self.count if otherwise is None else self.values(otherwise)
        for branch in reversed(branches):
            holds, _ = true_and_false(branch.condition, self)
            values = [None] * self.count if branch.value is None else self.values(branch.value)
            found = [v if h else rest for h, v, rest in zip(holds, values, found, strict=True)]
        return found


def chosen_places(after: PostProcessing, rows: AnswerRows, first: Iterable[int]) -> list[int]:
    """The indices of the rows that the answer shows, sorted; ``first`` is the order of rows that
    are equal in all sort keys."""
    places = list(first)
    if after.having is not None:
        holds = true_and_false(after.having, rows)[0]
        places = [place for place in places if holds[place]]
    for key in reversed(after.order):
        places = _sorted(places, rows.values(key.value), key)
    end = None if after.limit is None else after.offset + after.limit
    return places[after.offset : end]


def _sorted(places: list[int], values: list[Any], key: SortKey) -> list[int]:  # Any: as above
    there = [place for place in places if values[place] is not None]
    nulls = [place for place in places if values[place] is None]
    there.sort(key=lambda place: values[place], reverse=key.is_descending)  # stable both ways
    return nulls + there if key.has_nulls_first else there + nulls


def true_and_false(condition: Condition, rows: AnswerRows) -> tuple[list[bool], list[bool]]:
    """For each row, whether a condition is known to hold, and whether it is known not to hold."""
    if Truth(condition) in rows.keys:
        return _of_values(rows.values(Truth(condition)), bool)
    match condition:
        case Comparison(relation, left, right):
            test = _RELATIONS[relation]
            pairs = list(zip(rows.values(left), rows.values(right), strict=True))
            known = [None if pair[0] is None or pair[1] is None else pair for pair in pairs]
            return _of_values(known, lambda pair: test(*pair))
        case Membership(value, options):
            listed = [option.value for option in options]
            return _of_values(rows.values(value), lambda one: one in listed)
        case IsNull(value):
            nulls = [one is None for one in rows.values(value)]
            return nulls, [not one for one in nulls]
        case Holds(value):
            return _of_values(rows.values(value), bool)
        case Both(one, other):
            return _both(true_and_false(one, rows), true_and_false(other, rows))
        case Either(one, other):
            false, true = _both(true_and_false(one, rows)[::-1], true_and_false(other, rows)[::-1])
            return true, false
        case Negation(inner):
            return true_and_false(inner, rows)[::-1]


def _of_values(
    values: Sequence[Any], holds: Callable[[Any], object]
) -> tuple[list[bool], list[bool]]:  # Any: as above
    found = [None if value is None else bool(holds(value)) for value in values]
    return [one is True for one in found], [one is False for one in found]


def _both(
    one: tuple[list[bool], list[bool]], other: tuple[list[bool], list[bool]]
) -> tuple[list[bool], list[bool]]:
    """AND: true where both are true, false where either is false."""
    true = [a and b for a, b in zip(one[0], other[0], strict=True)]
    return true, [a or b for a, b in zip(one[1], other[1], strict=True)]
