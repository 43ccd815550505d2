"""Ids of several columns: rows are of one unit if all of them are equal."""

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.audit import replay
from discreet.errors import DeclarationError, InvalidArgument, QueryRefused
from discreet.mechanisms import Door
from discreet.query import Answer, Caps, Column, QuestionPrice, Table, release_question
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._statistics._suggestion import suggest
from tests.query.kit import without_noise

Row = dict[str, Any]
UNIT = dp.Unit(("home", "person"))
COLUMNS = {"x": Column.integer(-3, 9), "kind": Column.text(keys=["a", "b"])}
AGES = {"age": Column.integer(0, 99)}
NOT_UTF8 = b"\xff\xfe"
TEXTS = ["", "a", "ab", "b", "1", "01", "1.0", "é", "A", "1:a", "a1:b", "|", "\\", "\x00", None]


def opened(rows: list[Row], caps: Caps, others: list[Row] | None = None) -> Table:
    """The rows, with the ages of persons beside them."""
    schema = pa.schema({"home": pa.string(), "person": pa.int64(), "x": pa.int64()})
    named = pa.Table.from_pylist(rows, schema=schema.append(pa.field("kind", pa.string())))
    ages = pa.schema({"home": pa.string(), "person": pa.string(), "age": pa.int64()})
    beside = Table.declared(
        pa.Table.from_pylist(others or [], schema=ages),
        dp.query.Declaration("ages", UNIT, Caps(2), AGES),
    )
    return Table.declared(named, dp.query.Declaration("t", UNIT, caps, COLUMNS)).beside(beside)


def count(table: Table, text: str) -> int:
    (found,) = without_noise(table.question(text)).to_pandas().n.tolist()
    return int(found)


@pytest.mark.parametrize("kinds", ["texts", "bytes", "numbers and texts", "floats", "three"])
def test_two_units_have_two_ids(kinds: str) -> None:
    """Each pair of columns is an id of its own; a missing one is no id."""
    texts = pa.array(TEXTS, pa.string())
    raw = pa.array([b"a", NOT_UTF8, b"a\xff", b"\\xFF", b"xFF", None])
    odd = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    numbers = pa.array([1, -1, 11, 0, None, 2**63 - 1])
    floats = pa.array([1.0, 1.5, float("nan"), None, 1e300, 11.0])
    columns = {
        "texts": (texts, texts),
        "bytes": (odd, odd),
        "numbers and texts": (numbers, texts),
        "floats": (floats, numbers),
        "three": (texts, numbers, numbers),
    }[kinds]
    places = list(itertools.product(*(range(len(column)) for column in columns)))
    taken = [column.take(pa.array([p[n] for p in places])) for n, column in enumerate(columns)]
    missing = [[v is None or v != v for v in column.to_pylist()] for column in _readable(columns)]
    known = sum(not any(missing[n][place] for n, place in enumerate(p)) for p in places)
    names = ["home", "person", "third"][: len(columns)]
    rows = pa.table([*taken, pa.array([1] * len(places))], names=[*names, "x"])
    rows = pa.concat_tables([rows, rows])  # each id twice
    unit = dp.Unit(tuple(names))
    table = Table(rows, unit=unit, columns={"x": Column.integer(0, 9)}, rows=1)
    assert count(table, "SELECT COUNT_UNITS(*) AS n FROM table") == known
    assert count(table, "SELECT COUNT(*) AS n FROM table") == known
    listed = ", ".join(names)
    assert count(table, f"SELECT COUNT(DISTINCT {listed}) AS n FROM table") == known
    related = f"(SELECT {listed}, x FROM table WHERE x > 0) AS s JOIN table USING ({listed})"
    assert count(table, f"SELECT COUNT_UNITS(*) AS n FROM {related}") == known


def _readable(columns: tuple[pa.Array, ...]) -> list[pa.Array]:
    return [
        pa.Array.from_buffers(pa.binary(), len(c), c.buffers()) if c.type == pa.string() else c
        for c in columns
    ]


