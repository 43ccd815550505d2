"""Suggestions of bounds, keys and numbers of rows, which the owner pays for."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.query import ColumnType
from discreet.query._statistics._suggestion_search import enough_for_bounds, enough_for_cap
from discreet.service._body import number_in
from discreet.service.pages._column_fields import FOUND_IN_ROWS
from discreet.service.pages._forms import FormFields
from discreet.service.pages._visit import choice
from discreet.service.pages._wrong_fields import ALLOWED, FieldProblem, FormField

COLUMNS = "columns"
SUGGESTED = (COLUMNS, "rows")


def new_mark() -> str:
    """The mark of a form that pays once."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class SuggestionDraft:
    """The form that pays for suggestions. ``once`` makes its request id: it is paid once, whether
    it is sent again or twice. ``numbers`` and ``texts`` are the columns that were chosen."""

    of: str = "columns"
    epsilon: str = "0.1"
    delta: str = ""
    once: str = field(default_factory=new_mark)
    price: str = ""  # as it is shown and agreed to
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @staticmethod
    def sent(form: FormFields) -> "SuggestionDraft":
        """The fields in a form."""
        return SuggestionDraft(
            choice(form, "of", *SUGGESTED),
            form.get("epsilon", "").strip(),
            form.get("delta", "").strip(),
            form.get("once", "") or new_mark(),
            numbers=_chosen(form, "number-"),
            texts=_chosen(form, "text-"),
        )

    @property
    def form_fields(self) -> tuple[FormField, ...]:
        """The fields by their labels; the form has other ids for each kind of suggestion."""
        id_ = "price" if self.of == COLUMNS else "rows-price"
        return (
            FormField(id_, "Pay ε", "epsilon", ("epsilon",)),
            FormField(f"{id_}-delta", "δ", "delta", ("delta",)),
            FormField("to-find", "Columns to find", "chosen"),
        )

    @property
    def request(self) -> str:
        """The request id."""
        return f"suggest {self.once}"

    def members(self) -> dict[str, str]:
        """The members of the request that pays."""
        given = {"epsilon": self.epsilon, "delta": self.delta}
        stated = {name: text for name, text in given.items() if text}
        if self.of == COLUMNS:
            stated["columns"] = json.dumps([*self.numbers, *self.texts])
        return {**stated, "of": self.of, "request": self.request}

    def priced(self) -> "SuggestionDraft":
        """The draft with its price; raises `Problem` for a text that is none."""
        epsilon, delta = (number_in(text) for text in (self.epsilon, self.delta or "0"))
        if epsilon is None or not epsilon > 0:
            raise FieldProblem("epsilon", ALLOWED["epsilon"])
        if delta is None or not 0 <= delta < 1:
            raise FieldProblem("delta", ALLOWED["delta"])
        if self.of == COLUMNS and not (self.numbers or self.texts):
            raise FieldProblem("chosen", "choose a column")
        if self.texts and not delta:
            raise FieldProblem("delta", "keys of texts need one, such as 1e-6")
        price = f"ε = {epsilon}" + (f", δ = {delta}".lower() if delta else "")
        return replace(self, price=price)

    def enough(self, change: Change) -> int:
        """About how many units are needed at this price, for the bounds of each column or for a
        number of rows; 0 for a form without a price."""
        paid, unit = number_in(self.epsilon), Unit.ROW.with_change(change)
        if paid is None or not self.price or (self.of == COLUMNS and not self.numbers):
            return 0
        epsilon = fraction(paid)
        if self.of != COLUMNS:
            return enough_for_cap(epsilon, unit)
        return enough_for_bounds(epsilon / len((*self.numbers, *self.texts)), unit)


def _chosen(form: FormFields, kind: str) -> tuple[str, ...]:
    return tuple(text for name, text in form.items() if name.startswith(kind))


@dataclass(frozen=True, slots=True)
class OpenColumn:
    """A column whose bounds or keys can be found in the rows; ``is_chosen`` says whether they are
    wanted."""

    name: str
    kind: str  # of the field that chooses it
    is_chosen: bool


def open_columns(
    looked: Sequence[Mapping[str, Any]],
    declared: Mapping[str, Mapping[str, Any]],
    draft: SuggestionDraft,
    places: str,
) -> list[OpenColumn]:
    """The columns whose facts can be found, as those that a table has; ``places`` names those
    that the step before left open, unless the form has a choice of its own."""
    chosen = {*draft.numbers, *draft.texts}
    wanted = set() if chosen else set(places.split("."))
    found = []
    for place, one in enumerate(looked):
        facts = declared.get(one["name"], {"type": one["type"], "lower": None, "keys": None})
        is_bare = facts["lower"] is None and facts["keys"] is None
        if is_bare and facts["type"] in FOUND_IN_ROWS:
            kind = "text" if facts["type"] == ColumnType.TEXT.value else "number"
            is_chosen = str(place) in wanted or one["name"] in chosen
            found.append(OpenColumn(one["name"], kind, is_chosen))
    return found
