"""The meaning of each function, comparison and CASE in plain Python, for one row.

Texts are bytes here, since a source may hold texts that are not UTF-8. Nothing is shared with the
package but the classes of expressions.
"""

import datetime
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from discreet.query._expressions._expressions import (
    Arithmetic,
    Both,
    Case,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Operator,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._functions._scalar_rules import ScalarFunction

Value = Any  # None, bool, int, float, bytes or datetime.date: of any declared type
Values = Callable[[Scalar], Value]
_EXACT = Context(prec=400)


def meaning(scalar: Scalar, value: Values) -> Value:
    """The value of an expression in a row, from the values of its parts. Numbers are neither
    clamped nor converted to the type of the expression."""
    match scalar:
        case FunctionCall(function, arguments):
            return _call(function, [value(one) for one in arguments], arguments)
        case Case(branches, otherwise):
            for branch in branches:
                if truth(branch.condition, value):
                    return None if branch.value is None else value(branch.value)
            return None if otherwise is None else value(otherwise)
        case Truth(condition):
            return truth(condition, value)
        case Arithmetic(Operator.SUBTRACT, left, right):
            end, start = value(left), value(right)
            return None if end is None or start is None else (end - start).days
    raise NotImplementedError


def constant(literal: Literal) -> Value:
    """A literal's value as a row would hold it."""
    given = literal.value
    if isinstance(given, Fraction):
        return int(given) if given.denominator == 1 and abs(given) < 2**63 else float(given)
    return given.encode() if isinstance(given, str) else given


# --- conditions, with three values ---


def truth(condition: Condition, value: Values) -> bool | None:
    match condition:
        case Comparison(relation, left, right):
            return _compared(relation, left, right, value)
        case Membership(one, options):
            if value(one) is None:
                return None
            found = [
                _compared(
                    Relation.EQUAL, one, option, {one: value(one), option: constant(option)}.get
                )
                for option in options
            ]
            return None if None in found else any(found)
        case IsNull(one):
            return value(one) is None
        case Holds(one):
            held: bool | None = value(one)
            return held
        case Negation(inner):
            known = truth(inner, value)
            return None if known is None else not known
        case Both(one, other):
            return _conjunction(truth(one, value), truth(other, value))
        case Either(one, other):
            sides = [truth(side, value) for side in (one, other)]
            known = _conjunction(*(None if side is None else not side for side in sides))
            return None if known is None else not known


def _conjunction(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _compared(relation: Relation, left: Scalar, right: Scalar, value: Values) -> bool | None:
    """Literals are exact beside whole numbers; a whole number beside a float becomes one."""
    one, other = value(left), value(right)
    if one is None or other is None:
        return None
    if isinstance(left, Literal) and isinstance(left.value, Fraction) and type(other) is int:
        one = left.value
    elif isinstance(right, Literal) and isinstance(right.value, Fraction) and type(one) is int:
        other = right.value
    elif isinstance(one, float) or isinstance(other, float):
        one, other = float(one), float(other)
    holds: dict[Relation, bool] = {
        Relation.EQUAL: one == other,
        Relation.UNEQUAL: one != other,
        Relation.LESS: one < other,
        Relation.AT_MOST: one <= other,
        Relation.GREATER: one > other,
        Relation.AT_LEAST: one >= other,
    }
    return holds[relation]


# --- functions ---


def _call(function: ScalarFunction, given: list[Value], arguments: tuple[Scalar, ...]) -> Value:
    if function in (ScalarFunction.COALESCE, ScalarFunction.LEAST, ScalarFunction.GREATEST):
        there = [one for one in given if one is not None]
        if any(isinstance(one, float) for one in there):
            there = [float(one) for one in there]
        if not there:
            return None
        if function is ScalarFunction.COALESCE:
            return there[0]
        return min(there) if function is ScalarFunction.LEAST else max(there)
    if None in given:
        return None
    exact = [
        one.value if isinstance(one, Literal) else value
        for one, value in zip(arguments, given, strict=True)
    ]
    if function in _TEXTS:
        return _of_texts(function, given)
    if function in _DATES:
        return _DATES[function](*given)
    if function in _CASTS:
        return _CASTS[function](*given)
    return _NUMBERS[function](given[0], *exact[1:])


def _half_away(number: float | int) -> int:
    return int(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP, _EXACT))


def _round(number: float | int, digits: Fraction = Fraction(0)) -> float | int:
    if not digits:
        return _half_away(number)
    if digits > 0 and isinstance(number, int):
        return number
    scale = float(10 ** abs(int(digits)))
    scaled = float(number) * scale if digits > 0 else float(number) / scale
    if abs(scaled) >= 2**53:
        return float(number)
    return _half_away(scaled) / scale if digits > 0 else _half_away(scaled) * scale


def _remainder(number: float | int, size: Fraction) -> float | int:
    if isinstance(number, int) and size.denominator == 1:
        return int(math.copysign(1, number)) * (abs(number) % abs(int(size)))
    return math.fmod(number, abs(float(size)))


def _bucket(number: float | int, low: Fraction, high: Fraction, count: Fraction) -> int:
    bottom, top, bins = float(low), float(high), int(count)
    if number < bottom:
        return 0
    if number >= top:
        return bins + 1
    return min(math.floor((float(number) - bottom) / ((top - bottom) / bins)) + 1, bins)


def _power(number: Value, power: Value) -> Value:
    is_whole = float(power).is_integer()
    return float(number) ** float(power) if is_whole or number >= 0 else None


_NUMBERS: dict[ScalarFunction, Callable[..., Value]] = {
    ScalarFunction.ABS: abs,
    ScalarFunction.CEIL: math.ceil,
    ScalarFunction.FLOOR: math.floor,
    ScalarFunction.ROUND: _round,
    ScalarFunction.SQRT: lambda x: None if x < 0 else math.sqrt(x),
    ScalarFunction.LN: lambda x: None if x <= 0 else math.log(x),
    ScalarFunction.EXP: math.exp,
    ScalarFunction.MOD: _remainder,
    ScalarFunction.POWER: _power,
    ScalarFunction.SIGN: lambda x: int(x > 0) - int(x < 0),
    ScalarFunction.WIDTH_BUCKET: _bucket,
}


def _of_texts(function: ScalarFunction, given: list[Value]) -> Value:
    """NULL for a text that is not UTF-8, or longer than 4 096 bytes."""
    try:
        values = [one.decode() if isinstance(one, bytes) else one for one in given]
    except UnicodeDecodeError:
        return None
    if any(isinstance(one, bytes) and len(one) > 4096 for one in given):
        return None
    found = _TEXTS[function](*values)
    return found.encode() if isinstance(found, str) else found


def _like(text: str, pattern: str) -> bool:
    """By the places in the text that the pattern reaches, sign by sign."""
    reached = {0}
    for sign in pattern:
        if sign == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(text) and sign in ("_", text[at])}
    return len(text) in reached


