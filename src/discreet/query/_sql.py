"""Translates an SQL text to our `Query`, by one rule for each kind of node, and plans it.

`_RULES` is the closed list: a kind of node without a rule is refused, and so is a part of a node
that its rule doesn't name, since sqlglot's nodes have parts that are easy to overlook. Types,
bounds and keys are checked as for any other query.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import count

from sqlglot import exp

from discreet.errors import QueryRefused
from discreet.query._aggregates import ESTIMATORS, LISTED, SPELLINGS, AggregateFunction
from discreet.query._columns import ColumnType
from discreet.query._declaration import Declaration
from discreet.query._functions import CALLS, CASTS, FUNCTIONS
from discreet.query._inference import column_of, infer
from discreet.query._plan import Plan, plan
from discreet.query._query import (
    Aggregate,
    Arithmetic,
    Both,
    Branch,
    Case,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    GroupKey,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Query,
    Relation,
    Scalar,
    Truth,
    column_names,
    columns_in,
    parts_of,
)
from discreet.query._scalar_rules import Form, ScalarFunction
from discreet.query._sql_text import MAX_TOKENS, SqlText, check_size, read
from discreet.query._sql_words import (
    FORM,
    ONE_TABLE,
    RESERVED,
)

_DIGITS = 30  # before the point, and after it

_NO_VALUE = "this is no value: values are columns, literals, functions and + - * / of them"
_NO_CONDITION = "this is no condition: compare it with something, as in wage > 10"
_NO_ITEM = f"SELECT takes keys and aggregates: {LISTED} of values; a key stands in GROUP BY too"
_PARTS = {
    "day": ScalarFunction.DAY,
    "dayofyear": ScalarFunction.DAYOFYEAR,
    "doy": ScalarFunction.DAYOFYEAR,
    "isodow": ScalarFunction.ISODOW,
    "month": ScalarFunction.MONTH,
    "quarter": ScalarFunction.QUARTER,
    "year": ScalarFunction.YEAR,
}
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
    >>> plan_sql("select mode(wage) from wages", wages)
    Traceback (most recent call last):
    discreet.errors.QueryRefused: `mode(` (line 1, column 8): there is no such function; ther...
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
    items = [_item(node) for node in select.expressions]
    keys = _keys(group.expressions if group else [], items, reader)
    aggregates = _aggregates(items, keys, reader)
    condition = _condition(where.this, reader) if where else None
    return Query(declaration.name, aggregates, keys, condition)


def unlisted(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node, if it has no rule, or its parts that the rule doesn't name.

    A part that is False is there: sqlglot means GROUP BY DISTINCT by ``all=False``.
    """
    rule = _RULES.get(type(node))
    if rule is None:
        yield node
        return
    for name, part in node.args.items():
        is_absent = part is None or part == []
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


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# --- SELECT and GROUP BY ---


@dataclass(frozen=True, slots=True)
class _SelectItem:
    """One item of SELECT, and its alias, if it has one."""

    node: exp.Expr
    alias: exp.Identifier | None

    @property
    def is_aggregate(self) -> bool:
        return _is_aggregate(self.node)


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in SPELLINGS


def _item(node: exp.Expr) -> _SelectItem:
    if isinstance(node, exp.Alias):
        return _SelectItem(_bare(node.this), node.args["alias"])
    return _SelectItem(_bare(node), None)


def _keys(
    nodes: Sequence[exp.Expr], items: Sequence[_SelectItem], reader: _TreeReader
) -> tuple[str | GroupKey, ...]:
    """The keys in the order of GROUP BY, under their names in SELECT."""
    values = [_grouped(_bare(node), items, reader) for node in nodes]
    names: dict[int, str] = {}
    for item in items:
        if not item.is_aggregate:
            _name_key(item, values, names, reader)
    given = [reader.name(item.alias) for item in items if item.is_aggregate and item.alias]
    taken = {*names.values(), *(column for name in given for column in column_names(name))}
    keys: list[str | GroupKey] = []
    for place, value in enumerate(values):
        plain = value.name if isinstance(value, ColumnRef) else None
        name = names.get(place) or plain or _unused(_plain_name(value), taken)
        taken.add(name)
        keys.append(name if name == plain else GroupKey(value, name))
    return tuple(keys)


