"""The forms of values in Spark's SQL, see `_closed_compiler`. No row can make one fail.

`_spark_session` turns ANSI mode off, so that a cast or a quotient that has no result is NULL. Then
integers of 64 bits wrap, so sums and what follows from them are decimals of 38 digits.
"""

import datetime
from decimal import Decimal
from typing import Any

import ibis.expr.operations as ops
from ibis.common.exceptions import UnsupportedOperationError

from discreet.query._engines import _spark_texts as texts
from discreet.query._engines._closed_compiler import constant

AS_FLOAT = "CAST(@0 AS DOUBLE)"
_HALF = "CAST('0.49999999999999994' AS DOUBLE)"  # the largest float below a half
_LEAST, _END = "CAST('-9223372036854775808' AS DOUBLE)", "CAST('9223372036854775808' AS DOUBLE)"
_WHOLE = "CAST(@{} AS DECIMAL(38, 0))"
_LEFT, _RIGHT = _WHOLE.format(0), f"nullif({_WHOLE.format(1)}, 0)"

_BLANKS = texts.quoted(" \t\n\r\v\f")

# the functions of `_engine` that are the same for all arguments
FUNCTIONS = {
    "discreet_quotient": (  # a decimal's own quotient is rounded, so its remainder goes first
        f"CAST(({_LEFT} - {_LEFT} % {_RIGHT}) / {_RIGHT} AS DECIMAL(38, 0))"
    ),
    "discreet_share": (
        f"CAST((({_LEFT} * @1 + @2) - ({_LEFT} * @1 + @2) % nullif(@3, 0)) / nullif(@3, 0) "
        "AS BIGINT)"
    ),
    "discreet_bytes": "CAST(@0 AS BINARY)",
    "discreet_text": "(CASE WHEN octet_length(@0) <= 4096 AND is_valid_utf8(@0) THEN @0 END)",
    "discreet_key": "(CASE WHEN octet_length(@0) <= 1024 THEN @0 END)",
    "discreet_md5": "md5(@0)",
    "discreet_microseconds": "unix_micros(CAST(@0 AS TIMESTAMP))",
    "discreet_instant": texts.INSTANT,
    "discreet_local_day": "CAST(convert_timezone('UTC', @1, @0) AS DATE)",
}

# operations that have one form for all types
FORMS = {
    "Abs": "abs(@0)",
    "Add": "(@0 + @1)",
    "And": "(@0 AND @1)",
    "Between": "(@0 BETWEEN @1 AND @2)",
    "Ceil": "CAST(ceil(@0) AS BIGINT)",
    "DateDelta": "CAST(datediff(@1, @2) AS BIGINT)",
    "DayOfWeekIndex": "CAST(weekday(@0) AS BIGINT)",
    "EndsWith": "endswith(@0, @1)",
    "Equals": "(@0 = @1)",
    "Exp": "exp(@0)",
    "ExtractDay": "CAST(day(@0) AS BIGINT)",
    "ExtractDayOfYear": "CAST(dayofyear(@0) AS BIGINT)",
    "ExtractMonth": "CAST(month(@0) AS BIGINT)",
    "ExtractQuarter": "CAST(quarter(@0) AS BIGINT)",
    "ExtractYear": "CAST(year(@0) AS BIGINT)",
    "Floor": "CAST(floor(@0) AS BIGINT)",
    "Greater": "(@0 > @1)",
    "GreaterEqual": "(@0 >= @1)",
    "IfElse": "(CASE WHEN @0 THEN @1 ELSE @2 END)",
    "IsNan": "isnan(@0)",
    "IsNull": "(@0 IS NULL)",
    "Less": "(@0 < @1)",
    "LessEqual": "(@0 <= @1)",
    "Ln": "ln(@0)",
    "Negate": "(- @0)",
    "Not": "(NOT @0)",
    "NotEquals": "(@0 <> @1)",
    "NotNull": "(@0 IS NOT NULL)",
    "NullIf": "nullif(@0, @1)",
    "Or": "(@0 OR @1)",
    "Round": (
        f"CAST(CASE WHEN @0 < 0 THEN ceil(@0 - {_HALF}) ELSE floor(@0 + {_HALF}) END AS BIGINT)"
    ),
    "Sqrt": "sqrt(@0)",
    "StringContains": "contains(@0, @1)",
    "StringLength": "CAST(char_length(@0) AS BIGINT)",
    "StringReplace": "replace(@0, @1, @2)",
    "Strip": f"trim(BOTH {_BLANKS} FROM @0)",
    "Subtract": "(@0 - @1)",
    "Substring": "substring(@0, CAST(@1 + 1 AS INT), CAST(@2 AS INT))",
}


