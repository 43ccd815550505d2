"""Translates an SQL text to our `Query`, from a tree of listed nodes, and plans it.

A kind of node without an entry in the tables below is refused. Types, bounds and keys are checked
as for any other query.
"""

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._columns import ColumnType
from discreet.query._declaration import Declaration
from discreet.query._inference import column_of, infer
from discreet.query._plan import Plan, plan
from discreet.query._query import (
    Aggregate,
    Arithmetic,
    Both,
    ColumnRef,
    Comparison,
    Condition,
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
)
from discreet.query._sql_tokens import tokens
from discreet.query._sql_tree import FUNCTIONS, OPERATORS, RELATIONS, Tree, tree
from discreet.query._sql_words import FORM, ONE_TABLE, RESERVED

_DIGITS = 30  # before the point, and after it

_NO_VALUE = "this is no value: values are columns, literals, and + - * / of them"
_NO_CONDITION = "this is no condition: compare it with something, as in wage > 10"
_NO_ITEM = "SELECT takes keys and COUNT, SUM, AVG of values"
_ALONE = "an aggregate stands by itself in SELECT; compute with the released numbers"


def plan_sql(text: str, declaration: Declaration) -> Plan:
    """The plan of the question that an SQL text asks of the declared table.

    Guarantee: whatever the text is, nothing but a `DiscreetError` is raised, and it names the part
    that has no rule. Texts that differ in case, blanks, comments, parentheses or spellings of one
    thing give equal queries; the text of a query (``str``) gives the same query again. A name
    without quotes matches in any case, one in double quotes exactly.

    >>> import discreet as dp
    >>> from discreet.query import Caps
    >>> columns = {"year": dp.Column.integer(keys=[1980, 1981]), "wage": dp.Column.number(0, 60)}
    >>> wages = Declaration("wages", dp.Unit("person"), Caps(), columns)
    >>> text = "select avg(Wage), count(*) from wages w where (w.year) != 1980"
    >>> print(plan_sql(text, wages).query)
    SELECT AVG(wage) AS avg_wage, COUNT(*) AS count FROM wages WHERE year <> 1980
    >>> plan_sql("select max(wage) from wages", wages)
    Traceback (most recent call last):
    discreet.errors.QueryRefused: `max(` (line 1, column 8): there are COUNT, SUM and AVG so far
    """
    try:
        found = plan(_query(text, declaration), declaration)
        tokens(str(found.query))  # its own text is within the limits too
    except QueryRefused as refusal:
        raise QueryRefused(f"{refusal}{_quoting(text, declaration)}") from None
    except RecursionError:  # called from deep in another program
        raise QueryRefused(
            "the query nests too deeply for this program; write it flatter"
        ) from None
    return found


def _quoting(text: str, declaration: Declaration) -> str:
    """Advice for declared names that are words of SQL and are written without quotes."""
    names = sorted({declaration.name, *declaration.columns})
    meant = [name for name in names if name.upper() in RESERVED and _stands_bare(name, text)]
    return "".join(
        f'; {name} is a word of SQL: if the name is meant, write "{name}" in double quotes'
        for name in meant
    )


