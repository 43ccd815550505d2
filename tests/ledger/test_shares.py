"""Shares: a charge fits its share and the ledger, or neither counts it."""

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Bounded, DiscreetError, DiscreteLaplace, release
from discreet._budget import AnyLimit, CountsSteps, Limit, Payer, Request, RhoLimit
from discreet.accounting import Approximate, Filter, Gaussian, PrivacyLoss, Pure, Spent, Zcdp
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerDamaged, LedgerLocked
from discreet.ledger import Kind, Ledger, Share, _subtotals
from discreet.ledger._chain import next_state
from discreet.ledger._facts import Charge, Fact, Grant, Revoke, ShareCharge, ShareState, Subtotal
from tests.ledger.kit import PERSON, made


def granted(path: Path, **limits: float) -> Ledger:
    ledger = made(path, epsilon=1)
    for share, epsilon in limits.items():
        ledger.grant(share, limit=Limit(epsilon), by="owner")
    return ledger


def charge(payer: Share | Ledger, epsilon: float, request: Request | None = None) -> int:
    return payer.charge(Pure(epsilon), purpose="a test", by="x", request=request).number


ACTS = st.one_of(
    st.tuples(st.sampled_from(["ana", "bo", None]), st.sampled_from([1, 2, 3, 5])),
    st.tuples(st.sampled_from(["grant", "revoke"]), st.sampled_from(["ana", "bo"])),
    st.tuples(st.sampled_from(["open again", "use another"]), st.none()),
)


@settings(max_examples=3, deadline=None)
@given(acts=st.lists(ACTS, min_size=5, max_size=20))
def test_a_ledger_with_shares_does_what_ten_lines_say(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str | None, int | str | None]]
) -> None:
    """In tenths of epsilon: each share holds 6, the ledger 10. Subtotals come all the time, and two
    objects use the file by turns."""
    path = tmp_path_factory.mktemp("shares") / "x"
    ledger = granted(path, ana=0.6)
    other = Ledger.open(path)
    spent, total = {"ana": 0}, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_subtotals, "SUBTOTAL_EVERY", 3)
        for act, value in acts:
            before = len(ledger.history())
            try:
                if act == "open again":
                    ledger = Ledger.open(path)
                elif act == "use another":
                    ledger, other = other, ledger
                elif act == "grant":
                    is_right = value not in spent
                    ledger.grant(str(value), limit=Limit(0.6), by="owner")
                    spent[str(value)] = 0
                elif act == "revoke":
                    is_right = value in spent
                    ledger.revoke(str(value), by="owner")
                    del spent[str(value)]
                else:
                    assert isinstance(value, int)
                    is_right = total + value <= 10
                    if act is not None:
                        is_right = is_right and act in spent and spent[act] + value <= 6
                    ledger.charge(Pure(value / 10), purpose="p", by="x", share=act)
                    total += value
                    spent.update({act: spent[act] + value} if act else {})
            except DiscreetError:
                assert not is_right
                assert len(ledger.history()) == before
            else:
                assert act in ("open again", "use another") or is_right
        reached = {each.share: each.reached * 10 for each in ledger.shares()}
        assert reached == spent
        assert all(
            each.left * 10 == min(10 - total, 6 - spent[each.share]) for each in ledger.shares()
        )
        ledger.verify()
        assert Ledger.open(path).shares() == ledger.shares()


def test_a_share_is_a_payer(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "x", ana=0.5)
    share: Payer[PrivacyLoss] = ledger.share("ana")
    assert isinstance(ledger.share("ana"), CountsSteps)
    bounded = Bounded(lambda: 7, sensitivity=1, unit=PERSON, name="count")
    answer = release(bounded, DiscreteLaplace.for_epsilon(Fraction(1, 2), bounded), share, by="ana")
    entry = ledger.history()[-1]
    assert (entry.number, entry.share, entry.by) == (answer.receipt.number, "ana", "ana")
    with pytest.raises(BudgetExceeded, match="share 'ana': would reach"):
        release(bounded, DiscreteLaplace.for_epsilon(Fraction(1, 10), bounded), share, by="ana")
    assert ledger.spent().reached == Fraction(1, 2)


