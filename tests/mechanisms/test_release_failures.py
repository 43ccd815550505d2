"""A failed release is paid, locks the ledger, and says nothing private."""

import logging
import logging.config
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet._budget import Receipt
from discreet.accounting import PrivacyLoss
from discreet.audit import ScriptedBits
from discreet.errors import (
    BudgetExceeded,
    ComputationFailed,
    InvalidArgument,
    LedgerLocked,
    RequestReused,
)
from discreet.mechanisms import Bounded, Door, release, release_through
from discreet.noise import Bits
from tests.mechanisms.kit import LAPLACE, SECRET, FakePayer, ledger, number


class Panic(BaseException):
    """As engines written in Rust raise."""


def raising(error: BaseException) -> Callable[[], int]:
    def compute() -> int:
        rows = SECRET  # a local of the failing frame
        raise error from ValueError(f"row {rows}")

    return compute


FAILURES: dict[str, Callable[[], Any]] = {
    "an error": raising(ValueError(f"could not cast {SECRET}")),
    "a panic": raising(Panic(SECRET)),
    "an exit": raising(SystemExit(SECRET)),
    "a group": raising(ExceptionGroup(SECRET, [ValueError(SECRET)])),
    "an error of ours": raising(InvalidArgument(SECRET)),
    "a budget's error": raising(BudgetExceeded(SECRET)),
    "no memory": raising(MemoryError(SECRET)),
    "a float": lambda: float(SECRET),
    "a text": lambda: SECRET,
    "nothing": lambda: None,
    "a truth value": lambda: True,
    "an array": lambda: np.array([int(SECRET)]),
    "too many arguments": lambda x: x,  # type: ignore[dict-item,misc]
    "an endless recursion": lambda: endless(0),
}


def endless(depth: int) -> int:
    return endless(depth + 1)