_TEXTS: dict[ScalarFunction, Callable[..., Value]] = {
    ScalarFunction.CONCAT: lambda one, other: one + other,
    ScalarFunction.LENGTH: len,
    ScalarFunction.LIKE: _like,
    ScalarFunction.LOWER: lambda text: "".join(
        sign.lower() if len(sign.lower()) == 1 else "i" for sign in text
    ),
    ScalarFunction.SUBSTR: lambda text, first, count=10**6: text[first - 1 : first - 1 + count],
    ScalarFunction.TRIM: lambda text: text.strip(" "),
    ScalarFunction.UPPER: lambda text: "".join(
        sign.upper() if len(sign.upper()) == 1 else {"ß": "ẞ"}.get(sign, sign) for sign in text
    ),
}


def _truncated(unit: bytes, day: datetime.date) -> datetime.date:
    match unit.decode():
        case "year":
            return datetime.date(day.year, 1, 1)
        case "quarter":
            return datetime.date(day.year, 1 + (day.month - 1) // 3 * 3, 1)
        case "month":
            return datetime.date(day.year, day.month, 1)
        case "week":
            return day - datetime.timedelta(days=day.isoweekday() - 1)
    return day


_DATES: dict[ScalarFunction, Callable[..., Value]] = {
    ScalarFunction.DATE_TRUNC: _truncated,
    ScalarFunction.DAY: lambda day: day.day,
    ScalarFunction.DAYOFYEAR: lambda day: (day - datetime.date(day.year, 1, 1)).days + 1,
    ScalarFunction.ISODOW: lambda day: (day.toordinal() - 1) % 7 + 1,
    ScalarFunction.MONTH: lambda day: day.month,
    ScalarFunction.QUARTER: lambda day: 1 + (day.month - 1) // 3,
    ScalarFunction.YEAR: lambda day: day.year,
}


_DIGITS = re.compile(rb"[+-]?[0-9]+(\.[0-9]*)?(e[0-9]+)?")


def _to_integer(value: Value) -> int | None:
    if isinstance(value, bytes):
        if not _DIGITS.fullmatch(value):
            return None
        value = Decimal(value.decode())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if abs(value) >= 2**64:
        return None
    whole = round(value) if not isinstance(value, bool) else int(value)
    return whole if -(2**63) <= whole < 2**63 else None


def _to_number(value: Value) -> float | None:
    if isinstance(value, bytes) and not _DIGITS.fullmatch(value):
        return None
    return float(value)


def _to_text(value: Value) -> Value:
    if isinstance(value, bytes):
        return value
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode()


def _to_date(value: Value) -> datetime.date | None:
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value.decode())
    except ValueError:
        return None


_TRUTHS: dict[bytes, bool] = {
    **dict.fromkeys((b"true", b"t", b"yes", b"y", b"1", b"1.0"), True),
    **dict.fromkeys((b"false", b"f", b"no", b"n", b"0", b"0.0"), False),
}
_CASTS: dict[ScalarFunction, Callable[..., Value]] = {
    ScalarFunction.TO_BOOLEAN: lambda value: (
        _TRUTHS.get(value.strip().lower()) if isinstance(value, bytes) else value
    ),
    ScalarFunction.TO_DATE: _to_date,
    ScalarFunction.TO_INTEGER: _to_integer,
    ScalarFunction.TO_NUMBER: _to_number,
    ScalarFunction.TO_TEXT: _to_text,
}
