"""Translates an SQL text to our `Query`, by one rule for each kind of node, and plans it.

`_RULES` is the closed list: a kind of node without a rule is refused, and so is a part of a node
that its rule doesn't name, since sqlglot's nodes have parts that are easy to overlook. Types,
bounds and keys are checked as for any other query.
"""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._aggregates import ESTIMATORS, LISTED, SPELLINGS, AggregateFunction
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
from discreet.query._sql_text import SqlText, check_size, read
from discreet.query._sql_words import (
    FORM,
    ONE_TABLE,
    RESERVED,
)

_DIGITS = 30  # before the point, and after it

_NO_VALUE = "this is no value: values are columns, literals, and + - * / of them"
_NO_CONDITION = "this is no condition: compare it with something, as in wage > 10"
_NO_ITEM = f"SELECT takes keys and aggregates: {LISTED} of values"
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
    >>> wages = Declaration("wages", dp.Unit("person"), Caps(1), columns)
    >>> text = "select avg(Wage), count(*) from wages w where (w.year) != 1980"
    >>> print(plan_sql(text, wages).query)
    SELECT AVG(wage) AS avg_wage, COUNT(*) AS count FROM wages WHERE year <> 1980
    >>> plan_sql("select max(wage) from wages", wages)
    Traceback (most recent call last):
    discreet.errors.QueryRefused: `max(` (line 1, column 8): there are COUNT, SUM, AVG, VARIANCE...
    """
    try:
        found = plan(_query(text, declaration), declaration)
        check_size(str(found.query))  # its own text is within the limits too
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

    sql: SqlText
    declaration: Declaration
    table: str

    def refused(self, node: exp.Expr, why: str) -> QueryRefused:
        return self.sql.refused(node, why)

    def name(self, identifier: exp.Identifier) -> str:
        """The user's name for a column of the answer: in lower case, unless it is quoted."""
        written: str = identifier.this
        return written if self.sql.is_quoted(identifier) else written.lower()


def _query(text: str, declaration: Declaration) -> Query:
    found = read(text)
    for node in found.select.walk():
        for part in unlisted(node):
            raise found.refused(part, _ADVICE.get(type(part), f"this has no rule; {FORM}"))
        if isinstance(node, exp.Identifier) and not node.args.get("quoted"):  # a keyword
            raise found.refused(node, "a name that is a word of SQL stands in double quotes")
    found.check_nothing_is_lost()
    select = found.select
    reader = _TreeReader(found, declaration, _table(found, declaration))
    group, where = select.args.get("group"), select.args.get("where")
    keys = tuple(_key(node, reader) for node in group.expressions) if group else ()
    aggregates = _aggregates(select.expressions, keys, reader)
    condition = _condition(where.this, reader) if where else None
    return Query(declaration.name, aggregates, keys, condition)


