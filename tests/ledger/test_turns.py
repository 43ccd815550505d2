"""One ledger is one file: held alone, under one name, for as long as a transaction lasts."""

import errno
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from discreet._budget import Limit
from discreet._ownership import process
from discreet.accounting import Filter, PrivacyLoss, Pure
from discreet.accounting.filter._sums import FilterCost
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerDamaged, LedgerError
from discreet.ledger import Kind, Ledger, _sqlite
from discreet.ledger._database import file_database, put_away
from discreet.ledger._facts import Link
from discreet.ledger._store import Transaction
from discreet.ledger._turns import LOCKS_FOR_SQLITE
from tests.ledger.kit import (
    PERSON,
    START,
    begun,
    charges,
    ended,
    files,
    killed,
    made,
    opened,
    pay,
    raced,
)

COPYING = """
import shutil, threading
l = Ledger.open(path)
other, count = Path(path).with_name(f"copy-{arguments[0]}"), 60
done = threading.Event()
copies = [0]
def copy():
    while not done.is_set():
        shutil.copyfile(path, other)
        copies[0] += 1
thread = threading.Thread(target=copy)
wait()
thread.start()
numbers = [l.charge(Pure(0.001), purpose="x", by="ana").number for _ in range(count)]
done.set()
thread.join()
assert copies[0] > 20, copies
print(*numbers)
"""


def test_copying_the_file_loses_no_receipt(tmp_path: Path) -> None:
    """Two processes charge, and in each a thread copies the file as fast as it can."""
    path = tmp_path / "x.ledger"
    ledger = made(path)
    outs = raced(COPYING, path, 2)
    numbers = sorted(int(number) for out in outs for number in out.split())
    assert numbers == list(range(1, 121))
    assert charges(ledger) == 120


def test_a_copying_thread_of_this_process_loses_no_receipt(tmp_path: Path) -> None:
    path, done = tmp_path / "x.ledger", threading.Event()
    ledger = made(path)

    def copy() -> None:
        while not done.is_set():
            shutil.copyfile(path, tmp_path / "copy")

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        numbers = [pay(ledger, Pure(0.001)).number for _ in range(40)]
    finally:
        done.set()
        thread.join()
    assert numbers == list(range(1, 41))
    assert charges(Ledger.open(path)) == 40


READ = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0); "
COUNT = READ + "print(c.execute('select count(*) from entries').fetchone()[0])"
WRITE = READ + "c.execute('begin immediate')"


def read_elsewhere(path: Path, code: str = COUNT) -> str:
    """The output of a program that reads the file and knows nothing of discreet."""
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr.splitlines()[-1]).strip()


def copies(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))


def reads_here(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            connection.execute("SELECT * FROM entries")


def connects_here(path: Path) -> None:
    sqlite3.connect(path).close()


def opens_and_drops(path: Path) -> None:
    database = file_database(path)
    with database.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode")
    put_away(database, path, process())


def nothing(path: Path) -> None:
    assert path.exists()


CLOSED = [nothing, copies, reads_here, connects_here, opens_and_drops]


@pytest.mark.skipif(not LOCKS_FOR_SQLITE, reason="no open file description locks here")
@pytest.mark.parametrize("code", [COUNT, WRITE])
@pytest.mark.parametrize("close", CLOSED)
def test_no_program_gets_into_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close: Callable[[Path], None], code: str
) -> None:
    """No program takes its journal for that of a crash either, although files were closed here."""
    path, found = tmp_path / "x.ledger", []
    ledger = made(path)
    pay(ledger, Pure(0.1))
    append = Transaction.append

    def late(self: Transaction, *arguments: Any) -> Link:  # Any: as they are
        link = append(self, *arguments)
        self.connection.exec_driver_sql("PRAGMA cache_spill = 1")
        close(path)
        found.append(read_elsewhere(path, code))
        return link

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "append", late)
        receipt = pay(ledger, Pure(0.1))
    assert found == ["sqlite3.OperationalError: database is locked"]
    assert Ledger.open(path).history()[receipt.number].digest == receipt.digest
    assert charges(ledger) == 2
    assert read_elsewhere(path) == "3"  # while nobody charges


