"""A query as a closed value, to which both SQL and Python calls are translated.

Its parts are the values, conditions and aggregates of `_expressions`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from discreet.query._expressions._expression_text import (
    aggregate_text,
    condition_text,
    quoted,
    scalar_text,
)
from discreet.query._expressions._expressions import (
    Aggregate,
    ColumnRef,
    Condition,
    Scalar,
    columns_in,
)
from discreet.query._expressions._sql_words import MAX_NESTING


class FromText(str):
    """The name of a relation that is no single table: its own SQL after FROM."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression by whose values rows are grouped, under its name in the answer."""

    value: Scalar
    name: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer that is computed from noisy numbers, under its name."""

    value: Scalar
    name: str


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of the query, or a number computed from an answer, by which its rows are sorted."""

    value: Scalar
    is_descending: bool = False
    has_nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """The functions of the noisy numbers alone that make the answer; they cost nothing.

    ``shown`` names the aggregates and outputs that the answer has, in order; if it is empty, it has
    all. ``having`` chooses rows, ``order`` sorts them, ``offset`` and ``limit`` take some. Each of
    ``sets`` names the keys of some rows of the answer, which are totals over the other keys; if
    there are none, the rows are those of all keys. `discreet.query._outputs._post_processing` makes
    it.
    """

    outputs: tuple[Output, ...] = ()
    shown: tuple[str, ...] = ()
    having: Condition | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[str, ...], ...] = ()

    @property
    def chooses_rows(self) -> bool:
        """Whether the answer has only some of the rows."""
        return self.having is not None or self.limit is not None or self.offset != 0

    @property
    def parts(self) -> tuple[Scalar | Condition, ...]:
        """The values and conditions in it."""
        computed = (one.value for one in self.outputs)
        conditions = () if self.having is None else (self.having,)
        return (*computed, *conditions, *(one.value for one in self.order))


_AS_RELEASED = PostProcessing()


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates of the rows that meet a condition, for each combination of the keys' values.

    A key is the name of a column, or a `GroupKey`. ``str`` gives the query as SQL. Two texts of the
    same meaning give equal queries. All aggregates are computed, paid and drawn, also those that
    only ``after`` uses; `columns` names those that the answer shows.
    """

    table: str
    aggregates: tuple[Aggregate, ...]
    keys: tuple[str | GroupKey, ...] = ()
    where: Condition | None = None
    after: PostProcessing = _AS_RELEASED

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the aggregates and outputs in the answer, in order."""
        return self.after.shown or tuple(one.name for one in self.numbers)

    @property
    def numbers(self) -> "tuple[Aggregate | Output, ...]":
        """The aggregates and the outputs, shown or not."""
        return (*self.aggregates, *self.after.outputs)

    @property
    def named_keys(self) -> tuple[GroupKey, ...]:
        """The keys, those of columns under the columns' names."""
        return tuple(
            GroupKey(ColumnRef(key), key) if isinstance(key, str) else key for key in self.keys
        )

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the keys in the answer."""
        return tuple(key.name for key in self.named_keys)

    def __str__(self) -> str:
        text = _query_text(self, is_flat=False)
        return text if _depth(text) <= MAX_NESTING else _query_text(self, is_flat=True)

    def of_rows(self, selected: Iterable[str], *, is_flat: bool = False) -> str:
        """A text that selects this, of the rows that meet the condition."""
        condition = None if self.where is None else condition_text(self.where, is_flat=is_flat)
        where = "" if condition is None else f" WHERE {condition}"
        source = self.table if isinstance(self.table, FromText) else quoted(self.table)
        return f"SELECT {', '.join(selected)} FROM {source}{where}"  # noqa: S608  # for people to read


def _query_text(query: Query, *, is_flat: bool) -> str:
    keys = [scalar_text(key.value, is_flat=is_flat) for key in query.named_keys]
    shown = [
        text if isinstance(key, str) else f"{text} AS {quoted(key.name)}"
        for key, text in zip(query.keys, keys, strict=True)
    ]
    made = {one.name: aggregate_text(one, is_flat=is_flat) for one in query.aggregates}
    made |= {one.name: scalar_text(one.value, is_flat=is_flat) for one in query.after.outputs}
    columns = [*shown, *(f"{made[name]} AS {quoted(name)}" for name in query.columns)]
    named = dict(zip(query.key_names, keys, strict=True))
    clauses = [_grouping(query, named), *_clauses(query.after, is_flat=is_flat)]
    return " ".join([query.of_rows(columns, is_flat=is_flat), *filter(None, clauses)])


def _grouping(query: Query, keys: Mapping[str, str]) -> str:
    if query.after.sets:
        sets = (f"({', '.join(keys[name] for name in one)})" for one in query.after.sets)
        return f"GROUP BY GROUPING SETS ({', '.join(sets)})"
    return f"GROUP BY {', '.join(keys.values())}" if keys else ""


def _clauses(after: PostProcessing, *, is_flat: bool) -> Iterator[str]:
    if after.having is not None:
        yield f"HAVING {condition_text(after.having, is_flat=is_flat)}"
    if after.order:
        directions = ((" DESC" * one.is_descending) for one in after.order)
        values = (scalar_text(one.value, is_flat=is_flat) for one in after.order)
        nulls = (" NULLS FIRST" * one.has_nulls_first for one in after.order)
        yield f"ORDER BY {', '.join(map(''.join, zip(values, directions, nulls, strict=True)))}"
    if after.limit is not None:
        yield f"LIMIT {after.limit}"
    if after.offset:
        yield f"OFFSET {after.offset}"


def _depth(text: str) -> int:
    """The largest number of parentheses, CASE and prefixes that are open at one place, which the
    reader of SQL limits."""
    deepest, prefixes, opened = 0, 0, [0]
    for sign in _SIGNS.findall(text):
        if sign in ("NOT", "+", "-"):
            prefixes += 1
        elif sign in ("(", "CASE"):
            opened.append(opened[-1] + prefixes + 1)
            prefixes = 0
        else:
            if sign in (")", "END"):
                opened.pop()
            prefixes = 0
        deepest = max(deepest, opened[-1] + prefixes)
    return deepest


_SIGNS = re.compile(r"""'[^']*'|"[^"]*"|\w+|[^\s\w]""")


def column_names(aggregate: str) -> tuple[str, str, str, str]:
    """The answer's columns for an aggregate: its value, its interval's ends, and its error."""
    return aggregate, f"{aggregate}_low", f"{aggregate}_high", f"{aggregate}_error"


def columns_used(query: Query) -> tuple[str, ...]:
    """The names of all columns in the query, each once, in order."""
    arguments = (value for one in query.aggregates for value in one.arguments)
    parts: list[Scalar | Condition] = [*(key.value for key in query.named_keys), *arguments]
    if query.where is not None:
        parts.append(query.where)
    return tuple(dict.fromkeys(name for part in parts for name in columns_in(part)))
