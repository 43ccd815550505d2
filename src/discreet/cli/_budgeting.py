"""``discreet budget``, ``unlock`` and ``backup``: show, unlock and copy a table's ledger."""

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet._exact import float_down, float_up
from discreet.cli import _format
from discreet.cli._asking_at import budget_at, when
from discreet.cli._before_paying import confirm, is_at_terminal
from discreet.cli._failures import UsageError
from discreet.cli._options import (
    AtOption,
    ByOption,
    FileOption,
    JsonOption,
    TableArgument,
    TokenFileOption,
    login,
    some_text,
    tables_at,
)
from discreet.cli._output import say, show, show_bar, table, write_json
from discreet.errors import LedgerError

if TYPE_CHECKING:
    from discreet.accounting import PrivacyLoss
    from discreet.ledger import Entry, Ledger
    from discreet.query._toml._declared_files import TableFile

_FILE = Path("discreet.toml")
_NAMES = {Limit: "epsilon", RhoLimit: "rho", MuLimit: "mu", RenyiLimit: "share"}


def budget(
    name: TableArgument,
    *,
    as_json: JsonOption = False,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    file: FileOption = _FILE,
) -> None:
    """Show all charges, what is spent, and what is left.

    Example:

    discreet budget wages
    """
    tables = tables_at(at, token_file)
    if tables is not None:
        budget_at(tables[name], as_json=as_json)
        return
    declared = _declared(file, name)
    ledger = _ledger(declared)
    if as_json:
        write_json(_json(declared, ledger))
        return
    say(f"{name} protects {declared.declaration.unit}")
    if ledger is None:
        say(f"nothing was spent yet; the limit will be {declared.limit}")
        return
    balance = ledger.spent()
    show(_history(ledger, balance.limit))
    show_bar(float(balance.reached), float(balance.limit.most))
    show(_format.line_of_balance(balance))
    if ledger.is_locked:
        cause = "a paid computation failed" if ledger.failed() else "it is a backup"
        say(f"It is locked, since {cause}. Once its owner knows the cause:", "red")
        say(f"discreet unlock {name} --reason 'what was found'", "red")


def unlock(
    name: TableArgument,
    *,
    reason: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            parser=some_text,
            help="The cause that was found, and why the table may be asked again.",
            show_default=False,
        ),
    ],
    allow_repeat: Annotated[
        bool,
        typer.Option("--allow-repeat", help="Also allow the failed questions to be asked again."),
    ] = False,
    entries: Annotated[
        list[int] | None,
        typer.Option(
            "--entry",
            metavar="NUMBER",
            help="The number of a failed question that you looked at; needed in a script, and once "
            "for each that is shown. Nothing is asked then.",
            show_default=False,
        ),
    ] = None,
    by: ByOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    file: FileOption = _FILE,
) -> None:
    """Allow questions to a table again, after a paid computation failed and the cause is known.

    Example:

    discreet unlock wages --reason "the disk was full; there is room now"
    """
    tables = tables_at(at, token_file, by=by)
    # 1. look at what locks the table
    unlocked: Callable[..., object]
    if tables is not None:
        remote = tables[name].ledger
        locks, found = remote.locks()
        failed = [(one["number"], when(one), one["by"], one["purpose"]) for one in found]
        unlocked = partial(remote.unlock, reason)
    else:
        ledger = _made_ledger(_declared(file, name))
        locks = [entry.number for entry in ledger.locking()]
        failed = [
            (entry.number, f"{entry.at:%Y-%m-%d %H:%M}", entry.by, entry.purpose)
            for entry in ledger.failed()
        ]
        unlocked = partial(ledger.unlock, reason, by or login())
    # 2. show it, and open no other lock
    for number, at_time, who, purpose in failed:
        say(f"failed: charge {number}, {at_time} UTC, by {who}:")
        say(f"  {purpose}")
    if locks or (failed and allow_repeat):
        _agree(name, {number for number, *_ in failed} or {*locks}, {*(entries or ())})
    unlocked(allow_repeat=allow_repeat, locks=locks)
    say(f"{name} may be asked again; what was paid stays paid", "green")
    if failed and not allow_repeat:
        say("the failed questions stay refused; to allow them: discreet unlock --allow-repeat")


