"""The pages of tables: what is declared, what is left, and what happened."""

from starlette.responses import Response

from discreet.service._desk import Desk
from discreet.service._tokens import Role
from discreet.service.pages._shown import Bar, history, spending
from discreet.service.pages._visit import Visit

_LAST = 200  # entries on a page


async def tables(visit: Visit) -> Response:
    """The list of tables."""
    found = await visit.get(Desk.tables)
    return visit.page("tables.html", tables=found["tables"])


async def dataset(visit: Visit, status: int = 200, **more: object) -> Response:
    """One table; ``more`` may say what a form of the owner led to."""
    name = visit.place("table")
    table = await visit.get(Desk.table, name)
    budget = await visit.get(Desk.budget, name)
    entries = (await visit.get(Desk.history, name))["entries"]
    own = [one for one in budget["shares"] if one["share"] == visit.caller.name]
    lines = history(entries)
    return visit.page(
        "dataset.html",
        status,
        table=table,
        budget=budget,
        whole=Bar.of("all analysts together", budget),
        shares=[Bar.of(one["share"], one) for one in budget["shares"]],
        has_share=bool(own) or visit.caller.role is Role.OWNER,
        entries=lines[:_LAST],
        hidden=max(0, len(lines) - _LAST),
        chart=spending(entries),
        failures=[line for line in lines if line.is_alarming],
        locks=[one["number"] for one in _locks(entries)],
        failed=_failed(entries),
        **{"problem": None, "done": "", **more},
    )


def _locks(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    """The entries that locked the table since it was last unlocked, as far as the history tells."""
    last = max((at for at, one in enumerate(entries) if one["kind"] == "unlock"), default=-1)
    return [one for one in entries[last + 1 :] if one["kind"] in ("lock", "backup")]


def _failed(entries: list[dict[str, object]]) -> list[object]:
    """The questions whose computations failed since the table was last unlocked."""
    about = {one["about"] for one in _locks(entries)}
    return [one["purpose"] for one in entries if one["number"] in about]