def test_an_id_is_the_same_whatever_holds_its_columns() -> None:
    """And so is the choice of groups, which must not follow from a missing id of another row."""
    rows = [
        {"home": f"h{i % 7}", "person": i // 7, "kind": kind, "x": 1}
        for i in range(60)
        for kind in "ab"
    ]
    whole = pd.DataFrame(rows)
    floats = pd.DataFrame([*rows, {"home": "h", "person": None, "kind": "a", "x": 1}])
    assert floats.person.dtype.kind == "f"
    texts = whole.assign(person=whole.person.map(str))
    found = []
    for frame in (whole, floats, texts, pl.from_pandas(whole), pa.Table.from_pandas(whole)):
        table = Table(frame, unit=UNIT, columns=COLUMNS, rows=1)
        question = table.group_by("kind").agg(n=dp.count())
        found.append(without_noise(question).to_pandas().n.tolist())
    assert all(one == found[0] for one in found)
    assert min(found[0]) > 10
    assert sum(found[0]) == 60


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "home": st.sampled_from(["1", "11", None, "é"]),
            "person": st.sampled_from([1, 11, 2, None]),
            "x": st.integers(-5, 12) | st.none(),
            "kind": st.sampled_from(["a", "b", "c"]),
        }
    ),
    max_size=14,
)
AGE_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "home": st.sampled_from(["1", "11", "é", None]),
            "person": st.sampled_from(["1", "11", "2", "01", None]),
            "age": st.integers(0, 99),
        }
    ),
    max_size=8,
)
QUESTIONS = [
    "SELECT SUM(x) AS s, COUNT(*) AS n, COUNT_UNITS(*) AS u FROM t GROUP BY kind",
    "SELECT MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t",
    "SELECT SUM(age) AS s, COUNT(*) AS n FROM t JOIN ages USING (home, person) GROUP BY kind",
    (
        "SELECT SUM(x) AS s, COUNT(DISTINCT home, person) AS u FROM t LEFT JOIN ages a ON "
        "a.person = t.person AND t.home = a.home"
    ),
    (
        "SELECT SUM(v) AS s, COUNT(*) AS n FROM (SELECT home, person AS p, x AS v FROM t "
        "WHERE x > 1 UNION ALL SELECT home, person, age FROM ages) AS u"
    ),
]


def _ask(text: str, door: Door, tables: tuple[list[Row], list[Row]]) -> Answer:
    table = opened(tables[0], Caps(3, groups=1), tables[1])
    return release_question(door, table.question(text), QuestionPrice(1))


@pytest.mark.parametrize("text", QUESTIONS)
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_no_unit_shows(text: str, data: st.DataObject) -> None:
    tables = data.draw(st.tuples(ROWS, AGE_ROWS))
    home, person = data.draw(st.sampled_from(["1", "11", "é"])), data.draw(st.integers(1, 2))
    others = tuple(
        [row for row in rows if (row["home"], str(row["person"])) != (home, str(person))]
        for rows in tables
    )
    assume(others != tables)
    replay(partial(_ask, text), tables, others, seed=len(tables[0]))


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_its_text(text: str) -> None:
    table = opened([], Caps(3))
    question = table.question(text)
    again = table.question(str(question.query))
    assert (again.plan, str(again.query)) == (question.plan, str(question.query))


