"""Steps of what was paid as a whole: each is taken once, before it runs, and never given back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from discreet._budget import CountsSteps, Limit, Receipt
from discreet.accounting import Gaussian, PrivacyLoss, Pure
from discreet.errors import InvalidArgument, LedgerDamaged, SessionEnded
from discreet.ledger import Kind, Ledger
from tests.ledger.kit import PERSON, begun, ended, killed, made, opened, pay, raced, unguarded

LOSS = PrivacyLoss.of(Pure(0.1))


def take(ledger: Ledger, receipt: Receipt, count: int, of: int = 10, plan: str = "p") -> range:
    return ledger.reserve(receipt, LOSS, count=count, of=of, plan=plan)


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "file":
        yield made(tmp_path / "x.ledger")
    else:
        yield Ledger.in_memory(unit=PERSON, limit=Limit(1))


def test_steps_are_given_one_after_the_other_until_there_are_no_more(ledger: Ledger) -> None:
    assert isinstance(ledger, CountsSteps)
    receipt, other = pay(ledger, LOSS), pay(ledger, LOSS)
    assert ledger.reserved(receipt) == 0
    assert take(ledger, receipt, 4) == range(4)
    assert take(ledger, other, 1) == range(1)
    assert take(ledger, receipt, 1) == range(4, 5)
    assert take(ledger, receipt, 100) == range(5, 10)
    assert (ledger.reserved(receipt), ledger.reserved(other)) == (10, 1)
    with pytest.raises(SessionEnded, match="all 10 steps that charge 1 paid were taken"):
        take(ledger, receipt, 1)
    ledger.verify()
    steps = [entry.about for entry in ledger.history() if entry.kind is Kind.STEPS]
    assert steps == [1, 2, 1, 1]


def test_steps_cost_nothing_more_and_a_lock_leaves_them(ledger: Ledger) -> None:
    receipt = pay(ledger, LOSS)
    before = ledger.spent()
    take(ledger, receipt, 4)
    ledger.lock(receipt)
    take(ledger, receipt, 4)
    assert ledger.spent() == before


def test_many_blocks_are_found(ledger: Ledger) -> None:
    receipt = pay(ledger, LOSS)
    for step in range(40):
        assert ledger.reserved(receipt) == step
        assert take(ledger, receipt, 1, of=50) == range(step, step + 1)


def test_another_plan_or_loss_or_receipt_is_refused(ledger: Ledger) -> None:
    receipt = pay(ledger, LOSS)
    take(ledger, receipt, 4)
    entries = len(ledger.history())
    for wrong in (
        lambda: take(ledger, receipt, 1, of=11),
        lambda: take(ledger, receipt, 1, plan="q"),
        lambda: take(ledger, receipt, 0),
        lambda: take(ledger, receipt, 1, plan=" "),
        lambda: take(ledger, replace(receipt, digest="0" * 64), 1),
        lambda: take(ledger, replace(receipt, number=2), 1),
        lambda: ledger.reserve(receipt, PrivacyLoss.of(Gaussian(9)), count=1, of=10, plan="p"),
        lambda: ledger.reserved(replace(receipt, number=7)),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    assert len(ledger.history()) == entries


RACE = """
from discreet import Receipt
from datetime import datetime
book = Ledger.open(path)
charge = book.history()[1]
receipt = Receipt(charge.number, charge.digest, charge.at, charge.purpose, charge.by)
wait()
while True:
    try:
        print(*book.reserve(receipt, charge.loss, count=3, of=100, plan="p"))
    except DiscreetError:
        break
"""


def test_no_step_is_taken_twice_by_processes_that_race(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    pay(made(path), LOSS)
    outputs = raced(RACE, path, 3)
    steps = [int(word) for out in outputs for word in out.split()]
    assert sorted(steps) == list(range(100))
    Ledger.open(path).verify()


def test_steps_of_a_killed_process_stay_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    receipt = pay(made(path), LOSS)
    code = RACE.split("wait()", maxsplit=1)[0]
    took = 'book.reserve(receipt, charge.loss, count=4, of=10, plan="p")\n'
    killed(code + took + "die()", path)
    assert take(Ledger.open(path), receipt, 4) == range(4, 8)
    ended(begun(code + took, path))
    assert Ledger.open(path).reserved(receipt) == 10


def test_steps_that_are_rubbed_out_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    receipt = pay(ledger, LOSS)
    take(ledger, receipt, 4)
    pay(ledger, LOSS)
    with unguarded(path) as connection:
        connection.execute("DELETE FROM entries WHERE kind = 'steps'")
    with pytest.raises(LedgerDamaged):
        take(ledger, receipt, 4)
    with opened(path) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (3,)
