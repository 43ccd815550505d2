"""Threads share transactions: nobody gets a receipt early, twice, or for another's failure."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from discreet._budget import Receipt, Request
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerError
from discreet.ledger import Ledger, _sqlite_store, _turns, _writer
from discreet.ledger._facts import Charge
from discreet.ledger._store import Transaction
from discreet.ledger._turns import LOCKS_FOR_SQLITE, is_awaited, turn
from tests.ledger.kit import PERSON, begun, charges, ended, made, pay

COUNT = 8


class Interrupted(BaseException):
    """Not an Exception, as KeyboardInterrupt isn't."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.ledger"


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def together(ledger: Ledger, acts: list[Callable[[], object]]) -> list[object]:
    """The outcomes or errors of acts that wait for one another, so that they make one group."""
    outcomes: list[object] = [None] * len(acts)

    def run(number: int) -> None:
        try:
            outcomes[number] = acts[number]()
        except BaseException as failure:  # noqa: BLE001  # the test looks at it
            outcomes[number] = failure

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    with ledger._store.turns:
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda count=number + 1: len(ledger._writer._waiting) == count)  # type: ignore[misc]  # its default
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return outcomes


def payments(ledger: Ledger, count: int = COUNT, each: float = 0.01) -> list[Callable[[], object]]:
    return [lambda: pay(ledger, Pure(each))] * count


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    commits, plain = [], Connection.commit

    def commit(self: Connection) -> None:
        plain(self)
        commits.append(1)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", commit)
        yield commits


def numbers(outcomes: list[object]) -> list[int]:
    return sorted(outcome.number for outcome in outcomes if isinstance(outcome, Receipt))


def test_threads_share_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = made(path)
    pay(ledger, Pure(0.01))
    with counted(monkeypatch) as commits:
        outcomes = together(ledger, payments(ledger))
    assert len(commits) == 1
    assert numbers(outcomes) == list(range(2, COUNT + 2))
    found = {entry.number: entry.digest for entry in Ledger.open(path).history()}
    for outcome in outcomes:
        assert isinstance(outcome, Receipt)
        assert found[outcome.number] == outcome.digest


def test_no_receipt_comes_before_the_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = made(path)
    pay(ledger, Pure(0.01))
    plain, done, at_commit = Connection.commit, list[int](), list[int]()

    def commit(self: Connection) -> None:
        time.sleep(0.05)
        at_commit.append(len(done))
        plain(self)

    def act() -> None:
        pay(ledger, Pure(0.01))
        done.append(1)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", commit)
        together(ledger, [act] * COUNT)
    assert at_commit == [0]
    assert len(done) == COUNT


def test_a_group_stays_within_the_limit(path: Path) -> None:
    ledger = made(path)
    pay(ledger, Pure(0.5))
    outcomes = together(ledger, payments(ledger, each=0.1))
    assert len(numbers(outcomes)) == 5
    assert sum(isinstance(outcome, BudgetExceeded) for outcome in outcomes) == COUNT - 5
    assert charges(ledger) == 6


def test_one_request_in_a_group_is_charged_once(path: Path) -> None:
    ledger, request = made(path), Request("first", "body")
    pay(ledger, Pure(0.01))
    outcomes = together(ledger, [lambda: pay(ledger, Pure(0.1), request)] * COUNT)
    assert len(numbers(outcomes)) == 1
    assert charges(ledger) == 2


def test_a_failure_is_one_decisions_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are recorded, each once, and the log is whole."""
    ledger, plain = made(path), Transaction.append
    pay(ledger, Pure(0.01))

    def append(self: Transaction, *arguments: Any) -> Any:  # Any: as they are
        link = plain(self, *arguments)
        if isinstance(link.fact, Charge) and link.fact.loss.terms == dear.terms:
            raise ZeroDivisionError
        return link

    dear = 1 * Pure(0.125)
    monkeypatch.setattr(Transaction, "append", append)
    acts = payments(ledger)
    acts.insert(3, lambda: pay(ledger, dear))
    outcomes = together(ledger, acts)
    assert isinstance(outcomes[3], ZeroDivisionError)
    assert numbers(outcomes) == list(range(2, COUNT + 2))
    monkeypatch.undo()
    assert charges(ledger) == COUNT + 1


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("error", [Interrupted, ZeroDivisionError])
def test_the_others_find_out_what_was_recorded(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], is_committed: bool
) -> None:
    """If a commit fails, or its leader is interrupted, before or after it was carried out."""
    ledger, plain = made(path), Connection.commit
    pay(ledger, Pure(0.01))

    def commit(self: Connection) -> None:
        monkeypatch.undo()
        if is_committed:
            plain(self)
        raise error

    monkeypatch.setattr(Connection, "commit", commit)
    outcomes = together(ledger, payments(ledger))
    failed = [outcome for outcome in outcomes if isinstance(outcome, error)]
    assert len(failed) == (1 if error is Interrupted else 0)
    received = numbers(outcomes)
    assert len(set(received)) == COUNT - len(failed)
    assert charges(ledger) == 1 + COUNT - (0 if is_committed else len(failed))


def test_a_leader_that_is_gone_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was interrupted a second time, before it could resign."""
    ledger = made(path)
    monkeypatch.setattr(_writer, "_LEADER_SECONDS", 0.05)
    gone: list[object] = []

    def leave() -> None:
        job = _writer._Job(lambda rows, head: gone.append(rows))
        ledger._writer._leader[_writer._LEADER] = job

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert pay(ledger, Pure(0.01)).number == 1
    assert pay(ledger, Pure(0.01)).number == 2
    assert not gone


