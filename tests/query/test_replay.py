"""Nobody shows: on neighbouring tables nothing differs but pre-noise sums, within sensitivity."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from discreet._unit import Change, Unit
from discreet.audit import Difference, replay
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration, Query, Question, QuestionPrice, Table
from discreet.query._bounding import _bounding, _compiled_plan
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._plan import _plan as plan
from tests.query.kit import (
    QUERIES,
    ROWS,
    TABLES,
    arrow,
    asking,
    declarations,
    in_the_engine,
    one_instance,
    without_noise,
)

PRICE = QuestionPrice(1)
Rows = list[dict[str, Any]]


@st.composite
def neighbours(draw: st.DrawFn, declaration: Declaration) -> tuple[Rows, Rows]:
    """A table, and one in which a unit's rows are gone, or are others, in any order."""
    rows = draw(TABLES.filter(bool))
    unit = declaration.unit
    if unit.column is None:
        taken = draw(st.integers(0, len(rows) - 1))
        rest, own = rows[:taken] + rows[taken + 1 :], [rows[taken]]
        fresh = draw(ROWS)
        others = [fresh] if unit.change is Change.REPLACE else []
    else:
        known = [row["person"] for row in rows if row["person"] is not None]
        assume(known)
        who = draw(st.sampled_from(known))
        own = [row for row in rows if row["person"] == who]
        rest = [row for row in rows if row["person"] != who]
        others = (
            [{**row, "person": who} for row in draw(TABLES)]
            if unit.change is Change.REPLACE
            else []
        )
    return draw(st.permutations(rest + own)), draw(st.permutations(rest + others))


PAIRS = 8  # of tables for each question, whose text the engine gets once


def _replayed(data: st.DataObject) -> None:
    declaration = data.draw(declarations())
    query = data.draw(_answered(declaration))
    act = asking(declaration, query, PRICE)
    for one, other in data.draw(st.lists(neighbours(declaration), min_size=PAIRS, max_size=PAIRS)):
        run = replay(act, arrow(one), arrow(other), seed=len(one))
        assert run.facts("released"), run.events


@st.composite
def _answered(draw: st.DrawFn, declaration: Declaration) -> Query:
    """A question that this declaration answers."""
    for _ in range(20):
        query = draw(QUERIES)
        with suppress(QueryRefused):
            plan.plan(query, declaration)
            return query
    assume(False)
    raise AssertionError("an example that was dropped goes on")


MUCH_IS_REFUSED = [HealthCheck.filter_too_much]
QUICKLY = [Phase.explicit, Phase.reuse, Phase.generate]  # shrinking takes minutes


def _replay_many(part: int, questions: int) -> None:
    @seed(part)
    @settings(
        max_examples=questions,
        phases=QUICKLY,
        derandomize=False,
        database=None,
        suppress_health_check=MUCH_IS_REFUSED,
    )
    @given(st.data())
    def replayed(data: st.DataObject) -> None:
        _replayed(data)

    with one_instance():
        replayed()


@pytest.mark.parametrize("part", range(4))
def test_no_unit_shows(part: int) -> None:
    """512 pairs of a question and neighbouring tables, in four parts."""
    _replay_many(part, 16)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4, 9))
def test_no_unit_shows_in_many_more(part: int) -> None:
    """5 000 pairs, in five parts."""
    _replay_many(part, 125)


PEOPLE = Declaration(
    "t",
    Unit("person"),
    Caps(4, groups=2, rows_per_group=2),
    {"wage": Column.number(0, 60), "place": Column.text(keys=["a", "b", "", "a'b"])},
)
BY_PLACE = Query("t", (Aggregate(AggregateFunction.SUM, ColumnRef("wage"), "pay"),), ("place",))
BUSY = [
    {"person": 1, "place": place, "wage": 60.0} for place in ("a", "b", "", "a'b") for _ in range(5)
]
QUIET = [{"person": 2, "place": "a", "wage": 1.0}]


def _replay_busy(query: Query = BY_PLACE, caps: Caps = PEOPLE.caps) -> None:
    blank = dict.fromkeys(("age", "union", "day"))
    one, other = ([{**blank, **row} for row in rows] for rows in (BUSY + QUIET, QUIET))
    replay(asking(replace(PEOPLE, caps=caps), query, PRICE), arrow(one), arrow(other))


@pytest.fixture
def in_engine() -> Iterator[None]:
    """Contributions are bounded by the engine's statement, not in NumPy."""
    with in_the_engine():
        yield


@pytest.mark.parametrize(
    "caps",
    [
        PEOPLE.caps,
        Caps(3, groups=2, rows_per_group=2),
        Caps(2, groups=4, rows_per_group=4),
        Caps(3, groups=1),
    ],
    ids=str,
)
def test_a_unit_with_too_much_moves_no_more_than_the_caps(caps: Caps) -> None:
    """Each cap by itself: rows in a group, groups, and rows in all; in NumPy and in the engine."""
    _replay_busy(caps=caps)
    with in_the_engine():
        _replay_busy(caps=caps)


