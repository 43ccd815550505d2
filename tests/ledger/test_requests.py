"""A request id gives one draw: its answer is stored, and repeated for nothing."""

import threading
from pathlib import Path

import pytest

from discreet._budget import Limit, Receipt, Request
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerLocked, RequestReused
from discreet.ledger import Kind, Ledger
from tests.ledger.kit import PERSON, charges, made, pay, raced

HALF = Pure(0.5)
FIRST = Request("first", "a body")


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    """With a limit of 1."""
    if request.param == "file":
        return made(tmp_path / "x.ledger")
    return Ledger.in_memory(unit=PERSON, limit=Limit(1))


def test_repeating_gives_the_first_receipt_and_its_answer(ledger: Ledger) -> None:
    receipt = ledger.charge(HALF, purpose="p", by="ana", request=FIRST, is_insecure=True)
    ledger.keep(receipt, "42 \ud800 é")
    again = ledger.charge(HALF, purpose="another", by="ana", request=Request("first", "a body"))
    assert again == Receipt(
        receipt.number,
        receipt.digest,
        receipt.at,
        purpose="p",
        by="ana",
        stored="42 \ud800 é",
        is_insecure=True,
    )
    assert charges(ledger) == 1


def test_repeating_costs_nothing_when_all_is_spent_or_locked(ledger: Ledger) -> None:
    receipt = pay(ledger, HALF, FIRST)
    ledger.keep(receipt, "")
    last = pay(ledger, HALF)
    with pytest.raises(BudgetExceeded):
        pay(ledger, HALF)
    assert pay(ledger, HALF, FIRST).stored == ""
    ledger.lock(last)
    assert pay(ledger, HALF, FIRST).stored == ""
    with pytest.raises(LedgerLocked):
        pay(ledger, Pure(0), Request("second", "a body"))


def test_another_question_under_the_same_id_is_refused(ledger: Ledger) -> None:
    receipt = pay(ledger, HALF, FIRST)
    for _ in range(2):
        with pytest.raises(RequestReused, match="another question"):
            pay(ledger, HALF, Request("first", "another body"))
        if ledger.history()[-1].kind is Kind.CHARGE:
            ledger.keep(receipt, "42")
    assert charges(ledger) == 1


def test_a_paid_request_without_an_answer_is_never_drawn_again(ledger: Ledger) -> None:
    pay(ledger, HALF, FIRST)
    with pytest.raises(RequestReused, match=r"was paid .* no answer is stored.* new id"):
        pay(ledger, HALF, FIRST)
    assert charges(ledger) == 1


def test_ids_belong_to_their_analyst(ledger: Ledger) -> None:
    ledger.keep(pay(ledger, HALF, FIRST, by="ana"), "hers")
    assert pay(ledger, HALF, FIRST, by="bo").stored is None
    assert pay(ledger, HALF, FIRST, by="ana").stored == "hers"
    assert charges(ledger) == 2


def test_a_refused_request_may_come_again(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(2), FIRST)
    assert pay(ledger, HALF, FIRST).stored is None


def test_an_answer_is_stored_once(ledger: Ledger) -> None:
    receipt = pay(ledger, HALF, FIRST)
    ledger.keep(receipt, "42")
    with pytest.raises(InvalidArgument, match="stored already"):
        ledger.keep(receipt, "42")
    assert pay(ledger, HALF, FIRST).stored == "42"
    assert ledger.history()[-1].about == receipt.number


def test_an_answer_needs_its_own_paid_request(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="without a request id"):
        ledger.keep(pay(ledger, HALF), "42")
    other = pay(Ledger.in_memory(unit=PERSON, limit=Limit(1)), HALF, FIRST)
    with pytest.raises(InvalidArgument, match="not from this ledger"):
        ledger.keep(other, "42")
    with pytest.raises(InvalidArgument, match="text to store"):
        ledger.keep(pay(ledger, HALF, FIRST), 42)  # type: ignore[arg-type]  # what a caller may do


def test_an_answer_is_stored_while_locked(ledger: Ledger) -> None:
    receipt = pay(ledger, HALF, FIRST)
    ledger.lock(receipt)
    ledger.keep(receipt, "42")
    assert pay(ledger, HALF, FIRST).stored == "42"
    ledger.verify()


@pytest.mark.parametrize("request_", ["first", Request("first", 3), ("first", "body")])  # type: ignore[arg-type]  # what a caller may do
def test_a_request_is_a_request(ledger: Ledger, request_: Request) -> None:
    with pytest.raises(InvalidArgument, match="request"):
        pay(ledger, HALF, request_)
    assert charges(ledger) == 0


def test_answers_survive(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    first = made(path)
    first.keep(pay(first, HALF, FIRST), "42")
    assert pay(Ledger.open(path), HALF, FIRST).stored == "42"


def test_racing_threads_pay_a_request_once(ledger: Ledger) -> None:
    outcomes: list[str] = []

    def ask(number: int) -> None:
        try:
            receipt = pay(ledger, Pure(0.01), FIRST)
        except RequestReused:
            outcomes.append("reused")
            return
        if receipt.stored is None:
            ledger.keep(receipt, f"answer {number}")
        outcomes.append(pay(ledger, Pure(0.01), FIRST).stored or "")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 12
    assert len(set(outcomes) - {"reused"}) == 1
    assert charges(ledger) == 1


RACE = """
l = Ledger.open(path)
wait()
for n in range(12):
    try:
        receipt = l.charge(Pure(0.01), purpose="x", by="ana", request=Request(str(n), "b"))
        if receipt.stored is None:
            l.keep(receipt, f"{arguments[0]}")
            print("paid", n)
        else:
            print("stored", n, receipt.stored)
    except DiscreetError as mistake:
        print(type(mistake).__name__, n)
"""


def test_racing_processes_pay_a_request_once(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    made(path)
    lines = [line for out in raced(RACE, path, 3) for line in out.splitlines()]
    assert sorted(line for line in lines if line.startswith("paid")) == sorted(
        f"paid {n}" for n in range(12)
    )
    assert {line.split()[0] for line in lines} <= {"paid", "stored", "RequestReused"}
    assert charges(Ledger.open(path)) == 12