def _name_key(
    item: _SelectItem, values: Sequence[Scalar], names: dict[int, str], reader: _TreeReader
) -> None:
    """Give the key that an item of SELECT shows the item's name."""
    if isinstance(item.node, exp.Star):
        raise reader.refused(item.node, _NO_ITEM)
    if any(_is_aggregate(part) for part in item.node.walk()):
        raise reader.refused(item.node, _ALONE)
    value = _scalar(item.node, reader)
    if value not in values:
        why = "a column in SELECT stands in GROUP BY too, or in an aggregate"
        raise reader.refused(item.node, why if isinstance(value, ColumnRef) else _NO_ITEM)
    place = values.index(value)
    if item.alias is None:
        return
    name = reader.name(item.alias)
    if names.setdefault(place, name) != name:
        raise reader.refused(item.alias, f"this key is called {names[place]!r} already")


def _grouped(node: exp.Expr, items: Sequence[_SelectItem], reader: _TreeReader) -> Scalar:
    """A value of GROUP BY: an expression, or the place or the alias of one in SELECT."""
    item = _named_item(node, items, reader)
    if item is None:
        return _scalar(node, reader)
    if item.is_aggregate:
        raise reader.refused(node, "GROUP BY takes columns and expressions, not aggregates")
    return _scalar(item.node, reader)


def _named_item(
    node: exp.Expr, items: Sequence[_SelectItem], reader: _TreeReader
) -> _SelectItem | None:
    if isinstance(node, exp.Literal) and not node.is_string:
        places = dict(enumerate(items, start=1))
        if not (node.this.isdigit() and int(node.this) in places):
            raise reader.refused(node, f"GROUP BY takes the places 1 to {len(items)} of SELECT")
        return places[int(node.this)]
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    if _matching(node, reader):
        return None  # a column's name comes before an alias
    name = reader.name(node.this)
    return next((item for item in items if item.alias and reader.name(item.alias) == name), None)


def _plain_name(value: Scalar) -> str:
    columns = [name.lower() for name in dict.fromkeys(columns_in(value))]
    if isinstance(value, FunctionCall) and FUNCTIONS[value.function].form is Form.CALL:
        return "_".join([value.function.value.lower(), *columns[:1]])
    return "case" if isinstance(value, Case) else "key"


def _aggregates(
    items: Sequence[_SelectItem], keys: tuple[str | GroupKey, ...], reader: _TreeReader
) -> tuple[Aggregate, ...]:
    asked = [item for item in items if item.is_aggregate]
    given = [reader.name(item.alias) for item in asked if item.alias]
    names = [key if isinstance(key, str) else key.name for key in keys]
    taken = {*names, *(column for name in given for column in column_names(name))}
    aggregates = []
    for item in asked:
        made = _aggregate(item, taken, reader)
        taken.update(column_names(made.name))
        aggregates.append(made)
    return tuple(aggregates)


def _aggregate(item: _SelectItem, taken: set[str], reader: _TreeReader) -> Aggregate:
    node = item.node
    function, argument, level = _asked(node, reader)
    if item.alias is not None:
        return Aggregate(function, argument, reader.name(item.alias), level)
    plain = f"_{argument.name.lower()}" if isinstance(argument, ColumnRef) else ""
    name = _unused(function.value.lower() + plain, taken)
    return Aggregate(function, argument, name, level)


def _asked(
    node: exp.Expr, reader: _TreeReader
) -> tuple[AggregateFunction, Scalar | None, Fraction | None]:
    """The function, its argument, and the level of a quantile."""
    function = SPELLINGS[node.name.upper()]
    if node.expressions and isinstance(node.expressions[0], exp.Distinct):
        return *_distinct(function, node, reader), None
    value, level = _arguments(function, node, reader)
    counts = AggregateFunction.COUNT, AggregateFunction.COUNT_UNITS
    is_of_rows = function in counts and isinstance(value, exp.Star)
    return function, None if is_of_rows else _scalar(value, reader), level


