"""Read and check the options of ``discreet declare`` that describe columns."""

import csv
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import typer

from discreet.cli._options import number
from discreet.errors import InvalidArgument
from discreet.query import Column, ColumnType
from discreet.query._facts._columns import MOST_DECIMALS
from discreet.query._facts._date_format import check_date_format
from discreet.query._toml._declaration_edit import Setting
from discreet.query._toml._declared_columns import whole_range
from discreet.query._toml._located_toml import Keys, did_you_mean

_KINDS = {kind.value: kind for kind in ColumnType}


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The texts that options give for columns: by option, then by column."""

    texts: Mapping[str, Mapping[str, Sequence[str]]]

    @staticmethod
    def of(columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> "ColumnOptions":
        """The texts of each option, ``COLUMN=TEXT``; each must name one of these columns."""
        found = {option: _by_column(option, columns, texts) for option, texts in given.items()}
        for option, by_column in found.items():
            for name, texts in by_column.items():
                if len(texts) > 1 and option != "--key":
                    raise mistake(option, f"{name} is given {len(texts)} times; give it once")
        return ColumnOptions(found)

    @property
    def named(self) -> set[str]:
        """The columns that an option names."""
        return {name for by_column in self.texts.values() for name in by_column}

    def all_texts(self, option: str, name: str) -> Sequence[str]:
        """The texts of this option for this column."""
        return self.texts[option].get(name, ())

    def text(self, option: str, name: str) -> str | None:
        """The single text of this option for this column, if it is given."""
        return next(iter(self.all_texts(option, name)), None)


def column_type(
    name: str, proposed: ColumnType | None, options: ColumnOptions
) -> ColumnType | None:
    """The type that an option states, or else the proposed one."""
    text = options.text("--type", name)
    if text is None:
        is_date = any(options.text(one, name) is not None for one in ("--date-format", "--zone"))
        return ColumnType.DATE if is_date else proposed
    if text not in _KINDS:
        near = did_you_mean(text, list(_KINDS))
        raise mistake("--type", f"{name}={text}: give one of {', '.join(_KINDS)}{near}")
    return _KINDS[text]


def settings(name: str, kind: ColumnType, options: ColumnOptions) -> dict[Keys, Setting]:
    """The settings of a column of this type that the options state."""
    found: dict[Keys, Setting] = {}
    if (bounds := options.text("--bound", name)) is not None:
        found["lower",], found["upper",] = _bounds(name, kind, bounds)
    if keys := options.all_texts("--key", name):
        found["keys",] = _keys(name, kind, keys)
    if (null := options.text("--null", name)) is not None:
        found["null",] = _value("--null", name, kind, null)
    if (form := options.text("--date-format", name)) is not None:
        found["format",] = _format(name, kind, form)
    if (zone := options.text("--zone", name)) is not None:
        found["zone",] = _zone(name, kind, zone)
    if (digits := options.text("--decimals", name)) is not None:
        found["decimals",] = _decimals(name, kind, digits)
    return found


def mistake(option: str, text: str) -> typer.BadParameter:
    """The error of an option."""
    return typer.BadParameter(text, param_hint=f"'{option}'")


def _by_column(option: str, columns: Sequence[str], texts: Sequence[str]) -> dict[str, list[str]]:
    """The texts after ``COLUMN=``, by column; a column's name may itself contain a ``=``."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name = max((c for c in columns if text.startswith(f"{c}=")), key=len, default=None)
        if name is None:
            given, equals, _ = text.partition("=")
            if not equals:
                raise mistake(option, f"{text!r}: begin with the column's name and =")
            near = did_you_mean(given, columns)
            raise mistake(option, f"no column {given!r}{near}; there are {', '.join(columns)}")
        found.setdefault(name, []).append(text[len(name) + 1 :])
    return found


def _bounds(
    name: str, kind: ColumnType, text: str
) -> tuple[Decimal, Decimal] | tuple[datetime.date, datetime.date]:
    if kind is ColumnType.DATE:
        return _days(name, text)
    if not kind.is_numeric:
        raise mistake(
            "--bound",
            f"{name} is a {kind.value} column, and only numbers and dates have bounds; if it holds "
            f"numbers, add --type {name}=number; give values to group by as --key {name}=…",
        )
    lower, dots, upper = text.partition("..")
    try:
        ends = number(lower), number(upper)
    except typer.BadParameter:
        dots = ""
    if not dots or ends[0] >= ends[1]:
        raise mistake("--bound", f"{name}={text}: give LOWER..UPPER, such as {name}=0..60")
    return ends


def _days(name: str, text: str) -> tuple[datetime.date, datetime.date]:
    lower, _, upper = text.partition("..")
    try:
        first, last = (datetime.date.fromisoformat(end.strip()) for end in (lower, upper))
    except ValueError:
        first = last = datetime.date.min
    if first >= last:
        raise mistake(
            "--bound", f"{name}={text}: give FIRST..LAST, such as {name}=2020-01-01..2021-01-01"
        )
    return first, last


def _keys(name: str, kind: ColumnType, texts: Sequence[str]) -> Setting:
    if kind is ColumnType.NUMBER:
        raise mistake(
            "--key",
            f"{name} is a number column, which can't have keys; if its values are whole, declare "
            f"--type {name}=integer",
        )
    if kind is ColumnType.BOOLEAN:
        raise mistake(
            "--key", f"{name} is boolean: its keys are always true and false, leave them out"
        )
    if kind is ColumnType.INTEGER and len(texts) == 1 and whole_range(texts[0]) is not None:
        return texts[0]
    values = [value for text in texts for value in next(csv.reader([text], skipinitialspace=True))]
    return [_value("--key", name, kind, value) for value in values]


def _format(name: str, kind: ColumnType, text: str) -> str:
    if kind is not ColumnType.DATE:
        raise mistake("--date-format", f"{name} is a {kind.value} column; only dates have a format")
    try:
        check_date_format(text)
    except InvalidArgument as error:
        raise mistake("--date-format", f"{name}: {error}") from None
    return text


def _zone(name: str, kind: ColumnType, text: str) -> str:
    try:
        Column(kind, zone=text)
    except InvalidArgument as error:
        raise mistake("--zone", f"{name}: {error}") from None
    return text


def _decimals(name: str, kind: ColumnType, text: str) -> int:
    if kind is not ColumnType.NUMBER:
        raise mistake("--decimals", f"{name} is a {kind.value} column; only numbers have decimals")
    if text not in map(str, range(1, MOST_DECIMALS + 1)):
        raise mistake(
            "--decimals",
            f"{name}={text}: give the digits after the point, from 1 to {MOST_DECIMALS}",
        )
    return int(text)


def _value(option: str, name: str, kind: ColumnType, text: str) -> Setting:
    try:
        match kind:
            case ColumnType.BOOLEAN:
                return {"true": True, "false": False}[text.lower()]
            case ColumnType.DATE:
                return datetime.date.fromisoformat(text)
            case ColumnType.INTEGER:
                return int(text)
            case ColumnType.NUMBER:
                return number(text)
            case ColumnType.TEXT:
                return text
    except (KeyError, ValueError, typer.BadParameter):
        raise mistake(option, f"{name}: {text!r} is not {_LOOKS[kind]}") from None


_LOOKS = {
    ColumnType.BOOLEAN: "true or false",
    ColumnType.DATE: "a day, such as 1987-05-01",
    ColumnType.INTEGER: "a whole number",
    ColumnType.NUMBER: "a finite number",
}
