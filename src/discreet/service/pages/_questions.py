"""Questions: a forecast while they are written, the paid answer, and its files."""

import base64
import csv
import hashlib
import io
import json
import re
import secrets
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from discreet._budget import receipt_text
from discreet.accounting import PrivacyLoss
from discreet.plots import Chart
from discreet.query._answers._answer_in_words import protection_in_words
from discreet.query._answers._answer_rows import parted, text_rows
from discreet.query._expressions._aggregates import SPELLINGS
from discreet.query._expressions._expression_text import quoted
from discreet.query._functions._functions import CALLS
from discreet.service._body import number_in
from discreet.service._desk import Desk
from discreet.service._problems import FORBIDDEN, NOT_FOUND, Problem
from discreet.service._tokens import Role
from discreet.service.pages import _shown
from discreet.service.pages._examples import examples
from discreet.service.pages._forms import FormFields
from discreet.service.pages._visit import (
    REUSED,
    JsonValue,
    Visit,
    choice,
    file,
    redirected,
)
from discreet.service.pages._wrong_fields import (
    ALLOWED,
    FieldProblem,
    FormField,
    FormRefusal,
    refusal_of,
)

_CONFIDENCES = ("0.95", "0.9", "0.99")
_FORMULA = {"=", "+", "-", "@"}  # begin formulas in spreadsheets
_CONTROLS = ("\t", "\r", "\n")
_INNER = re.compile(r"(?<=[;|\t\r\n])")  # some spreadsheets split texts here
_UNSEEN = ("C", "Z")  # categories of controls, marks without a width, and blanks
_PAID_BEFORE = (
    "this form's question was paid before, and no answer to it is stored; sent again from this "
    "page, it is a new question and is paid anew"
)
_MOST_DRAFTS, _MOST_KEYS = 2000, 100
_FIELDS = (
    FormField.of("sql", "Your question in SQL"),
    FormField.of("epsilon", "ε"),
    FormField.of("within", "each number within ±"),
    FormField.of("group_size", "in groups of (rows, for averages)"),
    FormField.of("delta", "δ (Gaussian noise needs one)"),
)
_PRICE = ("epsilon", "within", "group_size", "delta", "noise", "confidence")


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as the form holds it. ``once`` makes its request id: the same question from the
    same form is paid once, whether it is sent again or twice."""

    sql: str
    by: str = "price"
    epsilon: str = "0.1"
    within: str = ""
    group_size: str = ""
    delta: str = ""
    noise: str = ""
    confidence: str = "0.95"
    once: str = ""

    @staticmethod
    def of(form: FormFields) -> "Draft":
        """The draft in a form."""
        return Draft(
            form.get("sql", "").strip("\n"),
            choice(form, "by", "price", "accuracy"),
            form.get("epsilon", ""),
            form.get("within", ""),
            form.get("group_size", ""),
            form.get("delta", ""),
            choice(form, "noise", "", "laplace", "gaussian"),
            choice(form, "confidence", *_CONFIDENCES),
            form.get("once", "") or secrets.token_urlsafe(16),
        )

    def members(self) -> dict[str, str]:
        """The members of a request for a forecast; raises `Problem` where one is missing."""
        if self.by == "accuracy" and not self.within.strip():
            raise FieldProblem("within", ALLOWED["within"])
        if self.noise == "gaussian" and not number_in(self.delta.strip() or "0"):
            raise FieldProblem("delta", "give a number above 0 and below 1, such as 1e-6")
        unused = {"price": ("within", "group_size"), "accuracy": ("epsilon",)}[self.by]
        given = {name: getattr(self, name) for name in ("sql", *_PRICE) if name not in unused}
        return {name: text for name, text in given.items() if text}

    def request(self, table: str, members: FormFields) -> str:
        """The request id of this question."""
        text = json.dumps([self.once, table, *sorted(members.items())])
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return base64.urlsafe_b64encode(digest[:18]).decode()


@dataclass(frozen=True, slots=True)
class Predicted:
    """A forecast, or the problem that there is in its place."""

    facts: Mapping[str, Any] | None = None  # Any: JSON
    refusal: FormRefusal | None = None
    place: _shown.RefusedPlace | None = None
    status: int = 200

    @staticmethod
    def refused(sql: str, problem: Problem) -> "Predicted":
        """The problem, and its place in the question."""
        found = refusal_of(problem, _FIELDS)
        return Predicted(None, found, _shown.refused_place(sql, found.text), problem.kind.status)

    @property
    def price(self) -> str:
        """The price in words, as it is shown and agreed to; none without a forecast."""
        if self.facts is None:
            return ""
        delta = self.facts["delta"]
        return f"ε = {self.facts['price']['epsilon']}" + (f", δ = {delta!r}" if delta else "")

    @property
    def agreed(self) -> str:
        """The price that can be paid now; none if the budget doesn't admit it."""
        return self.price if self.facts is not None and self.facts["is_admitted"] else ""


