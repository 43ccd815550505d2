"""Receipts: one is checked by dropping its file."""

from starlette.responses import Response

from discreet.service._desk import Desk
from discreet.service._problems import Problem
from discreet.service._routes import LONGEST_RECEIPT
from discreet.service.pages._visit import Visit, in_words
from discreet.service.pages._wrong_fields import FormRefusal


async def form(visit: Visit) -> Response:
    """The form that takes a receipt."""
    return await _page(visit)


async def check(visit: Visit) -> Response:
    """Compare a receipt with the ledger of the table that it names, or of the one that is given."""
    try:
        found = await visit.get(Desk.check, visit.form.get("table", ""), form=visit.form)
    except Problem as problem:
        return await _page(visit, problem.kind.status, refusal=FormRefusal(in_words(problem)))
    return await _page(visit, found=found)


async def _page(visit: Visit, status: int = 200, **more: object) -> Response:
    tables = [one["name"] for one in (await visit.get(Desk.tables))["tables"]]
    values = {"found": None, **more}
    return visit.page(
        "receipts.html",
        status,
        tables=tables,
        receipt=visit.form.get("receipt", ""),
        chosen=visit.form.get("table"),
        longest=LONGEST_RECEIPT,
        **values,
    )
