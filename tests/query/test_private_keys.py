"""Keys that come from the rows: who is shown, by how much neighbours differ, what is refused."""

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet._unit import Change, Unit
from discreet.audit import Run, SeededBits, ZeroNoiseBits
from discreet.audit import _replay as recording
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import AnyPart, Door
from discreet.query import (
    Answer,
    Caps,
    Column,
    Declaration,
    Noise,
    Question,
    QuestionPrice,
    Table,
    plan_workload,
    release_question,
)
from discreet.query._bounding import _compiled_plan
from discreet.query._expressions._query import Query
from discreet.query._plan import _plan as plan
from discreet.query._plan._price import PricedPlan
from discreet.query._plan._private_keys import most_of_one_unit
from tests.query.kit import QUERIES_OF_SOME_GROUPS, arrow, declarations
from tests.query.test_replay import LEFT_OUT, MUCH_IS_REFUSED, QUICKLY, Rows, neighbours
from tests.tables import one_in

PRICE = QuestionPrice(1, Fraction(1, 10**6))
SHARP = QuestionPrice(1000, Fraction(1, 2), noise=Noise.LAPLACE)  # hides as little as can be
UNIT = Unit("person")


def _without_keys(declaration: Declaration) -> Declaration:
    """The same table, whose owner declared no keys of texts and days, and no bounds of ages."""
    columns = dict(declaration.columns)
    columns["place"] = replace(columns["place"], keys=None)
    columns["day"] = replace(columns["day"], keys=None)
    return replace(declaration, columns=columns)


def _least_shown(priced: PricedPlan) -> int:
    """The noisy count from which a private key is released."""
    return priced.threshold + most_of_one_unit(priced.plan)


@st.composite
def _asked(draw: st.DrawFn) -> tuple[Declaration, Query]:
    declaration, query = _without_keys(draw(declarations())), draw(QUERIES_OF_SOME_GROUPS)
    try:
        made = plan.plan(query, declaration)
    except QueryRefused:
        assume(False)
        raise
    assume(made.private)
    return declaration, query


def _run(declaration: Declaration, query: Query, rows: Rows, price: QuestionPrice) -> Run:
    run = Run()
    asked = Question.of(Table.declared(arrow(rows), declaration), query)
    answer = release_question(Door(run, SeededBits(3), run), asked, price)
    run.ending = answer.table.schema
    return run


def _parts(run: Run) -> Iterator[tuple[AnyPart, Any]]:
    return recording._computed(run)


def _replayed(declaration: Declaration, query: Query, one: Rows, other: Rows) -> None:
    """As `discreet.audit.replay`, but the numbers of keys and of draws are part of the output."""
    first, second = (_run(declaration, query, rows, PRICE) for rows in (one, other))
    events = (
        [e for e in run.events if e[0] not in ("computed", "released")] for run in (first, second)
    )
    recording._compare("the events", *events)
    recording._compare("the schemas", first.ending, second.ending)
    for (part, before), (_, after) in zip(_parts(first), _parts(second), strict=True):
        recording._check_distance(part, before, after)


@settings(max_examples=6, phases=QUICKLY, suppress_health_check=MUCH_IS_REFUSED)
@given(st.data())
def test_no_unit_shows(data: st.DataObject) -> None:
    declaration, query = data.draw(_asked())
    _replayed(declaration, query, *data.draw(neighbours(declaration)))


@pytest.mark.long
@settings(max_examples=600, phases=QUICKLY, suppress_health_check=MUCH_IS_REFUSED)
@given(st.data())
def test_no_unit_shows_in_many_more(data: st.DataObject) -> None:
    declaration, query = data.draw(_asked())
    _replayed(declaration, query, *data.draw(neighbours(declaration)))


PLACES = Declaration(
    "t",
    UNIT,
    Caps(4, groups=2, rows_per_group=2),
    {"wage": Column.number(0, 60), "place": Column.text(), "age": Column.integer()},
)
BLANK = dict.fromkeys(("wage", "age", "union", "place", "day"))
BUSY: Rows = [
    {**BLANK, "person": 1, "place": place, "wage": 60.0} for place in "abcd" for _ in range(5)
]
OTHERS: Rows = [
    {**BLANK, "person": who, "place": place, "wage": 1.0} for who in (2, 3, 4) for place in "abcd"
]


