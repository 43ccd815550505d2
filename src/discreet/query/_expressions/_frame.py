"""Questions in Python: column expressions that become the same `Query` as SQL does.

>>> condition = (col("year") >= 1985) & ~col("in_union").is_null()
>>> col("wage") * 12
(wage * 12)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from discreet._exact import Number, shown
from discreet.errors import InvalidArgument
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expression_text import condition_text, scalar_text
from discreet.query._expressions._expressions import (
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
    Holds,
    IsNull,
    Measure,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._expressions._python_values import (
    PythonConstant,
    QuestionPart,
    literal_of,
    scalar_of,
    value_or_type,
)
from discreet.query._expressions._query import GroupKey
from discreet.query._facts._columns import ColumnType
from discreet.query._functions._functions import FUNCTIONS
from discreet.query._functions._scalar_rules import ScalarFunction

_CASTS = {
    ColumnType.BOOLEAN: ScalarFunction.TO_BOOLEAN,
    ColumnType.DATE: ScalarFunction.TO_DATE,
    ColumnType.INTEGER: ScalarFunction.TO_INTEGER,
    ColumnType.NUMBER: ScalarFunction.TO_NUMBER,
    ColumnType.TEXT: ScalarFunction.TO_TEXT,
}


@dataclass(frozen=True, slots=True, eq=False)
class ConditionExpression(QuestionPart):
    """A condition on rows; combine conditions with ``&``, ``|`` and ``~``."""

    condition: Condition

    def as_scalar(self) -> Scalar:
        """The condition as a truth value."""
        return self.condition.value if isinstance(self.condition, Holds) else Truth(self.condition)

    def __and__(self, other: "ConditionExpression | ColumnExpression") -> "ConditionExpression":
        return ConditionExpression(Both(self.condition, condition_of(other)))

    def __or__(self, other: "ConditionExpression | ColumnExpression") -> "ConditionExpression":
        return ConditionExpression(Either(self.condition, condition_of(other)))

    def __invert__(self) -> "ConditionExpression":
        return ConditionExpression(Negation(self.condition))

    def then(self, value: "Operand", otherwise: "Operand | None" = None) -> "ColumnExpression":
        """This value where the condition is known to hold, and the other one, or NULL, elsewhere:
        CASE WHEN."""
        other = None if otherwise is None else scalar_of(otherwise)
        return ColumnExpression(Case((Branch(self.condition, scalar_of(value)),), other))

    def __repr__(self) -> str:
        return condition_text(self.condition)


class ValueExpression(QuestionPart):
    """The operators and functions that columns and aggregates share.

    They mean what they mean in SQL, and are NULL where they have no value.
    """

    __slots__ = ()

    def __add__(self, other: "Operand") -> "ColumnExpression":
        return _arithmetic(Operator.ADD, self, other)

    def __radd__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.ADD, other, self)

    def __sub__(self, other: "Operand") -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, other, self)

    def __mul__(self, other: "Operand") -> "ColumnExpression":
        return _arithmetic(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: "Operand") -> "ColumnExpression":
        return _arithmetic(Operator.DIVIDE, self, other)

    def __rtruediv__(self, other: Number) -> "ColumnExpression":
        return _arithmetic(Operator.DIVIDE, other, self)

    def __pow__(self, power: Number) -> "ColumnExpression":
        return self.power(power)

    def __abs__(self) -> "ColumnExpression":
        return self.abs()

    def __neg__(self) -> "ColumnExpression":
        return _arithmetic(Operator.SUBTRACT, 0, self)

    def __lt__(self, other: "Operand") -> ConditionExpression:
        return _comparison(Relation.LESS, self, other)

    def __le__(self, other: "Operand") -> ConditionExpression:
        return _comparison(Relation.AT_MOST, self, other)

    def __gt__(self, other: "Operand") -> ConditionExpression:
        return _comparison(Relation.GREATER, self, other)

    def __ge__(self, other: "Operand") -> ConditionExpression:
        return _comparison(Relation.AT_LEAST, self, other)

    # --- numbers ---

    def abs(self) -> "ColumnExpression":
        """The magnitude."""
        return self._call(ScalarFunction.ABS)

    def round(self, digits: int = 0) -> "ColumnExpression":
        """The nearest number with this number of decimals, halves away from 0."""
        return self._call(ScalarFunction.ROUND, *([digits] if digits else []))

    def floor(self) -> "ColumnExpression":
        """The largest whole number that is not larger."""
        return self._call(ScalarFunction.FLOOR)

    def ceil(self) -> "ColumnExpression":
        """The smallest whole number that is not smaller."""
        return self._call(ScalarFunction.CEIL)

    def sqrt(self) -> "ColumnExpression":
        """The square root; NULL below 0."""
        return self._call(ScalarFunction.SQRT)

    def ln(self) -> "ColumnExpression":
        """The natural logarithm; NULL at 0 and below."""
        return self._call(ScalarFunction.LN)

    def exp(self) -> "ColumnExpression":
        """The exponential."""
        return self._call(ScalarFunction.EXP)

    def sign(self) -> "ColumnExpression":
        """1 above 0, -1 below 0, and 0."""
        return self._call(ScalarFunction.SIGN)

    def power(self, power: Number) -> "ColumnExpression":
        """A power of the number; for powers that are no whole numbers NULL below 0."""
        return self._call(ScalarFunction.POWER, power)

    def least(self, *others: "Operand") -> "ColumnExpression":
        """The smallest of these values that is not NULL."""
        return self._call(ScalarFunction.LEAST, *others)

    def greatest(self, *others: "Operand") -> "ColumnExpression":
        """The largest of these values that is not NULL."""
        return self._call(ScalarFunction.GREATEST, *others)

    # --- NULL and types ---

    def coalesce(self, *others: "Operand") -> "ColumnExpression":
        """The first of these values that is not NULL."""
        return self._call(ScalarFunction.COALESCE, *others)

    def nullif(self, other: "Operand") -> "ColumnExpression":
        """The value, but NULL where it equals the other one."""
        return ColumnExpression(
            Case(
                (Branch(_comparison(Relation.EQUAL, self, other).condition, None),),
                self.as_scalar(),
            )
        )

    def cast(self, kind: ColumnType | str) -> "ColumnExpression":
        """The value as another type, such as "integer"; NULL where that can't hold it."""
        try:
            return self._call(_CASTS[ColumnType(kind)])
        except ValueError:
            raise InvalidArgument(
                f"cast to {kind!r}: give one of {', '.join(one.value for one in ColumnType)}"
            ) from None

    def _call(self, function: ScalarFunction, *others: object) -> "ColumnExpression":
        rule = FUNCTIONS[function]
        given = (
            literal_of(other) if rule.argument(place).is_constant else scalar_of(other)
            for place, other in enumerate(others, start=1)
        )
        return ColumnExpression(FunctionCall(function, (self.as_scalar(), *given)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnExpression(ValueExpression):
    """A value of each row: a column, or a function or arithmetic of columns and constants.

    Functions mean what they mean in SQL, and are NULL where they have no value.

    >>> col("wage").round(1).greatest(0)
    GREATEST(ROUND(wage, 1), 0)
    """

    scalar: Scalar

    def as_scalar(self) -> Scalar:
        """The value of each row."""
        return self.scalar

    def __mod__(self, size: Number) -> "ColumnExpression":
        return self._call(ScalarFunction.MOD, size)

    def __eq__(self, other: object) -> ConditionExpression:  # type: ignore[override]  # a condition, not a fact
        return _comparison(Relation.EQUAL, self, other)

    def __ne__(self, other: object) -> ConditionExpression:  # type: ignore[override]  # a condition, not a fact
        return _comparison(Relation.UNEQUAL, self, other)

    __hash__ = None  # type: ignore[assignment]  # equality is a condition here

    def between(self, lower: PythonConstant, upper: PythonConstant) -> ConditionExpression:
        """The rows in which the value is at least ``lower`` and at most ``upper``."""
        return (self >= lower) & (self <= upper)

    def isin(self, options: Iterable[PythonConstant]) -> ConditionExpression:
        """The rows in which the value is one of the options."""
        return ConditionExpression(
            Membership(self.scalar, tuple(literal_of(option) for option in options))
        )

    def is_null(self) -> ConditionExpression:
        """The rows in which the value is NULL."""
        return ConditionExpression(IsNull(self.scalar))

    def width_bucket(self, lower: Number, upper: Number, bins: int) -> "ColumnExpression":
        """The number of its bin among equal ones: 0 below the first, bins + 1 after the last."""
        return self._call(ScalarFunction.WIDTH_BUCKET, lower, upper, bins)

    # --- texts ---

    def like(self, pattern: str) -> ConditionExpression:
        """The rows in which the text matches: % stands for any characters, _ for any one."""
        return ConditionExpression(Holds(self._call(ScalarFunction.LIKE, pattern).scalar))

    def lower(self) -> "ColumnExpression":
        """The text in small letters."""
        return self._call(ScalarFunction.LOWER)

    def upper(self) -> "ColumnExpression":
        """The text in capital letters."""
        return self._call(ScalarFunction.UPPER)

    def trim(self) -> "ColumnExpression":
        """The text without blanks around it."""
        return self._call(ScalarFunction.TRIM)

    def substr(self, first: int, count: int | None = None) -> "ColumnExpression":
        """The characters from this place on, counted from 1; at most this number of them."""
        return self._call(ScalarFunction.SUBSTR, first, *([] if count is None else [count]))

    def length(self) -> "ColumnExpression":
        """The number of characters."""
        return self._call(ScalarFunction.LENGTH)

    def concat(self, other: "ColumnExpression | str") -> "ColumnExpression":
        """Both texts, one after the other."""
        return self._call(ScalarFunction.CONCAT, other)

    # --- dates ---

    def year(self) -> "ColumnExpression":
        """The year of a date."""
        return self._call(ScalarFunction.YEAR)

    def quarter(self) -> "ColumnExpression":
        """The quarter of a date, 1 to 4."""
        return self._call(ScalarFunction.QUARTER)

    def month(self) -> "ColumnExpression":
        """The month of a date, 1 to 12."""
        return self._call(ScalarFunction.MONTH)

    def day(self) -> "ColumnExpression":
        """The day of a date's month, 1 to 31."""
        return self._call(ScalarFunction.DAY)

    def day_of_year(self) -> "ColumnExpression":
        """The day of a date's year, 1 to 366."""
        return self._call(ScalarFunction.DAYOFYEAR)

    def isoweekday(self) -> "ColumnExpression":
        """The day of a date's week, 1 on Monday to 7 on Sunday."""
        return self._call(ScalarFunction.ISODOW)

    def truncate(self, unit: str) -> "ColumnExpression":
        """The first day of a date's year, quarter, month or week."""
        return ColumnExpression(
            FunctionCall(ScalarFunction.DATE_TRUNC, (literal_of(unit), self.scalar))
        )

    def __invert__(self) -> ConditionExpression:
        return ~ConditionExpression(condition_of(self))

    def __and__(self, other: "ConditionExpression | ColumnExpression") -> ConditionExpression:
        return ConditionExpression(condition_of(self)) & other

    def __or__(self, other: "ConditionExpression | ColumnExpression") -> ConditionExpression:
        return ConditionExpression(condition_of(self)) | other

    def __repr__(self) -> str:
        return scalar_text(self.scalar)


@dataclass(frozen=True, slots=True)
class UnnamedAggregate(ValueExpression):
    """An aggregate without a name. Arithmetic with it gives a column that is computed from the
    noisy numbers, at no cost: ``agg(ratio=dp.sum("pay") / dp.sum("hours"))``."""

    function: AggregateFunction
    argument: Scalar | None
    level: Fraction | None = None
    second: Scalar | None = None

    def as_scalar(self) -> Scalar:
        """The noisy number."""
        return Measure(self.named(""))

    def named(self, name: str) -> Aggregate:
        """The aggregate under a name."""
        return Aggregate(self.function, self.argument, name, self.level, self.second)

    def __repr__(self) -> str:
        values = [value for value in (self.argument, self.second) if value is not None]
        argument = ", ".join(map(scalar_text, values)) or "*"
        level = "" if self.level is None else f", {shown(self.level)}"
        return f"{self.function.value}({argument}{level})"


Operand = ValueExpression | PythonConstant
"""A value in a question: an expression or a constant."""


def col(name: str) -> ColumnExpression:
    """The declared column of this name."""
    if not isinstance(name, str):
        raise InvalidArgument(f"col({name!r}): give a column's name")
    return ColumnExpression(ColumnRef(name))


def condition_of(given: object) -> Condition:
    """The condition of an expression, which may be a boolean column."""
    if isinstance(given, ConditionExpression):
        return given.condition
    if isinstance(given, ColumnExpression) and isinstance(
        given.scalar, ColumnRef | FunctionCall | Case
    ):
        return Holds(given.scalar)
    raise InvalidArgument(
        f"{value_or_type(given)} is no condition; compare a column, as in col('year') >= 1985"
    )


def key_of(name: str, given: object) -> str | GroupKey:
    """The key of this name: an expression, or a condition, whose values are true and false."""
    if isinstance(given, ColumnExpression | ConditionExpression):
        value = with_keys(given)
    else:
        raise InvalidArgument(
            f"{value_or_type(given)} is no key; give a column or expression, as in "
            "group_by('sex', month=col('day').truncate('month'))"
        )
    return name if value == ColumnRef(name) else GroupKey(value, name)


def with_keys(given: "ColumnExpression | ConditionExpression | str") -> Scalar:
    """A value that may have keys: an expression, or a condition as a truth value."""
    if isinstance(given, ConditionExpression):
        return given.as_scalar()
    return expression_of(given).scalar


def all_of(filters: Iterable[ConditionExpression | ColumnExpression]) -> Condition | None:
    """All conditions joined by and; ``None`` if there is none."""
    conditions = [condition_of(given) for given in filters]
    return reduce(Both, conditions) if conditions else None


def expression_of(given: ColumnExpression | str) -> ColumnExpression:
    if isinstance(given, str):
        return col(given)
    if isinstance(given, ColumnExpression):
        return given
    if isinstance(given, ConditionExpression):
        raise InvalidArgument(
            f"{given!r} is a condition: give (...).then(1, otherwise=0), whose mean is a share and "
            "whose sum is a count"
        )
    raise InvalidArgument(
        f"{value_or_type(given)}: give a column's name or an expression of dp.col(...)"
    )


def _arithmetic(operator: Operator, left: object, right: object) -> ColumnExpression:
    return ColumnExpression(Arithmetic(operator, scalar_of(left), scalar_of(right)))


def _comparison(relation: Relation, left: object, right: object) -> ConditionExpression:
    return ConditionExpression(Comparison(relation, scalar_of(left), scalar_of(right)))