class LastDrafts:
    """The question that each session wrote last about each table, in the memory of this service
    alone: a browser stores nothing, and shows an empty form where somebody goes back."""

    __slots__ = ("_drafts",)

    def __init__(self) -> None:
        """Remember none."""
        self._drafts: OrderedDict[tuple[str, str], Draft] = OrderedDict()

    def note(self, visit: Visit, draft: Draft) -> None:
        """Remember a draft in place of the one before."""
        place = visit.session.form_key, visit.place("table")
        self._drafts.pop(place, None)
        if draft.sql:
            self._drafts[place] = draft
        while len(self._drafts) > _MOST_DRAFTS:
            self._drafts.popitem(last=False)

    def last(self, visit: Visit) -> Draft | None:
        """The last draft, as a question that was not asked."""
        found = self._drafts.get((visit.session.form_key, visit.place("table")))
        return None if found is None else replace(found, once=secrets.token_urlsafe(16))

    def forget(self, visit: Visit) -> None:
        """Forget the drafts of a session that ends."""
        for place in [place for place in self._drafts if place[0] == visit.session.form_key]:
            self._drafts.pop(place, None)


DRAFTS = LastDrafts()


async def form(visit: Visit) -> Response:
    """The form for a question. It begins with that of the answer that ``from`` names, with the
    example that ``example`` names, or with the question that the session wrote last."""
    query = visit.request.query_params
    draft = Draft("", once=secrets.token_urlsafe(16))
    if earlier := query.get("from"):
        draft = replace(draft, **_question(await visit.get(Desk.answer, earlier)))
    elif "example" in query:
        found = examples(await visit.get(Desk.table, visit.place("table")))
        by_place = {str(place): one.sql for place, one in enumerate(found)}
        draft = replace(draft, sql=by_place.get(query["example"], ""))
    elif "new" in query:
        DRAFTS.note(visit, draft)
    elif last := DRAFTS.last(visit):
        return await _page(visit, last, None, is_last=True)
    return await _page(visit, draft, None)


def _question(answer: Mapping[str, JsonValue]) -> dict[str, str]:
    if "query" not in answer:
        return {}
    shown = {name: f"{answer[name]:.12g}" for name in ("epsilon", "delta", "confidence")}
    return {
        "sql": answer["query"],
        "epsilon": answer.get("price", {}).get("epsilon", shown["epsilon"]),
        "delta": shown["delta"] if answer["delta"] else "",
        "confidence": shown["confidence"] if shown["confidence"] in _CONFIDENCES else "0.95",
    }


async def forecast(visit: Visit) -> Response:
    """The form with a forecast; or only the forecast, for the script of the page."""
    draft = Draft.of(visit.form)
    predicted = await _predicted(visit, draft)
    DRAFTS.note(visit, draft)
    if "part" not in visit.form:
        return await _page(visit, draft, predicted)
    budget = await visit.get(Desk.budget, visit.place("table"))
    return visit.page(
        "forecast.html",
        predicted=predicted,
        refusal=predicted.refusal,
        **_rest(visit, budget),
    )


def _rest(visit: Visit, budget: Mapping[str, JsonValue]) -> dict[str, Any]:  # Any: of a template
    """Whether the reader may pay, and the most that one more question without a δ may cost."""
    own = [one["left"] for one in budget["shares"] if one["share"] == visit.caller.name]
    return {
        "has_share": bool(own) or visit.caller.role is Role.OWNER,
        "left": float(min([budget["left"], *own])),
    }


async def _predicted(visit: Visit, draft: Draft) -> Predicted:
    try:
        table = visit.place("table")
        found = await visit.get(Desk.forecast, table, form=draft.members())
    except Problem as problem:
        return Predicted.refused(draft.sql, problem)
    return Predicted(found)