def test_an_anchor_that_fails_fails_all_whose_entries_it_misses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    ledger = Ledger.open(path, anchor=path.with_name("anchor"))
    pay(ledger, Pure(0.5))

    def advance(*_: object) -> None:
        raise LedgerError("the anchor can't be written")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.ledger._anchor.Anchor.advance", advance)
        acts = payments(ledger, 3)
        acts.insert(1, lambda: pay(ledger, Pure(0.75)))
        outcomes = together(ledger, acts)
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [LedgerError, BudgetExceeded, LedgerError, LedgerError]
    assert len({id(outcome) for outcome in outcomes}) == 4  # an error belongs to one thread
    for number, outcome in zip((2, 3, 4), (outcomes[0], *outcomes[2:]), strict=True):
        assert str(outcome) == f"entry {number} is recorded, but the anchor can't be written"
    assert charges(ledger) == 4


def watched(plain: type, where: set[int]) -> type:
    """A subclass that notes in which threads its methods run."""

    def noted(method: Any) -> Any:  # Any: any method
        def run(self: object, *arguments: object, **named: object) -> object:
            where.add(threading.get_ident())
            return method(self, *arguments, **named)

        return run

    used = ("__eq__", "__ne__", "__hash__", "__str__", "__repr__", "__len__", "encode", "strip")
    methods = {name: noted(getattr(plain, name)) for name in used if hasattr(plain, name)}
    return type("Watched", (plain,), methods)


