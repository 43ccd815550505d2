"""The owner declares a table in steps: a file, its unit and limit, its columns, further bounds."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from discreet._unit import Change
from discreet.query._engines._address import address_of, is_address
from discreet.query._engines._postgres_address import PostgresAddress
from discreet.service._body import number_in
from discreet.service._desk import Desk
from discreet.service._problems import BAD_BODY, Problem
from discreet.service._routes import LONGEST_FACTS
from discreet.service.pages import _uploads
from discreet.service.pages._column_fields import ColumnFields, chosen_facts, sent_columns
from discreet.service.pages._forms import FormFields
from discreet.service.pages._shown import tighter_groups
from discreet.service.pages._suggestions import (
    COLUMNS,
    SUGGESTED,
    OpenColumn,
    SuggestionDraft,
    new_mark,
    open_columns,
)
from discreet.service.pages._visit import REUSED, Visit, redirected
from discreet.service.pages._wrong_fields import (
    ALLOWED,
    FieldProblem,
    FormField,
    FormRefusal,
    refusal_of,
    setting_of,
)

_OLD = (
    "this form was paid before: for other values, or the service ended before it had stored what "
    "was found. Nothing more was paid; the form below is new, and paid anew"
)
_ROW = "row"
_NO_WORD = re.compile(r"\W", re.ASCII)
_PLACE = re.compile(r"\d{1,4}", re.ASCII)
_CAPS = ("rows", "groups")
_OF_DATABASE = (FormField.of("database", "Database"), FormField("of-database", "table", "table"))


# a new table


async def sources(
    visit: Visit, status: int = 200, refusal: FormRefusal | None = None, done: str = ""
) -> Response:
    """The first step: the file."""
    found = await visit.get(Desk.sources)
    free = [one["name"] for one in found["sources"] if one["table"] is None]
    chosen = visit.request.query_params.get("chosen")
    if chosen in free:
        done = f"{chosen} has arrived, and is chosen below: go on by “Look at its columns”"
    return visit.page(
        "sources.html",
        status,
        sources=free,
        databases=told_apart(found["databases"]),
        uploaded=[name for name in free if _uploads.is_uploaded(visit.folder, name)],
        chosen=chosen,
        form=visit.form,
        refusal=refusal,
        done=done,
    )


def told_apart(databases: Sequence[str]) -> list[str]:
    """The listed databases as the page shows them: those that would read the same, with the user
    and the port."""
    addresses = [PostgresAddress(one, "", "") for one in databases]
    short = [one.shown for one in addresses]
    return [
        name if short.count(name) == 1 else one.shown_in_full
        for name, one in zip(short, addresses, strict=True)
    ]


async def remove_upload(visit: Visit) -> Response:
    """Remove a file that came by an upload and is not declared."""
    visit.check_owner()
    name = visit.form.get("name", "")
    found = (await visit.get(Desk.sources))["sources"]
    if {"name": name, "table": None} not in found or not _uploads.removed(visit.folder, name):
        refusal = FormRefusal(
            "only a file that was uploaded here, and that no table has, can be removed"
        )
        return await sources(visit, BAD_BODY.status, refusal)
    return await sources(visit, done=f"{name} was removed")


async def look(visit: Visit) -> Response:
    """The second step: unit, limit and columns."""
    visit.check_owner()
    try:
        source = await _source(visit)
        looked = await visit.get(Desk.look, form={"source": source})
    except Problem as problem:
        return await sources(visit, problem.kind.status, refusal_of(problem, _OF_DATABASE))
    columns = [ColumnFields.proposed(one, {}) for one in _named(looked["columns"])]
    return _second_step(visit, source, columns)


def _second_step(
    visit: Visit,
    source: str,
    columns: Sequence[ColumnFields],
    *,
    status: int = 200,
    refusal: FormRefusal | None = None,
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
        refusal=refusal,
    )


async def _source(visit: Visit) -> str:
    """The file that the form names, or the address of a table in one of the listed databases."""
    form = visit.form
    if "database" not in form:
        return form.get("source", "")
    databases = (await visit.get(Desk.sources))["databases"]
    database = databases[_place(form, "database", len(databases), "choose a database")]
    table = form.get("table", "").strip()
    schema, dot, name = table.partition(".")
    if not table.isprintable() or not table or (dot and not (schema and name)):
        raise FieldProblem("table", "name the table as schema.name")
    named = (schema, name) if dot else ("public", table)
    return str(PostgresAddress(database, *named))


def _place(form: FormFields, field: str, count: int, allowed: str) -> int:
    """The place of a choice among ``count``, which a field holds."""
    place = form.get(field, "")
    if not _PLACE.fullmatch(place) or int(place) >= count:
        raise FieldProblem(field, allowed)
    return int(place)


def _named(columns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The columns that a form can name; it drops a blank name."""
    return [one for one in columns if one["name"].strip()]


