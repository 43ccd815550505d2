"""Reserves: a part of the limit that only one share can spend, and that never raises the limit."""

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet.accounting import (
    Approximate,
    Gaussian,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    Spent,
    Zcdp,
)
from discreet.accounting.filter._sums import Counting
from discreet.errors import BudgetExceeded, DiscreetError, LedgerDamaged
from discreet.ledger import Ledger, _subtotals
from discreet.ledger._chain import next_state
from discreet.ledger._facts import Charge, Fact, Grant, Reserve, Revoke, ShareCharge
from discreet.ledger._reserves import without
from tests.ledger.kit import PERSON, charges, made, pay
from tests.ledger.test_shares import to_share

RUN = 100 * PoissonSampled(Gaussian(2), rate=0.01)
LARGE_RUN = 100 * PoissonSampled(Gaussian(1), rate=0.01)
WIDE = Limit(100, 1e-2)

ACTS = st.one_of(
    st.tuples(st.sampled_from(["ana", "bo", None]), st.sampled_from([1, 2, 3, 5])),
    st.tuples(st.sampled_from(["grant ana", "grant bo"]), st.sampled_from([0, 2, 4, 7])),
    st.tuples(st.just("revoke"), st.sampled_from(["ana", "bo"])),
    st.tuples(st.just("open again"), st.none()),
)


@settings(max_examples=2, deadline=None)
@given(acts=st.lists(ACTS, min_size=8, max_size=25))
def test_a_ledger_with_reserves_does_what_ten_lines_say(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str | None, int | str | None]]
) -> None:
    """In tenths of epsilon: each share holds 8, the ledger 10. Subtotals come all the time."""
    path = tmp_path_factory.mktemp("reserves") / "x"
    ledger = made(path)
    spent: dict[str, int] = {}
    left: dict[str, int] = {}
    total = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_subtotals, "SUBTOTAL_EVERY", 3)
        for act, value in acts:
            before = len(ledger.history())
            others = {name: sum(left.values()) - left[name] for name in left}
            try:
                if act == "open again":
                    ledger = Ledger.open(path)
                elif act == "revoke":
                    is_right = value in spent
                    ledger.revoke(str(value), by="owner")
                    del spent[str(value)], left[str(value)]
                elif act is not None and act.startswith("grant"):
                    name = act.split()[1]
                    assert isinstance(value, int)
                    is_right = name not in spent and total + sum(left.values()) + value <= 10
                    reserve = PrivacyLoss.of(Pure(value / 10)) if value else None
                    ledger.grant(name, limit=Limit(0.8), by="owner", reserve=reserve)
                    spent[name], left[name] = 0, value
                else:
                    assert isinstance(value, int)
                    kept = sum(left.values()) if act is None else others.get(act, 99)
                    is_right = total + kept + value <= 10 and spent.get(act or "", 0) + value <= 8
                    ledger.charge(Pure(value / 10), purpose="p", by="x", share=act)
                    total += value
                    if act is not None:
                        spent[act], left[act] = spent[act] + value, max(0, left[act] - value)
            except DiscreetError:
                assert not is_right
                assert len(ledger.history()) == before
            else:
                assert act == "open again" or is_right
        assert {each.share: each.reached * 10 for each in ledger.shares()} == spent
        assert {each.share: each.reserved * 10 for each in ledger.shares()} == left
        balance = ledger.spent()
        assert balance.reached * 10 == total
        assert balance.reached_with_reserved * 10 == total + sum(left.values())
        assert balance.left * 10 == 10 - total - sum(left.values())
        ledger.verify()
        assert Ledger.open(path).shares() == ledger.shares()


LIMITS: list[tuple[AnyLimit, list[PrivacyLoss]]] = [
    (Limit(2), [PrivacyLoss.of(Pure(0.3)), 2 * Pure(0.05)]),
    (Limit(2, 1e-5), [LARGE_RUN, 1 * Pure(0.2), 3 * Gaussian(8), LARGE_RUN + Gaussian(10)]),
    (Limit(1, 1e-6), [1 * Approximate(0.1, 1e-8), 1 * Gaussian(9), 1 * Pure(0.1)]),
    (RhoLimit(0.2), [1 * Zcdp(0.03), 2 * Gaussian(6)]),
    (MuLimit(1), [1 * Gaussian(3), 1 * Pure(0.1)]),
    (RenyiLimit({2: 0.3, 8: 1.1}), [1 * Gaussian(4), 1 * Zcdp(0.02)]),
]


