"""``discreet ledger``: look after one ledger, by its file, its address in a database, or the name
of its table at a service."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet._budget import Limit
from discreet._exact import decimal_down, decimal_up, shown
from discreet.cli import _format
from discreet.cli._ledgers_at import history_at, shares_at, spent_at
from discreet.cli._options import (
    AtOption,
    ByOption,
    JsonOption,
    TokenFileOption,
    above_zero,
    from_zero,
    login,
    some_text,
    tables_at,
)
from discreet.cli._output import say, show, table, write_json

if TYPE_CHECKING:
    from discreet.ledger import Entry, Ledger

_DIGITS = 6

ledgers = typer.Typer(no_args_is_help=True)

LedgerArgument = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger's file, or postgresql://host/database?ledger=NAME; with --at, a table.",
        show_default=False,
    ),
]
ShareArgument = Annotated[
    str,
    typer.Argument(
        metavar="SHARE", parser=some_text, help="The name of the share.", show_default=False
    ),
]
AnchorOption = Annotated[
    str | None,
    typer.Option(
        "--anchor",
        metavar="ANCHOR",
        help="The ledger's anchor, a file or postgresql://host/database?anchor=NAME; an older copy "
        "of the ledger is then refused.",
    ),
]


@ledgers.command()
def spent(
    ledger: LedgerArgument,
    *,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show what is spent, and what is left.

    Example:

    discreet ledger spent wages.ledger
    """
    if (tables := tables_at(at, token_file, anchor=anchor)) is not None:
        spent_at(tables[ledger])
        return
    show(str(_opened(ledger, anchor).spent()))


