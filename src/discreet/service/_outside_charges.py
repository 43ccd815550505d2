"""Charges for computations on other machines, such as training runs: once for each request id.

The ledger alone decides and remembers, so that a charge needs one durable write. Its receipt is
made from the ledger's entry again. Only the text of a statement, of which the ledger has the
digest, is stored beside it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, ReceiptDiffers, RequestReused
from discreet.ledger import Ledger, Share
from discreet.service._answers import AnswerStore
from discreet.service._pace import padded
from discreet.service._problems import NOT_FOUND, Problem

Body = Mapping[str, Any]  # Any: JSON
_ELSEWHERE = "elsewhere"  # begins the digests of these charges, and of no questions


@dataclass(frozen=True, slots=True)
class OutsideCharges:
    """Charges whose computations run elsewhere; those with statements are in the store of answers,
    too."""

    answers: AnswerStore

    def charge(self, by: str, ledger: Ledger, payer: Ledger | Share, body: Body) -> bytes:
        """The bytes of this charge's receipt. It is recorded once for each request id of a ledger,
        also if the service ended in between. The body names the table, too."""
        loss, statement, id_ = loss_in(body), body.get("statement"), body["request"]
        _check_statement(statement)
        whole = json.dumps(body, sort_keys=True).encode()
        digest = f"{_ELSEWHERE} {hashlib.sha256(whole).hexdigest()}"
        try:
            receipt = payer.charge(
                loss,
                purpose=body["purpose"],
                by=by,
                request=Request(id_, digest),
                is_insecure=body.get("is_insecure", False),
                statement=statement,
            )
        except RequestReused:
            first = ledger.requested(id_, by)
            if first is None or first.body != digest:
                raise
            receipt = ledger.receipt(first.number, statement)
        answer = padded(f'{{"receipt": {receipt.to_json()}}}'.encode())
        if statement is not None:
            self.answers.put(by, id_, digest, answer)
        return answer

    def receipt(self, by: str, request: str, ledgers: Iterable[Ledger]) -> object:
        """The receipt of the caller's own paid request, as JSON."""
        stored = self.answers.answer(by, request)
        if stored is not None:
            return json.loads(stored)["receipt"]
        for ledger in ledgers:
            if (charge := ledger.requested(request, by)) is not None:
                with suppress(ReceiptDiffers):  # its statement is not stored yet
                    return json.loads(ledger.receipt(charge.number).to_json())
        raise Problem(NOT_FOUND)


def own(by: str, ledger: Ledger, body: Body) -> Receipt:
    """The receipt of a charge for a computation elsewhere that this name made, by its number and
    digest; that of a question is refused, since it pays for the question."""
    found = ledger.entry(body["number"])
    is_own = found is not None and (found.by, found.digest) == (by, body["digest"])
    if found is None or not is_own or not (found.body or "").startswith(_ELSEWHERE):
        raise Problem(NOT_FOUND)
    return Receipt(found.number, found.digest, found.at, found.purpose or "", by)


def loss_in(body: Body) -> PrivacyLoss:
    """The privacy loss of a body."""
    return PrivacyLoss.from_json(body["privacy_loss"])


def _check_statement(text: str | None) -> None:
    """Refuse a statement that a receipt could not show."""
    try:
        json.dumps(None if text is None else json.loads(text), allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidArgument("statement: give a text of JSON") from None