async def declare(visit: Visit) -> Response:
    """The last step: write the declaration."""
    visit.check_owner()
    form, columns = visit.form, sent_columns(visit.form)
    name = form.get("name", "").strip()
    try:
        if name in (one["name"] for one in (await visit.get(Desk.tables))["tables"]):
            raise FieldProblem("name", "a table has this name already: take another one")
        facts = {
            "source": form.get("source", ""),
            "epsilon": _number(form, "epsilon"),
            "delta": _number(form, "delta") if "delta" in form else 0,
            "columns": chosen_facts(columns, all_used=False),
            **_unit_facts(columns, form),
        }
        await visit.get(Desk.declare, name, form={"facts": _facts_text(facts)})
    except Problem as problem:
        source, status = form.get("source", ""), problem.kind.status
        refusal = refusal_of(problem, _fields(name, columns))
        return _second_step(visit, source, columns, status=status, refusal=refusal)
    others = [one for one in columns if one.name != facts.get("unit")]
    places = [str(place) for place, one in enumerate(others) if one.is_open]
    left = {"find": ".".join(places)} if places else {}
    if "unit" in facts and "rows" not in form:
        left["rows"] = "open"
    query = f"?{urlencode(left)}" if left else ""
    return redirected(f"/tables/{quote(name, safe='')}/columns{query}")


def _unit_facts(columns: Sequence[ColumnFields], form: FormFields) -> dict[str, object]:
    """Who is protected, and how much one counts for. Without a number of rows it is 1, until the
    next step finds one."""
    if form.get("unit") == _ROW:
        for cap in _CAPS:
            if cap in form:
                raise FieldProblem(cap, "leave it empty: each row is protected by itself")
        return {"row": True}
    unit = columns[_place(form, "unit", len(columns), "choose who is protected")].name
    return {"unit": unit, "rows": 1, **_caps(form)}


def _caps(form: FormFields) -> dict[str, object]:
    return {cap: _number(form, cap, is_whole=True) for cap in _CAPS if cap in form}


def _fields(table: str, columns: Sequence[ColumnFields]) -> list[FormField]:
    """The fields of both forms, as errors about this table name them."""

    def setting(*keys: str) -> str:
        return setting_of(table, *keys)

    own = (
        FormField.of("name", "Name", "table"),
        FormField.of("unit", "Who is protected?", setting("unit")),
        FormField.of("rows", "Count at most … rows of each", setting("rows")),
        FormField.of("groups", "in at most … groups", setting("groups")),
        FormField.of("epsilon", "Limit of all answers together: ε", setting("ledger", "epsilon")),
        FormField.of("delta", "δ", setting("ledger", "delta")),
    )
    return [*own, *(field for one in columns for field in one.form_fields(table))]


def _number(form: FormFields, name: str, *, is_whole: bool = False) -> int | Decimal:
    number = number_in(form.get(name, "").strip())
    if number is None or (is_whole and not isinstance(number, int)):
        raise FieldProblem(name, ALLOWED[name])
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


