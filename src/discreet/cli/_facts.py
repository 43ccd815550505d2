"""Reads and checks the options of ``discreet declare`` that describe columns."""

import csv
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import typer

from discreet.cli._options import number
from discreet.errors import InvalidArgument
from discreet.query._columns import ColumnType
from discreet.query._date_format import check_date_format
from discreet.query._declaration_edit import Setting
from discreet.query._declaration_file import whole_range
from discreet.query._located_toml import Keys, did_you_mean

_KINDS = {kind.value: kind for kind in ColumnType}


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The given texts for each column, by option."""

    bounds: Mapping[str, str]
    keys: Mapping[str, Sequence[str]]
    nulls: Mapping[str, str]
    types: Mapping[str, str]
    formats: Mapping[str, str]

    @property
    def named(self) -> set[str]:
        """The columns that an option names."""
        return {*self.bounds, *self.keys, *self.nulls, *self.types, *self.formats}


def column_options(
    columns: Sequence[str],
    *,
    bounds: Sequence[str],
    keys: Sequence[str],
    nulls: Sequence[str],
    types: Sequence[str],
    formats: Sequence[str],
) -> ColumnOptions:
    """The options by column; each must name one of these columns."""
    return ColumnOptions(
        _once("--bound", columns, bounds),
        _by_column("--key", columns, keys),
        _once("--null", columns, nulls),
        _once("--type", columns, types),
        _once("--date-format", columns, formats),
    )


def kind_of(name: str, proposed: ColumnType | None, options: ColumnOptions) -> ColumnType | None:
    """The type that an option states, or else the proposed one."""
    if name not in options.types:
        return ColumnType.DATE if name in options.formats else proposed
    text = options.types[name]
    if text not in _KINDS:
        near = did_you_mean(text, list(_KINDS))
        raise mistake("--type", f"{name}={text}: give one of {', '.join(_KINDS)}{near}")
    return _KINDS[text]


def settings(name: str, kind: ColumnType, options: ColumnOptions) -> dict[Keys, Setting]:
    """The settings of a column of this type that the options state."""
    found: dict[Keys, Setting] = {}
    if name in options.bounds:
        found["lower",], found["upper",] = _bounds(name, kind, options.bounds[name])
    if name in options.keys:
        found["keys",] = _keys(name, kind, options.keys[name])
    if name in options.nulls:
        found["null",] = _value("--null", name, kind, options.nulls[name])
    if name in options.formats:
        found["format",] = _format(name, kind, options.formats[name])
    return found


def mistake(option: str, text: str) -> typer.BadParameter:
    """The error of an option."""
    return typer.BadParameter(text, param_hint=f"'{option}'")


def _by_column(option: str, columns: Sequence[str], texts: Sequence[str]) -> dict[str, list[str]]:
    """The texts behind ``COLUMN=``, by column; a column's name may itself hold a ``=``."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name = max((c for c in columns if text.startswith(f"{c}=")), key=len, default=None)
        if name is None:
            given, equals, _ = text.partition("=")
            if not equals:
                raise mistake(option, f"{text!r}: it starts with the column's name and =")
            near = did_you_mean(given, columns)
            raise mistake(option, f"no column {given!r}{near}; there are {', '.join(columns)}")
        found.setdefault(name, []).append(text[len(name) + 1 :])
    return found


def _once(option: str, columns: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    found = _by_column(option, columns, texts)
    for name, given in found.items():
        if len(given) > 1:
            raise mistake(option, f"{name} is given {len(given)} times; give it once")
    return {name: text for name, (text,) in found.items()}


def _bounds(name: str, kind: ColumnType, text: str) -> tuple[Decimal, Decimal]:
    if not kind.is_numeric:
        raise mistake(
            "--bound",
            f"{name} is a {kind.value} column, and only numbers have bounds; if it holds numbers, "
            f"say so by --type {name}=number; values to group by are given as --key {name}=…",
        )
    lower, dots, upper = text.partition("..")
    try:
        ends = number(lower), number(upper)
    except typer.BadParameter:
        dots = ""
    if not dots or ends[0] >= ends[1]:
        raise mistake("--bound", f"{name}={text}: give LOWER..UPPER, such as {name}=0..60")
    return ends


def _keys(name: str, kind: ColumnType, texts: Sequence[str]) -> Setting:
    if kind is ColumnType.NUMBER:
        raise mistake(
            "--key",
            f"{name} is a number column, and those have no keys; where its values are whole, "
            f"declare it so: --type {name}=integer",
        )
    if kind is ColumnType.BOOLEAN:
        raise mistake("--key", f"{name} is boolean: its keys are true and false, leave them out")
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
