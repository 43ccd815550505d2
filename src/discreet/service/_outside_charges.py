"""Charges for computations on other machines, such as training runs: once for each request id.

The ledger alone decides and remembers, so that a charge needs one durable write. Its receipt is
made from the ledger's entry again. Only the text of a statement, of which the ledger has the
digest, is stored beside it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, ReceiptDiffers, RequestReused
from discreet.ledger import ChargeOrder, Ledger
from discreet.mechanisms import stated_loss
from discreet.service._answers import AnswerStore
from discreet.service._pace import padded
from discreet.service._problems import NOT_FOUND, Problem

T = TypeVar("T")
Body = Mapping[str, Any]  # Any: JSON
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_ELSEWHERE = "elsewhere"  # begins the digests of these charges, and of no questions


@dataclass(frozen=True, slots=True)
class OutsideCharge:
    """A request for a charge: who asks, the share that pays (None: the whole ledger), and the body,
    which names the table, too."""

    by: str
    share: str | None
    body: Body

    @property
    def digest(self) -> str:
        """The digest of the body; no question has an equal one."""
        whole = json.dumps(self.body, sort_keys=True).encode()
        return f"{_ELSEWHERE} {hashlib.sha256(whole).hexdigest()}"

    @property
    def statement(self) -> str | None:
        """The statement in the text that receipts are compared by; raises `InvalidArgument`."""
        text = self.body.get("statement")
        if text is None:
            return None
        try:
            return _CANONICAL.encode(json.loads(text))
        except (ValueError, RecursionError):
            raise InvalidArgument("statement: give a text of JSON") from None

    def order(self, ledger: Ledger) -> ChargeOrder:
        """The order for this ledger; raises `InvalidArgument`."""
        statement = self.statement
        loss = loss_in(self.body)
        _check_statement(statement, ledger, loss)
        return ChargeOrder.of(
            loss,
            purpose=self.body["purpose"],
            by=self.by,
            request=Request(self.body["request"], self.digest),
            is_insecure=self.body.get("is_insecure", False),
            statement=statement,
            share=self.share,
        )


@dataclass(frozen=True, slots=True)
class OutsideCharges:
    """Charges whose computations run elsewhere; those with statements are in the store of answers,
    too."""

    answers: AnswerStore

    def charge_each(
        self, ledger: Ledger, wanted: Sequence[OutsideCharge]
    ) -> list[bytes | Exception]:
        """For each charge the bytes of its receipt, or its error. It is recorded once for each
        request id of a ledger, also if the service ended in between."""
        orders = [_tried(partial(one.order, ledger)) for one in wanted]
        outcomes = iter(ledger.charge_each([one for one in orders if isinstance(one, ChargeOrder)]))
        paid = [next(outcomes) if isinstance(one, ChargeOrder) else one for one in orders]
        return [
            _tried(partial(self._answer, ledger, one, outcome))
            for one, outcome in zip(wanted, paid, strict=True)
        ]

    def _answer(self, ledger: Ledger, one: OutsideCharge, outcome: Receipt | Exception) -> bytes:
        request = one.body["request"]
        if isinstance(outcome, RequestReused):
            first = ledger.requested(request, one.by)
            if first is None or first.body != one.digest:
                raise outcome
            outcome = ledger.receipt(first.number, one.statement)
        if isinstance(outcome, Exception):
            raise outcome
        answer = padded(f'{{"receipt": {outcome.to_json()}}}'.encode())
        if "statement" in one.body:
            self.answers.put(one.by, request, one.digest, answer)
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


def _tried(step: Callable[[], T]) -> T | Exception:
    try:
        return step()
    except Exception as error:  # noqa: BLE001  # its own request raises it, and no other
        return error


def loss_in(body: Body) -> PrivacyLoss:
    """The privacy loss of a body."""
    return PrivacyLoss.from_json(body["privacy_loss"])


def _check_statement(text: str | None, ledger: Ledger, loss: PrivacyLoss) -> None:
    """Refuse a statement with which the receipt could not be checked."""
    if text is None:
        return
    facts = json.loads(text)
    if not isinstance(facts, dict) or "unit" not in facts:
        raise InvalidArgument("statement: give an object of JSON with a member unit, or null there")
    if facts["unit"] is None:
        return
    unit = ledger.unit
    if facts["unit"] != {"column": unit.plain, "change": unit.change.value}:
        raise InvalidArgument("statement: its unit is another one than the table's")
    stated = stated_loss(facts)
    if stated is not None and stated != loss.for_unit(unit):
        raise InvalidArgument(
            "statement: its sensitivities and noise imply another privacy loss than is charged"
        )