async def columns(
    visit: Visit,
    status: int = 200,
    refusal: FormRefusal | None = None,
    draft: SuggestionDraft | None = None,
) -> Response:
    """The columns that are not declared yet, with suggestions that were paid for, or the price of
    those that may be paid."""
    query = visit.request.query_params
    table, earlier = visit.place("table"), query.get("from")
    declared_table = await visit.get(Desk.table, table)
    declared = {one["name"]: one for one in declared_table["columns"]}
    answer = await visit.get(Desk.answer, earlier) if earlier else {}
    suggested = {one["name"]: one for one in answer.get("suggested", ())}
    sent, found = sent_columns(visit.form), list[OpenColumn]()
    drafts = {of: SuggestionDraft(of) for of in SUGGESTED}
    if draft is not None:
        drafts[draft.of] = draft
    if not sent:
        looked = _named((await visit.get(Desk.look, form={"table": table}))["columns"])
        found = open_columns(looked, declared, drafts[COLUMNS], query.get("find", ""))
        sent = _fields_to_complete(looked, declared, suggested, found)
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
        caps=declared_table["caps"],
        groups=tighter_groups(declared_table["caps"]),
        form=visit.form,
        is_rows_open="open" in (query.get("rows"), visit.form.get("rows_open")),
        drafts=drafts,
        enough={of: one.enough(Change(declared_table["change"])) for of, one in drafts.items()},
        refusal=refusal,
    )


def _fields_to_complete(
    looked: Sequence[Mapping[str, Any]],
    declared: Mapping[str, Mapping[str, Any]],
    suggested: Mapping[str, Any],
    found: Sequence[OpenColumn],
) -> list[ColumnFields]:
    """The fields of the columns for which something was suggested; or of all that lack facts, those
    that the step before left open first."""
    bare = {one.name for one in found} | {one["name"] for one in looked} - declared.keys()
    shown = suggested.keys() or bare
    fields = []
    for one in looked:
        if (name := one["name"]) in shown:
            known = {"type": declared[name]["type"]} if name in declared else {}
            fields.append(ColumnFields.proposed({**one, **known}, suggested))
    wanted = {one.name for one in found if one.is_chosen}
    return sorted(fields, key=lambda one: one.name not in wanted)


async def add_columns(visit: Visit) -> Response:
    """Declare further columns, or other caps of a unit. If the number of rows is still open, the
    page comes again and asks for it."""
    visit.check_owner()
    table, form, typed = visit.place("table"), visit.form, sent_columns(visit.form)
    try:
        facts: dict[str, object] = _caps(form)
        if "caps" in form and "groups" not in form:
            caps = (await visit.get(Desk.table, table))["caps"]
            if not facts:
                raise FieldProblem("rows", "give a number")
            if tighter_groups(caps):  # which stays unless another number is given
                raise FieldProblem("groups", "give a number, such as that of the rows for all")
        if used := chosen_facts(typed, all_used=True):
            facts["columns"] = used
        if not facts:
            raise Problem(BAD_BODY, f"{BAD_BODY.text}: choose a column")
        await visit.get(Desk.declare, table, form={"facts": _facts_text(facts)})
    except Problem as problem:
        refusal = refusal_of(problem, _fields(table, typed))
        return await columns(visit, problem.kind.status, refusal)
    place = f"/tables/{quote(table, safe='')}"
    is_open = "rows_open" in form and "rows" not in form
    return redirected(f"{place}/columns?rows=open" if is_open else place)


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
            return await columns(visit, status, FormRefusal(_OLD), replace(draft, once=new_mark()))
        return await columns(visit, status, refusal_of(problem, draft.form_fields), draft)
    left = {"rows": "open"} if "rows_open" in visit.form else {}
    query = urlencode({"from": draft.request, **left}, quote_via=quote)
    return redirected(f"/tables/{quote(table, safe='')}/columns?{query}")
