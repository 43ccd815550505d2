"""Infers the type and bounds of each expression in a query, and whether it can be NULL.

The facts follow from the declared columns of this expression, by interval arithmetic in exact
fractions. An expression whose facts can't be derived is refused here, before it is priced. Every
expression that passes is total and row-wise.
"""

import datetime
import difflib
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from discreet import _checks
from discreet.errors import QueryRefused
from discreet.query._expressions._aggregates import LISTED, AggregateFunction
from discreet.query._expressions._expression_text import scalar_text, way_to_compare
from discreet.query._expressions._expressions import (
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
    Relation,
    Scalar,
    Truth,
    columns_in,
    parts_of,
)
from discreet.query._expressions._query import Query, column_names
from discreet.query._facts._columns import Column, ColumnType
from discreet.query._facts._declaration import Declaration
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import (
    LARGEST,
    WHOLE,
    Constant,
    ScalarFacts,
    ScalarFunction,
    number_facts,
    union_facts,
)

_FLOATS = Fraction(10) ** 300  # of an intermediate result, in floating point
_ROUND_OFF = 1 + Fraction(1, 2**50)  # of one operation on floats
_UNDERFLOW = Fraction(1, 2**1074)  # the largest error of a result too small for floats
_INT64 = Fraction(2) ** 63
_EXACT = 2**50  # of steps of exact numbers
_MOST_PARTS = 10_000
_LONGEST_PATTERNS = 400  # characters of all patterns of LIKE
NOT_IN_ROWS = "an aggregate stands in SELECT, HAVING or ORDER BY, and in no other aggregate"


def check(query: Query, declaration: Declaration) -> None:
    """Refuse a query that uses anything undeclared, unbounded or of the wrong type."""
    if query.table != declaration.name:
        raise QueryRefused(
            f"FROM {query.table}: this is the table {declaration.name!r}; ask that one"
        )
    _check_size(query)
    if not query.aggregates:
        raise QueryRefused(f"the query has no aggregate: give at least one of {LISTED}")
    _check_names(query)
    for aggregate in query.aggregates:
        for argument in aggregate.arguments:
            _check_argument(aggregate.function, argument, declaration)
    if query.where is not None:
        can_be_unknown(query.where, declaration)


def _check_size(query: Query) -> None:
    """Refuse expressions that hold one another so often that they would take hours."""
    arguments = (value for one in query.aggregates for value in one.arguments)
    parts: list[Scalar | Condition] = [*(key.value for key in query.named_keys), *arguments]
    parts += [*query.after.parts, *([] if query.where is None else [query.where])]
    size, patterns = 0, dict[FunctionCall, int]()
    while parts:
        size += 1
        if size > _MOST_PARTS:
            raise QueryRefused(
                f"the question has more than {_MOST_PARTS:,} values and conditions, counted as "
                "often as they are repeated; ask for less at a time"
            )
        part = parts.pop()
        if isinstance(part, FunctionCall) and part.function is ScalarFunction.LIKE:
            given = (getattr(one, "value", None) for one in part.arguments[1:])
            patterns[part] = sum(len(one) for one in given if isinstance(one, str))
        parts += parts_of(part)
    if sum(patterns.values()) > _LONGEST_PATTERNS:
        raise QueryRefused(
            f"the patterns of LIKE have more than {_LONGEST_PATTERNS:,} characters together; ask "
            "for less at a time"
        )


