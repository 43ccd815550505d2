"""Converts the columns of a source to the declared types, each value by itself.

No value can make a conversion fail: a value that the declared type can't hold becomes NULL. The
types that can be converted are a closed list, which is checked before the charge. Each cast in
this file is tested on the extreme values of its type (`tests/query/test_conversion.py`), since
engines also fail in some casts that should return NULL.
"""

import datetime
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from discreet._unit import Unit
from discreet.query._engines._engine import local_day, microseconds, nanoseconds
from discreet.query._engines._spelling import (
    date_of_text,
    instant_of_text,
    number_text,
    plain_text,
    truth_of_text,
)
from discreet.query._facts._columns import Column, ColumnType

ENGINE_TYPES = {
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DATE: "date",
    ColumnType.INTEGER: "int64",
    ColumnType.NUMBER: "float64",
    ColumnType.TEXT: "string",
}

CONVERTIBLE: dict[ColumnType, tuple[ColumnType, ...]] = {
    ColumnType.BOOLEAN: (
        ColumnType.BOOLEAN,
        ColumnType.INTEGER,
        ColumnType.NUMBER,
        ColumnType.TEXT,
    ),
    ColumnType.DATE: (ColumnType.DATE, ColumnType.TEXT),
    ColumnType.INTEGER: (
        ColumnType.INTEGER,
        ColumnType.NUMBER,
        ColumnType.BOOLEAN,
        ColumnType.TEXT,
    ),
    ColumnType.NUMBER: (ColumnType.NUMBER, ColumnType.INTEGER, ColumnType.TEXT),
    ColumnType.TEXT: (ColumnType.TEXT,),
}

_DIGITS = 38  # of the engine's decimals
_DECIMALS = 18  # after the point, where a whole number is written with an exponent
_NAN = ibis.literal(float("nan"), "float64")
_FIRST_DAY, _LAST_DAY = datetime.date.min, datetime.date.max


def declarable(kind: Any) -> ColumnType | None:  # Any: a type of Arrow or Ibis, which ships none
    """The closest declarable type of a source's type, or ``None`` where it has no rule.

    Types have no rule where the engine can't read them, or fails on some of their values: decimals
    of 256 bits or of negative scale, durations, times, days counted in milliseconds, bytes, and all
    nested types. An Arrow type counts as the type that `read_as`
    returns for it.
    """
    if isinstance(kind, pa.DataType):
        return _of_arrow(kind)
    rules = (
        (lambda: kind.is_float16() or (kind.is_decimal() and not _is_held(kind)), None),
        (kind.is_boolean, ColumnType.BOOLEAN),
        (kind.is_integer, ColumnType.INTEGER),
        (kind.is_numeric, ColumnType.NUMBER),
        (kind.is_string, ColumnType.TEXT),
        (kind.is_date, ColumnType.DATE),
        (lambda: kind.is_timestamp() and kind.timezone is None, ColumnType.DATE),
    )
    return next((declarable for holds, declarable in rules if holds()), None)


def has_zone(kind: pa.DataType | None) -> bool:
    """Whether it is a type of timestamps with a time zone, which are moments in UTC."""
    return kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None


def without_zone(kind: pa.DataType) -> pa.DataType:
    """The type that an engine gets, which knows no zones: the zone of a session can't decide. A
    timestamp with a zone becomes its time in UTC."""
    return pa.timestamp(kind.unit) if has_zone(kind) else kind


def _of_arrow(kind: pa.DataType) -> ColumnType | None:
    read = read_as(kind)
    if read is None:
        return None
    read = without_zone(read)
    if pa.types.is_dictionary(read):
        read = read.value_type
    if read == pa.string_view():
        return ColumnType.TEXT
    try:
        (found,) = ibis.Schema.from_pyarrow(pa.schema([("x", read)])).types
    except (NotImplementedError, KeyError, TypeError, ValueError):  # Ibis doesn't know it
        return None
    return declarable(found)


