"""Writes values, conditions and aggregates as SQL, for people to read."""

import datetime
import re
from collections.abc import Sequence
from fractions import Fraction

from discreet.query._expressions._expressions import (
    Aggregate,
    Arithmetic,
    Both,
    Case,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Measure,
    Membership,
    Negation,
    Operator,
    Scalar,
    Truth,
    is_decimal,
)
from discreet.query._expressions._sql_words import RESERVED
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import Constant, Form, ScalarFunction

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


def quoted(name: str) -> str:
    """A name in SQL: without quotes where that is safe."""
    is_plain = name.isascii() and name.isidentifier() and name == name.lower()
    is_bare = is_plain and name.upper() not in RESERVED
    return name if is_bare else '"' + name.replace('"', '""') + '"'


def scalar_text(scalar: Scalar, *, is_flat: bool = False) -> str:
    """A value in SQL. If it is flat, a sum of many terms has no parentheses within it."""
    match scalar:
        case ColumnRef(name):
            return quoted(name)
        case Literal(value):
            return _literal(value)
        case Arithmetic(operator, left, right):
            first, second = (scalar_text(side, is_flat=is_flat) for side in (left, right))
            if is_flat and isinstance(left, Arithmetic) and _binds_alike(left.operator, operator):
                first = first[1:-1]
            return f"({first} {operator.value} {second})"
        case FunctionCall(function, arguments):
            return _call(function, [scalar_text(one, is_flat=is_flat) for one in arguments])
        case Case():
            return _case(scalar, is_flat=is_flat)
        case Truth(condition):
            return f"({condition_text(condition, is_flat=is_flat)})"
        case Measure(aggregate, is_share):
            text = aggregate_text(aggregate, is_flat=is_flat)
            return f"SHARE({text})" if is_share else text


def _binds_alike(one: Operator, other: Operator) -> bool:
    sums = Operator.ADD, Operator.SUBTRACT
    return (one in sums) is (other in sums)


def _call(function: ScalarFunction, arguments: list[str]) -> str:
    match FUNCTIONS[function].form:
        case Form.CALL:
            return f"{function.value}({', '.join(arguments)})"
        case Form.INFIX:
            return f"({arguments[0]} {function.value} {arguments[1]})"
        case Form.CAST:
            return f"CAST({arguments[0]} AS {function.value})"


def _case(case: Case, *, is_flat: bool) -> str:
    def text(value: Scalar | None) -> str:
        return "NULL" if value is None else scalar_text(value, is_flat=is_flat)

    branches = (
        f"WHEN {condition_text(one.condition, is_flat=is_flat)} THEN {text(one.value)}"
        for one in case.branches
    )
    otherwise = "" if case.otherwise is None else f" ELSE {text(case.otherwise)}"
    return f"CASE {' '.join(branches)}{otherwise} END"


def condition_text(condition: Condition, *, is_flat: bool = False) -> str:
    """A condition in SQL, with parentheses around each group."""
    match condition:
        case Comparison(relation, left, right):
            sides = (scalar_text(side, is_flat=is_flat) for side in (left, right))
            return f" {relation.value} ".join(sides)
        case Membership(value, options):
            listed = ", ".join(scalar_text(option) for option in options)
            return f"{scalar_text(value, is_flat=is_flat)} IN ({listed})"
        case IsNull(value):
            return f"{scalar_text(value, is_flat=is_flat)} IS NULL"
        case Holds(value):
            return scalar_text(value, is_flat=is_flat)
        case Both():
            return f"({' AND '.join(_chain(condition, is_flat=is_flat))})"
        case Either():
            return f"({' OR '.join(_chain(condition, is_flat=is_flat))})"
        case Negation(inner):
            return f"NOT ({condition_text(inner, is_flat=is_flat)})"


def _chain(condition: Both | Either, *, is_flat: bool) -> list[str]:
    """The parts of a AND b AND c, which SQL reads from the left without parentheses."""
    parts: list[str] = []
    rest: Condition = condition
    while isinstance(rest, Both | Either) and type(rest) is type(condition):
        parts.append(condition_text(rest.right, is_flat=is_flat))
        rest = rest.left
    return [condition_text(rest, is_flat=is_flat), *reversed(parts)]


def aggregate_text(aggregate: Aggregate, *, is_flat: bool = False) -> str:
    """An aggregate in SQL, without its name."""
    values = (scalar_text(value, is_flat=is_flat) for value in aggregate.arguments)
    argument = ", ".join(values) or "*"
    level = "" if aggregate.level is None else f", {_number(aggregate.level)}"
    return f"{aggregate.function.value}({argument}{level})"


def way_to_compare(sides: Sequence[Scalar], kinds: Sequence[ColumnType]) -> str:
    """How a literal is written to compare with the other side; empty without a literal."""
    for side, kind in zip(sides, reversed(kinds), strict=True):
        if not isinstance(side, Literal):
            continue
        match kind:
            case ColumnType.BOOLEAN:
                return "; write TRUE or FALSE"
            case ColumnType.DATE:
                return "; write DATE '2020-01-31'"
            case ColumnType.TEXT:
                return f"; write '{scalar_text(side)}'"
        is_number = isinstance(side.value, str) and _DECIMAL.fullmatch(side.value.strip())
        return f"; write {side.value}" if is_number else "; write a number"
    return ""


def _literal(value: Constant) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case Fraction():
            return _number(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"


def _number(value: Fraction) -> str:
    """A decimal with all its digits; any other fraction as a division."""
    if not is_decimal(value):
        return f"({value.numerator} / {value.denominator})"
    places = next(n for n in range(31) if 10**n % value.denominator == 0)
    if not places:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    return f"{'-' * (value < 0)}{digits[:-places]}.{digits[-places:]}"