TOO_MUCH = (
    "SELECT place, COUNT(*) AS n, SUM(wage) AS s, MEDIAN(wage) AS m FROM t GROUP BY place",
    "SELECT place, COUNT_UNITS(*) AS n, COUNT(DISTINCT wage) AS s FROM t GROUP BY place",
)
LIMITS = (PLACES.caps, Caps(3, groups=2), Caps(2), Caps(3, groups=1))


# one in three has each text, each of the caps and each change
@pytest.mark.parametrize(("text", "caps", "change"), one_in(3, product(TOO_MUCH, LIMITS, Change)))
def test_a_unit_with_too_much_moves_no_more_than_the_caps(
    text: str, caps: Caps, change: Change
) -> None:
    facts = replace(PLACES, caps=caps, unit=Unit("person", change))
    query = Table.declared(arrow(OTHERS), facts).question(text).query
    gone = [{**row, "place": "e"} for row in BUSY] if change is Change.REPLACE else []
    _replayed(facts, query, BUSY + OTHERS, gone + OTHERS)


@pytest.mark.parametrize(("step", "instead"), LEFT_OUT, ids=["groups", "scaling"])
def test_a_bounding_step_left_out_is_found(
    step: str,
    instead: Any,
    monkeypatch: pytest.MonkeyPatch,  # Any: of Ibis expressions
) -> None:
    asked = Table.declared(arrow(OTHERS), PLACES)
    query = asked.question("SELECT place, SUM(wage) AS s FROM t GROUP BY place").query
    _replayed(PLACES, query, BUSY + OTHERS, OTHERS)
    monkeypatch.setattr(f"discreet.query._bounding._bounding.{step}", instead)
    _compiled_plan._known.clear()
    with pytest.raises(recording.Difference, match="moved by"):
        _replayed(PLACES, query, BUSY + OTHERS, OTHERS)


# --- which keys, and which numbers ---


def _noiseless(asked: Question, price: QuestionPrice = SHARP) -> Answer:
    run = Run()
    return release_question(Door(run, ZeroNoiseBits(), run), asked, price)


@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), max_size=80), st.data())
def test_groups_and_numbers_are_those_of_a_plain_reference(
    pairs: list[tuple[str, int]], data: st.DataObject
) -> None:
    texts = data.draw(
        st.lists(
            st.text(st.characters(codec="utf-8"), max_size=6), unique=True, min_size=8, max_size=8
        )
    )
    rows = [(texts["abcdefgh".index(one)], n % 2 == 0, n) for one, n in pairs]
    frame = pa.table(
        {
            "place": pa.array([row[0] for row in rows], pa.string()),
            "even": pa.array([row[1] for row in rows], pa.bool_()),
            "size": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    columns = {"place": Column.text(), "even": Column.boolean(), "size": Column.integer(0, 3)}
    table = Table(frame, name="t", unit=Unit.ROW, columns=columns)
    asked = table.question(
        "SELECT even, place, SUM(size) AS s, COUNT(*) AS n FROM t GROUP BY even, place"
    )
    least = _least_shown(asked.price(SHARP, Fraction(95, 100)))
    counts = Counter((row[1], row[0]) for row in rows)
    sums: dict[tuple[bool, str], int] = defaultdict(int)
    for place, even, size in rows:
        sums[even, place] += size
    shown = [group for group in sorted(counts) if counts[group] >= least]
    assert [
        ((row["even"], row["place"]), row["s"], row["n"]) for row in _noiseless(asked).rows()
    ] == [(group, sums[group], counts[group]) for group in shown]


def _table(values: Any, column: Column, **others: Any) -> Table:
    """Each value in the rows of eight people."""
    array = pa.array([value for value in values for _ in range(8)])
    frame = pa.table({"person": list(range(8)) * len(values), "key": array})
    return Table(frame, name="t", unit=UNIT, rows=len(values), columns={"key": column}, **others)


COUNTED = "SELECT key, COUNT_UNITS(*) AS n FROM t GROUP BY key"


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        (
            ["é", "e\u0301", "E", "e", "", " ", "a:1:b", "1:a", "\x00", "a\x00", "🤦🏼\u200d♂️"],
            Column.text(),
            None,
        ),
        ([2**63 - 1, -(2**63), 0, -1], Column.integer(), None),
        ([0.0, -0.0, 1e30, float("nan"), 7.0], Column.integer(), [0, 7]),
        ([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], Column.date(), None),
        (["a", None], Column.text(), ["a"]),
        (["a", None], Column.text(null="none"), ["a", "none"]),
        ([1, None], Column.integer(null=-1), [-1, 1]),
        ([str(2**64), "12", "x"], Column.integer(), [12]),
    ],
    ids=str,
)
def test_keys_are_the_declared_types_values(
    values: list[Any], column: Column, expected: list[Any] | None
) -> None:
    answer = _noiseless(_table(values, column).question(COUNTED))
    found = {row["key"]: row["n"] for row in answer.rows()}
    assert list(found) == sorted(values if expected is None else expected)
    assert set(found.values()) == {8}


@pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB
def test_keys_are_compared_by_bytes_whatever_the_collation() -> None:
    connection = ibis.duckdb.connect()
    connection.con.execute(
        "CREATE TABLE t AS SELECT range % 8 AS person, CASE range // 8 WHEN 0 THEN 'a' WHEN 1 THEN "
        "'A' ELSE 'á' END COLLATE NOCASE.NOACCENT AS key FROM range(24)"
    )
    table = Table(
        connection.table("t"), name="t", unit=UNIT, rows=3, columns={"key": Column.text()}
    )
    assert [row["key"] for row in _noiseless(table.question(COUNTED)).rows()] == ["A", "a", "á"]


def test_texts_that_are_no_utf8_are_no_keys() -> None:
    texts = pa.array([b"ok", b"\xff\xfe"] * 8)
    key = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
    frame = pa.table({"person": [n // 2 for n in range(16)], "key": key})
    table = Table(frame, name="t", unit=UNIT, rows=2, columns={"key": Column.text()})
    assert [row["key"] for row in _noiseless(table.question(COUNTED)).rows()] == ["ok"]


def test_texts_longer_than_1024_bytes_are_no_keys() -> None:
    texts = [
        "a" * 1024,
        "a" * 1025,
        "é" * 512,
        "é" * 512 + "a",
        "\x00" * 1024,
        "🤦" * 256,
        "🤦" * 257,
    ]
    found = _noiseless(_table(texts, Column.text()).question(COUNTED)).rows()
    assert [row["key"] for row in found] == sorted(t for t in texts if len(t.encode()) <= 1024)


def test_a_key_of_one_unit_never_leaves_the_engine() -> None:
    own: Rows = [{**BLANK, "person": 1, "place": "mine", "wage": 1.0} for _ in range(50)]
    many: Rows = [{**OTHERS[0], "person": who} for who in range(2, 90)]
    for caps in (Caps(50), Caps(3)):
        facts = replace(PLACES, caps=caps)
        for aggregate in ("COUNT(*)", "COUNT_UNITS(*)", "SUM(wage)", "MEDIAN(wage)"):
            text = f"SELECT place, {aggregate} AS n FROM t GROUP BY place"
            query = Table.declared(arrow(own), facts).question(text).query
            run = _run(facts, query, own + many, PRICE)
            found = [value for _, value in _parts(run)]
            assert any(found)
            assert not any((0, "mine") in value for value in found)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("units", [PLACES.unit, Unit("person", Change.REPLACE)], ids=str)
def test_the_price_is_at_most_what_was_named(noise: Noise, units: Unit) -> None:
    facts = replace(PLACES, unit=units)
    table = Table.declared(arrow(OTHERS), facts)
    for text in ("COUNT(*) AS n", "SUM(wage) AS s", "AVG(wage) AS m, COUNT_UNITS(*) AS n"):
        asked = table.question(f"SELECT place, {text} FROM t GROUP BY place")
        for epsilon in (Fraction(1, 10), 1, 5):
            named = QuestionPrice(epsilon, Fraction(1, 10**6), noise=noise)
            loss = asked.price(named, Fraction(95, 100)).privacy_loss
            assert loss.delta(epsilon) <= 1e-6
            assert loss.epsilon(1e-6) > float(epsilon) * 0.97


def test_the_count_that_decides_is_the_one_that_is_shown() -> None:
    table = Table.declared(arrow(OTHERS), PLACES)
    for text, name in {
        "COUNT(*) AS n": "count(*)",
        "COUNT_UNITS(*) AS u, COUNT(*) AS n": "count of units",
        "AVG(wage) AS m": "count of units",
    }.items():
        made = table.question(f"SELECT place, {text} FROM t GROUP BY place")
        assert made.plan.deciding.name == name
    answer = table.group_by("place").agg(n=dp.count()).explain(epsilon=1, delta=1e-6)
    least = _least_shown(table.group_by("place").agg(n=dp.count()).price(PRICE, 0.95))
    said = f"fewer than about {least:,} rows stay hidden"
    for text in (str(answer), answer._repr_html_(), str(answer.forecast)):
        assert text.count(said) == 1


# --- without a released group, with a request, at the price of nothing ---


def _ledger() -> dp.Ledger:
    return dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10**6, delta=Fraction(1, 2)))


def test_no_released_group_is_an_empty_table_of_the_same_schema() -> None:
    text = (
        "SELECT key, COUNT(*) AS n, SUM(size) AS s, AVG(size) AS m, STDDEV(size) AS d, "
        "MEDIAN(size) AS q, COUNT(DISTINCT size) AS z FROM t GROUP BY key"
    )
    columns = {"key": Column.text(), "size": Column.number(0, 9)}
    answers = []
    for rows in (0, 1, 400):
        frame = pd.DataFrame({"person": range(rows), "key": ["a"] * rows, "size": [1.0] * rows})
        frame = frame.astype({"key": "str", "size": float})
        table = Table(frame, name="t", unit=UNIT, rows=1, columns=columns, ledger=_ledger())
        answers.append(table.question(text).release(epsilon=50, delta=1e-6))
    assert [len(answer.rows()) for answer in answers] == [0, 0, 1]
    assert len({str(answer.table.schema) for answer in answers}) == 1
    assert len({str(answer.privacy_loss) for answer in answers}) == 1
    assert all(str(answer) and answer.to_json() and answer._repr_html_() for answer in answers)


def test_a_request_gives_the_same_answer_again() -> None:
    table = _table(["a", "é", ""], Column.text(), ledger=_ledger())
    asked = table.question("SELECT key, COUNT_UNITS(*) AS n, COUNT(*) AS r FROM t GROUP BY key")
    one, other = (asked.release(epsilon=20, delta=0.1, request="mine") for _ in range(2))
    assert one.rows() == other.rows()
    assert len(one.rows()) == 3
    assert one.receipt.number == other.receipt.number


# --- refused, by name, before a charge ---


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("SELECT place, COUNT(*) AS n FROM t GROUP BY place", "discreet declare.*or give a delta"),
        ("SELECT age, COUNT(*) AS n FROM t GROUP BY age", "or give a delta"),
        ("SELECT COUNT(*) AS n FROM t GROUP BY LOWER(place)", "or give a delta"),
    ],
)
def test_without_a_delta_both_ways_are_named(text: str, match: str) -> None:
    asked = Table.declared(arrow(OTHERS), PLACES).question(text)
    for use in (asked.forecast, asked.explain, asked.release):
        with pytest.raises(QueryRefused, match=match):
            use(epsilon=1)
    with pytest.raises(QueryRefused, match=match):
        asked.for_error(within=5)