def read_as(kind: pa.DataType) -> pa.DataType | None:
    """The Arrow type that a column is cast to, unchecked, before the engine reads it; ``None`` for
    a type that the engine fails on or truncates.

    If a decimal has more digits than its type, the engine reads memory that it never wrote, unless
    the type has 38 digits.
    """
    if pa.types.is_dictionary(kind):
        return kind if read_as(kind.value_type) == kind.value_type else None
    if pa.types.is_decimal(kind):
        is_read = kind.bit_width <= 128 and 0 <= kind.scale <= kind.precision
        return pa.decimal128(_DIGITS, kind.scale) if is_read else None
    if pa.types.is_float16(kind):
        return pa.float32()
    return None if pa.types.is_date64(kind) else kind  # the engine truncates it to 32-bit days


def _is_held(decimal: Any) -> bool:  # Any: Ibis ships no types
    precision, scale = decimal.precision, decimal.scale
    return precision is not None and scale is not None and 0 <= scale <= precision <= 38


def clamped(
    value: Any, lower: Any, upper: Any
) -> Any:  # Any: any numeric expression, literals of its type
    """The value moved into the range; NULL stays NULL."""
    return ibis.ifelse(value < lower, lower, ibis.ifelse(value > upper, upper, value))


def converted(raw: Any, column: Column) -> ir.Value:  # Any: a column of any type
    """The raw column converted to the declared type and clamped to its bounds; NULL where the type
    can't hold the value."""
    match column.type:
        case ColumnType.BOOLEAN:
            return _truth(raw)
        case ColumnType.DATE:
            return _bounded_day(raw, column)
        case ColumnType.TEXT:
            return raw
        case ColumnType.NUMBER:
            return _number(raw, column)
        case ColumnType.INTEGER:
            return _whole(raw, column)


def outcomes(raw: Any, column: Column) -> tuple[Any, Any]:  # Any: Ibis expressions
    """Two truth values: the declared type can't hold the source's value; it can. Both are false
    for NULL and NaN, which are no values."""
    held = converted(raw, column).notnull()
    there = raw.notnull()
    if raw.type().is_floating():
        there = there & ~ibis.coalesce(raw.isnan(), ibis.literal(value=False))
    return there & ~held, held


def beyond(raw: Any, column: Column) -> tuple[Any, Any]:  # Any: Ibis expressions
    """Two truth values: the value of a bounded column is less than its lower bound; it is more than
    its upper bound. Both are false for NULL, and for what is no number."""
    assert column.range is not None  # its callers check
    no = ibis.literal(value=False)
    if column.type is ColumnType.DATE:
        day = _day(raw, column)
        first, last = (ibis.literal(end, "date") for end in (column.lower, column.upper))
        return ibis.coalesce(day < first, no), ibis.coalesce(day > last, no)
    if column.type is ColumnType.INTEGER:
        value = _whole(raw, Column.integer(-(2**63), 2**63 - 1))
        lower, upper = (ibis.literal(int(end), "int64") for end in column.range)
    else:
        value = _float(raw)
        lower, upper = (ibis.literal(float(end), "float64") for end in column.range)
    return ibis.coalesce(value < lower, no), ibis.coalesce(value > upper, no)


def cast_to(kind: ColumnType, value: Any) -> Any:  # Any: an expression of a declared type
    """The value as another type, NULL where that can't hold it. Texts are read, and
    whole numbers, days and truth values are written, as in a declared column."""
    if kind is ColumnType.NUMBER:
        return _float(value) if not value.type().is_floating() else value
    if kind is ColumnType.TEXT:
        return value.cast("string")
    return converted(value, Column(kind))


def _truth(raw: Any) -> Any:  # Any: Ibis expressions
    if raw.type().is_boolean():
        return raw
    if raw.type().is_string():
        return truth_of_text(raw)
    if raw.type().is_decimal():  # by its digits: the float of 0.999… would be 1
        digits = _valid(raw).cast("string")
        is_one, is_zero = digits.re_search(r"^1(\.0*)?$"), digits.re_search(r"^0?(\.0*)?$")
    else:
        value = raw if raw.type().is_integer() else _float(raw)
        is_one, is_zero = value == 1, value == 0
    return ibis.cases(
        (is_one, ibis.literal(value=True)),
        (is_zero, ibis.literal(value=False)),
        else_=ibis.null("boolean"),
    )


