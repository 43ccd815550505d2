"""An anchor in PostgreSQL does what one in a file does, and its role can only move it forward."""

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from discreet import Limit
from discreet.accounting import Pure
from discreet.errors import AnchorDiffers, InvalidArgument, LedgerDamaged, LedgerError
from discreet.ledger import Ledger, check_export
from discreet.ledger._addresses import anchor_at
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._facts import Link
from discreet.ledger._place import LedgerPlace
from discreet.ledger._postgres import plain_errors
from discreet.ledger._postgres_anchor import PostgresAnchor
from discreet.ledger._writer import Writer
from tests.cli.kit import process
from tests.ledger import postgres
from tests.ledger.kit import PERSON, charges, copied, made, pay, raced


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made(tmp_path / "x.ledger")
    return tmp_path / "x.ledger"


@pytest.fixture
def at() -> str:
    """An anchor that isn't there yet, as the owner of the database."""
    return postgres.address().replace("ledger=", "anchor=")


def name_of(at: str) -> str:
    name = make_url(at).query["anchor"]
    assert isinstance(name, str)
    return name


def run(at: str, *statements: str, role: str | None = None) -> None:
    postgres.run(at.replace("anchor=", "ledger="), *statements, role=role)


def as_role(at: str) -> str:
    """The same anchor for a role that may only read and add."""
    name = name_of(at)
    run(
        at,
        f"CREATE ROLE r{name} LOGIN",
        f"GRANT USAGE ON SCHEMA {name} TO r{name}",
        f"GRANT SELECT, INSERT ON {name}.marks TO r{name}",
    )
    return make_url(at).set(username=f"r{name}").render_as_string(hide_password=False)


def test_a_rolled_back_ledger_is_refused_by_an_anchor_of_another_role(path: Path, at: str) -> None:
    Ledger.open(path, anchor=at)  # the owner makes the anchor
    ledger = Ledger.open(path, anchor=as_role(at))
    pay(ledger, Pure(0.4))
    old = copied(path, path.with_name("old"))
    pay(ledger, Pure(0.6))
    assert anchor_at(at).read() == AnchorMark(2, ledger.history()[-1].digest)
    copied(old, path)
    for step in (lambda: pay(ledger, Pure(0.6)), ledger.verify, ledger.spent):
        with pytest.raises(LedgerDamaged, match="older than its anchor: a rolled-back copy"):
            step()
    with pytest.raises(LedgerDamaged, match="older than its anchor: a rolled-back copy"):
        Ledger.open(path, anchor=at)
    unaware = Ledger.open(path)
    for _ in range(3):
        pay(unaware, Pure(0.1))
    with pytest.raises(LedgerDamaged, match="entry 2 is another one than its anchor has"):
        Ledger.open(path, anchor=at)


CHANGES = (
    "UPDATE {0}.marks SET number = 0",
    "DELETE FROM {0}.marks",
    "TRUNCATE {0}.marks",
)


@pytest.mark.parametrize("change", [*CHANGES, "DROP TABLE {0}.marks", "DROP SCHEMA {0} CASCADE"])
def test_the_role_can_take_no_mark_back(path: Path, at: str, change: str) -> None:
    Ledger.open(path, anchor=at)
    ledger = Ledger.open(path, anchor=as_role(at))
    pay(ledger, Pure(0.1))
    with pytest.raises(DBAPIError):
        run(at, change.format(name_of(at)), role=f"r{name_of(at)}")
    if change in CHANGES:  # the triggers refuse the owner, too
        with pytest.raises(DBAPIError, match="an anchor only moves forward"):
            run(at, change.format(name_of(at)))
    assert anchor_at(at).read().number == 1


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER marks_stay ON {0}.marks",
        "ALTER TABLE {0}.marks DISABLE TRIGGER marks_stay",
        (
            "CREATE OR REPLACE FUNCTION {0}.stay() RETURNS trigger "
            "LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        ),
    ],
)
def test_an_altered_guard_is_found(path: Path, at: str, change: str) -> None:
    Ledger.open(path, anchor=at)
    run(at, change.format(name_of(at)))
    with pytest.raises(LedgerDamaged, match="the guard against changes was altered"):
        Ledger.open(path, anchor=at)


def test_an_anchor_never_goes_back(path: Path, at: str) -> None:
    mine, marks = anchor_at(at), [AnchorMark(number, f"{number}" * 64) for number in range(4)]
    mine.begin(marks[2])
    for number, there in ((0, 2), (1, 2), (2, 2), (3, 3), (1, 3), (2, 3)):
        assert mine.advance(marks[number], marks) == mine.read() == marks[there]
    mine.begin(marks[1])  # a second opening that came too late
    assert mine.read() == marks[3]