def test_a_program_that_reads_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.05)
    with opened(path) as connection:
        rows = connection.execute("SELECT * FROM entries UNION ALL SELECT * FROM entries")
        assert rows.fetchone()
        with pytest.raises(LedgerError, match="others used it for too long: try again"):
            pay(ledger, Pure(0.1))
        rows.close()
    assert pay(ledger, Pure(0.1)).number == 1
    assert charges(ledger) == 1


LEFT = """
l = Ledger.open(path)
l.charge(Pure(0.1), purpose="x", by="ana")
def half(self):
    raw = self.connection.driver_connection
    raw.execute("PRAGMA cache_size = 1")
    raw.execute("CREATE TABLE much (x)")  # spills: the file itself is half written
    for _ in range(200):
        raw.execute("INSERT INTO much VALUES (zeroblob(4000))")
    die()
_store.Connection.commit = half
l.charge(Pure(0.1), purpose="x", by="ana")
"""


@pytest.mark.parametrize("was_open", [False, True])
def test_a_half_written_transaction_is_undone_by_the_next(tmp_path: Path, was_open: bool) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    pay(ledger, Pure(0.1))
    size = path.stat().st_size
    killed(LEFT, path)
    assert path.stat().st_size > size + 400_000
    assert pay(ledger if was_open else Ledger.open(path), Pure(0.1)).number == 3
    assert charges(ledger) == 3
    assert path.stat().st_size < size + 100_000


SPEND = """
l = Ledger.open(path)
paid = []
for _ in range(20):
    try:
        paid.append(l.charge(Pure(0.05), purpose="x", by="ana").number)
    except BudgetExceeded:
        pass
print(*paid)
"""


def in_own_mounts(command: str) -> bool:
    try:
        return subprocess.run(["unshare", "-m", "sh", "-c", command], check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_two_bind_mounted_names_share_one_budget(tmp_path: Path) -> None:
    path, inner = tmp_path / "x.ledger", tmp_path / "container" / "y.ledger"
    ledger = made(path)
    inner.parent.mkdir()
    inner.touch()
    mount = f"mount --bind {path} {inner}"
    if not in_own_mounts(mount):
        pytest.skip("no mount namespace can be made here")
    inside = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$0" "$@"', sys.executable, "-c"]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [*before, START + SPEND, str(name)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        for before, name in ((inside, inner), ([sys.executable, "-c"], path), (inside, inner))
    ]
    paid = sorted(int(number) for process in processes for number in ended(process).split())
    assert paid == list(range(1, 21))
    assert charges(ledger) == 20


def test_a_symbolic_link_is_the_same_ledger(tmp_path: Path) -> None:
    path, link = tmp_path / "x.ledger", tmp_path / "elsewhere" / "link"
    ledger = made(path)
    link.parent.mkdir()
    link.symlink_to(path)
    other = Ledger.open(link)
    for number in range(10):
        pay((ledger, other)[number % 2], Pure(0.1))
    for one in (ledger, other):
        with pytest.raises(BudgetExceeded):
            pay(one, Pure(0.1))
    assert charges(other) == 10


def test_hard_links_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    (tmp_path / "second").hardlink_to(path)
    with pytest.raises(LedgerError, match="2 names"):
        pay(ledger, Pure(0.1))
    for name in ("x.ledger", "second"):
        with pytest.raises(LedgerError, match=r"hard links.*remove all but one"):
            Ledger.open(tmp_path / name)
    (tmp_path / "second").unlink()
    assert pay(ledger, Pure(0.1)).number == 1


def replaced(path: Path) -> None:
    made(path.with_name("new")).path.replace(path)  # type: ignore[union-attr]  # it has one


def copied_back(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (lambda path: path.unlink(), "can't be opened"),
    "renamed": (lambda path: path.rename(path.with_name("moved")), "can't be opened"),
    "replaced": (replaced, "replaced"),
    "a copy put in its place": (copied_back, "replaced"),
    "a folder": (made_folder, "no file"),
}