def column_of(name: str, declaration: Declaration) -> Column:
    """The declared column of this name; otherwise a `QueryRefused` that lists the names."""
    if name in declaration.columns:
        return declaration.columns[name]
    close = difflib.get_close_matches(name, declaration.columns, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    joined = [one for one in declaration.columns if one.rpartition(".")[2] == name]
    if len(joined) > 1:
        raise QueryRefused(f"column {name!r} is in several tables: name {' or '.join(joined)}")
    listed = ", ".join(declaration.columns) or "none until now"
    raise QueryRefused(f"column {name!r} is not declared; {hint}declared are {listed}")


def infer(scalar: Scalar, declaration: Declaration) -> ScalarFacts:
    """The facts of a scalar, derived from its columns; `QueryRefused` if they can't be derived."""
    match scalar:
        case ColumnRef(name):
            return _of_column(column_of(name, declaration))
        case Literal(value):
            return _of_literal(value)
        case Arithmetic():
            return _of_arithmetic(scalar, declaration)
        case FunctionCall():
            return _of_call(scalar, declaration)
        case Case():
            return _of_case(scalar, declaration)
        case Truth(condition):
            is_unknown = can_be_unknown(condition, declaration)
            return ScalarFacts(ColumnType.BOOLEAN, None, None, is_unknown)
        case Measure():
            raise QueryRefused(f"{scalar_text(scalar)}: {NOT_IN_ROWS}")


def _of_column(column: Column) -> ScalarFacts:
    ends = column.range
    lower, upper = ends if ends is not None else (None, None)
    largest = max(abs(end) for end in ends or (Fraction(0),))
    return ScalarFacts(
        column.type, lower, upper, column.null is None, largest, decimals=column.decimals
    )


def _of_call(call: FunctionCall, declaration: Declaration) -> ScalarFacts:
    rule = FUNCTIONS[call.function]
    name = call.function.value
    if not rule.takes_this_many(len(call.arguments)):
        count = len(call.arguments)
        raise QueryRefused(f"{scalar_text(call)}: {name} does not take {count} values")
    given = []
    for place, argument in enumerate(call.arguments):
        fact, taken = infer(argument, declaration), rule.argument(place)
        if fact.type not in taken.types:
            kinds = " or ".join(kind.value for kind in taken.types)
            raise QueryRefused(
                f"{scalar_text(argument)} is {fact.type.value}: {name} takes {kinds} here"
            )
        if taken.is_constant and not isinstance(argument, Literal):
            raise QueryRefused(
                f"{scalar_text(argument)} is no literal: {name} takes one here, such as 10 or 'a'"
            )
        given.append(fact)
    try:
        fact = rule.facts(given)
    except QueryRefused as refusal:
        raise QueryRefused(f"{scalar_text(call)}: {refusal}") from None
    return replace(fact, constant=None)


def _of_case(case: Case, declaration: Declaration) -> ScalarFacts:
    for branch in case.branches:
        can_be_unknown(branch.condition, declaration)
    values = [*(branch.value for branch in case.branches), case.otherwise]
    given = [infer(value, declaration) for value in values if value is not None]
    if not given:
        raise QueryRefused(f"{scalar_text(case)} is always NULL; give it a value")
    can_be_null = None in values or any(fact.can_be_null for fact in given)
    try:
        return union_facts(given, can_be_null=can_be_null)
    except QueryRefused as refusal:
        raise QueryRefused(f"{scalar_text(case)}: {refusal}") from None


def _of_literal(value: Constant) -> ScalarFacts:
    match value:
        case bool():
            return ScalarFacts(ColumnType.BOOLEAN, None, None, can_be_null=False, constant=value)
        case Fraction():
            is_whole = value.denominator == 1 and -_INT64 <= value < _INT64
            if not is_whole and abs(value) > _FLOATS:
                raise QueryRefused(
                    "a number beyond 1e300 stands in the question; use a smaller one"
                )
            kind = ColumnType.INTEGER if is_whole else ColumnType.NUMBER
            largest = abs(value) + _UNDERFLOW
            return ScalarFacts(
                kind, value, value, can_be_null=False, largest=largest, constant=value
            )
        case str():
            _check_text(value)
            return ScalarFacts(ColumnType.TEXT, None, None, can_be_null=False, constant=value)
        case datetime.date():
            day = Fraction(value.toordinal())
            return ScalarFacts(ColumnType.DATE, day, day, can_be_null=False, constant=value)


def _of_arithmetic(scalar: Arithmetic, declaration: Declaration) -> ScalarFacts:
    # 1. both sides are bounded numbers, and a divisor is a literal
    sides = infer(scalar.left, declaration), infer(scalar.right, declaration)
    if scalar.operator is Operator.SUBTRACT and all(s.type is ColumnType.DATE for s in sides):
        return _of_days(*sides)
    for side, fact in zip((scalar.left, scalar.right), sides, strict=True):
        if not fact.type.is_numeric:
            raise QueryRefused(
                f"{scalar_text(side)} is {fact.type.value}: arithmetic is defined for numbers only"
            )
        bounds_of(side, fact)
    if scalar.operator is Operator.DIVIDE and not _is_divisor(sides[1]):
        raise QueryRefused(
            f"{scalar_text(scalar)}: only division by a number other than 0 has a rule (and none "
            f"so small that floating point takes it for 0){_ratio(scalar)}"
        )
    # 2. the range of the exact result
    lower, upper = _ends(
        scalar.operator,
        *(bounds_of(*pair) for pair in zip((scalar.left, scalar.right), sides, strict=True)),
    )
    if max(abs(lower), abs(upper)) > LARGEST:
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
        decimals=_decimals(scalar.operator, sides, largest),
    )