def _day(raw: Any, column: Column) -> Any:  # Any: Ibis expressions
    """The day; NULL outside the years 1 to 9999, as infinite dates are."""
    kind = raw.type()
    day = date_of_text(raw, column.format) if kind.is_string() else raw.try_cast("date")
    day = _inside(day, _FIRST_DAY, _LAST_DAY)
    if column.zone is None:
        return day
    if kind.is_string():
        has_offset, moment = instant_of_text(raw)
        return ibis.ifelse(has_offset, _local_day(moment, column.zone), day)
    return _local_day(raw, column.zone) if kind.is_timestamp() else day


def _inside(day: Any, first: datetime.date, last: datetime.date) -> Any:  # Any: Ibis expressions
    inside = day.between(ibis.literal(first), ibis.literal(last))
    return ibis.ifelse(inside, day, ibis.null("date"))


def _local_day(moment: Any, zone: str) -> Any:  # Any: Ibis expressions
    """The day of a time in UTC in this zone. Times near the ends of all days are left out, and no
    zone is so far from UTC."""
    aside = datetime.timedelta(days=2)
    there = _inside(moment.try_cast("date"), _FIRST_DAY + aside, _LAST_DAY - aside).notnull()
    moment = ibis.ifelse(there, moment, ibis.null(moment.type())).try_cast("timestamp(6)")
    return local_day(moment, zone)


def _bounded_day(raw: Any, column: Column) -> Any:  # Any: Ibis expressions
    day = _day(raw, column)
    if column.lower is None or column.upper is None:
        return day
    return clamped(day, *(ibis.literal(end, "date") for end in (column.lower, column.upper)))


def _number(raw: Any, column: Column) -> Any:  # Any: Ibis expressions
    assert column.range is not None  # every number has bounds
    ends = [ibis.literal(float(end), "float64") for end in column.range]
    if column.decimals is None:
        return clamped(_float(raw), *ends)
    scale = 10.0**column.decimals
    inside = clamped(_float(raw), *ends)  # times the scale it is no larger than 2^50
    return clamped((inside * scale).round().cast("float64") / scale, *ends)


def _float(raw: Any) -> Any:  # Any: Ibis expressions
    """The nearest float, which may be infinite; NULL for NaN."""
    kind = raw.type()
    if kind.is_integer():
        return raw.cast("float64")
    if kind.is_string():
        raw = number_text(raw)
    elif kind.is_decimal():
        raw = _valid(raw)
    return raw.try_cast("float64").nullif(_NAN)


def _whole(raw: Any, column: Column) -> Any:  # Any: Ibis expressions
    """The nearest integer, halves rounded to even. Beyond 64 bits it is clamped to the bounds, or
    NULL if there are none."""
    kind = raw.type()
    if kind.is_string():
        inside = _whole_of_text(number_text(raw))
    elif kind.is_decimal():
        number = _valid(raw)
        inside = _whole_of_text(number.cast("string")) if kind.scale else number.try_cast("int64")
    else:
        inside = (_float(raw) if kind.is_floating() else raw).try_cast("int64")
    is_wide = not (kind.is_boolean() or kind.is_signed_integer())
    if column.range is None:
        return inside
    if is_wide:
        far, zero = _float(raw), ibis.literal(0, "int64")
        least, most = (ibis.literal(end, "int64") for end in (-(2**63), 2**63 - 1))
        beyond = ibis.cases((far >= 1, most), (far <= -1, least), (far.notnull(), zero))
        # a text with an exponent may have more digits than the engine's decimals
        inside = ibis.coalesce(inside, far.try_cast("int64"), beyond)
    lower, upper = (ibis.literal(int(end), "int64") for end in column.range)
    return clamped(inside, lower, upper)


