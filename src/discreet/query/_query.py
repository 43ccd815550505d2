"""A query as a closed value, to which both SQL and Python calls are translated.

Nothing exists but the classes below. The engine's statement is generated from these values, so no
text of a user ever reaches an engine.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from discreet.query._aggregates import AggregateFunction
from discreet.query._functions import FUNCTIONS
from discreet.query._scalar_rules import Constant, Form, ScalarFunction
from discreet.query._sql_words import MAX_NESTING, RESERVED


class FromText(str):
    """The name of a relation that is no single table: its own SQL after FROM."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A declared column, as declared: clamped to its bounds, NULL replaced."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant that the user wrote: a truth value, exact number, text or day. TRUE is not 1."""

    value: Constant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._typed == other._typed

    def __hash__(self) -> int:
        return hash(self._typed)

    @property
    def _typed(self) -> tuple[type, Constant]:
        return type(self.value), self.value


class Operator(Enum):
    """Arithmetic on numbers; the divisor is always a literal other than 0. The difference of two
    dates is a number of days."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One operation on two numbers; NULL if either is."""

    operator: Operator
    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of the table in `_functions`, of its arguments."""

    function: ScalarFunction
    arguments: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A value, or NULL, for rows in which the condition is known to hold."""

    condition: "Condition"
    value: "Scalar | None"


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is known to hold, or the other one."""

    branches: tuple[Branch, ...]
    otherwise: "Scalar | None" = None


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition as a value; NULL where it is unknown."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class Measure:
    """The noisy number of an aggregate without a name, or its share of the sum over all groups. No
    row has it: it stands in values that are computed from an answer."""

    aggregate: "Aggregate"
    is_share: bool = False


Scalar = ColumnRef | Literal | Arithmetic | FunctionCall | Case | Truth | Measure


class Relation(Enum):
    """The comparisons of two values."""

    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values of one type compared; unknown if either is NULL."""

    relation: Relation
    left: Scalar
    right: Scalar


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is one of some literals; unknown if it is NULL."""

    value: Scalar
    options: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is NULL; never unknown."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Holds:
    """A boolean value taken as a condition; unknown if it is NULL."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Both:
    """Logical and, with SQL's three values."""

    left: "Condition"
    right: "Condition"


@dataclass(frozen=True, slots=True)
class Either:
    """Logical or, with SQL's three values."""

    left: "Condition"
    right: "Condition"


@dataclass(frozen=True, slots=True)
class Negation:
    """Logical not, with SQL's three values."""

    condition: "Condition"


Condition = Comparison | Membership | IsNull | Holds | Both | Either | Negation


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate under its name in the answer. COUNT without an argument counts rows, with one
    the rows where it is not NULL; the others skip NULL. QUANTILE has a ``level``, above 0 and below
    1. COVAR_SAMP, COVAR_POP and CORR have a ``second`` value; they skip rows where either is NULL.
    """

    function: AggregateFunction
    argument: Scalar | None
    name: str
    level: Fraction | None = None
    second: Scalar | None = None

    @property
    def arguments(self) -> tuple[Scalar, ...]:
        """The values that it is of; none for a count of rows."""
        return tuple(one for one in (self.argument, self.second) if one is not None)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression by whose values rows are grouped, under its name in the answer."""

    value: Scalar
    name: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer that is computed from noisy numbers, under its name."""

    value: Scalar
    name: str


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of the query, or a number computed from an answer, by which its rows are sorted."""

    value: Scalar
    is_descending: bool = False
    has_nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """The functions of the noisy numbers alone that make the answer; they cost nothing.

    ``shown`` names the aggregates and outputs that the answer has, in order; if it is empty, it has
    all. ``having`` chooses rows, ``order`` sorts them, ``offset`` and ``limit`` take some. Each of
    ``sets`` names the keys of some rows of the answer, which are totals over the other keys; if
    there are none, the rows are those of all keys. Made by `discreet.query._post_processing`.
    """

    outputs: tuple[Output, ...] = ()
    shown: tuple[str, ...] = ()
    having: Condition | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[str, ...], ...] = ()

    @property
    def chooses_rows(self) -> bool:
        """Whether the answer has only some of the rows."""
        return self.having is not None or self.limit is not None or self.offset != 0

    @property
    def parts(self) -> tuple[Scalar | Condition, ...]:
        """The values and conditions in it."""
        computed = (one.value for one in self.outputs)
        conditions = () if self.having is None else (self.having,)
        return (*computed, *conditions, *(one.value for one in self.order))