@pytest.mark.parametrize("way", GONE)
def test_a_file_that_is_no_longer_there_is_noticed(tmp_path: Path, way: str) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    pay(ledger, Pure(0.1))
    change, said = GONE[way]
    change(path)
    for _ in range(2):
        with pytest.raises(LedgerError, match=said):
            pay(ledger, Pure(0.1))
    with pytest.raises(LedgerError, match=said):
        ledger.spent()


@pytest.mark.parametrize("way", ["deleted", "renamed", "replaced", "a copy put in its place"])
def test_a_file_taken_away_in_the_middle_gives_no_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    pay(ledger, Pure(0.1))
    commit = Connection.commit

    def late(self: Connection) -> None:
        commit(self)
        monkeypatch.undo()
        GONE[way][0](path)

    monkeypatch.setattr(Connection, "commit", late)
    with pytest.raises(LedgerError, match="renamed, replaced or deleted"):
        pay(ledger, Pure(0.1))


def test_a_draft_that_a_killed_maker_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    make = 'Ledger.create(path, unit=Unit("person"), limit=Limit(1))'
    dying = "link = os.link\n_sqlite.os.link = lambda *names: (link(*names), die())\n"
    killed(dying + make, path)
    assert len(files(tmp_path)) >= 2
    assert pay(Ledger.open(path), Pure(0.1)).number == 1
    assert path.stat().st_nlink == 1


def test_a_file_system_without_locks_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)

    def unable(descriptor: int, _: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    def pretending(descriptor: int, _: int) -> None:
        assert os.fstat(descriptor)

    for flock in (unable, pretending):
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", flock)
            with pytest.raises(LedgerError, match=r"can't lock files.*local disk"):
                Ledger.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", unable)
        with pytest.raises(LedgerError, match="flock"):
            pay(ledger, Pure(0.1))
    assert charges(ledger) == 0


def test_waiting_too_long_for_the_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.05)
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="others used it for too long: try again"):
            pay(ledger, Pure(0.1))
    assert pay(ledger, Pure(0.1)).number == 1


def test_the_lock_ends_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    killed("l = Ledger.open(path)\nwith l._store.writing(): die()", path)
    assert pay(ledger, Pure(0.1)).number == 1


FORKED = """
l = Ledger.open(path)
l.charge(Pure(0.01), purpose="x", by="ana")
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        for _ in range(5):
            l.charge(Pure(0.01), purpose="x", by="ana")
        os._exit(0)
    children.append(child)
for _ in range(5):
    l.charge(Pure(0.01), purpose="x", by="ana")
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print(l.charge(Pure(0.01), purpose="x", by="ana").number)
"""


def test_children_of_a_connected_process_connect_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    assert ended(begun(FORKED, path)) == "22\n"
    assert charges(ledger) == 22


# Nobody waits for another ledger, nor for a cost


def test_a_transaction_holds_up_no_other_ledger(tmp_path: Path) -> None:
    first, second = made(tmp_path / "x.ledger"), made(tmp_path / "y.ledger")
    third = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    found: list[int] = []
    with first._store.writing():
        thread = threading.Thread(
            target=lambda: found.extend(pay(one, Pure(0.1)).number for one in (second, third))
        )
        thread.start()
        thread.join(60)
    assert found == [1, 1]


