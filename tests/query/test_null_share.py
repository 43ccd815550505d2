"""The share of a column that its type can't hold: right, private, and paid as one count."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet._exact import fraction
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.audit import Difference, Run, ZeroNoiseBits, replay
from discreet.mechanisms import Door
from discreet.query import Caps, Column, Declaration, Table
from discreet.query._estimates._intervals import ShareLaw
from discreet.query._questions import _null_share
from discreet.query._questions._null_share import NullCheck, NullShare, release_share
from discreet.query._rows._source import ArrowSource

COLUMN = Column.number(0, 10, null=0)
SCHEMA = pa.schema([("u", pa.string()), ("x", pa.string())])
Rows = list[tuple[str | None, str | None]]


def _facts(change: Change, caps: Caps) -> Declaration:
    return Declaration("t", Unit("u", change), caps, {"x": COLUMN})


def _arrow(rows: Rows) -> pa.Table:
    return pa.table([[row[n] for row in rows] for n in (0, 1)], schema=SCHEMA)


def _asking(facts: Declaration) -> Any:
    def act(door: Door, table: pa.Table) -> NullShare:
        return release_share(door, NullCheck(ArrowSource(table), facts, "x"), epsilon=1)

    return act


def _exact(rows: Rows, facts: Declaration) -> NullShare:
    run = Run()
    share: NullShare = _asking(facts)(Door(run, ZeroNoiseBits(), run), _arrow(rows))
    return share


VALUES = st.sampled_from(["1", "1,5", "1,234", "", "x", "nan", "1e400", None])
OWN = st.lists(VALUES, max_size=8)


@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])  # shrinking takes minutes
@given(
    others=st.lists(st.tuples(st.sampled_from("ab"), VALUES), max_size=5),
    one=OWN,
    other=OWN,
    change=st.sampled_from(Change),
    rows=st.integers(1, 4),
    in_all=st.sampled_from([1, 3, 6]),
)
def test_nobody_shows(
    others: Rows, one: list[str], other: list[str], change: Change, rows: int, in_all: int
) -> None:
    facts = _facts(change, Caps(in_all, groups=2, rows_per_group=rows))
    mine: Rows = [("c", value) for value in one]
    theirs: Rows = [("c", value) for value in other] if change is Change.REPLACE else []
    run = replay(_asking(facts), _arrow(others + mine), _arrow(theirs + others))
    assert run.facts("released")
    (charged,) = run.facts("charged")
    assert 0.9 < PrivacyLoss.from_json(charged).epsilon(0) <= 1


@pytest.mark.parametrize("change", Change)
def test_a_unit_moves_as_far_as_is_stated(change: Change) -> None:
    """All of its rows lost, or gone, or all held: no bound is too wide either."""
    facts = _facts(change, Caps(3, groups=1))
    mine: Rows = [("c", "x")] * 9
    theirs: Rows = [("c", "1")] * 9 if change is Change.REPLACE else []
    run = replay(_asking(facts), _arrow(mine), _arrow(theirs))
    ((part,), _) = run.facts("bounded")[0]
    one, other = ([int(n) for n in _exact(rows, facts).release.value] for rows in (mine, theirs))
    assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == part.sensitivity.l1
    assert part.sensitivity.l1 == (3 if change is Change.ADD_REMOVE else 6)


def test_the_sensitivity_of_a_single_count_is_too_small_where_units_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_null_share, "_of_both", lambda single, change: single)
    facts = _facts(Change.REPLACE, Caps(3, groups=1))
    with pytest.raises(Difference, match="moved by"):
        replay(_asking(facts), _arrow([("c", "x")] * 3), _arrow([("c", "1")] * 3))


def test_values_are_lost_or_held_or_no_values() -> None:
    rows: Rows = [
        (f"{n}", text) for n, text in enumerate(["1", "1,5", "", None, "x", "1,234", "nan"])
    ]
    share = _exact([*rows, (None, "x")], _facts(Change.ADD_REMOVE, Caps(1)))
    assert [int(n) for n in share.release.value] == [4, 2]
    assert share.share == pytest.approx(4 / 6)
    assert "about 66.7 % of x became NULL" in str(share)


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_counts_of_a_unit_add_up_to_its_cap(cap: int) -> None:
    """Also where its rows lost and held are rounded."""
    rows: Rows = [(f"{n}", value) for n in range(2_000) for value in ("x", "1", "x", "x", "1")]
    lost, held = _exact(rows, _facts(Change.ADD_REMOVE, Caps(cap))).release.value
    assert lost + held == 2_000 * cap
    assert lost == pytest.approx(0.6 * 2_000 * cap, abs=6 * math.sqrt(2_000) / 2)
    for n in range(10):
        lost, held = _exact(
            rows[5 * n : 5 * n + 5], _facts(Change.ADD_REMOVE, Caps(cap))
        ).release.value
        assert min(lost, held) >= 0
        assert lost + held == cap


def test_missing_floats_are_no_values() -> None:
    table = pa.table({"u": [*"abc"], "x": pa.array([1.0, float("nan"), None], from_pandas=False)})
    facts = Declaration("t", Unit("u"), Caps(1), {"x": Column.integer(0, 9)})
    run = Run()
    asked = NullCheck(ArrowSource(table), facts, "x")
    share = release_share(Door(run, ZeroNoiseBits(), run), asked, epsilon=1)
    assert [int(n) for n in share.release.value] == [0, 1]


def test_refusals_are_free_and_a_paid_answer_is_stored() -> None:
    ledger = dp.Ledger.in_memory(unit=Unit("u"), limit=dp.Limit(epsilon=1))
    rows: Rows = [(f"{n}", "1" if n % 4 else "x") for n in range(4000)]
    table = Table(
        _arrow(rows), name="t", unit=Unit("u"), rows=1, columns={"x": COLUMN}, ledger=ledger
    )
    for wrong in ({"column": "y"}, {"epsilon": 0}, {"confidence": 1}):
        with pytest.raises(dp.DiscreetError):
            table.share_of_null(**({"column": "x", "epsilon": 0.5} | wrong))  # type: ignore[arg-type]
    assert ledger.spent().charges == 0
    sure = {"epsilon": 0.5, "confidence": 1 - 1e-9, "request": "one"}
    first, again = (table.share_of_null("x", **sure) for _ in range(2))  # type: ignore[arg-type]
    assert str(first) == str(again)
    assert ledger.spent().charges == 1
    assert first.low <= 0.25 <= first.high <= first.low + 0.1
    other = Table(
        _arrow(rows), name="t", unit=Unit("u"), rows=1, columns={"x": Column.date()}, ledger=ledger
    )
    with pytest.raises(dp.DiscreetError):
        other.share_of_null("x", epsilon=0.5, request="one")


def test_nothing_counted_has_no_share() -> None:
    share = _exact([], _facts(Change.ADD_REMOVE, Caps(1)))
    assert (share.share, share.low, share.high) == (None, 0.0, 1.0)
    assert str(share).startswith("too few values of x")


@pytest.mark.parametrize(("part", "rest"), [(0, 30), (5, 5), (3, 60), (40, 1), (1, 1)])
def test_the_interval_holds_the_share_as_often_as_it_says(part: int, rest: int) -> None:
    """By the exact law of the noise: each pair of draws with its probability."""
    bounded = dp.Bounded(lambda: 1, sensitivity=1, unit=Unit("u"), name="n")
    noise = dp.DiscreteLaplace.for_epsilon(1, bounded)
    law, true = ShareLaw(noise, fraction(0.8)), part / (part + rest)
    ratio = math.exp(-1 / float(noise.scale))
    chance = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in range(-9, 10)}
    missed = sum(
        chance[a] * chance[b]
        for a in chance
        for b in chance
        if not (ends := law.interval(part + a, rest + b))[0] <= true <= ends[1]
    )
    beyond = 1 - sum(chance.values()) ** 2
    assert missed + beyond <= 0.2
