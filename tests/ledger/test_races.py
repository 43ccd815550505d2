"""However many threads and processes charge at once, exactly what fits is accepted."""

import threading
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger import Kind, Ledger, _sqlite
from tests.ledger.kit import PERSON, begun, charges, ended, made, opened, pay, raced

RACE = """
l = Ledger.open(path)
wait()
accepted = 0
for _ in range(40):
    try:
        l.charge(Pure(0.02), purpose="x", by="ana")
        accepted += 1
    except BudgetExceeded:
        pass
print(accepted)
"""


def test_racing_processes_stay_within_the_limit(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x.ledger")
    accepted = [int(out) for out in raced(RACE, tmp_path / "x.ledger", 4)]
    assert sum(accepted) == 50 == charges(ledger)
    assert ledger.spent().epsilon == 1


@pytest.mark.long
def test_many_processes_stay_within_the_limit(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x.ledger", epsilon=10)
    accepted = [int(out) for out in raced(RACE, tmp_path / "x.ledger", 24)]
    assert sum(accepted) == 500 == charges(ledger)


@pytest.mark.parametrize("place", ["file", "memory"])
def test_racing_threads_stay_within_the_limit(tmp_path: Path, place: str) -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    if place == "file":
        ledger = made(tmp_path / "x.ledger")
    outcomes: list[bool] = []

    def spend() -> None:
        for _ in range(10):
            try:
                pay(ledger, Pure(0.02))
                outcomes.append(True)
            except BudgetExceeded:
                outcomes.append(False)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(outcomes), sum(outcomes)) == (80, 50)
    assert charges(ledger) == 50


CREATE = """
wait()
l = Ledger.open_or_create(path, unit=Unit("person"), limit=Limit(1))
print(l.charge(Pure(0.1), purpose="x", by="ana").number)
"""


def test_racing_creators_make_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    numbers = sorted(int(out) for out in raced(CREATE, path, 4))
    assert numbers == [1, 2, 3, 4]
    assert [entry.kind for entry in Ledger.open(path).history()].count(Kind.OPEN) == 1
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


FORK = """
l = Ledger.open(path)
accepted, stop = [], threading.Event()

def spend(count):
    paid = 0
    for _ in range(count):
        try:
            l.charge(Pure(0.01), purpose="x", by="ana")
            paid += 1
        except BudgetExceeded:
            pass
    return paid

threads = [threading.Thread(target=lambda: accepted.append(spend(15))) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(spend(15))
    children.append(child)
for thread in threads:
    thread.join()
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert min(codes) >= 0, codes
print(sum(accepted) + sum(codes))
"""


def test_a_fork_in_the_middle_breaks_nothing(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x.ledger")
    assert ended(begun(FORK, tmp_path / "x.ledger")) == "100\n"
    assert charges(ledger) == 100


FORK_MEMORY = """
l = Ledger.in_memory(unit=Unit("person"), limit=Limit(1))
child = os.fork()
if not child:
    try:
        l.charge(Pure(1), purpose="x", by="ana")
    except DiscreetError as mistake:
        os._exit("stays in its process" in str(mistake))
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
print(l.charge(Pure(1), purpose="x", by="ana").number)
"""


def test_a_ledger_in_memory_is_not_spent_twice_by_a_fork(tmp_path: Path) -> None:
    assert ended(begun(FORK_MEMORY, tmp_path)) == "1\n"


def test_a_writer_that_does_not_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.05)
    ledger = made(tmp_path / "x.ledger")
    with opened(tmp_path / "x.ledger") as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="used it for too long: try again"):
            pay(ledger, Pure(0.1))
        assert ledger.spent().charges == 0  # reading needs no turn
    assert pay(ledger, Pure(0.1)).number == 1
