"""The door's streaming form: paid as a whole, then one answer after the other."""

import copy
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Pure
from discreet.audit import SeededBits
from discreet.errors import (
    BudgetExceeded,
    ComputationFailed,
    InvalidArgument,
    Refused,
    SessionEnded,
    WrongUnit,
)
from discreet.ledger import Ledger, check_receipt
from discreet.mechanisms import Bounded, Door, Session, session, session_through
from discreet.mechanisms.thresholds import SparseVector
from discreet.noise import Bits, DiscreteLaplaceLaw
from tests.bad_values import BadValue
from tests.mechanisms.kit import PERSON, SECRET, FakePayer, ListTrace, number


@dataclass(frozen=True)
class RunningSum:
    """Sums of what it was asked, with noise that it drew at the beginning; for a few steps."""

    steps: int
    payer: FakePayer | None = None

    def privacy_loss(self, unit: Unit) -> PrivacyLoss:
        return PrivacyLoss.of(Pure(1), unit=unit)

    def check(self, bounded: Bounded[int]) -> None:
        if bounded.part.sensitivity.l1 > 1:
            raise InvalidArgument("too sensitive")

    def begin(self, bits: Bits) -> Callable[[int], tuple[int, bool]]:
        if self.payer is not None:
            self.payer.events.append("begin")
        secret, seen = DiscreteLaplaceLaw(5).draw(bits), list[int]()

        def answer(value: int) -> tuple[int, bool]:
            seen.append(value)
            return secret + sum(seen), len(seen) < self.steps

        return answer


def test_the_charge_comes_before_everything() -> None:
    payer = FakePayer()
    counted = number(lambda: payer.events.append("compute") or 3)  # type: ignore[func-returns-value]
    with session(RunningSum(2, payer), payer, unit=PERSON, name="sums", by="ana") as opened:
        assert payer.events == ["charge", "begin"]
        first = opened.ask(counted)
        assert opened.ask(counted) == first + 3
        with pytest.raises(SessionEnded, match="all paid answers"):
            opened.ask(counted)
    assert payer.events == ["charge", "begin", "compute", "compute"]
    assert payer.charges == [PrivacyLoss.of(Pure(1), unit=PERSON)]
    assert (opened.receipt.purpose, opened.receipt.by) == ("sums", "ana")


def test_a_closed_session_answers_nothing() -> None:
    with session(RunningSum(2), FakePayer(), unit=PERSON, name="sums") as opened:
        pass
    with pytest.raises(SessionEnded):
        opened.ask(number())
    assert "secret" not in repr(opened)


def test_whenever_another_thread_asks_no_more_is_answered_than_was_paid_for() -> None:
    """It asks between any two steps of the interpreter's, once in each of these runs."""
    step, was_in_between = 0, True
    while was_in_between:
        with session(RunningSum(1), FakePayer(), unit=PERSON, name="sums") as opened:
            given: list[int] = []
            was_in_between = interrupted(opened, step, given)
        assert len(given) == 1
        step += 1
    assert step > 30


def interrupted(opened: Session[Any, Any], step: int, given: list[int]) -> bool:
    """Ask two questions, the second one where the first has come to this step, if it gets there."""
    left, outer = step, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:  # Any: itself
        nonlocal left
        frame.f_trace_opcodes = True
        if frame.f_code is not Session.ask.__code__:
            return None
        if event == "opcode":
            left -= 1
        if event == "opcode" and left == -1:
            sys.settrace(outer)
            with suppress(SessionEnded):
                given.append(opened.ask(number()))
        return trace

    sys.settrace(trace)
    try:
        with suppress(SessionEnded):
            given.append(opened.ask(number()))
    finally:
        sys.settrace(outer)
    return left < 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_is_never_copied(copied: Callable[[object], object]) -> None:
    with session(RunningSum(1), FakePayer(), unit=PERSON, name="sums") as opened:
        with pytest.raises(Refused, match="can't be copied"):
            copied(opened)
        opened.ask(number())


