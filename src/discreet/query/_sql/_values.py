"""Reads the values and conditions of an SQL text, by one rule for each kind of node.

`RULES` is the closed list, for statements too; `ADVICE` says what to write instead of some kinds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from types import UnionType

from sqlglot import exp

from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Branch,
    Case,
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
    parts_of,
)
from discreet.query._expressions._inference import NOT_IN_ROWS, infer
from discreet.query._expressions._sql_words import (
    A_TABLE,
    NO_FUNCTION,
    NO_LIST,
    REFUSED_CALLS,
    WINDOWS,
)
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._functions import CALLS, CASTS, FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._sql._leaves import (
    NO_VALUE,
    TreeReader,
    is_aggregate,
    read_column,
    read_date,
    read_day,
    read_literal,
)
from discreet.query._sql._tokens import MAX_TOKENS

GROUPING_CALLS = {"GROUPING", "GROUPING_ID"}
OF_ANSWERS = {"SHARE", *GROUPING_CALLS}  # calls that stand for numbers of an answer
_NO_CONDITION = "this is no condition: compare it with something, as in wage > 10"
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


def read_scalar(node: exp.Expr, reader: TreeReader) -> Scalar:
    rule = RULES[type(node)]
    if rule.value is not None:
        return rule.value(node, reader)
    if rule.condition is None:
        raise reader.refused(node, NO_VALUE)
    return _truth(rule.condition(node, reader))


def _truth(condition: Condition) -> Scalar:
    return condition.value if isinstance(condition, Holds) else Truth(condition)


def _called(node: exp.Expr, reader: TreeReader) -> Scalar:
    name, values = node.name.upper(), node.expressions
    if name in SPELLINGS or name == "SHARE":
        return read_measure(node, reader)
    if name in _SPECIAL:
        return _SPECIAL[name](node, reader)
    if name not in CALLS:  # a word of a query before a parenthesis, such as LEFT(
        raise reader.refused(node, REFUSED_CALLS.get(name, NO_FUNCTION))
    function = CALLS[name]
    arguments = (
        _alike(values, node, reader)
        if function in _OF_ALIKE
        else [read_scalar(value, reader) for value in values]
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
        key = read_scalar(one, reader)
        bit = Case((Branch(IsNull(key), Literal(Fraction(1))),), Literal(Fraction(0)))
        doubled = found and Arithmetic(Operator.MULTIPLY, Literal(Fraction(2)), found)
        found = bit if doubled is None else Arithmetic(Operator.ADD, doubled, bit)
    assert found is not None
    return found


def bare(node: exp.Expr) -> exp.Expr:
    """The node without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _of_total(node: exp.Expr, reader: TreeReader) -> Scalar:
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
    found = _replaced(read_scalar(node.this, reader), plain, replace(plain, is_share=True))
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


_OF_ALIKE = {ScalarFunction.COALESCE, ScalarFunction.GREATEST, ScalarFunction.LEAST}


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
    return FunctionCall(function, (read_scalar(written.this, reader),))


def _null_if(node: exp.Expr, reader: TreeReader) -> Scalar:
    if len(node.expressions) != 2:
        raise reader.refused(node, "NULLIF takes two values")
    value, other = _alike(node.expressions, node, reader)
    return _sized(
        Case((Branch(Comparison(Relation.EQUAL, value, other), None),), value), node, reader
    )


