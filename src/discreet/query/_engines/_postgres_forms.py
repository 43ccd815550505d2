"""The forms of values in PostgreSQL's SQL. No form raises an error, whatever the row holds.

PostgreSQL raises an error where other engines return NULL or an infinity: products that underflow,
casts of texts, numbers out of range. So each form tests its arguments first. ``@0`` stands for the
first argument. A form may repeat it, since `_repeated_values` computes repeated values once.
"""

import datetime
from decimal import Decimal
from typing import Any

import ibis.expr.operations as ops
from ibis.common.exceptions import UnsupportedOperationError

from discreet.query._engines import _postgres_texts as texts
from discreet.query._engines._closed_compiler import constant

_LEAST_MAGNITUDE = "1e-290"  # products and quotients of a smaller magnitude are 0
_HALF = (
    "'0.49999999999999994'::float8"  # the largest below a half: so halves, and no less, round up
)
_LEAST, _END = "'-9223372036854775808'::float8", "'9223372036854775808'::float8"

# the functions of `_engine` that are the same for all arguments
FUNCTIONS = {
    "discreet_quotient": "div(@0::numeric, nullif(@1, 0)::numeric)",
    "discreet_share": "div(@0::numeric * @1 + @2, nullif(@3, 0)::numeric)::int8",
    "discreet_bytes": "convert_to(@0, 'UTF8')",
    "discreet_text": "(CASE WHEN octet_length(@0) <= 4096 THEN @0 END)",
    "discreet_key": "(CASE WHEN octet_length(@0) <= 1024 THEN @0 END)",
    "discreet_md5": "md5(@0)",
    "discreet_microseconds": (
        f"(CASE WHEN extract(epoch FROM @0) * 1000000 BETWEEN {texts.INT64} "
        "THEN (extract(epoch FROM @0) * 1000000)::int8 END)"
    ),
    "discreet_instant": texts.INSTANT,
    "discreet_local_day": "((@0 AT TIME ZONE 'UTC') AT TIME ZONE @1)::date",
}

# operations that have one form for all types
FORMS = {
    "Abs": "abs(@0)",
    "Add": "(@0 + @1)",
    "And": "(@0 AND @1)",
    "Between": "(@0 BETWEEN @1 AND @2)",
    "Ceil": "ceil(@0)::int8",
    "DateDelta": "(@1 - @2)::int8",
    "DayOfWeekIndex": "(extract(isodow FROM @0) - 1)::int8",
    "EndsWith": "(right(@0, char_length(@1)) = @1)",
    "Equals": "(@0 = @1)",
    "Exp": "(CASE WHEN @0 > -745 THEN exp(@0) WHEN @0 <= -745 THEN 0 END)",
    "ExtractDay": "extract(day FROM @0)::int8",
    "ExtractDayOfYear": "extract(doy FROM @0)::int8",
    "ExtractMonth": "extract(month FROM @0)::int8",
    "ExtractQuarter": "extract(quarter FROM @0)::int8",
    "ExtractYear": "extract(year FROM @0)::int8",
    "Floor": "floor(@0)::int8",
    "Greater": "(@0 > @1)",
    "GreaterEqual": "(@0 >= @1)",
    "IfElse": "(CASE WHEN @0 THEN @1 ELSE @2 END)",
    "IsNan": "(@0 = 'NaN'::float8)",
    "IsNull": "(@0 IS NULL)",
    "Less": "(@0 < @1)",
    "LessEqual": "(@0 <= @1)",
    "Ln": "(CASE WHEN @0 > 0 THEN ln(@0) END)",
    "Negate": "(- @0)",
    "Not": "(NOT @0)",
    "NotEquals": "(@0 <> @1)",
    "NotNull": "(@0 IS NOT NULL)",
    "NullIf": "nullif(@0, @1)",
    "Or": "(@0 OR @1)",
    "Round": f"trunc(@0 + CASE WHEN @0 < 0 THEN -{_HALF} ELSE {_HALF} END)::int8",
    "Sqrt": "(CASE WHEN @0 >= 0 THEN sqrt(@0) END)",
    "StringContains": "(strpos(@0, @1) > 0)",
    "StringLength": "char_length(@0)::int8",
    "StringReplace": "replace(@0, @1, @2)",
    "Strip": r"btrim(@0, E' \t\n\r\v\f')",
    "Subtract": "(@0 - @1)",
    "Substring": "substr(@0, (@1 + 1)::int4, @2::int4)",
}

AS_FLOAT = "@0::float8"


def summed(kind: Any) -> str:  # Any: a type of Ibis
    """A sum. One of integers of 32 bits has 64, and takes half the time."""
    return "sum(@0::int4)" if str(kind).endswith("int32") else "sum(@0)"


_PRODUCT = (
    "(CASE WHEN abs(@0) >= 1 OR abs(@1) >= 1 THEN @0 * @1 "
    f"WHEN abs(@1) >= {_LEAST_MAGNITUDE} / nullif(abs(@0), 0) THEN @0 * @1 "
    "WHEN @0 IS NOT NULL AND @1 IS NOT NULL THEN 0 END)"
)
_QUOTIENT = (
    "(CASE WHEN @1 = 0 THEN NULL WHEN abs(@1) <= 1 THEN @0 / @1 "
    f"WHEN abs(@0) >= abs(@1) * {_LEAST_MAGNITUDE} THEN @0 / @1 "
    "WHEN @0 IS NOT NULL AND @1 IS NOT NULL THEN 0 END)"
)


def product(left: Any, right: Any, constant: float | None) -> str:  # Any: types of Ibis
    """The product of two numbers; of floats, 0 where it is too small."""
    is_large = constant is not None and abs(constant) >= 1
    return _PRODUCT if left.is_floating() and right.is_floating() and not is_large else "(@0 * @1)"