@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(ROWS, AGE_ROWS)
def test_rows_of_one_unit_meet(rows: list[Row], ages: list[Row]) -> None:
    table = opened(rows, Caps(99), ages)
    text = "SELECT COUNT(*) AS n FROM t JOIN ages USING (home, person)"
    known = [row for row in rows if row["home"] is not None and row["person"] is not None]
    expected = 0
    for row in known:
        own = (row["home"], str(row["person"]))
        expected += min(2, sum((one["home"], one["person"]) == own for one in ages))
    assert count(table, text) == expected
    called = table.join(table._beside["ages"], ["person", "home"])  # type: ignore[arg-type]  # a Table
    assert called.agg(n=dp.count()).plan == table.question(text).plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT COUNT(*) FROM t JOIN ages USING (home)", "joined on home, person"),
        ("SELECT COUNT(*) FROM t JOIN ages ON t.home = ages.person", "it identifies units"),
        ("SELECT COUNT(DISTINCT home) FROM t", "COUNT_UNITS"),
        ("SELECT COUNT(DISTINCT home, x) FROM t", "DISTINCT stands in"),
        ("SELECT COUNT(*) FROM (SELECT x AS home FROM t) s", "identifies units"),
        (
            (
                "SELECT COUNT(*) FROM (SELECT home, person, x FROM t UNION ALL "
                "SELECT person, home, age FROM ages) u"
            ),
            "at the same places",
        ),
    ],
)
def test_relations_that_mix_units_are_refused(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        opened([], Caps(3)).question(text)


@pytest.mark.parametrize("on", [["home"], ["person"], {"home": "person", "person": "home"}])
def test_tables_are_joined_on_the_whole_id(on: Any) -> None:
    table = opened([], Caps(3))
    with pytest.raises(InvalidArgument, match="joined on home, person"):
        table.join(table._beside["ages"], on)  # type: ignore[arg-type]  # a Table


def test_no_column_is_called_as_the_id_is() -> None:
    """Else it could be taken for the id of a relation's rows."""
    with pytest.raises(InvalidArgument, match="means the unit's id here"):
        dp.query.Declaration("t", UNIT, Caps(1), {"(home, person)": Column.integer(0, 9)})


def test_a_declared_column_of_the_id_is_a_value_too() -> None:
    columns = {"home": Column.text(keys=["1", "2"]), **COLUMNS}
    rows = pa.table(
        {"home": ["1", "1", "2"], "person": [1, 2, 1], "x": [1, 1, 1], "kind": [*"aab"]}
    )
    table = Table(rows, name="t", unit=UNIT, columns=columns, rows=1)
    question = table.question(
        "SELECT home, COUNT(*) AS n, COUNT_UNITS(*) AS u FROM t GROUP BY home"
    )
    assert [(row["n"], row["u"]) for row in without_noise(question).rows()] == [(2, 2), (1, 1)]
    (one,) = table.question("SELECT COUNT(DISTINCT home) AS n FROM t").query.aggregates
    assert one.function is AggregateFunction.COUNT_DISTINCT
    nested = "(SELECT home AS h, home, person FROM t) AS s JOIN t USING (home, person)"
    asked = table.question(f"SELECT h, COUNT(*) AS n FROM {nested} GROUP BY h")
    assert [row["n"] for row in without_noise(asked).rows()] == [2, 1]
    assert table.question(str(asked.query)).query == asked.query


def test_a_source_without_one_of_the_columns_is_refused() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1))
    rows, columns = pa.table({"home": ["1"], "x": [1]}), {"x": COLUMNS["x"]}
    table = Table(rows, unit=UNIT, columns=columns, rows=1, ledger=ledger)
    with pytest.raises(DeclarationError, match="no column 'person'"):
        table.agg(n=dp.count()).release(epsilon=1)
    assert ledger.spent().charges == 0


def test_a_ledger_keeps_the_columns(tmp_path: Path) -> None:
    path, limit = tmp_path / "a.ledger", dp.Limit(epsilon=9)
    ledger = dp.Ledger.create(path, unit=UNIT, limit=limit)
    rows = [{"home": "1", "person": 1, "x": 3, "kind": "a"}]
    table = opened(rows, Caps(1))
    mine = Table.declared(table.source, table.declaration, ledger)
    answer = mine.agg(n=dp.count()).release(epsilon=1)
    assert "('home', 'person')" in str(answer.receipt) or answer.receipt is not None
    del ledger, mine, answer
    again = dp.Ledger.open_or_create(path, unit=UNIT, limit=limit)
    assert again.spent().charges == 1
    del again
    for other in (dp.Unit(("person", "home")), dp.Unit("(home, person)"), dp.Unit("home")):
        with pytest.raises(dp.DiscreetError):
            dp.Ledger.open_or_create(path, unit=other, limit=limit)


def test_suggestions_and_diagnoses_take_the_whole_id() -> None:
    rows = pd.DataFrame(
        [{"home": h, "person": p, "x": 5} for h in range(100) for p in range(10) for _ in range(2)]
    )
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1000))
    found = suggest(rows, unit=UNIT, ledger=ledger, epsilon=400)
    assert (found.rows, [*found.columns]) == (2, ["x"])
    table = Table.declared(rows, found.declaration("t"), ledger)
    assert table.diagnose(epsilon=400).cuts[0].share == 0


TOML = """
[tables.t]
source = "t.csv"
unit = {unit}
rows = 2
ledger = {{ path = "t.ledger", epsilon = 2 }}
columns = {{ x = {{ type = "integer", lower = 0, upper = 9 }} }}
"""


def test_a_file_names_the_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("home,person,x\n1,1,2\n1,2,3\n11,2,4\n")
    path = tmp_path / "discreet.toml"
    path.write_text(TOML.format(unit='["home", "person"]'))
    table = dp.open(path)["t"]
    assert table.declaration.unit == UNIT
    assert count(table, "SELECT COUNT_UNITS(*) AS n FROM t") == 3
    for unit in ("[]", '["home"]', '["home", 1]', '["home", "HOME"]', '["home", ""]'):
        path.write_text(TOML.format(unit=unit))
        with pytest.raises(dp.DiscreetError, match="id column"):
            dp.open(path)
