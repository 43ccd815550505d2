"""The one door: charge, then compute, then noise; and what a release says."""

import sys
from dataclasses import dataclass

import pytest

from discreet import accounting
from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.audit import SeededBits
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerLocked, Refused, WrongUnit
from discreet.ledger import Ledger
from discreet.mechanisms import Bounded, DiscreteLaplace, Door, release, release_through
from discreet.noise import Bits, SecureBits
from tests.mechanisms.kit import (
    LAPLACE,
    PERSON,
    SECRET,
    FakePayer,
    ListTrace,
    ledger,
    number,
    silent_door,
)


@dataclass(frozen=True)
class Watched:
    """A discrete Laplace mechanism that tells the payer's list when it draws."""

    payer: FakePayer

    def privacy_loss(self, bounded: Bounded[int]) -> PrivacyLoss:
        self.payer.events.append("price")
        return LAPLACE.privacy_loss(bounded)

    def sample(self, value: int, bits: Bits) -> int:
        self.payer.events.append("draw")
        return LAPLACE.sample(value, bits)


# Order


def test_the_charge_comes_first_and_the_noise_last() -> None:
    payer = FakePayer()
    bounded = number(lambda: payer.events.append("compute") or 41)  # type: ignore[func-returns-value]
    release(bounded, Watched(payer), payer, request="r")
    assert payer.events == ["price", "charge", "compute", "draw", "keep"]
    assert payer.charges == [LAPLACE.privacy_loss(bounded)]


def test_without_a_request_no_answer_is_stored() -> None:
    payer = FakePayer()
    release(number(), LAPLACE, payer)
    assert payer.events == ["charge"]


def test_nothing_is_computed_that_is_not_paid() -> None:
    def never() -> int:
        raise AssertionError("computed without a charge")

    with pytest.raises(BudgetExceeded):
        release(number(never), LAPLACE, FakePayer(refuses=True))
    with pytest.raises(LedgerLocked):
        release(number(never), LAPLACE, FakePayer(is_locked=True))
    with pytest.raises(BudgetExceeded):
        release(number(never), LAPLACE, ledger(0.49))
    payer = FakePayer()
    for wrong in ({"by": ""}, {"purpose": " "}, {"request": ""}, {"request": "x" * 201}):
        with pytest.raises(InvalidArgument):
            release(number(never), LAPLACE, payer, **wrong)
    joint = Bounded.together(dict, parts=number().parts, unit=PERSON, name="joint")
    with pytest.raises(Refused):
        release(joint, LAPLACE, payer)  # type: ignore[arg-type]
    assert payer.events == []


def test_charges_name_the_unit_of_the_computation() -> None:
    @dataclass(frozen=True)
    class Priced:
        loss: PrivacyLoss

        def privacy_loss(self, bounded: Bounded[int]) -> PrivacyLoss:
            return self.loss

        def sample(self, value: int, bits: Bits) -> int:
            return 0

    payer = FakePayer()
    release(number(), Priced(PrivacyLoss.of(accounting.Pure(1))), payer)
    assert payer.charges[0].unit == PERSON
    with pytest.raises(WrongUnit):
        release(number(), Priced(PrivacyLoss.of(accounting.Pure(1), unit=Unit.ROW)), payer)
    assert len(payer.charges) == 1
    rows = Ledger.in_memory(unit=Unit.ROW, limit=Limit(epsilon=10))
    with pytest.raises(WrongUnit):
        release(number(), Priced(PrivacyLoss.of(accounting.Pure(1))), rows)


def test_the_value_is_the_result_with_the_mechanisms_noise() -> None:
    door = Door(FakePayer(), SeededBits(4), None)
    answer = release_through(door, number(), LAPLACE)
    assert answer.value == LAPLACE.sample(41, SeededBits(4))
    assert release_through(silent_door(FakePayer()), number(), LAPLACE).value == 41
    fresh = [release(number(), DiscreteLaplace(10**6), FakePayer()).value for _ in range(20)]
    assert len(set(fresh)) == 20


def test_a_release_says_what_it_cost_and_how_wrong_it_may_be() -> None:
    payer = FakePayer()
    answer = release(number(), LAPLACE, payer, purpose="a count", by="ana")
    assert answer.privacy_loss == payer.charges[0]
    assert answer.receipt is payer.receipts[0]
    assert (answer.receipt.purpose, answer.receipt.by) == ("a count", "ana")
    assert answer.error() == LAPLACE.error(0.95)
    assert answer.error(0.5) == LAPLACE.error(0.5)
    assert repr(answer).splitlines() == [
        f"people: {answer.value}",
        f"  by DiscreteLaplace(scale=2), for {PERSON}; sensitivity asserted by the caller",
        f"  privacy loss {answer.privacy_loss}, receipt 1 (0f0f0f0f0f0f)",
    ]


def test_a_release_holds_nothing_private() -> None:
    private = [int(SECRET)]
    before = sys.getrefcount(private)
    answer = release(number(lambda: private[0]), DiscreteLaplace(10**9), FakePayer())
    assert sys.getrefcount(private) == before  # the computation is gone with its argument
    assert SECRET not in repr(answer)
    fields = {name: getattr(answer, name) for name in answer.__slots__}
    assert not any(isinstance(value, Bounded | Door) for value in fields.values())


# Doors that are not secure


def test_only_secret_bits_with_nobody_watching_are_secure() -> None:
    class Look(SecureBits):
        __slots__ = ()

    payer = FakePayer()
    assert Door.secure(payer).is_secure
    assert Door(payer, SecureBits(), None).is_secure
    for bits, trace in ((SeededBits(1), None), (SecureBits(), ListTrace()), (Look(), None)):
        door = Door(payer, bits, trace)
        assert not door.is_secure
        answer = release_through(door, number(), LAPLACE)
        assert answer.receipt.is_insecure
        assert repr(answer).startswith("INSECURE")
        assert "INSECURE" in answer._repr_html_()
    secure = release(number(), LAPLACE, payer)
    assert not secure.receipt.is_insecure
    assert "INSECURE" not in repr(secure) + secure._repr_html_()


def test_the_ledger_remembers_an_insecure_door() -> None:
    book = ledger()
    assert not release(number(), LAPLACE, book).receipt.is_insecure
    answer = release_through(Door(book, SeededBits(1), None), number(), LAPLACE)
    assert answer.receipt.is_insecure


def test_a_trace_sees_the_run() -> None:
    trace = ListTrace()
    answer = release_through(silent_door(FakePayer(), trace), number(), LAPLACE)
    events = [event for event, _ in trace.notes if event != "bounded"]
    assert events == ["charged", "computed", "released"]
    notes = dict(trace.notes)
    assert (notes["computed"], notes["released"]) == (41, 41)
    assert PrivacyLoss.from_json(str(notes["charged"])) == answer.privacy_loss
