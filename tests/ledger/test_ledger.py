"""The ledger as people use it: made, opened, charged, shown."""

import copy
import logging
import math
import os
import pickle
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from discreet._budget import (
    AnyLimit,
    Limit,
    MuLimit,
    Payer,
    Receipt,
    RenyiLimit,
    Request,
    RhoLimit,
)
from discreet._unit import Change, Unit
from discreet.accounting import Approximate, Filter, Gaussian, PrivacyLoss, Pure
from discreet.accounting._loss import Term
from discreet.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerDiffers,
    LedgerError,
    LedgerLocked,
    WrongUnit,
)
from discreet.ledger import Kind, Ledger, _store
from tests.ledger.kit import PERSON, charges, files, made, opened, pay

TENTH = Pure(0.1)
SMALL = PrivacyLoss.of(Gaussian(10))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hospital.ledger"


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Ledger:
    """With a limit of 1."""
    if request.param == "file":
        return made(path)
    return Ledger.in_memory(unit=PERSON, limit=Limit(1))


def test_a_ledger_is_a_payer(ledger: Ledger) -> None:
    payer: Payer[PrivacyLoss] = ledger
    assert payer.charge(PrivacyLoss.of(TENTH), purpose="a test", by="ana").number == 1


def test_ten_charges_of_a_tenth_are_one_and_an_eleventh_is_refused(ledger: Ledger) -> None:
    for _ in range(10):
        pay(ledger, TENTH)
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(1e-18))
    assert ledger.spent().epsilon == 1
    assert ledger.spent().left == 0
    assert charges(ledger) == 10


@pytest.mark.parametrize("epsilon", [1.0000000000000002, Fraction(10**18 + 1, 10**18), 2, 1e300])
def test_nothing_passes_the_limit(ledger: Ledger, epsilon: float) -> None:
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(epsilon))
    assert charges(ledger) == 0
    assert pay(ledger, Pure(1)).number == 1


def test_a_charge_of_nothing_still_fits_when_all_is_spent(ledger: Ledger) -> None:
    pay(ledger, Pure(1))
    assert pay(ledger, PrivacyLoss()).number == 2
    assert pay(ledger, Pure(0)).number == 3


def test_a_small_charge_fits_after_a_large_one_was_refused(ledger: Ledger) -> None:
    pay(ledger, Pure(0.5))
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(0.6))
    assert pay(ledger, Pure(0.5)).number == 2


def test_the_filter_decides_and_no_epsilon_does(path: Path) -> None:
    limit = Limit(1, 1e-6)
    ledger = Ledger.create(path, unit=PERSON, limit=limit)
    chosen, spent, accepted = Filter.for_limit(limit), Filter.for_limit(limit).start, 0
    while chosen.admits(after := chosen.add(spent, PrivacyLoss.of(Gaussian(20)))):
        pay(ledger, Gaussian(20))
        spent, accepted = after, accepted + 1
    with pytest.raises(BudgetExceeded):
        pay(ledger, Gaussian(20))
    assert charges(ledger) == accepted > 5
    total = ledger.spent().total
    assert total.terms == ((Gaussian(20), accepted),)
    assert (total + Gaussian(20)).epsilon(1e-6) < 1  # had they been fixed beforehand
    assert ledger.spent().epsilon == ledger.spent().reached == chosen.reached(spent)


def test_a_filter_of_ones_own_rules(path: Path) -> None:
    limit = Limit(1, 1e-6)
    chosen = Filter(limit, Fraction(0), ((Fraction(20), Fraction(1, 10**6)),))
    ledger = Ledger.create(path, unit=PERSON, limit=limit, filter=chosen)
    assert Ledger.open(path).filter == chosen == ledger.filter
    pay(ledger, Gaussian(30))
    with pytest.raises(BudgetExceeded):
        pay(ledger, Approximate(0.1, 1e-9))
    with pytest.raises(InvalidArgument, match="for this limit"):
        Ledger.create(path, unit=PERSON, limit=Limit(2), filter=chosen)


