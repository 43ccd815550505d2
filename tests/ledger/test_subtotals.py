"""Subtotals: the sum of all charges is known without a full reading, and no subtotal is believed
unless the chain up to the head verifies."""

import itertools
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._budget import Limit, Request
from discreet.accounting import PrivacyLoss, Pure, Term
from discreet.errors import BudgetExceeded, DiscreetError, InvalidArgument, LedgerDamaged
from discreet.ledger import Kind, Ledger, _entries, _subtotals
from discreet.ledger._chain import next_state
from discreet.ledger._entries import Row
from discreet.ledger._facts import Fact, Link, Subtotal
from discreet.ledger._store import Transaction
from tests.ledger.kit import PERSON, killed, made, pay, unguarded

EVERY = 4


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_subtotals, "SUBTOTAL_EVERY", EVERY)


def total_of(ledger: Ledger) -> PrivacyLoss:
    """The sum of all charges, by a full reading."""
    losses = [entry.loss for entry in ledger.history() if entry.loss is not None]
    return PrivacyLoss(tuple(pair for loss in losses for pair in loss.terms), PERSON)


def subtotals(ledger: Ledger) -> list[int]:
    return [entry.number for entry in ledger.history() if entry.kind is Kind.SUBTOTAL]


def long(path: Path, charges: int = 10) -> Ledger:
    ledger = made(path, epsilon=10)
    for number in range(charges):
        pay(ledger, Pure(0.01 if number % 2 else 0.02))
    return ledger


TERMS = (0, 0.1, 0.2, 0.3, 1)
LOSSES: st.SearchStrategy[Term | PrivacyLoss] = st.sampled_from(
    [Pure(0.1), 3 * Pure(0.2), Pure(0.1) + Pure(0.3), Pure(0), Pure(1), 0 * Pure(1)]
)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(LOSSES, st.sampled_from("abc")), max_size=12), st.sampled_from([2, 3, 5]))
def test_the_total_is_that_of_a_full_reading(
    course: list[tuple[Term | PrivacyLoss, str]], every: int
) -> None:
    """Two open ledgers charge, are opened again and look, in any order."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(_subtotals, "SUBTOTAL_EVERY", every),
    ):
        first = made(Path(folder) / "x", epsilon=2)
        second = Ledger.open(Path(folder) / "x")
        for loss, what in course:
            try:
                pay(first if what == "a" else second, loss)
            except BudgetExceeded:
                assert first.spent().total == total_of(second)
            if what == "c":
                second = Ledger.open(Path(folder) / "x")
        for ledger in (first, second, Ledger.open(Path(folder) / "x")):
            assert ledger.spent().total == total_of(ledger)
            ledger.verify()
        numbers = subtotals(first)
        assert all(
            later - earlier <= max(every, len(TERMS)) + 1
            for earlier, later in zip([0, *numbers], numbers, strict=False)
        )


def test_a_new_process_reads_what_follows_the_last_subtotal(tmp_path: Path) -> None:
    """And `spent`, `history(last)` and the opening read no more, however long the chain is."""
    long(tmp_path / "x", 30)
    reads: Counter[int] = Counter()
    read = _entries.read

    def counted(row: Row, previous: str) -> Link:
        reads[row.number] += 1
        return read(row, previous)

    with mock.patch.object(_entries, "read", counted):
        ledger = Ledger.open(tmp_path / "x")
        ledger.spent()
        assert len(ledger.history(last=3)) == 3
    head = ledger.history()[-1].number
    assert min(reads.keys() - {0}) >= head - 2 * EVERY
    assert head > 30


def test_the_last_entries_are_those_of_the_whole_history(tmp_path: Path) -> None:
    ledger = long(tmp_path / "x", 6)
    whole = ledger.history()
    for last in (1, 2, len(whole) - 1, len(whole), len(whole) + 1):
        assert ledger.history(last) == whole[-last:]
    with pytest.raises(DiscreetError):
        ledger.history(0)


def appended(ledger: Ledger, fact: Fact) -> None:
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, fact, next_state(head, rows.opening(head), fact))


@pytest.mark.parametrize(
    "total", [PrivacyLoss(), PrivacyLoss.of(Pure(0.01)), 6 * Pure(0.01) + 5 * Pure(0.02)]
)
def test_a_forged_subtotal_fails_the_verification(tmp_path: Path, total: PrivacyLoss) -> None:
    """With right digests, as by one who writes the whole chain anew: the sums that decide are in
    each state, so that it admits no charge, and `verify` finds it."""
    ledger = long(tmp_path / "x")
    before = ledger.sums
    appended(ledger, Subtotal(total))
    assert ledger.sums == before
    with pytest.raises(LedgerDamaged, match="not allowed where it stands"):
        ledger.verify()


def test_a_right_subtotal_may_stand_anywhere(tmp_path: Path) -> None:
    ledger = long(tmp_path / "x")
    appended(ledger, Subtotal(ledger.spent().total))
    ledger.verify()
    assert Ledger.open(tmp_path / "x").spent().total == total_of(ledger)


def test_a_changed_subtotal_is_damage(tmp_path: Path) -> None:
    """Even if its own digest is made right, since the links after it are read, too."""
    ledger = long(tmp_path / "x")
    number = subtotals(ledger)[-1]
    with ledger._store.reading() as rows:
        link, before = rows.link(number), rows.link(number - 1)
    forged = _entries.write(
        number,
        link.at,
        Subtotal(PrivacyLoss()),
        link.state,
        entry_id=link.id,
        previous=before.digest,
    )
    with unguarded(tmp_path / "x") as connection:
        connection.execute(
            "UPDATE entries SET body = ?, digest = ? WHERE number = ?",
            (forged.body, forged.digest, number),
        )
    with pytest.raises(LedgerDamaged):
        Ledger.open(tmp_path / "x").spent()


@pytest.mark.parametrize("number", [1, 1000], ids=["no subtotal", "in the future"])
def test_a_state_that_names_no_subtotal_is_damage(tmp_path: Path, number: int) -> None:
    ledger = long(tmp_path / "x", 3)
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, Subtotal(PrivacyLoss()), replace(head.state, subtotal=number))
    with pytest.raises(LedgerDamaged):
        Ledger.open(tmp_path / "x").spent()
    with pytest.raises(LedgerDamaged):
        ledger.verify()


def test_a_stale_subtotal_that_the_state_still_names_fails_the_verification(
    tmp_path: Path,
) -> None:
    """The total is right all the same: entries after the older one are added."""
    ledger = long(tmp_path / "x", 12)
    older = subtotals(ledger)[-2]
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, Subtotal(total_of_rows(rows)), replace(head.state, subtotal=older))
    assert Ledger.open(tmp_path / "x").spent().total == total_of(ledger)
    with pytest.raises(LedgerDamaged):
        ledger.verify()


def total_of_rows(rows: Transaction) -> PrivacyLoss:
    losses = [entry.fact for entry in rows.links()]
    return PrivacyLoss(
        tuple(p for fact in losses if hasattr(fact, "loss") for p in fact.loss.terms)
    )


def test_a_chain_without_subtotals_is_read_from_its_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its first one with the next charge."""
    monkeypatch.setattr(_subtotals, "SUBTOTAL_EVERY", 1000)
    older = long(tmp_path / "x")
    assert subtotals(older) == []
    monkeypatch.setattr(_subtotals, "SUBTOTAL_EVERY", EVERY)
    ledger = Ledger.open(tmp_path / "x")
    assert ledger.spent().total == total_of(ledger)
    pay(ledger, Pure(0.01))
    assert subtotals(ledger) == [12]
    ledger.verify()


