"""``discreet ledger`` with ``--at``: the ledger of a table that a service holds."""

from typing import TYPE_CHECKING, Any

from discreet.cli import _format
from discreet.cli._asking_at import DELTA, loss_of, show_left, when
from discreet.cli._output import say, show, table, write_json

if TYPE_CHECKING:
    from discreet.service import RemoteTable


def spent_at(asked: "RemoteTable") -> None:
    """Show what is spent and left, in all and of each share that the token may see."""
    show_left(asked.budget())


def shares_at(asked: "RemoteTable", *, as_json: bool) -> None:
    """Show the open shares that the token may see."""
    found = asked.budget()["shares"]
    if as_json:
        write_json({"shares": found})
        return
    rows = [
        [
            one["share"],
            one["limit"],
            _format.rounded_up(one["spent"]),
            f"ε = {_format.rounded_down(one['left'])}",
            _format.rounded_up(one["reserved"]) if one["reserved"] else "",
        ]
        for one in found
    ]
    show(table(["share", "limit", "spent", "one more may cost", "reserved"], rows))


def history_at(asked: "RemoteTable", last: int | None, *, as_json: bool) -> None:
    """Show the entries that the token may see, of the last ones that a service sends."""
    entries = asked.history()
    is_cut = bool(entries) and entries[0]["number"] > 0
    entries = entries if last is None else entries[-last:]
    if as_json:
        write_json({"entries": entries})
        return
    rows = [
        [
            str(one["number"]),
            when(one),
            one["kind"],
            one["by"] or "",
            one["share"] or "",
            one["purpose"] or _reserved(one),
            "" if one["privacy_loss"] is None else _format.cost(loss_of(one), DELTA),
        ]
        for one in entries
    ]
    show(table(["", "when (UTC)", "kind", "by", "share", "what", "cost"], rows, left=6))
    if is_cut and last is None:
        say("these are the last entries that this token may see; the ledger has earlier ones")


def _reserved(one: dict[str, Any]) -> str:  # Any: JSON
    return f"reserves {one['reserve']}" if one.get("reserve") else ""