def test_a_filter_is_stored_with_its_exact_numbers(path: Path) -> None:
    limit = Limit(1, 1e-6)
    rough = Filter(limit, 0, ((20.5, 1e-7),))  # type: ignore[arg-type]  # what a caller may do
    exact = Filter(limit, Fraction(0), ((Fraction(41, 2), Fraction(1, 10**7)),))
    assert Ledger.create(path, unit=PERSON, limit=limit, filter=rough).filter == exact
    wrong = Filter(limit, 0, ((math.inf, 1e-7),))  # type: ignore[arg-type]  # what a caller may do
    with pytest.raises(InvalidArgument, match="order"):
        Ledger.create(path.with_name("y"), unit=PERSON, limit=limit, filter=wrong)


def test_a_receipt_tells_what_was_paid(ledger: Ledger) -> None:
    before = datetime.now(UTC)
    receipt = ledger.charge(TENTH, purpose="monthly", by="bo", is_insecure=True)
    assert (receipt.number, receipt.purpose, receipt.by) == (1, "monthly", "bo")
    assert receipt.is_insecure
    assert receipt.stored is None
    assert before <= receipt.at <= datetime.now(UTC)
    assert receipt.at.utcoffset() == timedelta(0)


def test_history_tells_everything(ledger: Ledger) -> None:
    receipt = ledger.charge(TENTH, purpose="monthly", by="bo", is_insecure=True)
    ledger.lock(receipt)
    ledger.unlock("it was the disk", by="owner")
    opened, paid, locked, unlocked = ledger.history()
    assert [entry.number for entry in ledger.history()] == [0, 1, 2, 3]
    assert opened.kind is Kind.OPEN
    assert (paid.kind, paid.purpose, paid.by) == (Kind.CHARGE, "monthly", "bo")
    assert paid.loss == PrivacyLoss.of(TENTH, unit=PERSON)
    assert (paid.is_insecure, paid.digest, paid.at) == (True, receipt.digest, receipt.at)
    assert (locked.kind, locked.about) == (Kind.LOCK, 1)
    assert (unlocked.kind, unlocked.purpose, unlocked.by) == (
        Kind.UNLOCK,
        "it was the disk",
        "owner",
    )


def test_recorded_charges_are_there_when_opened_again(path: Path) -> None:
    receipt = pay(made(path), Pure(0.75))
    again = Ledger.open(path)
    assert (again.unit, again.limit, again.path) == (PERSON, Limit(1), path)
    assert again.history()[1].digest == receipt.digest
    with pytest.raises(BudgetExceeded):
        pay(again, Pure(0.26))


def test_a_loss_without_a_unit_takes_the_ledgers(ledger: Ledger) -> None:
    pay(ledger, 2 * TENTH)
    assert ledger.spent().total.unit == PERSON


@pytest.mark.parametrize("other", [Unit.ROW, Unit("family"), PERSON.with_change(Change.REPLACE)])
def test_a_loss_of_another_unit_is_refused(ledger: Ledger, other: Unit) -> None:
    with pytest.raises(WrongUnit):
        pay(ledger, PrivacyLoss.of(TENTH, unit=other))
    assert charges(ledger) == 0


@dataclass(frozen=True)
class Free(Term):
    """A term that nothing else knows."""


class Half(Pure):
    """A term that says less than it costs."""

    __slots__ = ()

    def approximate(self) -> tuple[Fraction, Fraction]:
        return self.epsilon / 2, Fraction(0)


