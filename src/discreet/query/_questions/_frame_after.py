"""Adds post-processing to a `Query` from Python calls, as HAVING, ORDER BY and LIMIT do in SQL."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from itertools import combinations
from typing import Any, ParamSpec

from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._expressions._expressions import Both, ColumnRef, Measure
from discreet.query._expressions._frame import (
    ColumnExpression,
    ConditionExpression,
    UnnamedAggregate,
    condition_of,
)
from discreet.query._expressions._query import Output, PostProcessing, Query, SortKey
from discreet.query._outputs._post_processing import (
    MOST_SETS,
    completed,
    has_key,
    measure,
    measures_in,
    with_sets,
)
from discreet.query._plan._plan import TOO_DEEP

_P = ParamSpec("_P")

AnswerValue = str | ColumnExpression | UnnamedAggregate
"""A key or number of the answer: its name, or an expression."""


def _flat_enough(step: Callable[_P, Query]) -> Callable[_P, Query]:
    """The step, which refuses expressions that nest too deeply to be looked at."""

    @wraps(step)
    def checked(*given: _P.args, **named: _P.kwargs) -> Query:
        try:
            return step(*given, **named)
        except RecursionError:
            raise QueryRefused(TOO_DEEP) from None

    return checked


@_flat_enough
def with_outputs(query: Query, asked: Mapping[str, UnnamedAggregate | ColumnExpression]) -> Query:
    """The query with these aggregates and computed columns, in their order."""
    aggregates = [
        one.named(name) for name, one in asked.items() if isinstance(one, UnnamedAggregate)
    ]
    plain = replace(query, aggregates=tuple(aggregates))
    outputs: list[Output] = []
    keys = [key.value for key in query.named_keys]
    for name, one in asked.items():
        if isinstance(one, ColumnExpression):
            known = replace(plain, after=PostProcessing(tuple(outputs)))
            value = _resolved(one.scalar, known)
            if not (measures_in([value]) or has_key(value, keys)):
                raise InvalidArgument(
                    f"{name} = {one!r}: give dp.count(...), dp.sum(...) or dp.mean(...), or "
                    "arithmetic of them"
                )
            outputs.append(Output(value, name))
    return completed(replace(plain, after=PostProcessing(tuple(outputs), tuple(asked))))


@_flat_enough
def having(query: Query, conditions: Iterable[ConditionExpression | ColumnExpression]) -> Query:
    """The query with only the rows for which these conditions are known to hold, too."""
    new = [_resolved(condition_of(one), query) for one in conditions]
    there = [] if query.after.having is None else [query.after.having]
    if not new:
        return query
    return _completed(query, having=reduce(Both, [*there, *new]))


@_flat_enough
def ordered(
    query: Query, values: Iterable[AnswerValue], *, is_descending: bool, has_nulls_first: bool
) -> Query:
    """The query with its rows sorted by these values, where earlier ones are equal."""
    new = []
    for one in values:
        given = ColumnExpression(ColumnRef(one)) if isinstance(one, str) else one
        if isinstance(given, UnnamedAggregate):
            given = ColumnExpression(measure(given.named("")))
        if not isinstance(given, ColumnExpression):
            raise InvalidArgument(
                f"order_by: a {type(one).__name__}: give names of columns of the answer, or "
                "dp.count()"
            )
        new.append(SortKey(_resolved(given.scalar, query), is_descending, has_nulls_first))
    return _completed(query, order=(*query.after.order, *new))


def limited(query: Query, count: int, offset: int) -> Query:
    """The query with at most this many rows, after this many others."""
    return _completed(query, limit=count, offset=offset)


def rolled_up(query: Query) -> Query:
    """The query with totals by all keys but the last one, but the last two, and so on."""
    names = query.key_names
    return _with_sets(query, [names[:count] for count in range(len(names), -1, -1)])


def cubed(query: Query) -> Query:
    """The query with totals by each set of its keys."""
    names = query.key_names
    if 2 ** len(names) > MOST_SETS:
        raise InvalidArgument(
            f"cube: {len(names)} keys have more than {MOST_SETS} sets; name those that you need, "
            "as grouping_sets(('year', 'sex'), ('year',), ())"
        )
    sizes = range(len(names), -1, -1)
    return _with_sets(query, [one for size in sizes for one in combinations(names, size)])


def grouped_by_sets(query: Query, sets: Sequence[Sequence[str]]) -> Query:
    """The query with rows for each of these sets of its keys."""
    if not sets or any(isinstance(one, str) or not isinstance(one, Sequence) for one in sets):
        raise InvalidArgument(
            "grouping_sets: give tuples of keys, as (('year', 'sex'), ('year',), ())"
        )
    return _with_sets(query, sets)


def _with_sets(query: Query, sets: Iterable[Iterable[str]]) -> Query:
    if not query.keys:
        raise InvalidArgument("totals are over groups: name keys by group_by(...) first")
    return completed(with_sets(query, sets))


def _completed(query: Query, **changes: Any) -> Query:  # Any: fields of `PostProcessing`
    return completed(replace(query, after=replace(query.after, **changes)))


def _resolved(part: Any, query: Query) -> Any:  # Any: a value or condition, and the same out
    """The part with the value of each column of the answer in place of its name."""
    keys = {key.name: key.value for key in query.named_keys}
    names = keys | {one.name: measure(one) for one in query.aggregates}
    names |= {one.name: one.value for one in query.after.outputs}

    def substituted(inner: Any) -> Any:  # Any: any part of a value or condition
        if isinstance(inner, Measure):
            return measure(inner.aggregate, is_share=inner.is_share)
        if isinstance(inner, ColumnRef) and inner.name in names:
            named = names[inner.name]
            if named != inner and inner in keys.values():
                raise InvalidArgument(
                    f"{inner.name}: a key and a column of the answer are called so; rename one"
                )
            return named
        if isinstance(inner, ColumnRef) or inner in keys.values():
            return inner
        if isinstance(inner, tuple):
            return tuple(substituted(one) for one in inner)
        if not dataclasses.is_dataclass(inner) or isinstance(inner, type):
            return inner
        fields = {one.name: getattr(inner, one.name) for one in dataclasses.fields(inner)}
        return replace(inner, **{name: substituted(one) for name, one in fields.items()})

    return substituted(part)