class Lines(logging.Handler):
    """Every line that a log gets."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


@contextmanager
def listening(name: str | None) -> Iterator[list[str]]:
    log, handler, level = logging.getLogger(name), Lines(), logging.getLogger(name).level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@pytest.fixture
def owners_lines() -> Iterator[list[str]]:
    """The lines of the owner's log."""
    with listening("discreet.owner") as lines:
        yield lines


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_computation_is_paid_locked_and_silent(
    case: str,
    owners_lines: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    payer, texts = FakePayer(), set()
    for failing in (FAILURES[case], FAILURES["nothing"]):
        payer.is_locked = False
        with listening(None) as everybodys, pytest.raises(ComputationFailed) as caught:
            release(number(failing), LAPLACE, payer)
        assert everybodys == []
        error = caught.value
        texts.add(f"{error}|{error.args}|{type(error)}")
        assert error.__cause__ is None
        assert error.__context__ is None
        shown = "".join(traceback.format_exception(error)) + repr(error) + str(error)
        assert SECRET not in shown
        assert not private_in_locals(error)
        assert payer.is_locked
    assert len(texts) == 1  # the text tells nothing about the cause
    assert payer.events == ["charge", "lock"] * 2
    assert len(payer.charges) == 2
    assert owners_lines
    assert "the computation of charge 1 failed" in owners_lines[0]
    if case.startswith(("an e", "a p", "a g")):
        assert SECRET in owners_lines[0] or "recursion" in owners_lines[0]
    assert capfd.readouterr() == ("", "")


def private_in_locals(error: BaseException) -> list[str]:
    """The library's frames whose variables show the secret, as tools that print locals would."""
    found = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "discreet" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            shown = {name: repr(value) for name, value in frame.f_locals.items()}
            found += [f"{frame.f_code.co_name}: {name}" for name, v in shown.items() if SECRET in v]
    return found


def test_an_error_that_is_being_handled_stays_its_context_and_no_other() -> None:
    outer = KeyError("public")
    try:
        raise outer
    except KeyError:
        with pytest.raises(ComputationFailed) as caught:
            release(number(raising(ValueError(SECRET))), LAPLACE, FakePayer())
    assert caught.value.__context__ is outer
    assert outer.__context__ is None


def test_an_interrupt_passes_and_what_is_paid_stays_paid(owners_lines: list[str]) -> None:
    def interrupted() -> int:
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise KeyboardInterrupt(SECRET)  # noqa: B904  # as Ctrl-C while an error is handled

    payer = FakePayer()
    with pytest.raises(KeyboardInterrupt) as caught:
        release(number(interrupted), LAPLACE, payer, request="r")
    assert payer.events == ["charge"]
    assert len(payer.charges) == 1
    assert not payer.is_locked
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert owners_lines == []
    with pytest.raises(RequestReused):
        release(number(interrupted), LAPLACE, payer, request="r")


def test_a_mechanism_that_fails_is_as_silent(owners_lines: list[str]) -> None:
    @dataclass(frozen=True)
    class Broken:
        def privacy_loss(self, bounded: Bounded[int]) -> PrivacyLoss:
            return LAPLACE.privacy_loss(bounded)

        def sample(self, value: int, bits: Bits) -> int:
            raise OverflowError(f"{value} is too large")

    payer = FakePayer()
    with pytest.raises(ComputationFailed) as caught:
        release(number(lambda: int(SECRET)), Broken(), payer)
    assert caught.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert payer.events == ["charge", "lock"]
    assert SECRET in owners_lines[0]


def test_bits_that_end_too_early_are_a_failure_too() -> None:
    payer = FakePayer()
    with pytest.raises(ComputationFailed):
        release_through(Door(payer, ScriptedBits([]), None), number(), LAPLACE)
    assert payer.is_locked


def test_the_lock_comes_even_if_the_log_fails(capfd: pytest.CaptureFixture[str]) -> None:
    class Full(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                raise OSError("no space left")
            except OSError:
                self.handleError(record)

    payer, log, handler = FakePayer(), logging.getLogger("discreet.owner"), Full()
    log.addHandler(handler)
    try:
        with pytest.raises(ComputationFailed):
            release(number(raising(ValueError(SECRET))), LAPLACE, payer)
    finally:
        log.removeHandler(handler)
    assert payer.is_locked
    written = capfd.readouterr().err
    assert "no space left" in written
    assert SECRET not in written


def test_a_lock_that_fails_hides_nothing_and_tells_nothing(owners_lines: list[str]) -> None:
    class Stuck(FakePayer):
        def lock(self, receipt: Receipt) -> None:
            raise LedgerLocked("already")

    with pytest.raises(LedgerLocked) as caught:
        release(number(raising(ValueError(SECRET))), LAPLACE, Stuck())
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET in owners_lines[0]


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "a log for all of discreet": {"loggers": {"discreet": {"level": "DEBUG"}}},
    "only a root": {"root": {"level": "DEBUG", "handlers": ["all"]}},
    "the owner's log turned on": {"loggers": {"discreet.owner": {"propagate": True}}},
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_no_configuration_of_logging_opens_the_owners_log(
    case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    heard = Lines()
    names = (None, "discreet", "discreet.owner")
    logs = [logging.getLogger(name) for name in names]
    before = [(log, log.handlers[:], log.level, log.propagate, log.disabled) for log in logs]
    try:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {"all": {"()": lambda: heard}},
                "root": {"handlers": ["all"]},
                **CONFIGURATIONS[case],
            }
        )
        with pytest.raises(ComputationFailed):
            release(number(raising(ValueError(SECRET))), LAPLACE, FakePayer())
    finally:
        for log, handlers, level, propagate, disabled in before:
            log.handlers[:], log.propagate, log.disabled = handlers, propagate, disabled
            log.setLevel(level)
    assert heard.lines == []
    assert capfd.readouterr() == ("", "")


def test_a_real_ledger_is_locked_until_its_owner_acts() -> None:
    book = ledger()
    with pytest.raises(ComputationFailed):
        release(number(raising(ValueError(SECRET))), LAPLACE, book, request="r")
    assert book.is_locked
    with pytest.raises(LedgerLocked):
        release(number(), LAPLACE, book)
    assert SECRET not in repr(book.history())
    assert float(book.spent().epsilon) == 0.5
    book.unlock("looked", by="owner", allow_repeat=True)
    with pytest.raises(RequestReused):  # paid once, no answer, and no second draw
        release(number(), LAPLACE, book, request="r")
    assert release(number(), LAPLACE, book).receipt.number > 1


def test_two_failures_at_once_look_alike() -> None:
    book, start = ledger(), threading.Barrier(2)
    errors: list[BaseException] = []

    def fail() -> int:
        start.wait()
        raise ValueError(SECRET)

    def run() -> None:
        try:
            release(number(fail), LAPLACE, book)
        except Exception as error:  # noqa: BLE001  # of both threads, to be looked at
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [ComputationFailed] * 2
    assert book.is_locked
    assert float(book.spent().epsilon) == 1.0
