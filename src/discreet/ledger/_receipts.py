"""Checks a receipt, as `Receipt.to_json` wrote it, by itself and against its ledger.

A ledger's entry holds everything that a receipt states, or its digest. So the receipt is written
anew from the entry, and must have the same text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet._budget import RECEIPT_FORMAT, receipt_checksum, receipt_text
from discreet.accounting import PrivacyLoss
from discreet.errors import DiscreetError, ReceiptDiffers
from discreet.ledger._canonical import canonical
from discreet.ledger._ledger import Ledger

_UNREADABLE = (DiscreetError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError)

_MEMBERS = {
    *("receipt", "number", "digest", "at", "purpose", "by", "request", "is_insecure"),
    *("privacy_loss", "statement"),
}


@dataclass(frozen=True, slots=True)
class ReceiptCheck:
    """A receipt that passed its checks: its facts, and in words what was checked and what not."""

    facts: Mapping[str, Any]  # Any: JSON
    privacy_loss: PrivacyLoss
    checked: tuple[str, ...]
    not_checked: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"checked: {one}" for one in self.checked]
        return "\n".join([*lines, *(f"not checked: {one}" for one in self.not_checked)])


def check_receipt(
    text: str, ledger: Ledger | None = None, *, is_chain_verified: bool = True
) -> ReceiptCheck:
    """Check a receipt's text, and with ``ledger`` that it is this ledger's; reads no data. Without
    the chain of entries it takes a moment, however long the ledger is.

    Guarantee, with a ledger: each member of the receipt is what the entry at its number records,
    and the whole chain of the ledger follows by its rules. Without one, only damage is found, since
    anyone can write a text with a right checksum. Raises `ReceiptDiffers` otherwise, and
    `LedgerDamaged` for the ledger itself.
    """
    facts = _read(text)
    loss = _loss(facts)
    checked = ["the receipt's text is complete and agrees with its checksum"]
    not_checked = []
    if ledger is None:
        not_checked.append(
            f"that a ledger has the entry {facts['number']} with the digest {facts['digest']}: "
            "name the ledger's file"
        )
    else:
        if is_chain_verified:
            ledger.verify()
        _compare(facts, ledger)
        checked += [
            f"{_name(ledger)} has this digest, time, analyst and purpose at {facts['number']}",
            "it recorded this privacy loss and this statement",
        ]
        if is_chain_verified:
            checked.append("the chain of entries is whole, and its sums follow from its charges")
        else:
            not_checked.append("the ledger's whole chain of entries")
    if facts["statement"] is None:
        not_checked.append("assumptions and mechanisms: this charge was made without a statement")
    return ReceiptCheck(facts, loss, tuple(checked), tuple(not_checked))


def _read(text: str) -> dict[str, Any]:  # Any: JSON
    """The receipt's members, after a check of its form."""
    try:
        facts: dict[str, Any] = json.loads(text)  # Any: JSON
        checksum = facts.pop("checksum")
        is_whole = receipt_text({**facts, "checksum": checksum}) == text.removesuffix("\n")
    except (*_UNREADABLE, AttributeError):
        raise ReceiptDiffers("this is no receipt: give the text that a receipt writes") from None
    if facts.get("receipt") != RECEIPT_FORMAT or type(facts["receipt"]) is not int:
        raise ReceiptDiffers(
            f"this is a receipt of another version than {RECEIPT_FORMAT}, which this version of "
            "discreet reads"
        )
    if checksum != receipt_checksum(facts):
        raise ReceiptDiffers("the receipt was altered or damaged: its checksum differs")
    if not is_whole:
        raise ReceiptDiffers(
            "this has the members of a receipt in another layout: give the text of "
            "`discreet ask --receipt FILE`, or of receipt.to_json()"
        )
    if set(facts) != _MEMBERS:
        raise ReceiptDiffers(f"a receipt has the members {', '.join(sorted(_MEMBERS))}")
    return facts


def _loss(facts: Mapping[str, Any]) -> PrivacyLoss:
    try:
        loss = PrivacyLoss.from_json(canonical(facts["privacy_loss"]))
        unit = facts["statement"] and facts["statement"]["unit"]
    except (*_UNREADABLE, AttributeError):
        raise ReceiptDiffers("its privacy loss or its statement can't be read") from None
    if unit is not None and (loss.unit is None or unit != facts["privacy_loss"]["unit"]):
        raise ReceiptDiffers("its privacy loss is for another unit than its statement")
    return loss


def _compare(facts: Mapping[str, Any], ledger: Ledger) -> None:
    """Raise unless the entry at the receipt's number gives this very receipt."""
    statement = facts["statement"]
    text = None if statement is None else canonical(statement)
    written = json.loads(ledger.receipt(facts["number"], text).to_json())
    wrong = [name for name in facts if canonical(facts[name]) != canonical(written[name])]
    if wrong:
        raise ReceiptDiffers(
            f"entry {facts['number']} of {_name(ledger)} has another {', '.join(wrong)} than the "
            "receipt"
        )


def _name(ledger: Ledger) -> str:
    return "the ledger" if ledger.path is None else str(ledger.path)
