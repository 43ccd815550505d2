"""Threads and processes race and are killed: each receipt is recorded, and no more than fits.

The same on both databases.
"""

import random
import signal
import time
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded
from discreet.ledger import Kind, Ledger
from tests.ledger import postgres
from tests.ledger.kit import PERSON, begun, charges, pay

THREADS = 4
PLACES = ["file", "postgres"]


@pytest.fixture(params=PLACES)
def ledger(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ledger:
    at = str(tmp_path / "x.ledger") if request.param == "file" else postgres.address()
    monkeypatch.setenv("LEDGER", at)  # for the processes that a test starts
    return Ledger.create(at, unit=PERSON, limit=Limit(4))


SPEND = f"""
l = Ledger.open(os.environ["LEDGER"])
def spend():
    while True:
        receipt = l.charge(Pure(0.0001), purpose="x", by="ana")
        sys.stdout.write(f"{{receipt.number}} {{receipt.digest}}\\n")
        sys.stdout.flush()
for _ in range({THREADS}):
    threading.Thread(target=spend, daemon=True).start()
time.sleep(60)
"""


def killed_after(seconds: float) -> dict[int, str]:
    """The numbers and digests that a process received until it was killed, that long after its
    first receipt."""
    with begun(SPEND, Path()) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    whole = [line.split() for line in lines if len(line.strip().split(" ", 1)[-1]) == 64]
    return {int(number): digest for number, digest in whole}


def check_rounds(ledger: Ledger, rounds: int) -> None:
    chance = random.Random(0)
    received: dict[int, str] = {}
    for number in range(1, rounds + 1):
        new = killed_after(chance.random() * 0.05)
        assert not received.keys() & new.keys()
        received |= new
        paid = [entry for entry in ledger.history() if entry.kind is Kind.CHARGE]
        recorded = {entry.number: entry.digest for entry in paid}
        assert received.items() <= recorded.items()
        assert len(recorded) <= len(received) + number * THREADS  # those on their way out
    assert charges(ledger) == len(recorded)


def test_killed_at_any_moment(ledger: Ledger) -> None:
    check_rounds(ledger, 3)


@pytest.mark.long
def test_killed_two_hundred_times(ledger: Ledger) -> None:
    check_rounds(ledger, 200)


RACE = """
l = Ledger.open(os.environ["LEDGER"])
accepted = []
def spend(count):
    for _ in range(count):
        try:
            l.charge(Pure(0.001), purpose="x", by="ana")
            accepted.append(1)
        except BudgetExceeded:
            pass
threads = [threading.Thread(target=spend, args=(int(arguments[0]) // 4,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(accepted))
"""


@pytest.mark.long
def test_of_ten_thousand_racing_charges_those_are_accepted_that_fit(ledger: Ledger) -> None:
    """The limit has room for 4000 charges; 8 processes with 4 threads each ask for more."""
    processes = [begun(RACE, Path(), 1252) for _ in range(8)]
    accepted = []
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        accepted.append(int(out))
    assert sum(accepted) == 4000 == charges(ledger)
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(0.0001))