def unlisted(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node, if it has no rule, or its parts that the rule doesn't name."""
    rule = _RULES.get(type(node))
    if rule is None:
        yield node
        return
    for name, part in node.args.items():
        is_absent = part is None or part is False or part == []
        if not is_absent and not isinstance(part, rule.parts.get(name, ())):
            first = part[0] if isinstance(part, list) else part
            yield first if isinstance(first, exp.Expr) and type(node) not in _ADVICE else node


def _table(found: SqlText, declaration: Declaration) -> str:
    """The name or alias of the one table in this text, in lower case."""
    source = found.select.args.get("from_")
    if source is None:
        raise QueryRefused(f"FROM is missing; {FORM}")
    table, name = source.this, declaration.name
    is_ours = table.name == name or (
        not found.is_quoted(table.this) and table.name.lower() == name.lower()
    )
    if not is_ours:
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
    asked = [item for item in items if isinstance(item.node, exp.Anonymous)]
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
    if isinstance(item.node, exp.Anonymous):
        return
    if not isinstance(item.node, exp.Column):
        has_aggregate = item.node.find(exp.Anonymous) is not None
        raise reader.refused(item.node, _ALONE if has_aggregate else _NO_ITEM)
    key = _column(item.node, reader).name
    if key not in keys:
        raise reader.refused(
            item.node, "a column in SELECT stands in GROUP BY too, or in an aggregate"
        )
    if item.alias is not None and reader.name(item.alias) != key:
        raise reader.refused(
            item.alias, f"a key keeps its name; leave AS out, or rename {key!r} later"
        )


def _aggregate(item: _SelectItem, taken: set[str], reader: _TreeReader) -> Aggregate:
    node = item.node
    function = SPELLINGS[node.name.upper()]
    value, level = _arguments(function, node, reader)
    counts = AggregateFunction.COUNT, AggregateFunction.COUNT_UNITS
    is_of_rows = function in counts and isinstance(value, exp.Star)
    argument = None if is_of_rows else _scalar(value, reader)
    if item.alias is not None:
        return Aggregate(function, argument, reader.name(item.alias), level)
    plain = f"_{argument.name.lower()}" if isinstance(argument, ColumnRef) else ""
    name = _unused(function.value.lower() + plain, taken)
    return Aggregate(function, argument, name, level)


def _arguments(
    function: AggregateFunction, node: exp.Expr, reader: _TreeReader
) -> tuple[exp.Expr, Fraction | None]:
    """The value that is aggregated, and the level of a quantile."""
    if not ESTIMATORS[function].takes_level:
        if len(node.expressions) != 1:
            raise reader.refused(node, f"{function.value} takes one value, or COUNT a *")
        return node.expressions[0], None
    literal = _bare(node.expressions[-1]) if len(node.expressions) == 2 else None
    if not isinstance(literal, exp.Literal) or literal.is_string:
        raise reader.refused(
            node, f"{function.value} takes a value and a level, as in {function.value}(wage, 0.9)"
        )
    return node.expressions[0], _number(literal, reader)


def _unused(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(free for free in numbered if taken.isdisjoint(column_names(free)))


# --- values ---


def _scalar(node: exp.Expr, reader: _TreeReader) -> Scalar:
    value = _RULES[type(node)].value
    if value is None:
        raise reader.refused(node, _ALONE if isinstance(node, exp.Anonymous) else _NO_VALUE)
    return value(node, reader)


def _column(node: exp.Expr, reader: _TreeReader) -> ColumnRef:
    qualifier = node.args.get("table")
    if qualifier is not None and qualifier.name.lower() != reader.table:
        raise reader.refused(qualifier, f"{ONE_TABLE}: here it is called {reader.table!r}")
    names, written = reader.declaration.columns, node.name
    if reader.sql.is_quoted(node.this) or written in names:
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


def _arithmetic(operator: Operator) -> "_NodeRule":
    def value(node: exp.Expr, reader: _TreeReader) -> Arithmetic:
        return Arithmetic(operator, _scalar(node.this, reader), _scalar(node.expression, reader))

    return _NodeRule(_SIDES, value=value)


# --- conditions ---


def _condition(node: exp.Expr, reader: _TreeReader) -> Condition:
    condition = _RULES[type(node)].condition
    if condition is None:
        raise reader.refused(node, _ALONE if isinstance(node, exp.Anonymous) else _NO_CONDITION)
    return condition(node, reader)


def _comparison(relation: Relation) -> "_NodeRule":
    def condition(node: exp.Expr, reader: _TreeReader) -> Comparison:
        left, right = _alike([node.this, node.expression], node, reader)
        return Comparison(relation, left, right)

    return _NodeRule(_SIDES, condition=condition)


def _connective(kind: type[Both | Either]) -> "_NodeRule":
    def condition(node: exp.Expr, reader: _TreeReader) -> Both | Either:
        return kind(_condition(node.this, reader), _condition(node.expression, reader))

    return _NodeRule(_SIDES, condition=condition)


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


# --- the list ---


@dataclass(frozen=True, slots=True)
class _NodeRule:
    """The parts that a kind of node may have, and how it is read as a value and as a condition,
    where it may be one."""

    parts: Mapping[str, type]
    value: Callable[[exp.Expr, _TreeReader], Scalar] | None = None
    condition: Callable[[exp.Expr, _TreeReader], Condition] | None = None


_ONE = {"this": exp.Expr}
_SIDES = {"this": exp.Expr, "expression": exp.Expr}
_RULES: dict[type[exp.Expr], _NodeRule] = {
    # the statement
    exp.Select: _NodeRule(
        {"expressions": list, "from_": exp.From, "where": exp.Where, "group": exp.Group}
    ),
    exp.From: _NodeRule({"this": exp.Table}),
    exp.Table: _NodeRule({"this": exp.Identifier, "alias": exp.TableAlias}),
    exp.TableAlias: _NodeRule({"this": exp.Identifier}),
    exp.Where: _NodeRule(_ONE),
    exp.Group: _NodeRule({"expressions": list}),
    exp.Alias: _NodeRule({"this": exp.Expr, "alias": exp.Identifier}),
    exp.Identifier: _NodeRule({"this": str, "quoted": bool}),
    exp.Anonymous: _NodeRule({"this": str, "expressions": list}),  # a call: of an aggregate
    exp.Star: _NodeRule({}),
    # values
    exp.Column: _NodeRule(
        {"this": exp.Identifier, "table": exp.Identifier},
        value=_column,
        condition=lambda node, reader: Holds(_column(node, reader)),
    ),
    exp.Literal: _NodeRule({"this": str, "is_string": bool}, value=_literal),
    exp.Boolean: _NodeRule({"this": bool}, value=lambda node, _: Literal(bool(node.this))),
    exp.Cast: _NodeRule({"this": exp.Literal, "to": exp.DataType}, value=_typed_date),
    exp.DataType: _NodeRule({"this": exp.DType}),
    exp.Paren: _NodeRule(
        _ONE,
        value=lambda node, reader: _scalar(node.this, reader),
        condition=lambda node, reader: _condition(node.this, reader),
    ),
    exp.Neg: _NodeRule(_ONE, value=_negative),
    exp.Add: _arithmetic(Operator.ADD),
    exp.Sub: _arithmetic(Operator.SUBTRACT),
    exp.Mul: _arithmetic(Operator.MULTIPLY),
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
    exp.Between: _NodeRule({**_ONE, "low": exp.Expr, "high": exp.Expr}, condition=_between),
    exp.In: _NodeRule({**_ONE, "expressions": list}, condition=_membership),
    exp.Is: _NodeRule(
        {**_ONE, "expression": exp.Null},
        condition=lambda node, reader: IsNull(_scalar(node.this, reader)),
    ),
    exp.Null: _NodeRule({}),
    exp.And: _connective(Both),
    exp.Or: _connective(Either),
    exp.Not: _NodeRule(
        _ONE, condition=lambda node, reader: Negation(_condition(node.this, reader))
    ),
}

# of kinds without a rule, and of parts that a rule doesn't name
_ADVICE: dict[type[exp.Expr], str] = {
    exp.Column: "a column is named as column, or as table.column",
    exp.Concat: "a text is one literal; a quote inside it is doubled: 'o''clock'",
    exp.Dot: "a column is named as column, or as table.column",
    exp.In: "IN takes literals in parentheses: IN (1, 2, 3)",
    exp.Is: "write IS NULL or IS NOT NULL; a boolean column is a condition, or compared: = TRUE",
    exp.Join: ONE_TABLE,
    exp.Subquery: ONE_TABLE,
    exp.Table: ONE_TABLE,
    exp.Tuple: "one value stands in parentheses, a list only after IN",
}