async def ask(visit: Visit) -> Response:
    """Pay for a question, and show its answer. A form without the price that is to be paid leads to
    the forecast, which shows it: the reader has changed the question since, or saw no price."""
    table, draft = visit.place("table"), Draft.of(visit.form)
    DRAFTS.note(visit, draft)
    predicted = await _predicted(visit, draft)
    if predicted.facts is None or visit.form.get("agreed") != predicted.price:
        return await _page(visit, draft, predicted, status=predicted.status)
    members = draft.members()
    if draft.by == "accuracy":
        for name in ("within", "group_size"):
            members.pop(name, None)
        members |= {name: text for name, text in predicted.facts["price"].items() if text}
    request = draft.request(table, members)
    try:
        await visit.bytes_of(Desk.ask, table, form={**members, "request": request})
    except Problem as problem:
        predicted = Predicted.refused(draft.sql, problem)
        if predicted.status == REUSED:  # paid before, and it failed: from here on it is another
            predicted = replace(predicted, refusal=FormRefusal(_PAID_BEFORE), place=None)
            draft = replace(draft, once=secrets.token_urlsafe(16))
        return await _page(visit, draft, predicted, status=predicted.status)
    return redirected(f"/answers/{quote(request, safe='')}")


async def _page(
    visit: Visit,
    draft: Draft,
    predicted: Predicted | None,
    status: int = 200,
    *,
    is_last: bool = False,
) -> Response:
    if visit.caller.role is Role.VIEWER:
        raise Problem(FORBIDDEN)
    name = visit.place("table")
    table, budget = await visit.get(Desk.table, name), await visit.get(Desk.budget, name)
    own = [one for one in budget["shares"] if one["share"] == visit.caller.name]
    abouts = {one["name"]: _about(one) for one in table["columns"]}
    words = {
        "table": {"name": name, "sql": quoted(name)},
        "columns": [
            {"name": one, "sql": quoted(one), "about": about} for one, about in abouts.items()
        ],
        "functions": sorted({*SPELLINGS, *CALLS}),
    }
    return visit.page(
        "ask.html",
        status,
        table=table,
        draft=draft,
        predicted=predicted,
        bar_of=_shown.Bar.of("your share", own[0]) if own else _shown.Bar.of("the table", budget),
        **_rest(visit, budget),
        is_locked=budget["is_locked"],
        is_last=is_last,
        values={one["name"]: _values(one) for one in table["columns"]},
        words=json.dumps(words).replace("<", "\\u003c"),
        confidences=_CONFIDENCES,
        examples=examples(table),
        refusal=None if predicted is None else predicted.refusal,
    )


def _about(column: Mapping[str, JsonValue]) -> str:
    """The declared facts of a column, in a few words."""
    if column["keys"] is not None:
        keys = ", ".join(map(_shown.cell, column["keys"][:4]))
        return f"{column['type']}: {keys}{', …' if len(column['keys']) > 4 else ''}"
    if column["lower"] is not None:
        low, high = (_shown.number(column[end]) for end in ("lower", "upper"))
        return f"{column['type']} from {low} to {high}"
    return str(column["type"])


def _values(column: Mapping[str, JsonValue]) -> str:
    """The declared facts of a column, with all keys that a reader can want."""
    if column["keys"] is None:
        return _about(column)
    keys = ", ".join(map(_shown.cell, column["keys"][:_MOST_KEYS]))
    more = len(column["keys"]) - _MOST_KEYS
    return f"{column['type']}: {keys}" + (f", … and {more:,} more" if more > 0 else "")