@pytest.mark.parametrize(("limit", "losses"), LIMITS, ids=[str(one) for one, _ in LIMITS])
def test_each_reserved_loss_fits_whatever_others_spend(
    limit: AnyLimit, losses: list[PrivacyLoss]
) -> None:
    """Under each kind of limit, others spend until nothing fits; then all reserved losses are
    charged, and the sums of all charges are within the limit, always."""
    chance = random.Random(str(limit))
    ledger = Ledger.in_memory(unit=PERSON, limit=limit)
    open_now: dict[str, PrivacyLoss] = {"first": losses[0], "last": losses[-1]}
    for name, loss in open_now.items():
        ledger.grant(name, limit=limit, by="owner", reserve=loss)
    for number in range(12):
        loss = chance.choice(losses)
        name = f"share {number}"
        try:
            if chance.random() < 0.25 and len(open_now) < 4:
                ledger.grant(name, limit=limit, by="owner", reserve=loss)
                open_now[name] = loss
            elif len(open_now) > 2 and chance.random() < 0.2:
                ledger.revoke(open_now.popitem()[0], by="owner")
            else:
                pay(ledger, loss)
        except BudgetExceeded:
            continue
        assert ledger.filter.admits(ledger.sums)
        assert ledger.spent().reached_with_reserved <= limit.most
    for loss in losses:
        while ledger.count_left(loss):
            pay(ledger, loss)
    for name, loss in open_now.items():
        ledger.share(name).charge(loss, purpose="p", by="x")
    assert ledger.filter.admits(ledger.sums)
    assert ledger.spent().reached_with_reserved == ledger.spent().reached
    ledger.verify()


def test_a_reserve_holds_what_others_would_spend() -> None:
    """The power of the test above: without a reserve, the run is refused."""
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1, 1e-6))
    free = ledger.count_left(1 * Gaussian(10))
    ledger.grant("run", limit=WIDE, by="owner", reserve=RUN)
    held = ledger.count_left(1 * Gaussian(10))
    assert 0 < held < free
    for _ in range(held):
        pay(ledger, Gaussian(10))
    with pytest.raises(BudgetExceeded, match="a part of the limit is reserved for shares"):
        pay(ledger, Gaussian(10))
    ledger.revoke("run", by="owner")
    assert ledger.count_left(1 * Gaussian(10)) == free - held
    while ledger.count_left(1 * Gaussian(10)):
        pay(ledger, Gaussian(10))
    with pytest.raises(BudgetExceeded):
        pay(ledger, RUN)


def test_a_smaller_charge_draws_on_the_reserve_and_leaves_the_rest(tmp_path: Path) -> None:
    ledger = made(tmp_path / "x")
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.6))
    share = ledger.share("ana")
    share.charge(Pure(0.2), purpose="p", by="x")
    assert (ledger.spent().left, ledger.shares()[0].left) == (Fraction(2, 5), Fraction(4, 5))
    share.charge(Pure(0.5), purpose="beyond the reserve, within both limits", by="x")
    assert ledger.shares()[0].reserved == 0
    assert ledger.spent().left == Fraction(3, 10)
    ledger.verify()


@pytest.mark.parametrize(
    ("limit", "reserve", "text"),
    [
        (Limit(1), Pure(0.7), "this reserve does not fit: would reach ε = 1.1"),
        (Limit(0.5), Pure(0.6), "this reserve does not fit: share 'run': would reach ε = 0.6"),
        (Limit(1), Gaussian(5), "has no pure bound"),
        (Limit(1), PrivacyLoss(), "costs nothing"),
    ],
)
def test_a_reserve_that_does_not_fit_is_refused(
    tmp_path: Path, limit: AnyLimit, reserve: Pure | Gaussian | PrivacyLoss, text: str
) -> None:
    ledger = made(tmp_path / "x")
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.4))
    entries = ledger.history()
    with pytest.raises(DiscreetError, match=text):
        ledger.grant("run", limit=limit, by="owner", reserve=reserve)
    assert ledger.history() == entries


def alone() -> Gaussian:
    """A charge that fits an empty ledger with (4, 1e-6) as a first charge alone only."""
    chosen = Ledger.in_memory(unit=PERSON, limit=Limit(4, 1e-6)).filter
    sizes = (Gaussian(Fraction(size, 100)) for size in range(150, 50, -1))
    return next(one for one in sizes if chosen.add(chosen.start, 1 * one).alone is not None)


def test_a_first_charge_alone_needs_the_whole_ledger() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(4, 1e-6))
    assert ledger.count_left(alone()) == 1
    with pytest.raises(BudgetExceeded, match="it takes the whole delta"):
        ledger.grant("run", limit=WIDE, by="owner", reserve=alone())
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.01))
    assert ledger.count_left(alone()) == 0
    with pytest.raises(BudgetExceeded):
        pay(ledger, alone())
    ledger.revoke("ana", by="owner")
    pay(ledger, alone())
    ledger.verify()


def test_a_charge_to_the_only_reserve_may_be_a_first_charge_alone() -> None:
    """It is larger than the reserve, of which nothing is left."""
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(4, 1e-6))
    ledger.grant("ana", limit=WIDE, by="owner", reserve=Pure(0.01))
    ledger.share("ana").charge(alone(), purpose="p", by="x")
    assert ledger.sums.alone is not None
    assert ledger.shares()[0].reserved == 0
    ledger.verify()


