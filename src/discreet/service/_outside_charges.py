"""Charges for computations on other machines, such as training runs: once for each request id."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, RequestReused
from discreet.ledger import Kind, Ledger, Share
from discreet.service._answers import AnswerStore
from discreet.service._pace import padded
from discreet.service._problems import NOT_FOUND, Problem

Body = Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class OutsideCharges:
    """Charges whose computations run elsewhere, with their receipts in the store of answers."""

    answers: AnswerStore

    def charge(self, by: str, ledger: Ledger, payer: Ledger | Share, body: Body) -> bytes:
        """The stored bytes of this charge's receipt. It is recorded once for each request id, also
        if the service ended in between. The body names the table, too."""
        loss, statement, id_ = loss_in(body), body.get("statement"), body["request"]
        _check_statement(statement)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        with self.answers.alone(by, id_):
            if (stored := self.answers.known(by, id_, digest)) is not None:
                return stored
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
                before = _charged(ledger, by, body)
                if before is None:
                    raise
                receipt = before
            answer = padded(json.dumps({"receipt": json.loads(receipt.to_json())}).encode())
            self.answers.put(by, (_key(receipt.digest), id_), digest, answer)
        return answer

    def own(self, by: str, body: Body) -> Receipt:
        """The receipt of a charge that this name made here, by its number and digest."""
        stored = self.answers.answer(by, _key(body["digest"]))
        facts = {} if stored is None else json.loads(stored)["receipt"]
        if facts.get("number") != body["number"]:
            raise Problem(NOT_FOUND)
        at = datetime.fromisoformat(facts["at"])
        return Receipt(facts["number"], facts["digest"], at, facts["purpose"], facts["by"])


def loss_in(body: Body) -> PrivacyLoss:
    """The privacy loss of a body."""
    return PrivacyLoss.from_json(body["privacy_loss"])


def _charged(ledger: Ledger, by: str, body: Body) -> Receipt | None:
    """The receipt of the same charge, if it was recorded before the service ended."""
    loss = loss_in(body).for_unit(ledger.unit)
    facts = Kind.CHARGE, by, body["request"], body["purpose"], loss
    for one in ledger.history():
        if (one.kind, one.by, one.request, one.purpose, one.loss) == facts:
            return ledger.receipt(one.number, body.get("statement"))
    return None


def _check_statement(text: str | None) -> None:
    """Refuse a statement that a receipt could not show."""
    try:
        json.dumps(None if text is None else json.loads(text), allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidArgument("statement: give a text of JSON") from None


def _key(digest: str) -> str:
    """The key of a charge among the stored answers; no request id has a slash."""
    return f"/{digest}"
