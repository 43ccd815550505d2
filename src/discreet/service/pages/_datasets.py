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
    locks = await visit.get(Desk.locks, name)
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
        locks=locks["locks"],
        failed=[one["purpose"] for one in locks["failed"]],
        **{"reason": "", **more},
    )