@pytest.fixture(params=["file", "database"])
def anchor(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An anchor that isn't there yet, at either place."""
    if request.param == "file":
        return str(tmp_path / "anchor")
    return postgres.address().replace("ledger=", "anchor=")


@pytest.mark.parametrize("charges_here", [1, 2])
@pytest.mark.parametrize("charges_there", [1, 2])
def test_only_one_of_two_copies_gives_receipts(
    path: Path, anchor: str, charges_here: int, charges_there: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other copy pays just before this one moves the anchor; its mark may have a smaller
    number, the same or a larger one."""
    ledger = Ledger.open(path, anchor=anchor)
    other = Ledger.open(copied(path, path.with_name("copy")), anchor=anchor)
    if charges_here == 2:
        pay(Ledger.open(path), Pure(0.001))  # without the anchor
    advanced = Writer._advanced

    def overtaken(self: Writer, head: AnchorMark, known: set[AnchorMark]) -> AnchorMark:
        monkeypatch.undo()
        for _ in range(charges_there):
            pay(other, Pure(0.4))
        return advanced(self, head, known)

    monkeypatch.setattr(Writer, "_advanced", overtaken)
    # a copy that goes on from an entry without a mark moves the anchor there before it pays
    is_paid = charges_here == 1
    said = "entry 1 is recorded, but the ledger" if is_paid else "^the ledger .* takes no charge"
    with pytest.raises(AnchorDiffers, match=said):
        pay(ledger, Pure(0.9))
    assert charges(Ledger.open(path)) == 1
    assert anchor_at(anchor).read() == AnchorMark.of(_head(other))
    with pytest.raises(LedgerDamaged):
        pay(ledger, Pure(0.01))
    pay(other, Pure(0.01))


def test_one_of_many_copies_at_once_gives_a_receipt(path: Path, anchor: str) -> None:
    copies = [path, *(copied(path, path.with_name(f"copy{number}")) for number in range(5))]
    ledgers = [Ledger.open(one, anchor=anchor) for one in copies]
    barrier = threading.Barrier(len(ledgers))

    def paid(ledger: Ledger) -> bool:
        barrier.wait()
        try:
            pay(ledger, Pure(0.9))
        except LedgerDamaged:
            return False
        return True

    with ThreadPoolExecutor(len(ledgers)) as threads:
        assert sum(threads.map(paid, ledgers)) == 1


def test_a_mark_that_another_process_moved_further_is_fine(
    path: Path, anchor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = (Ledger.open(path, anchor=anchor) for _ in range(2))
    advanced = Writer._advanced

    def overtaken(self: Writer, head: AnchorMark, known: set[AnchorMark]) -> AnchorMark:
        monkeypatch.undo()
        pay(other, Pure(0.1))
        return advanced(self, head, known)

    monkeypatch.setattr(Writer, "_advanced", overtaken)
    assert pay(ledger, Pure(0.1)).number == 1
    assert anchor_at(anchor).read().number == 2


class ServerStopped(Exception):
    """As the driver says that an administrator stopped the server."""

    sqlstate = "57P01"


@pytest.mark.parametrize("step", ["movable", "advance"])
def test_a_database_that_comes_back_is_asked_again(
    path: Path, at: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge whose anchor can't be reached would be paid in vain."""
    ledger, plain, calls = Ledger.open(path, anchor=at), getattr(PostgresAnchor, step), list[int]()

    def stopped(*given: object) -> object:
        calls.append(1)
        if len(calls) < 3:
            with plain_errors("the anchor"):
                raise OperationalError("", (), ServerStopped())
        return plain(*given)

    monkeypatch.setattr(PostgresAnchor, step, stopped)
    assert pay(ledger, Pure(0.1)).number == 1
    assert len(calls) == 3
    assert charges(ledger) == 1 == anchor_at(at).read().number


def _head(ledger: Ledger) -> Link:
    with ledger._store.reading() as rows:
        return rows.head()


def test_an_anchor_that_went_away_is_not_made_again(path: Path, at: str) -> None:
    ledger = Ledger.open(path, anchor=at)
    run(at, f"DROP SCHEMA {name_of(at)} CASCADE")
    with pytest.raises(LedgerError, match=r"anchor .* can't be read: it is not there"):
        pay(ledger, Pure(0.1))
    assert charges(Ledger.open(path)) == 0
    Ledger.open(path, anchor=at)
    run(at, f"ALTER TABLE {name_of(at)}.marks DISABLE TRIGGER marks_stay")
    run(at, f"DELETE FROM {name_of(at)}.marks")
    with pytest.raises(LedgerDamaged, match="no anchor: it has no mark"):
        pay(ledger, Pure(0.1))


def test_a_role_without_rights_gets_no_ledger(path: Path, at: str) -> None:
    Ledger.open(path, anchor=at)
    name = name_of(at)
    run(at, f"CREATE ROLE r{name} LOGIN")
    stranger = make_url(at).set(username=f"r{name}").render_as_string(hide_password=False)
    with pytest.raises(LedgerError, match="permission denied: ask its owner"):
        Ledger.open(path, anchor=stranger)


@pytest.mark.parametrize(
    "change",
    [
        "REVOKE INSERT ON {0}.marks FROM r{0}",
        "ALTER ROLE r{0} SET default_transaction_read_only = on",
    ],
)
def test_nothing_is_paid_where_the_role_can_add_no_mark(path: Path, at: str, change: str) -> None:
    Ledger.open(path, anchor=at)
    role = as_role(at)
    pay(Ledger.open(path, anchor=role), Pure(0.1))
    run(at, change.format(name_of(at)))
    ledger = Ledger.open(path, anchor=role)
    for _ in range(3):
        with pytest.raises(LedgerError, match=r"the anchor .* can't be written: its server only"):
            pay(ledger, Pure(0.1))
    assert ledger.spent().charges == 1


def test_a_lost_ledger_is_not_made_anew(path: Path, at: str) -> None:
    Ledger.open(path, anchor=at)
    path.unlink()
    with pytest.raises(LedgerError, match=r"its anchor \w+ in postgresql://.* is: it was moved"):
        Ledger.open_or_create(path, unit=PERSON, limit=Limit(1), anchor=at)


def test_an_older_export_is_refused(path: Path, at: str, tmp_path: Path) -> None:
    ledger = Ledger.open(path, anchor=at)
    ledger.export(tmp_path / "old.jsonl")
    pay(ledger, Pure(0.1))
    ledger.export(tmp_path / "new.jsonl")
    assert check_export(tmp_path / "new.jsonl", anchor=at).entries == 2
    with pytest.raises(LedgerDamaged, match="anchor"):
        check_export(tmp_path / "old.jsonl", anchor=at)


RACE = """
l = Ledger.open(path, anchor=open(path + ".at").read())
wait()
for _ in range(5):
    l.charge(Pure(0.01), purpose="x", by="ana")
"""


def test_racing_processes_keep_the_anchor_up(path: Path, at: str) -> None:
    Path(f"{path}.at").write_text(at)
    Ledger.open(path, anchor=at)
    raced(RACE, path, 3)
    assert charges(Ledger.open(path, anchor=at)) == 15 == anchor_at(at).read().number


def test_a_child_and_another_process_use_the_same_anchor(path: Path, at: str) -> None:
    ledger = Ledger.open(path, anchor=at)
    pay(ledger, Pure(0.1))
    child = os.fork()
    if not child:
        pay(ledger, Pure(0.1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert anchor_at(at).read().number == 2
    pay(ledger, Pure(0.1))  # the parent's connection is still there
    again = pickle.loads(pickle.dumps(ledger))
    pay(again, Pure(0.1))
    assert anchor_at(at).read().number == 4


def test_a_declaration_and_commands_take_the_address(tmp_path: Path, at: str) -> None:
    place = LedgerPlace.written("x.ledger", at, tmp_path)
    assert place.resolved().anchor == place.anchor == at
    place.open_or_create(PERSON, Limit(1)).charge(Pure(0.5), purpose="ages", by="ana")
    old = (tmp_path / "x.ledger").read_bytes()
    other = make_url(at).set(username="other").render_as_string(hide_password=False)
    assert LedgerPlace.written("x.ledger", other, tmp_path).identity == place.identity
    place.open_or_create(PERSON, Limit(1)).charge(Pure(0.5), purpose="ages", by="ana")
    (tmp_path / "x.ledger").write_bytes(old)
    asked = ("ledger", "spent", str(tmp_path / "x.ledger"))
    assert process(*asked).code == 0
    refused = process(*asked, "--anchor", at)
    assert (refused.code, "older than its anchor" in refused.message) == (5, True)
    with pytest.raises(LedgerError, match="older than its anchor"):
        place.open_or_create(PERSON, Limit(1))


@pytest.mark.parametrize(
    ("anchor", "said"),
    [
        ("postgresql://ana:secret@db/pay?anchor=wages", "of the anchor holds a password"),
        ("postgresql://db/pay?ledger=wages", r"end the database's address by \?anchor=NAME"),
        ("postgresql://db/pay?anchor=Wages;", r"end the database's address by \?anchor=NAME"),
    ],
)
def test_a_wrong_address_of_an_anchor_is_refused(tmp_path: Path, anchor: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as refused:
        LedgerPlace.written("x.ledger", anchor, tmp_path)
    assert "secret" not in str(refused.value)