@pytest.mark.parametrize(
    "loss",
    [
        PrivacyLoss.of(Half(0.5)),
        PrivacyLoss.of(type("Pure", (Half,), {})(0.5)),
        PrivacyLoss.of(Free()),
        Half(0.5),
        0.1,
        None,
        "Pure(0.1)",
        float("nan"),
    ],
)
def test_unsound_privacy_losses_are_refused(ledger: Ledger, loss: PrivacyLoss) -> None:
    with pytest.raises(InvalidArgument):
        pay(ledger, loss)
    assert charges(ledger) == 0


def test_numbers_that_are_none_never_reach_it() -> None:
    for number in (float("nan"), float("inf"), -1, True, "1", Decimal("NaN")):
        with pytest.raises(InvalidArgument):
            Limit(number)  # type: ignore[arg-type]  # what a caller may do
        with pytest.raises(InvalidArgument):
            Pure(number)  # type: ignore[arg-type]  # what a caller may do


def test_a_charge_can_refund_nothing(ledger: Ledger) -> None:
    pay(ledger, TENTH)
    loss = PrivacyLoss.of(TENTH)
    object.__setattr__(loss, "terms", ((TENTH, -1),))
    with pytest.raises(InvalidArgument):
        pay(ledger, loss)
    assert charges(ledger) == 1


@pytest.mark.parametrize(("purpose", "by"), [("", "ana"), ("x", ""), (" ", "ana"), (None, "ana")])
def test_a_charge_says_who_and_what_for(ledger: Ledger, purpose: str, by: str) -> None:
    with pytest.raises(InvalidArgument):
        ledger.charge(TENTH, purpose=purpose, by=by)


@pytest.mark.parametrize("text", ["żółć 🦆", "a\x00b", '"},{"', "x" * 100_000])
def test_any_text_comes_back_as_it_was(path: Path, text: str) -> None:
    ledger = made(path)
    ledger.charge(TENTH, purpose=text, by=text)
    entry = Ledger.open(path).history()[1]
    assert (entry.purpose, entry.by) == (text, text)


def test_a_new_file_is_its_owners_only(path: Path) -> None:
    pay(made(path), TENTH)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files(path.parent) == [path.name]


def test_an_existing_file_is_refused(path: Path) -> None:
    pay(made(path), TENTH)
    with pytest.raises(InvalidArgument, match="exists already"):
        made(path)
    assert charges(Ledger.open(path)) == 1
    with pytest.raises(InvalidArgument, match="exists already"):
        made(path.parent)
    assert files(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["a b.ledger", "q?mode=ro#x", "100%25.db", "żółć", ".l", "a'b"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    pay(made(tmp_path / name), TENTH)
    assert charges(Ledger.open(tmp_path / name)) == 1
    assert files(tmp_path) == [name]


def test_a_ledger_stays_in_its_place_when_the_folder_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    ledger = made(Path(path.name))
    monkeypatch.chdir("/")
    pay(ledger, TENTH)
    assert charges(Ledger.open(path)) == 1


def test_other_files_are_refused_and_left_alone(path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="no file"):
        Ledger.open(path.parent)
    for content in (b"", b"no ledger at all" * 1000):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="not a ledger"):
            Ledger.open(path)
        assert path.read_bytes() == content
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="no file"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="No such file"):
        made(path.parent / "nowhere" / "x.ledger")
    for nothing in ("", 3, b"x", None):
        with pytest.raises(InvalidArgument, match="path"):
            Ledger.open(nothing)  # type: ignore[arg-type]  # what a caller may do


def test_a_file_that_went_away_is_not_made_again(path: Path) -> None:
    ledger = made(path)
    path.unlink()
    with pytest.raises(LedgerError, match="can't be opened"):
        pay(ledger, TENTH)
    assert not path.exists()
    assert "can't be opened" in repr(ledger)


def test_open_or_create(path: Path) -> None:
    pay(Ledger.open_or_create(path, unit=PERSON, limit=Limit(1)), TENTH)
    again = Ledger.open_or_create(path, unit=PERSON, limit=Limit(1))
    assert charges(again) == 1
    assert len(again.history()) == 2


