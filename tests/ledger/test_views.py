"""Views of a ledger: balances and refusals in words."""

from fractions import Fraction
from pathlib import Path

import pytest

from discreet._budget import AnyLimit, Limit, MuLimit, RenyiLimit, RhoLimit
from discreet._unit import Unit
from discreet.accounting import Approximate, Gaussian, Pure, Zcdp
from discreet.errors import BudgetExceeded, NoBound
from discreet.ledger import Ledger, _entries
from discreet.ledger._entries import Row
from discreet.ledger._facts import Link
from discreet.ledger._views import _above, down, up
from tests.ledger.kit import copied, made, pay


def ledger(epsilon: float, delta: float = 0) -> Ledger:
    return Ledger.in_memory(unit=Unit("person"), limit=Limit(epsilon, delta))


def refused(payer: Ledger, loss: object) -> str:
    with pytest.raises(BudgetExceeded) as caught:
        pay(payer, loss)  # type: ignore[arg-type]  # any term
    return str(caught.value)


def test_a_refusal_says_what_it_would_reach_and_what_is_left() -> None:
    payer = ledger(2)
    pay(payer, Pure(1.5))
    assert refused(payer, Pure(0.57)) == (
        "would reach ε = 2.07, the limit is 2 (δ = 0); at most ε = 0.5 is left for one more "
        "charge without a delta; lower the budget of this query or ask the owner"
    )


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_number_within_the_limit_has_a_text_too(number: int) -> None:
    assert _above(Fraction(number), Fraction(2)) == str(number)


def test_a_refusal_by_a_hair_shows_the_hair() -> None:
    said = refused(ledger(2), Pure(2.0000000000000004))
    assert "would reach ε = 2.0000000000000004, the limit is 2 " in said


def test_the_rest_that_a_refusal_states_is_admitted() -> None:
    payer = ledger(2, 1e-6)
    for _ in range(3):
        pay(payer, Gaussian(10))
    left = payer.spent().left
    assert f"at most ε = {down(left)} is left" in refused(payer, Pure(2))
    refused(payer, Pure(left + Fraction(1, 10**9)))
    pay(payer, Pure(left))


@pytest.mark.parametrize("loss", [Gaussian(4), Zcdp(0.1), Approximate(0.1, 1e-9)])
def test_a_limit_without_delta_says_so(loss: object) -> None:
    said = refused(ledger(1), loss)
    assert "has no pure bound" in said
    assert "(δ = 0)" in said
    assert "name a delta in the limit when the ledger is made" in said


def test_deltas_beyond_their_share_are_named() -> None:
    payer = ledger(1, 1e-6)
    share = payer.filter.failures
    pay(payer, Approximate(0.1, share))
    said = refused(payer, Approximate(0.1, share))
    assert f"would add up to {up(2 * share)}, and {up(share)} of the limit's delta" in said


def test_a_refusal_beyond_all_numbers() -> None:
    assert "far beyond the limit 1 (δ = 0)" in refused(ledger(1), Pure(1e300))
    assert "far beyond the limit 1 (δ = 1e-06)" in refused(ledger(1, 1e-6), Zcdp(1e300))


def test_a_balance_in_words() -> None:
    payer = ledger(2, 1e-6)
    pay(payer, 2 * Gaussian(10))
    balance = payer.spent()
    fixed = balance.epsilon_if_fixed_beforehand
    assert fixed == (2 * Gaussian(10)).epsilon(1e-6) < balance.epsilon
    said = str(balance)
    assert said.startswith(f"spent ε = {up(balance.epsilon)} of 2 (δ = 1e-06), in 1 charge; ")
    assert "if all charges had been fixed beforehand" in said


def test_a_ledger_shows_itself_in_short() -> None:
    payer = ledger(1)
    pay(payer, Pure(0.25))
    pay(payer, Pure(0.25))
    assert repr(payer) == (
        "<Ledger in memory: Unit('person'); spent ε = 0.5 of 1 (δ = 0), in 2 charges>"
    )


def test_nothing_spent() -> None:
    balance = ledger(1).spent()
    assert (balance.epsilon, balance.left) == (Fraction(0), Fraction(1))
    assert balance.charges == 0
    assert balance.epsilon_if_fixed_beforehand == 0


