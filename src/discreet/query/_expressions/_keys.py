"""Derives the keys of an expression: all values that it can have, besides NULL.

They follow from public facts alone: from the declared keys of its column, the results of a CASE, or
the bounds of a whole number or date. Other keys are private: they come from the rows, behind a
threshold.
"""

import datetime
import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

from discreet.errors import QueryRefused
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import (
    Case,
    ColumnRef,
    FunctionCall,
    Literal,
    Scalar,
    columns_in,
)
from discreet.query._expressions._inference import column_of, infer
from discreet.query._expressions._integer_images import integer_image
from discreet.query._facts._columns import ColumnType, KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._date_functions import days_between
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFacts, ScalarFunction

MOST_KEYS = 1_000_000
_GROUP_BY = "GROUP BY"
_EXAMPLES = {
    ColumnType.DATE: "'2024-01-01', '2024-01-02'",
    ColumnType.INTEGER: "1, 2",
    ColumnType.TEXT: "'a', 'b'",
}


def keys_of(scalar: Scalar, declaration: Declaration) -> Sequence[KeyValue]:
    """The keys of an expression in order; `QueryRefused` if they don't follow from public facts."""
    keys = public_keys(scalar, declaration)
    if keys is None:
        raise QueryRefused(without_keys(scalar, declaration))
    return keys


def without_keys(scalar: Scalar, declaration: Declaration, use: str = _GROUP_BY) -> str:
    """In words: why the keys of an expression are private, and how its owner can change that."""
    return f"{use} {scalar_text(scalar)}: {_advice(scalar, infer(scalar, declaration))}"


def public_keys(
    scalar: Scalar, declaration: Declaration, use: str = _GROUP_BY
) -> Sequence[KeyValue] | None:
    """The keys of an expression in order; None if they don't follow from public facts, or are too
    many. `QueryRefused` for expressions that have no keys at all."""
    fact = infer(scalar, declaration)
    if isinstance(scalar, ColumnRef):
        keys = column_of(scalar.name, declaration).keys
        if keys is not None:
            return keys
    if not columns_in(scalar):
        raise QueryRefused(f"{use} {scalar_text(scalar)}: it is the same for all rows")
    if fact.type is ColumnType.NUMBER:
        raise QueryRefused(f"{use} {scalar_text(scalar)}: {_advice(scalar, fact)}")
    found = _keys(scalar, fact, declaration)
    return None if found is None else tuple(sorted(set(found)))


def _keys(scalar: Scalar, fact: ScalarFacts, declaration: Declaration) -> Iterable[KeyValue] | None:
    if fact.type is ColumnType.BOOLEAN:
        return False, True
    found: Iterable[KeyValue] | None
    match scalar:
        case ColumnRef(name) if (keys := column_of(name, declaration).keys) is not None:
            return keys
        case Literal(value):
            return (int(value) if isinstance(value, Fraction) else value,)
        case Case(branches, otherwise):
            values = [*(branch.value for branch in branches), otherwise]
            found = _union([value for value in values if value is not None], declaration)
        case FunctionCall(ScalarFunction.COALESCE, arguments):
            found = _union(arguments, declaration)
        case FunctionCall():
            found = _mapped(scalar, declaration)
        case _:
            found = None
    if found is None and fact.type is ColumnType.INTEGER:
        found = integer_image(
            scalar, declaration, lambda part: _whole_keys(part, declaration), MOST_KEYS
        )
    return found if found is not None else _within_bounds(scalar, fact)


def _whole_keys(part: Scalar, declaration: Declaration) -> list[int] | None:
    keys = _keys(part, infer(part, declaration), declaration)
    return None if keys is None else [key for key in keys if isinstance(key, int)]


def _union(values: Iterable[Scalar], declaration: Declaration) -> set[KeyValue] | None:
    found: set[KeyValue] = set()
    for value in values:
        keys = _keys(value, infer(value, declaration), declaration)
        if keys is None:
            return None
        found.update(keys)
    return found


def _mapped(call: FunctionCall, declaration: Declaration) -> set[KeyValue] | None:
    """The values of a function for the keys of its argument, where these are listed."""
    rule = FUNCTIONS[call.function]
    if rule.of_key is None:
        return None
    arguments: list[Iterable[object]] = []
    for argument in call.arguments:
        if isinstance(argument, Literal):
            arguments.append((argument.value,))
            continue
        fact = infer(argument, declaration)
        keys = None if fact.type.is_numeric else _keys(argument, fact, declaration)
        if keys is None or (fact.type is ColumnType.DATE and fact.lower is not None):
            return None  # of a date with bounds, these give fewer values at once
        arguments.append(keys)
    combinations = itertools.islice(itertools.product(*arguments), MOST_KEYS)
    return {rule.of_key(*given) for given in combinations}


def _within_bounds(scalar: Scalar, fact: ScalarFacts) -> Sequence[KeyValue] | None:
    if fact.lower is None or fact.upper is None:
        return None
    if fact.upper - fact.lower >= MOST_KEYS:
        return None
    if fact.type is ColumnType.INTEGER:
        return range(int(fact.lower), int(fact.upper) + 1)
    if fact.type is not ColumnType.DATE:
        return None
    first, last = (datetime.date.fromordinal(int(end)) for end in (fact.lower, fact.upper))
    unit = "day"
    if isinstance(scalar, FunctionCall) and scalar.function is ScalarFunction.DATE_TRUNC:
        (literal, _) = scalar.arguments
        assert isinstance(literal, Literal)
        unit = str(literal.value)
    return days_between(first, last, unit)


def _advice(scalar: Scalar, fact: ScalarFacts) -> str:
    if (
        fact.type is not ColumnType.NUMBER
        and fact.lower is not None
        and fact.upper is not None
        and fact.upper - fact.lower >= MOST_KEYS
    ):
        return f"it has more than {MOST_KEYS:,} groups; make them larger, as in FLOOR(x / 1000)"
    if isinstance(scalar, ColumnRef) and fact.type is not ColumnType.NUMBER:
        return (
            "its keys are not declared, and can't be taken from the data; name them, as in WHERE "
            f"{scalar.name} IN ({_EXAMPLES[fact.type]}), or its owner can declare them "
            f"(discreet declare ... --key {scalar.name}=...)"
        )
    if fact.type is ColumnType.NUMBER:
        return (
            "its values are no whole numbers, so they can't be listed; take bins, such as "
            "FLOOR(x / 10) or WIDTH_BUCKET(x, 0, 100, 10)"
        )
    return (
        "its values don't follow from declared facts; its owner can declare keys of its columns, "
        "or lower and upper"
    )
