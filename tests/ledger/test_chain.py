"""A chain in which every digest is right is still held to the rules."""

import math
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from discreet._budget import Limit, Request
from discreet._exact import fraction
from discreet._unit import Unit
from discreet.accounting import Approximate, Filter, Gaussian, PoissonSampled, PrivacyLoss, Pure
from discreet.errors import BudgetExceeded, LedgerDamaged
from discreet.ledger import Ledger
from discreet.ledger._chain import next_state, verify
from discreet.ledger._facts import (
    Charge,
    Fact,
    Lock,
    Opening,
    StepReservation,
    StoredAnswer,
    Unlock,
)
from tests.accounting.limits import evenly_shared
from tests.ledger.kit import PERSON, made, pay

LIMIT = Limit(1, 1e-6)


def charge(epsilon: float, unit: Unit | None = PERSON) -> Charge:
    return Charge(PrivacyLoss.of(Pure(epsilon), unit=unit), "p", "ana", None, is_insecure=False)


def slipped_in(ledger: Ledger, *facts: Fact) -> None:
    """Append facts as if they had been allowed."""
    for fact in facts:
        with ledger._store.writing() as rows:
            head = rows.head()
            rows.append(head, fact, next_state(head, rows.opening(head), fact))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Entry 1 has a request, entry 2 has none."""
    ledger = made(tmp_path / "x.ledger", epsilon=1, delta=1e-6)
    pay(ledger, Pure(0.25), Request("first", "body"))
    pay(ledger, Pure(0.25))
    return ledger


@pytest.mark.parametrize(
    "facts",
    [
        [charge(0.5)],
        [StoredAnswer(1, "42")],
        [Lock(2), Lock(1), StoredAnswer(1, "42"), Unlock("looked", "owner"), charge(0.5)],
        [
            StepReservation(1, 0, 0, 3, 5, "a"),
            StepReservation(2, 0, 0, 1, 1, "b"),
            StepReservation(1, 1, 3, 2, 5, "a"),
        ],
    ],
)
def test_allowed_entries_verify(ledger: Ledger, facts: list[Fact]) -> None:
    slipped_in(ledger, *facts)
    ledger.verify()


@pytest.mark.parametrize(
    "facts",
    [
        [charge(0.6)],
        [charge(0.25), charge(0.26), charge(0)],
        [charge(0.1, unit=Unit("family"))],
        [charge(0.1, unit=None)],
        [Lock(1), charge(0.1)],
        [Lock(0)],
        [Lock(9)],
        [Unlock("looked", "owner")],
        [Lock(1), Unlock("looked", "owner"), Unlock("looked", "owner")],
        [StoredAnswer(2, "42")],
        [StoredAnswer(0, "42")],
        [StepReservation(0, 0, 0, 1, 5, "a")],
        [StepReservation(1, 1, 0, 1, 5, "a")],
        [StepReservation(1, 0, 1, 1, 5, "a")],
        [StepReservation(1, 0, 0, 0, 5, "a")],
        [StepReservation(1, 0, 0, 6, 5, "a")],
        [StepReservation(1, 0, 0, 3, 5, "a"), StepReservation(1, 1, 2, 2, 5, "a")],
        [StepReservation(1, 0, 0, 3, 5, "a"), StepReservation(1, 1, 3, 2, 5, "b")],
        [StepReservation(1, 0, 0, 3, 5, "a"), StepReservation(1, 1, 3, 2, 6, "a")],
        [StepReservation(1, 0, 0, 5, 5, "a"), StepReservation(1, 1, 5, 1, 5, "a")],
        [Opening(Unit("family"), Filter.for_limit(LIMIT))],
        [Opening(PERSON, Filter.for_limit(LIMIT))],
    ],
)
def test_forbidden_entries_are_damage(ledger: Ledger, facts: list[Fact]) -> None:
    slipped_in(ledger, *facts)
    with pytest.raises(LedgerDamaged, match="was not allowed where it stands"):
        ledger.verify()


def test_a_backup_is_held_to_the_rules(ledger: Ledger, tmp_path: Path) -> None:
    slipped_in(ledger, charge(0.6))
    with pytest.raises(LedgerDamaged, match="was not allowed where it stands"):
        ledger.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_before_a_charge_the_unit_may_change(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "y", unit=PERSON, limit=LIMIT)
    slipped_in(ledger, Opening(Unit.ROW, ledger.filter), charge(0.1, unit=Unit.ROW))
    ledger.verify()


@pytest.mark.parametrize(
    "other",
    [
        Filter.for_limit(Limit(1)),
        Filter.for_limit(Limit(2, 1e-6)),
        Filter(LIMIT, Fraction(0), ((Fraction(20), Fraction(1, 10**6)),)),
    ],
)
def test_no_second_opening_brings_another_filter(tmp_path: Path, other: Filter) -> None:
    ledger = Ledger.create(tmp_path / "y", unit=PERSON, limit=LIMIT)
    slipped_in(ledger, Opening(PERSON, other))
    with pytest.raises(LedgerDamaged):
        ledger.verify()


def test_a_chain_begins_with_an_opening(ledger: Ledger) -> None:
    with ledger._store.reading() as rows:
        links = list(rows.links())
    verify(links)
    for wrong in (links[1:], []):
        with pytest.raises(LedgerDamaged):
            verify(wrong)


class TestAlone:
    """A first charge beyond every sum, in a chain."""

    PAID = 400 * PoissonSampled(Gaussian(1.2), 0.01)

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Ledger:
        ledger = made(tmp_path / "x.ledger", epsilon=1, delta=1e-6)
        pay(ledger, self.PAID)
        pay(ledger, Pure(0.015625))
        return ledger

    def test_a_ledger_verifies_and_opens_again(self, ledger: Ledger) -> None:
        ledger.verify()
        assert ledger.path is not None
        again = Ledger.open(ledger.path)
        again.verify()
        cost = fraction(self.PAID.epsilon(1e-6))
        assert again.spent().reached == pytest.approx(cost + Fraction(1, 64))
        with pytest.raises(BudgetExceeded, match="would reach ε"):
            pay(again, Pure(0.02))
        with pytest.raises(BudgetExceeded, match="took the whole delta"):
            pay(again, Gaussian(1000))

    @pytest.mark.parametrize(
        ("part", "is_believed"),
        [(1.01, True), (1, True), (1 - 1e-9, True), (0.999, False), (0, False)],
    )
    def test_a_price_below_what_follows_is_damage(
        self, ledger: Ledger, part: float, is_believed: bool
    ) -> None:
        with ledger._store.reading() as rows:
            opening, charge, *_ = rows.links()
        cost = charge.state.spent.alone
        assert cost is not None
        spent = replace(charge.state.spent, alone=math.floor(cost * Fraction(part)))
        links = [opening, replace(charge, state=replace(charge.state, spent=spent))]
        with nullcontext() if is_believed else pytest.raises(LedgerDamaged):
            verify(links)


class TestWithFailures:
    """A run that is counted as a normal value with a failure, in a chain."""

    PAID = 200 * PoissonSampled(Gaussian(1.2), 0.01)

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Ledger:
        ledger = made(tmp_path / "x.ledger", epsilon=1, delta=1e-6)
        pay(ledger, Gaussian(40))
        pay(ledger, self.PAID)
        pay(ledger, Pure(0.01))
        return ledger

    def test_a_ledger_verifies_and_opens_again(self, ledger: Ledger) -> None:
        assert ledger.path is not None
        again = Ledger.open(ledger.path)
        again.verify()
        assert again.filter.squares == Filter.for_limit(LIMIT).squares
        with again._store.reading() as rows:
            assert list(rows.links())[-1].state.spent.failures > 0

    @pytest.mark.parametrize(
        ("failures", "square", "is_believed"),
        [
            (1, 1, True),
            (1, 1.01, True),
            (1, 1 - 1e-9, True),
            (1, 0.999, False),
            (0.9, 1, False),
            (0.9, 1.1, True),
            (1.1, 1, True),
            (0, 1, False),
        ],
    )
    def test_a_price_that_dominates_nothing_is_damage(
        self, ledger: Ledger, failures: float, square: float, is_believed: bool
    ) -> None:
        """Any failure will do, with a square that is large enough beside it."""
        with ledger._store.reading() as rows:
            opening, first, run, *_ = rows.links()
        before, after = first.state.spent, run.state.spent
        more = math.ceil((after.sums[1] - before.sums[1]) * Fraction(square))
        sums = (after.sums[0], before.sums[1] + more, *after.sums[2:])
        spent = replace(after, failures=math.ceil(after.failures * Fraction(failures)), sums=sums)
        links = [opening, first, replace(run, state=replace(run.state, spent=spent))]
        with nullcontext() if is_believed else pytest.raises(LedgerDamaged):
            verify(links)

    def test_a_ledger_keeps_the_shares_that_it_was_created_with(self, tmp_path: Path) -> None:
        """Here 10 % of delta is for failures, less than by default."""
        limit, path = Limit(8, 1e-6), tmp_path / "y"
        chosen = evenly_shared(limit)
        assert chosen.failures < Filter.for_limit(limit).failures
        Ledger.create(path, unit=PERSON, limit=limit, filter=chosen)
        for ledger in (Ledger.open(path), Ledger.open_or_create(path, unit=PERSON, limit=limit)):
            assert ledger.filter == chosen
            assert ledger.count_left(Approximate(0.02, 1e-9)) == 100
            ledger.verify()