def test_the_ledgers_limit_rules(path: Path) -> None:
    made(path)
    with pytest.raises(LedgerDiffers, match=r"ε = 1, .*ε = 2; the ledger decides"):
        Ledger.open_or_create(path, unit=PERSON, limit=Limit(2))
    with pytest.raises(LedgerDiffers, match="rules"):
        Ledger.open_or_create(path, unit=PERSON, limit=Limit(1, 1e-9))


@pytest.mark.parametrize("other", [Unit("family"), PERSON.with_change(Change.REPLACE), Unit.ROW])
def test_the_unit_may_change_until_something_was_charged(path: Path, other: Unit) -> None:
    old = made(path)
    new = Ledger.open_or_create(path, unit=other, limit=Limit(1))
    assert old.unit == new.unit == Ledger.open(path).unit == other
    with pytest.raises(WrongUnit):
        pay(old, PrivacyLoss.of(TENTH, unit=PERSON))
    pay(old, TENTH)
    with pytest.raises(LedgerDiffers, match="it has charges"):
        Ledger.open_or_create(path, unit=PERSON, limit=Limit(1))
    assert [entry.kind for entry in new.history()] == [Kind.OPEN, Kind.OPEN, Kind.CHARGE]
    new.verify()


def test_while_locked_nothing_is_charged(ledger: Ledger) -> None:
    receipt = pay(ledger, TENTH)
    assert not ledger.is_locked
    ledger.lock(receipt)
    ledger.lock(receipt)
    assert ledger.is_locked
    assert "LOCKED" in repr(ledger)
    with pytest.raises(LedgerLocked, match=r"ledger\.unlock.*discreet unlock"):
        pay(ledger, Pure(0))
    ledger.unlock("looked at it", "owner", allow_repeat=True)
    assert not ledger.is_locked
    assert "LOCKED" not in repr(ledger)
    pay(ledger, TENTH)
    with pytest.raises(LedgerError, match="isn't locked"):
        ledger.unlock("again", "owner")
    assert charges(ledger) == 2


def test_unlocking_says_why_and_who(ledger: Ledger) -> None:
    ledger.lock(pay(ledger, TENTH))
    for reason, by in (("", "owner"), ("because", "")):
        with pytest.raises(InvalidArgument):
            ledger.unlock(reason, by)
    assert ledger.is_locked


def test_a_receipt_from_elsewhere_locks_nothing(ledger: Ledger) -> None:
    receipt = pay(ledger, TENTH)
    other = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    pay(other, TENTH)
    far = Receipt(10**30, receipt.digest, receipt.at, "x", "ana")
    for wrong in (receipt, far, Receipt(0, other.history()[0].digest, receipt.at, "x", "a"), None):
        with pytest.raises(InvalidArgument, match="not from this ledger"):
            other.lock(wrong)  # type: ignore[arg-type]  # what a caller may do
    assert not other.is_locked


def test_a_clock_set_back_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = made(path)
    pay(ledger, Pure(0.5))
    monkeypatch.setattr(_store, "_now", lambda: datetime(1970, 1, 1, tzinfo=UTC))
    pay(ledger, Pure(0.5))
    with pytest.raises(BudgetExceeded):
        pay(ledger, TENTH)
    ledger = Ledger.open(path)
    assert [entry.at.year > 1970 for entry in ledger.history()] == [True, True, False]
    assert charges(ledger) == 2


def test_a_file_ledger_can_be_sent_to_another_process(path: Path) -> None:
    ledger = made(path)
    for other in (pickle.loads(pickle.dumps(ledger)), copy.copy(ledger), copy.deepcopy(ledger)):
        pay(other, TENTH)
    assert charges(ledger) == 3


def test_a_ledger_in_memory_is_never_copied() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LedgerError, match="in memory"):
            copying(ledger)