def _agree(name: str, wanted: set[int], entries: set[int]) -> None:
    """Somebody has looked at these entries: they were named, or a reply at the terminal is yes."""
    if not entries and is_at_terminal():
        confirm(f"Unlock {name}?", otherwise=f"{name} stays as it was")
    elif entries != wanted:
        options = " ".join(f"--entry {number}" for number in sorted(wanted))
        raise UsageError(
            f"{name} stays as it was. Once somebody has looked at what is shown here: {options}"
        )


def backup(
    name: TableArgument,
    to: Annotated[Path, typer.Argument(help="The new file.", show_default=False)],
    *,
    file: FileOption = _FILE,
) -> None:
    """Copy a table's ledger to a new file, also while questions are asked.

    Example:

    discreet backup wages backups/wages.ledger
    """
    ledger = _made_ledger(_declared(file, name))
    ledger.backup(to)
    say(f"{to} holds the ledger of {name} as it is now", "green")


def _history(ledger: "Ledger", limit: AnyLimit) -> RenderableType:
    """The table of entries that changed the budget."""
    rows = [
        [
            str(entry.number),
            f"{entry.at:%Y-%m-%d %H:%M}",
            entry.by or "",
            what,
            "" if entry.loss is None else _format.charge_text(entry.loss, limit),
        ]
        for entry in ledger.history()
        if (what := _described(entry))
    ]
    return table(["", "when (UTC)", "by", "what", "cost"], rows, left=4)


def _described(entry: "Entry") -> str | None:
    """The text of an entry; None for openings, stored answers and steps."""
    from discreet.ledger import Kind

    match entry.kind:
        case Kind.CHARGE:
            return f"INSECURE: {entry.purpose}" if entry.is_insecure else entry.purpose
        case Kind.LOCK:
            return f"locked: charge {entry.about} failed after it was paid"
        case Kind.UNLOCK:
            return f"unlocked: {entry.purpose}"
        case Kind.BACKUP:
            return "all entries before this one are a backup of another ledger"
    return None


def _json(declared: "TableFile", ledger: "Ledger | None") -> dict[str, object]:
    unit, limit = declared.declaration.unit, declared.limit
    balance = None if ledger is None else ledger.spent()
    history = () if ledger is None else ledger.history()
    return {
        "table": declared.declaration.name,
        "ledger": str(declared.ledger),
        "unit": {"column": unit.plain, "change": unit.change.value},
        "limit": _limit(limit),
        "spent": {_NAMES[type(limit)]: 0.0 if balance is None else float_up(balance.reached)},
        "left": {"epsilon": float_down(_all_of(limit) if balance is None else balance.left)},
        "is_locked": ledger is not None and ledger.is_locked,
        "charges": [_charge(entry, entry.loss, limit) for entry in history if entry.loss],
    }


def _limit(limit: AnyLimit) -> dict[str, object]:
    match limit:
        case Limit(epsilon, delta):
            return {"epsilon": float_down(epsilon), "delta": float_down(delta)}
        case RenyiLimit(bounds):
            return {"renyi": [[float_up(order), float_down(bound)] for order, bound in bounds]}
    return {_NAMES[type(limit)]: float_down(limit.most)}


def _all_of(limit: AnyLimit) -> Fraction:
    """The largest pure epsilon that an empty ledger admits."""
    if isinstance(limit, Limit):
        return limit.epsilon
    from discreet.accounting import Filter

    chosen = Filter.for_limit(limit)
    return chosen.pure_left(chosen.start)


def _charge(entry: "Entry", loss: "PrivacyLoss", limit: AnyLimit) -> dict[str, object]:
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "by": entry.by,
        "purpose": entry.purpose,
        "epsilon": _epsilon(loss, limit),
        "privacy_loss": json.loads(loss.to_json()),
        "is_insecure": entry.is_insecure,
    }


def _epsilon(loss: "PrivacyLoss", limit: AnyLimit) -> float | None:
    """The charge's epsilon at the limit's delta; None if there is no finite one."""
    epsilon = loss.epsilon(limit.delta if isinstance(limit, Limit) else 0)
    return epsilon if epsilon < float("inf") else None


def _declared(file: Path, name: str) -> "TableFile":
    from discreet import query

    return query.open(file).file(name)


def _made_ledger(declared: "TableFile") -> "Ledger":
    """The table's ledger, which must exist."""
    ledger = _ledger(declared)
    if ledger is None:
        raise LedgerError(
            f"{declared.declaration.name} has no ledger yet: the first question creates it"
        )
    return ledger


def _ledger(declared: "TableFile") -> "Ledger | None":
    """The table's ledger, if it exists."""
    return declared.open_ledger() if declared.ledger.exists() else None
