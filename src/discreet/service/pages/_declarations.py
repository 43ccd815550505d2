"""The owner declares a table in steps: a file, its unit and limit, its columns, further bounds."""

import csv
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.query import ColumnType
from discreet.query._engines._address import address_of, is_address
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.query._statistics._suggestion_search import enough_for_bounds, enough_for_cap
from discreet.service._body import number_in
from discreet.service._desk import Desk
from discreet.service._problems import BAD_BODY, Problem
from discreet.service._routes import LONGEST_FACTS
from discreet.service.pages._forms import FormFields
from discreet.service.pages._visit import REUSED, Visit, choice, in_words, redirected

_RANGE = re.compile(r"\s*-?\d+\s*\.\.\s*-?\d+\s*", re.ASCII)
_OLD = (
    "this form was paid before: for other values, or the service ended before it had stored what "
    "was found. Nothing more was paid; the form below is new, and paid anew"
)
_TRUE, _ROW = "yes", "row"
_NO_WORD = re.compile(r"\W", re.ASCII)
_COLUMNS = "columns"
_SUGGESTED = (_COLUMNS, "rows")
_FOUND = [ColumnType.INTEGER.value, ColumnType.NUMBER.value, ColumnType.TEXT.value]


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
        )

    @property
    def is_open(self) -> bool:
        """Whether it is wanted, and what its values can be is left to be found in the rows."""
        is_known = self.lower or self.upper or self.keys
        return self.is_used and not is_known and self.type in _FOUND

    @property
    def is_declared(self) -> bool:
        """Whether it can be declared as it stands: numbers need bounds."""
        return self.is_used and not (self.is_open and self.type == ColumnType.NUMBER.value)

    def facts(self) -> dict[str, object]:
        """The declared facts of the column; raises `Problem` for a text that is none."""
        found: dict[str, object] = {"type": self.type}
        for name in ("lower", "upper"):
            if text := getattr(self, name):
                found[name] = text if self.type == ColumnType.DATE.value else self._number(text)
        if self.keys:
            found["keys"] = self._keys()
        if self.type == ColumnType.DATE.value:
            texts = {"format": self.format, "zone": self.zone}
            found |= {name: text for name, text in texts.items() if text}
        if self.decimals and self.type == ColumnType.NUMBER.value:
            found["decimals"] = self._number(self.decimals)
        return found

    def _keys(self) -> object:
        if self.type == ColumnType.INTEGER.value:
            if _RANGE.fullmatch(self.keys):
                return "".join(self.keys.split())
            return [self._number(text.strip()) for text in self.keys.split(",")]
        return next(csv.reader([self.keys], skipinitialspace=True))

    def _number(self, text: str) -> int | Decimal:
        number = number_in(text)
        if number is None:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: {self.name}: {text} is no number")
        return number


def _line(keys: Sequence[str]) -> str:
    return ", ".join('"{}"'.format(key.replace('"', '""')) for key in keys)


# a new table


async def sources(visit: Visit, status: int = 200, problem: str = "") -> Response:
    """The first step: the file."""
    found = await visit.get(Desk.sources)
    free = [one["name"] for one in found["sources"] if one["table"] is None]
    return visit.page(
        "sources.html",
        status,
        sources=free,
        databases=[PostgresAddress(one, "", "").shown for one in found["databases"]],
        chosen=visit.request.query_params.get("chosen"),
        form=visit.form,
        problem=problem,
    )


async def look(visit: Visit) -> Response:
    """The second step: unit, limit and columns."""
    visit.check_owner()
    try:
        source = await _source(visit)
        looked = await visit.get(Desk.look, form={"source": source})
    except Problem as problem:
        return await sources(visit, problem.kind.status, in_words(problem))
    columns = [ColumnFields.proposed(one, {}) for one in _named(looked["columns"])]
    return _second_step(visit, source, columns)


def _second_step(
    visit: Visit,
    source: str,
    columns: Sequence[ColumnFields],
    *,
    status: int = 200,
    problem: str = "",
) -> Response:
    """The page of unit, limit and columns."""
    table = address_of(source).label if is_address(source) else source
    name = table.rpartition(".")[2] if is_address(source) else table.partition(".")[0]
    return visit.page(
        "declare.html",
        status,
        source=source,
        table=table,
        name=_NO_WORD.sub("_", name),
        columns=columns,
        form=visit.form if "column-0" in visit.form else {},
        problem=problem,
    )


