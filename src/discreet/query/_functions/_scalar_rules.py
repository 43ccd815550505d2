"""The form of a row in the table of scalar functions, and the facts that rows compute with.

A row holds all that the package knows of one function: its spelling in SQL, the types it takes, the
facts of its result, and its meaning in the engine. `_functions` collects the rows.
"""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.errors import QueryRefused
from discreet.query._facts._columns import ColumnType, KeyValue

Constant = bool | Fraction | str | datetime.date
EngineValue = Any  # an expression of Ibis, which ships no types

WHOLE = Fraction(2) ** 62  # of a result that stays an integer
LARGEST = Fraction(10) ** 150  # of a range's ends


class ScalarFunction(Enum):
    """The functions of values, by their first name in SQL."""

    ABS = "ABS"
    CEIL = "CEIL"
    COALESCE = "COALESCE"
    CONCAT = "||"
    DATE_TRUNC = "DATE_TRUNC"
    DAY = "DAY"
    DAYOFYEAR = "DAYOFYEAR"
    EXP = "EXP"
    FLOOR = "FLOOR"
    GREATEST = "GREATEST"
    ISODOW = "ISODOW"
    LEAST = "LEAST"
    LENGTH = "LENGTH"
    LIKE = "LIKE"
    LN = "LN"
    LOWER = "LOWER"
    MOD = "%"
    MONTH = "MONTH"
    POWER = "POWER"
    QUARTER = "QUARTER"
    ROUND = "ROUND"
    SIGN = "SIGN"
    SQRT = "SQRT"
    SUBSTR = "SUBSTR"
    TO_BOOLEAN = "BOOLEAN"
    TO_DATE = "DATE"
    TO_INTEGER = "INTEGER"
    TO_NUMBER = "DOUBLE"
    TO_TEXT = "VARCHAR"
    TRIM = "TRIM"
    UPPER = "UPPER"
    WIDTH_BUCKET = "WIDTH_BUCKET"
    YEAR = "YEAR"


class Form(Enum):
    """How a function is written in SQL."""

    CALL = "NAME(x, ...)"
    INFIX = "x NAME y"
    CAST = "CAST(x AS NAME)"


@dataclass(frozen=True, slots=True)
class ScalarFacts:
    """The derived facts of a scalar: ``lower`` and ``upper`` where it is bounded, for a date as the
    numbers of days that `datetime.date.toordinal` counts.

    ``largest`` bounds the magnitude of all intermediate results in floating point, before the
    scalar is clamped to its range. Where large numbers cancel it is far larger than the range: in
    x + 1e30 - 1e30 it is about 1e30. ``constant`` is the value of a literal. Of exact
    numbers ``decimals`` is the number of digits after the point.
    """

    type: ColumnType
    lower: Fraction | None
    upper: Fraction | None
    can_be_null: bool
    largest: Fraction = Fraction(0)
    constant: Constant | None = field(default=None, compare=False)
    decimals: int | None = None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both bounds; refused if there are none."""
        if self.lower is None or self.upper is None:
            raise QueryRefused(
                "it has no declared lower and upper; its owner can declare them, or the question "
                "can name them: LEAST(GREATEST(x, lower), upper)"
            )
        return self.lower, self.upper


ArgumentFacts = Sequence[ScalarFacts]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The types that an argument may have. A constant is a literal; it is passed on to the
    function's meaning as a Python value."""

    types: tuple[ColumnType, ...]
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class ScalarRule:
    """One row.

    ``facts`` computes the facts of the result from those of the arguments, and raises
    `QueryRefused` with the reason if it can't. ``meaning`` makes the engine's expression from these
    facts and the arguments: expressions without NaN, texts in valid UTF-8, and constants. No row
    may make it fail. NaN becomes NULL and numbers are clamped to their bounds after it. ``of_key``
    is the same meaning for one value in Python; it derives keys from the keys of a column.
    """

    function: ScalarFunction
    takes: tuple[Parameter, ...]
    facts: Callable[[ArgumentFacts], ScalarFacts]
    meaning: Callable[..., Any]  # Any: Ibis expressions
    form: Form = Form.CALL
    optional: int = 0
    repeats: bool = False
    of_key: Callable[..., KeyValue] | None = None
    other_spellings: tuple[str, ...] = ()

    def argument(self, place: int) -> Parameter:
        """The argument at this place; the last one repeats."""
        return self.takes[min(place, len(self.takes) - 1)]

    def takes_this_many(self, count: int) -> bool:
        """Whether the function has this many arguments."""
        most = math.inf if self.repeats else len(self.takes)
        return len(self.takes) - self.optional <= count <= most


NUMERIC = ColumnType.INTEGER, ColumnType.NUMBER
NUMBERS = Parameter(NUMERIC)
TEXTS = Parameter((ColumnType.TEXT,))
DATES = Parameter((ColumnType.DATE,))
ANY = Parameter(tuple(ColumnType))
CONSTANT_NUMBER = Parameter(NUMERIC, is_constant=True)
CONSTANT_TEXT = Parameter((ColumnType.TEXT,), is_constant=True)


def number_facts(
    kind: ColumnType, lower: Fraction | int, upper: Fraction | int, *, can_be_null: bool
) -> ScalarFacts:
    """The facts of a bounded number; an integer that may need more than 63 bits is a number."""
    low, high = Fraction(lower), Fraction(upper)
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        raise QueryRefused("it could exceed 1e150; use smaller numbers")
    if largest > WHOLE:
        kind = ColumnType.NUMBER
    return ScalarFacts(kind, low, high, can_be_null, largest)


def whole_constant(given: ScalarFacts, name: str, least: int, most: int) -> int:
    """The value of a literal that must be a whole number within these ends."""
    value = given.constant
    if isinstance(value, Fraction) and value.denominator == 1 and least <= value <= most:
        return int(value)
    raise QueryRefused(f"{name} is a whole number from {least} to {most}")


def common_type(given: ArgumentFacts) -> ColumnType:
    """The one type of all values; of integers and other numbers, number."""
    kinds = {fact.type for fact in given}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= set(NUMERIC):
        return ColumnType.NUMBER
    raise QueryRefused(
        f"its values are of several types: {', '.join(sorted(kind.value for kind in kinds))}"
    )


def union_facts(given: ArgumentFacts, *, can_be_null: bool) -> ScalarFacts:
    """The facts of a value that is one of these."""
    kind = common_type(given)
    lowers, uppers = [fact.lower for fact in given], [fact.upper for fact in given]
    lower = None if None in lowers else min(end for end in lowers if end is not None)
    upper = None if None in uppers else max(end for end in uppers if end is not None)
    largest = max(abs(end) for end in (lower or Fraction(0), upper or Fraction(0)))
    return ScalarFacts(kind, lower, upper, can_be_null, largest)