def test_the_ledgers_limit_holds_over_all_shares(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "x", ana=0.8, bo=0.8)
    charge(ledger.share("ana"), 0.8)
    with pytest.raises(BudgetExceeded, match=r"^would reach ε = 1.60, the limit is 1"):
        charge(ledger.share("bo"), 0.8)
    charge(ledger.share("bo"), 0.2)
    assert [(each.share, each.reached, each.left) for each in ledger.shares()] == [
        ("ana", Fraction(4, 5), Fraction(0)),
        ("bo", Fraction(1, 5), Fraction(0)),
    ]


def test_a_share_that_another_process_granted_anew_has_its_new_limit(tmp_path: Path) -> None:
    """Though the ledger charged it before, with another limit."""
    ledger, other = granted(tmp_path / "x", ana=0.1), Ledger.open(tmp_path / "x")
    ana = ledger.share("ana")
    charge(ana, 0.1)
    other.revoke("ana", by="owner")
    with pytest.raises(InvalidArgument):
        charge(ana, 0.01)
    other.grant("ana", limit=Limit(0.3), by="owner")
    charge(ana, 0.3)
    other.revoke("ana", by="owner")
    other.grant("ana", limit=Limit(0.2), by="owner")
    with pytest.raises(BudgetExceeded):
        charge(ana, 0.3)
    ledger.verify()


@pytest.mark.parametrize("limit", [Limit(4), Limit(4, 1e-6), Limit(8, 1e-9), RhoLimit(0.5)])
def test_a_share_granted_anew_is_charged_by_its_new_filter(tmp_path: Path, limit: AnyLimit) -> None:
    """The cost by the filter that it had is known, and has sums of other orders."""
    ledger, loss = made(tmp_path / "x", epsilon=8, delta=1e-3), Zcdp(0.001)
    ledger.grant("ana", limit=Limit(2, 1e-4), by="owner")
    ledger.share("ana").charge(loss, purpose="p", by="x")
    other = Ledger.open(tmp_path / "x")
    other.revoke("ana", by="owner")
    other.grant("ana", limit=limit, by="owner")
    try:
        ledger.share("ana").charge(loss, purpose="p", by="x")
    except BudgetExceeded:
        assert limit == Limit(4)  # which has no delta
    ledger.verify()


def test_racing_threads_stay_within_their_share(tmp_path: Path) -> None:
    """Three threads for each of two shares, in common transactions: exactly 4 and 4 of 60."""
    ledger = granted(tmp_path / "x", ana=0.4, bo=0.4)
    paid: list[str] = []

    def ask(name: str) -> None:
        share = Ledger.open(tmp_path / "x").share(name) if len(paid) % 2 else ledger.share(name)
        for _ in range(10):
            try:
                charge(share, 0.1)
            except BudgetExceeded:
                continue
            paid.append(name)

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("ana", "bo") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(paid) == ["ana"] * 4 + ["bo"] * 4
    ledger.verify()


def test_a_revoked_share_pays_nothing_but_repeats(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "x", ana=0.5)
    share = ledger.share("ana")
    receipt = share.charge(Pure(0.1), purpose="p", by="ana", request=Request("r", "body"))
    share.keep(receipt, "42")
    ledger.revoke("ana", by="owner")
    for ask in (lambda: charge(share, 0.1), lambda: ledger.share("ana")):
        with pytest.raises(InvalidArgument, match="no share of this name is open"):
            ask()
    assert ledger.shares() == ()
    again = share.charge(Pure(0.1), purpose="p", by="ana", request=Request("r", "body"))
    assert again.stored == "42"
    ledger.grant("ana", limit=Limit(0.2), by="owner")
    assert ledger.shares()[0].reached == 0
    again = share.charge(Pure(0.1), purpose="p", by="ana", request=Request("r", "body"))
    assert again.stored == "42"
    assert ledger.shares()[0].reached == 0
    assert [e.kind for e in ledger.history()][-2:] == [Kind.REVOKE, Kind.GRANT]


