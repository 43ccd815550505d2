"""One row for each unit, with aggregates of its rows: what they mean, and that no unit shows."""

import datetime
import math
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.audit import replay
from discreet.errors import QueryRefused
from discreet.mechanisms import Door
from discreet.query import Answer, Caps, Column, QuestionPrice, Table, release_question
from discreet.query._expressions._aggregate_functions import aggregate
from discreet.query._expressions._aggregates import AggregateFunction
from tests.query.kit import without_noise

Row = dict[str, Any]
UNIT = dp.Unit("who")
SCHEMA = pa.schema(
    {"who": pa.int64(), "x": pa.int64(), "y": pa.float64(), "day": pa.date32(), "t": pa.string()}
)
DAYS = [datetime.date(2024, 1, n) for n in (1, 2, 3)]
COLUMNS = {
    "x": Column.integer(-4, 9),
    "y": Column.number(0.5, 2.5),
    "day": Column.date(DAYS[0], DAYS[-1]),
    "t": Column.text(keys=["a", "b"]),
}
MOST = 3  # rows of a unit
INNER = (
    "SELECT who, SUM(x) AS s, COUNT(*) AS n, COUNT(x) AS c, AVG(x) AS a, MIN(x) AS lo, MAX(x) AS hi"
)


def opened(rows: list[Row], ledger: Any = None) -> Table:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return Table(table, name="t", unit=UNIT, columns=COLUMNS, rows=MOST, ledger=ledger)


_X = st.none() | st.integers(-9, 15)
_Y = st.none() | st.sampled_from([0.1, 0.7, 1.0 / 3, 2.5, -0.0, 9.0, float("nan"), 1e300])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "who": st.none() | st.integers(0, 4),
            "x": _X,
            "y": _Y,
            "day": st.none() | st.sampled_from(DAYS),
            "t": st.sampled_from(["a", "b", "A", None]),
        }
    ),
    max_size=14,
)


def _of_units(rows: list[Row]) -> list[Row]:
    """The reference: one row for each unit."""
    own: dict[int, list[int | None]] = {}
    for row in rows:
        if row["who"] is not None and row["t"] == "a":
            x = None if row["x"] is None else min(max(row["x"], -4), 9)
            own.setdefault(row["who"], []).append(x)
    made = []
    for xs in own.values():
        there = [x for x in xs if x is not None]
        total = min(max(sum(there), -4 * MOST), 9 * MOST)
        made.append(
            {
                "s": total if there else None,
                "n": min(len(xs), MOST),
                "c": min(len(there), MOST),
                "a": sum(there) / len(there) if there else None,
                "lo": min(there, default=None),
                "hi": max(there, default=None),
            }
        )
    return made


@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(ROWS)
def test_rows_of_units_are_those_of_plain_python(rows: list[Row]) -> None:
    table = opened(rows)
    names = ["s", "n", "c", "lo", "hi", "a"]
    listed = ", ".join(f"SUM({name}) AS {name}, COUNT({name}) AS {name}_there" for name in names)
    question = table.question(
        f"SELECT COUNT(*) AS units, {listed} FROM ({INNER} FROM t WHERE t = 'a' GROUP BY who) AS u"
    )
    assert question.plan.declaration.caps == Caps(1)
    (got,) = without_noise(question).rows()
    expected = _of_units(rows)
    assert got["units"] == len(expected)
    for name in names:
        values = [row[name] for row in expected if row[name] is not None]
        assert got[f"{name}_there"] == len(values)
        assert math.isclose(float(str(got[name])), sum(values), abs_tol=1e-6), name


@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], random: Any) -> None:
    """Sums of floats depend on it; those of a unit must not, or others would move them."""
    names = ["y", "m", "least", "most"]
    text = "SELECT who, SUM(y) AS y, AVG(y) AS m, MIN(y) AS least, MAX(y) AS most FROM t"
    found = []
    for _ in range(3):
        random.shuffle(rows)
        asked = opened(rows * 40).question(f"SELECT SUM(y) AS s FROM ({text} GROUP BY who) AS u")
        with asked.table.source.rows([*names, "who"]) as made:
            found.append(sorted(map(repr, made.to_pylist())))
        assert all(
            row[name] is None or 0.5 <= row[name] <= 2.5 * (MOST if name == "y" else 1)
            for row in made.to_pylist()
            for name in names
        )
    assert found[0] == found[1] == found[2]