def _concatenated(node: exp.Expr, reader: TreeReader) -> Scalar:
    """CONCAT takes NULL for an empty text."""
    parts = [
        FunctionCall(ScalarFunction.COALESCE, (read_scalar(value, reader), Literal("")))
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
    start, end = _alike(values[1:], node, reader)
    return Arithmetic(Operator.SUBTRACT, end, start)


def _extracted(node: exp.Expr, reader: TreeReader) -> Scalar:
    return _part(node.this.name, node.expression, node, reader)


def _part(name: str, value: exp.Expr, whole: exp.Expr, reader: TreeReader) -> Scalar:
    function = _PARTS.get(name.lower())
    if function is None:
        raise reader.refused(whole, f"the parts of a date are {', '.join(_PARTS)}")
    return FunctionCall(function, (read_scalar(value, reader),))


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


def _case(node: exp.Expr, reader: TreeReader) -> Scalar:
    compared = node.args.get("this")
    branches = tuple(
        Branch(
            read_condition(one.this, reader)
            if compared is None
            else _equal(compared, one.this, node, reader),
            None,
        )
        for one in node.args["ifs"]
    )
    results = [one.args["true"] for one in node.args["ifs"]]
    default = node.args.get("default")
    written = [*results, *([] if default is None else [default])]
    there = [one for one in written if not isinstance(one, exp.Null)]
    values = dict(zip(map(id, there), _alike(there, node, reader), strict=True))
    return _sized(
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
    one, other = _alike([left, right], node, reader)
    return Comparison(Relation.EQUAL, one, other)


def _sized(value: Scalar, node: exp.Expr, reader: TreeReader) -> Scalar:
    """The value, if it is no larger than a text may be. NULLIF, CASE x WHEN and BETWEEN repeat a
    value, so they could double it at each of many levels."""
    _check_size([value], node, reader)
    return value


def _check_size(values: Iterable[Scalar | Condition], node: exp.Expr, reader: TreeReader) -> None:
    parts, size = list(values), 0
    while parts:
        size += 1
        if size > MAX_TOKENS:
            raise reader.refused(node, "this repeats too long a value; name fewer values at a time")
        parts += parts_of(parts.pop())


def _negative(node: exp.Expr, reader: TreeReader) -> Scalar:
    value = read_scalar(node.this, reader)
    if isinstance(value, Literal) and isinstance(value.value, Fraction):
        return Literal(-value.value)
    return Arithmetic(Operator.SUBTRACT, Literal(Fraction(0)), value)


def _arithmetic(operator: Operator) -> "NodeRule":
    def value(node: exp.Expr, reader: TreeReader) -> Scalar:
        if operator is Operator.DIVIDE and isinstance(bare(node.expression), exp.Window):
            return _of_total(node, reader)
        left, right = read_scalar(node.this, reader), read_scalar(node.expression, reader)
        if operator is Operator.SUBTRACT and (_is_text(left) or _is_text(right)):
            left, right = _alike([node.this, node.expression], node, reader)
        return Arithmetic(operator, left, right)

    return NodeRule(_SIDES, value=value)


def _is_text(value: Scalar) -> bool:
    return isinstance(value, Literal) and isinstance(value.value, str)


def _infix(function: ScalarFunction) -> "NodeRule":
    def value(node: exp.Expr, reader: TreeReader) -> FunctionCall:
        return FunctionCall(
            function, (read_scalar(node.this, reader), read_scalar(node.expression, reader))
        )

    return NodeRule(_SIDES, value=value)


# --- conditions ---


def read_condition(node: exp.Expr, reader: TreeReader) -> Condition:
    rule = RULES[type(node)]
    if rule.condition is not None:
        return rule.condition(node, reader)
    if not isinstance(node, _CONDITIONS):
        raise reader.refused(node, _NO_CONDITION)
    value = read_scalar(node, reader)
    return value.condition if isinstance(value, Truth) else Holds(value)


_CONDITIONS = exp.Anonymous, exp.Case, exp.Column, exp.Like  # values that may be conditions


def _comparison(relation: Relation) -> "NodeRule":
    def condition(node: exp.Expr, reader: TreeReader) -> Comparison:
        left, right = _alike([node.this, node.expression], node, reader)
        if isinstance(left, Literal) and isinstance(right, Literal):
            _check_is_no_column(node, left, right, reader)
        return Comparison(relation, left, right)

    return NodeRule(_SIDES, condition=condition)


def _check_is_no_column(node: exp.Expr, left: Literal, right: Literal, reader: TreeReader) -> None:
    """Refuse the name of a column that stands in single quotes."""
    for side in (left, right):
        if side.value in reader.declaration.columns:
            raise reader.refused(
                node, f"'{side.value}' is a text here: a column has no quotes, or double ones"
            )


def _connective(kind: type[Both | Either]) -> "NodeRule":
    def condition(node: exp.Expr, reader: TreeReader) -> Both | Either:
        return kind(read_condition(node.this, reader), read_condition(node.expression, reader))

    return NodeRule(_SIDES, condition=condition)


def _between(node: exp.Expr, reader: TreeReader) -> Both:
    value, lower, upper = _alike([node.this, node.args["low"], node.args["high"]], node, reader)
    _check_size([value, value, lower, upper], node, reader)
    return Both(
        Comparison(Relation.AT_LEAST, value, lower), Comparison(Relation.AT_MOST, value, upper)
    )


def _membership(node: exp.Expr, reader: TreeReader) -> Membership:
    value, *options = _alike([node.this, *node.expressions], node, reader)
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


def _alike(nodes: Sequence[exp.Expr], whole: exp.Expr, reader: TreeReader) -> list[Scalar]:
    """The compared values; if any of them is a date, texts are read as dates."""
    values = [read_scalar(node, reader) for node in nodes]
    if not any(map(_is_text, values)):
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


# --- the list ---


@dataclass(frozen=True, slots=True)
class NodeRule:
    """The parts that a kind of node may have, and how it is read as a value and as a condition,
    where it may be one."""

    parts: Mapping[str, type | UnionType]
    value: Callable[[exp.Expr, TreeReader], Scalar] | None = None
    condition: Callable[[exp.Expr, TreeReader], Condition] | None = None


def _of_several(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, "one value stands in parentheses, a list only after IN")


def _alone(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, WINDOWS)


def _no_list(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, NO_LIST)


_ONE = {"this": exp.Expr}
_SIDES = {"this": exp.Expr, "expression": exp.Expr}
RULES: dict[type[exp.Expr], NodeRule] = {
    # the statement
    exp.Select: NodeRule(
        {
            "expressions": list,
            "from_": exp.From,
            "joins": list,
            "where": exp.Where,
            "group": exp.Group,
            "with_": exp.With,
            "having": exp.Having,
            "order": exp.Order,
            "limit": exp.Limit,
            "offset": exp.Offset,
        }
    ),
    exp.From: NodeRule({"this": exp.Table | exp.Subquery}),
    exp.Subquery: NodeRule(
        {"this": exp.Select | exp.Union | exp.Subquery, "alias": exp.TableAlias}
    ),
    exp.Union: NodeRule(
        {"this": exp.Expr, "expression": exp.Expr, "distinct": bool}
    ),  # UNION ALL: it is read where FROM is
    exp.With: NodeRule({"expressions": list}),
    exp.CTE: NodeRule({"this": exp.Select | exp.Union, "alias": exp.TableAlias}),
    exp.Join: NodeRule(
        {"this": exp.Table | exp.Subquery, "on": exp.Expr, "using": list, "side": str, "kind": str}
    ),
    exp.Table: NodeRule({"this": exp.Identifier, "alias": exp.TableAlias}),
    exp.TableAlias: NodeRule({"this": exp.Identifier}),
    exp.Where: NodeRule(_ONE),
    exp.Group: NodeRule({"expressions": list}),
    exp.Rollup: NodeRule({"expressions": list}),
    exp.Cube: NodeRule({"expressions": list}),
    exp.GroupingSets: NodeRule({"expressions": list}),
    exp.Tuple: NodeRule({"expressions": list}, value=_of_several),  # in those three
    exp.Having: NodeRule(_ONE),
    exp.Order: NodeRule({"expressions": list}),
    exp.Ordered: NodeRule({**_ONE, "desc": str, "nulls_first": str}),
    exp.Limit: NodeRule({"expression": exp.Expr}),
    exp.Offset: NodeRule({"expression": exp.Expr}),
    exp.Window: NodeRule({**_ONE, "over": str}, value=_alone),
    exp.Alias: NodeRule({"this": exp.Expr, "alias": exp.Identifier}),
    exp.Identifier: NodeRule({"this": str, "quoted": bool}),
    exp.Anonymous: NodeRule({"this": str, "expressions": list}, value=_called),
    exp.Distinct: NodeRule({"expressions": list}),  # in COUNT
    exp.WithinGroup: NodeRule({"this": exp.Anonymous, "expression": exp.Order}, value=read_measure),
    exp.Array: NodeRule(
        {"expressions": list, "bracket_notation": bool}, value=_no_list
    ),  # of levels
    exp.Star: NodeRule({}),
    # values
    exp.Column: NodeRule({"this": exp.Identifier, "table": exp.Identifier}, value=read_column),
    exp.Literal: NodeRule({"this": str, "is_string": bool}, value=read_literal),
    exp.Boolean: NodeRule({"this": bool}, value=lambda node, _: Literal(bool(node.this))),
    exp.Case: NodeRule({**_ONE, "ifs": list, "default": exp.Expr}, value=_case),
    exp.If: NodeRule({**_ONE, "true": exp.Expr}),
    exp.Extract: NodeRule({"this": exp.Identifier, "expression": exp.Expr}, value=_extracted),
    exp.Cast: NodeRule({"this": exp.Literal, "to": exp.DataType}, value=read_date),
    exp.DataType: NodeRule({"this": exp.DType, "nested": bool}),
    exp.Paren: NodeRule(
        _ONE,
        value=lambda node, reader: read_scalar(node.this, reader),
        condition=lambda node, reader: read_condition(node.this, reader),
    ),
    exp.Neg: NodeRule(_ONE, value=_negative),
    exp.Add: _arithmetic(Operator.ADD),
    exp.Sub: _arithmetic(Operator.SUBTRACT),
    exp.Mul: _arithmetic(Operator.MULTIPLY),
    exp.Mod: _infix(ScalarFunction.MOD),
    exp.DPipe: replace(_infix(ScalarFunction.CONCAT), parts={**_SIDES, "safe": bool}),
    exp.Div: replace(  # sqlglot sets `typed` and `safe` for other dialects
        _arithmetic(Operator.DIVIDE), parts={**_SIDES, "typed": bool, "safe": bool}
    ),
    # conditions
    exp.EQ: _comparison(Relation.EQUAL),
    exp.NEQ: _comparison(Relation.UNEQUAL),
    exp.LT: _comparison(Relation.LESS),
    exp.LTE: _comparison(Relation.AT_MOST),
    exp.GT: _comparison(Relation.GREATER),
    exp.GTE: _comparison(Relation.AT_LEAST),
    exp.Between: NodeRule({**_ONE, "low": exp.Expr, "high": exp.Expr}, condition=_between),
    exp.Like: _infix(ScalarFunction.LIKE),
    exp.In: NodeRule({**_ONE, "expressions": list}, condition=_membership),
    exp.Is: NodeRule(
        {**_ONE, "expression": exp.Null},
        condition=lambda node, reader: IsNull(read_scalar(node.this, reader)),
    ),
    exp.Null: NodeRule({}),
    exp.And: _connective(Both),
    exp.Or: _connective(Either),
    exp.Not: NodeRule(
        _ONE, condition=lambda node, reader: Negation(read_condition(node.this, reader))
    ),
}

# of kinds without a rule, and of parts that a rule doesn't name
ADVICE: dict[type[exp.Expr], str] = {
    exp.Column: "a column is named as column, or as table.column",
    exp.Concat: "a text is one literal; a quote inside it is doubled: 'o''clock'",
    exp.Distinct: "COUNT(DISTINCT value) counts different values, and GROUP BY shows keys",
    exp.Dot: "a column is named as column, or as table.column",
    exp.Group: "GROUP BY takes keys: name the keys",
    exp.In: "IN takes literals in parentheses: IN (1, 2, 3)",
    exp.Is: "write IS NULL or IS NOT NULL; a boolean column is a condition, or compared: = TRUE",
    exp.All: "name the keys or values; a value is compared with literals: IN (1, 2, 3)",
    exp.Join: "tables are joined with USING (columns) or ON a.x = b.x AND ...",
    exp.Order: "an aggregate takes its rows in no order; ORDER BY sorts an answer",
    exp.Subquery: A_TABLE,
    exp.Table: A_TABLE,
    exp.Union: "write UNION ALL in FROM: FROM (SELECT ... UNION ALL SELECT ...) AS name",
    exp.With: "a query by WITH names tables and queries before it",
    exp.Tuple: "one value stands in parentheses, a list only after IN",
    exp.Window: WINDOWS,
}