def _decimals(
    operator: Operator, sides: tuple[ScalarFacts, ScalarFacts], largest: Fraction
) -> int | None:
    """The digits after the point of a sum, difference or product of exact numbers; none where
    floating point can't tell its results apart."""
    found = [_digits_of(side) for side in sides]
    if found[0] is None or found[1] is None or operator is Operator.DIVIDE:
        return None
    digits = found[0] + found[1] if operator is Operator.MULTIPLY else max(found[0], found[1])
    return digits if digits > 0 and largest * 10**digits <= _EXACT else None


def _digits_of(side: ScalarFacts) -> int | None:
    if side.type is ColumnType.INTEGER:
        return 0
    if isinstance(side.constant, Fraction):
        return next((n for n in range(16) if 10**n % side.constant.denominator == 0), None)
    return side.decimals


def _ratio(quotient: Arithmetic) -> str:
    """The ratio of sums that can be asked in place of this quotient in each row."""
    if not columns_in(quotient.right):
        return ""
    sums = (f"SUM({scalar_text(side)})" for side in (quotient.left, quotient.right))
    return f"; {' / '.join(sums)} is the ratio of the sums"


def _is_divisor(fact: ScalarFacts) -> bool:
    """Whether it is one number, which floating point doesn't take for 0."""
    lower, upper = fact.ends
    return lower == upper and not fact.can_be_null and float(lower) != 0


def _of_days(end: ScalarFacts, start: ScalarFacts) -> ScalarFacts:
    """The facts of the number of days between two dates."""
    can_be_null = end.can_be_null or start.can_be_null
    ends = end.lower, end.upper, start.lower, start.upper
    if None in ends:
        return ScalarFacts(ColumnType.INTEGER, None, None, can_be_null)
    first, last, least, most = (bound for bound in ends if bound is not None)
    return number_facts(ColumnType.INTEGER, first - most, last - least, can_be_null=can_be_null)


def _result_type(
    operator: Operator, sides: Iterable[ScalarFacts], lower: Fraction, upper: Fraction
) -> ColumnType:
    whole = (
        all(side.type is ColumnType.INTEGER for side in sides) and operator is not Operator.DIVIDE
    )
    return ColumnType.INTEGER if whole and lower >= -WHOLE and upper <= WHOLE else ColumnType.NUMBER


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


def bounds_of(scalar: Scalar, fact: ScalarFacts) -> tuple[Fraction, Fraction]:
    """The bounds of an expression; `QueryRefused` where it has none."""
    if fact.lower is None or fact.upper is None:
        text = scalar_text(scalar)
        advice = (
            f"its owner can declare them (--bound {text}=LOWER..UPPER)"
            if isinstance(scalar, ColumnRef)
            else "name them: LEAST(GREATEST(x, LOWER), UPPER)"
        )
        raise QueryRefused(f"{text} has no declared lower and upper; {advice}")
    return fact.lower, fact.upper


