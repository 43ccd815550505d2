"""Histograms: public bins of a number, with nice edges, and the answer with the edges as keys."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._answers._answer import Answer
from discreet.query._expressions._expressions import (
    Branch,
    Case,
    ColumnRef,
    Comparison,
    FunctionCall,
    Literal,
    Relation,
    is_decimal,
)
from discreet.query._expressions._inference import column_of
from discreet.query._expressions._query import GroupKey
from discreet.query._facts._columns import ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._scalar_rules import ScalarFunction

USUAL_BINS = 20  # bins
_FEWEST, _MOST, _MOST_EDGES = 2, 1_000, 50
_FEW_VALUES = 2  # in a bin: one value more in the last bin would show
_STEPS = tuple(map(Fraction, ("1", "2", "2.5", "5", "10")))
_SHARE = Fraction(1, 4)  # of a bin's rows: the largest half-width for a number of rows

Bins = int | Sequence[Number] | None
"""A number of equal bins, their edges, or nothing for about 20 bins with round edges."""


def edges_of(
    column: str, bins: Bins, declaration: Declaration, most: int = USUAL_BINS
) -> tuple[Fraction, ...]:
    """The edges of public bins, from a column's declared bounds alone. Without ``bins``, the edges
    are round, and there are at most ``most`` bins, but two are always allowed."""
    fact = column_of(column, declaration)
    if fact.type not in (ColumnType.INTEGER, ColumnType.NUMBER) or fact.range is None:
        raise QueryRefused(f"histogram: {column} is no number with bounds; group by it instead")
    lower, upper = fact.range
    if not lower < upper:
        raise QueryRefused(f"histogram: {column} has one value by its declared bounds")
    if bins is None:
        return _round_edges(lower, upper, most, is_whole=fact.type is ColumnType.INTEGER)
    if isinstance(bins, int) and not isinstance(bins, bool):
        if not 1 <= bins <= _MOST:
            raise InvalidArgument(f"bins = {bins}: give a number from 1 to {_MOST:,}")
        return tuple(lower + (upper - lower) * place / bins for place in range(bins + 1))
    if not isinstance(bins, Sequence) or isinstance(bins, str):
        raise InvalidArgument("bins: give a number of bins, or their edges, such as [0, 10, 50]")
    given = tuple(_checks.finite(bins=edge) for edge in bins)
    if not 2 <= len(given) <= _MOST_EDGES or list(given) != sorted(set(given)):
        raise InvalidArgument(f"bins: give 2 to {_MOST_EDGES} edges, each larger than the last one")
    if not all(map(is_decimal, given)):
        raise InvalidArgument("bins: give edges of at most 30 decimals")
    return given


def most_bins(rows: int, half_width: float) -> int:
    """The largest number of equal bins, from 2 to 20, for which the half-width is at most a
    quarter of a bin's count, if this many rows spread evenly."""
    each = half_width / float(_SHARE)
    return max(_FEWEST, min(USUAL_BINS, math.floor(rows / each) if each else USUAL_BINS))


def _round_edges(
    lower: Fraction, upper: Fraction, most: int, *, is_whole: bool
) -> tuple[Fraction, ...]:
    """Multiples of the least round step that needs at most this many bins for the bounds."""
    power = Fraction(10) ** (math.floor(math.log10((upper - lower) / most)) - 1)
    steps = (power * 10**n * step for n in range(4) for step in _STEPS)
    fitting = (step for step in steps if step.denominator == 1 or not is_whole)
    for step in fitting:
        first, last = math.floor(lower / step), math.ceil(upper / step)
        if is_whole and step <= _FEW_VALUES and last * step == upper:
            last += 1  # else the last bin would hold one value more than the others
        if last - first <= max(most, _FEWEST):
            return tuple(place * step for place in range(first, last + 1))
    raise AssertionError("a step a thousand times the range needs two bins")


def check_names(column: str, names: Sequence[str]) -> None:
    """Refuse keys that have the name of a column of edges."""
    taken = {f"{column}_from", f"{column}_to"} & set(names)
    if taken:
        raise InvalidArgument(f"histogram: there is a key {min(taken)!r} already; give it a name")


def bin_key(column: str, edges: Sequence[Fraction]) -> GroupKey:
    """The key that numbers the bins from 1. A bin contains its lower edge, the last one both."""
    value, count = ColumnRef(column), len(edges) - 1
    step = edges[1] - edges[0]
    is_equal = all(edges[n] == edges[0] + n * step for n in range(count + 1))
    if is_equal and is_decimal(edges[0]) and is_decimal(edges[-1]):
        ends = Literal(edges[0]), Literal(edges[-1]), Literal(Fraction(count))
        number = FunctionCall(ScalarFunction.WIDTH_BUCKET, (value, *ends))
        inside = FunctionCall(ScalarFunction.LEAST, (number, Literal(Fraction(count))))
        return GroupKey(inside, f"{column}_bin")
    below = Branch(Comparison(Relation.LESS, value, Literal(edges[0])), None)
    branches = [
        Branch(Comparison(Relation.LESS, value, Literal(edge)), Literal(Fraction(number)))
        for number, edge in enumerate(edges[1:-1], start=1)
    ]
    last = Comparison(Relation.AT_MOST, value, Literal(edges[-1]))
    branches.append(Branch(last, Literal(Fraction(count))))
    return GroupKey(Case((below, *branches)), f"{column}_bin")


def with_edges(answer: Answer, column: str, edges: Sequence[Fraction]) -> Answer:
    """The answer with the edges of each bin in place of its number."""
    place = answer.table.column_names.index(f"{column}_bin")
    numbers = answer.table[place].to_pylist()
    table = answer.table.remove_column(place)
    for shift, (name, ends) in enumerate((("from", edges[:-1]), ("to", edges[1:]))):
        found = pa.array([float(ends[number - 1]) for number in numbers], pa.float64())
        table = table.add_column(place + shift, f"{column}_{name}", found)
    key = answer.plan.query.keys[-1]
    assert isinstance(key, GroupKey)
    keys = (*answer.plan.query.keys[:-1], replace(key, name=f"{column}_from"))
    query = replace(answer.plan.query, keys=keys)
    return replace(answer, table=table, plan=replace(answer.plan, query=query))
