"""A diagnosis is right without noise, private with it, and refused before the charge."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dp
from discreet._unit import Change
from discreet.audit import Run, ZeroNoiseBits, replay
from discreet.errors import DeclarationError, InvalidArgument, QueryRefused
from discreet.mechanisms import DiscreteLaplace, Door, Sensitivity
from discreet.query import Caps, Column, Declaration, Diagnosis, Question, Table
from discreet.query._bounding._bounding import CUT_BINS
from discreet.query._plan._plan import plan
from discreet.query._questions._diagnosis import DiagnosisOf, _left_out, release_diagnosis
from discreet.query._rows._source import ArrowSource
from tests.query.kit import QUERIES, arrow, declarations
from tests.query.test_replay import QUICKLY, neighbours

UNIT = dp.Unit("person")
COLUMNS = {
    "town": Column.text(keys=["a", "b"]),
    "age": Column.integer(20, 80),
    "pay": Column.number(-1, 1),
}


def frame_of(size: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": rng.integers(0, size // 4, size),
            "town": rng.choice(["a", "b", "c"], size),
            "age": rng.integers(0, 100, size),
            "pay": np.where(rng.random(size) < 0.1, np.nan, rng.normal(0, 1, size)),
        }
    )


def without_noise(question: Question) -> Diagnosis:
    run = Run()
    asked = DiagnosisOf.of(question.table.source, question.plan)
    return release_diagnosis(Door(run, ZeroNoiseBits(), run), asked, epsilon=1)


@pytest.mark.parametrize(
    "caps", [Caps(1), Caps(3), Caps(50), Caps(6, groups=1), Caps(6, rows_per_group=2)], ids=str
)
@pytest.mark.parametrize("keys", [(), ("town",)])
def test_without_noise_it_is_what_pandas_counts(caps: Caps, keys: tuple[str, ...]) -> None:
    frame = frame_of()
    table = Table.declared(frame, Declaration("t", UNIT, caps, COLUMNS))
    question = table.group_by(*keys).agg(rows=dp.count(), age=dp.mean("age"), pay=dp.mean("pay"))
    found = without_noise(question)
    asked = frame[frame.town.isin(["a", "b"])] if keys else frame
    cells = asked.groupby(["person", *keys]).size()
    groups = cells.clip(upper=caps.rows_per_group).groupby("person")
    taken = groups.apply(lambda n: n.nlargest(caps.groups).sum()).clip(upper=caps.rows)
    has_lost = cells.groupby("person").sum() > taken
    shares = {cut.name.split(" ", 1)[0]: cut for cut in found.cuts[:1]}
    assert shares["units"].share == pytest.approx(has_lost.mean(), abs=0.02)  # groups by a hash
    if caps.rows >= 50:  # nothing is scaled: exact
        named = {cut.name: cut.share for cut in found.cuts}
        assert named["age lie below 20"] == (frame.age < 20).mean()
        assert named["age lie above 80"] == (frame.age > 80).mean()
        assert named["pay lie below -1"] == (frame.pay.dropna() < -1).mean()
        assert named["pay lie above 1"] == (frame.pay.dropna() > 1).mean()
        assert found.rows_left_out == 0


def test_rows_left_out_are_estimated() -> None:
    frame = pd.DataFrame({"person": np.repeat(np.arange(600), 12), "age": 30})
    table = Table.declared(frame, Declaration("t", UNIT, Caps(2), {"age": Column.integer(20, 80)}))
    found = without_noise(table.agg(rows=dp.count()))
    assert found.rows_left_out == pytest.approx(10 / 12, abs=0.05)
    assert found.cuts[0].share == 1
    assert "of units have more rows or groups than the caps" in repr(found)


def test_noise_alone_leaves_no_rows_out() -> None:
    """One bin of many rows that holds nothing but noise would say that nearly all are left out. It
    happens with probability 1e-3 at most. False alarm: 1e-9."""
    random, draws = np.random.default_rng(19), 10_000
    for scale in (2, 40):
        noise = random.geometric(1 - np.exp(-1 / scale), (2, draws, CUT_BINS - 1))
        found = [_left_out(DiscreteLaplace(scale), bins, 4_000) for bins in noise[0] - noise[1]]
        assert sum(share > 0 for share in found) <= binom.isf(1e-9, draws, 1e-3)


@settings(max_examples=8, phases=QUICKLY)
@given(st.data())
def test_no_unit_shows(data: st.DataObject) -> None:
    declaration = data.draw(declarations())
    query = data.draw(QUERIES)

    def act(door: Door, table: Any) -> Any:  # Any: Arrow's, and a diagnosis
        question = Question.of(Table.declared(table, declaration), query)
        asked = DiagnosisOf.of(question.table.source, question.plan)
        return release_diagnosis(door, asked, epsilon=1)

    try:
        DiagnosisOf.of(ArrowSource(arrow([])), plan(query, declaration))
    except QueryRefused:
        assume(False)
    one, other = data.draw(neighbours(declaration))
    run = replay(act, arrow(one), arrow(other), seed=len(one))
    assert run.facts("released"), run.events


def test_replay_finds_a_unit_in_two_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.audit import Difference
    from discreet.query._questions import _diagnosis

    declared = Declaration(
        "t", dp.Unit("person", Change.REPLACE), Caps(1), {"age": Column.integer(0, 9)}
    )

    def act(door: Door, table: Any) -> Any:  # Any: as above
        question = Table.declared(table, declared).agg(rows=dp.count())
        asked = DiagnosisOf.of(question.table.source, question.plan)
        return release_diagnosis(door, asked, epsilon=1)

    many = pd.DataFrame({"person": [1] * 9 + [2], "age": 3})
    few = pd.DataFrame({"person": [1] * 3 + [2], "age": 3})
    assert replay(act, many, few).facts("released")
    monkeypatch.setattr(_diagnosis, "Sensitivity", lambda **_: Sensitivity(l1=1, linf=1))
    with pytest.raises(Difference):
        replay(act, many, few)


def test_refusals_precede_the_charge() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    table = Table(frame_of(40), unit=UNIT, rows=2, columns=COLUMNS, ledger=ledger)
    calls: list[Callable[[], object]] = [
        lambda: table.diagnose(epsilon=0),
        lambda: table.diagnose(epsilon=float("nan")),
        lambda: table.diagnose("nobody", epsilon=1),
        lambda: table.diagnose(by="pay", epsilon=1),
        lambda: table.agg(n=dp.count()).diagnose(epsilon=1, confidence=1),
        lambda: Table(
            frame_of(40).drop(columns="pay"), unit=UNIT, rows=2, columns=COLUMNS, ledger=ledger
        ).diagnose(epsilon=1),
    ]
    for call in calls:
        with pytest.raises((InvalidArgument, QueryRefused, DeclarationError)):
            call()
    by_row = Table(frame_of(40), unit=dp.Unit.ROW, columns=COLUMNS)
    with pytest.raises(QueryRefused, match="nothing is cut"):
        by_row.agg(n=dp.count()).diagnose(epsilon=1)
    towns = dp.PublicTable(pd.DataFrame({"town": ["a"], "size": [9]}), name="towns")
    with pytest.raises(QueryRefused, match="were clamped in the tables: diagnose table"):
        by_row.join(towns, on="town").agg(age=dp.mean("age")).diagnose(epsilon=1)
    assert len(ledger.history()) == 1


def test_a_request_draws_once() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    table = Table(frame_of(), unit=UNIT, rows=2, columns=COLUMNS, ledger=ledger)
    question = table.agg(age=dp.mean("age"))
    one, other = (question.diagnose(epsilon=1, request="once") for _ in range(2))
    assert one.cuts == other.cuts
    assert one.receipt.number == other.receipt.number


def test_rows_left_out_speak_of_the_groups_and_keys_of_the_question() -> None:
    """Half of the rows are lost to the cap in each group, and rows without a key don't count."""
    frame = pd.DataFrame(
        {"person": np.repeat(np.arange(300), 20), "k": np.tile(np.repeat(np.arange(10), 2), 300)}
    )
    other = pd.DataFrame({"person": np.arange(1000, 1600), "k": 99})
    columns = {"k": Column.integer(0, 99, keys=range(10))}
    caps = Caps(10, rows_per_group=1)
    table = Table.declared(pd.concat([frame, other]), Declaration("t", UNIT, caps, columns))
    found = without_noise(table.group_by("k").agg(rows=dp.count()))
    assert found.rows_left_out == pytest.approx(0.5, abs=0.06)  # by the means of bins


