"""The misuse checker finds objects whose noise repeats or whose answers nobody pays for."""

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.audit import misuse
from discreet.errors import InvalidArgument
from discreet.noise import SecureBits

PERSON = dp.Unit("person")


class OwnGenerator:
    """Its generator is copied with it."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng()

    def answer(self) -> float:
        return 5 + float(self.generator.laplace())


class GlobalGenerator:
    def answer(self) -> float:
        return 5 + float(np.random.normal())


class OneAnswer:
    """A right that was paid once, and can be copied."""

    def __init__(self) -> None:
        self.is_used = False

    def answer(self) -> float:
        if self.is_used:
            raise ValueError("used")
        self.is_used = True
        return 5 + random.SystemRandom().gauss(0, 1)


class Paying:
    """Answers of which some are charged, in a book that copies share."""

    def __init__(self) -> None:
        self.book: list[int] = []

    def pay(self) -> None:
        self.book.append(1)

    def answer(self) -> float:
        self.pay()
        return 5 + random.SystemRandom().gauss(0, 1)


class PayingOnce(Paying):
    """A retry is taken as paid."""

    def pay(self) -> None:
        if not self.book:
            self.book.append(1)


class Racing(Paying):
    """It reads the number of charges, waits, and writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def pay(self) -> None:
        known = self.count
        threading.Event().wait(0.0005)
        self.count = known + 1


class PayingLate(Paying):
    """An interrupt between the mark and the charge leaves later answers unpaid."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paying = False

    def pay(self) -> None:
        if self.is_paying:
            return
        self.is_paying = True
        self.book.append(1)
        self.is_paying = False


def booked(one: Any) -> int:
    return len(one.book)


FAULTS: dict[str, tuple[Callable[[], Any], Callable[[Any], int] | None, set[str]]] = {
    "own generator": (OwnGenerator, None, {"copy.deepcopy", "pickle", "a fork"}),
    "global generator": (GlobalGenerator, None, {"a fork", "a seed"}),
    "one answer": (OneAnswer, None, {"copy.copy", "copy.deepcopy", "pickle", "a fork"}),
    "a retry is free": (PayingOnce, booked, {"a retry", "copy.copy", "an interrupt"}),
    "a race": (Racing, lambda one: one.count, {"threads"}),
    "an interrupt": (PayingLate, booked, {"an interrupt"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(name: str) -> None:
    make, charges, mistakes = FAULTS[name]
    found = misuse(make, lambda one: one.answer(), charges=charges)
    assert mistakes <= {one.mistake for one in found.faults}, found


def bounded() -> dp.Bounded[int]:
    return dp.Bounded(lambda: 5, sensitivity=1, unit=PERSON, name="count")


def ledger() -> dp.Ledger:
    return dp.Ledger.in_memory(unit=PERSON, limit=dp.Limit(epsilon=10**6))


def released(payer: dp.Ledger) -> int:
    value: int = dp.release(bounded(), dp.DiscreteLaplace(50), payer).value
    return value


def drawn(bits: SecureBits) -> int:
    return bits.word()


def fresh_bits() -> SecureBits:
    """With a stream in this thread, which an interrupt finds complete."""
    bits = SecureBits()
    bits.word()
    return bits


@pytest.mark.parametrize("make", [fresh_bits, Paying])
def test_a_right_object_is_not_accused(make: Callable[[], Any]) -> None:
    use = drawn if make is fresh_bits else (lambda one: one.answer())
    found = misuse(make, use)
    assert not found.faults, found


@pytest.mark.long
def test_a_ledger_is_not_accused_and_refuses_copies_and_forks() -> None:
    found = misuse(ledger, released, charges=lambda payer: payer.spent().charges)
    assert not found.faults, found
    refused = {one.mistake for one in found.attempts if one.is_refused}
    assert {"copy.copy", "copy.deepcopy", "pickle", "a fork"} <= refused


def test_answers_that_are_always_equal_show_nothing() -> None:
    with pytest.raises(InvalidArgument, match="equal answers of two fresh objects"):
        misuse(list, len)


def test_interrupts_leave_no_context_to_later_errors() -> None:
    """An error raised by a trace function within an ``except`` may never leave its thread."""

    class Excepting(Paying):
        def pay(self) -> None:
            threading.Condition(threading.Lock())  # has an ``except`` in three places
            super().pay()

    misuse(Excepting, Excepting.answer, charges=booked)
    with pytest.raises(ValueError, match="later") as caught:
        raise ValueError("later")
    assert caught.value.__context__ is None
