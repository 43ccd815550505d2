"""The closed list of what may stand in an SQL text: one rule for each kind of node.

`RULES` is the list, for statements too; `ADVICE` says what to write instead of some kinds.
"""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Either,
    FunctionCall,
    IsNull,
    Literal,
    Negation,
    Operator,
    Relation,
    Scalar,
)
from discreet.query._expressions._sql_words import A_TABLE, NO_LIST, WINDOWS
from discreet.query._functions._scalar_rules import ScalarFunction
from discreet.query._sql._calls import read_call, read_measure, read_part, share_of_total
from discreet.query._sql._conditions import (
    alike,
    comparison,
    connective,
    is_text,
    read_between,
    read_case,
    read_membership,
)
from discreet.query._sql._leaves import bare, read_column, read_date, read_literal
from discreet.query._sql._tree_reader import SIDES, NodeRule, TreeReader

_ONE = {"this": exp.Expr}


def _negative(node: exp.Expr, reader: TreeReader) -> Scalar:
    value = reader.scalar(node.this)
    if isinstance(value, Literal) and isinstance(value.value, Fraction):
        return Literal(-value.value)
    return Arithmetic(Operator.SUBTRACT, Literal(Fraction(0)), value)


def _arithmetic(operator: Operator) -> NodeRule:
    def value(node: exp.Expr, reader: TreeReader) -> Scalar:
        if operator is Operator.DIVIDE and isinstance(bare(node.expression), exp.Window):
            return share_of_total(node, reader)
        left, right = reader.scalar(node.this), reader.scalar(node.expression)
        if operator is Operator.SUBTRACT and (is_text(left) or is_text(right)):
            left, right = alike([node.this, node.expression], node, reader)
        return Arithmetic(operator, left, right)

    return NodeRule(SIDES, value=value)


def _infix(function: ScalarFunction) -> NodeRule:
    def value(node: exp.Expr, reader: TreeReader) -> FunctionCall:
        return FunctionCall(function, (reader.scalar(node.this), reader.scalar(node.expression)))

    return NodeRule(SIDES, value=value)


def _of_several(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, "one value stands in parentheses, a list only after IN")


def _alone(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, WINDOWS)


def _no_list(node: exp.Expr, reader: TreeReader) -> Scalar:
    raise reader.refused(node, NO_LIST)


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
    exp.Anonymous: NodeRule({"this": str, "expressions": list}, value=read_call),
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
    exp.Case: NodeRule({**_ONE, "ifs": list, "default": exp.Expr}, value=read_case),
    exp.If: NodeRule({**_ONE, "true": exp.Expr}),
    exp.Extract: NodeRule({"this": exp.Identifier, "expression": exp.Expr}, value=read_part),
    exp.Cast: NodeRule({"this": exp.Literal, "to": exp.DataType}, value=read_date),
    exp.DataType: NodeRule({"this": exp.DType, "nested": bool}),
    exp.Paren: NodeRule(
        _ONE,
        value=lambda node, reader: reader.scalar(node.this),
        condition=lambda node, reader: reader.condition(node.this),
    ),
    exp.Neg: NodeRule(_ONE, value=_negative),
    exp.Add: _arithmetic(Operator.ADD),
    exp.Sub: _arithmetic(Operator.SUBTRACT),
    exp.Mul: _arithmetic(Operator.MULTIPLY),
    exp.Mod: _infix(ScalarFunction.MOD),
    exp.DPipe: replace(_infix(ScalarFunction.CONCAT), parts={**SIDES, "safe": bool}),
    exp.Div: replace(  # sqlglot sets `typed` and `safe` for other dialects
        _arithmetic(Operator.DIVIDE), parts={**SIDES, "typed": bool, "safe": bool}
    ),
    # conditions
    exp.EQ: comparison(Relation.EQUAL),
    exp.NEQ: comparison(Relation.UNEQUAL),
    exp.LT: comparison(Relation.LESS),
    exp.LTE: comparison(Relation.AT_MOST),
    exp.GT: comparison(Relation.GREATER),
    exp.GTE: comparison(Relation.AT_LEAST),
    exp.Between: NodeRule({**_ONE, "low": exp.Expr, "high": exp.Expr}, condition=read_between),
    exp.Like: _infix(ScalarFunction.LIKE),
    exp.In: NodeRule({**_ONE, "expressions": list}, condition=read_membership),
    exp.Is: NodeRule(
        {**_ONE, "expression": exp.Null},
        condition=lambda node, reader: IsNull(reader.scalar(node.this)),
    ),
    exp.Null: NodeRule({}),
    exp.And: connective(Both),
    exp.Or: connective(Either),
    exp.Not: NodeRule(_ONE, condition=lambda node, reader: Negation(reader.condition(node.this))),
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
