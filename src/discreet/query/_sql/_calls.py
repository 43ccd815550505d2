"""Reads calls of functions, casts, aggregates and shares."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expressions import (
    Arithmetic,
    Branch,
    Case,
    Comparison,
    FunctionCall,
    IsNull,
    Literal,
    Measure,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._expressions._inference import NOT_IN_ROWS
from discreet.query._expressions._sql_words import NO_FUNCTION, REFUSED_CALLS, WINDOWS
from discreet.query._functions._functions import CALLS, CASTS, FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._sql._conditions import alike, sized
from discreet.query._sql._leaves import bare, is_aggregate
from discreet.query._sql._tree_reader import TreeReader

GROUPING_CALLS = {"GROUPING", "GROUPING_ID"}
OF_ANSWERS = {"SHARE", *GROUPING_CALLS}  # calls that stand for numbers of an answer
_SHARE = "write SHARE(COUNT(*)), a share of all groups"
_PARTS = {
    "day": ScalarFunction.DAY,
    "dayofyear": ScalarFunction.DAYOFYEAR,
    "doy": ScalarFunction.DAYOFYEAR,
    "isodow": ScalarFunction.ISODOW,
    "month": ScalarFunction.MONTH,
    "quarter": ScalarFunction.QUARTER,
    "year": ScalarFunction.YEAR,
}
_OF_ALIKE = {ScalarFunction.COALESCE, ScalarFunction.GREATEST, ScalarFunction.LEAST}


def read_call(node: exp.Expr, reader: TreeReader) -> Scalar:
    name, values = node.name.upper(), node.expressions
    if name in SPELLINGS or name == "SHARE":
        return read_measure(node, reader)
    if name in _SPECIAL:
        return _SPECIAL[name](node, reader)
    if name not in CALLS:  # a word of a query before a parenthesis, such as LEFT(
        raise reader.refused(node, REFUSED_CALLS.get(name, NO_FUNCTION))
    function = CALLS[name]
    arguments = (
        alike(values, node, reader)
        if function in _OF_ALIKE
        else [reader.scalar(value) for value in values]
    )
    if not FUNCTIONS[function].takes_this_many(len(arguments)):
        raise reader.refused(node, f"{name} does not take {len(arguments)} values")
    if function is ScalarFunction.DATE_TRUNC:
        arguments = [_in_lower_case(arguments[0]), arguments[1]]
    return FunctionCall(function, tuple(arguments))


def read_measure(node: exp.Expr, reader: TreeReader) -> Measure:
    """The noisy number of an aggregate, or its share, where one may stand."""
    if reader.measure is None:
        raise reader.refused(node, NOT_IN_ROWS)
    if is_aggregate(node):
        return reader.measure(node)
    inner = bare(node.expressions[0]) if len(node.expressions) == 1 else None
    if inner is None or not is_aggregate(inner):
        raise reader.refused(node, _SHARE)
    return replace(reader.measure(inner), is_share=True)


def _grouping(node: exp.Expr, reader: TreeReader) -> Scalar:
    """GROUPING(a, b): in binary, a 1 for each key over which the row is a total. The key of a total
    is NULL, and that of a group never is."""
    if reader.measure is None:
        raise reader.refused(node, NOT_IN_ROWS)
    if not node.expressions:
        raise reader.refused(node, "write GROUPING(key)")
    found: Scalar | None = None
    for one in node.expressions:
        key = reader.scalar(one)
        bit = Case((Branch(IsNull(key), Literal(Fraction(1))),), Literal(Fraction(0)))
        doubled = found and Arithmetic(Operator.MULTIPLY, Literal(Fraction(2)), found)
        found = bit if doubled is None else Arithmetic(Operator.ADD, doubled, bit)
    assert found is not None
    return found


def share_of_total(node: exp.Expr, reader: TreeReader) -> Scalar:
    """The share of a sum over all groups: of n, or of n times numbers, divided by
    SUM(n) OVER ()."""
    window = bare(node.expression)
    total = bare(window.this)
    whole = total.expressions[0] if total.name.upper() == "SUM" and total.expressions else None
    if whole is None or len(total.expressions) > 1 or not is_aggregate(bare(whole)):
        raise reader.refused(window, WINDOWS)
    if (clause := reader.sql.select.args.get("having")) is not None:
        raise reader.refused(clause, f"HAVING would change the sum; {_SHARE}")
    plain = read_measure(bare(whole), reader)
    found = _replaced(reader.scalar(node.this), plain, replace(plain, is_share=True))
    if found is None:
        raise reader.refused(node, WINDOWS)
    return found


def _replaced(value: Scalar, old: Measure, new: Measure) -> Scalar | None:
    """A product with one of its factors replaced; ``None`` if it has no such factor."""
    if value == old:
        return new
    if isinstance(value, Arithmetic) and value.operator is Operator.MULTIPLY:
        if (left := _replaced(value.left, old, new)) is not None:
            return replace(value, left=left)
        if (right := _replaced(value.right, old, new)) is not None:
            return replace(value, right=right)
    return None


def _in_lower_case(unit: Scalar) -> Scalar:
    is_text = isinstance(unit, Literal) and isinstance(unit.value, str)
    return Literal(str(unit.value).lower()) if is_text and isinstance(unit, Literal) else unit


def _cast(node: exp.Expr, reader: TreeReader) -> Scalar:
    written = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(written, exp.Alias):
        raise reader.refused(node, f"write {node.name.upper()}(x AS {' | '.join(CASTS)})")
    kind = written.args["alias"]
    function = CASTS.get(kind.name.upper())
    if function is None or reader.sql.is_quoted(kind):
        raise reader.refused(kind, f"the types of a cast are {', '.join(CASTS)}")
    return FunctionCall(function, (reader.scalar(written.this),))


def _null_if(node: exp.Expr, reader: TreeReader) -> Scalar:
    if len(node.expressions) != 2:
        raise reader.refused(node, "NULLIF takes two values")
    value, other = alike(node.expressions, node, reader)
    return sized(
        Case((Branch(Comparison(Relation.EQUAL, value, other), None),), value), node, reader
    )


def _concatenated(node: exp.Expr, reader: TreeReader) -> Scalar:
    """CONCAT takes NULL for an empty text."""
    parts = [
        FunctionCall(ScalarFunction.COALESCE, (reader.scalar(value), Literal("")))
        for value in node.expressions
    ]
    if not parts:
        raise reader.refused(node, "CONCAT takes texts")
    return reduce(lambda left, right: FunctionCall(ScalarFunction.CONCAT, (left, right)), parts)


def _named_part(node: exp.Expr, reader: TreeReader) -> Scalar:
    values = node.expressions
    if len(values) != 2 or not values[0].is_string:
        raise reader.refused(node, "write DATE_PART('year', day) or YEAR(day)")
    return _part(values[0].this, values[1], node, reader)


def _days(node: exp.Expr, reader: TreeReader) -> Scalar:
    """The days from the second to the third value of DATE_DIFF."""
    values = node.expressions
    if len(values) != 3 or not (values[0].is_string and values[0].this.lower() == "day"):
        raise reader.refused(node, "write DATE_DIFF('day', start, end) or end - start: days")
    start, end = alike(values[1:], node, reader)
    return Arithmetic(Operator.SUBTRACT, end, start)


def read_part(node: exp.Expr, reader: TreeReader) -> Scalar:
    return _part(node.this.name, node.expression, node, reader)


def _part(name: str, value: exp.Expr, whole: exp.Expr, reader: TreeReader) -> Scalar:
    function = _PARTS.get(name.lower())
    if function is None:
        raise reader.refused(whole, f"the parts of a date are {', '.join(_PARTS)}")
    return FunctionCall(function, (reader.scalar(value),))


_SPECIAL: dict[str, Callable[[exp.Expr, TreeReader], Scalar]] = {
    "CAST": _cast,
    "CONCAT": _concatenated,
    "DATEDIFF": _days,
    "DATEPART": _named_part,
    "DATE_DIFF": _days,
    "DATE_PART": _named_part,
    "GROUPING": _grouping,
    "GROUPING_ID": _grouping,
    "NULLIF": _null_if,
    "TRY_CAST": _cast,
}
