"""The fields of one column in the forms that declare columns."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from discreet.query import ColumnType
from discreet.service._body import number_in
from discreet.service.pages._forms import FormFields
from discreet.service.pages._wrong_fields import FieldProblem, FormField, setting_of

_RANGE = re.compile(r"\s*-?\d{1,18}\s*\.\.\s*-?\d{1,18}\s*", re.ASCII)
_TRUE = "yes"
_FACTS = {  # with their labels
    "type": "type",
    "lower": "from",
    "upper": "to",
    "keys": "keys",
    "format": "days written as",
}
FOUND_IN_ROWS = [ColumnType.INTEGER.value, ColumnType.NUMBER.value, ColumnType.TEXT.value]
"""The types of columns whose bounds or keys can be found in the rows."""


@dataclass(frozen=True, slots=True)
class ColumnFields:
    """The fields of one column, by its place in the form: typed, or proposed."""

    name: str
    type: str
    is_used: bool = False
    lower: str = ""
    upper: str = ""
    keys: str = ""
    format: str = ""
    formats: tuple[str, ...] = ()
    zone: str = ""
    decimals: str = ""
    is_suggested: bool = False
    place: int = 0

    @staticmethod
    def proposed(one: Mapping[str, Any], suggested: Mapping[str, Any]) -> "ColumnFields":
        """The fields of a column that was looked at, with what was suggested for it."""
        found = suggested.get(one["name"], {})
        keys = found.get("keys")
        return ColumnFields(
            one["name"],
            one["type"] or "",
            bool(found) or one["type"] in ("boolean", "date"),
            found.get("lower") or "",
            found.get("upper") or "",
            "" if not keys else _line(keys),
            one["formats"][0] if len(one["formats"]) == 1 else "",
            tuple(one["formats"]),
            one["zone"] or "",
            "" if found or one["decimals"] is None else str(one["decimals"]),
            bool(found),
        )

    @staticmethod
    def sent(form: FormFields, place: int) -> "ColumnFields":
        """The fields in a form."""

        def typed(name: str) -> str:
            return form.get(f"{name}-{place}", "").strip()

        return ColumnFields(
            form[f"column-{place}"],
            typed("type"),
            typed("use") == _TRUE,
            typed("lower"),
            typed("upper"),
            typed("keys"),
            typed("format"),
            tuple(filter(None, typed("formats").split("\n"))),
            typed("zone"),
            typed("decimals"),
            place=place,
        )

    @property
    def is_open(self) -> bool:
        """Whether it is wanted, and what its values can be is left to be found in the rows."""
        is_known = self.lower or self.upper or self.keys
        return self.is_used and not is_known and self.type in FOUND_IN_ROWS

    @property
    def is_declared(self) -> bool:
        """Whether it can be declared as it stands: numbers need bounds."""
        return self.is_used and not (self.is_open and self.type == ColumnType.NUMBER.value)

    def form_fields(self, table: str) -> Iterator[FormField]:
        """Its fields, as errors about this table name them."""
        own = ("columns", self.name)
        for fact, label in _FACTS.items():
            spellings = [setting_of(table, *own, fact), f"{self.name}: {fact}"]
            if fact == "lower":
                spellings += [setting_of(table, *own)]  # as where a number has no bounds
            if fact == "type":
                spellings += [f"column {self.name!r}"]
            name = f"{fact}-{self.place}"
            yield FormField(name, f"{self.name}, {label}", name, tuple(spellings))
        yield FormField(f"use-{self.place}", self.name, f"use-{self.place}")

    def check_chosen(self) -> None:
        """Refuse facts of a column that isn't chosen, which would be lost."""
        for fact in ("lower", "upper", "keys"):
            if getattr(self, fact) and not self.is_used:
                raise FieldProblem(
                    f"use-{self.place}",
                    f"tick this column, or empty its field “{_FACTS[fact]}”: a column that isn't "
                    "ticked is not declared",
                )

    def facts(self) -> dict[str, object]:
        """The declared facts of the column; raises `Problem` for a text that is none."""
        found: dict[str, object] = {"type": self.type}
        for name in ("lower", "upper"):
            if text := getattr(self, name):
                is_date = self.type == ColumnType.DATE.value
                found[name] = text if is_date else self._number(name, text)
        if self.keys:
            found["keys"] = self._keys()
        if self.type == ColumnType.DATE.value:
            texts = {"format": self.format, "zone": self.zone}
            found |= {name: text for name, text in texts.items() if text}
        if self.decimals and self.type == ColumnType.NUMBER.value:
            found["decimals"] = self._number("decimals", self.decimals)
        return found

    def _keys(self) -> object:
        if self.type == ColumnType.INTEGER.value:
            if _RANGE.fullmatch(self.keys):
                return "".join(self.keys.split())
            return [self._number("keys", text.strip()) for text in self.keys.split(",")]
        try:
            return next(csv.reader([self.keys], skipinitialspace=True, strict=True))
        except csv.Error:
            allowed = 'close each quote, and write a quote within a key twice: "a ""b"" c", d'
            raise FieldProblem(f"keys-{self.place}", allowed) from None

    def _number(self, fact: str, text: str) -> int | Decimal:
        number = number_in(text)
        if number is None:
            allowed = f"{text[:40]} is no number: write it as 1500 or 0.5, without blanks"
            raise FieldProblem(f"{fact}-{self.place}", allowed)
        return number


def sent_columns(form: FormFields) -> list[ColumnFields]:
    """The columns in a form."""
    found: list[ColumnFields] = []
    while f"column-{len(found)}" in form:
        found.append(ColumnFields.sent(form, len(found)))
    return found


def chosen_facts(columns: Sequence[ColumnFields], *, all_used: bool) -> dict[str, object]:
    """The facts of the columns that are declared: of all that are chosen, or without those that are
    left to be found in the rows. Raises `Problem` for facts of others."""
    for one in columns:
        one.check_chosen()
    return {
        one.name: one.facts() for one in columns if (one.is_used if all_used else one.is_declared)
    }


def _line(keys: Sequence[str]) -> str:
    return ", ".join('"{}"'.format(key.replace('"', '""')) for key in keys)