def _whole_of_text(text: Any) -> Any:  # Any: Ibis expressions
    """The integer of a number's text, halves rounded to even. The engine rounds halves away from 0,
    so those after an even digit are cut off first. A text with an exponent is first written
    without it; where that needs more digits than decimals have, the nearest float is rounded."""
    plain = text.try_cast(f"decimal({_DIGITS}, {_DECIMALS})").cast("string")
    digits = ibis.ifelse(text.contains("e"), plain, text)
    whole = digits.re_replace(r"(^[+-]?|[02468])\.50*$", r"\1.0").try_cast("int64")
    return ibis.ifelse(digits.isnull(), text.try_cast("float64").try_cast("int64"), whole)


def _valid(decimal: Any) -> Any:  # Any: Ibis expressions
    """The decimal; NULL if it has more digits than its type, on which the engine fails."""
    kind = decimal.type()
    digits = "9" * (kind.precision - kind.scale) + "." + "9" * kind.scale
    least, most = (ibis.literal(f"{sign}{digits}").cast(kind) for sign in "-+")
    return ibis.ifelse((decimal >= least) & (decimal <= most), decimal, ibis.null(kind))


def id_of(table: ir.Table, unit: Unit) -> Any:  # Any: Ibis expressions
    """The unit's id in the rows of a table, or of a relation, which has one of several columns in
    one: an integer or a text, different for any two ids, and NULL if one of its columns is."""
    parts = id_parts(table, unit)
    if len(parts) > 1:
        return joint_id(parts)
    return id_text(parts[0]) if parts[0].type().is_floating() else identity(parts[0])


def id_parts(table: ir.Table, unit: Unit) -> list[Any]:  # Any: Ibis expressions
    """The columns of the unit's id in a table, or the one that a computed source has for them."""
    names = (unit.column,) if unit.column in table.columns else unit.columns
    return [table[name] for name in names]


def are_alike(columns: Sequence[Any]) -> bool:  # Any: Ibis expressions
    """Whether equal ids of these columns have the same `id_text`."""
    kinds = [raw.type() for raw in columns]
    plain = [kind.is_integer() or kind.is_string() or kind.is_floating() for kind in kinds]
    return all(plain) or len({str(kind) for kind in kinds}) == 1


def joint_id(columns: Sequence[Any]) -> Any:  # Any: Ibis expressions
    """The id of several columns as one text: for each its length, a colon and its text. So no two
    ids have the same text. It is NULL if a column's identity is."""
    texts = [id_text(raw) for raw in columns]
    known = reduce(operator.and_, (text.notnull() for text in texts))
    parts = (text.length().cast("string") + ibis.literal(":") + text for text in texts)
    return ibis.ifelse(known, reduce(operator.add, parts), ibis.null("string"))


def id_text(raw: Any) -> Any:  # Any: Ibis expressions
    """The id as a text, the same for equal ids of two tables: 7, 7.0 and '7' are one."""
    found = identity(raw)
    if raw.type().is_floating():
        near = raw.try_cast("int64")
        return ibis.ifelse(near.cast("float64") == raw, near.cast("string"), found)
    return found.cast("string")


def identity(raw: Any) -> Any:  # Any: an id column of any type
    """The id as a 64-bit integer or a text, different for any two ids of the column.

    It is NULL where the id is NaN, an infinite time, or beyond its type; 0.0 and -0.0 are the same
    id. Ids in text are compared as texts: "7" and "07" differ. Each byte of a text that is not
    plain ASCII is written as \\xFF, since an engine's windows over invalid UTF-8 can corrupt other
    texts.
    """
    kind = raw.type()
    if kind.is_integer() and not str(kind).endswith("uint64"):
        return raw.cast("int64")
    if kind.is_string():
        return plain_text(raw)
    if kind.is_timestamp():
        if kind.scale == 9:
            return nanoseconds(raw)
        return microseconds(raw.try_cast("timestamp(6)"))
    if kind.is_floating():
        raw = ibis.ifelse(raw.isnan(), ibis.null(kind), raw + 0.0)
    elif kind.is_decimal():
        raw = _valid(raw)
    return raw.cast("string")
