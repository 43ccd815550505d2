"""The parent's side of one paid job: it charges the ledger, and knows whether rows were read."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss
from discreet.errors import ComputationFailed, DiscreetError, Refused
from discreet.ledger import Ledger, Share
from discreet.service._work_order import WorkOrder, public_name

_LEAST, _LEAST_WITH_DELTA = Decimal("0.99"), Decimal("0.1")  # of the ordered epsilon


def is_whole_price(loss: PrivacyLoss, epsilon: Decimal, delta: Decimal) -> bool:
    """Whether a privacy loss is about the ordered epsilon. Without a delta the two are equal up to
    rounding; with one, parts that are composed may cost less together."""
    pure = loss.epsilon(0)
    if delta == 0:
        return pure >= _LEAST * epsilon
    least = _LEAST_WITH_DELTA * epsilon
    return least <= pure < math.inf or loss.epsilon(delta) >= least


class Payment:
    """The rights of one job at its ledger: one charge, then to store its answer or to lock.

    ``by``, the share and the request id come from the caller, never from the worker. So does the
    price: a worker that names a far smaller privacy loss than was ordered is a broken one.
    """

    __slots__ = ("_has_failed", "_is_stored", "_order", "_payer", "_receipt")

    def __init__(self, payer: Ledger | Share, order: WorkOrder) -> None:
        """Charge this payer for this order."""
        self._payer, self._order = payer, order
        self._receipt: Receipt | None = None
        self._is_stored = self._has_failed = False

    @property
    def is_paid(self) -> bool:
        """Whether the question was charged, now or by an earlier request."""
        return self._receipt is not None

    @property
    def has_read_rows(self) -> bool:
        """Whether rows may have been read whose answer is not stored yet."""
        return self._receipt is not None and not self._is_stored

    @property
    def receipt(self) -> Receipt:
        """The receipt of the charge, whatever the worker says of it."""
        return self._own_receipt()

    def accepts(self, reply: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a worker may end its job with this reply: with a result of a paid and stored
        answer, with a refusal before the charge, or after it with the failure that locked."""
        if "result" in reply:
            return self._is_stored and not self._has_failed
        if not self.is_paid:
            return True
        is_failure = "error" in reply and reply["error"][0] == ComputationFailed.__name__
        return self._has_failed and is_failure

    def reply(self, frame: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
        """The reply to a worker's request; an error of the ledger by its name and text."""
        ((kind, facts),) = frame.items()
        try:
            match kind:
                case "charge":
                    return {"done": self._charge(facts)}
                case "keep":
                    self._payer.keep(self._own_receipt(), facts["answer"])
                    self._is_stored = True
                case "lock":
                    self.lock()
                case _:
                    raise ValueError(f"a worker asked for {kind!r}")
        except DiscreetError as refusal:
            return {"error": [public_name(refusal), str(refusal)]}
        return {"done": None}

    def lock(self) -> None:
        """Lock the ledger: the computation failed after it was paid."""
        self._payer.lock(self._own_receipt())
        self._is_stored = self._has_failed = True  # nothing is left to decide

    def _charge(self, facts: Mapping[str, Any]) -> dict[str, object]:  # Any: JSON
        # 1. one charge, of the price that was ordered
        if self._receipt is not None:
            raise Refused("this question was charged already")
        loss = PrivacyLoss.from_json(facts["privacy_loss"])
        if not is_whole_price(loss, self._order.epsilon, self._order.delta):
            raise ValueError("a worker named a smaller price than was ordered")
        # 2. charge
        assert self._order.request is not None  # a paid order has one
        receipt = self._payer.charge(
            loss,
            purpose=facts["purpose"],
            by=self._order.by,
            request=Request(self._order.request, facts["body"]),
            is_insecure=facts["is_insecure"],
            statement=facts["statement"],
        )
        self._receipt, self._is_stored = receipt, receipt.stored is not None
        # 3. the receipt, as the worker reads it
        return {
            "number": receipt.number,
            "digest": receipt.digest,
            "at": receipt.at.isoformat(),
            "purpose": receipt.purpose,
            "by": receipt.by,
            "stored": receipt.stored,
            "is_insecure": receipt.is_insecure,
            "request": receipt.request,
            "privacy_loss": receipt.privacy_loss,
            "statement": receipt.statement,
        }

    def _own_receipt(self) -> Receipt:
        if self._receipt is None:
            raise Refused("this question was not charged")
        return self._receipt
