"""Threads and processes race and are killed: each receipt is recorded, and no more than fits.

The same on both databases.
"""

import copy
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
from tests.ledger.kit import PERSON, begun, charges, killed, pay

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
        os.write(1, f"{{receipt.number}} {{receipt.digest}}\\n".encode())
for _ in range({THREADS}):
    threading.Thread(target=spend, daemon=True).start()
time.sleep(60)
"""


# The process kills itself the n-th time that it comes here, before or after the call.
POINTS = {
    "before an entry is written": ("_store.Transaction", "append", False),
    "before the commit": ("_store.Connection", "commit", False),
    "after the commit": ("_store.Connection", "commit", True),
    "before the rows are sent": ("_store.Transaction", "flush", False),
}
DIE = """
left = [int(arguments[0])]
def counted(*given, act={place}.{name}, **named):
    left[0] -= 1
    if left[0] <= 0 and not {is_late}:
        die()
    found = act(*given, **named)
    if left[0] <= 0:
        die()
    return found
{place}.{name} = counted
"""


def killed_after(seconds: float, *, crash: bool = False) -> dict[int, str]:
    """The numbers and digests that a process received until it was killed, that long after its
    first receipt. With ``crash``, the server crashes and runs again in between."""
    with begun(SPEND, Path()) as process:
        lines = [process.stdout.readline()]
        time.sleep(seconds)
        if crash:
            postgres.crash()
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    return received(lines)


def killed_at(point: str, count: int) -> dict[int, str]:
    """The same for a process that kills itself there at that time."""
    place, name, is_late = POINTS[point]
    code = DIE.format(place=place, name=name, is_late=is_late) + SPEND
    return received(killed(code, Path(), count).splitlines())


def received(lines: list[str]) -> dict[int, str]:
    whole = [line.split() for line in lines if len(line.strip().split(" ", 1)[-1]) == 64]
    return {int(number): digest for number, digest in whole}


def check_rounds(ledger: Ledger, rounds: int) -> None:
    """Each third process kills itself at a named point, and PostgreSQL crashes in every tenth
    round. Each round verifies the new entries, the end all of them."""
    chance = random.Random(0)
    recorded = ledger.spent().charges
    for number in range(1, rounds + 1):
        if number % 3 == 0:
            new = killed_at(chance.choice(sorted(POINTS)), chance.randrange(1, 20))
        else:
            is_crash = number % 10 == 4 and ledger.path is None
            new = killed_after(chance.random() * 0.05, crash=is_crash)
        if ledger.path is None:
            postgres.wait_until_idle()  # it may still commit for the killed process
        ledger = copy.copy(ledger)  # with a new connection
        count = ledger.spent().charges - recorded
        assert len(new) <= count <= len(new) + THREADS  # those on their way out
        entries = ledger.history(2 * count + 1)  # subtotals are entries, too
        paid = [entry for entry in entries if entry.kind is Kind.CHARGE][-count:] if count else []
        assert new.items() <= {entry.number: entry.digest for entry in paid}.items()
        recorded += count
    assert charges(ledger) == recorded


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
def test_racing_charges_are_accepted_until_the_limit(ledger: Ledger) -> None:
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