_AS_RELEASED = PostProcessing()


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates of the rows that meet a condition, for each combination of the keys' values.

    A key is the name of a column, or a `GroupKey`. ``str`` gives the query as SQL. Two texts of the
    same meaning give equal queries. All aggregates are computed, paid and drawn, also those that
    only ``after`` uses; `columns` names those that the answer shows.
    """

    table: str
    aggregates: tuple[Aggregate, ...]
    keys: tuple[str | GroupKey, ...] = ()
    where: Condition | None = None
    after: PostProcessing = _AS_RELEASED

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the aggregates and outputs in the answer, in order."""
        return self.after.shown or tuple(one.name for one in self.numbers)

    @property
    def numbers(self) -> "tuple[Aggregate | Output, ...]":
        """The aggregates and the outputs, shown or not."""
        return (*self.aggregates, *self.after.outputs)

    @property
    def named_keys(self) -> tuple[GroupKey, ...]:
        """The keys, those of columns under the columns' names."""
        return tuple(
            GroupKey(ColumnRef(key), key) if isinstance(key, str) else key for key in self.keys
        )

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the keys in the answer."""
        return tuple(key.name for key in self.named_keys)

    def __str__(self) -> str:
        text = _query_text(self, is_flat=False)
        return text if _depth(text) <= MAX_NESTING else _query_text(self, is_flat=True)

    def of_rows(self, selected: Iterable[str], *, is_flat: bool = False) -> str:
        """A text that selects this, of the rows that meet the condition."""
        condition = None if self.where is None else condition_text(self.where, is_flat=is_flat)
        where = "" if condition is None else f" WHERE {condition}"
        source = self.table if isinstance(self.table, FromText) else quoted(self.table)
        return f"SELECT {', '.join(selected)} FROM {source}{where}"  # noqa: S608  # for people to read


def _query_text(query: Query, *, is_flat: bool) -> str:
    keys = [scalar_text(key.value, is_flat=is_flat) for key in query.named_keys]
    shown = [
        text if isinstance(key, str) else f"{text} AS {quoted(key.name)}"
        for key, text in zip(query.keys, keys, strict=True)
    ]
    made = {one.name: aggregate_text(one, is_flat=is_flat) for one in query.aggregates}
    made |= {one.name: scalar_text(one.value, is_flat=is_flat) for one in query.after.outputs}
    columns = [*shown, *(f"{made[name]} AS {quoted(name)}" for name in query.columns)]
    named = dict(zip(query.key_names, keys, strict=True))
    clauses = [_grouping(query, named), *_clauses(query.after, is_flat=is_flat)]
    return " ".join([query.of_rows(columns, is_flat=is_flat), *filter(None, clauses)])


def _grouping(query: Query, keys: Mapping[str, str]) -> str:
    if query.after.sets:
        sets = (f"({', '.join(keys[name] for name in one)})" for one in query.after.sets)
        return f"GROUP BY GROUPING SETS ({', '.join(sets)})"
    return f"GROUP BY {', '.join(keys.values())}" if keys else ""


def _clauses(after: PostProcessing, *, is_flat: bool) -> Iterator[str]:
    if after.having is not None:
        yield f"HAVING {condition_text(after.having, is_flat=is_flat)}"
    if after.order:
        directions = ((" DESC" * one.is_descending) for one in after.order)
        values = (scalar_text(one.value, is_flat=is_flat) for one in after.order)
        nulls = (" NULLS FIRST" * one.has_nulls_first for one in after.order)
        yield f"ORDER BY {', '.join(map(''.join, zip(values, directions, nulls, strict=True)))}"
    if after.limit is not None:
        yield f"LIMIT {after.limit}"
    if after.offset:
        yield f"OFFSET {after.offset}"


def _depth(text: str) -> int:
    """The largest number of parentheses, CASE and prefixes that are open at one place, which the
    reader of SQL limits."""
    deepest, prefixes, opened = 0, 0, [0]
    for sign in _SIGNS.findall(text):
        if sign in ("NOT", "+", "-"):
            prefixes += 1
        elif sign in ("(", "CASE"):
            opened.append(opened[-1] + prefixes + 1)
            prefixes = 0
        else:
            if sign in (")", "END"):
                opened.pop()
            prefixes = 0
        deepest = max(deepest, opened[-1] + prefixes)
    return deepest


_SIGNS = re.compile(r"""'[^']*'|"[^"]*"|\w+|[^\s\w]""")


def column_names(aggregate: str) -> tuple[str, str, str, str]:
    """The answer's columns for an aggregate: its value, its interval's ends, and its error."""
    return aggregate, f"{aggregate}_low", f"{aggregate}_high", f"{aggregate}_error"


def columns_used(query: Query) -> tuple[str, ...]:
    """The names of all columns in the query, each once, in order."""
    arguments = (value for one in query.aggregates for value in one.arguments)
    parts: list[Scalar | Condition] = [*(key.value for key in query.named_keys), *arguments]
    if query.where is not None:
        parts.append(query.where)
    return tuple(dict.fromkeys(name for part in parts for name in columns_in(part)))


def columns_in(node: Scalar | Condition) -> list[str]:
    """The names of the columns in a value or condition, in order."""
    if isinstance(node, ColumnRef):
        return [node.name]
    return [name for part in parts_of(node) for name in columns_in(part)]