QUESTIONS = [
    f"SELECT AVG(s) AS a, SUM(n) AS n, MEDIAN(a) AS m FROM ({INNER} FROM t GROUP BY who) AS u",
    f"SELECT n, COUNT(*) AS k FROM ({INNER} FROM t WHERE x > 0 GROUP BY who) AS u GROUP BY n",
    (
        "SELECT day, SUM(y) AS y FROM (SELECT who, MAX(day) AS day, AVG(y) AS y FROM t "
        "GROUP BY who) AS u GROUP BY day"
    ),
    (
        "SELECT SUM(x * n) AS s, COUNT(*) AS k FROM t JOIN "
        "(SELECT who, COUNT(*) AS n FROM t GROUP BY who) AS u USING (who)"
    ),
    (
        "SELECT SUM(w) AS s, COUNT_UNITS(*) AS k FROM (SELECT who, SUM(v) AS w FROM "
        "(SELECT who, x + 1 AS v FROM t UNION ALL SELECT who, x FROM t WHERE t = 'a') AS v "
        "GROUP BY who) AS u WHERE w > 2"
    ),
]


def _ask(text: str, door: Door, rows: list[Row]) -> Answer:
    return release_question(door, opened(rows).question(text), QuestionPrice(1))


@pytest.mark.parametrize("text", QUESTIONS)
@settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_no_unit_shows(text: str, data: st.DataObject) -> None:
    _replayed(text, data)


