"""Derives public facts from a condition: bounds and keys of columns in the rows where it holds.

``year IN (1980, 1981) AND wage < 20`` leaves two keys of the year, and 20 as the upper bound of the
wage. So an answer has no groups that the condition excludes, and less noise. Nothing is taken from
rows: the facts follow from the question and the declaration. Privacy does not rest on them, since
the engine clamps to the bounds that a sum was planned with, and drops rows of other keys.
"""

import datetime
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from discreet._exact import fraction
from discreet.query._expressions._expressions import (
    Both,
    ColumnRef,
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
    columns_in,
    parts_of,
)
from discreet.query._facts._columns import Column, ColumnType, KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import Constant

_MOST_KEYS = 100_000  # which are tried one by one
_UNKNOWN = object()  # a value that other columns decide
_LARGEST = {
    ColumnType.INTEGER: (fraction(-(2**63)), fraction(2**63 - 1)),
    ColumnType.DATE: (fraction(1), fraction(datetime.date.max.toordinal())),
}
_NEGATED = {
    Relation.EQUAL: Relation.UNEQUAL,
    Relation.UNEQUAL: Relation.EQUAL,
    Relation.LESS: Relation.AT_LEAST,
    Relation.AT_LEAST: Relation.LESS,
    Relation.GREATER: Relation.AT_MOST,
    Relation.AT_MOST: Relation.GREATER,
}
_TURNED = {
    Relation.LESS: Relation.GREATER,
    Relation.GREATER: Relation.LESS,
    Relation.AT_MOST: Relation.AT_LEAST,
    Relation.AT_LEAST: Relation.AT_MOST,
}
_COMPARED = {
    Relation.EQUAL: operator.eq,
    Relation.UNEQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.AT_MOST: operator.le,
    Relation.GREATER: operator.gt,
    Relation.AT_LEAST: operator.ge,
}


def facts_where(condition: Condition | None, declaration: Declaration) -> Declaration:
    """The declaration with what the condition says of the columns in the rows where it holds. It is
    for inference alone: values are converted as the declaration itself says."""
    if condition is None:
        return declaration
    limits, columns = _limits(condition, declaration, holds=True), dict(declaration.columns)
    for name in dict.fromkeys(columns_in(condition)):
        columns[name] = _within(columns[name], limits.get(name, _Limits()))
        left = keys_where(condition, ColumnRef(name), columns[name].keys or ())
        columns[name] = _with_keys(columns[name], left)
    return replace(declaration, columns=columns)


def keys_where(
    condition: Condition | None, key: Scalar, keys: Iterable[KeyValue]
) -> tuple[KeyValue, ...]:
    """The keys with which a row can meet the condition."""
    listed = tuple(keys)
    if condition is None or len(listed) > _MOST_KEYS or not _mentions(condition, key):
        return listed
    return tuple(value for value in listed if _outcomes(condition, key, value)[0])


# --- ranges and lists of a column's values ---


@dataclass(frozen=True, slots=True)
class _Limits:
    """A range that holds a column's values, of dates as ordinals, and a list of them; ``None``
    where there is none."""

    lower: Fraction | None = None
    upper: Fraction | None = None
    values: frozenset[Constant] | None = None


def _limits(condition: Condition, facts: Declaration, *, holds: bool) -> dict[str, _Limits]:
    """The limits of columns where the condition is known to hold, or known not to hold."""
    match condition:
        case Negation(inner):
            return _limits(inner, facts, holds=not holds)
        case Both(one, other) | Either(one, other):
            sides = (_limits(side, facts, holds=holds) for side in (one, other))
            return (_of_all if isinstance(condition, Both) is holds else _of_any)(*sides)
        case Comparison(relation, ColumnRef(name), Literal(value)):
            kind = facts.columns[name].type
            return {name: _compared(kind, relation if holds else _NEGATED[relation], value)}
        case Comparison(relation, Literal() as value, ColumnRef() as column):
            turned = Comparison(_TURNED.get(relation, relation), column, value)
            return _limits(turned, facts, holds=holds)
        case Membership(ColumnRef(name), options) if holds:
            return {name: _listed(one.value for one in options)}
        case Holds(ColumnRef(name)):
            return {name: _listed([holds])}
    return {}


def _compared(kind: ColumnType, relation: Relation, value: Constant) -> _Limits:
    end = _ordinal(value)
    if relation is Relation.EQUAL:
        return _listed([value])
    if end is None:
        return _Limits()
    is_whole = kind is not ColumnType.NUMBER
    match relation:
        case Relation.AT_MOST:
            return _Limits(upper=fraction(floor(end)) if is_whole else end)
        case Relation.LESS:
            return _Limits(upper=fraction(ceil(end) - 1) if is_whole else end)
        case Relation.AT_LEAST:
            return _Limits(lower=fraction(ceil(end)) if is_whole else end)
        case Relation.GREATER:
            return _Limits(lower=fraction(floor(end) + 1) if is_whole else end)
    return _Limits()


def _listed(values: Iterable[Constant]) -> _Limits:
    listed = frozenset(values)
    ends = [end for value in listed if (end := _ordinal(value)) is not None]
    return _Limits(min(ends), max(ends), listed) if ends else _Limits(values=listed)


def _ordinal(value: Constant) -> Fraction | None:
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    return value if isinstance(value, Fraction) else None


def _of_all(one: Mapping[str, _Limits], other: Mapping[str, _Limits]) -> dict[str, _Limits]:
    both = one.keys() & other.keys()
    return {**one, **other} | {name: _intersection(one[name], other[name]) for name in both}