def parts_of(node: Scalar | Condition) -> list[Scalar | Condition]:
    """The values and conditions that a value or condition is made from."""
    match node:
        case ColumnRef() | Literal():
            return []
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return [left, right]
        case Both(one, other) | Either(one, other):
            return [one, other]
        case FunctionCall(_, arguments):
            return list(arguments)
        case Case(branches, otherwise):
            pairs = [part for one in branches for part in (one.condition, one.value)]
            return [part for part in (*pairs, otherwise) if part is not None]
        case Membership(value) | IsNull(value) | Holds(value):
            return [value]
        case Truth(condition) | Negation(condition):
            return [condition]
        case Measure(aggregate):
            return list(aggregate.arguments)


def quoted(name: str) -> str:
    """A name in SQL: without quotes where that is safe."""
    is_plain = name.isascii() and name.isidentifier() and name == name.lower()
    is_bare = is_plain and name.upper() not in RESERVED
    return name if is_bare else '"' + name.replace('"', '""') + '"'


def scalar_text(scalar: Scalar, *, is_flat: bool = False) -> str:
    """A value in SQL. If it is flat, a sum of many terms has no parentheses within it."""
    match scalar:
        case ColumnRef(name):
            return quoted(name)
        case Literal(value):
            return _literal(value)
        case Arithmetic(operator, left, right):
            first, second = (scalar_text(side, is_flat=is_flat) for side in (left, right))
            if is_flat and isinstance(left, Arithmetic) and _binds_alike(left.operator, operator):
                first = first[1:-1]
            return f"({first} {operator.value} {second})"
        case FunctionCall(function, arguments):
            return _call(function, [scalar_text(one, is_flat=is_flat) for one in arguments])
        case Case():
            return _case(scalar, is_flat=is_flat)
        case Truth(condition):
            return f"({condition_text(condition, is_flat=is_flat)})"
        case Measure(aggregate, is_share):
            text = aggregate_text(aggregate, is_flat=is_flat)
            return f"SHARE({text})" if is_share else text


def _binds_alike(one: Operator, other: Operator) -> bool:
    sums = Operator.ADD, Operator.SUBTRACT
    return (one in sums) is (other in sums)


def _call(function: ScalarFunction, arguments: list[str]) -> str:
    match FUNCTIONS[function].form:
        case Form.CALL:
            return f"{function.value}({', '.join(arguments)})"
        case Form.INFIX:
            return f"({arguments[0]} {function.value} {arguments[1]})"
        case Form.CAST:
            return f"CAST({arguments[0]} AS {function.value})"


def _case(case: Case, *, is_flat: bool) -> str:
    def text(value: Scalar | None) -> str:
        return "NULL" if value is None else scalar_text(value, is_flat=is_flat)

    branches = (
        f"WHEN {condition_text(one.condition, is_flat=is_flat)} THEN {text(one.value)}"
        for one in case.branches
    )
    otherwise = "" if case.otherwise is None else f" ELSE {text(case.otherwise)}"
    return f"CASE {' '.join(branches)}{otherwise} END"


def condition_text(condition: Condition, *, is_flat: bool = False) -> str:
    """A condition in SQL, with parentheses around each group."""
    match condition:
        case Comparison(relation, left, right):
            sides = (scalar_text(side, is_flat=is_flat) for side in (left, right))
            return f" {relation.value} ".join(sides)
        case Membership(value, options):
            listed = ", ".join(scalar_text(option) for option in options)
            return f"{scalar_text(value, is_flat=is_flat)} IN ({listed})"
        case IsNull(value):
            return f"{scalar_text(value, is_flat=is_flat)} IS NULL"
        case Holds(value):
            return scalar_text(value, is_flat=is_flat)
        case Both():
            return f"({' AND '.join(_chain(condition, is_flat=is_flat))})"
        case Either():
            return f"({' OR '.join(_chain(condition, is_flat=is_flat))})"
        case Negation(inner):
            return f"NOT ({condition_text(inner, is_flat=is_flat)})"


def _chain(condition: Both | Either, *, is_flat: bool) -> list[str]:
    """The parts of a AND b AND c, which SQL reads from the left without parentheses."""
    parts: list[str] = []
    rest: Condition = condition
    while isinstance(rest, Both | Either) and type(rest) is type(condition):
        parts.append(condition_text(rest.right, is_flat=is_flat))
        rest = rest.left
    return [condition_text(rest, is_flat=is_flat), *reversed(parts)]


def aggregate_text(aggregate: Aggregate, *, is_flat: bool = False) -> str:
    """An aggregate in SQL, without its name."""
    values = (scalar_text(value, is_flat=is_flat) for value in aggregate.arguments)
    argument = ", ".join(values) or "*"
    level = "" if aggregate.level is None else f", {_number(aggregate.level)}"
    return f"{aggregate.function.value}({argument}{level})"


def _literal(value: Constant) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case Fraction():
            return _number(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"


def _number(value: Fraction) -> str:
    """A decimal with all its digits; any other fraction as a division."""
    if not is_decimal(value):
        return f"({value.numerator} / {value.denominator})"
    places = next(n for n in range(31) if 10**n % value.denominator == 0)
    if not places:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    return f"{'-' * (value < 0)}{digits[:-places]}.{digits[-places:]}"


def is_decimal(value: Fraction) -> bool:
    """Whether the number has at most 30 decimals. SQL has no other literals."""
    return 10**30 % value.denominator == 0