def _unscaled(plan: plan.Plan, totals: Any) -> Any:  # Any: Ibis expressions
    """The totals as they are, with the number of all rows for each count of them."""
    counts = [n for n, one in enumerate(plan.sums_of_rows) if one.argument is None]
    return totals.mutate(**{_bounding.sum_name(n): totals.rows for n in counts})


LEFT_OUT = [("_first_groups", lambda plan, totals: totals), ("_scaled", _unscaled)]


@pytest.mark.usefixtures("in_engine")
@pytest.mark.parametrize(("step", "instead"), LEFT_OUT, ids=["groups", "scaling"])
def test_a_bounding_step_left_out_is_found(
    step: str,
    instead: Any,
    monkeypatch: pytest.MonkeyPatch,  # Any: as above
) -> None:
    monkeypatch.setattr(_bounding, step, instead)
    with pytest.raises(Difference, match="moved by"):
        _replay_busy()


@pytest.mark.usefixtures("in_engine")
def test_a_cap_on_rows_in_all_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(_: plan.Plan, totals: Any) -> Any:  # Any: Ibis expressions
        return totals.mutate(rows_allotted=totals.rows)

    monkeypatch.setattr(_bounding, "_allotted", without)
    with pytest.raises(Difference, match="moved by"):
        _replay_busy(caps=Caps(3, groups=2, rows_per_group=2))


@pytest.mark.usefixtures("in_engine")
def test_a_clamp_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query("t", (Aggregate(AggregateFunction.SUM, ColumnRef("wage"), "pay"),))
    rich = {"person": 3, "place": "a", "wage": 125.0, "age": None, "union": None, "day": None}
    act = asking(PEOPLE, query, PRICE)
    replay(act, arrow([rich]), arrow([]))
    for module in ("_bounding._compiling", "_engines._conversion", "_bounding._bounding"):
        path = f"discreet.query.{module}.clamped"
        monkeypatch.setattr(path, lambda value, lower, upper: value)
    _compiled_plan._known.clear()
    with pytest.raises(Difference, match="moved by"):
        replay(act, arrow([rich]), arrow([]))


@pytest.mark.parametrize("first", [0, -30, 2**40, 2**53 - 60])
def test_a_missing_id_is_no_reason_for_others_to_choose_anew(first: int) -> None:
    """Where it makes floats of a frame's ids, and where they are texts."""
    rows = [
        {"person": first + i, "place": place, "wage": 5.0}
        for i in range(40)
        for place in ("a", "b")
    ]
    whole = pd.DataFrame(rows)
    floats = pd.DataFrame([*rows, {"person": None, "place": "a", "wage": 5.0}])
    assert (whole.person.dtype.kind, floats.person.dtype.kind) == ("i", "f")
    texts = whole.assign(person=whole.person.map(str))
    one_each = replace(PEOPLE, caps=Caps(1))
    counted = Query("t", (Aggregate(AggregateFunction.COUNT, None, "n"),), ("place",))
    found = [
        without_noise(Question.of(Table.declared(frame, one_each), counted)).to_pandas().n.tolist()
        for frame in (whole, floats, texts)
    ]
    assert 5 < found[0][1] < 35
    assert found[0] == found[1] == found[2]


def test_ids_that_are_no_utf8_fail_nothing_and_change_nothing_of_others() -> None:
    def counted(ids: list[bytes]) -> list[int]:
        raw = pa.array([own for own in ids for _ in "ab"])
        texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
        table = pa.table({"person": texts, "wage": [5.0] * len(raw), "place": [*"ab"] * len(ids)})
        query = Query("t", (Aggregate(AggregateFunction.COUNT, None, "n"),), ("place",))
        asked = Question.of(Table.declared(table, replace(PEOPLE, caps=Caps(1))), query)
        found: list[int] = without_noise(asked).to_pandas().n.tolist()
        return found

    known = [f"p{i}".encode() for i in range(30)]
    some = counted(known)
    more = counted([b"\xff\xfe", b"p\xff", *known])
    assert (sum(some), sum(more)) == (30, 32)
    assert all(0 <= m - s <= 2 for s, m in zip(some, more, strict=True))


def test_ids_that_are_no_whole_numbers_choose_by_themselves() -> None:
    ids = [f"0.{i}" for i in range(1, 41)]
    rows = [{"person": own, "place": place, "wage": 5.0} for own in ids for place in ("a", "b")]
    for frame in (pd.DataFrame(rows), pd.DataFrame(rows).astype({"person": float})):
        table = Table.declared(frame, replace(PEOPLE, caps=Caps(1)))
        counted = Query("t", (Aggregate(AggregateFunction.COUNT, None, "n"),), ("place",))
        assert 5 < without_noise(Question.of(table, counted)).to_pandas().n[1] < 35


def test_schema_taken_from_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = _compiled_plan.CompiledPlan.compute

    def told(prepared: _compiled_plan.CompiledPlan, trace: Any) -> Mapping[str, Any]:
        sums = honest(prepared, trace)
        trace.note(
            "schema",
            [
                math.floor(math.log2(1 + abs(int(total))))
                for total in np.atleast_1d(sums["sum(wage)"])
            ],
        )
        return sums

    monkeypatch.setattr(_compiled_plan.CompiledPlan, "compute", told)
    with pytest.raises(Difference, match="events differ"):
        _replay_busy()