def _intersection(one: _Limits, other: _Limits) -> _Limits:
    lower = [end for end in (one.lower, other.lower) if end is not None]
    upper = [end for end in (one.upper, other.upper) if end is not None]
    lists = [values for values in (one.values, other.values) if values is not None]
    values = frozenset.intersection(*lists) if lists else None
    return _Limits(max(lower, default=None), min(upper, default=None), values)


def _of_any(one: Mapping[str, _Limits], other: Mapping[str, _Limits]) -> dict[str, _Limits]:
    return {name: _union(one[name], other[name]) for name in one.keys() & other.keys()}


def _union(one: _Limits, other: _Limits) -> _Limits:
    lower = None if one.lower is None or other.lower is None else min(one.lower, other.lower)
    upper = None if one.upper is None or other.upper is None else max(one.upper, other.upper)
    values = None if one.values is None or other.values is None else one.values | other.values
    return _Limits(lower, upper, values)


def _within(column: Column, limits: _Limits) -> Column:
    """The column with its values within the limits; as it is where they contradict it."""
    found = _intersection(limits, _Limits(*(column.range or ())))
    is_range = column.keys is None or column.range is not None  # keys alone say more than a range
    if is_range and found.lower is not None and found.upper is not None:
        column = _between(column, found.lower, found.upper)
    if limits.values is None or column.keys is not None or column.type is ColumnType.NUMBER:
        return column
    keys = sorted(key for one in limits.values if (key := _key(column, one)) is not None)
    return _with_keys(column, tuple(keys))


def _with_keys(column: Column, keys: tuple[KeyValue, ...]) -> Column:
    """The column with these keys, if there are any. A value for NULL stays one of them."""
    if not keys:
        return column
    is_left = column.null is None or column.null in keys
    return replace(column, keys=keys, null=column.null if is_left else keys[0])


def _between(column: Column, lower: Fraction, upper: Fraction) -> Column:
    """The column with this range; a little wider where no column can have this range."""
    least, most = column.range or _LARGEST[column.type]
    lower, upper = max(lower, least), min(upper, most)
    if column.type is not ColumnType.NUMBER:
        lower, upper = fraction(ceil(lower)), fraction(floor(upper))
    elif column.decimals is not None:
        step = Fraction(1, 10**column.decimals)
        lower, upper = floor(lower / step) * step, ceil(upper / step) * step
    if lower > upper:
        return column
    if lower == upper:
        lower, upper = (lower, most) if lower < most else (least, upper)
    low, high = _end(column, lower), _end(column, upper)
    null = column.null
    if null is not None and not low <= null <= high:  # type: ignore[operator]  # of one type
        null = int(low) if column.type is ColumnType.INTEGER and isinstance(low, Fraction) else low
    return replace(column, lower=low, upper=high, null=null)


def _end(column: Column, end: Fraction) -> Fraction | datetime.date:
    return datetime.date.fromordinal(int(end)) if column.type is ColumnType.DATE else end


def _key(column: Column, value: Constant) -> KeyValue | None:
    """The value as a key of the column; ``None`` if the column has no such value."""
    if not isinstance(value, Fraction | datetime.date):
        return value
    least, most = column.range or _LARGEST[column.type]
    end = _ordinal(value)
    if end is None or end.denominator > 1 or not least <= end <= most:
        return None
    return value if isinstance(value, datetime.date) else int(value)


# --- whether a row with a key can meet the condition ---


def _outcomes(condition: Condition, key: Scalar, value: KeyValue) -> tuple[bool, bool]:
    """Whether the condition can be known to hold, and whether it can be known not to hold, in a row
    with this value of the key."""
    if isinstance(key, Truth) and key.condition == condition:
        return value is True, value is False
    match condition:
        case Negation(inner):
            holds, fails = _outcomes(inner, key, value)
            return fails, holds
        case Both(one, other) | Either(one, other):
            first, second = (_outcomes(side, key, value) for side in (one, other))
            if isinstance(condition, Both):
                return first[0] and second[0], first[1] or second[1]
            return first[0] or second[0], first[1] and second[1]
        case Comparison(relation, left, right):
            sides = _value(left, key, value), _value(right, key, value)
            is_known = _UNKNOWN not in sides
            return _decided(_COMPARED[relation](*sides) if is_known else _UNKNOWN)
        case Membership(member, options):
            found = _value(member, key, value)
            listed = {one.value for one in options}
            return _decided(found if found is _UNKNOWN else found in listed)
        case Holds(scalar):
            return _decided(_value(scalar, key, value))
        case IsNull(scalar):
            found = _value(scalar, key, value)
            return _decided(found if found is _UNKNOWN else False)


def _decided(answer: object) -> tuple[bool, bool]:
    return answer in (True, _UNKNOWN), answer in (False, _UNKNOWN)


def _value(scalar: Scalar, key: Scalar, value: KeyValue) -> Any:  # Any: a value, or none
    """The scalar in a row with this value of the key, if nothing else decides it."""
    if scalar == key:
        return value
    match scalar:
        case Literal(constant):
            return constant
        case FunctionCall(function, arguments):
            of_key = FUNCTIONS[function].of_key
            given = [_value(one, key, value) for one in arguments]
            return _UNKNOWN if of_key is None or _UNKNOWN in given else of_key(*given)
    return _UNKNOWN


def _mentions(part: Scalar | Condition, key: Scalar) -> bool:
    is_key = part == key or (isinstance(key, Truth) and part == key.condition)
    return is_key or any(_mentions(one, key) for one in parts_of(part))