def test_a_slow_price_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one charge is priced, others are made; it is priced anew, and counts theirs."""
    path = tmp_path / "x.ledger"
    slow, other = made(path), Ledger.open(path)
    cost, begins, goes_on = Filter.cost, threading.Event(), threading.Event()
    dear = PrivacyLoss.of(Pure(0.5))

    def late(self: Filter, loss: PrivacyLoss) -> FilterCost:
        if loss.terms == dear.terms:
            begins.set()
            assert goes_on.wait(60)
        return cost(self, loss)

    monkeypatch.setattr(Filter, "cost", late)
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 10)
    outcomes: list[object] = []

    def spend(loss: PrivacyLoss) -> None:
        try:
            outcomes.append(pay(slow, loss).number)
        except BudgetExceeded as error:
            outcomes.append(str(error))

    for paid, expected in ((0.25, 2), (0.125, "would reach")):
        begins.clear()
        goes_on.clear()
        thread = threading.Thread(target=spend, args=(dear,))
        thread.start()
        assert begins.wait(60)
        pay(other, Pure(paid))
        goes_on.set()
        thread.join(60)
        assert str(outcomes[-1]).startswith(str(expected))
    assert charges(slow) == 3
    assert slow.spent().epsilon * 8 == 7


# Backups


def test_a_backup_is_whole_while_others_charge(tmp_path: Path) -> None:
    path, numbers, done = tmp_path / "x.ledger", [0], threading.Event()
    ledger, other = made(path), Ledger.open(path)

    def spend() -> None:
        while not done.is_set():
            numbers.append(pay(other, Pure(0.0001)).number)

    thread = threading.Thread(target=spend)
    thread.start()
    try:
        for number in range(5):
            before = numbers[-1]
            ledger.backup(tmp_path / f"copy-{number}")
            copy = Ledger.open(tmp_path / f"copy-{number}")
            assert before <= charges(copy) <= numbers[-1] + 1
            *same, last = copy.history()
            assert tuple(same) == ledger.history()[: len(same)]
            assert last.kind is Kind.BACKUP
    finally:
        done.set()
        thread.join()
    assert (tmp_path / "copy-0").stat().st_mode & 0o777 == 0o600


def test_a_backup_takes_no_charge_until_its_owner_takes_it_into_use(tmp_path: Path) -> None:
    ledger, place = made(tmp_path / "x.ledger"), tmp_path / "copy"
    pay(ledger, Pure(0.75))
    ledger.backup(place)
    copy = Ledger.open(place)
    assert copy.is_locked
    with pytest.raises(LedgerError, match="is a backup"):
        pay(copy, Pure(0.1))
    assert not ledger.is_locked
    assert copy.unlock("the disk was lost", "owner") == ()
    with pytest.raises(BudgetExceeded):
        pay(copy, Pure(0.26))
    pay(copy, Pure(0.25))
    assert charges(copy) == 2


def test_a_backup_never_overwrites(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x.ledger")
    for place in (tmp_path / "x.ledger", tmp_path):
        with pytest.raises(InvalidArgument, match="exists already"):
            ledger.backup(place)
    with pytest.raises(LedgerError, match="No such file"):
        ledger.backup(tmp_path / "nowhere" / "copy")
    assert charges(ledger) == 0


def test_a_damaged_ledger_has_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)
    for _ in range(3):
        pay(ledger, Pure(0.1))
    with opened(path) as connection:
        connection.execute("DROP TRIGGER entries_stay")
    with pytest.raises(LedgerDamaged, match="guards"):
        ledger.backup(tmp_path / "copy")
    assert files(tmp_path) in (["x.ledger"], ["x.ledger", "x.ledger-journal"])


@pytest.mark.parametrize("is_charged_since", [False, True])
def test_an_anchor_refuses_a_backup_that_misses_a_charge(
    tmp_path: Path, is_charged_since: bool
) -> None:
    path, anchor = tmp_path / "x.ledger", tmp_path / "anchor"
    made(path)
    ledger = Ledger.open(path, anchor=anchor)
    pay(ledger, Pure(0.5))
    ledger.backup(tmp_path / "copy")
    if is_charged_since:
        pay(ledger, Pure(0.25))
    (tmp_path / "copy").replace(path)
    if is_charged_since:
        with pytest.raises(LedgerDamaged, match="another one than its anchor has"):
            Ledger.open(path, anchor=anchor)
        return
    again = Ledger.open(path, anchor=anchor)
    again.unlock("the disk was lost", "owner")
    pay(again, Pure(0.25))
    assert charges(again) == 2


def test_a_ledger_in_memory_can_be_backed_up(tmp_path: Path) -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    pay(ledger, Pure(0.5))
    ledger.backup(tmp_path / "copy")
    assert charges(Ledger.open(tmp_path / "copy")) == 1
