"""The misuse checker finds objects whose noise repeats or whose answers nobody pays for."""

import os
import random
import sys
import threading
import time
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


class Limited:
    """It gives as many answers as it was paid for; a copy or a child has its own count."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def answer(self) -> float:
        if not self.left:
            raise ValueError("used")
        self.left -= 1
        return 5 + random.SystemRandom().gauss(0, 1)


class KnownSeed:
    def __init__(self) -> None:
        self.generator = random.Random(7)

    def answer(self) -> float:
        return 5 + self.generator.gauss(0, 1)


class PayingOncePerAnswer(Paying):
    """One question, whose answer is paid once and stored, in the order of these two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: float | None = None
        self.lock = threading.Lock()

    def answer(self) -> float:
        with self.lock:
            if self.stored is None:
                self.stored = super().answer()
            return self.stored


class StoringUnpaid(Paying):
    """An interrupt between the store and the charge leaves the stored answer unpaid."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: float | None = None

    def answer(self) -> float:
        if self.stored is None:
            self.stored = 5 + random.SystemRandom().gauss(0, 1)
            self.pay()
        return self.stored


class StoringBeside(PayingOncePerAnswer):
    """Copies and their original share the stored answer."""

    def __copy__(self) -> "StoringBeside":
        return self

    def __deepcopy__(self, _: object) -> "StoringBeside":
        return self


class Acquiring(Paying):
    """After an interrupt before ``try`` it waits for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def pay(self) -> None:
        self.lock.acquire()
        try:
            super().pay()
        finally:
            self.lock.release()


class Deadlocked(Paying):
    """It waits for ever in a child and in threads."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = os.getpid(), threading.get_ident()

    def pay(self) -> None:
        if self.owner != (os.getpid(), threading.get_ident()):
            threading.Event().wait()
        super().pay()


class NotCopied:
    """It refuses to be copied, and has noise of its own."""

    def __init__(self) -> None:
        self.left = 1

    def __reduce__(self) -> Any:
        raise TypeError("not copied")

    def drawn(self) -> float:
        return random.SystemRandom().gauss(0, 1)


class LookingFirst(NotCopied):
    """Two threads find the last answer at once."""

    def answer(self) -> float:
        if self.left < 1:
            raise ValueError("spent")
        found = self.drawn()
        time.sleep(0.001)
        self.left -= 1
        return found


class OfEachThread(NotCopied):
    """Each thread has a budget of its own."""

    def __init__(self) -> None:
        self.threads = threading.local()

    def answer(self) -> float:
        left = getattr(self.threads, "left", 2)
        if left < 1:
            raise ValueError("spent")
        self.threads.left = left - 1
        return self.drawn()


class MostlyCopied:
    """Nine answers of ten are those of a generator that is copied."""

    def __init__(self) -> None:
        self.own = random.Random(random.SystemRandom().random())

    def answer(self) -> float:
        source = random.SystemRandom() if random.SystemRandom().random() < 0.1 else self.own
        return source.gauss(0, 1)


class Exiting(NotCopied):
    """It refuses by ending the program."""

    def __init__(self) -> None:
        super().__init__()
        self.process, self.lock = os.getpid(), threading.Lock()

    def answer(self) -> float:
        with self.lock:
            if self.left < 1 or os.getpid() != self.process:
                sys.exit("spent")
            self.left -= 1
        return self.drawn()


class Permitted(NotCopied):
    """A third answer waits for ever."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(2)

    def answer(self) -> float:
        self.permits.acquire()
        return self.drawn()


class Hesitating:
    """Noise decides whether it answers."""

    def answer(self) -> float:
        found = 5 + random.SystemRandom().gauss(0, 1)
        if found < 4.5:
            raise ValueError("too few")
        return found


def booked(one: Any) -> int:
    return len(one.book)


COPIES = {"copy.copy", "copy.deepcopy", "pickle"}
FAULTS: dict[str, tuple[Callable[[], Any], Callable[[Any], int] | None, set[str]]] = {
    "own generator": (OwnGenerator, None, {"copy.deepcopy", "pickle", "a fork"}),
    "global generator": (GlobalGenerator, None, {"a fork", "a seed"}),
    "one answer": (OneAnswer, None, {"copy.copy", "copy.deepcopy", "pickle", "a fork"}),
    "a retry is free": (PayingOnce, booked, {"a retry", "copy.copy", "an interrupt"}),
    "a race": (Racing, lambda one: one.count, {"threads"}),
    "an interrupt": (PayingLate, booked, {"an interrupt"}),
    "a store before the charge": (StoringUnpaid, booked, {"an interrupt"}),
    "three answers": (lambda: Limited(3), None, {*COPIES, "a fork"}),
    "ten answers": (lambda: Limited(10), lambda one: 10 - one.left, {*COPIES, "a fork"}),
    "a look before the charge": (LookingFirst, None, {"threads"}),
    "a budget for each thread": (OfEachThread, None, {"threads"}),
    "permits that a child copies": (Permitted, None, {"a fork"}),
    "most answers repeat": (MostlyCopied, None, {"copy.deepcopy", "pickle", "a fork"}),
    "a known seed": (KnownSeed, None, {"a second object", "a seed"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.audit._misuse._PATIENCE", 0.5)
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


RIGHT: dict[str, tuple[Callable[[], Any], Callable[[Any], int] | None]] = {
    "paying": (Paying, None),
    "an answer that is paid and stored": (PayingOncePerAnswer, booked),
    "a stored answer of copies": (StoringBeside, booked),
    "a lock that an interrupt keeps": (Acquiring, booked),
    "a lock in other threads": (Deadlocked, None),
    "an end of the program": (Exiting, None),
    "noise that decides": (Hesitating, None),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_object_is_not_accused_and_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.audit._misuse._PATIENCE", 0.5)
    make, charges = RIGHT[name]
    found = misuse(make, lambda one: one.answer(), charges=charges)
    assert not found.faults, found
    refused = {one.mistake for one in found.attempts if one.is_refused}
    assert (make is Deadlocked) == ({"a fork", "threads"} <= refused)


def test_secure_bits_are_not_accused() -> None:
    found = misuse(fresh_bits, drawn)
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