def _check_names(query: Query) -> None:
    names = [*query.key_names, *(n for one in query.numbers for n in column_names(one.name))]
    for name in names:
        _check_text(name)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise QueryRefused(
            f"the answer would have two columns {min(twice)!r}; give each a name of its own"
        )


_OF_ANYTHING = {
    AggregateFunction.COUNT,
    AggregateFunction.COUNT_DISTINCT,
    AggregateFunction.MODE,  # of which the plan wants keys
}


def _check_argument(
    function: AggregateFunction, argument: Scalar, declaration: Declaration
) -> None:
    fact = infer(argument, declaration)
    if function in _OF_ANYTHING:
        return
    if not fact.type.is_numeric:
        hint, text = "", scalar_text(argument)
        if fact.type is ColumnType.BOOLEAN:
            hint = f"; write {function.value}(CAST({text} AS INTEGER))"
        elif fact.type is ColumnType.DATE:
            hint = f"; count days from one: {function.value}({text} - DATE '2020-01-01')"
        raise QueryRefused(
            f"{function.value}({scalar_text(argument)}): it is {fact.type.value}; only COUNT "
            f"and MODE take values that are not numbers{hint}"
        )
    lower, upper = bounds_of(argument, fact)
    if lower == upper:
        raise QueryRefused(
            f"{function.value}({scalar_text(argument)}) is of a constant; use COUNT(*)"
        )


def can_be_unknown(condition: Condition, declaration: Declaration) -> bool:
    """Whether a condition may be unknown for some row. Refuses one that compares values of
    different types, and what is no condition."""
    match condition:
        case Comparison(relation, left, right):
            sides = infer(left, declaration), infer(right, declaration)
            _check_alike((left, sides[0]), (right, sides[1]))
            is_equality = relation in (Relation.EQUAL, Relation.UNEQUAL)
            if sides[0].type is ColumnType.BOOLEAN and not is_equality:
                text = f"{scalar_text(left)} {relation.value} ..."
                raise QueryRefused(f"{text}: truth values compare by = and <> only")
            return any(side.can_be_null for side in sides)
        case Membership(value, options):
            return _can_membership_be_unknown(value, options, declaration)
        case IsNull(value):
            infer(value, declaration)
            return False
        case Holds(value):
            fact = infer(value, declaration)
            if fact.type is not ColumnType.BOOLEAN:
                raise QueryRefused(
                    f"{scalar_text(value)} is no condition; compare it with something"
                )
            return fact.can_be_null
        case Both(one, other) | Either(one, other):
            return can_be_unknown(one, declaration) | can_be_unknown(other, declaration)
        case Negation(inner):
            return can_be_unknown(inner, declaration)


def _can_membership_be_unknown(
    value: Scalar, options: Iterable[Literal], declaration: Declaration
) -> bool:
    fact, given = infer(value, declaration), tuple(options)
    if not given:
        raise QueryRefused(f"{scalar_text(value)} IN (): give at least one value")
    for option in given:
        _check_alike((value, fact), (option, infer(option, declaration)))
    return fact.can_be_null


def _check_alike(left: tuple[Scalar, ScalarFacts], right: tuple[Scalar, ScalarFacts]) -> None:
    (one, fact), (other, its_fact) = left, right
    if fact.type is not its_fact.type and not (fact.type.is_numeric and its_fact.type.is_numeric):
        raise QueryRefused(
            f"{scalar_text(one)} is {fact.type.value}, {scalar_text(other)} is "
            f"{its_fact.type.value}: they don't compare"
            f"{way_to_compare((one, other), (fact.type, its_fact.type))}"
        )
