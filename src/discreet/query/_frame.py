"""Questions in Python: column expressions that become the same `Query` as SQL does.

>>> condition = (col("year") >= 1985) & ~col("in_union").is_null()
>>> mean(col("wage") * 12)
AVG((wage * 12))
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from discreet import _checks
from discreet._exact import Number, fraction, is_number, shown
from discreet.errors import InvalidArgument
from discreet.query._aggregates import AggregateFunction
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
    Relation,
    Scalar,
    condition_text,
    scalar_text,
)

PythonConstant = Number | str | datetime.date


@dataclass(frozen=True, slots=True, eq=False)
class ConditionExpression:
    """A condition on rows; combine conditions with ``&``, ``|`` and ``~``."""

    condition: Condition

    def __and__(self, other: "ConditionExpression | ColumnExpression") -> "ConditionExpression":
        return ConditionExpression(Both(self.condition, condition_of(other)))

    def __or__(self, other: "ConditionExpression | ColumnExpression") -> "ConditionExpression":
        return ConditionExpression(Either(self.condition, condition_of(other)))

    def __invert__(self) -> "ConditionExpression":
        return ConditionExpression(Negation(self.condition))

    def __bool__(self) -> bool:
        raise InvalidArgument(
            "combine conditions with &, | and ~, each in parentheses, not with and, or, not"
        )

    def __repr__(self) -> str:
        return condition_text(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnExpression:
    """A value of each row: a column, or arithmetic of columns and numbers."""

    scalar: Scalar

    def __add__(self, other: "ColumnExpression | Number") -> "ColumnExpression":
        return _arithmetic(Operator.ADD, self, other)

    def __radd__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.ADD, other, self)

    def __sub__(self, other: "ColumnExpression | Number") -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, other, self)

    def __mul__(self, other: "ColumnExpression | Number") -> "ColumnExpression":
        return _arithmetic(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.DIVIDE, self, other)

    def __neg__(self) -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, 0, self)

    def __eq__(self, other: object) -> ConditionExpression:  # type: ignore[override]  # a condition, not a fact
        return _comparison(Relation.EQUAL, self, other)

    def __ne__(self, other: object) -> ConditionExpression:  # type: ignore[override]  # a condition, not a fact
        return _comparison(Relation.UNEQUAL, self, other)

    def __lt__(self, other: "ColumnExpression | PythonConstant") -> ConditionExpression:
        return _comparison(Relation.LESS, self, other)

    def __le__(self, other: "ColumnExpression | PythonConstant") -> ConditionExpression:
        return _comparison(Relation.AT_MOST, self, other)

    def __gt__(self, other: "ColumnExpression | PythonConstant") -> ConditionExpression:
        return _comparison(Relation.GREATER, self, other)

    def __ge__(self, other: "ColumnExpression | PythonConstant") -> ConditionExpression:
        return _comparison(Relation.AT_LEAST, self, other)

    __hash__ = None  # type: ignore[assignment]  # equality is a condition here

    def between(self, lower: PythonConstant, upper: PythonConstant) -> ConditionExpression:
        """The rows in which it is at least ``lower`` and at most ``upper``."""
        return (self >= lower) & (self <= upper)

    def isin(self, options: Iterable[PythonConstant]) -> ConditionExpression:
        """The rows in which it is one of the options."""
        return ConditionExpression(
            Membership(self.scalar, tuple(_literal(option) for option in options))
        )

    def is_null(self) -> ConditionExpression:
        """The rows in which it is NULL."""
        return ConditionExpression(IsNull(self.scalar))

    def __invert__(self) -> ConditionExpression:
        return ~ConditionExpression(condition_of(self))

    def __and__(self, other: "ConditionExpression | ColumnExpression") -> ConditionExpression:
        return ConditionExpression(condition_of(self)) & other

    def __or__(self, other: "ConditionExpression | ColumnExpression") -> ConditionExpression:
        return ConditionExpression(condition_of(self)) | other

    def __repr__(self) -> str:
        return scalar_text(self.scalar)


@dataclass(frozen=True, slots=True)
class UnnamedAggregate:
    """An aggregate without a name."""

    function: AggregateFunction
    argument: Scalar | None
    level: Fraction | None = None

    def named(self, name: str) -> Aggregate:
        """The aggregate under a name."""
        return Aggregate(self.function, self.argument, name, self.level)

    def __repr__(self) -> str:
        argument = "*" if self.argument is None else scalar_text(self.argument)
        level = "" if self.level is None else f", {shown(self.level)}"
        return f"{self.function.value}({argument}{level})"


def col(name: str) -> ColumnExpression:
    """The declared column of this name."""
    if not isinstance(name, str):
        raise InvalidArgument(f"col({name!r}): give a column's name")
    return ColumnExpression(ColumnRef(name))


def count(value: ColumnExpression | str | None = None) -> UnnamedAggregate:
    """The number of rows; with an argument, of those in which it is not NULL."""
    return UnnamedAggregate(
        AggregateFunction.COUNT, None if value is None else _expression(value).scalar
    )


def count_units() -> UnnamedAggregate:
    """The number of different units that have rows: of patients, not of visits."""
    return UnnamedAggregate(AggregateFunction.COUNT_UNITS, None)


def count_distinct(value: ColumnExpression | str) -> UnnamedAggregate:
    """The number of different values of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.COUNT_DISTINCT, value)