def test_sums_of_many_terms_are_written_rarely(tmp_path: Path) -> None:
    """Each is about twice as long as the one before, so all are no longer than the charges."""
    ledger = made(tmp_path / "x", epsilon=100)
    for number in range(1, 40):
        pay(ledger, Pure(number / 1000))
    numbers = subtotals(ledger)
    assert numbers[:2] == [5, 10]
    assert len(numbers) <= 6
    assert all(3 * a <= 2 * b for a, b in itertools.pairwise(numbers))
    assert Ledger.open(tmp_path / "x").spent().total == total_of(ledger)


HUGE = PrivacyLoss(((Pure(0), 6 * 10**999),))


def test_counts_whose_sum_can_not_be_written_are_refused(tmp_path: Path) -> None:
    """`Pure(0)` costs nothing, so the filter alone would admit any count of it."""
    ledger = made(tmp_path / "x")
    with pytest.raises(InvalidArgument, match="a count above"):
        pay(ledger, HUGE)
    for _ in range(2 * EVERY):
        pay(ledger, PrivacyLoss(((Pure(0), 10**900),)))
    assert ledger.spent().total.terms == ((Pure(0), 2 * EVERY * 10**900),)
    assert subtotals(ledger)


def test_a_subtotal_is_recorded_with_its_charge_or_not_at_all(tmp_path: Path) -> None:
    """Killed while it is computed: the charge before it is not there either, and its caller got no
    receipt; the next one writes both."""
    path = tmp_path / "x"
    long(path, EVERY - 1)
    killed(
        f"""
from discreet.ledger import _subtotals
_subtotals.SUBTOTAL_EVERY = {EVERY}
_subtotals.TotalsReader.follow = die
Ledger.open(path).charge(Pure(0.01), purpose="p", by="ana")
""",
        path,
    )
    ledger = Ledger.open(path)
    assert [entry.kind for entry in ledger.history()] == [Kind.OPEN, *[Kind.CHARGE] * (EVERY - 1)]
    pay(ledger, Pure(0.01), Request("a", "b"))
    assert [entry.kind for entry in ledger.history()][-2:] == [Kind.CHARGE, Kind.SUBTOTAL]
    ledger.verify()


def test_an_anchor_binds_subtotals(tmp_path: Path) -> None:
    """The anchor holds the head, subtotals included: an older copy is refused as ever."""
    made(tmp_path / "x", epsilon=10)
    ledger = Ledger.open(tmp_path / "x", anchor=tmp_path / "x.anchor")
    for _ in range(EVERY - 1):
        pay(ledger, Pure(0.01))
    older = (tmp_path / "x").read_bytes()
    pay(ledger, Pure(0.01))
    assert subtotals(ledger) == [EVERY + 1]
    Ledger.open(tmp_path / "x", anchor=tmp_path / "x.anchor").spent()
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))  # nothing has the file open
    (tmp_path / "x").write_bytes(older)
    with pytest.raises(LedgerDamaged, match="older than its anchor"):
        Ledger.open(tmp_path / "x", anchor=tmp_path / "x.anchor").spent()