@ledgers.command()
def history(
    ledger: LedgerArgument,
    *,
    last: Annotated[
        int | None, typer.Option("--last", metavar="COUNT", min=1, help="Only the last entries.")
    ] = None,
    as_json: JsonOption = False,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show the entries of a ledger.

    Example:

    discreet ledger history wages.ledger --last 20
    """
    if (tables := tables_at(at, token_file, anchor=anchor)) is not None:
        history_at(tables[ledger], last, as_json=as_json)
        return
    opened = _opened(ledger, anchor)
    entries = opened.history(last)
    if as_json:
        write_json({"entries": [_plain(entry) for entry in entries]})
        return
    rows = [
        [
            str(entry.number),
            f"{entry.at:%Y-%m-%d %H:%M}",
            entry.kind.value,
            entry.by or "",
            entry.share or "",
            entry.purpose or ("" if entry.reserve is None else f"reserves {entry.reserve}"),
            "" if entry.loss is None else _format.charge_text(entry.loss, opened.limit),
        ]
        for entry in entries
    ]
    show(table(["", "when (UTC)", "kind", "by", "share", "what", "cost"], rows, left=6))


@ledgers.command()
def verify(
    ledger: LedgerArgument,
    *,
    is_export: Annotated[
        bool, typer.Option("--export", help="LEDGER is a file that `ledger export` wrote.")
    ] = False,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Verify every entry of a ledger or of its export, from the first to the last.

    Examples:

    discreet ledger verify wages.ledger

    discreet ledger verify wages.jsonl --export
    """
    tables = tables_at(at, token_file, anchor=anchor, export=is_export)
    if tables is not None:
        count = tables[ledger].ledger.verify() + 1
        show(f"the service verified {count} entries")
    elif is_export:
        from discreet.ledger import check_export

        found = check_export(ledger, anchor=anchor)
        show(f"{found.entries} entries of a ledger for {found.unit}, limit {found.limit}")
        show(f"the last digest is {found.digest}")
    else:
        _opened(ledger, anchor).verify()
    say("each entry follows from those before it, and the sums follow from the charges", "green")


@ledgers.command()
def grant(  # noqa: PLR0913  # each is an option of the command
    ledger: LedgerArgument,
    share: ShareArgument,
    *,
    epsilon: Annotated[
        Decimal,
        typer.Option(
            "--epsilon",
            metavar="NUMBER",
            parser=above_zero,
            help="The most that the share may spend.",
            show_default=False,
        ),
    ],
    delta: Annotated[
        Decimal,
        typer.Option("--delta", metavar="NUMBER", parser=from_zero, help="The limit's delta."),
    ] = Decimal(0),
    reserve: Annotated[
        str | None,
        typer.Option(
            "--reserve",
            metavar="EXPRESSION",
            help="Accesses, such as '1000 * Gaussian(40)', for which a part of the ledger's limit "
            "is set aside.",
            show_default=False,
        ),
    ] = None,
    by: ByOption = None,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Open a share below the ledger's limit, for an analyst or a project.

    Examples:

    discreet ledger grant wages.ledger ana --epsilon 0.5

    discreet ledger grant wages.ledger training --epsilon 3 --delta 1e-6 --reserve "Gaussian(8)"
    """
    from discreet.accounting import parse

    limit, loss = Limit(epsilon, delta), None if reserve is None else parse(reserve)
    if (tables := tables_at(at, token_file, anchor=anchor, by=by)) is not None:
        tables[ledger].ledger.grant(share, limit=limit, reserve=loss)
    else:
        _opened(ledger, anchor).grant(share, limit=limit, by=by or login(), reserve=loss)
    reserved = "" if loss is None else f", and {loss} is reserved for it"
    say(f"{share} may spend {limit}{reserved}", "green")


@ledgers.command()
def revoke(
    ledger: LedgerArgument,
    share: ShareArgument,
    *,
    by: ByOption = None,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """End a share; what it spent stays spent, and the rest of its reserve is free for others.

    Example:

    discreet ledger revoke wages.ledger ana
    """
    if (tables := tables_at(at, token_file, anchor=anchor, by=by)) is not None:
        tables[ledger].ledger.revoke(share)
    else:
        _opened(ledger, anchor).revoke(share, by=by or login())
    say(f"{share} may spend nothing more", "green")


@ledgers.command()
def shares(
    ledger: LedgerArgument,
    *,
    as_json: JsonOption = False,
    anchor: AnchorOption = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show the open shares, with what they spent and what is left.

    Example:

    discreet ledger shares wages.ledger
    """
    if (tables := tables_at(at, token_file, anchor=anchor)) is not None:
        shares_at(tables[ledger], as_json=as_json)
        return
    opened = _opened(ledger, anchor)
    found, symbol = opened.shares(), opened.limit.symbol
    rows = [
        [
            each.share,
            str(each.limit),
            f"{each.limit.symbol} = {shown(decimal_up(each.reached, _DIGITS))}",
            f"ε = {shown(decimal_down(each.left, _DIGITS))}",
            f"{symbol} = {shown(decimal_up(each.reserved, _DIGITS))}" if each.reserved else "",
        ]
        for each in found
    ]
    if as_json:
        names = ("share", "limit", "spent", "left", "reserved")
        write_json({"shares": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    show(table(["share", "limit", "spent", "one more may cost", "reserved"], rows))


@ledgers.command()
def backup(
    ledger: LedgerArgument,
    to: Annotated[Path, typer.Argument(help="The new file.", show_default=False)],
    *,
    anchor: AnchorOption = None,
) -> None:
    """Copy a ledger to a new file, also while others charge it.

    Example:

    discreet ledger backup "postgresql://host/database?ledger=wages" wages.backup
    """
    _opened(ledger, anchor).backup(to)
    say(f"{to} holds the ledger as it is now", "green")


@ledgers.command()
def export(
    ledger: LedgerArgument,
    to: Annotated[Path, typer.Argument(help="The new file.", show_default=False)],
    *,
    anchor: AnchorOption = None,
) -> None:
    """Write all entries to a file of JSON lines, which `ledger verify --export` checks.

    Example:

    discreet ledger export wages.ledger wages.jsonl
    """
    _opened(ledger, anchor).export(to)
    say(f"{to} has all entries up to now", "green")


def _opened(address: str, anchor: str | None) -> "Ledger":
    from discreet.ledger import Ledger

    return Ledger.open(address, anchor=anchor)


def _plain(entry: "Entry") -> dict[str, object]:
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "kind": entry.kind.value,
        "by": entry.by,
        "share": entry.share,
        "purpose": entry.purpose,
        "request": entry.request,
        "about": entry.about,
        "is_insecure": entry.is_insecure,
        "privacy_loss": None if entry.loss is None else str(entry.loss),
        "reserve": None if entry.reserve is None else str(entry.reserve),
        "digest": entry.digest,
    }