def summed(kind: Any) -> str:  # Any: a type of Ibis
    """A sum; one of whole numbers of 64 bits as a decimal, since it can exceed 64 bits."""
    if str(kind).endswith("int32"):
        return "sum(CAST(@0 AS INT))"
    return f"sum({_WHOLE.format(0)})" if kind.is_integer() else "sum(@0)"


def product(left: Any, right: Any, known: float | None) -> str:  # Any: types of Ibis
    """The product of two numbers."""
    del left, right, known
    return "(@0 * @1)"


def quotient(known: float | None) -> str:
    """The quotient of two floats; NULL by 0."""
    del known
    return "(@0 / @1)"


def remainder(left: Any, right: Any, known: float | None) -> str:  # Any: types of Ibis
    """The remainder, with the sign of the dividend."""
    del left, right, known
    return "(@0 % @1)"


def power(exponent: float) -> str:
    """A power of a float."""
    return f"power(@0, CAST('{exponent!r}' AS DOUBLE))"


def truncated(unit: str) -> str:
    """The first day of a year, quarter, month or week, or the day."""
    day = "CAST(@0 AS DATE)"
    first = day if unit == "day" else f"trunc({day}, '{unit}')"
    return f"CAST({first} AS TIMESTAMP_NTZ)"


def literal(value: object, kind: Any) -> str:  # Any: a type of Ibis
    """A constant with its type."""
    if value is None:
        return "NULL" if kind.is_null() else f"CAST(NULL AS {type_name(kind)})"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return texts.quoted(value)
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE'{value.isoformat()}'"
        case int() | Decimal():
            return f"CAST('{value}' AS {type_name(kind)})"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
    raise UnsupportedOperationError(f"a constant of the type {type(value).__name__}")


def type_name(kind: Any) -> str:  # Any: a type of Ibis
    """Spark's name of a type."""
    family = _family(kind)
    if family == "DECIMAL":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if family == "other":
        raise UnsupportedOperationError(f"the type {kind}")
    return family


def cast_of(node: Any) -> str:  # Any: a cast of Ibis
    """A cast of a value; NULL where the target can't hold it."""
    given = node.arg
    if isinstance(given, ops.StringConcat) and constant(given.arg[0]) == "0x":
        return "CAST(conv(substring(@0, 3), 16, 10) AS BIGINT)"
    return _cast(given.dtype, node.to, is_constant=isinstance(given, ops.Literal))


# Java writes 1.0E16 and 1.0E-5, the embedded engine 1e+16 and 1e-05, and others in full
_JAVA = "CAST(@0 AS STRING)"
_DIGITS = f"replace(regexp_extract({_JAVA}, '^-?([0-9.]+)', 1), '.', '')"
_MANTISSA = f"regexp_replace({_DIGITS}, '0+$', '')"
_EXPONENT = f"coalesce(CAST(regexp_extract({_JAVA}, 'E(-?[0-9]+)', 1) AS INT), 0)"
_SIGN = f"regexp_extract({_JAVA}, '^(-?)', 1)"
_TEXT_OF_FLOAT = (
    "(CASE WHEN isnan(@0) THEN 'nan' WHEN abs(@0) = CAST('Infinity' AS DOUBLE) "
    f"THEN concat({_SIGN}, 'inf') "
    f"WHEN {_JAVA} IN ('4.9E-324', '-4.9E-324') THEN concat({_SIGN}, '5e-324') "
    f"WHEN instr({_JAVA}, 'E') = 0 THEN {_JAVA} "
    f"WHEN {_EXPONENT} = -4 THEN concat({_SIGN}, '0.000', {_MANTISSA}) "
    f"WHEN {_EXPONENT} BETWEEN 1 AND 15 THEN concat({_SIGN}, "
    f"substring(rpad({_MANTISSA}, 17, '0'), 1, {_EXPONENT} + 1), '.', "
    f"coalesce(nullif(substring({_MANTISSA}, {_EXPONENT} + 2), ''), '0')) "
    f"ELSE concat({_SIGN}, substring({_MANTISSA}, 1, 1), "
    f"CASE WHEN length({_MANTISSA}) > 1 THEN concat('.', substring({_MANTISSA}, 2)) ELSE '' END, "
    f"CASE WHEN {_EXPONENT} < 0 THEN 'e-' ELSE 'e+' END, "
    f"lpad(abs({_EXPONENT}), greatest(2, length(abs({_EXPONENT}))), '0')) END)"
)
_TEXT_OF_DATE = (  # the last days stand for infinite ones in other engines
    f"(CASE WHEN unix_date(@0) = {2**31 - 1} THEN 'infinity' "
    f"WHEN unix_date(@0) = {1 - 2**31} THEN '-infinity' "
    "WHEN year(@0) < 1 THEN concat(lpad(1 - year(@0), 4, '0'), "
    "regexp_extract(CAST(@0 AS STRING), '(-[0-9]{2}-[0-9]{2})$', 1), ' (BC)') "
    "ELSE replace(CAST(@0 AS STRING), '+', '') END)"
)


