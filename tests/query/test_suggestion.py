"""Suggested caps, bounds and keys: what they are, what they cost, and that no unit shows."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dp
from discreet._budget import Request
from discreet._unit import Change, Unit
from discreet.accounting import DiscreteLaplace, PrivacyLoss, Zcdp
from discreet.audit import Run, SeededBits
from discreet.audit import _replay as recording
from discreet.errors import BudgetExceeded, InvalidArgument, NoBound
from discreet.ledger import Kind
from discreet.mechanisms import DiscreteLaplace as DiscreteLaplaceNoise
from discreet.mechanisms import Door
from discreet.query import Column, ColumnType, Table, suggest
from discreet.query._bounding._bounding import CUT_BINS
from discreet.query._questions._admission import admits_all
from discreet.query._rows._source import source_of
from discreet.query._statistics._suggestion import Suggestion, release_suggestion
from discreet.query._statistics._suggestion_search import SuggestionOf, cap_of

UNIT = Unit("person")
TYPES = {
    "age": ColumnType.INTEGER,
    "wage": ColumnType.NUMBER,
    "city": ColumnType.TEXT,
    "day": ColumnType.DATE,
    "union": ColumnType.BOOLEAN,
}
PEOPLE = 400


def _rows(people: int, each: int = 5) -> list[dict[str, Any]]:
    return [
        {
            "person": who,
            "age": 20 + who % 40,
            "wage": -0.3 if n == 0 else 11.0 + n,
            "city": ["Rome", 'O"s,lo'][who % 2] if who else "my own",
            "day": None,
            "union": n > 1,
        }
        for who in range(people)
        for n in range(each)
    ]


def _frame(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"person": pa.int64(), "age": pa.int64(), "wage": pa.float64(), "city": pa.string()}
    return pa.Table.from_pylist(
        rows, schema=pa.schema({**kinds, "day": pa.date32(), "union": pa.bool_()})
    )


def _asked(rows: list[dict[str, Any]], unit: Unit = UNIT, cap: int | None = None) -> SuggestionOf:
    table = _frame(rows)
    return SuggestionOf(source_of(table, table.column_names), unit, TYPES, {}, cap)


def _ledger(unit: Unit = UNIT, epsilon: int = 100) -> dp.Ledger:
    return dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=epsilon, delta=1e-3))


def _found(asked: SuggestionOf, **price: Any) -> tuple[Suggestion, Run]:
    run = Run()
    return release_suggestion(Door(run, SeededBits(7), run), asked, **price), run


def test_caps_bounds_and_keys_are_those_of_the_rows() -> None:
    found, _ = _found(_asked(_rows(PEOPLE)), epsilon=60, delta=1e-6)
    assert found.rows == 8
    assert found.columns == {
        "age": Column.integer(15, 70),
        "wage": Column.number(-0.5, 20),
        "city": Column.text(keys=['O"s,lo', "Rome"]),
        "day": Column.date(),
        "union": Column.boolean(),
    }
    assert found.left_out == {}
    table = Table.declared(_frame(_rows(PEOPLE)), found.declaration("t"), _ledger())
    answer = table.question("SELECT city, AVG(wage) AS pay FROM t GROUP BY city").release(
        epsilon=50
    )
    assert [row["city"] for row in answer.rows()] == ['O"s,lo', "Rome"]


@pytest.mark.parametrize("kind", [ColumnType.INTEGER, ColumnType.NUMBER])
def test_suggested_bounds_read_well_and_are_hardly_wider_than_powers_of_two(
    kind: ColumnType,
) -> None:
    names = [f"x{bits}" for bits in (5, 14, 31)]
    table = pa.table({name: [2 ** int(name[1:]) - 2] * 50 for name in names})
    asked = SuggestionOf(source_of(table, names), Unit.ROW, dict.fromkeys(names, kind), {})
    found, _ = _found(asked, epsilon=60 * len(names))
    for name in names:
        low, high = found.columns[name].lower, found.columns[name].upper
        assert isinstance(low, Fraction)
        assert isinstance(high, Fraction)
        power = 2 ** int(name[1:])
        assert Fraction(power, 2) * Fraction(3, 4) <= low <= power - 2 <= high
        assert high <= power * Fraction(5, 4)
        for end in (low, high):
            assert end == Fraction(f"{float(end):.1e}"), "two digits, then zeros"


def test_columns_left_out_are_listed_with_the_reason() -> None:
    found, _ = _found(_asked(_rows(PEOPLE)), epsilon=60)
    assert list(found.left_out) == ["city"]
    assert "--suggest-delta 1e-6" in found.left_out["city"]
    few, _ = _found(_asked(_rows(3)), epsilon=0.1, delta=1e-6)
    assert few.rows == 1
    assert set(few.left_out) == {"age", "wage", "city"}
    assert "city: not suggested" in str(few)


def test_the_price_is_what_was_named_whatever_the_rows() -> None:
    losses = []
    for rows in (_rows(PEOPLE), _rows(2), []):
        ledger = _ledger()
        asked = _asked(rows)
        found = release_suggestion(Door.secure(ledger), asked, epsilon=1, delta=1e-6)
        assert found.privacy_loss.delta(1) <= 1e-6
        losses.append(round(found.privacy_loss.epsilon(1e-6), 6))
        assert len(found.receipts) == 2
    assert len(set(losses)) == 1


def test_the_two_charges_are_checked_before_the_first() -> None:
    ledger = _ledger(epsilon=1)
    with pytest.raises(BudgetExceeded, match="too little left"):
        release_suggestion(Door.secure(ledger), _asked(_rows(9)), epsilon=1.5, delta=1e-6)
    assert len([one for one in ledger.history() if one.kind is Kind.CHARGE]) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_suggested_bounds_hold_the_values_or_there_are_none(sign: int) -> None:
    """At and around the ends of the search, and far beyond them."""
    sizes: dict[ColumnType, list[Any]] = {  # Any: numbers
        ColumnType.INTEGER: [2**49, 2**50 - 1, 2**50, 2**50 + 1, 2**62],
        ColumnType.NUMBER: [2.0**38, 2.0**39 - 1, 2.0**39, 1e12, 1e300, float("inf")],
    }
    values = {
        f"{kind.value} {size}": (kind, sign * size) for kind, some in sizes.items() for size in some
    }
    table = pa.table({name: [value] * 500 for name, (_, value) in values.items()})
    asked = SuggestionOf(
        source_of(table, table.column_names), Unit.ROW, {n: v[0] for n, v in values.items()}, {}
    )
    found, _ = _found(asked, epsilon=60)
    assert len(found.columns) == 4
    for name, (_, value) in values.items():
        if name in found.columns:
            low, high = found.columns[name].lower, found.columns[name].upper
            assert isinstance(low, Fraction)
            assert isinstance(high, Fraction)
            assert low <= value <= high
        else:
            assert "where the search ends" in found.left_out[name]


@pytest.mark.parametrize("epsilon", ["1.5", "1.99", "2.01"])
def test_either_both_charges_are_paid_or_none(epsilon: str) -> None:
    asked = SuggestionOf(
        source_of(_frame(_rows(90)), ["person", "age"]), UNIT, {"age": ColumnType.INTEGER}, {}
    )
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(2, 1e-6))
    price: dict[str, Any] = {"epsilon": Fraction(epsilon), "request": "once"}
    if Fraction(epsilon) > 2:
        with pytest.raises(BudgetExceeded):
            release_suggestion(Door.secure(ledger), asked, **price)
        assert _charges(ledger) == 0
        return
    for _ in range(2):  # again it is free, whatever is left
        release_suggestion(Door.secure(ledger), asked, **price)
        assert _charges(ledger) == 2


@given(
    st.lists(
        st.sampled_from([DiscreteLaplace(4, 1), DiscreteLaplace(24, 2), Zcdp(0.01)]),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(1, 25), min_size=4, max_size=4),
    st.sampled_from([dp.Limit(1), dp.Limit(1, 1e-6), dp.Limit(2, 1e-6), dp.Limit(2, 1e-2)]),
)
@settings(max_examples=60, deadline=None)
def test_charges_are_admitted_together_if_and_only_if_each_is_in_turn(
    terms: list[Any], counts: list[int], limit: dp.Limit
) -> None:
    losses = [PrivacyLoss(((t, n),), UNIT) for t, n in zip(terms, counts, strict=False)]
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=limit)
    try:
        is_admitted = admits_all(ledger, [(loss, None) for loss in losses], "ana")
        assert _charges(ledger) == 0
        for place, loss in enumerate(losses):
            ledger.charge(loss, purpose="x", by="ana", request=Request(f"{place}", ""))
    except NoBound:
        return  # before any charge
    except BudgetExceeded:
        assert not is_admitted
    else:
        assert is_admitted
        paid = [(loss, f"{place}") for place, loss in enumerate(losses)]
        assert admits_all(ledger, paid, "ana")


def _charges(ledger: dp.Ledger) -> int:
    return sum(one.kind is Kind.CHARGE for one in ledger.history())


def test_a_request_gives_the_same_suggestions_again() -> None:
    ledger = _ledger()
    one, other = (
        suggest(_frame(_rows(90)), unit=UNIT, ledger=ledger, epsilon=9, delta=1e-4, request="a")
        for _ in range(2)
    )
    assert (one.rows, one.columns, one.left_out) == (other.rows, other.columns, other.left_out)
    assert [r.number for r in one.receipts] == [r.number for r in other.receipts]


@pytest.mark.parametrize("change", list(Change))
@pytest.mark.parametrize("cap", [None, 1, 3])
def test_no_unit_shows(change: Change, cap: int | None) -> None:
    """One unit with far more rows, values and keys than the others, present or not."""
    others = _rows(30)
    own = [
        {
            "person": 99,
            "age": n - 40,
            "wage": 2.0**n,
            "city": f"c{n % 7}",
            "day": None,
            "union": True,
        }
        for n in range(70)
    ]
    instead = [{**row, "city": "Rome", "age": 2**40} for row in own[:5]]
    runs = []
    for rows in (others + own, others + (instead if change is Change.REPLACE else [])):
        asked = _asked(rows, UNIT.with_change(change), cap)
        runs.append(_found(asked, epsilon=1, delta=1e-6)[1])
    events = ([e for e in run.events if e[0] not in ("computed", "released")] for run in runs)
    recording._compare("the events", *events)
    pairs = list(zip(*(list(recording._computed(run)) for run in runs), strict=True))
    assert len(pairs) == (4 if cap is None else 3)
    for (part, one), (_, other) in pairs:
        recording._check_distance(part, one, other)


def test_a_table_of_rows_has_no_cap_and_one_charge() -> None:
    found, run = _found(_asked(_rows(PEOPLE), Unit.ROW), epsilon=60, delta=1e-6)
    assert found.declaration("t").caps.rows == 1
    assert len(run.facts("charge")) == 1
    assert found.columns["age"] == Column.integer(15, 70)


def test_a_declared_table_suggests_what_it_lacks() -> None:
    columns = {"age": Column.integer(), "city": Column.text(), "wage": Column.number(0, 7)}
    table = Table(
        _frame(_rows(PEOPLE)),
        name="t",
        unit=UNIT,
        rows=1,
        columns=columns,
        ledger=_ledger(epsilon=1000),
    )
    found = table.suggest(epsilon=600, delta=1e-6)
    assert found.rows == 8
    assert found.columns["wage"] == Column.number(0, 7)
    assert found.columns["age"] == Column.integer(15, 70)


def test_frames_are_read_by_their_schema() -> None:
    frame = pd.DataFrame({"person": range(50), "rows": [1.5] * 50})
    found = suggest(frame, unit=UNIT, ledger=_ledger(epsilon=1000), epsilon=500)
    assert found.columns == {"rows": Column.number(1, 2)}
    assert "rows = 1: nearly all units have at most 1" in str(found)


def test_bad_prices_are_refused() -> None:
    for price in ({"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": float("nan")}):
        with pytest.raises(InvalidArgument):
            _found(_asked([]), **price)


SHAPES: dict[str, Callable[[int, np.random.Generator], Any]] = {  # Any: arrays
    "truth values": lambda n, draw: draw.random(n) < 0.11,
    "few values": lambda n, draw: np.minimum(draw.poisson(3, n), 14),
    "long tail": lambda n, draw: draw.pareto(1, n) * 100,
    "years": lambda n, draw: draw.integers(1987, 1994, n),
    "both signs": lambda n, draw: draw.normal(0, 50, n),
    "mostly zero": lambda n, draw: np.where(draw.random(n) < 0.8, 0, draw.normal(9, 3, n)),
    "uniform": lambda n, draw: draw.integers(1, 21, n),
}


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2, 12])
@pytest.mark.parametrize("people", [200, 3000])
def test_bounds_hold_most_values_or_are_not_written(epsilon: float, people: int) -> None:
    draw = np.random.default_rng(people)
    table = pa.table({name: make(people, draw).astype(float) for name, make in SHAPES.items()})
    kinds = dict.fromkeys(table.column_names, ColumnType.NUMBER)
    asked = SuggestionOf(source_of(table, table.column_names), Unit.ROW, kinds, {})
    found, _ = _found(asked, epsilon=epsilon)
    for name in table.column_names:
        if name in found.columns:
            low, high = found.columns[name].lower, found.columns[name].upper
            assert isinstance(low, Fraction)
            assert isinstance(high, Fraction)
            values = table[name].to_numpy()
            assert np.mean((values >= float(low)) & (values <= float(high))) >= 0.9
            assert "hold at least 90 % of the values, one of each unit" in found.found[name]
        else:
            assert "too few rows for this price" in found.left_out[name]
    enough = epsilon * people >= 7 * 200
    assert (found.left_out == {}) == enough


def test_noise_alone_suggests_no_large_cap() -> None:
    """Of 120 units with one row each, all lie in the first bin. False alarm: 1e-9, since any other
    bin is filled with probability 1e-3."""
    random, draws = np.random.default_rng(19), 10_000
    noise = random.geometric(1 - np.exp(-1 / 5), (2, draws, CUT_BINS))
    there = np.zeros(CUT_BINS, dtype=int)
    there[0] = 120
    caps = [cap_of(there + own, DiscreteLaplaceNoise(5))[0] for own in noise[0] - noise[1]]
    assert sum(cap > 1 for cap in caps) <= binom.isf(1e-9, draws, 1e-3)


def test_only_the_chosen_columns_share_the_price() -> None:
    rows = _rows(60)
    every, _ = _found(_asked(rows), epsilon=4, delta=1e-6)
    chosen, run = _found(replace(_asked(rows), chosen=("age",)), epsilon=4, delta=1e-6)
    assert "age" in every.left_out
    assert chosen.columns["age"] == Column.integer(0, 70)
    assert chosen.left_out == {"wage": "not asked for", "city": "not asked for"}
    assert "2 other columns: not asked for" in repr(chosen)
    assert "city" not in repr(chosen)
    assert len(run.facts("charge")) == 2


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(("none",), "no such column"), (("day",), "it is date"), (("union",), "it is boolean")],
)
def test_a_choice_that_gets_nothing_is_refused(chosen: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        replace(_asked([]), chosen=chosen)
    ledger = _ledger()
    with pytest.raises(InvalidArgument, match="give a list of names"):
        suggest(_frame([]), unit=UNIT, ledger=ledger, epsilon=1, columns="age")
    assert _charges(ledger) == 0


def test_keys_say_what_they_hold_and_are_left_out_if_that_is_little() -> None:
    """30 keys of which one has many units: alone it would hide the others."""
    cities = ["Rome"] * 300 + [f"c{n % 300}" for n in range(900)]
    frame = pa.table({"person": list(range(1200)), "city": cities})
    types = {"city": ColumnType.TEXT}
    asked = SuggestionOf(source_of(frame, frame.column_names), UNIT, types, {})
    found, _ = _found(asked, epsilon=1, delta=1e-6)
    assert found.left_out["city"].startswith("1 key for about 2")
    assert found.columns["city"].keys is None
    found, _ = _found(asked, epsilon=60, delta=1e-3)
    assert found.found["city"].endswith("keys for nearly all units")
