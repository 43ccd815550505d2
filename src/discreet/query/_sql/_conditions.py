"""Reads comparisons, conditions and CASE; compared texts are read as dates beside a date."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Branch,
    Case,
    Comparison,
    Condition,
    Either,
    Literal,
    Measure,
    Membership,
    Operator,
    Relation,
    Scalar,
    parts_of,
)
from discreet.query._expressions._inference import infer
from discreet.query._facts._columns import ColumnType
from discreet.query._sql._leaves import read_day
from discreet.query._sql._tokens import MAX_TOKENS
from discreet.query._sql._tree_reader import SIDES, NodeRule, TreeReader

_COMPARISONS = exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE
_CHAINED = "engines read a chain of comparisons in different ways; write x > 1 AND x < 2"


def comparison(relation: Relation) -> NodeRule:
    def condition(node: exp.Expr, reader: TreeReader) -> Comparison:
        if isinstance(node.this, _COMPARISONS) or isinstance(node.expression, _COMPARISONS):
            raise reader.refused(node, _CHAINED)
        left, right = alike([node.this, node.expression], node, reader)
        if isinstance(left, Literal) and isinstance(right, Literal):
            _check_is_no_column(node, left, right, reader)
        return Comparison(relation, left, right)

    return NodeRule(SIDES, condition=condition)


def _check_is_no_column(node: exp.Expr, left: Literal, right: Literal, reader: TreeReader) -> None:
    """Refuse the name of a column that stands in single quotes."""
    for side in (left, right):
        if side.value in reader.declaration.columns:
            raise reader.refused(
                node, f"'{side.value}' is a text here: a column has no quotes, or double ones"
            )


def connective(kind: type[Both | Either]) -> NodeRule:
    def condition(node: exp.Expr, reader: TreeReader) -> Both | Either:
        return kind(reader.condition(node.this), reader.condition(node.expression))

    return NodeRule(SIDES, condition=condition)


def read_between(node: exp.Expr, reader: TreeReader) -> Both:
    value, lower, upper = alike([node.this, node.args["low"], node.args["high"]], node, reader)
    check_number_size([value, value, lower, upper], node, reader)
    return Both(
        Comparison(Relation.AT_LEAST, value, lower), Comparison(Relation.AT_MOST, value, upper)
    )


def read_membership(node: exp.Expr, reader: TreeReader) -> Membership:
    value, *options = alike([node.this, *node.expressions], node, reader)
    literals = tuple(found for option in options if (found := _as_literal(option)))
    if not literals or len(literals) < len(options):
        raise reader.refused(node, "IN takes literals: IN (1, 2, 3)")
    return Membership(value, literals)


def _as_literal(option: Scalar) -> Literal | None:
    """A literal, which may be the fraction of two whole numbers, such as 1 / 3."""
    match option:
        case Literal():
            return option
        case Arithmetic(Operator.DIVIDE, Literal(Fraction() as one), Literal(Fraction() as other)):
            return Literal(one / other) if other else None
    return None


def read_case(node: exp.Expr, reader: TreeReader) -> Scalar:
    # 1. the conditions
    compared = node.args.get("this")
    branches = tuple(
        Branch(
            reader.condition(one.this)
            if compared is None
            else _equal(compared, one.this, node, reader),
            None,
        )
        for one in node.args["ifs"]
    )
    # 2. the results, which must be of one type
    results = [one.args["true"] for one in node.args["ifs"]]
    default = node.args.get("default")
    written = [*results, *([] if default is None else [default])]
    there = [one for one in written if not isinstance(one, exp.Null)]
    values = dict(zip(map(id, there), alike(there, node, reader), strict=True))
    return sized(
        Case(
            tuple(
                replace(branch, value=values.get(id(result)))
                for branch, result in zip(branches, results, strict=True)
            ),
            values.get(id(default)),
        ),
        node,
        reader,
    )


def _equal(left: exp.Expr, right: exp.Expr, node: exp.Expr, reader: TreeReader) -> Condition:
    one, other = alike([left, right], node, reader)
    return Comparison(Relation.EQUAL, one, other)


# Values that stand side by side


def alike(nodes: Sequence[exp.Expr], whole: exp.Expr, reader: TreeReader) -> list[Scalar]:
    """The compared values; if any of them is a date, texts are read as dates."""
    values = [reader.scalar(node) for node in nodes]
    if not any(map(is_text, values)):
        return values
    of_rows = (value for value in values if not _is_of_answer(value))
    if ColumnType.DATE not in {infer(value, reader.declaration).type for value in of_rows}:
        return values
    return [_as_day(value, whole, reader) for value in values]


def _is_of_answer(value: Scalar | Condition) -> bool:
    """Whether the value contains noisy numbers, which are never dates."""
    return isinstance(value, Measure) or any(map(_is_of_answer, parts_of(value)))


def _as_day(value: Scalar, whole: exp.Expr, reader: TreeReader) -> Scalar:
    if isinstance(value, Literal) and isinstance(value.value, str):
        return Literal(read_day(value.value, whole, reader))
    return value


def is_text(value: Scalar) -> bool:
    return isinstance(value, Literal) and isinstance(value.value, str)


# The size of values that are repeated


def sized(value: Scalar, node: exp.Expr, reader: TreeReader) -> Scalar:
    """The value, if it is no larger than a text may be. NULLIF, CASE x WHEN and BETWEEN repeat a
    value, so they could double it at each of many levels."""
    check_number_size([value], node, reader)
    return value


def check_number_size(
    values: Iterable[Scalar | Condition], node: exp.Expr, reader: TreeReader
) -> None:
    parts, size = list(values), 0
    while parts:
        size += 1
        if size > MAX_TOKENS:
            raise reader.refused(node, "this repeats too long a value; name fewer values at a time")
        parts += parts_of(parts.pop())