def test_closed_while_it_answers_it_stays_closed() -> None:
    with session(RunningSum(3), FakePayer(), unit=PERSON, name="sums") as opened:
        opened.ask(number(lambda: opened.close() or 1))  # type: ignore[func-returns-value]
        with pytest.raises(SessionEnded):
            opened.ask(number())


def test_unpaid_questions_are_refused_and_the_session_goes_on() -> None:
    runs: list[int] = []
    with session(RunningSum(2), FakePayer(), unit=PERSON, name="sums") as opened:
        with pytest.raises(InvalidArgument, match="too sensitive"):
            opened.ask(number(lambda: runs.append(1) or 1, sensitivity=2))  # type: ignore[func-returns-value]
        other = Bounded(lambda: 1, sensitivity=1, unit=Unit("household"), name="other")
        with pytest.raises(WrongUnit, match="'other' is for"):
            opened.ask(other)
        opened.ask(number())
    assert runs == []


@pytest.mark.parametrize("wrong", [None, "person", 1], ids=repr)
def test_a_session_for_no_unit_is_refused_before_it_is_paid(wrong: BadValue) -> None:
    payer = FakePayer()
    for mechanism in (RunningSum(2), SparseVector(1, threshold_scale=1, query_scale=1)):
        with (
            pytest.raises(InvalidArgument, match=r"unit = .*: give a Unit"),
            session(mechanism, payer, unit=wrong, name="sums"),
        ):
            pass
    assert payer.events == []


def test_nothing_begins_unless_it_is_paid() -> None:
    payer = FakePayer(refuses=True)
    with (
        pytest.raises(BudgetExceeded),
        session(RunningSum(2, payer), payer, unit=PERSON, name="sums"),
    ):
        raise AssertionError("opened")
    assert payer.events == ["charge"]
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=1))
    with session(RunningSum(2), ledger, unit=PERSON, name="sums"):
        pass
    with pytest.raises(BudgetExceeded), session(RunningSum(2), ledger, unit=PERSON, name="sums"):
        raise AssertionError("opened")


def test_a_failure_ends_it_in_silence() -> None:
    payer = FakePayer()

    def failing() -> int:
        raise ValueError(SECRET)

    with session(RunningSum(9), payer, unit=PERSON, name="sums") as opened:
        with pytest.raises(ComputationFailed) as caught:
            opened.ask(number(failing))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert SECRET not in str(caught.value)
        assert payer.is_locked
        with pytest.raises(SessionEnded):
            opened.ask(number())


def test_an_interrupt_ends_it_too() -> None:
    payer = FakePayer()

    def interrupted() -> int:
        raise KeyboardInterrupt

    with session(RunningSum(9), payer, unit=PERSON, name="sums") as opened:
        with pytest.raises(KeyboardInterrupt):
            opened.ask(number(interrupted))
        with pytest.raises(SessionEnded):
            opened.ask(number())
    assert not payer.is_locked


def test_a_given_door_is_marked() -> None:
    trace = ListTrace()
    door = Door(FakePayer(), SeededBits(1), trace)
    with session_through(door, RunningSum(2), unit=PERSON, name="sums") as opened:
        opened.ask(number())
    assert opened.receipt.is_insecure
    assert [event for event, _ in trace.notes] == ["charged", "bounded", "computed", "released"]


@dataclass(frozen=True)
class HoldsRows(RunningSum):
    """An interactive mechanism from elsewhere that holds rows."""

    rows: tuple[int, ...] = (4711, 4712)


def test_the_receipt_states_the_mechanism_and_nothing_that_may_hold_rows() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(4))
    vector = SparseVector(5, threshold_scale=2, query_scale=4)
    for mechanism in (vector, HoldsRows(3)):
        with session(mechanism, ledger, unit=PERSON, name="alarms", by="ana") as opened:
            text = opened.receipt.to_json()
        stated = check_receipt(text, ledger).facts["statement"]
        assert stated["question"] == "alarms"
        assert stated["unit"] == {"column": "person", "change": "add_remove"}
        assert stated["mechanism"]["kind"] == type(mechanism).__name__
        assert "4711" not in text
