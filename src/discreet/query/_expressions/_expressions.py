"""The values, conditions and aggregates that a query is made from: a closed list of classes.

Nothing exists but these. SQL and Python calls become them, and the engine's statement is generated
from them, so no text of a user ever reaches an engine.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._functions._scalar_rules import Constant, ScalarFunction


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


def is_decimal(value: Fraction) -> bool:
    """Whether the number has at most 30 decimals. SQL has no other literals."""
    return 10**30 % value.denominator == 0
