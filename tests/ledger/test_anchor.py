"""An older copy of a ledger is refused by its anchor."""

import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from discreet._budget import Limit, Receipt, Request
from discreet.accounting import Filter, PrivacyLoss, Pure
from discreet.errors import AnchorDiffers, BudgetExceeded, LedgerDamaged, LedgerError
from discreet.ledger import Ledger, _appending
from discreet.ledger._anchor import Anchor, AnchorMark
from discreet.ledger._decisions import receipt_of
from discreet.ledger._facts import (
    KINDS,
    Backup,
    Charge,
    Fact,
    Grant,
    Lock,
    Opening,
    Revoke,
    StepReservation,
    StoredAnswer,
    Subtotal,
    Unlock,
)
from discreet.ledger._place import LedgerPlace
from discreet.ledger._store import Transaction
from discreet.ledger._writer import Writer
from tests.ledger.kit import PERSON, charges, copied, files, made, pay, raced


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made(tmp_path / "x.ledger")
    return tmp_path / "x.ledger"


@pytest.fixture
def anchor(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere" / "anchor"


def test_the_anchor_follows_every_entry(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    receipt = pay(ledger, Pure(0.1), Request("first", "body"))
    steps: list[Callable[[], object]] = [
        lambda: ledger.is_locked,
        lambda: ledger.keep(receipt, "42"),
        lambda: ledger.lock(receipt),
        lambda: ledger.unlock("looked", "owner"),
    ]
    for step in steps:
        step()
        head = ledger.history()[-1]
        assert Anchor(anchor).read() == AnchorMark(head.number, head.digest)
    assert Ledger.open(path, anchor=anchor).history() == ledger.history()


def test_a_rolled_back_copy_is_refused(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    pay(ledger, Pure(0.4))
    old = copied(path, path.with_name("old"))
    pay(ledger, Pure(0.6))
    copied(old, path)
    with pytest.raises(LedgerDamaged, match="older than its anchor: a rolled-back copy"):
        Ledger.open(path, anchor=anchor)
    for step in (lambda: pay(ledger, Pure(0.6)), ledger.verify, ledger.spent):
        with pytest.raises(LedgerDamaged, match="older than its anchor"):
            step()
    assert charges(Ledger.open(path)) == 1  # without an anchor, nothing tells


def test_a_rolled_back_copy_that_went_on_is_refused(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    old = copied(path, path.with_name("old"))
    pay(ledger, Pure(0.6))
    copied(old, path)
    unaware = Ledger.open(path)
    for _ in range(3):
        pay(unaware, Pure(0.3))
    with pytest.raises(LedgerDamaged, match="entry 1 is another one than its anchor has"):
        pay(ledger, Pure(0.01))


SMALL = Filter.for_limit(Limit(1))
LOSS = PrivacyLoss.of(Pure(0.1), unit=PERSON)
EACH: tuple[Fact, ...] = (
    Opening(PERSON, SMALL),
    Charge(LOSS, "a test", "ana", None, is_insecure=False),
    StoredAnswer(1, "42"),
    Lock(1),
    Unlock("looked", "owner"),
    StepReservation(1, 0, 0, 1, 5, "plan"),
    Backup(),
    Subtotal(LOSS),
    Grant("bo", SMALL, "owner"),
    Revoke("bo", "owner"),
)


def append(ledger: Ledger, fact: Fact) -> None:
    ledger._writer.write(lambda rows, head: _appending._append(rows, head, fact))


@pytest.mark.parametrize("kind", KINDS)
def test_copies_that_record_the_same_at_one_time_differ(
    path: Path, anchor: Path, kind: type[Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each would take the mark of the other for its own, and both would go on."""
    (fact,) = (each for each in EACH if type(each) is kind)
    pay(Ledger.open(path), Pure(0.1), Request("first", "body"))
    ledger = Ledger.open(path, anchor=anchor)
    other = Ledger.open(copied(path, path.with_name("copy")), anchor=anchor)
    monkeypatch.setattr("discreet.ledger._store._now", ledger.history()[0].at.replace)
    advanced = Writer._advanced

    def overtaken(self: Writer, head: AnchorMark, known: set[AnchorMark]) -> AnchorMark:
        monkeypatch.setattr(Writer, "_advanced", advanced)
        append(other, fact)  # between the commit of the first copy and its mark
        return advanced(self, head, known)

    monkeypatch.setattr(Writer, "_advanced", overtaken)
    with pytest.raises(AnchorDiffers, match=r"entry 2 is recorded, but .* another one than"):
        append(ledger, fact)
    here, there = Ledger.open(path).history(), other.history()
    assert [entry.digest for entry in here[:2]] == [entry.digest for entry in there[:2]]
    assert here[2].digest != there[2].digest
    assert here[2].at == there[2].at
    append(other, Unlock("it goes on", "owner"))


def test_ledgers_that_are_made_at_one_time_differ(
    tmp_path: Path, anchor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = made(tmp_path / "before").history()[0].at
    monkeypatch.setattr("discreet.ledger._store._now", at.replace)
    one, other = (made(tmp_path / name) for name in ("one", "other"))
    assert one.history()[0].at == other.history()[0].at
    Ledger.open(tmp_path / "one", anchor=anchor)
    with pytest.raises(AnchorDiffers, match="or this is the anchor of another ledger"):
        Ledger.open(tmp_path / "other", anchor=anchor)


def test_a_refused_copy_is_told_which_one_is_right(path: Path, anchor: Path) -> None:
    """By following the advice: the copy that opens with the anchor has every charge that was given
    a receipt under it."""
    ledger = Ledger.open(path, anchor=anchor)
    older = copied(path, path.with_name("older"))
    ledger.backup(path.with_name("backup"))
    receipt = pay(ledger, Pure(0.4))
    diverged = copied(older, path.with_name("diverged"))
    pay(Ledger.open(diverged), Pure(0.4))
    for name in ("older", "backup", "diverged"):
        with pytest.raises(AnchorDiffers, match=r"The right ledger is the copy that opens with th"):
            Ledger.open(path.with_name(name), anchor=anchor)
    assert Ledger.open(path, anchor=anchor).history()[-1].digest == receipt.digest


def test_charges_without_the_anchor_are_caught_up(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    pay(Ledger.open(path), Pure(0.1))
    assert Anchor(anchor).read().number == 0
    pay(ledger, Pure(0.1))
    assert Anchor(anchor).read().number == 2


def test_an_anchor_never_goes_back(anchor: Path) -> None:
    mine, marks = Anchor(anchor), [AnchorMark(number, "x" * 64) for number in range(4)]
    mine.begin(marks[2])
    for number, there in ((0, 2), (1, 2), (2, 2), (3, 3), (1, 3), (2, 3)):
        assert mine.advance(marks[number], marks) == mine.read() == marks[there]
    mine.begin(marks[1])  # a second opening that came too late
    assert mine.read() == marks[3]
    assert files(anchor.parent) == [".anchor.lock", "anchor"]


def test_writers_of_an_anchor_take_turns(anchor: Path) -> None:
    mine, marks = Anchor(anchor), [AnchorMark(number, "x" * 64) for number in range(3)]
    mine.begin(marks[1])
    later = threading.Thread(target=mine.advance, args=(marks[2], marks))
    with mine._locked():
        later.start()
        time.sleep(0.1)
        assert mine.read().number == 1
    later.join()
    assert mine.read().number == 2


def test_an_anchor_is_durable_before_it_is_moved(
    anchor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []

    def fsync(file: int) -> None:
        is_written = os.fstat(file).st_size > 64
        synced.append((anchor.exists(), is_written))

    monkeypatch.setattr("os.fsync", fsync)
    Anchor(anchor).begin(AnchorMark(1, "x" * 64))
    assert synced[0] == (False, True)  # the whole draft
    assert [moved for moved, _ in synced] == [False, True]  # then the folder


def test_an_anchor_that_went_away_is_not_made_again(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    anchor.unlink()
    with pytest.raises(LedgerError, match=r"anchor .* can't be read"):
        pay(ledger, Pure(0.1))
    assert charges(Ledger.open(path)) == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "x",
        "[]",
        "{}",
        '{"number":1}',
        '{"digest":"x","number":true}',
        '{"digest":1,"number":1}',
        '{"digest":"x","number":-1}',
        '{"digest":"x","number":1.0}',
        "\xff",
    ],
)
def test_other_files_are_no_anchors(path: Path, anchor: Path, content: str) -> None:
    anchor.write_text(content, encoding="latin-1")
    with pytest.raises(LedgerDamaged, match="no anchor"):
        Ledger.open(path, anchor=anchor)


def test_an_anchor_of_another_ledger_is_refused(path: Path, anchor: Path) -> None:
    Ledger.open(made(path.with_name("other")).path or "", anchor=anchor)
    with pytest.raises(LedgerDamaged, match="or this is the anchor of another ledger"):
        Ledger.open(path, anchor=anchor)
    huge = '{"digest":"x","number":1' + "0" * 40 + "}"
    anchor.write_text(huge)
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        Ledger.open(path, anchor=anchor)


@pytest.fixture
def linked(anchor: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Other names of the anchor, by how they lead to it."""
    near = anchor.parent.with_name("near")
    near.mkdir()
    (near / "file").symlink_to(anchor)
    (near / "relative").symlink_to("../elsewhere/anchor")
    (near / "twice").symlink_to(near / "file")
    (near / "folder").symlink_to(anchor.parent, target_is_directory=True)
    monkeypatch.chdir(near)
    names = {name: str(near / name) for name in ("file", "relative", "twice")}
    return names | {"folder": str(near / "folder" / "anchor"), "below": "../elsewhere/anchor"}


@pytest.mark.parametrize("by", ["file", "relative", "twice", "folder", "below"])
@pytest.mark.parametrize("is_first", [True, False], ids=["made by a link", "made before"])
def test_copies_share_an_anchor_by_whatever_path(
    path: Path, anchor: Path, linked: dict[str, str], by: str, is_first: bool
) -> None:
    names = [linked[by], str(anchor)]
    before = files(Path.cwd())
    copy = copied(path, path.with_name("copy"))
    first = Ledger.open(path, anchor=names[not is_first])
    second = Ledger.open(copy, anchor=names[is_first])
    pay(first, Pure(0.1))
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        pay(second, Pure(0.1))
    assert files(Path.cwd()) == before  # the links are there, and nothing beside them
    assert files(anchor.parent) == [".anchor.lock", "anchor"]


@pytest.mark.parametrize("by", ["file", "relative", "twice", "folder", "below"])
def test_a_declared_anchor_moves_behind_its_link(
    path: Path, anchor: Path, linked: dict[str, str], by: str
) -> None:
    copy = copied(path, path.with_name("copy"))
    ledger = Ledger.open(path, anchor=anchor)
    for resolved in (False, True):
        place = LedgerPlace.written(str(path), linked[by], Path.cwd())
        place = place.resolved() if resolved else place
        pay(place.open_or_create(ledger.unit, ledger.limit), Pure(0.1))
    place = LedgerPlace.written(str(copy), linked[by], Path.cwd())
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        place.open_or_create(ledger.unit, ledger.limit)


def test_an_anchor_of_several_names_is_refused(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    other = anchor.with_name("other")
    other.hardlink_to(anchor)
    for name in (anchor, other):
        with pytest.raises(LedgerError, match=r"2 names \(hard links\).* remove the other names"):
            Ledger.open(path, anchor=name)
    with pytest.raises(LedgerError, match="hard links"):
        pay(ledger, Pure(0.1))
    assert charges(Ledger.open(path)) == 0
    other.unlink()
    pay(ledger, Pure(0.1))


def test_a_link_in_the_place_of_an_anchor_is_refused(path: Path, anchor: Path) -> None:
    ledger = Ledger.open(path, anchor=anchor)
    anchor.rename(anchor.with_name("moved"))
    anchor.symlink_to("moved")
    with pytest.raises(LedgerError, match="can't be read: Too many levels of symbolic links"):
        pay(ledger, Pure(0.1))
    assert charges(Ledger.open(path)) == 0
    anchor.unlink()
    anchor.symlink_to(anchor)  # it leads to itself
    with pytest.raises(LedgerError, match="Too many levels of symbolic links"):
        Ledger.open(path, anchor=anchor)
    assert anchor.is_symlink()


def test_a_place_that_can_hold_no_anchor_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="No such file"):
        Ledger.open(path, anchor=tmp_path / "nowhere" / "anchor")
    with pytest.raises(LedgerError, match="Is a directory"):
        Ledger.open(path, anchor=tmp_path)


def test_a_charge_whose_anchor_fails_stays_paid(
    path: Path, anchor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(path, anchor=anchor)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "_replace", full)
        with pytest.raises(LedgerError, match="entry 1 is recorded, but the anchor"):
            pay(ledger, Pure(1))
        for _ in range(3):  # no second one is recorded
            with pytest.raises(LedgerError, match=r"the anchor .* can't be written: No space"):
                pay(ledger, Pure(0.001))
    assert charges(ledger) == 1
    assert Anchor(anchor).read().number == 0
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(1))
    assert Anchor(anchor).read().number == 1


NOBODY = 65534


@pytest.mark.parametrize("way", ["folder", "lock", "draft"])
def test_nothing_is_paid_where_the_anchor_cannot_move(
    tmp_path: Path, anchor: Path, way: str
) -> None:
    """It belongs to another user, who lets this one read it only."""
    user = os.geteuid()
    tmp_path.chmod(0o755)
    mine = tmp_path / "mine"
    mine.mkdir()
    ledger = Ledger.open(made(mine / "x.ledger").path or "", anchor=anchor)
    pay(ledger, Pure(0.1))
    draft, lock = (anchor.with_name(f".anchor.{end}") for end in ("new", "lock"))
    draft.unlink(missing_ok=True)
    if way == "folder":
        anchor.parent.chmod(0o555)
    elif way == "lock":
        lock.unlink()
        lock.mkdir()
    else:
        draft.mkdir()
    try:
        if user == 0 and way == "folder":
            for path in (mine, *mine.iterdir(), lock):
                os.chown(path, NOBODY, -1)
            for parent in (anchor.parent, *tmp_path.parents):
                if parent.stat().st_uid == user and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o111)
            anchor.chmod(0o644)
            os.seteuid(NOBODY)
        for _ in range(3):
            with pytest.raises(LedgerError, match="can't be written"):
                pay(ledger, Pure(0.1))
        assert ledger.spent().charges == 1
    finally:
        os.seteuid(user)
        anchor.parent.chmod(0o755)


class Interrupted(BaseException):
    """Not an Exception, as KeyboardInterrupt isn't."""


def stop_before_the_anchor(ledger: Ledger, request: Request, patch: pytest.MonkeyPatch) -> None:
    """Charge, and be interrupted between the commit and the anchor."""

    def advance(*_: object) -> None:
        raise Interrupted

    patch.setattr(Anchor, "advance", advance)
    with pytest.raises(Interrupted):
        pay(ledger, Pure(0.1), request)
    patch.undo()


def test_a_receipt_for_an_earlier_charge_moves_the_anchor(
    path: Path, anchor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing is written: the charge is found under its request."""
    ledger, request = Ledger.open(path, anchor=anchor), Request("first", "body")
    stop_before_the_anchor(ledger, request, monkeypatch)
    assert Anchor(anchor).read().number == 0

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "_replace", full)
        with pytest.raises(LedgerError, match=r"the anchor .* can't be written: No space"):
            ledger._writer.write(lambda rows, _: ledger_receipt(rows))
    assert ledger._writer.write(lambda rows, _: ledger_receipt(rows)).number == 1
    assert Anchor(anchor).read().number == 1


def ledger_receipt(rows: Transaction) -> Receipt:
    link = rows.link(1)
    assert isinstance(link.fact, Charge)
    return receipt_of(link, link.fact, None, statement=None)


def test_a_follower_of_an_interrupted_leader_moves_the_anchor(
    path: Path, anchor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry was recorded in the leader's transaction, so its own transaction writes nothing."""
    ledger, plain, calls = Ledger.open(path, anchor=anchor), Anchor.advance, list[int]()
    outcomes: dict[float, object] = {}

    def advance(self: Anchor, mark: AnchorMark, known: Collection[AnchorMark]) -> AnchorMark:
        calls.append(mark.number)
        if len(calls) == 1:
            raise Interrupted
        return plain(self, mark, known)

    def act(loss: float) -> None:
        try:
            outcomes[loss] = pay(ledger, Pure(loss))
        except Interrupted as failure:
            outcomes[loss] = failure

    monkeypatch.setattr(Anchor, "advance", advance)
    threads = [threading.Thread(target=act, args=(loss,)) for loss in (0.1, 0.2)]
    with ledger._store.turns:
        for number, thread in enumerate(threads):
            thread.start()
            while len(ledger._writer._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert isinstance(outcomes[0.1], Interrupted)
    assert isinstance(outcomes[0.2], Receipt)
    assert outcomes[0.2].number == 2 == Anchor(anchor).read().number
    assert calls == [2, 2]


RACE = """
l = Ledger.open(path, anchor=path + ".anchor")
wait()
for _ in range(15):
    l.charge(Pure(0.01), purpose="x", by="ana")
    l.is_locked
"""


def test_racing_processes_keep_the_anchor_up(path: Path) -> None:
    Ledger.open(path, anchor=f"{path}.anchor")
    raced(RACE, path, 3)
    ledger = Ledger.open(path, anchor=f"{path}.anchor")
    assert charges(ledger) == 45 == Anchor(Path(f"{path}.anchor")).read().number
