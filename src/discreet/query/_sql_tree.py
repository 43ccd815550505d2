"""The syntax tree of an SQL text by sqlglot, in which every node and every part is on a list.

A node of sqlglot has parts that are easy to overlook (a SELECT has dozens). So accepted nodes are
listed with their accepted parts, and everything else is refused. Code that reads a node then knows
all of its parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from discreet.errors import QueryRefused
from discreet.query._query import AggregateFunction, Operator, Relation
from discreet.query._sql_tokens import refused, tokens
from discreet.query._sql_words import FORM, ONE_TABLE

FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Avg: AggregateFunction.AVG,
    exp.Count: AggregateFunction.COUNT,
    exp.Sum: AggregateFunction.SUM,
}
OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Add: Operator.ADD,
    exp.Div: Operator.DIVIDE,
    exp.Mul: Operator.MULTIPLY,
    exp.Sub: Operator.SUBTRACT,
}
RELATIONS: dict[type[exp.Expr], Relation] = {
    exp.EQ: Relation.EQUAL,
    exp.GT: Relation.GREATER,
    exp.GTE: Relation.AT_LEAST,
    exp.LT: Relation.LESS,
    exp.LTE: Relation.AT_MOST,
    exp.NEQ: Relation.UNEQUAL,
}
_TWO_SIDES: dict[str, type] = {"this": exp.Expr, "expression": exp.Expr}

# every kind of node, and every part that it may have; sqlglot sets `big_int`, `safe` and `typed`
# for other dialects
_ACCEPTED: dict[type[exp.Expr], dict[str, type]] = {
    exp.Select: {"expressions": list, "from_": exp.From, "where": exp.Where, "group": exp.Group},
    exp.From: {"this": exp.Table},
    exp.Table: {"this": exp.Identifier, "alias": exp.TableAlias},
    exp.TableAlias: {"this": exp.Identifier},
    exp.Where: {"this": exp.Expr},
    exp.Group: {"expressions": list},
    exp.Alias: {"this": exp.Expr, "alias": exp.Identifier},
    exp.Identifier: {"this": str, "quoted": bool},
    exp.Column: {"this": exp.Identifier, "table": exp.Identifier},
    exp.Star: {},
    exp.Avg: {"this": exp.Expr},
    exp.Count: {"this": exp.Expr, "big_int": bool},
    exp.Sum: {"this": exp.Expr},
    exp.Paren: {"this": exp.Expr},
    exp.Literal: {"this": str, "is_string": bool},
    exp.Boolean: {"this": bool},
    exp.Cast: {"this": exp.Literal, "to": exp.DataType},  # of DATE '2020-01-31' alone
    exp.DataType: {"this": exp.DType},
    exp.Neg: {"this": exp.Expr},
    **dict.fromkeys(OPERATORS, _TWO_SIDES),
    exp.Div: {**_TWO_SIDES, "typed": bool, "safe": bool},
    **dict.fromkeys(RELATIONS, _TWO_SIDES),
    exp.Between: {"this": exp.Expr, "low": exp.Expr, "high": exp.Expr},
    exp.In: {"this": exp.Expr, "expressions": list},
    exp.Is: {"this": exp.Expr, "expression": exp.Null},
    exp.Null: {},
    exp.And: _TWO_SIDES,
    exp.Or: _TWO_SIDES,
    exp.Not: {"this": exp.Expr},
}
_ADVICE: dict[type[exp.Expr], str] = {
    exp.Column: "a column is named as column, or as table.column",
    exp.Concat: "a text is one literal; a quote inside it is doubled: 'o''clock'",
    exp.Count: "COUNT takes * or one value",
    exp.Dot: "a column is named as column, or as table.column",
    exp.In: "IN takes literals in parentheses: IN (1, 2, 3)",
    exp.Join: ONE_TABLE,
    exp.Is: "write IS NULL or IS NOT NULL; a boolean column is a condition, or compared: = TRUE",
    exp.Subquery: ONE_TABLE,
    exp.Table: ONE_TABLE,
    exp.Tuple: "one value stands in parentheses, a list only after IN",
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A SELECT statement that passed the list, and the text that it came from."""

    select: exp.Select
    text: str
    tokens: Sequence[Token]

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        """The error for a node: its text, its place, and what is possible."""
        return _refused(node, self.text, self.tokens, why)

    def is_quoted(self, name: exp.Identifier) -> bool:
        """Whether a name stands in double quotes."""
        return self.text[name.meta["start"]] == '"'