def sum(value: ColumnExpression | str) -> UnnamedAggregate:  # noqa: A001  # read as dp.sum
    """The sum of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.SUM, value)


def mean(value: ColumnExpression | str) -> UnnamedAggregate:
    """The mean of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.AVG, value)


def median(value: ColumnExpression | str) -> UnnamedAggregate:
    """The median of a column or expression, NULL skipped."""
    return aggregate(AggregateFunction.MEDIAN, value)


def quantile(value: ColumnExpression | str, level: Number) -> UnnamedAggregate:
    """The quantile at a level above 0 and below 1, such as 0.9, NULL skipped."""
    exact = _checks.probability(level=level)
    return UnnamedAggregate(AggregateFunction.QUANTILE, _expression(value).scalar, exact)


def aggregate(function: AggregateFunction, value: ColumnExpression | str) -> UnnamedAggregate:
    """Any aggregate of a column or expression, NULL skipped: ``aggregate(STDDEV, "wage")`` for a
    function of `AggregateFunction`."""
    if not isinstance(function, AggregateFunction):
        raise InvalidArgument(
            f"{_described(function)} is no aggregate: give a member of AggregateFunction"
        )
    if function is AggregateFunction.QUANTILE:
        raise InvalidArgument("a quantile has a level: quantile(value, 0.9)")
    return UnnamedAggregate(function, _expression(value).scalar)


def condition_of(given: object) -> Condition:
    """The condition of an expression, which may be a boolean column."""
    if isinstance(given, ConditionExpression):
        return given.condition
    if isinstance(given, ColumnExpression) and isinstance(given.scalar, ColumnRef):
        return Holds(given.scalar)
    raise InvalidArgument(
        f"{_described(given)} is no condition; compare a column, as in col('year') >= 1985"
    )


def all_of(filters: Iterable[ConditionExpression | ColumnExpression]) -> Condition | None:
    """All conditions joined by and; ``None`` if there is none."""
    conditions = [condition_of(given) for given in filters]
    return reduce(Both, conditions) if conditions else None


def _expression(given: ColumnExpression | str) -> ColumnExpression:
    if isinstance(given, str):
        return col(given)
    if isinstance(given, ColumnExpression):
        return given
    raise InvalidArgument(
        f"{_described(given)}: give a column's name or an expression of dp.col(...)"
    )


def _scalar(given: object) -> Scalar:
    return given.scalar if isinstance(given, ColumnExpression) else _literal(given)


def _literal(given: object) -> Literal:
    if isinstance(given, bool | str):
        return Literal(given)
    if isinstance(given, datetime.date) and not isinstance(given, datetime.datetime):
        return Literal(given)
    if is_number(given):
        return Literal(fraction(given))  # type: ignore[arg-type]  # checked by is_number
    hint = "; NULL is asked for by .is_null()" if given is None else ""
    raise InvalidArgument(
        f"{_described(given)} is no value for a question: give a finite number, text, truth value "
        f"or date{hint}"
    )


def _arithmetic(operator: Operator, left: object, right: object) -> ColumnExpression:
    return ColumnExpression(Arithmetic(operator, _scalar(left), _scalar(right)))


def _comparison(relation: Relation, left: object, right: object) -> ConditionExpression:
    return ConditionExpression(Comparison(relation, _scalar(left), _scalar(right)))


def _described(given: object) -> str:
    """The value for an error text; only its type where it could be a column of private rows."""
    is_plain = isinstance(
        given, ColumnExpression | UnnamedAggregate | bool | int | float | str | None
    )
    return repr(given) if is_plain else f"a {type(given).__name__}"