def test_ledgers_in_memory_are_apart() -> None:
    first, second = (Ledger.in_memory(unit=PERSON, limit=Limit(1)) for _ in range(2))
    pay(first, Pure(1))
    pay(second, Pure(1))
    assert charges(first) == charges(second) == 1


def test_bad_units_and_limits_are_refused(path: Path) -> None:
    with pytest.raises(InvalidArgument, match="unit"):
        Ledger.create(path, unit="person", limit=Limit(1))  # type: ignore[arg-type]  # as above
    with pytest.raises(InvalidArgument, match="limit"):
        Ledger.create(path, unit=PERSON, limit=1)  # type: ignore[arg-type]  # as above
    assert not path.exists()


def test_every_commit_is_synced(path: Path) -> None:
    ledger = made(path)
    with ledger._store.writing() as rows:
        pragma = [f"PRAGMA {name}" for name in ("journal_mode", "synchronous")]
        assert [rows.connection.exec_driver_sql(p).scalar() for p in pragma] == ["persist", 2]


def test_no_error_shows_what_was_to_be_stored(path: Path) -> None:
    ledger = made(path)
    receipt = pay(ledger, TENTH, Request("first", "body"))
    with opened(path) as other:
        other.execute(
            "CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(FAIL, 'no'); END"
        )
    with pytest.raises(LedgerError, match="the database refused") as caught:
        ledger.keep(receipt, "a secret answer")
    mistake: BaseException | None = caught.value
    while mistake is not None:
        assert "secret" not in str(mistake)
        mistake = mistake.__context__


def test_a_ledger_prints_and_logs_nothing(
    path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    ledger = made(path)
    ledger.charge(TENTH, purpose="a secret purpose", by="ana")
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.DEBUG, logger="discreet"):
        ledger.charge(TENTH, purpose="a secret purpose", by="ana")
    assert "charge 2" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "limit", [Limit(1, 1e-6), RhoLimit(0.5), MuLimit(1), RenyiLimit({2: 0.5, 8: 1})], ids=repr
)
def test_every_kind_of_limit_is_stored(path: Path, limit: AnyLimit) -> None:
    """It is read again as it was, decides, and another one is refused."""
    Ledger.create(path, unit=PERSON, limit=limit)
    ledger = Ledger.open_or_create(path, unit=PERSON, limit=limit)
    assert ledger.limit == limit
    assert ledger.filter == Filter.for_limit(limit)
    admitted = 0
    while ledger.filter.admits(ledger.filter.add(ledger.filter.start, (admitted + 1) * SMALL)):
        pay(ledger, SMALL)
        admitted += 1
    with pytest.raises(BudgetExceeded):
        pay(ledger, Gaussian(10))
    assert charges(Ledger.open(path)) == admitted > 3
    for other in (Limit(1), RhoLimit(1), MuLimit(3), RenyiLimit({2: 0.5})):
        with pytest.raises(LedgerDiffers, match="the ledger decides"):
            Ledger.open_or_create(path, unit=PERSON, limit=other)


@pytest.mark.parametrize(
    "limit", [Limit(1), Limit(1, 1e-6), RhoLimit(1), MuLimit(1), RenyiLimit({2: 1})]
)
def test_a_receipt_tells_what_is_left(limit: AnyLimit) -> None:
    """As `spent` does, which reads the whole chain; also when a request is repeated."""
    ledger = Ledger.in_memory(unit=PERSON, limit=limit)
    request = Request("first", "body")
    first = pay(ledger, Pure(0.125), request)
    balances = [(first, ledger.spent())]
    balances.append((pay(ledger, Pure(0.25)), ledger.spent()))
    ledger.keep(first, "42")
    balances.append((pay(ledger, Pure(0.125), request), ledger.spent()))
    for receipt, balance in balances:
        use = receipt.balance
        assert use is not None
        assert (use.limit, use.reached, use.left) == (limit, balance.reached, balance.left)
    assert balances[0][1].left > balances[1][1].left