def test_a_reserve_after_a_first_charge_alone_is_pure() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(4, 1e-6))
    pay(ledger, alone())
    left = ledger.spent().left
    assert left > 0
    with pytest.raises(BudgetExceeded):
        ledger.grant("run", limit=WIDE, by="owner", reserve=Gaussian(100))
    ledger.grant("ana", limit=Limit(4), by="owner", reserve=Pure(left))
    with pytest.raises(BudgetExceeded):
        pay(ledger, Pure(0.001))
    ledger.share("ana").charge(Pure(left), purpose="p", by="x")
    ledger.verify()


def test_racing_threads_leave_the_reserve_alone(tmp_path: Path) -> None:
    """Others ask for all that is left, in two ways; each of ten reserved charges is paid."""
    ledger = made(tmp_path / "x", epsilon=2)
    ledger.grant("run", limit=Limit(1), by="owner", reserve=Pure(1))
    paid: list[str] = []

    def ask(name: str, charge: Callable[[], object]) -> None:
        for _ in range(10):
            try:
                charge()
                paid.append(name)
            except BudgetExceeded:
                continue

    other = Ledger.open(tmp_path / "x")
    acts = {
        "own": lambda: ledger.share("run").charge(Pure(0.1), purpose="p", by="x"),
        "same": lambda: pay(ledger, Pure(0.1)),
        "other": lambda: pay(other, Pure(0.1)),
    }
    threads = [threading.Thread(target=ask, args=each) for each in acts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (paid.count("own"), len(paid)) == (10, 20)
    assert charges(ledger) == 20


def amount(tenths: int) -> Counting:
    return Counting(0, (tenths * 10**17,))


def grant(tenths: int, held: int) -> Grant:
    loss = PrivacyLoss.of(Pure(tenths / 10), unit=PERSON)
    return Grant(
        "bo",
        Ledger.in_memory(unit=PERSON, limit=Limit(1)).filter,
        "owner",
        Reserve(loss, amount(held)),
    )


def charge(name: str, tenths: int, drawn: int) -> Charge:
    share = ShareCharge(name, Spent(0, (tenths * 10**17,)), amount(drawn))
    return replace(to_share(name, tenths), share=share)


FORGED: list[tuple[str, Fact]] = [
    ("reserves less than its loss", grant(2, 1)),
    ("reserves more than is left", grant(6, 6)),
    (
        "an amount of another filter",
        replace(grant(2, 2), reserve=Reserve(2 * Pure(0.1), Counting(0, ()))),
    ),
    ("draws too little", to_share("ana", 2)),
    ("draws too much", charge("ana", 2, 3)),
    ("draws without a reserve", charge("cy", 1, 1)),
    ("releases nothing", Revoke("ana", "owner")),
    ("releases too little", Revoke("ana", "owner", amount(2))),
]


@pytest.mark.parametrize("fact", [fact for _, fact in FORGED], ids=[name for name, _ in FORGED])
def test_forged_reserves_fail_the_verification(tmp_path: Path, fact: Fact) -> None:
    ledger = made(tmp_path / "x")
    ledger.grant("cy", limit=Limit(1), by="owner")
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.4))
    ledger.share("ana").charge(Pure(0.1), purpose="p", by="x")
    pay(ledger, Pure(0.1))
    ledger.verify()
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, fact, next_state(head, rows.opening(head), fact))
    with pytest.raises(LedgerDamaged):
        ledger.verify()


@pytest.mark.parametrize("place", range(4))
def test_no_part_of_a_reserve_falls_below_nothing(place: int) -> None:
    """A part below 0 would make room for others, in a sum that is full."""
    held, drawn = [3, 3, 3, 3], [3, 3, 3, 3]
    assert without(Counting(held[0], tuple(held[1:])), Counting(drawn[0], tuple(drawn[1:]))) is None
    drawn[place] += 1
    with pytest.raises(LedgerDamaged, match="more is drawn"):
        without(Counting(held[0], tuple(held[1:])), Counting(drawn[0], tuple(drawn[1:])))


def test_right_facts_verify(tmp_path: Path) -> None:
    """The power of the test above: the same facts with right amounts are allowed."""
    right = (grant(2, 2), charge("ana", 2, 1), Revoke("ana", "owner", amount(2)))
    ledger = made(tmp_path / "x")
    ledger.grant("ana", limit=Limit(1), by="owner", reserve=Pure(0.4))
    ledger.share("ana").charge(Pure(0.1), purpose="p", by="x")
    for fact in right:
        with ledger._store.writing() as rows:
            head = rows.head()
            rows.append(head, fact, next_state(head, rows.opening(head), fact))
    ledger.verify()
    assert ledger.spent().reached_with_reserved * 10 == 4


def test_charges_of_two_shares_and_of_none_alternate() -> None:
    """A charge is priced by what its own share and the ledger held at one moment, not at two."""
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(4))
    for share in ("ana", "bo"):
        ledger.grant(share, limit=Limit(1), by="owner", reserve=Pure(1))
    for _ in range(10):
        ledger.share("ana").charge(Pure(0.1), purpose="p", by="x")
        ledger.share("bo").charge(Pure(0.1), purpose="p", by="x")
        pay(ledger, Pure(0.1))
    assert charges(ledger) == 30
