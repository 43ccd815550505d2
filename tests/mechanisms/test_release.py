"""The one door: charge, then compute, then noise; and silence about everything private."""

import json
import logging
import logging.config
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.accounting import PrivacyLoss
from discreet.audit import ScriptedBits, SeededBits
from discreet.errors import (
    BudgetExceeded,
    ComputationFailed,
    InvalidArgument,
    LedgerLocked,
    Refused,
    RequestReused,
    WrongUnit,
)
from discreet.ledger import Ledger
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    Gaussian,
    IntegerArray,
    Mechanism,
    Part,
    Sensitivity,
    Together,
    Value,
    release,
    release_through,
)
from discreet.noise import Bits, SecureBits
from discreet.payment import Limit, Receipt
from discreet.unit import Unit
from tests.mechanisms.kit import PERSON, SECRET, FakePayer, ListTrace, number, silent_door

LAPLACE = DiscreteLaplace(2)


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


def ledger(epsilon: float = 10) -> Ledger:
    return Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=epsilon))


# Order


def test_the_charge_comes_first_and_the_noise_last() -> None:
    payer = FakePayer()
    bounded = number(lambda: payer.events.append("compute") or 41)  # type: ignore[func-returns-value]
    release(bounded, Watched(payer), payer, request="r")
    assert payer.events == ["price", "charge", "compute", "draw", "keep"]
    assert payer.charges == [LAPLACE.privacy_loss(bounded)]


def test_without_a_request_nothing_is_kept() -> None:
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


def test_what_is_charged_is_for_the_unit_of_the_computation() -> None:
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
    assert not release(number(), LAPLACE, payer).receipt.is_insecure
    assert "INSECURE" not in repr(release(number(), LAPLACE, payer))


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


# Failures


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
    """What the owner's log gets."""
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
    book.unlock("looked", by="owner")
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


# Repeating a request

ARRAY = np.array([[1, -2], [2**62, 0]])
PARTS = (
    Part("people", (), Sensitivity(l1=1)),
    Part("pay", (2,), Sensitivity(l1=2)),
    Part("wide", (2,), Sensitivity(l1=2)),
)
JOINT: dict[str, Value] = {
    "people": 41,
    "pay": np.array([1, 2]),
    "wide": np.array([2**90, -1], dtype=object),
}
TOGETHER = Together({"wide": Gaussian(2**70), "pay": Gaussian(5), "people": LAPLACE})


def shaped(values: IntegerArray) -> Bounded[Any]:
    return Bounded(lambda: values, sensitivity=1, unit=PERSON, name="a", shape=values.shape)


RELEASES: dict[str, tuple[Bounded[Any], Mechanism[Any, Any]]] = {
    "a number": (number(), DiscreteLaplace(1000)),
    "a large number": (number(lambda: 3**200), DiscreteLaplace(2**80)),
    "an array": (shaped(ARRAY), DiscreteLaplace(1000)),
    "an array at its end": (shaped(ARRAY), DiscreteLaplace(2**70)),
    "an object array": (shaped(ARRAY.astype(object) * 2**80), DiscreteLaplace(2**80)),
    "an empty array": (shaped(np.zeros((0, 2), dtype=np.int64)), LAPLACE),
    "several parts": (
        Bounded.together(lambda: JOINT, parts=PARTS, unit=PERSON, name="joint"),
        TOGETHER,
    ),
}


def same(one: object, other: object) -> bool:
    """Equal in value, kind, shape and order."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and [(type(x), x) for x in one.flat] == [(type(x), x) for x in other.flat]
        )
    return type(one) is type(other) is int and one == other


@pytest.mark.parametrize("case", RELEASES)
@pytest.mark.parametrize("payer", [FakePayer, None], ids=["fake", "ledger"])
def test_a_request_gives_one_draw(case: str, payer: Callable[[], FakePayer] | None) -> None:
    bounded, mechanism = RELEASES[case]
    limit = Limit(epsilon=10, delta=1e-6)
    book: Any = payer() if payer else Ledger.in_memory(unit=PERSON, limit=limit)
    first = release(bounded, mechanism, book, request="r", by="ana")
    once = repr(book.charges) if payer else book.spent()
    again = release(bounded, mechanism, book, request="r", by="ana")
    assert same(first.value, again.value)
    assert once == (repr(book.charges) if payer else book.spent())
    assert first.receipt.number == again.receipt.number
    other = release(bounded, mechanism, book, request="s", by="ana")
    assert first.receipt.number != other.receipt.number
    if first.receipt.kept is None and "empty" not in case and "at its end" not in case:
        assert not same(first.value, other.value)  # the id gives no noise: a new one, a new draw


def test_a_repeated_request_computes_nothing() -> None:
    runs: list[int] = []
    payer = FakePayer()
    bounded = number(lambda: runs.append(1) or 41)  # type: ignore[func-returns-value]
    for _ in range(3):
        release(bounded, LAPLACE, payer, request="r")
    assert len(runs) == len(payer.charges) == 1


@pytest.mark.parametrize("payer", [FakePayer, ledger])
def test_another_question_under_the_same_request_is_refused(payer: Callable[[], Any]) -> None:
    book = payer()
    release(number(), LAPLACE, book, request="r")
    others: list[tuple[Bounded[int], Mechanism[int, int]]] = [
        (number(), DiscreteLaplace(2.0000001)),
        (number(), DiscreteLaplace(1)),
        (number(sensitivity=2), LAPLACE),
        (Bounded(lambda: 41, sensitivity=1, unit=PERSON, name="others"), LAPLACE),
    ]
    for bounded, mechanism in others:
        with pytest.raises(RequestReused):
            release(bounded, mechanism, book, request="r")
    release(number(), DiscreteLaplace(1), book, request="r", by="somebody else")


def test_what_is_kept_is_the_answer_and_nothing_else() -> None:
    payer = FakePayer()
    bounded, mechanism = RELEASES["several parts"]
    answer = release_through(silent_door(payer), bounded, mechanism, request="r")
    [kept] = payer._kept.values()
    assert json.loads(kept) == {
        "mapping": [
            ["people", 41],
            ["pay", {"array": ["int64", [2], [1, 2]]}],
            ["wide", {"array": ["object", [2], [2**90, -1]]}],
        ]
    }
    assert "people: 41" not in repr(answer)
    with pytest.raises(InvalidArgument, match="states no error"):
        answer.error()


def test_an_answer_that_can_not_be_kept_is_not_released() -> None:
    class Full(FakePayer):
        def keep(self, receipt: Receipt, answer: str) -> None:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        release(number(), LAPLACE, Full(), request="r")


def test_a_release_holds_nothing_private() -> None:
    private = [int(SECRET)]
    before = sys.getrefcount(private)
    answer = release(number(lambda: private[0]), DiscreteLaplace(10**9), FakePayer())
    assert sys.getrefcount(private) == before  # the computation is gone with its argument
    assert SECRET not in repr(answer)
    fields = {name: getattr(answer, name) for name in answer.__slots__}
    assert not any(isinstance(value, Bounded | Door) for value in fields.values())