# answers


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """A paid answer of the reader's own."""

    request: str
    facts: Mapping[str, Any]  # Any: JSON

    @property
    def is_elsewhere(self) -> bool:
        """Whether the charge paid for a computation elsewhere, whose results are not here."""
        return "request" not in self.facts

    @property
    def question(self) -> str:
        """The question, or the purpose of a charge."""
        return str(self.facts.get("query", self.facts["receipt"]["purpose"]))

    @property
    def table(self) -> str | None:
        """The table that was asked; None for a computation elsewhere, which may name any."""
        if self.is_elsewhere:
            return None
        statement = self.facts["receipt"].get("statement")
        assumptions = statement.get("assumptions") if isinstance(statement, dict) else None
        name = assumptions.get("table") if isinstance(assumptions, dict) else None
        return name if isinstance(name, str) else None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.facts.get("columns", ()))

    @property
    def rows(self) -> list[dict[str, Any]]:  # Any: JSON
        """The rows as dictionaries."""
        rows = self.facts.get("rows")
        return rows if isinstance(rows, list) else []

    @property
    def cells(self) -> list[list[str]]:
        """The table as texts: a head, and then the rows."""
        return text_rows(*parted(self.columns), self.rows)

    @property
    def charts(self) -> list[Chart]:
        """A chart for each number with an interval."""
        return _shown.charts(*parted(self.columns), self.rows)

    @property
    def python(self) -> str:
        """The question as a program asks it, at the same price; empty for other answers."""
        asked = _question(self.facts)
        if not asked or self.table is None:
            return ""
        names = ("epsilon", "delta", "confidence")
        price = ", ".join(f"{name}={asked[name]}" for name in names if asked[name])
        return (
            f"import discreet as dp\n\ntable = dp.connect(url, token)[{self.table!r}]\n"
            f"answer = table.question({asked['sql']!r}).release({price})"
        )

    @property
    def receipt(self) -> str:
        """The receipt as the text that can be checked."""
        return receipt_text(self.facts["receipt"])

    @property
    def meaning(self) -> tuple[str, ...]:
        """Who is protected and how well, in words."""
        loss = PrivacyLoss.from_json(json.dumps(self.facts["receipt"]["privacy_loss"]))
        return protection_in_words(loss)

    @property
    def assumed(self) -> list[str]:
        """The caps, and the bounds of columns, as the receipt states them."""
        if self.is_elsewhere:
            return []
        statement = self.facts["receipt"].get("statement")
        assumptions = statement.get("assumptions") if isinstance(statement, dict) else None
        return _assumed(assumptions if isinstance(assumptions, dict) else {})


def _assumed(facts: Mapping[str, Any]) -> list[str]:  # Any: JSON
    caps, columns = facts.get("caps"), facts.get("columns")
    lines = []
    if isinstance(caps, dict) and caps.get("rows"):
        rows = f"{caps['rows']} row{'' if caps['rows'] == 1 else 's'}"
        lines.append(f"at most {rows} of each unit count")
    for name, column in (columns if isinstance(columns, dict) else {}).items():
        if not isinstance(column, dict):
            continue
        if {"lower", "upper"} <= column.keys():
            lines.append(f"{name} counts as a value from {column['lower']} to {column['upper']}")
        elif isinstance(keys := column.get("keys"), list):
            listed = ", ".join(map(_shown.cell, keys[:12]))
            lines.append(f"{name} has the values {listed}{', …' if len(keys) > 12 else ''}")
    return lines


async def stored(visit: Visit) -> ShownAnswer:
    """The answer that the address names; raises `Problem` unless it is the reader's own."""
    request = visit.place("request")
    return ShownAnswer(request, await visit.get(Desk.answer, request))


async def answer(visit: Visit) -> Response:
    """A paid answer as a table and charts, with its caps and bounds in words."""
    found = await stored(visit)
    return visit.page("answer.html", answer=found, facts=found.facts, table_name=found.table)


async def statement(visit: Visit) -> Response:
    """A page to print, for people who are not specialists."""
    found = await stored(visit)
    return visit.page("statement.html", answer=found, facts=found.facts, table_name=found.table)


async def download_json(visit: Visit) -> Response:
    """The stored answer as it is."""
    answer = await visit.bytes_of(Desk.answer, visit.place("request"))
    return file("answer.json", answer.rstrip(b" ") + b"\n", "application/json")


async def download_receipt(visit: Visit) -> Response:
    """The receipt."""
    return file("receipt.json", (await stored(visit)).receipt + "\n", "application/json")


async def download_csv(visit: Visit) -> Response:
    """The rows as CSV; no text begins a formula."""
    found = await stored(visit)
    if not found.columns:
        raise Problem(NOT_FOUND)
    return file("answer.csv", csv_text(found.columns, found.rows), "text/csv")


def csv_text(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as CSV for spreadsheets: texts are quoted, and a ' stands before each place at which
    a formula would begin, also where a spreadsheet splits at semicolons or tabs."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([_harmless(name) for name in columns])
    for row in rows:
        writer.writerow([_harmless(row[name]) for name in columns])
    return lines.getvalue()


def _harmless(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = "" if value is None else _shown.cell(value)
    marked = "".join(f"'{part}" if _is_formula(part) else part for part in _INNER.split(text))
    return f"'{marked}" if text.lstrip(' \ufeff"').startswith(_CONTROLS) else marked


def _is_formula(text: str) -> bool:
    """Whether the first character that is seen begins a formula, also in a wide or small form."""
    seen = (one for one in text if one != '"' and unicodedata.category(one)[0] not in _UNSEEN)
    return unicodedata.normalize("NFKC", next(seen, "")) in _FORMULA
