"""Infers the type and bounds of each expression in a query, and whether it can be NULL.

The facts follow from the declared columns of this expression, by interval arithmetic in exact
fractions. An expression whose facts can't be derived is refused here, before it is priced. Every
expression that passes is total and row-wise.
"""

import datetime
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks
from discreet.errors import QueryRefused
from discreet.query._aggregates import LISTED, AggregateFunction
from discreet.query._columns import Column, ColumnType
from discreet.query._declaration import Declaration
from discreet.query._query import (
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Either,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Query,
    Relation,
    Scalar,
    column_names,
    scalar_text,
)

_LARGEST = Fraction(10) ** 150  # of a range's ends
_FLOATS = Fraction(10) ** 300  # of an intermediate result, in floating point
_ROUND_OFF = 1 + Fraction(1, 2**50)  # of one operation on floats
_UNDERFLOW = Fraction(1, 2**1074)  # the largest error of a result too small for floats
_WHOLE = Fraction(2) ** 62  # of a result that stays an integer
_INT64 = Fraction(2) ** 63


@dataclass(frozen=True, slots=True)
class ScalarFacts:
    """The derived facts of a scalar: ``lower`` and ``upper`` where it is numeric and bounded.

    ``largest`` bounds the magnitude of all intermediate results in floating point, before the
    scalar is clamped to its range. Where large numbers cancel it is far larger than the range: in
    x + 1e30 - 1e30 it is about 1e30.
    """

    type: ColumnType
    lower: Fraction | None
    upper: Fraction | None
    can_be_null: bool
    largest: Fraction = Fraction(0)


def check(query: Query, declaration: Declaration) -> None:
    """Refuse a query that uses anything undeclared, unbounded or of the wrong type."""
    if query.table != declaration.name:
        raise QueryRefused(
            f"FROM {query.table}: this is the table {declaration.name!r}; ask that one"
        )
    if not query.aggregates:
        raise QueryRefused(f"the query has no aggregate: give at least one of {LISTED}")
    _check_names(query)
    for key in query.keys:
        if column_of(key, declaration).keys is None:
            raise QueryRefused(
                f"GROUP BY {key}: its keys are not declared, and can't be taken from the data; "
                f"its owner can declare them (discreet declare ... --key {key}=...)"
            )
    for aggregate in query.aggregates:
        if aggregate.argument is not None:
            _check_argument(aggregate.function, aggregate.argument, declaration)
    if query.where is not None:
        _check_condition(query.where, declaration)