@pytest.mark.parametrize("share", ["", " ", 3, None, "x" * 100_000, "\ud800"])
def test_names_of_shares_are_checked(share: object) -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(1))
    with pytest.raises(InvalidArgument, match="share"):
        ledger.grant(share, limit=Limit(1), by="owner")  # type: ignore[arg-type]  # that is tested


def test_a_share_has_any_kind_of_limit() -> None:
    ledger = Ledger.in_memory(unit=PERSON, limit=Limit(2, 1e-6))
    ledger.grant("rho", limit=RhoLimit(0.01), by="owner")
    ledger.grant("delta", limit=Limit(0.5, 1e-7), by="owner")
    ledger.charge(Zcdp(0.01), purpose="p", by="x", share="rho")
    with pytest.raises(BudgetExceeded, match="share 'rho'"):
        ledger.charge(Zcdp(0.001), purpose="p", by="x", share="rho")
    with pytest.raises(BudgetExceeded, match="share 'rho'"):
        ledger.charge(Approximate(0.1, 1e-9), purpose="p", by="x", share="rho")
    ledger.charge(Gaussian(40), purpose="p", by="x", share="delta")
    ledger.verify()


def test_a_locked_ledger_takes_no_charge_to_a_share(tmp_path: Path) -> None:
    share = granted(tmp_path / "x", ana=0.5).share("ana")
    share.lock(share.charge(Pure(0.1), purpose="p", by="ana"))
    with pytest.raises(LedgerLocked):
        charge(share, 0.1)


def forged(ledger: Ledger, fact: Fact) -> None:
    """Append a fact with right digests and sums, as if it had been allowed."""
    with ledger._store.writing() as rows:
        head = rows.head()
        rows.append(head, fact, next_state(head, rows.opening(head), fact))


def to_share(name: str, sums: int) -> Charge:
    loss = PrivacyLoss.of(Pure(0.1), unit=PERSON)
    spent = Spent(0, (sums * 10**17,))
    return Charge(loss, "p", "x", None, False, share=ShareCharge(name, spent))


@pytest.mark.parametrize(
    "fact",
    [
        to_share("ana", 3),
        to_share("ana", 1),
        to_share("bo", 1),
        Grant("ana", Filter.for_limit(Limit(1)), "owner"),
        Revoke("bo", "owner"),
        Subtotal(2 * Pure(0.1)),
        Subtotal(2 * Pure(0.1), (ShareState("ana", Filter.for_limit(Limit(0.2)), Spent(0, (0,))),)),
        replace(to_share("ana", 2), share=ShareCharge("ana", Spent(0, ()))),
    ],
    ids=[
        "beyond its share",
        "too small a sum",
        "no such share",
        "granted twice",
        "none to revoke",
        "forgets the shares",
        "resets a share",
        "sums of another filter",
    ],
)
def test_forged_shares_fail_the_verification(tmp_path: Path, fact: Fact) -> None:
    ledger = granted(tmp_path / "x", ana=0.2)
    charge(ledger, 0.1)
    charge(ledger.share("ana"), 0.1)
    ledger.verify()
    forged(ledger, fact)
    with pytest.raises(LedgerDamaged):
        ledger.verify()


def test_a_right_charge_to_a_share_verifies(tmp_path: Path) -> None:
    """The power of the test above: the same with right sums is allowed, even larger ones."""
    ledger = granted(tmp_path / "x", ana=0.5)
    charge(ledger.share("ana"), 0.1)
    forged(ledger, to_share("ana", 2))
    forged(ledger, to_share("ana", 4))
    ledger.verify()
    assert ledger.shares()[0].reached == Fraction(2, 5)
