"""A payer that remembers what happens in which order, and things to release."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
from flint import arb

from discreet._arrays import FloatArray
from discreet._budget import Limit, Receipt, Request
from discreet._exact import ball
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.audit import ZeroNoiseBits
from discreet.errors import BudgetExceeded, LedgerLocked, RequestReused
from discreet.ledger import Ledger
from discreet.mechanisms import Bounded, DiscreteLaplace, Door

PERSON = Unit("person")
SECRET = "4079213586"
LAPLACE = DiscreteLaplace(2)


@dataclass
class FakePayer:
    """Keeps ledgers' promises in memory: refuses on demand, stores answers, locks."""

    events: list[str] = field(default_factory=list)
    charges: list[PrivacyLoss] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    refuses: bool = False
    is_locked: bool = False
    _requests: dict[tuple[str, str], tuple[str, Receipt]] = field(default_factory=dict)
    _answers: dict[int, str] = field(default_factory=dict)

    def charge(
        self,
        loss: PrivacyLoss,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
    ) -> Receipt:
        self.events.append("charge")
        if request is not None and (by, request.id) in self._requests:
            body, receipt = self._requests[by, request.id]
            stored = self._answers.get(receipt.number)
            if body != request.body or stored is None:
                raise RequestReused("used before")
            return self._receipt(receipt.number, purpose, by, stored, is_insecure)
        if self.is_locked:
            raise LedgerLocked("locked")
        if self.refuses:
            raise BudgetExceeded("too much")
        self.charges.append(loss)
        receipt = self._receipt(len(self.charges), purpose, by, None, is_insecure)
        if request is not None:
            self._requests[by, request.id] = request.body, receipt
        return receipt

    def keep(self, receipt: Receipt, answer: str) -> None:
        self.events.append("keep")
        self._answers[receipt.number] = answer

    def lock(self, receipt: Receipt) -> None:
        self.events.append("lock")
        self.is_locked = True

    def _receipt(
        self, number: int, purpose: str, by: str, stored: str | None, is_insecure: bool
    ) -> Receipt:
        receipt = Receipt(number, "0f" * 32, datetime.now(UTC), purpose, by, stored, is_insecure)
        self.receipts.append(receipt)
        return receipt


@dataclass
class ListTrace:
    """A trace that stores everything it receives."""

    notes: list[tuple[str, object]] = field(default_factory=list)

    def note(self, event: str, fact: object) -> None:
        self.notes.append((event, fact))


def silent_door(payer: FakePayer, trace: ListTrace | None = None) -> Door:
    """A door without noise."""
    return Door(payer, ZeroNoiseBits(), trace)


def ledger(epsilon: float = 10) -> Ledger:
    """A ledger in memory with this epsilon as its limit."""
    return Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=epsilon))


def lost(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """The sum of p - e^epsilon q over the outcomes where that is positive: the least delta."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def least_delta(p: list[arb], q: list[arb], epsilon: Fraction) -> arb:
    """`lost` in balls, with proven ends."""
    grown = ball(epsilon).exp()
    return sum((max(a - grown * b, arb(0)) for a, b in zip(p, q, strict=True)), arb(0))


def number(compute: Callable[[], int] = lambda: 41, sensitivity: int = 1) -> Bounded[int]:
    return Bounded(compute, sensitivity=sensitivity, unit=PERSON, name="people")
