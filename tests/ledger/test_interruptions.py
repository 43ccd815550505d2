"""Ctrl-C, or any failure, in a transaction: it is undone, and the ledger goes on at once."""

import gc
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet._budget import Limit, Receipt, Request
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import LedgerError, RequestReused
from discreet.ledger import Ledger
from discreet.ledger._store import Transaction
from tests.ledger.kit import PERSON, START, charges, interrupted, made, pay

LOSS = PrivacyLoss.of(Pure(0.001))


def acts(ledger: Ledger, folder: Path, number: int) -> dict[str, Callable[[], object]]:
    """All that writes; each on a receipt of its own."""

    def receipt(kind: str) -> Receipt:
        return pay(ledger, LOSS, Request(f"{kind}-{number}", "body"))

    def lock_and_unlock(of: Receipt) -> None:
        ledger.lock(of)
        ledger.unlock("a test", "ana", allow_repeat=True)

    keep, steps, failed = map(receipt, ("keep", "steps", "failed"))
    return {
        "charge": lambda: pay(ledger, LOSS),
        "keep": lambda: ledger.keep(keep, "42"),
        "reserve": lambda: ledger.reserve(steps, LOSS, count=1, of=5, plan="plan"),
        "lock": lambda: lock_and_unlock(failed),
        "backup": lambda: ledger.backup(folder / f"copy-{number}"),
        "spent": ledger.spent,
    }


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # between opening and `with`
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO")
@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("name", ["charge", "keep", "reserve", "lock", "backup", "spent"])
def test_an_interrupted_ledger_goes_on(tmp_path: Path, name: str, is_file: bool) -> None:
    """Interrupted at one of many places, also in SQLAlchemy; receipts before it stay."""
    path = tmp_path / "x.ledger"
    ledger = made(path, 100) if is_file else Ledger.in_memory(unit=PERSON, limit=Limit(100))
    receipts, count = [], 0
    for number, step in enumerate(range(1, 3000, 89 if name == "charge" else 331)):
        act = acts(ledger, tmp_path, number)[name]
        was_interrupted = interrupted(step, act)
        count += was_interrupted
        if ledger.is_locked:
            ledger.unlock("a test", "ana", allow_repeat=True)
        receipts.append(pay(ledger, LOSS))
        if is_file:
            receipts.append(pay(Ledger.open(path), LOSS))
        if not was_interrupted:
            break
    assert count >= 3
    gc.collect()
    found = {entry.number: entry.digest for entry in ledger.history()}
    assert all(found[receipt.number] == receipt.digest for receipt in receipts)
    ledger.verify()


def test_a_transaction_inside_another_gives_no_false_receipt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a signal's handler may begin one; in memory nothing else keeps it out."""
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    inner, plain = [], Transaction.append

    def nested(self: Transaction, *arguments: Any) -> Any:  # Any: as they are
        link = plain(self, *arguments)
        monkeypatch.undo()
        inner.append(pay(ledger, Pure(0.1)))
        return link

    monkeypatch.setattr(Transaction, "append", nested)
    with pytest.raises(LedgerError, match="in use by this thread"):
        pay(ledger, Pure(0.1))
    assert not inner
    assert charges(ledger) == 0
    assert pay(ledger, Pure(0.1)).number == 1


DAEMONS = """
def run(l):
    while True:
        l.charge(Pure(0.001), purpose="x", by="ana")

ledgers = [Ledger.open(path) for _ in range(3)]
ledgers.append(Ledger.in_memory(unit=Unit("person"), limit=Limit(1000)))
for l in ledgers:
    threading.Thread(target=run, args=(l,), daemon=True).start()
time.sleep(0.1)
"""


def test_an_exit_closes_no_connection(tmp_path: Path) -> None:
    """Threads may be using it; to close it then ended the process by a signal."""
    path = tmp_path / "x.ledger"
    made(path, 100)
    closing = """
from discreet.ledger import _database
_database._Driver.end = lambda self: print("closed")
"""
    command = [sys.executable, "-c", START + closing + DAEMONS, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    assert charges(Ledger.open(path)) > 0


def test_a_repeated_request_after_an_interruption(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x.ledger")
    paid = 0
    for step in range(1, 1500, 150):
        request = Request(f"number {step}", "body")
        interrupted(step, partial(pay, ledger, LOSS, request))
        try:
            paid += pay(ledger, LOSS, request).number > 0
        except RequestReused:  # recorded before the interruption
            paid += 1
    assert charges(ledger) == paid


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("is_writing", [False, True])
def test_a_use_inside_a_transaction_is_refused(
    tmp_path: Path, is_file: bool, is_writing: bool
) -> None:
    """As in a signal's handler; and the transaction outside goes on."""
    path = tmp_path / "x.ledger"
    ledger = made(path) if is_file else Ledger.in_memory(unit=PERSON, limit=Limit(1))
    paid = pay(ledger, LOSS)
    inner: list[Callable[[], object]] = [
        ledger.spent,
        ledger.history,
        ledger.verify,
        lambda: pay(ledger, LOSS),
        lambda: ledger.reserve(paid, LOSS, count=1, of=5, plan="plan"),
        lambda: ledger.lock(paid),
        lambda: ledger.backup(tmp_path / "copy"),
    ]
    with ledger._store.writing() if is_writing else ledger._store.reading() as rows:
        head = rows.head()
        if is_writing:
            head = rows.append(head, head.fact, head.state)
        for act in inner:
            with pytest.raises(LedgerError, match="in use by this thread"):
                act()
        assert "in use by this thread" in repr(ledger)
        assert rows.link(head.number).digest == head.digest
    assert ledger.history()[-1].digest == head.digest
    assert pay(ledger, LOSS).number == head.number + 1
