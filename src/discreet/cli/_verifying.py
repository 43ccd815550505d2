"""``discreet verify``: check a receipt, without the data."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import _format
from discreet.cli._asking_at import verify_at
from discreet.cli._options import AtOption, JsonOption, TokenFileOption, tables_at
from discreet.cli._output import say, show, write_json
from discreet.errors import ReceiptDiffers

_LARGEST = 200_000_000  # bytes of a receipt
_DELTA = Fraction(1, 10**6)  # at which an epsilon is shown, where there is none without


def verify(
    receipt: Annotated[
        Path, typer.Argument(metavar="RECEIPT", help="The receipt's file.", show_default=False)
    ],
    *,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="LEDGER",
            help="The ledger's file or address; without it, only the receipt is checked.",
        ),
    ] = None,
    at: AtOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a receipt, against the ledger or the service if one is given; reads no data.

    Example:

    discreet verify receipt.json --ledger wages.ledger
    """
    from discreet.ledger import Ledger, check_receipt
    from discreet.mechanisms import stated_loss

    tables = tables_at(at, token_file, ledger=ledger)
    opened = None if ledger is None else Ledger.open(ledger)
    text = _text(receipt)
    found = check_receipt(text, opened)
    # the price follows from sensitivities and noise, which the ledger doesn't know
    stated = found.facts["statement"]
    loss = None if stated is None else stated_loss(stated)
    checked, not_checked = [*found.checked], [*found.not_checked]
    if loss is not None and loss != found.privacy_loss:
        raise ReceiptDiffers("its privacy loss doesn't follow from its sensitivities and noise")
    if tables is not None:
        checked.append(verify_at(text, tables))
    if loss is not None:
        checked.append("the privacy loss follows from the stated sensitivities and noise")
    elif stated is not None:
        not_checked.append("that the privacy loss follows from the mechanism")
    if found.facts["is_insecure"]:
        not_checked.append("that the noise was secret: this receipt says that it was not")
    if as_json:
        shown = {"receipt": found.facts, "checked": checked, "not_checked": not_checked}
        write_json(shown)
        return
    show(f"charge {found.facts['number']}, {found.facts['at']}, by {found.facts['by']}:")
    show(f"  {found.facts['purpose']}")
    show(f"  {_format.cost(found.privacy_loss, _DELTA)}, for {found.privacy_loss.unit}")
    for line in _assumed(stated):
        show(f"  {line}")
    show(f"  {found.privacy_loss}")
    for one in checked:
        show(f"checked: {one}")
    for one in not_checked:
        say(f"not checked: {one}", "yellow")


def _assumed(stated: object) -> list[str]:
    """The caps and bounds in a receipt's statement, if it has them. A receipt may hold anything."""
    facts = stated.get("assumptions") if isinstance(stated, dict) else None
    caps, columns = (
        found if isinstance(facts, dict) and isinstance(found := facts.get(name), dict) else {}
        for name in ("caps", "columns")
    )
    lines = [", ".join(f"{name} = {caps[name]}" for name in sorted(caps))] if caps else []
    for name, column in columns.items():
        if isinstance(column, dict) and {"lower", "upper"} <= column.keys():
            lines.append(f"{name} is clamped to {column['lower']} .. {column['upper']}")
    return ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(_LARGEST + 1)
    except OSError as error:
        raise typer.BadParameter(
            f"{str(path)!r}: it can't be read ({error.strerror})", param_hint="'RECEIPT'"
        ) from None
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise ReceiptDiffers("this is no receipt: give the text that a receipt writes") from None