def test_an_error_is_solved_for() -> None:
    asked = Table.declared(arrow(OTHERS), PLACES).group_by("place").agg(n=dp.count())
    price = asked.for_error(within=10, delta=1e-6)
    assert asked.forecast(price).lines[0].half_width <= 10


def test_uses_that_need_declared_keys_are_refused() -> None:
    table = Table.declared(arrow(OTHERS), PLACES, _ledger())
    by_place = table.group_by("place")
    for use in (lambda: by_place.top_k(2).release(epsilon=1), by_place.counts):
        with pytest.raises(QueryRefused, match="needs declared keys"):
            use()
    with pytest.raises(QueryRefused, match="needs declared keys"):
        plan_workload(table, [by_place.agg(n=dp.count())], epsilon=1, delta=1e-6)
    with pytest.raises(QueryRefused, match="no whole numbers"):
        table.question("SELECT COUNT(*) AS n FROM t GROUP BY wage")


CALLS: dict[str, Callable[[Table], object]] = {
    "agg": lambda t: t.group_by("k").agg(n=dp.count()).release(epsilon=1, delta=1e-6),
    "quantiles": lambda t: t.quantiles("x", [0.5], by="k", epsilon=1, delta=1e-6),
    "describe": lambda t: t.describe("x", by=("g", "k"), epsilon=1, delta=1e-6),
    "count_units": lambda t: t.count_units(by="k", epsilon=1, delta=1e-6),
    "histogram": lambda t: t.histogram("x", by="k", epsilon=1, delta=1e-6),
    "histogram, of rows": lambda t: t.histogram("x", group_size=9, by="k", epsilon=1, delta=1e-6),
    "contingency": lambda t: t.contingency("g", "k", epsilon=1),
    "contingency, delta": lambda t: t.contingency("k", "g", epsilon=1, delta=1e-6),
    "correlation": lambda t: t.group_by("k").correlation("x", "y").release(epsilon=1, delta=1e-6),
    "top_k": lambda t: t.top_k("k", 1, epsilon=1),
    "top_k of two": lambda t: t.top_k(["g", "k"], 2, epsilon=1),
    "mode": lambda t: t.mode("k", epsilon=1),
    "mode by": lambda t: t.mode("g", by="k", epsilon=1),
    "mode by two": lambda t: t.mode("x", by=["k", "g"], epsilon=1),
    "moments": lambda t: t.group_by("k").moments("x").release(epsilon=1),
    "bounds": lambda t: t.group_by("k").bounds("x").release(epsilon=1),
    "rows": lambda t: t.group_by("k").rows("x"),
    "counts": lambda t: t.group_by("g", "k").counts(),
    "diagnose": lambda t: t.diagnose("x", by="k", epsilon=1),
    "share_of_null": lambda t: t.share_of_null("k", epsilon=1),
    "suggest": lambda t: t.suggest(epsilon=1, delta=1e-6),
    "regression": lambda t: t.regression("x", on=["k"], epsilon=1),
    "plan": lambda t: plan_workload(t, [t.group_by("k").agg(n=dp.count())], epsilon=1, delta=1e-6),
    "no delta": lambda t: t.group_by("k").agg(n=dp.count()).release(epsilon=1),
    "least delta": lambda t: t.group_by("k").agg(n=dp.count()).forecast(epsilon=1, delta=1e-301),
}
NAMED = (
    "needs declared keys|by k, and a mechanism on rows|keys come from the rows|k is text|delta = 1e"
)


@pytest.mark.parametrize("call", CALLS)
def test_each_call_answers_or_names_what_private_keys_lack(call: str) -> None:
    frame = pd.DataFrame({"person": range(60), "g": list("pqr") * 20, "k": ["x", "y"] * 30})
    columns = {
        "g": Column.text(keys=["p", "q", "r"]),
        "k": Column.text(),
        "x": Column.integer(0, 9),
        "y": Column.number(0, 9),
    }
    ledger = _ledger()
    table = Table(
        frame.assign(x=3, y=4.5), name="t", unit=UNIT, rows=1, columns=columns, ledger=ledger
    )
    message = ""
    try:
        CALLS[call](table)
    except (InvalidArgument, QueryRefused) as refused:
        message = str(refused)
    assert not message or re.search(NAMED, message)
    assert not message or ledger.spent().reached == 0


def test_a_diagnosis_counts_what_caps_cut() -> None:
    table = Table.declared(arrow(BUSY + OTHERS * 30), replace(PLACES, caps=Caps(2)), _ledger())
    found = table.group_by("place").agg(n=dp.count()).diagnose(epsilon=100)
    assert found.rows_left_out is not None
    assert np.isclose(found.rows_left_out, 1 - 8 / 380, atol=0.2)