@pytest.mark.long
@pytest.mark.parametrize("text", QUESTIONS)
@settings(max_examples=300, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_no_unit_shows_in_many_more(text: str, data: st.DataObject) -> None:
    _replayed(text, data)


def _replayed(text: str, data: st.DataObject) -> None:
    rows = data.draw(ROWS)
    who = data.draw(st.integers(0, 4))
    rest = [row for row in rows if row["who"] != who]
    assume(len(rest) < len(rows))
    run = replay(partial(_ask, text), rows, data.draw(st.permutations(rest)), seed=len(rows))
    assert run.facts("released"), run.events


BUSY = [{"who": 1, "x": 9, "y": 2.5, "day": DAYS[0], "t": "a"} for _ in range(40)]
QUIET = [{"who": 2, "x": 3, "y": 1.0, "day": DAYS[1], "t": "a"}]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_unit_with_too_much_moves_no_more_than_its_bounds(text: str) -> None:
    replay(partial(_ask, text), BUSY + QUIET, QUIET)


def test_a_total_that_is_not_clamped_is_clamped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outer question clamps each column, as it does those of any table."""
    monkeypatch.setattr("discreet.query._relations._per_unit.clamped", lambda value, *_: value)
    replay(partial(_ask, QUESTIONS[0]), BUSY + QUIET, QUIET)


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_its_text(text: str) -> None:
    table = opened([])
    question = table.question(text)
    again = table.question(str(question.query))
    assert (again.plan, str(again.query)) == (question.plan, str(question.query))
    question.forecast(epsilon=1)
    assert any("at most that of" in note for note in without_noise(question).notes)


def test_bounds_follow_from_caps_and_bounds() -> None:
    facts = opened([]).question(QUESTIONS[0]).plan.declaration.columns
    assert facts["s"] == Column.integer(-4 * MOST, 9 * MOST)
    assert facts["n"] == facts["c"] == Column.integer(0, MOST)
    assert facts["a"] == Column.number(-4, 9)
    assert facts["lo"] == facts["hi"] == Column.integer(-4, 9)
    made = opened([]).per_unit(y=dp.sum("y"), d=aggregate(AggregateFunction.MAX, "day"))
    assert made.declaration.columns["y"] == Column.number(0.5, 2.5 * MOST)
    assert made.declaration.columns["d"] == Column.date(DAYS[0], DAYS[-1])


def test_calls_and_sql_ask_alike() -> None:
    rows = BUSY + QUIET
    called = opened(rows).per_unit(dp.col("x") > 0, s=dp.sum("x"), n=dp.count()).agg(m=dp.mean("s"))
    text = "SELECT who, SUM(x) AS s, COUNT(*) AS n FROM t WHERE x > 0 GROUP BY who"
    asked = opened(rows).question(f"SELECT AVG(s) AS m FROM ({text}) AS u")
    assert called.plan == asked.plan
    assert without_noise(called).rows() == without_noise(asked).rows()
    with_name = f"WITH u AS ({text}) SELECT AVG(s) AS m FROM u"
    assert opened(rows).question(with_name).plan == asked.plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT day, SUM(x) AS s FROM t GROUP BY day", "rows of several units"),
        ("SELECT who, day, SUM(x) AS s FROM t GROUP BY who, day", "one row for each unit"),
        ("SELECT SUM(x) AS s FROM t", "keys and aggregates stand in the outer query"),
        ("SELECT who, MEDIAN(x) AS s FROM t GROUP BY who", "has COUNT, SUM, AVG, MIN, MAX"),
        ("SELECT who, COUNT(DISTINCT x) AS s FROM t GROUP BY who", "has COUNT, SUM"),
        ("SELECT who, SUM(x) + 1 AS s FROM t GROUP BY who", "compute with them outside"),
        ("SELECT who, x AS s FROM t GROUP BY who", "compute with them outside"),
        ("SELECT who FROM t GROUP BY who", "give an aggregate"),
        ("SELECT who, SUM(t) AS s FROM t GROUP BY who", "needs numbers within bounds"),
        ("SELECT who, AVG(day) AS s FROM t GROUP BY who", "needs numbers within bounds"),
        ("SELECT who, SUM(*) AS s FROM t GROUP BY who", "needs a column"),
        ("SELECT who, SUM(x) AS who FROM t GROUP BY who", "identifies units"),
        ("SELECT who, SUM(x) AS s, COUNT(*) AS S FROM t GROUP BY who", "two columns"),
        ("SELECT who, SUM(x) AS s FROM t GROUP BY ROLLUP (who)", "one row for each unit"),
        ("SELECT who, SUM(x) AS s FROM t GROUP BY who HAVING SUM(x) > 1", "row by row"),
        ("SELECT who, SUM(SUM(x)) AS s FROM t GROUP BY who", "SUM"),
    ],
)
def test_queries_without_one_row_per_unit_are_refused(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        opened([]).question(f"SELECT COUNT(*) FROM ({text}) AS u")


def test_rows_that_are_units_and_keys_are_not_grouped() -> None:
    rows = pa.table({"x": [1], "who": [1]})
    by_row = Table(rows, name="t", unit=dp.Unit.ROW, columns={"x": COLUMNS["x"]})
    with pytest.raises(QueryRefused, match="each row is a unit"):
        by_row.per_unit(n=dp.count())
    with pytest.raises(QueryRefused, match="one row for each unit"):
        by_row.question("SELECT SUM(n) FROM (SELECT x, COUNT(*) AS n FROM t GROUP BY x) u")
    owners = Table(rows, name="o", unit=UNIT, columns={"x": Column.integer()}, rows=1)
    keyed = owners.linked(rows, on="x", columns={"x": COLUMNS["x"]}, rows=1, name="t")
    with pytest.raises(QueryRefused, match="of which one who has several"):
        keyed.per_unit(n=dp.count())


def test_caps_are_diagnosed_at_the_table_itself() -> None:
    made: Any = opened(BUSY).per_unit(n=dp.count())
    with pytest.raises(QueryRefused, match="diagnose each table"):
        made.diagnose(epsilon=1)