def test_no_code_of_one_thread_runs_in_another(path: Path) -> None:
    """The leader of a group decides for all: texts are plain by then, whatever was given."""
    ledger, where, own = made(path), set[int](), set[int]()
    text = watched(str, where)
    receipt = pay(ledger, Pure(0.01), Request("0", "body"))

    def by_own(act: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            own.add(threading.get_ident())
            return act()

        return run

    outcomes = together(
        ledger,
        [
            *payments(ledger, 1),
            by_own(
                lambda: ledger.charge(
                    Pure(0.01),
                    purpose=text("p"),
                    by=text("ana"),
                    request=Request(text("1"), text("body")),
                    statement=text("{}"),
                )
            ),
            by_own(lambda: ledger.keep(receipt, text("42"))),
        ],
    )
    assert numbers(outcomes) == [2, 3]
    assert outcomes[2] is None
    assert where <= own
    assert charges(ledger) == 3


def test_receipts_of_other_types_are_refused_by_their_own_thread(path: Path) -> None:
    ledger = made(path)
    receipt = pay(ledger, Pure(0.01), Request("0", "body"))
    other = type("Other", (Receipt,), {})
    facts = (receipt.number, receipt.digest, receipt.at, receipt.purpose, receipt.by)
    for wrong in (other(*facts), Receipt(True, *facts[1:]), None, "receipt"):
        for act in (
            lambda given=wrong: ledger.keep(given, "42"),
            lambda given=wrong: ledger.lock(given),
            lambda given=wrong: ledger.reserve(given, Pure(0.01), count=1, of=1, plan="p"),
            lambda given=wrong: ledger.reserved(given),
        ):
            with pytest.raises(InvalidArgument, match="not from this ledger"):
                act()
    ledger.keep(Receipt(*facts), "42")


def test_a_decision_that_was_interrupted_twice_is_not_made_by_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while it waits, and again while it leaves the queue."""
    ledger = made(path)

    def interrupt(*_: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(_writer.Writer, "_lead", interrupt)
        patch.setattr(_writer.Writer, "_resign", interrupt)
        with pytest.raises(Interrupted):
            pay(ledger, Pure(0.01))
    assert len(ledger._writer._waiting) == 1
    ledger._writer._leader.clear()
    assert pay(ledger, Pure(0.02)).number == 1
    assert charges(ledger) == 1


FORK = """
l = Ledger.open(path)
threads = [
    threading.Thread(target=lambda: l.charge(Pure(0.01), purpose="x", by="ana")) for _ in range(5)
]
with l._store.turns:
    for thread in threads:
        thread.start()
    while len(l._writer._waiting) < 5:
        time.sleep(0.001)
    child = os.fork()
    if not child:
        count = len(l.history())
        l.charge(Pure(0.01), purpose="child", by="ana")
        os._exit(not 2 <= len(l.history()) <= 7)
for thread in threads:
    thread.join()
assert os.waitpid(child, 0)[1] == 0
print(len(l.history()))
"""


def test_a_child_makes_no_decision_of_its_parents_threads(path: Path) -> None:
    ledger = made(path)
    assert ended(begun(FORK, path)) == "7\n"
    assert charges(ledger) == 6


@pytest.mark.skipif(not LOCKS_FOR_SQLITE, reason="no open file description locks here")
def test_who_has_the_file_learns_that_others_wait(path: Path) -> None:
    made(path)

    def other() -> None:
        with turn(path, 60):
            pass

    with turn(path, 60) as descriptor:
        assert not is_awaited(descriptor)
        thread = threading.Thread(target=other)
        thread.start()
        wait_until(lambda: is_awaited(descriptor))
    thread.join(60)
    with turn(path, 60) as descriptor:
        assert not is_awaited(descriptor)


def test_a_thread_that_leads_once_it_was_served_decides_nothing(path: Path) -> None:
    """It was stopped between its look at its outcome and its try to lead."""
    ledger = made(path)
    job: _writer._Job[int] = _writer._Job(lambda rows, head: decided.append(1) or 1)  # type: ignore[func-returns-value]  # append and return
    decided: list[int] = []
    ledger._writer._waiting.append(job)
    assert pay(ledger, Pure(0.01)).number == 1
    assert job.is_done
    ledger._writer._lead(job)
    ledger._writer._waiting.append(job)
    assert pay(ledger, Pure(0.01)).number == 2
    assert decided == [1]
    assert not ledger._writer._waiting


class Clock:
    """A clock that moves only where something sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.skipif(not LOCKS_FOR_SQLITE, reason="no open file description locks here")
@pytest.mark.parametrize("is_awaited_by_another", [True, False])
def test_a_process_gives_way_to_those_who_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_awaited_by_another: bool
) -> None:
    """Before its next turn it rests for longer than they pause between two tries; if nobody waits,
    it goes on at once. So nobody is starved, whatever the scheduler does."""
    ledger, rests, order = made(path), list[float](), list[str]()
    other = threading.Thread(target=lambda: order.append(str(pay(Ledger.open(path), Pure(0.01)))))

    class Resting(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if seconds:
                rests.append(seconds)
                other.join(60)  # its turn comes while this one rests

    def decide(*_: object) -> None:
        order.append("first")
        if is_awaited_by_another:
            other.start()
            with path.open("r+b") as file:
                wait_until(lambda: is_awaited(file.fileno()))

    monkeypatch.setattr(_sqlite_store, "time", Resting())
    ledger._writer.write(decide)
    pay(ledger, Pure(0.02))
    assert rests == ([pytest.approx(_sqlite_store._REST)] if is_awaited_by_another else [])
    assert len(order) == 1 + is_awaited_by_another
    paid = [entry.loss for entry in ledger.history()[1:]]
    losses = [0.01, 0.02] if is_awaited_by_another else [0.02]
    assert paid == [PrivacyLoss.of(Pure(each), unit=PERSON) for each in losses]
    assert _turns._LONGEST < _sqlite_store._REST


def test_a_stall_makes_no_later_group_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one before the commit, such as a wait for the turn, nor one in the commit."""
    ledger, clock, plain = made(path), Clock(), Connection.commit

    def commit(self: Connection) -> None:
        plain(self)
        clock.sleep(60)

    def stalled() -> object:
        ledger._writer.write(lambda *_: clock.sleep(60))
        return None

    monkeypatch.setattr(_writer, "time", clock)
    together(ledger, [stalled] * 3)
    assert ledger._writer._seconds < 1
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", commit)
        together(ledger, payments(ledger, 3))
    ledger._writer._size = 3
    start = clock.now
    pay(ledger, Pure(0.01))
    assert 0 < clock.now - start < 0.01
