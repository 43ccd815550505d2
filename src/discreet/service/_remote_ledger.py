"""A ledger behind a service, as a payer: for training runs and releases on another machine.

The door is the same as with a ledger here. The service decides on each charge, by the ledger and by
the share of the token's name, and records it before the charge returns.
"""

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet import _checks, _html
from discreet._budget import Limit, Receipt, Request
from discreet.accounting import PrivacyLoss, Term
from discreet.errors import DiscreetError, Refused
from discreet.service._transport import (
    ServiceAddress,
    may_have_charged,
    objects_of,
    readable,
    text_of,
    written,
)


@dataclass(frozen=True, slots=True)
class RemoteLedger:
    """A payer whose charges are recorded by the ledger of a service.

    Guarantee: a charge returns only after the service recorded it, from the share of the token's
    name, below the ledger's limit. The service can't know what is computed here: that the
    computation costs what is charged is stated by the caller, as with a ledger here.
    """

    service: ServiceAddress
    table: str

    _repr_html_ = _html.shown

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        purpose: str,
        by: str,  # noqa: ARG002  # the service knows it from the token
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
    ) -> Receipt:
        """Let the service record the privacy loss; the receipt, or its refusal as an error.

        A charge whose reply is lost is repeated under the same id, and recorded once. Raises
        `Refused` for a ``request``: the service stores answers to its own questions only.
        """
        if request is not None:
            raise Refused(
                "request: a service stores the answers to its own questions only: leave it out"
            )
        id_ = secrets.token_hex(16)
        body = {
            "privacy_loss": loss.to_json(),
            "purpose": _checks.text(purpose=purpose),
            "is_insecure": is_insecure,
            "request": id_,
            **({} if statement is None else {"statement": statement}),
        }
        try:
            found = self.service.post("tables", self.table, "charge", body=body)
            with readable():
                receipt = _receipt(dict(found["receipt"]), statement)
                if PrivacyLoss.from_json(receipt.privacy_loss or "").terms != loss.terms:
                    raise ValueError("it is for another privacy loss")
        except DiscreetError as failure:
            if not may_have_charged(failure):
                raise
            raise type(failure)(
                f"{failure}; it may have been charged: look for the request {id_!r} in the history"
            ) from None
        return receipt

    def keep(self, receipt: Receipt, answer: str) -> None:  # noqa: ARG002  # a payer's
        """Refused: the service stores the answers to its own questions only."""
        raise Refused(f"a service stores no answer to charge {receipt.number}")

    def lock(self, receipt: Receipt) -> None:
        """Let the service refuse further charges: the computation failed after it was paid. The
        ledger of an owner is locked, and the share of an analyst ends."""
        self.service.post("tables", self.table, "lock", body=_named(receipt))

    def reserve(
        self, receipt: Receipt, loss: PrivacyLoss, *, count: int, of: int, plan: str
    ) -> range:
        """Reserve the next steps of a plan that this receipt paid, as `Ledger.reserve` does. Steps
        whose reply is lost count as taken."""
        facts = {"privacy_loss": loss.to_json(), "count": count, "of": of, "plan": plan}
        found = self.service.post(
            "tables", self.table, "reserve", body={**_named(receipt), **facts}
        )
        with readable():
            taken = range(_whole(found["first"]), _whole(found["end"]))
            if not 0 <= taken.start < taken.stop <= min(of, taken.start + count):
                raise ValueError("these steps were not asked for")
        return taken

    def reserved(self, receipt: Receipt) -> int:
        """The number of reserved steps, of those that this receipt paid."""
        found = self.service.post("tables", self.table, "reserved", body=_named(receipt))
        with readable():
            return _whole(found["reserved"])

    # the owner's

    def verify(self) -> int:
        """Let the service verify every entry and all sums; the number of the last entry."""
        found = self.service.post("tables", self.table, "verify")
        with readable():
            return _whole(found["entries"])

    def grant(self, share: str, *, limit: Limit, reserve: PrivacyLoss | Term | None = None) -> None:
        """Open a share below the ledger's limit, as `Ledger.grant`."""
        facts: dict[str, object] = {"epsilon": written(epsilon=limit.epsilon)}
        if limit.delta:
            facts["delta"] = written(delta=limit.delta)
        if reserve is not None:
            loss = PrivacyLoss.of(reserve) if isinstance(reserve, Term) else reserve
            facts["reserve"] = loss.to_json()
        self.service.change("PUT", *self._share(share), body=facts)

    def revoke(self, share: str) -> None:
        """End a share; what it spent stays spent."""
        self.service.change("DELETE", *self._share(share))

    def locks(self) -> tuple[list[int], list[dict[str, Any]]]:
        """The numbers of the entries that lock the ledger, and the entries of the questions that
        failed and may not be asked again, as JSON."""
        found = self.service.get("tables", self.table, "locks")
        with readable():
            return [_whole(number) for number in list(found["locks"])], _failed(found)

    def unlock(
        self, reason: str, *, allow_repeat: bool = False, locks: Collection[int] | None = None
    ) -> list[dict[str, Any]]:
        """Open a locked ledger again, as `Ledger.unlock`; the entries of the questions that failed,
        as JSON."""
        facts = {"reason": _checks.text(reason=reason), "allow_repeat": allow_repeat}
        if locks is not None:
            facts["locks"] = " ".join(map(str, (0, *locks)))  # entry 0 never locks
        found = self.service.change("POST", "tables", self.table, "unlock", body=facts)
        with readable():
            return _failed(found)

    def _share(self, share: str) -> tuple[str, ...]:
        return "tables", self.table, "shares", _checks.text(share=share)

    def __repr__(self) -> str:
        return f"<ledger of {self.table!r} at {self.service.url}>"


def _failed(found: dict[str, Any]) -> list[dict[str, Any]]:  # Any: JSON
    """The checked entries of failed questions."""
    failed = objects_of(found, "failed")
    for one in failed:
        _whole(one["number"]), text_of(one, "by"), text_of(one, "purpose")
        datetime.fromisoformat(text_of(one, "at"))
    return failed


def _named(receipt: Receipt) -> dict[str, object]:
    return {"number": receipt.number, "digest": receipt.digest}


def _receipt(facts: dict[str, Any], statement: str | None) -> Receipt:  # Any: JSON
    loss = json.dumps(facts["privacy_loss"])
    return Receipt(
        _whole(facts["number"]),
        text_of(facts, "digest"),
        datetime.fromisoformat(text_of(facts, "at")),
        text_of(facts, "purpose"),
        text_of(facts, "by"),
        is_insecure=facts["is_insecure"] is True,
        request=text_of(facts, "request"),
        privacy_loss=loss,
        statement=statement,
    )


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("this is no integer")
    return value
