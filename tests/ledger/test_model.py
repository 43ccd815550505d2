"""Any course of events: the ledger does what twenty lines say it does."""

import tempfile
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from discreet._budget import AnyLimit, Limit, MuLimit, Receipt, RenyiLimit, Request
from discreet.accounting import Approximate, Filter, Gaussian, PrivacyLoss, Pure, Zcdp
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InvalidArgument,
    LedgerError,
    LedgerLocked,
    QuestionFailed,
    RequestReused,
)
from discreet.ledger import Kind, Ledger, _store
from tests.ledger.kit import PERSON

Outcome = type[DiscreetError] | tuple[int, str | None]


class Model:
    """A model of a ledger, without files, chains and digests."""

    def __init__(self, limit: AnyLimit) -> None:
        self.filter, self.entries, self.is_locked = Filter.for_limit(limit), 1, False
        self.paid: dict[int, PrivacyLoss] = {}
        self.requests: dict[tuple[str, str], tuple[int, str]] = {}
        self.answers: dict[int, str] = {}
        self.purposes: dict[int, str] = {}
        self.failed: set[int] = set()

    def charge(self, loss: PrivacyLoss, purpose: str, by: str, request: Request | None) -> Outcome:
        if request is not None and (by, request.id) in self.requests:
            first, body = self.requests[by, request.id]
            is_answered = body == request.body and first in self.answers
            return (first, self.answers[first]) if is_answered else RequestReused
        if self.is_locked:
            return LedgerLocked
        if purpose in {self.purposes[number] for number in self.failed}:
            return QuestionFailed
        if not self.admits([*self.paid.values(), loss]):
            return BudgetExceeded
        number = self.append()
        self.paid[number] = loss
        self.purposes[number] = purpose
        if request is not None:
            self.requests[by, request.id] = number, request.body
        return number, None

    def admits(self, losses: list[PrivacyLoss]) -> bool:
        limit = self.filter.limit
        if isinstance(limit, Limit) and not limit.delta:  # only sums of exact epsilons count
            terms = [pair for loss in losses for pair in loss.terms]
            pure = [count * term.epsilon for term, count in terms if isinstance(term, Pure)]
            return len(pure) == len(terms) and sum(pure) <= limit.epsilon
        spent = self.filter.start
        for loss in losses:
            spent = self.filter.add(spent, loss)
        return self.filter.admits(spent)

    def is_refused(self, number: int, answer: str) -> bool:
        """Whether this answer is not stored."""
        is_request = number in (first for first, _ in self.requests.values())
        if not is_request or number in self.answers:
            return True
        self.answers[number] = answer
        self.append()
        return False

    def append(self) -> int:
        self.entries += 1
        return self.entries - 1


PURE = st.sampled_from([Pure(0.1), Pure(0.3), Pure(0.25), Pure(0), Pure(1)])
OTHER = st.sampled_from([Gaussian(8), Zcdp(0.01), Approximate(0.1, 1e-8), Gaussian(3)])
LOSSES = st.builds(lambda count, term: count * term, st.integers(0, 3), PURE | OTHER)
REQUESTS = st.none() | st.builds(Request, st.sampled_from("ab"), st.sampled_from("xy"))


class Ledgers(RuleBasedStateMachine):
    """Rules that both the ledger and the model follow."""

    @initialize(
        limit=st.sampled_from([Limit(1), Limit(1, 1e-6), MuLimit(0.8), RenyiLimit({8: 0.6})]),
        is_file=st.booleans(),
    )
    def begin(self, limit: AnyLimit, is_file: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model(limit)
        self.receipts: dict[int, Receipt] = {}
        if is_file:
            self.ledger = Ledger.create(Path(self.folder.name) / "x", unit=PERSON, limit=limit)
        else:
            self.ledger = Ledger.in_memory(unit=PERSON, limit=limit)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(
        loss=LOSSES,
        purpose=st.sampled_from("pq"),
        by=st.sampled_from(["ana", "bo"]),
        request=REQUESTS,
        year=st.integers(1970, 2100),
    )
    def charge(
        self, loss: PrivacyLoss, purpose: str, by: str, request: Request | None, year: int
    ) -> None:
        expected = self.model.charge(loss, purpose, by, request)
        with mock.patch.object(_store, "_now", return_value=datetime(year, 1, 1, tzinfo=UTC)):
            if isinstance(expected, type):
                with pytest.raises(expected):
                    self.ledger.charge(loss, purpose=purpose, by=by, request=request)
                return
            receipt = self.ledger.charge(loss, purpose=purpose, by=by, request=request)
        assert (receipt.number, receipt.stored) == expected
        first = self.receipts.setdefault(receipt.number, receipt)
        assert replace(receipt, stored=None) == first

    @rule(data=st.data(), answer=st.text(max_size=3))
    def keep(self, data: st.DataObject, answer: str) -> None:
        if self.receipts:
            number = data.draw(st.sampled_from(sorted(self.receipts)))
            with (
                pytest.raises(InvalidArgument)
                if self.model.is_refused(number, answer)
                else nullcontext()
            ):
                self.ledger.keep(self.receipts[number], answer)

    @rule(data=st.data())
    def lock(self, data: st.DataObject) -> None:
        if self.receipts:
            number = data.draw(st.sampled_from(sorted(self.receipts)))
            self.ledger.lock(self.receipts[number])
            self.model.append()
            self.model.failed.add(number)
            self.model.is_locked = True

    @rule(allow=st.booleans())
    def unlock(self, allow: bool) -> None:
        if self.model.is_locked or (allow and self.model.failed):
            unlocked = self.ledger.unlock("looked", "owner", allow_repeat=allow)
            assert {entry.number for entry in unlocked} == self.model.failed
            self.model.append()
            self.model.is_locked = False
            self.model.failed -= self.model.failed if allow else set()
        else:
            with pytest.raises(LedgerError):
                self.ledger.unlock("looked", "owner", allow_repeat=allow)

    @rule()
    def open_again(self) -> None:
        if self.ledger.path is not None:
            self.ledger = Ledger.open(self.ledger.path)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        history = self.ledger.history()
        losses = {e.number: e.loss for e in history if e.kind is Kind.CHARGE}
        assert len(history) == self.model.entries
        assert losses == {n: loss.for_unit(PERSON) for n, loss in self.model.paid.items()}
        assert self.model.admits(list(self.model.paid.values()))
        assert self.ledger.is_locked == self.model.is_locked
        self.ledger.verify()


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(
    max_examples=20,
    stateful_step_count=25,
    suppress_health_check=[HealthCheck.too_slow],
)
