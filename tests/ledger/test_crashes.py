"""Killed at any point, a ledger holds a charge whole or not at all, and never forgets one."""

import signal
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from discreet._budget import Request
from discreet.accounting import Pure
from discreet.errors import BudgetExceeded, LedgerDamaged, LedgerError, RequestReused
from discreet.ledger import Ledger
from discreet.ledger._sqlite import plain_errors
from tests.ledger.kit import begun, charges, ended, killed, made, pay

BEFORE_WRITING = "_store.Transaction.append = die"
BEFORE_COMMIT = "_store.Connection.commit = die"
AFTER_COMMIT = """
commit = _store.Connection.commit
_store.Connection.commit = lambda self: (commit(self), die())
"""
CHARGE = 'l.charge(Pure(0.6), purpose="x", by="ana", request=Request("first", "body"))'


@pytest.mark.parametrize(
    ("point", "is_recorded"),
    [(BEFORE_WRITING, False), (BEFORE_COMMIT, False), (AFTER_COMMIT, True)],
)
def test_killed_while_charging(tmp_path: Path, point: str, is_recorded: bool) -> None:
    path = tmp_path / "x.ledger"
    made(path)
    killed(f"l = Ledger.open(path)\n{point}\n{CHARGE}", path)
    ledger = Ledger.open(path)
    assert charges(ledger) == is_recorded
    if is_recorded:
        with pytest.raises(BudgetExceeded):
            pay(ledger, Pure(0.6))
    else:
        pay(ledger, Pure(0.6))
    assert charges(ledger) == 1


@pytest.mark.parametrize(
    ("point", "is_stored"), [(BEFORE_WRITING, False), (BEFORE_COMMIT, False), (AFTER_COMMIT, True)]
)
def test_killed_while_storing(tmp_path: Path, point: str, is_stored: bool) -> None:
    path = tmp_path / "x.ledger"
    made(path)
    killed(f"l = Ledger.open(path)\nr = {CHARGE}\n{point}\nl.keep(r, '42')", path)
    ledger, request = Ledger.open(path), Request("first", "body")
    if is_stored:
        assert pay(ledger, Pure(0.6), request).stored == "42"
    else:
        with pytest.raises(RequestReused, match="no answer is stored"):
            pay(ledger, Pure(0.6), request)
    assert charges(ledger) == 1


def test_killed_between_paying_and_keeping(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    made(path)
    killed(f"l = Ledger.open(path)\n{CHARGE}\ndie()", path)
    with pytest.raises(RequestReused, match="no answer is stored"):
        pay(Ledger.open(path), Pure(0.6), Request("first", "body"))


@pytest.mark.parametrize(
    ("point", "is_made"),
    [
        (BEFORE_COMMIT, False),
        (AFTER_COMMIT, False),
        ("_sqlite.os.link = die", False),
        ("_sqlite.sync_folder = die", True),
    ],
)
def test_killed_while_making(tmp_path: Path, point: str, is_made: bool) -> None:
    path = tmp_path / "x.ledger"
    make = 'Ledger.open_or_create(path, unit=Unit("person"), limit=Limit(1))'
    killed(f"{point}\n{make}", path)
    assert path.exists() == is_made
    ended(begun(make, path))
    assert charges(Ledger.open(path)) == 0


def test_killed_before_the_anchor_moved(tmp_path: Path) -> None:
    path, anchor = tmp_path / "x.ledger", tmp_path / "anchor"
    made(path)
    opening = f"l = Ledger.open(path, anchor={str(anchor)!r})"
    killed(f"{opening}\n_anchor.Anchor.advance = die\n{CHARGE}", path)
    ledger = Ledger.open(path, anchor=anchor)
    assert charges(ledger) == 1
    assert pay(ledger, Pure(0.1)).number == 2


SPEND = """
l = Ledger.open(path)
for n in range(10**6):
    print(l.charge(Pure(0.001), purpose="x", by="ana").number, flush=True)
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger, printed, recorded = made(path, epsilon=100), 0, 0
    for moment in range(6):
        with begun(SPEND, path) as process:
            for _ in range(moment + 1):
                printed = int(process.stdout.readline())
            time.sleep(moment * 0.0013)
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()  # communicate would lose lines that are buffered
        printed = int(rest[-1]) if rest else printed
        recorded = charges(ledger)
        assert recorded - printed in (0, 1)
    assert recorded >= 21


FULL = """
import resource
size = os.stat(path).st_size
l = Ledger.open(path)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
accepted = 0
try:
    for n in range(1000):
        l.charge(Pure(0.001), purpose="x" * 500, by="ana")
        accepted += 1
except DiscreetError as mistake:
    print(type(mistake).__name__, mistake, file=sys.stderr)
    text = f"{type(mistake).__name__} {'no room' in str(mistake) or 'full' in str(mistake)}"
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
l.charge(Pure(0.001), purpose="there is room again", by="ana")
print(accepted + 1, text)
"""


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    made(path, epsilon=10)
    accepted, *text = ended(begun(FULL, path)).split()
    assert text == ["LedgerError", "True"]
    assert charges(Ledger.open(path)) == int(accepted) > 3


NO_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    Ledger.create(path, unit=Unit("person"), limit=Limit(1))
except DiscreetError as mistake:
    print(type(mistake).__name__, os.listdir(Path(path).parent))
"""


def test_a_full_disk_makes_no_half_ledger(tmp_path: Path) -> None:
    assert ended(begun(NO_ROOM, tmp_path / "x.ledger")) == "LedgerError []\n"


def test_a_failing_commit_charges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ledger"
    ledger = made(path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sqlalchemy.engine.Connection.commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pay(ledger, Pure(1))
    assert pay(ledger, Pure(1)).number == 1


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("SQLITE_FULL", LedgerError, "disk is full"),
        ("SQLITE_IOERR_WRITE", LedgerError, "disk failed, or has no room"),
        ("SQLITE_READONLY_DIRECTORY", LedgerError, "can't be written"),
        ("SQLITE_CANTOPEN", LedgerError, "can't be opened"),
        ("SQLITE_BUSY_SNAPSHOT", LedgerError, "try again"),
        ("SQLITE_CORRUPT_INDEX", LedgerDamaged, "damaged"),
        ("SQLITE_ERROR", LedgerError, "the database refused"),
        ("", LedgerError, "the database refused"),
    ],
)
def test_database_errors_become_plain_errors(code: str, kind: type[LedgerError], text: str) -> None:
    cause = sqlite3.OperationalError("some words")
    if code:
        cause.sqlite_errorname = code
    said = f"the ledger x: .*{text}.*some words"
    with pytest.raises(kind, match=said) as caught, plain_errors("the ledger x"):
        raise DBAPIError("INSERT", None, cause)
    assert caught.type is kind