@pytest.mark.parametrize(
    ("column", "inside", "outside"),
    [
        (Column.integer(0, 31), 31.4, 31.5),
        (Column.integer(1, 31), 0.6, 0.5),
        (Column.integer(0, 2**53 + 3), 2**53 + 3, 2**53 + 4),
        (Column.integer(-5, 5), -5, -6),
        (Column.number(0, 1), 1.0, 1.0000001),
    ],
)
def test_values_that_are_clamped_are_counted(column: Column, inside: Any, outside: Any) -> None:
    """Also where they round beyond a bound, and where floats can't tell them apart."""
    frame = pd.DataFrame({"person": range(20), "x": [inside, outside] * 10})
    table = Table.declared(frame, Declaration("t", UNIT, Caps(1), {"x": column}))
    shares = [cut.share for cut in without_noise(table.agg(x=dp.mean("x"))).cuts[1:]]
    assert sorted(shares, key=float) == [0, 0.5]  # type: ignore[arg-type]  # numbers


def test_a_key_with_bounds_can_be_grouped_by() -> None:
    columns = {"k": Column.integer(0, 2, keys=[0, 1, 2]), "x": Column.integer(0, 9)}
    frame = pd.DataFrame({"person": range(30), "k": [0, 1, 2] * 10, "x": range(30)})
    table = Table.declared(frame, Declaration("t", UNIT, Caps(1), columns))
    found = without_noise(table.group_by("k").agg(x=dp.mean("x")))
    assert [cut.name for cut in found.cuts[1:]] == ["x lie below 0", "x lie above 9"]