def _text_of_decimal(scale: int) -> str:
    """A decimal in full; Java writes small ones as 1E-7."""
    digits = f"lpad({_DIGITS}, {scale}, '0')"
    number = (
        f"(CASE WHEN instr({_JAVA}, 'E') > 0 THEN concat({_SIGN}, '0.', {digits}) ELSE {_JAVA} END)"
    )
    return f"replace({number}, '0.', '.')" if scale == 38 else number


_PLAIN_CASTS = {
    *(("BIGINT", other) for other in ("DOUBLE", "DECIMAL", "STRING")),
    *(("DECIMAL", other) for other in ("DECIMAL", "DOUBLE")),
    *(("BOOLEAN", "STRING"), ("BOOLEAN", "BIGINT")),
    *(("DATE", "TIMESTAMP_NTZ"), ("TIMESTAMP_NTZ", "DATE")),
}
_OTHER_CASTS = {
    ("DOUBLE", "BIGINT"): (
        f"(CASE WHEN @0 >= {_LEAST} AND @0 < {_END} THEN CAST(rint(@0) AS BIGINT) END)"
    ),
    ("DECIMAL", "BIGINT"): (
        f"(CASE WHEN round(@0) BETWEEN {texts.INT64} THEN CAST(round(@0) AS BIGINT) END)"
    ),
    ("DOUBLE", "STRING"): _TEXT_OF_FLOAT,
    ("DATE", "STRING"): _TEXT_OF_DATE,
    ("BINARY", "STRING"): texts.OF_BYTES,
    ("STRING", "BIGINT"): texts.WHOLE,
    ("STRING", "DOUBLE"): texts.FLOAT,
    ("STRING", "DATE"): texts.DAY,
}


def _cast(source: Any, target: Any, *, is_constant: bool) -> str:  # Any: types of Ibis
    pair = _family(source), _family(target)
    if pair[0] == pair[1] and pair[0] != "DECIMAL":
        return "@0"  # a sum of whole numbers stays a decimal
    if is_constant and pair[0] == "STRING":
        return f"CAST(@0 AS {type_name(target)})"
    if pair == ("STRING", "DECIMAL"):
        return texts.decimal(target.precision, target.scale)
    if pair == ("DECIMAL", "STRING"):
        return _text_of_decimal(source.scale)
    if pair in _PLAIN_CASTS:
        return f"CAST(@0 AS {type_name(target)})"
    if pair in _OTHER_CASTS:
        return _OTHER_CASTS[pair]
    raise UnsupportedOperationError(f"a cast of {source} to {target}")


def _family(kind: Any) -> str:  # Any: a type of Ibis
    names = (
        (kind.is_boolean, "BOOLEAN"),
        (kind.is_integer, "BIGINT"),
        (kind.is_floating, "DOUBLE"),
        (kind.is_decimal, "DECIMAL"),
        (kind.is_string, "STRING"),
        (kind.is_binary, "BINARY"),
        (kind.is_date, "DATE"),
        (kind.is_timestamp, "TIMESTAMP_NTZ"),
    )
    return next((name for holds, name in names if holds()), "other")