def _distinct(
    function: AggregateFunction, node: exp.Expr, reader: _TreeReader
) -> tuple[AggregateFunction, Scalar | None]:
    """COUNT(DISTINCT value); of the column that identifies units it counts them."""
    values = node.expressions[0].expressions
    if function is not AggregateFunction.COUNT or len(node.expressions) != 1 or len(values) != 1:
        raise reader.refused(node, "DISTINCT stands in COUNT(DISTINCT value) only")
    value, unit = _bare(values[0]), reader.declaration.unit.column
    if isinstance(value, exp.Column) and unit is not None and _names_unit(value, unit, reader):
        return AggregateFunction.COUNT_UNITS, None
    return AggregateFunction.COUNT_DISTINCT, _scalar(value, reader)


def _names_unit(column: exp.Expr, unit: str, reader: _TreeReader) -> bool:
    qualifier = column.args.get("table")
    if qualifier is not None and qualifier.name.lower() != reader.table:
        return False
    written = column.name
    is_exact = reader.sql.is_quoted(column.this) or written in reader.declaration.columns
    return bool(written == unit if is_exact else written.lower() == unit.lower())


def _arguments(
    function: AggregateFunction, node: exp.Expr, reader: _TreeReader
) -> tuple[exp.Expr, Fraction | None]:
    """The value that is aggregated, and the level of a quantile."""
    if not ESTIMATORS[function].takes_level:
        if len(node.expressions) != 1:
            raise reader.refused(node, f"{function.value} takes one value, or COUNT a *")
        return node.expressions[0], None
    level = _level(node.expressions[1], reader) if len(node.expressions) == 2 else None
    if level is None:
        raise reader.refused(
            node, f"{function.value} takes a value and a level, as in {function.value}(wage, 0.9)"
        )
    return node.expressions[0], level


def _level(node: exp.Expr, reader: _TreeReader) -> Fraction | None:
    """A number, or the quotient of two; ``None`` for anything else."""
    node = _bare(node)
    if isinstance(node, exp.Div):
        sides = _level(node.this, reader), _level(node.expression, reader)
        return sides[0] / sides[1] if sides[0] is not None and sides[1] else None
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return _number(node, reader) if is_number else None


