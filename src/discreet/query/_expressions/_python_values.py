"""Python values as parts of a question: an expression, or a constant."""

import datetime
from abc import abstractmethod
from fractions import Fraction

from discreet._exact import Number, fraction, is_number
from discreet.errors import InvalidArgument, QueryRefused
from discreet.query._expressions._expressions import (
    Arithmetic,
    Literal,
    Operator,
    Scalar,
    is_decimal,
)

PythonConstant = Number | str | datetime.date

_LARGEST_DIVISOR = Fraction(10) ** 300  # as floating point divides
_NO_TRUTH = (
    "a question in Python is neither true nor false: combine conditions with &, | and ~, each in "
    "parentheses, not with and, or, not, if"
)


class QuestionPart:
    """An expression in a question, such as a column, a condition or an aggregate."""

    __slots__ = ()

    @abstractmethod
    def as_scalar(self) -> Scalar:
        """The value that the expression stands for."""

    def __bool__(self) -> bool:
        raise InvalidArgument(_NO_TRUTH)


def scalar_of(given: object) -> Scalar:
    """The value of an expression or a constant."""
    if isinstance(given, QuestionPart):
        return given.as_scalar()
    literal = literal_of(given)
    if isinstance(literal.value, Fraction) and not is_decimal(literal.value):
        return _fraction(literal.value)
    return literal


def _fraction(value: Fraction) -> Scalar:
    """A division of whole numbers, as SQL writes a number that is no decimal."""
    numerator, denominator = (Fraction(part) for part in value.as_integer_ratio())
    if denominator > _LARGEST_DIVISOR:
        raise QueryRefused(
            "a number in the question is too close to 0, or has too many digits: round it to at "
            "most 300 digits after the point"
        )
    return Arithmetic(Operator.DIVIDE, Literal(numerator), Literal(denominator))


def literal_of(given: object) -> Literal:
    """The constant, as a plain Python value; refused if it is none."""
    if isinstance(given, bool):
        return Literal(given)
    if isinstance(given, str):
        return Literal(str.__str__(given))
    if isinstance(given, datetime.date) and not isinstance(given, datetime.datetime):
        return Literal(datetime.date(given.year, given.month, given.day))
    if is_number(given):
        return Literal(fraction(given))  # type: ignore[arg-type]  # checked by is_number
    raise InvalidArgument(
        f"{value_or_type(given)} is no value for a question: give a finite number, text, truth "
        f"value or date{_hint(given)}"
    )


def _hint(given: object) -> str:
    if given is None:
        return "; NULL is asked for by .is_null()"
    if isinstance(given, datetime.datetime):
        return "; .date() of it is its date"
    is_float = hasattr(given, "as_integer_ratio") and not isinstance(given, float)
    return "; float() of it is such a number" if is_float else ""


def value_or_type(given: object) -> str:
    """The value for an error text; only its type where it could be a column of private rows."""
    is_plain = isinstance(given, QuestionPart | bool | int | float | str | None)
    return repr(given) if is_plain else f"a {type(given).__name__}"