def quotient(constant: float | None) -> str:
    """The quotient of two floats, 0 where it is too small."""
    is_small = constant is not None and 0 < abs(constant) <= 1
    return "(@0 / @1)" if is_small else _QUOTIENT


def remainder(left: Any, right: Any, constant: float | None) -> str:  # Any: types of Ibis
    """The remainder of whole numbers, with the sign of the dividend."""
    if not (left.is_integer() and right.is_integer()):
        raise UnsupportedOperationError("remainders of numbers that aren't whole")
    return "(@0 % @1)" if constant else "(@0 % nullif(@1, 0))"


def power(exponent: float) -> str:
    """A power of a float, 0 where it is too small."""
    if exponent == 0:
        return "(CASE WHEN @0 IS NOT NULL THEN 1::float8 END)"
    size = "abs(@0)" if exponent == int(exponent) else "@0"
    edge = repr(10.0 ** max(-300.0, min(300.0, -290.0 / exponent)))
    holds = f"{size} >= {edge}" if exponent > 0 else f"{size} <= {edge} AND @0 <> 0"
    return (
        f"(CASE WHEN {holds} THEN power(@0, {exponent!r}::float8) WHEN @0 IS NOT NULL THEN 0 END)"
    )


def truncated(unit: str) -> str:
    """The first moment of a year, quarter, month, week or day."""
    return f"date_trunc('{unit}', @0)"


def literal(value: object, kind: Any) -> str:  # Any: a type of Ibis
    """A constant with its type."""
    if value is None:
        return "NULL" if kind.is_null() else f"NULL::{type_name(kind)}"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return f"'\\x{value.hex()}'::bytea"
        case str():
            return f"{texts.quoted(value)}::text"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"'{value.isoformat()}'::date"
        case int() | Decimal():
            return f"'{value}'::{type_name(kind)}"
        case float():
            return f"'{value!r}'::float8"
    raise UnsupportedOperationError(f"a constant of the type {type(value).__name__}")


def type_name(kind: Any) -> str:  # Any: a type of Ibis
    """PostgreSQL's name of a type."""
    family = _family(kind)
    if family == "numeric":
        return f"numeric({kind.precision}, {kind.scale})"
    if family == "other":
        raise UnsupportedOperationError(f"the type {kind}")
    return family


def cast_of(node: Any) -> str:  # Any: a cast of Ibis
    """A cast of a value. It can't fail for a constant, or for hexadecimal digits after ``0x``."""
    given = node.arg
    is_hex = isinstance(given, ops.StringConcat) and constant(given.arg[0]) == "0x"
    return _cast(given.dtype, node.to, is_constant=is_hex or isinstance(given, ops.Literal))


# as the embedded engine writes floats: 3.0, 0.1, 1e+16
_TEXT_OF_FLOAT = (
    "(CASE WHEN @0 IN ('NaN'::float8, 'Infinity'::float8, '-Infinity'::float8) "
    "THEN replace(lower(@0::text), 'infinity', 'inf') WHEN abs(@0) >= 1e16 THEN @0::text "
    "WHEN @0 = 0 THEN CASE WHEN @0::text = '-0' THEN '-0.0' ELSE '0.0' END "
    "WHEN @0 = trunc(@0) THEN @0::int8::text || '.0' "
    "WHEN abs(@0) >= 1e15 THEN @0::text::numeric::text ELSE @0::text END)"
)

_PLAIN_CASTS = {
    *(("int8", other) for other in ("float8", "numeric", "text")),
    *(("numeric", other) for other in ("numeric", "float8", "text")),
    *(("bool", "text"), ("date", "timestamp"), ("timestamp", "date")),
}
_OTHER_CASTS = {
    ("bool", "int8"): "@0::int4::int8",
    ("float8", "int8"): f"(CASE WHEN @0 >= {_LEAST} AND @0 < {_END} THEN @0::int8 END)",
    ("numeric", "int8"): f"(CASE WHEN round(@0) BETWEEN {texts.INT64} THEN round(@0)::int8 END)",
    ("float8", "text"): _TEXT_OF_FLOAT,
    ("date", "text"): "replace(@0::text, ' BC', ' (BC)')",
    ("bytea", "text"): texts.OF_BYTES,
    ("text", "int8"): texts.WHOLE,
    ("text", "float8"): texts.FLOAT,
    ("text", "date"): texts.DAY,
}


def _cast(source: Any, target: Any, *, is_constant: bool) -> str:  # Any: types of Ibis
    """A cast; NULL where the target can't hold the value."""
    pair = _family(source), _family(target)
    if pair[0] == pair[1] and pair[0] != "numeric":
        return "@0"
    if is_constant and pair[0] == "text":
        return f"@0::{type_name(target)}"
    if pair == ("text", "numeric"):
        return texts.decimal(target.precision, target.scale)
    if pair == ("numeric", "text") and source.scale == 38:
        return "replace(@0::text, '0.', '.')"  # as the embedded engine writes it
    if pair in _PLAIN_CASTS:
        return f"@0::{type_name(target)}"
    if pair in _OTHER_CASTS:
        return _OTHER_CASTS[pair]
    raise UnsupportedOperationError(f"a cast of {source} to {target}")


def _family(kind: Any) -> str:  # Any: a type of Ibis
    names = (
        (kind.is_boolean, "bool"),
        (kind.is_integer, "int8"),
        (kind.is_floating, "float8"),
        (kind.is_decimal, "numeric"),
        (kind.is_string, "text"),
        (kind.is_binary, "bytea"),
        (kind.is_date, "date"),
        (kind.is_timestamp, "timestamp"),
    )
    return next((name for holds, name in names if holds()), "other")
