"""Reads the entry of a column in ``discreet.toml``."""

import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from discreet._exact import fraction
from discreet.errors import InvalidArgument
from discreet.query._facts._columns import Column, ColumnType, KeyValue, fits
from discreet.query._toml._located_toml import TomlEntry, dotted

T = TypeVar("T")
COLUMN = {
    ColumnType.BOOLEAN: ("type", "null"),
    ColumnType.DATE: ("type", "lower", "upper", "format", "zone", "keys", "null"),
    ColumnType.INTEGER: ("type", "lower", "upper", "keys", "null"),
    ColumnType.NUMBER: ("type", "lower", "upper", "decimals", "null"),
    ColumnType.TEXT: ("type", "keys", "null"),
}
LONGEST_RANGE = 1_000_000

_VALUE_OF = {
    ColumnType.BOOLEAN: "true or false",
    ColumnType.DATE: "a day without quotes, such as 1987-05-01",
    ColumnType.INTEGER: "a whole number of 64 bits",
    ColumnType.NUMBER: "a finite number",
    ColumnType.TEXT: "a text, in quotes",
}


def column_of(entry: TomlEntry) -> Column:
    """The column that an entry declares; an error names the line."""
    # 1. the type, and the settings that it allows
    every = tuple(dict.fromkeys(key for keys in COLUMN.values() for key in keys))
    given = entry.settings(*every)
    if "type" not in given:
        raise entry.missing("type", f"one of {', '.join(kind.value for kind in ColumnType)}")
    kind = ColumnType(given["type"].choice(*(kind.value for kind in ColumnType)))
    for key, setting in given.items():
        if key not in COLUMN[kind]:
            allowed = ", ".join(COLUMN[kind])
            raise setting.mistake(f"a column of type {kind.value} has no {key}, only {allowed}")
    # 2. the column, one setting after the other, so that an error names its line
    lower, upper = (_bound(given.get(name), kind) for name in ("lower", "upper"))
    both = (False, True) if kind is ColumnType.BOOLEAN else None
    at = given.get("lower", given.get("upper", entry))
    column = made_at(at, lambda: Column(kind, lower, upper, both))
    if form := given.get("format"):
        text = form.text("the format of the days, such as %d/%m/%Y")
        column = made_at(form, lambda: replace(column, format=text))
    if decimals := given.get("decimals"):
        count = decimals.whole()
        column = made_at(decimals, lambda: replace(column, decimals=count))
    if zone := given.get("zone"):
        name = zone.text("a time zone, such as Europe/Berlin")
        column = made_at(zone, lambda: replace(column, zone=name))
    if keys := given.get("keys"):
        column = made_at(keys, lambda: replace(column, keys=_keys(keys, kind)))
    if null := given.get("null"):
        column = made_at(null, lambda: replace(column, null=_value(null, kind)))
    return column


def _bound(entry: TomlEntry | None, kind: ColumnType) -> Fraction | datetime.date | None:
    if entry is None:
        return None
    if kind is not ColumnType.DATE:
        return fraction(entry.number())
    if isinstance(entry.value, datetime.date) and fits(kind, entry.value):
        return entry.value
    raise entry.mistake(f"give {_VALUE_OF[kind]}")


def _keys(entry: TomlEntry, kind: ColumnType) -> tuple[KeyValue, ...]:
    if kind is ColumnType.INTEGER and isinstance(entry.value, str):
        keys = whole_range(entry.value)
        if keys is None:
            raise entry.mistake(
                'give a list, such as [1980, 1981], or a range, such as "1980..1987"'
                f" (of {LONGEST_RANGE:,} keys at most)"
            )
        return tuple(keys)
    if not isinstance(entry.value, list):
        raise entry.mistake("give a list of all the values that GROUP BY may show")
    for value in entry.value:
        if not fits(kind, value):
            raise entry.mistake(f"each must be {_VALUE_OF[kind]}")
    return tuple(sorted(entry.value))


def whole_range(text: str) -> range | None:
    """The whole numbers of ``"1980..1987"``, both ends among them."""
    ends = re.fullmatch(r"\s*(-?\d{1,19})\s*\.\.\s*(-?\d{1,19})\s*", text, re.ASCII)
    if ends is None:
        return None
    keys = range(int(ends[1]), int(ends[2]) + 1)
    return keys if 0 < len(keys) <= LONGEST_RANGE else None


def _value(entry: TomlEntry, kind: ColumnType) -> KeyValue | Fraction:
    if kind is ColumnType.NUMBER:
        return fraction(entry.number())
    if isinstance(entry.value, KeyValue) and fits(kind, entry.value):
        return entry.value
    raise entry.mistake(f"give {_VALUE_OF[kind]}")


def made_at(entry: TomlEntry, make: Callable[[], T]) -> T:
    """A value that is made of an entry, which its errors name."""
    try:
        return make()
    except InvalidArgument as error:
        raise entry.error(f"{dotted(entry.keys)}: {error}") from None
