"""After a failed computation the owner learns which question it was, and it isn't repeated."""

import threading
from pathlib import Path

import pytest

from discreet import Bounded, release
from discreet._budget import Limit, Receipt
from discreet.accounting import Pure
from discreet.errors import (
    ComputationFailed,
    InvalidArgument,
    LedgerDamaged,
    LedgerError,
    LedgerLocked,
    QuestionFailed,
)
from discreet.ledger import Kind, Ledger
from discreet.ledger._facts import Fact, Lock, Unlock
from discreet.mechanisms import DiscreteLaplace
from tests.ledger.kit import PERSON, charges, made
from tests.ledger.test_chain import charge as charge_fact
from tests.ledger.test_chain import slipped_in
from tests.ledger.test_damage import Bodies, forged, within


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "file":
        return made(tmp_path / "x.ledger")
    return Ledger.in_memory(unit=PERSON, limit=Limit(1))


def ask(ledger: Ledger, purpose: str, by: str = "ana") -> Receipt:
    return ledger.charge(Pure(0.01), purpose=purpose, by=by)


def fail(ledger: Ledger, purpose: str, by: str = "ana") -> Receipt:
    receipt = ask(ledger, purpose, by)
    ledger.lock(receipt)
    return receipt


def test_an_unlock_is_for_the_locks_that_were_looked_at(ledger: Ledger) -> None:
    first, second = ask(ledger, "first"), ask(ledger, "second")
    ledger.lock(first)
    seen = ledger.history()[-1].number
    ledger.lock(second)
    both = [seen, ledger.history()[-1].number]
    ledger.grant("late", limit=Limit(1), by="owner")
    assert [one.number for one in ledger.locking()] == both
    for stale in ([seen], [], [*both, 1]):
        with pytest.raises(InvalidArgument, match="other failures lock it"):
            ledger.unlock("looked", "owner", locks=stale)
        assert ledger.is_locked
    assert len(ledger.unlock("looked", "owner", locks=both)) == 2
    assert ledger.locking() == ()
    assert not ledger.is_locked


def test_unlocking_returns_the_failed_questions(ledger: Ledger) -> None:
    ask(ledger, "fine")
    first = fail(ledger, "first")
    (question,) = ledger.failed()
    (unlocked,) = ledger.unlock("looked", "owner")
    assert question == unlocked
    facts = (question.number, question.purpose, question.by, question.at, question.kind)
    assert facts == (first.number, "first", "ana", first.at, Kind.CHARGE)
    second = fail(ledger, "second", "bo")
    numbers = [entry.number for entry in ledger.unlock("looked", "owner")]
    assert numbers == [first.number, second.number]


@pytest.mark.parametrize("by", ["ana", "bo"])
def test_a_failed_question_is_refused_again_to_anybody_and_costs_nothing(
    ledger: Ledger, by: str
) -> None:
    fail(ledger, "first")
    ledger.unlock("looked", "owner")
    ask(ledger, "another")
    before = ledger.spent()
    for _ in range(2):
        with pytest.raises(QuestionFailed, match=r"charge 1.*allow_repeat=True.*--allow-repeat"):
            ask(ledger, "first", by)
    assert ledger.spent() == before
    assert charges(ledger) == 2


def test_the_owner_allows_it_at_once_or_later(ledger: Ledger) -> None:
    for purpose, is_at_once in (("first", True), ("second", False)):
        fail(ledger, purpose)
        ledger.unlock("looked", "owner", allow_repeat=is_at_once)
        if not is_at_once:
            ledger.unlock("thought again", "owner", allow_repeat=True)
        ask(ledger, purpose)
        assert ledger.failed() == ()
        with pytest.raises(LedgerError, match="isn't locked"):
            ledger.unlock("again", "owner", allow_repeat=True)
    ledger.verify()


def test_allowed_again_it_may_fail_again(ledger: Ledger) -> None:
    fail(ledger, "first")
    ledger.unlock("looked", "owner", allow_repeat=True)
    fail(ledger, "first")
    with pytest.raises(LedgerLocked):
        ask(ledger, "first")
    ledger.unlock("looked", "owner")
    with pytest.raises(QuestionFailed, match="charge 4"):
        ask(ledger, "first")
    ledger.verify()


def test_a_failed_question_stays_refused_when_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    fail(ledger, "first")
    ledger.unlock("looked", "owner")
    again = Ledger.open(path)
    with pytest.raises(QuestionFailed):
        ask(again, "first")
    again.verify()


def test_a_release_that_fails_is_not_repeated(ledger: Ledger) -> None:
    runs: list[int] = []

    def compute() -> int:
        runs.append(1)
        raise ValueError

    broken = Bounded(compute, sensitivity=1, unit=PERSON, name="people")
    with pytest.raises(ComputationFailed):
        release(broken, DiscreteLaplace(10), ledger)
    ledger.unlock("looked", "owner")
    with pytest.raises(QuestionFailed):
        release(broken, DiscreteLaplace(10), ledger)
    assert len(runs) == charges(ledger) == 1


@pytest.mark.parametrize(
    ("facts", "is_allowed"),
    [
        ([Lock(1), Unlock("r", "o"), charge_fact(0.1)], False),
        ([Lock(1), Unlock("r", "o"), Unlock("r", "o", allow_repeat=True), charge_fact(0.1)], True),
        ([Lock(1), Unlock("r", "o", allow_repeat=True), charge_fact(0.1)], True),
        ([Unlock("r", "o", allow_repeat=True)], False),
        ([Lock(1), Unlock("r", "o"), Unlock("r", "o")], False),
    ],
)
def test_the_chain_is_held_to_it(tmp_path: Path, facts: list[Fact], is_allowed: bool) -> None:
    ledger = made(tmp_path / "x.ledger")
    slipped_in(ledger, charge_fact(0.1), *facts)
    if is_allowed:
        ledger.verify()
    else:
        with pytest.raises(LedgerDamaged, match="was not allowed where it stands"):
            ledger.verify()


@pytest.mark.parametrize(
    ("number", "value"), [(2, []), (3, []), (2, [2]), (3, [0]), (3, [9]), (3, [1, 1]), (3, 1)]
)
def test_forgetting_it_is_found(tmp_path: Path, number: int, value: object) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    fail(ledger, "first")
    ledger.unlock("looked", "owner")

    def change(bodies: Bodies) -> None:
        within(bodies, number, "state")["failed"] = value

    forged(path, change)
    with pytest.raises(LedgerDamaged):
        Ledger.open(path).verify()


def test_threads_that_ask_it_at_once_are_all_refused(ledger: Ledger) -> None:
    fail(ledger, "first")
    ledger.unlock("looked", "owner")
    found: list[object] = []

    def repeat() -> None:
        try:
            found.append(ask(ledger, "first"))
        except QuestionFailed:
            found.append("refused")

    threads = [threading.Thread(target=repeat) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["refused"] * 4