def tree(text: str) -> Tree:
    """The tree of a text that is one SELECT statement of listed nodes; refused otherwise."""
    found = tokens(text)
    select = _parsed(text, found)
    for node in select.walk():
        for part in _unlisted(node):
            at = node if type(node) in _ADVICE else part
            why = _ADVICE.get(type(at), f"this has no rule; {FORM}")
            raise _refused(at, text, found, why)
    return Tree(select, text, found)


def _parsed(text: str, found: list[Token]) -> exp.Select:
    try:
        [select] = DuckDB().parser(error_level=ErrorLevel.IMMEDIATE).parse(found, text)
    except ParseError as error:
        raise _misplaced(text, found, error.errors[0].get("col")) from None
    except Exception:  # noqa: BLE001  # the parser may fail in any way
        raise QueryRefused(f"the text can't be read; {FORM}") from None
    if not isinstance(select, exp.Select):
        raise QueryRefused(f"the text is not one SELECT statement; {FORM}")
    return select


def _misplaced(text: str, found: Sequence[Token], start: object) -> QueryRefused:
    """The error for the token that starts there, or for the last one."""
    at = next((token for token in found if token.col == start), found[-1])
    is_last = "" if at is not found[-1] else ", or something is missing after it"
    return refused(text, at.start, at.end + 1, f"this is not expected here{is_last}; {FORM}")


def _unlisted(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node if its kind is not listed; otherwise its parts that are not listed."""
    accepted = _ACCEPTED.get(type(node))
    if accepted is None:
        yield node
        return
    for name, part in node.args.items():
        is_absent = part is None or part is False or part == []
        if not is_absent and not isinstance(part, accepted.get(name, ())):
            first = part[0] if isinstance(part, list) else part
            yield first if isinstance(first, exp.Expr) else node


def _refused(node: exp.Expr, text: str, found: Sequence[Token], why: str) -> QueryRefused:
    covered = _covered(node, found)
    if covered:
        first, last = _balanced(found, covered[0], covered[-1])
        return refused(text, found[first].start, found[last].end + 1, why)
    if node.parent is not None:
        return _refused(node.parent, text, found, why)
    return refused(text, found[0].start, found[-1].end + 1, why)


def _covered(node: exp.Expr, found: Sequence[Token]) -> list[int]:
    """The places of the node's tokens, as far as sqlglot records them."""
    if isinstance(node, exp.Boolean):  # sqlglot doesn't for these
        kind = TokenType.TRUE if node.this else TokenType.FALSE
        return [place for place, token in enumerate(found) if token.token_type is kind][:1]
    starts = {one.meta["start"] for one in node.walk() if "start" in one.meta}
    return [place for place, token in enumerate(found) if token.start in starts]


def _balanced(found: Sequence[Token], first: int, last: int) -> tuple[int, int]:
    """The range of tokens, widened until its parentheses are balanced."""
    if found[last].token_type is TokenType.VAR:
        last += 1
    while last + 1 < len(found) and _opened(found[first : last + 1]) > 0:
        last += 1
    while first > 0 and _opened(found[first : last + 1]) < 0:
        first -= 1
    return first, last


def _opened(part: Sequence[Token]) -> int:
    kinds = [token.token_type for token in part]
    return kinds.count(TokenType.L_PAREN) - kinds.count(TokenType.R_PAREN)
