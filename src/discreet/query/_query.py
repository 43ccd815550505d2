"""A query as a closed value, to which both SQL and Python calls are translated.

Nothing exists but the classes below. The engine's statement is generated from these values, so no
text of a user ever reaches an engine.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from discreet.query._aggregates import AggregateFunction
from discreet.query._sql_words import RESERVED


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A declared column, as declared: clamped to its bounds, NULL replaced."""

    name: str


Constant = bool | Fraction | str | datetime.date


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the user wrote: a truth value, exact number, text or day."""

    value: Constant


class Operator(Enum):
    """Arithmetic on numbers; the divisor is always a literal other than 0."""

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


Scalar = ColumnRef | Literal | Arithmetic


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
    """A boolean column taken as a condition; unknown if it is NULL."""

    column: ColumnRef


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
    1."""

    function: AggregateFunction
    argument: Scalar | None
    name: str
    level: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates of the rows that meet a condition, for each combination of the keys' values.

    ``str`` gives it as SQL. Two texts of the same meaning give equal queries.
    """

    table: str
    aggregates: tuple[Aggregate, ...]
    keys: tuple[str, ...] = ()
    where: Condition | None = None

    def __str__(self) -> str:
        shown_keys = [quoted(key) for key in self.keys]
        columns = [*shown_keys, *(_aggregate(aggregate) for aggregate in self.aggregates)]
        grouping = f" GROUP BY {', '.join(shown_keys)}" if shown_keys else ""
        return f"{self.of_rows(columns)}{grouping}"

    def of_rows(self, selected: Iterable[str]) -> str:
        """A text that selects this, of the rows that meet the condition."""
        where = "" if self.where is None else f" WHERE {condition_text(self.where)}"
        return f"SELECT {', '.join(selected)} FROM {quoted(self.table)}{where}"  # noqa: S608  # for people to read


def column_names(aggregate: str) -> tuple[str, str, str, str]:
    """The answer's columns for an aggregate: its value, its interval's ends, and its error."""
    return aggregate, f"{aggregate}_low", f"{aggregate}_high", f"{aggregate}_error"


def columns_used(query: Query) -> tuple[str, ...]:
    """The names of all columns in the query, each once, in order."""
    arguments = (a.argument for a in query.aggregates if a.argument is not None)
    inside = [name for argument in arguments for name in _columns(argument)]
    filtered = [] if query.where is None else _columns(query.where)
    return tuple(dict.fromkeys([*query.keys, *inside, *filtered]))


def _columns(node: Scalar | Condition) -> list[str]:
    match node:
        case ColumnRef(name):
            return [name]
        case Literal():
            return []
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return _columns(left) + _columns(right)
        case Both(left, right) | Either(left, right):
            return _columns(left) + _columns(right)
        case Membership(value) | IsNull(value) | Holds(value) | Negation(value):
            return _columns(value)


def quoted(name: str) -> str:
    """A name in SQL: without quotes where that is safe."""
    is_plain = name.isascii() and name.isidentifier() and name == name.lower()
    is_bare = is_plain and name.upper() not in RESERVED
    return name if is_bare else '"' + name.replace('"', '""') + '"'


def scalar_text(scalar: Scalar) -> str:
    """A value in SQL."""
    if isinstance(scalar, ColumnRef):
        return quoted(scalar.name)
    if isinstance(scalar, Literal):
        return _literal(scalar.value)
    return f"({scalar_text(scalar.left)} {scalar.operator.value} {scalar_text(scalar.right)})"


def condition_text(condition: Condition) -> str:
    """A condition in SQL, with parentheses around each group."""
    match condition:
        case Comparison(relation, left, right):
            return f"{scalar_text(left)} {relation.value} {scalar_text(right)}"
        case Membership(value, options):
            return (
                f"{scalar_text(value)} IN ({', '.join(scalar_text(option) for option in options)})"
            )
        case IsNull(value):
            return f"{scalar_text(value)} IS NULL"
        case Holds(column):
            return scalar_text(column)
        case Both():
            return f"({' AND '.join(_chain(condition))})"
        case Either():
            return f"({' OR '.join(_chain(condition))})"
        case Negation(inner):
            return f"NOT ({condition_text(inner)})"


def _chain(condition: Both | Either) -> list[str]:
    """The parts of a AND b AND c, which SQL reads from the left without parentheses."""
    parts: list[str] = []
    rest: Condition = condition
    while isinstance(rest, Both | Either) and type(rest) is type(condition):
        parts.append(condition_text(rest.right))
        rest = rest.left
    return [condition_text(rest), *reversed(parts)]


def _aggregate(aggregate: Aggregate) -> str:
    argument = "*" if aggregate.argument is None else scalar_text(aggregate.argument)
    level = "" if aggregate.level is None else f", {_number(aggregate.level)}"
    return f"{aggregate.function.value}({argument}{level}) AS {quoted(aggregate.name)}"


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
    places = next((n for n in range(31) if 10**n % value.denominator == 0), None)
    if places is None:
        return f"({value.numerator} / {value.denominator})"
    if not places:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    return f"{'-' * (value < 0)}{digits[:-places]}.{digits[-places:]}"
