"""From the columns of a source to the declared types, each value by itself.

No value can make a conversion fail: what the declared type can't hold becomes NULL. Which types of
a source can be converted at all is a closed list, and is checked before anything is charged.
"""

from typing import Any

import ibis
import ibis.expr.types as ir

from discreet.query.columns import Column, ColumnType

ENGINE_TYPES = {
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DATE: "date",
    ColumnType.INTEGER: "int64",
    ColumnType.NUMBER: "float64",
    ColumnType.TEXT: "string",
}

CONVERTIBLE: dict[ColumnType, tuple[ColumnType, ...]] = {
    ColumnType.BOOLEAN: (ColumnType.BOOLEAN, ColumnType.INTEGER, ColumnType.TEXT),
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


@ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
def _bytes(text: str) -> bytes:  # type: ignore[empty-body]  # the engine's own
    """Of a text, whatever they are."""


def declarable(kind: Any) -> ColumnType | None:  # Any: Ibis ships no types
    """Types that some value could make an engine fail on have no rule: decimals of more than 38
    digits, half floats, and timestamps with a zone or in units that are converted first."""
    rules = (
        (lambda: kind.is_float16() or (kind.is_decimal() and (kind.precision or 39) > 38), None),
        (kind.is_boolean, ColumnType.BOOLEAN),
        (kind.is_integer, ColumnType.INTEGER),
        (kind.is_numeric, ColumnType.NUMBER),
        (kind.is_string, ColumnType.TEXT),
        (kind.is_date, ColumnType.DATE),
        (lambda: kind.is_timestamp() and _is_plain(kind), ColumnType.DATE),
    )
    return next((declarable for holds, declarable in rules if holds()), None)


def _is_plain(timestamp: Any) -> bool:  # Any: Ibis ships no types
    return timestamp.timezone is None and timestamp.scale in (6, 9)


def clamped(
    value: Any, lower: Any, upper: Any
) -> Any:  # Any: any numeric expression, literals of its type
    """The value moved into the range; NULL stays NULL."""
    return ibis.ifelse(value < lower, lower, ibis.ifelse(value > upper, upper, value))


def converted(raw: Any, column: Column) -> ir.Value:  # Any: a column of any type
    """The raw column converted to the declared type, clamped where it has bounds; NULL for what
    the type can't hold."""
    if column.type.is_numeric:
        return _numeric(raw, column)
    if raw.type().is_timestamp() and column.type is ColumnType.DATE:
        return raw.date()
    wanted = ENGINE_TYPES[column.type]
    return raw if raw.type().is_boolean() or raw.type().is_date() else raw.try_cast(wanted)


def _numeric(raw: Any, column: Column) -> ir.Value:  # Any: a column of any type
    if not raw.type().is_integer():
        raw = raw.try_cast("float64")
        raw = ibis.ifelse(raw.isnan(), ibis.null("float64"), raw)
    elif column.type is ColumnType.NUMBER:
        raw = raw.cast("float64")
    if column.lower is None or column.upper is None:
        return raw.try_cast("int64")
    is_whole = column.type is ColumnType.INTEGER
    lower, upper = (int(end) if is_whole else float(end) for end in (column.lower, column.upper))
    if not is_whole:
        return clamped(raw, ibis.literal(lower, "float64"), ibis.literal(upper, "float64"))
    inside = ibis.coalesce(raw.try_cast("int64"), ibis.literal(lower, "int64"))
    return ibis.cases(
        (raw.isnull(), ibis.null("int64")),
        (raw < lower, ibis.literal(lower, "int64")),
        (raw > upper, ibis.literal(upper, "int64")),
        else_=clamped(inside, lower, upper),
    )


def identity(raw: Any) -> Any:  # Any: an id column of any type
    """The id, NULL where it is NaN; whole numbers of 64 bits as they are, all else as text. In
    texts each byte that is no plain ASCII is written out as \\xFF, since windows over texts that
    are no UTF-8 make others of the texts beside them (DuckDB 2.0)."""
    kind = raw.type()
    if kind.is_integer() and not str(kind).endswith("uint64"):
        return raw.cast("int64")
    if kind.is_string():
        return _bytes(raw).cast("string")
    if kind.is_floating():
        raw = ibis.ifelse(raw.isnan(), ibis.null(kind), raw + 0.0)  # -0.0 and 0.0 are one id
    return raw.cast("string")
