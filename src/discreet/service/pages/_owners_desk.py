"""The owner's desk: tokens, shares, locks, and the check of ledgers."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from operator import gt
from urllib.parse import quote

from starlette.responses import Response

from discreet.service._body import Member, MemberType, number_in
from discreet.service._desk import Desk
from discreet.service._problems import Problem
from discreet.service._tokens import Role
from discreet.service.pages import _datasets
from discreet.service.pages._forms import members_of
from discreet.service.pages._shown import Bar
from discreet.service.pages._visit import JsonValue, Visit, in_words, redirected
from discreet.service.pages._wrong_fields import FormField, FormRefusal, refusal_of

_MOST_SENT = 1000  # forms that are remembered
_SHARE = {"share": Member(MemberType.TEXT, is_required=True, is_place=True)}
_LIMIT = re.compile(r"(?P<symbol>\w+) = (?P<number>[\d.e+-]+)(?:, δ = (?P<delta>[\d.e+-]+))?")
_SENT_TWICE = "this form was sent before: the first time counts"
_OF_TOKEN = (
    FormField.of("name", "Name"),
    FormField.of("role", "Role"),
    FormField.of("days", "Days"),
)
_OF_UNLOCK = (FormField.of("reason", "Why it is safe to go on"),)


def _fields_of_share(place: int) -> tuple[FormField, ...]:
    """The fields of the form for this table on the page."""
    labels = {"share": "Analyst", "epsilon": "ε of a share", "delta": "δ of a share"}
    return tuple(
        FormField(f"{name}-{place}", label, name, (name,)) for name, label in labels.items()
    )


class SentForms:
    """The forms that were sent and must not be sent twice, such as one that makes a token."""

    __slots__ = ("_sent",)

    def __init__(self) -> None:
        """Remember none."""
        self._sent: OrderedDict[str, None] = OrderedDict()

    def is_first(self, once: str) -> bool:
        """Whether a form with this mark is sent for the first time; it then counts."""
        if not once or once in self._sent:
            return False
        self._sent[once] = None
        while len(self._sent) > _MOST_SENT:
            self._sent.popitem(last=False)
        return True


async def desk(visit: Visit, status: int = 200, **more: object) -> Response:
    """The desk: each table with its shares, and all tokens."""
    tokens = (await visit.get(Desk.listed_tokens))["tokens"]
    state = await visit.get(Desk.status)
    names = [one["name"] for one in (await visit.get(Desk.tables))["tables"]]
    budgets: dict[str, JsonValue] = {name: await visit.get(Desk.budget, name) for name in names}
    shares = [one["share"] for budget in budgets.values() for one in budget["shares"]]
    return visit.page(
        "desk.html",
        status,
        tokens=tokens,
        barriers=state["barriers"],
        budgets=budgets,
        bars={name: Bar.of("all analysts together", one) for name, one in budgets.items()},
        analysts=sorted(_askers(tokens)),
        strangers=set(shares) - _askers(tokens),
        larger={name: _larger_than_whole(one) for name, one in budgets.items()},
        holders=set(shares),
        **{"token": None, "sent": {}, **more},
    )


def _askers(tokens: Sequence[JsonValue]) -> set[str]:
    """The names of analysts who have a token that is valid now."""
    return {
        one["name"]
        for one in tokens
        if one["role"] == Role.ANALYST.value
        and not one["is_revoked"]
        and datetime.fromisoformat(one["expires"]) > datetime.now(UTC)
    }


def _larger_than_whole(budget: JsonValue) -> set[str]:
    """The shares whose limit is above that of the table, which ends them before."""
    symbol, *whole = _limit(budget["limit"])
    found = {one["share"]: _limit(one["limit"]) for one in budget["shares"]}
    return {
        name
        for name, (own, *numbers) in found.items()
        if own == symbol and any(map(gt, numbers, whole))
    }


def _limit(text: str) -> tuple[str, int | Decimal, int | Decimal]:
    """The symbol, the number and the δ of a limit, which reads ε = 2, δ = 1e-6; without any for a
    curve, which has many numbers."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        return "", 0, 0
    number, delta = (number_in(found[name] or "0") or 0 for name in ("number", "delta"))
    return found["symbol"], number, delta


async def issue(visit: Visit) -> Response:
    """Make a token, whose text is on this page only."""
    once = f"{visit.session.form_key} {visit.form.get('once', '')}"
    if not _SENT.is_first(once):
        return await desk(visit, 409, refusal=FormRefusal(_SENT_TWICE))
    try:
        made = await visit.get(Desk.issue, form=visit.form)
    except Problem as problem:
        refusal = refusal_of(problem, _OF_TOKEN)
        return await desk(visit, problem.kind.status, refusal=refusal, sent=visit.form)
    token = {"text": made["token"], "name": visit.form["name"], "role": visit.form["role"]}
    try:
        return await desk(visit, token=token)
    except Problem as problem:  # the token is shown now or never
        return visit.page("token.html", token=token, refusal=FormRefusal(in_words(problem)))


_SENT = SentForms()


async def revoke_token(visit: Visit) -> Response:
    """Refuse a token, and its sessions, from now on."""
    await visit.get(Desk.revoke_token, visit.form.get("token", ""))
    return redirected("/desk#tokens")


async def grant(visit: Visit) -> Response:
    """Grant a share, or replace it."""
    table, share = visit.place("table"), visit.form.get("share", "").strip()
    try:
        members_of({"share": share}, _SHARE)  # the names that addresses can hold
        await visit.get(Desk.grant, table, share, form=visit.form)
    except Problem as problem:
        names = [one["name"] for one in (await visit.get(Desk.tables))["tables"]]
        fields = _fields_of_share(1 + names.index(table)) if table in names else ()
        sent = {field.id: visit.form.get(field.name, "") for field in fields}
        refusal = refusal_of(problem, fields)
        return await desk(visit, problem.kind.status, refusal=refusal, sent=sent)
    return redirected("/desk#shares")


async def revoke_share(visit: Visit) -> Response:
    """End a share."""
    try:
        await visit.get(Desk.revoke_share, visit.place("table"), visit.form.get("share", ""))
    except Problem as problem:
        return await desk(visit, problem.kind.status, refusal=FormRefusal(in_words(problem)))
    return redirected("/desk#shares")


async def unlock(visit: Visit) -> Response:
    """Open a locked table again, if it is locked by nothing else than the form's page showed."""
    seen = {"locks": "0", **visit.form}  # entry 0 never locks
    try:
        await visit.get(Desk.unlock, visit.place("table"), form=seen)
    except Problem as problem:
        refusal = refusal_of(problem, _OF_UNLOCK)
        reason = visit.form.get("reason", "")
        return await _datasets.dataset(visit, problem.kind.status, refusal=refusal, reason=reason)
    return redirected(f"/tables/{quote(visit.place('table'), safe='')}")


async def verify(visit: Visit) -> Response:
    """Verify a whole ledger."""
    table = visit.place("table")
    try:
        found = await visit.get(Desk.verify, table)
    except Problem as problem:
        return await desk(visit, problem.kind.status, refusal=FormRefusal(in_words(problem)))
    done = f"the ledger of {table} is whole: {found['entries'] + 1} entries follow by its rules"
    return await desk(visit, done=done)