def column_of(name: str, declaration: Declaration) -> Column:
    """The declared column of this name; otherwise a `QueryRefused` that lists the names."""
    if name in declaration.columns:
        return declaration.columns[name]
    close = difflib.get_close_matches(name, declaration.columns, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(declaration.columns)
    raise QueryRefused(f"column {name!r} is not declared; {hint}declared are {listed}")


def infer(scalar: Scalar, declaration: Declaration) -> ScalarFacts:
    """The facts of a scalar, derived from its columns; `QueryRefused` if they can't be derived."""
    match scalar:
        case ColumnRef(name):
            column = column_of(name, declaration)
            ends = column.lower or Fraction(0), column.upper or Fraction(0)
            largest = max(abs(end) for end in ends)
            return ScalarFacts(
                column.type, column.lower, column.upper, column.null is None, largest
            )
        case Literal(value):
            return _of_literal(value)
        case Arithmetic():
            return _of_arithmetic(scalar, declaration)


def _of_literal(value: Constant) -> ScalarFacts:
    match value:
        case bool():
            return ScalarFacts(ColumnType.BOOLEAN, None, None, can_be_null=False)
        case Fraction():
            is_whole = value.denominator == 1 and -_INT64 <= value < _INT64
            if not is_whole and abs(value) > _FLOATS:
                raise QueryRefused(
                    "a number beyond 1e300 stands in the question; use a smaller one"
                )
            kind = ColumnType.INTEGER if is_whole else ColumnType.NUMBER
            return ScalarFacts(
                kind, value, value, can_be_null=False, largest=abs(value) + _UNDERFLOW
            )
        case str():
            _check_text(value)
            return ScalarFacts(ColumnType.TEXT, None, None, can_be_null=False)
        case datetime.date():
            return ScalarFacts(ColumnType.DATE, None, None, can_be_null=False)


def _of_arithmetic(scalar: Arithmetic, declaration: Declaration) -> ScalarFacts:
    # 1. both sides are bounded numbers, and a divisor is a literal
    sides = infer(scalar.left, declaration), infer(scalar.right, declaration)
    for side, fact in zip((scalar.left, scalar.right), sides, strict=True):
        if not fact.type.is_numeric:
            raise QueryRefused(
                f"{scalar_text(side)} is {fact.type.value}: arithmetic is defined for numbers only"
            )
        _bounds(side, fact)
    if scalar.operator is Operator.DIVIDE and not (
        isinstance(scalar.right, Literal)
        and isinstance(scalar.right.value, Fraction)
        and float(scalar.right.value) != 0
    ):
        raise QueryRefused(
            f"{scalar_text(scalar)}: only division by a number other than 0 has a rule (and none "
            "so small that floating point takes it for 0)"
        )
    # 2. the range of the exact result
    lower, upper = _ends(
        scalar.operator,
        *(_bounds(*pair) for pair in zip((scalar.left, scalar.right), sides, strict=True)),
    )
    if max(abs(lower), abs(upper)) > _LARGEST:
        raise QueryRefused(f"{scalar_text(scalar)} could exceed 1e150; use smaller factors")
    # 3. the magnitude of what floating point computes
    largest = _largest(scalar.operator, *sides)
    if largest > _FLOATS:
        raise QueryRefused(
            f"{scalar_text(scalar)}: an intermediate result could exceed 1e300; use smaller numbers"
        )
    return ScalarFacts(
        _result_type(scalar.operator, sides, lower, upper),
        lower,
        upper,
        any(s.can_be_null for s in sides),
        max(largest, abs(lower), abs(upper)),
    )


def _result_type(
    operator: Operator, sides: Iterable[ScalarFacts], lower: Fraction, upper: Fraction
) -> ColumnType:
    whole = (
        all(side.type is ColumnType.INTEGER for side in sides) and operator is not Operator.DIVIDE
    )
    return (
        ColumnType.INTEGER if whole and lower >= -_WHOLE and upper <= _WHOLE else ColumnType.NUMBER
    )


def _ends(
    operator: Operator, left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    match operator:
        case Operator.ADD:
            return left[0] + right[0], left[1] + right[1]
        case Operator.SUBTRACT:
            return left[0] - right[1], left[1] - right[0]
        case Operator.MULTIPLY:
            corners = [one * other for one in left for other in right]
        case Operator.DIVIDE:
            corners = [one / other for one in left for other in right]
    return min(corners), max(corners)


def _largest(operator: Operator, left: ScalarFacts, right: ScalarFacts) -> Fraction:
    match operator:
        case Operator.ADD | Operator.SUBTRACT:
            exact = left.largest + right.largest
        case Operator.MULTIPLY:
            exact = left.largest * right.largest
        case Operator.DIVIDE:  # by a literal
            assert right.lower is not None
            whole, parts = float(right.lower).as_integer_ratio()  # the divisor that engines have
            exact = left.largest * parts / abs(whole)
    return exact * _ROUND_OFF + _UNDERFLOW


def _check_text(value: str) -> None:
    if not _checks.is_unicode(value):
        raise QueryRefused(
            "a text in the question has half of a surrogate pair, which no engine can compare; "
            "leave that character out"
        )


def _bounds(scalar: Scalar, fact: ScalarFacts) -> tuple[Fraction, Fraction]:
    if fact.lower is None or fact.upper is None:
        text = scalar_text(scalar)
        raise QueryRefused(
            f"{text} has no declared lower and upper; its owner can declare them "
            f"(--bound {text}=LOWER..UPPER)"
        )
    return fact.lower, fact.upper


def _check_names(query: Query) -> None:
    names = [*query.keys, *(n for a in query.aggregates for n in column_names(a.name))]
    for name in names:
        _check_text(name)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise QueryRefused(
            f"the answer would have two columns {min(twice)!r}; give each a name of its own"
        )


def _check_argument(
    function: AggregateFunction, argument: Scalar, declaration: Declaration
) -> None:
    fact = infer(argument, declaration)
    if function in (AggregateFunction.COUNT, AggregateFunction.COUNT_DISTINCT):
        return
    if not fact.type.is_numeric:
        raise QueryRefused(
            f"{function.value}({scalar_text(argument)}): it is {fact.type.value}; only COUNT takes "
            "values that are not numbers"
        )
    lower, upper = _bounds(argument, fact)
    if lower == upper:
        raise QueryRefused(
            f"{function.value}({scalar_text(argument)}) is of a constant; use COUNT(*)"
        )


def _check_condition(condition: Condition, declaration: Declaration) -> None:
    match condition:
        case Comparison(relation, left, right):
            kind = _same_type(left, right, declaration)
            if kind is ColumnType.BOOLEAN and relation not in (Relation.EQUAL, Relation.UNEQUAL):
                text = f"{scalar_text(left)} {relation.value} ..."
                raise QueryRefused(f"{text}: truth values compare by = and <> only")
        case Membership(value, options):
            if not options:
                raise QueryRefused(f"{scalar_text(value)} IN (): give at least one value")
            for option in options:
                _same_type(value, option, declaration)
        case IsNull(value):
            infer(value, declaration)
        case Holds(column):
            _check_flag(column, declaration)
        case Both(one, other) | Either(one, other):
            _check_condition(one, declaration)
            _check_condition(other, declaration)
        case Negation(inner):
            _check_condition(inner, declaration)


def _check_flag(column: ColumnRef, declaration: Declaration) -> None:
    if infer(column, declaration).type is not ColumnType.BOOLEAN:
        raise QueryRefused(f"{scalar_text(column)} is no condition; compare it with something")


def _same_type(left: Scalar, right: Scalar, declaration: Declaration) -> ColumnType:
    one, other = infer(left, declaration), infer(right, declaration)
    if one.type is not other.type and not (one.type.is_numeric and other.type.is_numeric):
        raise QueryRefused(
            f"{scalar_text(left)} is {one.type.value}, {scalar_text(right)} is "
            f"{other.type.value}: they don't compare"
        )
    return one.type