def _stands_bare(name: str, text: str) -> bool:
    return re.search(rf'(?<!["\w]){re.escape(name)}(?!["\w])', text, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class _TreeReader:
    """The context in which nodes are read: the tree, the declaration, and the table's name in the
    text."""

    tree: Tree
    declaration: Declaration
    table: str

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        return self.tree.refused(node, why)

    def name(self, identifier: exp.Identifier) -> str:
        """The user's name for a column of the answer: in lower case, unless it is quoted."""
        written: str = identifier.this
        return written if self.tree.is_quoted(identifier) else written.lower()


def _query(text: str, declaration: Declaration) -> Query:
    found = tree(text)
    select = found.select
    reader = _TreeReader(found, declaration, _table(found, declaration))
    group, where = select.args.get("group"), select.args.get("where")
    keys = tuple(_key(node, reader) for node in group.expressions) if group else ()
    aggregates = _aggregates(select.expressions, keys, reader)
    condition = _condition(where.this, reader) if where else None
    return Query(declaration.name, aggregates, keys, condition)


def _table(found: Tree, declaration: Declaration) -> str:
    """The name or alias of the one table in this text, in lower case."""
    source = found.select.args.get("from_")
    if source is None:
        raise QueryRefused(f"FROM is missing; {FORM}")
    table = source.this
    if table.name.lower() != declaration.name.lower():
        raise found.refused(table.this, f"{ONE_TABLE}: this one is {declaration.name!r}")
    return str(table.alias_or_name).lower()


def _key(node: exp.Expr, reader: _TreeReader) -> str:
    bare = _bare(node)
    if not isinstance(bare, exp.Column):
        raise reader.refused(node, "GROUP BY takes the names of declared columns with keys")
    return _column(bare, reader).name


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# --- SELECT ---


@dataclass(frozen=True, slots=True)
class _SelectItem:
    """One item of SELECT, and its alias, if it has one."""

    node: exp.Expr
    alias: exp.Identifier | None


def _aggregates(
    nodes: Sequence[exp.Expr], keys: tuple[str, ...], reader: _TreeReader
) -> tuple[Aggregate, ...]:
    items = [_item(node) for node in nodes]
    for item in items:
        _check_item(item, keys, reader)
    asked = [item for item in items if type(item.node) in FUNCTIONS]
    given = [reader.name(item.alias) for item in asked if item.alias]
    taken = {*keys, *(column for name in given for column in column_names(name))}
    aggregates = []
    for item in asked:
        made = _aggregate(item, taken, reader)
        taken.update(column_names(made.name))
        aggregates.append(made)
    return tuple(aggregates)


def _item(node: exp.Expr) -> _SelectItem:
    if isinstance(node, exp.Alias):
        return _SelectItem(_bare(node.this), node.args["alias"])
    return _SelectItem(_bare(node), None)


def _check_item(item: _SelectItem, keys: tuple[str, ...], reader: _TreeReader) -> None:
    if type(item.node) in FUNCTIONS:
        return
    if not isinstance(item.node, exp.Column):
        has_aggregate = any(type(node) in FUNCTIONS for node in item.node.walk())
        raise reader.refused(item.node, _ALONE if has_aggregate else _NO_ITEM)
    key = _column(item.node, reader).name
    if key not in keys:
        raise reader.refused(
            item.node, "a column in SELECT stands in GROUP BY too, or in COUNT, SUM, AVG"
        )
    if item.alias is not None and reader.name(item.alias) != key:
        raise reader.refused(
            item.alias, f"a key keeps its name; leave AS out, or rename {key!r} later"
        )


def _aggregate(item: _SelectItem, taken: set[str], reader: _TreeReader) -> Aggregate:
    node = item.node
    value = node.this
    if value is None:
        raise reader.refused(node, "COUNT takes * or one value")
    function = FUNCTIONS[type(node)]
    is_of_rows = isinstance(node, exp.Count) and isinstance(value, exp.Star)
    argument = None if is_of_rows else _scalar(value, reader)
    if item.alias is not None:
        return Aggregate(function, argument, reader.name(item.alias))
    plain = f"_{argument.name.lower()}" if isinstance(argument, ColumnRef) else ""
    return Aggregate(function, argument, _unused(function.value.lower() + plain, taken))


def _unused(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(free for free in numbered if taken.isdisjoint(column_names(free)))


# --- values ---


def _scalar(node: exp.Expr, reader: _TreeReader) -> Scalar:
    read = _SCALARS.get(type(node))
    if read is None:
        raise reader.refused(node, _ALONE if type(node) in FUNCTIONS else _NO_VALUE)
    return read(node, reader)


def _column(node: exp.Expr, reader: _TreeReader) -> ColumnRef:
    qualifier = node.args.get("table")
    if qualifier is not None and qualifier.name.lower() != reader.table:
        raise reader.refused(qualifier, f"{ONE_TABLE}: here it is called {reader.table!r}")
    names, written = reader.declaration.columns, node.name
    if reader.tree.is_quoted(node.this) or written in names:
        matching = [written] if written in names else []
    else:
        matching = [name for name in names if name.lower() == written.lower()]
    if len(matching) > 1:
        choices = ", ".join(f'"{name}"' for name in matching)
        raise reader.refused(node, f"several columns are called so; write one of {choices}")
    if not matching:
        raise reader.refused(node, _unknown(written, reader.declaration))
    return ColumnRef(matching[0])


def _unknown(name: str, declaration: Declaration) -> str:
    try:
        column_of(name[:60], declaration)
    except QueryRefused as refusal:
        return str(refusal)
    return "this column is not declared"


def _literal(node: exp.Expr, reader: _TreeReader) -> Literal:
    return Literal(node.this) if node.is_string else Literal(_number(node, reader))


def _number(node: exp.Expr, reader: _TreeReader) -> Fraction:
    written: str = node.this
    exponent = written.lower().partition("e")[2]
    if len(written) <= 3 * _DIGITS and len(exponent) <= 4:
        number = Decimal(written)
        if number.adjusted() < _DIGITS and int(number.as_tuple().exponent) >= -_DIGITS:
            return Fraction(number)
    raise reader.refused(
        node, f"a number has at most {_DIGITS} digits before the point and after it"
    )


def _boolean(node: exp.Expr, _: _TreeReader) -> Literal:
    return Literal(bool(node.this))


def _typed_date(node: exp.Expr, reader: _TreeReader) -> Literal:
    if not (node.this.is_string and node.args["to"].is_type(exp.DType.DATE)):
        raise reader.refused(node, _NO_VALUE)
    return Literal(_day(node.this.this, node, reader))


def _day(written: str, node: exp.Expr, reader: _TreeReader) -> datetime.date:
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", written):
            return datetime.date.fromisoformat(written)
    except ValueError:
        pass
    raise reader.refused(node, "this is no day; write DATE '2020-01-31'")


def _negative(node: exp.Expr, reader: _TreeReader) -> Scalar:
    value = _scalar(node.this, reader)
    if isinstance(value, Literal) and isinstance(value.value, Fraction):
        return Literal(-value.value)
    return Arithmetic(Operator.SUBTRACT, Literal(Fraction(0)), value)


def _arithmetic(node: exp.Expr, reader: _TreeReader) -> Arithmetic:
    left, right = _scalar(node.this, reader), _scalar(node.expression, reader)
    return Arithmetic(OPERATORS[type(node)], left, right)


_SCALARS: dict[type[exp.Expr], Callable[[exp.Expr, _TreeReader], Scalar]] = {
    exp.Boolean: _boolean,
    exp.Cast: _typed_date,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Paren: lambda node, reader: _scalar(node.this, reader),
    **dict.fromkeys(OPERATORS, _arithmetic),
}


# --- conditions ---


def _condition(node: exp.Expr, reader: _TreeReader) -> Condition:
    read = _CONDITIONS.get(type(node))
    if read is None:
        raise reader.refused(node, _ALONE if type(node) in FUNCTIONS else _NO_CONDITION)
    return read(node, reader)


def _comparison(node: exp.Expr, reader: _TreeReader) -> Comparison:
    left, right = _alike([node.this, node.expression], node, reader)
    return Comparison(RELATIONS[type(node)], left, right)


def _between(node: exp.Expr, reader: _TreeReader) -> Both:
    value, lower, upper = _alike([node.this, node.args["low"], node.args["high"]], node, reader)
    return Both(
        Comparison(Relation.AT_LEAST, value, lower), Comparison(Relation.AT_MOST, value, upper)
    )


def _membership(node: exp.Expr, reader: _TreeReader) -> Membership:
    value, *options = _alike([node.this, *node.expressions], node, reader)
    literals = tuple(option for option in options if isinstance(option, Literal))
    if not literals or len(literals) < len(options):
        raise reader.refused(node, "IN takes literals: IN (1, 2, 3)")
    return Membership(value, literals)


def _alike(nodes: Sequence[exp.Expr], whole: exp.Expr, reader: _TreeReader) -> list[Scalar]:
    """The compared values; if any of them is a date, texts are read as dates."""
    values = [_scalar(node, reader) for node in nodes]
    if ColumnType.DATE not in {infer(value, reader.declaration).type for value in values}:
        return values
    return [_as_day(value, whole, reader) for value in values]


def _as_day(value: Scalar, whole: exp.Expr, reader: _TreeReader) -> Scalar:
    if isinstance(value, Literal) and isinstance(value.value, str):
        return Literal(_day(value.value, whole, reader))
    return value


_CONDITIONS: dict[type[exp.Expr], Callable[[exp.Expr, _TreeReader], Condition]] = {
    exp.And: lambda node, reader: Both(
        _condition(node.this, reader), _condition(node.expression, reader)
    ),
    exp.Between: _between,
    exp.Column: lambda node, reader: Holds(_column(node, reader)),
    exp.In: _membership,
    exp.Is: lambda node, reader: IsNull(_scalar(node.this, reader)),
    exp.Not: lambda node, reader: Negation(_condition(node.this, reader)),
    exp.Or: lambda node, reader: Either(
        _condition(node.this, reader), _condition(node.expression, reader)
    ),
    exp.Paren: lambda node, reader: _condition(node.this, reader),
    **dict.fromkeys(RELATIONS, _comparison),
}