OTHERS: list[tuple[AnyLimit, str, str]] = [
    (
        RhoLimit(0.5),
        "spent ρ = 0.02 of 0.5, in 1 charge; ",
        "would reach ρ = 4.52, the limit is 0.5;",
    ),
    (MuLimit(2), "spent μ = 0.200001 of 2, in 1 charge; ", "far beyond the limit 2;"),
    (
        RenyiLimit({2: 1, 8: 2}),
        "spent share = 0.0800001 of 1 (1 at order 2, 2 at order 8), in 1 charge; ",
        "would reach share = 18.0",
    ),
]


@pytest.mark.parametrize(("limit", "spent", "refused_for"), OTHERS)
def test_limits_of_other_kinds(limit: AnyLimit, spent: str, refused_for: str) -> None:
    payer = Ledger.in_memory(unit=Unit("person"), limit=limit)
    pay(payer, 4 * Gaussian(10))
    balance = payer.spent()
    assert str(balance).startswith(spent)
    assert f"one more charge without a delta may cost at most ε = {down(balance.left)}" in str(
        balance
    )
    assert str(balance).count("\n") == 0
    assert spent.removesuffix("; ") in repr(payer)
    with pytest.raises(NoBound, match="has no epsilon"):
        _ = balance.epsilon
    said = refused(payer, Zcdp(4.5))
    assert refused_for in said
    assert f"at most ε = {down(balance.left)} is left" in said
    refused(payer, Pure(balance.left + Fraction(1, 10**9)))
    pay(payer, Pure(balance.left))


@pytest.mark.parametrize("limit", [RhoLimit(1), MuLimit(2), RenyiLimit({2: 1})], ids=repr)
def test_limits_of_other_kinds_have_no_delta(limit: AnyLimit) -> None:
    payer = Ledger.in_memory(unit=Unit("person"), limit=limit)
    assert "has no delta for that" in refused(payer, Approximate(0.1, 1e-9))
    assert payer.spent().charges == 0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction("2.0678"), "2.07"),
        (Fraction("2.5"), "2.50"),
        (2 + Fraction(1, 3), "2.34"),
        (2 + Fraction(1, 10**9), "2.000000001"),
        (2 + Fraction(1, 3 * 10**9), "2.00000000034"),
    ],
)
def test_a_number_above_the_limit_is_shown_above_it(number: Fraction, text: str) -> None:
    assert _above(number, Fraction(2)) == text


def test_numbers_are_rounded_to_the_safe_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(down(third)) < third < Fraction(up(third))
    assert (up(Fraction(0)), down(Fraction(0)), up(Fraction(1, 2))) == ("0", "0", "0.5")


def test_a_balance_reads_what_is_new_only(monkeypatch: pytest.MonkeyPatch) -> None:
    payer, read = ledger(2, 1e-6), list[int]()
    plain = _entries.read

    def counted(row: Row, previous: str) -> Link:
        read.append(row.number)
        return plain(row, previous)

    for loss in (Pure(0.1), Gaussian(50), Pure(0.1)):
        pay(payer, loss)
    assert payer.spent().total == (2 * Pure(0.1) + Gaussian(50)).for_unit(Unit("person"))
    pay(payer, Pure(0.1))
    monkeypatch.setattr(_entries, "read", counted)
    assert payer.spent().total == (3 * Pure(0.1) + Gaussian(50)).for_unit(Unit("person"))
    assert set(read) <= {3, 4}
    assert payer.spent() == payer.spent()


def test_a_balance_of_another_chain_is_read_from_its_start(tmp_path: Path) -> None:
    """After a rolled-back copy, whose entries have the same numbers."""
    payer = made(tmp_path / "x.ledger")
    pay(payer, Pure(0.1))
    before = copied(tmp_path / "x.ledger", tmp_path / "copy").read_bytes()
    pay(payer, Pure(0.5))
    assert payer.spent().total.epsilon() == 0.6
    (tmp_path / "x.ledger").write_bytes(before)
    other = Ledger.open(tmp_path / "x.ledger")
    for _ in range(2):
        pay(other, Pure(0.25))
    assert payer.spent().total == (2 * Pure(0.25) + Pure(0.1)).for_unit(Unit("person"))