def _unused(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(free for free in numbered if taken.isdisjoint(column_names(free)))


# --- values ---


def _scalar(node: exp.Expr, reader: _TreeReader) -> Scalar:
    rule = _RULES[type(node)]
    if rule.value is not None:
        return rule.value(node, reader)
    if rule.condition is None:
        raise reader.refused(node, _NO_VALUE)
    return _truth(rule.condition(node, reader))


def _truth(condition: Condition) -> Scalar:
    return condition.value if isinstance(condition, Holds) else Truth(condition)


def _called(node: exp.Expr, reader: _TreeReader) -> Scalar:
    name, values = node.name.upper(), node.expressions
    if name in SPELLINGS:
        raise reader.refused(node, _ALONE)
    match name:
        case "CAST" | "TRY_CAST":
            return _cast(node, reader)
        case "NULLIF":
            return _null_if(node, reader)
        case "CONCAT":
            return _concatenated(node, reader)
        case "DATE_PART" | "DATEPART":
            if len(values) != 2 or not values[0].is_string:
                raise reader.refused(node, "write DATE_PART('year', day) or YEAR(day)")
            return _part(values[0].this, values[1], node, reader)
        case "DATE_DIFF" | "DATEDIFF":
            return _days(node, reader)
    function = CALLS[name]
    arguments = (
        _alike(values, node, reader)
        if function in _OF_ALIKE
        else [_scalar(value, reader) for value in values]
    )
    if not FUNCTIONS[function].takes_this_many(len(arguments)):
        raise reader.refused(node, f"{name} does not take {len(arguments)} values")
    if function is ScalarFunction.DATE_TRUNC:
        arguments = [_in_lower_case(arguments[0]), arguments[1]]
    return FunctionCall(function, tuple(arguments))


_OF_ALIKE = {ScalarFunction.COALESCE, ScalarFunction.GREATEST, ScalarFunction.LEAST}


def _in_lower_case(unit: Scalar) -> Scalar:
    is_text = isinstance(unit, Literal) and isinstance(unit.value, str)
    return Literal(str(unit.value).lower()) if is_text and isinstance(unit, Literal) else unit


def _cast(node: exp.Expr, reader: _TreeReader) -> Scalar:
    written = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(written, exp.Alias):
        raise reader.refused(node, f"write {node.name.upper()}(x AS {' | '.join(CASTS)})")
    kind = written.args["alias"]
    function = CASTS.get(kind.name.upper())
    if function is None or reader.sql.is_quoted(kind):
        raise reader.refused(kind, f"the types of a cast are {', '.join(CASTS)}")
    return FunctionCall(function, (_scalar(written.this, reader),))


def _null_if(node: exp.Expr, reader: _TreeReader) -> Scalar:
    if len(node.expressions) != 2:
        raise reader.refused(node, "NULLIF takes two values")
    value, other = _alike(node.expressions, node, reader)
    return _sized(
        Case((Branch(Comparison(Relation.EQUAL, value, other), None),), value), node, reader
    )


def _concatenated(node: exp.Expr, reader: _TreeReader) -> Scalar:
    """CONCAT takes NULL for an empty text."""
    parts = [
        FunctionCall(ScalarFunction.COALESCE, (_scalar(value, reader), Literal("")))
        for value in node.expressions
    ]
    if not parts:
        raise reader.refused(node, "CONCAT takes texts")
    return reduce(lambda left, right: FunctionCall(ScalarFunction.CONCAT, (left, right)), parts)


def _days(node: exp.Expr, reader: _TreeReader) -> Scalar:
    """The days from the second to the third value of DATE_DIFF."""
    values = node.expressions
    if len(values) != 3 or not (values[0].is_string and values[0].this.lower() == "day"):
        raise reader.refused(node, "write DATE_DIFF('day', start, end) or end - start: days")
    start, end = _alike(values[1:], node, reader)
    return Arithmetic(Operator.SUBTRACT, end, start)


def _extracted(node: exp.Expr, reader: _TreeReader) -> Scalar:
    return _part(node.this.name, node.expression, node, reader)


def _part(name: str, value: exp.Expr, whole: exp.Expr, reader: _TreeReader) -> Scalar:
    function = _PARTS.get(name.lower())
    if function is None:
        raise reader.refused(whole, f"the parts of a date are {', '.join(_PARTS)}")
    return FunctionCall(function, (_scalar(value, reader),))


def _case(node: exp.Expr, reader: _TreeReader) -> Scalar:
    compared = node.args.get("this")
    branches = tuple(
        Branch(
            _condition(one.this, reader)
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


def _equal(left: exp.Expr, right: exp.Expr, node: exp.Expr, reader: _TreeReader) -> Condition:
    one, other = _alike([left, right], node, reader)
    return Comparison(Relation.EQUAL, one, other)


def _sized(value: Scalar, node: exp.Expr, reader: _TreeReader) -> Scalar:
    """The value, if it is no larger than a text may be. NULLIF, CASE x WHEN and BETWEEN repeat a
    value, so they could double it at each of many levels."""
    _check_size([value], node, reader)
    return value


def _check_size(values: Iterable[Scalar | Condition], node: exp.Expr, reader: _TreeReader) -> None:
    parts, size = list(values), 0
    while parts:
        size += 1
        if size > MAX_TOKENS:
            raise reader.refused(node, "this repeats too long a value; name fewer values at a time")
        parts += parts_of(parts.pop())


def _column(node: exp.Expr, reader: _TreeReader) -> ColumnRef:
    qualifier = node.args.get("table")
    if qualifier is not None and qualifier.name.lower() != reader.table:
        raise reader.refused(qualifier, f"{ONE_TABLE}: here it is called {reader.table!r}")
    matching = _matching(node, reader)
    if len(matching) > 1:
        choices = ", ".join(f'"{name}"' for name in matching)
        raise reader.refused(node, f"several columns are called so; write one of {choices}")
    if not matching:
        raise reader.refused(node, _unknown(node.name, reader.declaration))
    return ColumnRef(matching[0])


def _matching(node: exp.Expr, reader: _TreeReader) -> list[str]:
    """The declared columns that a name without a table may mean."""
    names, written = reader.declaration.columns, node.name
    if reader.sql.is_quoted(node.this) or written in names:
        return [written] if written in names else []
    return [name for name in names if name.lower() == written.lower()]


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
    def value(node: exp.Expr, reader: _TreeReader) -> Scalar:
        left, right = _scalar(node.this, reader), _scalar(node.expression, reader)
        if operator is Operator.SUBTRACT and (_is_text(left) or _is_text(right)):
            left, right = _alike([node.this, node.expression], node, reader)
        return Arithmetic(operator, left, right)

    return _NodeRule(_SIDES, value=value)


def _is_text(value: Scalar) -> bool:
    return isinstance(value, Literal) and isinstance(value.value, str)


def _infix(function: ScalarFunction) -> "_NodeRule":
    def value(node: exp.Expr, reader: _TreeReader) -> FunctionCall:
        return FunctionCall(
            function, (_scalar(node.this, reader), _scalar(node.expression, reader))
        )

    return _NodeRule(_SIDES, value=value)


# --- conditions ---


def _condition(node: exp.Expr, reader: _TreeReader) -> Condition:
    rule = _RULES[type(node)]
    if rule.condition is not None:
        return rule.condition(node, reader)
    if not isinstance(node, _CONDITIONS):
        raise reader.refused(node, _NO_CONDITION)
    value = _scalar(node, reader)
    return value.condition if isinstance(value, Truth) else Holds(value)


_CONDITIONS = exp.Anonymous, exp.Case, exp.Column, exp.Like  # values that may be conditions


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
    _check_size([value, value, lower, upper], node, reader)
    return Both(
        Comparison(Relation.AT_LEAST, value, lower), Comparison(Relation.AT_MOST, value, upper)
    )


def _membership(node: exp.Expr, reader: _TreeReader) -> Membership:
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
    exp.Anonymous: _NodeRule({"this": str, "expressions": list}, value=_called),
    exp.Distinct: _NodeRule({"expressions": list}),  # in COUNT
    exp.Star: _NodeRule({}),
    # values
    exp.Column: _NodeRule({"this": exp.Identifier, "table": exp.Identifier}, value=_column),
    exp.Literal: _NodeRule({"this": str, "is_string": bool}, value=_literal),
    exp.Boolean: _NodeRule({"this": bool}, value=lambda node, _: Literal(bool(node.this))),
    exp.Case: _NodeRule({**_ONE, "ifs": list, "default": exp.Expr}, value=_case),
    exp.If: _NodeRule({**_ONE, "true": exp.Expr}),
    exp.Extract: _NodeRule({"this": exp.Identifier, "expression": exp.Expr}, value=_extracted),
    exp.Cast: _NodeRule({"this": exp.Literal, "to": exp.DataType}, value=_typed_date),
    exp.DataType: _NodeRule({"this": exp.DType, "nested": bool}),
    exp.Paren: _NodeRule(
        _ONE,
        value=lambda node, reader: _scalar(node.this, reader),
        condition=lambda node, reader: _condition(node.this, reader),
    ),
    exp.Neg: _NodeRule(_ONE, value=_negative),
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
    exp.Between: _NodeRule({**_ONE, "low": exp.Expr, "high": exp.Expr}, condition=_between),
    exp.Like: _infix(ScalarFunction.LIKE),
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
    exp.Distinct: "COUNT(DISTINCT value) counts different values, and GROUP BY shows keys",
    exp.Dot: "a column is named as column, or as table.column",
    exp.In: "IN takes literals in parentheses: IN (1, 2, 3)",
    exp.Is: "write IS NULL or IS NOT NULL; a boolean column is a condition, or compared: = TRUE",
    exp.Join: ONE_TABLE,
    exp.Subquery: ONE_TABLE,
    exp.Table: ONE_TABLE,
    exp.Tuple: "one value stands in parentheses, a list only after IN",
}