async def _source(visit: Visit) -> str:
    """The file that the form names, or the address of a table in one of the listed databases."""
    form = visit.form
    if "database" not in form:
        return form.get("source", "")
    databases = (await visit.get(Desk.sources))["databases"]
    place, table = form["database"], form.get("table", "").strip()
    if not (place.isascii() and place.isdigit() and int(place) < len(databases)):
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: choose a database")
    schema, dot, name = table.partition(".")
    if not table or (dot and not (schema and name)):
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: name the table as schema.name")
    named = (schema, name) if dot else ("public", table)
    return str(PostgresAddress(databases[int(place)], *named))


def _named(columns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The columns that a form can name; it drops a blank name."""
    return [one for one in columns if one["name"].strip()]


async def declare(visit: Visit) -> Response:
    """The last step: write the declaration."""
    visit.check_owner()
    form, columns = visit.form, _columns(visit.form)
    name = form.get("name", "").strip()
    try:
        facts = {
            "source": form.get("source", ""),
            "epsilon": _number(form, "epsilon"),
            "delta": _number(form, "delta") if "delta" in form else 0,
            "columns": {one.name: one.facts() for one in columns if one.is_declared},
        }
        if form.get("unit") == _ROW:
            facts["row"] = True
        else:
            facts |= {"unit": _unit(columns, form), "rows": _number(form, "rows")}
        await visit.get(Desk.declare, name, form={"facts": _facts_text(facts)})
    except Problem as problem:
        source, status = form.get("source", ""), problem.kind.status
        return _second_step(visit, source, columns, status=status, problem=in_words(problem))
    ids = facts.get("unit")
    others = [one for one in columns if one.name != ids]
    places = [str(place) for place, one in enumerate(others) if one.is_open]
    found = f"?find={'.'.join(places)}" if places else ""
    return redirected(f"/tables/{quote(name, safe='')}/columns{found}")


def _unit(columns: Sequence[ColumnFields], form: FormFields) -> str:
    """The column of ids; the form names its place."""
    place = form.get("unit", "")
    if not (place.isascii() and place.isdigit() and int(place) < len(columns)):
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: choose who is protected")
    return columns[int(place)].name


def _columns(form: FormFields) -> list[ColumnFields]:
    found: list[ColumnFields] = []
    while f"column-{len(found)}" in form:
        found.append(ColumnFields.sent(form, len(found)))
    return found


def _number(form: FormFields, name: str) -> int | Decimal:
    number = number_in(form.get(name, "").strip())
    if number is None:
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: look at {name}")
    return number


def _facts_text(facts: object) -> str:
    text = _json(facts)
    if len(text) > LONGEST_FACTS:
        fewer = "choose fewer columns at once, and add the others later"
        raise Problem(BAD_BODY, f"{BAD_BODY.text}: {fewer}")
    return text


def _json(facts: object) -> str:
    """The facts as JSON; a decimal keeps its digits."""
    match facts:
        case Decimal():
            return str(facts).lower()
        case dict():
            return f"{{{', '.join(f'{json.dumps(k)}: {_json(v)}' for k, v in facts.items())}}}"
        case list():
            return f"[{', '.join(map(_json, facts))}]"
        case _:
            return json.dumps(facts)


# columns of a declared table


def _new_mark() -> str:
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class SuggestionDraft:
    """The form that pays for suggestions. ``once`` makes its request id: it is paid once, whether
    it is sent again or twice. ``numbers`` and ``texts`` are the columns that were chosen."""

    of: str = "columns"
    epsilon: str = "0.1"
    delta: str = ""
    once: str = field(default_factory=_new_mark)
    price: str = ""  # as it is shown and agreed to
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @staticmethod
    def sent(form: FormFields) -> "SuggestionDraft":
        """The fields in a form."""
        return SuggestionDraft(
            choice(form, "of", *_SUGGESTED),
            form.get("epsilon", "").strip(),
            form.get("delta", "").strip(),
            form.get("once", "") or _new_mark(),
            numbers=_chosen(form, "number-"),
            texts=_chosen(form, "text-"),
        )

    @property
    def request(self) -> str:
        """The request id."""
        return f"suggest {self.once}"

    def members(self) -> dict[str, str]:
        """The members of the request that pays."""
        given = {"epsilon": self.epsilon, "delta": self.delta}
        stated = {name: text for name, text in given.items() if text}
        if self.of == _COLUMNS:
            stated["columns"] = json.dumps([*self.numbers, *self.texts])
        return {**stated, "of": self.of, "request": self.request}

    def priced(self) -> "SuggestionDraft":
        """The draft with its price; raises `Problem` for a text that is none."""
        epsilon, delta = (number_in(text) for text in (self.epsilon, self.delta or "0"))
        if epsilon is None or not epsilon > 0:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: look at epsilon")
        if delta is None or not 0 <= delta < 1:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: look at delta")
        if self.of == _COLUMNS and not (self.numbers or self.texts):
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: choose a column")
        if self.texts and not delta:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: keys of texts need a δ, such as 1e-6")
        price = f"ε = {epsilon}" + (f", δ = {delta}".lower() if delta else "")
        return replace(self, price=price)

    def enough(self, change: Change) -> int:
        """About how many units are needed at this price, for the bounds of each column or for a
        number of rows; 0 for a form without a price."""
        paid, unit = number_in(self.epsilon), Unit.ROW.with_change(change)
        if paid is None or not self.price or (self.of == _COLUMNS and not self.numbers):
            return 0
        epsilon = fraction(paid)
        if self.of != _COLUMNS:
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


def _open_columns(
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
        if is_bare and facts["type"] in _FOUND:
            kind = "text" if facts["type"] == ColumnType.TEXT.value else "number"
            is_chosen = str(place) in wanted or one["name"] in chosen
            found.append(OpenColumn(one["name"], kind, is_chosen))
    return found


async def columns(
    visit: Visit,
    status: int = 200,
    problem: str = "",
    draft: SuggestionDraft | None = None,
) -> Response:
    """The columns that are not declared yet, with suggestions that were paid for, or the price of
    those that may be paid."""
    table, earlier = visit.place("table"), visit.request.query_params.get("from")
    declared_table = await visit.get(Desk.table, table)
    declared = {one["name"]: one for one in declared_table["columns"]}
    answer = await visit.get(Desk.answer, earlier) if earlier else {}
    suggested = {one["name"]: one for one in answer.get("suggested", ())}
    sent, found = _columns(visit.form), list[OpenColumn]()
    drafts = {of: SuggestionDraft(of) for of in _SUGGESTED}
    if draft is not None:
        drafts[draft.of] = draft
    if not sent:
        looked = _named((await visit.get(Desk.look, form={"table": table}))["columns"])
        new = {one["name"] for one in looked} - declared.keys()
        shown = suggested.keys() or new
        sent = [ColumnFields.proposed(one, suggested) for one in looked if one["name"] in shown]
        places = visit.request.query_params.get("find", "")
        found = _open_columns(looked, declared, drafts[_COLUMNS], places)
    return visit.page(
        "columns.html",
        status,
        table_name=table,
        columns=sent,
        open_columns=found,
        budget=await visit.get(Desk.budget, table),
        suggested=answer.get("text", "").splitlines(),
        suggested_rows=answer.get("rows_of_unit"),
        unit_columns=declared_table["unit_columns"],
        rows=declared_table["caps"]["rows"],
        drafts=drafts,
        enough={of: one.enough(Change(declared_table["change"])) for of, one in drafts.items()},
        problem=problem,
    )


async def add_columns(visit: Visit) -> Response:
    """Declare further columns, or another number of rows of a unit that count."""
    visit.check_owner()
    table = visit.place("table")
    try:
        used = {one.name: one.facts() for one in _columns(visit.form) if one.is_used}
        facts: dict[str, object] = {"columns": used} if used else {}
        if "rows" in visit.form:
            facts["rows"] = _number(visit.form, "rows")
        if not facts:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: choose a column")
        await visit.get(Desk.declare, table, form={"facts": _facts_text(facts)})
    except Problem as problem:
        return await columns(visit, problem.kind.status, in_words(problem))
    return redirected(f"/tables/{quote(table, safe='')}")


async def suggest(visit: Visit) -> Response:
    """Pay for suggestions, and show them in the form. A form without the price that is to be paid
    leads to a page that shows it."""
    visit.check_owner()
    table, draft = visit.place("table"), SuggestionDraft.sent(visit.form)
    try:
        priced = draft.priced()
        if visit.form.get("agreed") != priced.price:
            return await columns(visit, draft=priced)
        await visit.bytes_of(Desk.suggest, table, form=draft.members())
    except Problem as problem:
        status = problem.kind.status
        if status == REUSED:
            return await columns(visit, status, _OLD, replace(draft, once=_new_mark()))
        return await columns(visit, status, in_words(problem), draft)
    place = f"/tables/{quote(table, safe='')}/columns"
    return redirected(f"{place}?from={quote(draft.request, safe='')}")
