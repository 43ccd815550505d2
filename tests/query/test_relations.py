"""Sub-queries, UNION ALL and joins: what they mean, and that no unit shows."""

import datetime
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.audit import replay
from discreet.errors import QueryRefused
from discreet.mechanisms import Door
from discreet.query import Answer, Caps, Column, QuestionPrice, Table, release_question
from discreet.query._relations import _related as related
from tests.query.kit import without_noise
from tests.query.relation_rows import (
    CAPS,
    COLUMNS,
    CONSTRUCTS,
    PERSONS,
    TABLES,
    UNIT,
    UNITED,
    WEATHER,
    WIDE,
    Both,
    Row,
    Rows,
    busy,
    opened,
)
from tests.query.wages import WAGES, plan_sql
from tests.tables import one_in


def _value(name: str, row: Row) -> int | None:
    match name:
        case "a left join on the unit and a column":
            return (
                None if row["x"] is None else row["x"] + (1 if row["age"] is None else row["age"])
            )
        case "a join with a public table":
            return None if row["x"] is None else row["x"] * row["rain"]
    found: int | None = row[CONSTRUCTS[name][4]]
    return found


@pytest.mark.parametrize("name", CONSTRUCTS)
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(TABLES)
def test_sums_are_those_of_plain_python(name: str, tables: Both) -> None:
    source, read, value, key, _, own_key, condition, holds = CONSTRUCTS[name]
    table = opened(tables, WIDE)
    question = table.question(
        f"SELECT {key} AS k, SUM({value}) AS s, COUNT(*) AS n, COUNT({value}) AS c "
        f"FROM {source} WHERE {condition} GROUP BY {key}"
    )
    rows = [row for row in read(tables) if holds(row)]
    for got in without_noise(question).rows():
        own = [row for row in rows if row[own_key] == got["k"]]
        values = [v for v in (_value(name, row) for row in own) if v is not None]
        assert (got["s"], got["n"], got["c"]) == (sum(values), len(own), len(values)), got
    again = table.question(str(question.query))
    assert (again.plan, str(again.query)) == (question.plan, str(question.query))


def _without(rows: Rows, who: str) -> Rows:
    return [row for row in rows if row["person"] is None or str(row["person"]) != who]


def _ask(text: str, door: Door, tables: Both) -> Answer:
    return release_question(door, opened(tables, CAPS).question(text), QuestionPrice(1))


def _texts(name: str) -> list[str]:
    source, _, value, key, _, _, condition, _ = CONSTRUCTS[name]
    return [
        f"SELECT SUM({value}) AS s, COUNT(*) AS n FROM {source}",
        f"SELECT AVG({value}) AS a, MEDIAN({value}) AS m FROM {source} WHERE {condition}",
        f"""SELECT SUM({value}) AS s, COUNT_UNITS(*) AS u, COUNT(DISTINCT {value}) AS d
        FROM {source} GROUP BY {key}""",
    ]


def _replayed(name: str, data: st.DataObject) -> None:
    tables = data.draw(TABLES)
    who = data.draw(st.integers(0, 4).map(str))
    other = tuple(data.draw(st.permutations(_without(rows, who))) for rows in tables)
    assume(other != tables)
    text = data.draw(st.sampled_from(_texts(name)))
    run = replay(partial(_ask, text), tables, other, seed=len(tables[0]))
    assert run.facts("released"), run.events


@pytest.mark.parametrize("name", CONSTRUCTS)
@settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_no_unit_shows(name: str, data: st.DataObject) -> None:
    _replayed(name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", CONSTRUCTS)
@settings(max_examples=300, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_no_unit_shows_in_many_more(name: str, data: st.DataObject) -> None:
    _replayed(name, data)


# --- a unit with more rows than its caps ---


@pytest.mark.parametrize("text", one_in(2, chain.from_iterable(map(_texts, CONSTRUCTS))))
def test_a_unit_with_too_much_moves_no_more_than_the_caps(text: str) -> None:
    """Three texts of each construct, of which `make test` tries one or two."""
    replay(partial(_ask, text), busy(30, 7), busy(0, 0))


def test_a_table_joins_no_more_of_a_unit_than_its_cap() -> None:
    """Otherwise the rows of one unit could make a join large."""
    source = CONSTRUCTS["a join on the unit"][0]
    question = opened(busy(30, 9), CAPS).question(f"SELECT COUNT(*) AS n FROM {source}")
    found = question.table.source
    assert isinstance(found, related.RelationSource)
    with found.rows(["x", "person"]) as rows:
        assert rows.num_rows == 4 * 2
    assert question.plan.declaration.caps == Caps(8, groups=4, rows_per_group=8)
    assert any("4 of events, 2 of persons" in note for note in without_noise(question).notes)


def test_a_join_in_which_one_unit_could_have_very_many_rows_is_refused() -> None:
    table = opened(busy(1, 1), {"events": Caps(101), "persons": Caps(100)})
    with pytest.raises(QueryRefused, match=r"10,100 joined rows .*declare fewer rows, or join"):
        table.question("SELECT COUNT(*) FROM events JOIN persons USING (person)")
    table = opened(busy(1, 1), {"events": Caps(10**6), "persons": Caps(1)})
    table.question("SELECT COUNT(*) FROM events JOIN persons USING (person)")


def test_an_answer_says_how_many_rows_of_a_unit_a_union_takes_of_each_table() -> None:
    text = f"SELECT COUNT(*) AS n FROM {UNITED}"
    notes = without_noise(opened(busy(3, 1), CAPS).question(text)).notes
    assert any("rows in all: 4 of events, 2 of persons" in note for note in notes)


def test_no_amount_of_text_overflows_the_offsets_of_a_batch() -> None:
    """32-bit offsets would fail from 2 GiB in one batch, which one unit's texts may reach."""
    text = "SELECT COUNT(*) FROM (SELECT kind FROM events UNION ALL SELECT sex FROM persons) u"
    with opened(busy(2, 1), CAPS).question(text).table.source.rows(["kind", "person"]) as rows:
        assert rows.schema.field("kind").type == pa.large_string()


def test_a_joined_table_answers_for_its_own_rows_only() -> None:
    """The plan of another table's question would bound other rows than those that are read."""
    table = opened(busy(2, 1), CAPS)
    persons = opened(busy(2, 1), CAPS)._beside["persons"]
    assert isinstance(persons, Table)
    weather = dp.PublicTable(WEATHER, name="weather")
    for made in (table.join(persons, "person"), table.join(weather, "day")):
        again = f"SELECT COUNT(*) FROM {made.declaration.name}"
        assert made.question(again).plan.declaration == made.declaration
        with pytest.raises(QueryRefused, match="not the rows of the table that is asked"):
            made.question("SELECT SUM(x) FROM events")
    joined = table.join(weather, "day")
    for asked in ("weather", "(SELECT rain FROM weather UNION ALL SELECT rain FROM weather) u"):
        for one in (joined, table):
            with pytest.raises(QueryRefused, match="a public table is read, not asked"):
                one.question(f"SELECT SUM(rain) FROM {asked}")


def test_caps_and_bounds_are_diagnosed_at_the_tables_of_a_join() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    table = opened(busy(30, 9), CAPS, ledger)
    join = "events JOIN persons USING (person)"
    nested = f"(SELECT x FROM {join} UNION ALL SELECT x FROM events) u"
    for text in (join, nested):
        question = table.question(f"SELECT COUNT(*) FROM {text}")
        with pytest.raises(
            QueryRefused, match=r"diagnose each table by itself \(events, persons\)"
        ):
            question.diagnose(epsilon=1)
        related: Any = question.table  # Any: a `Table`
        for ask in (related.suggest, partial(related.share_of_null, "x")):
            with pytest.raises(QueryRefused, match=r"the tables themselves \(events, persons\)"):
                ask(epsilon=1)
    assert ledger.spent().charges == 0
    table.question("SELECT COUNT(*) FROM events JOIN weather USING (day)").diagnose(epsilon=1)


def test_a_changed_public_table_is_another_question() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    text = "SELECT SUM(rain) FROM events JOIN weather USING (day)"
    table = opened(busy(2, 1), CAPS, ledger)
    first = table.question(text).release(epsilon=1, request="r")
    assert table.question(text).release(epsilon=1, request="r").rows() == first.rows()
    values = WEATHER["rain"].to_pylist()
    values[0], values[2] = values[2], values[0]
    changed = dp.PublicTable(WEATHER.set_column(1, "rain", [values]), name="weather")
    with pytest.raises(dp.DiscreetError):
        table.beside(changed).question(text).release(epsilon=1, request="r")
    assert ledger.spent().charges == 1


def test_names_of_queries_are_read_away() -> None:
    plain = plan_sql("SELECT place AS p, SUM(wage + 1) AS s FROM wages GROUP BY place", WAGES)
    for text in (
        "SELECT p, SUM(v) AS s FROM (SELECT wage + 1 AS v, place AS p FROM wages) q GROUP BY p",
        """WITH a AS (SELECT wage w, place p FROM wages), b AS (SELECT w + 1 AS v, p FROM a)
        SELECT p, SUM(b.v) AS s FROM b GROUP BY p""",
        """SELECT p, SUM(wage + 1) s
        FROM (SELECT * FROM (SELECT wage, place AS p FROM wages) x) y GROUP BY 1""",
    ):
        assert plan_sql(text, WAGES) == plain


def test_queries_that_repeat_values_stay_small() -> None:
    chain = ", ".join(
        f"t{n} AS (SELECT x{n} + x{n} AS x{n + 1} FROM {f't{n - 1}' if n else 'base'})"
        for n in range(40)
    )
    text = f"WITH base AS (SELECT wage AS x0 FROM wages), {chain} SELECT SUM(x40) FROM t39"
    with pytest.raises(QueryRefused, match="repeats too long a value"):
        plan_sql(text, WAGES)


def test_calls_and_sql_ask_alike() -> None:
    tables = busy(3, 2)
    events, persons = opened(tables, CAPS), opened(tables, CAPS)
    weather = dp.PublicTable(WEATHER, name="weather")
    people = Table.declared(
        pa.Table.from_pylist(tables[1], schema=PERSONS),
        dp.query.Declaration("persons", UNIT, CAPS["persons"], COLUMNS["persons"]),
    )
    called = events.join(people, "person").join(weather, {"events.day": "day"}, keep_unmatched=True)
    asked = persons.question(
        "SELECT sex, SUM(rain) AS s FROM events e JOIN persons USING (person) "
        "LEFT JOIN weather w ON e.day = w.day GROUP BY sex"
    )
    question = called.group_by("sex").agg(s=dp.sum("rain"))
    assert question.plan == asked.plan
    assert without_noise(question).rows() == without_noise(asked).rows()
    twice = events.union_all(events).agg(n=dp.count())
    assert without_noise(twice).rows()[0]["n"] == 2 * 4


def test_a_dated_key_of_a_union_has_the_keys_of_its_parts() -> None:
    days = [datetime.date(2024, 1, 31), datetime.date(2024, 3, 1)]
    columns = {"d": Column.date(days[0], days[1])}
    rows = pa.table({"person": [1, 2], "d": days})
    table = Table(rows, name="t", unit=UNIT, rows=1, columns=columns)
    question = table.question(
        "SELECT m, COUNT(*) AS n FROM (SELECT DATE_TRUNC('month', d) AS m FROM t UNION ALL "
        "SELECT DATE_TRUNC('month', d) FROM t) u GROUP BY m"
    )
    assert [row["n"] for row in without_noise(question).rows()] == [2, 0, 2]
    assert replace(question.plan.declaration.caps) == Caps(2)


def test_a_frame_is_no_relation_whatever_its_columns_are_called() -> None:
    names = ["label", "types", "rows", "schema", "person"]
    frame = pd.DataFrame({name: [1, 2] for name in names})
    columns = {name: Column.integer(0, 9) for name in names[:4]}
    table = Table(frame, name="t", unit=UNIT, rows=1, columns=columns)
    assert without_noise(table.agg(n=dp.sum("schema"))).rows()[0]["n"] == 3


FILE = """
[tables.events]
source = "events.csv"
unit = "person"
rows = 2
ledger = { path = "one.ledger", epsilon = 2 }

[tables.events.columns]
x = { type = "integer", lower = 0, upper = 9 }
day = { type = "integer", lower = 1, upper = 9 }

[tables.persons]
source = "persons.csv"
unit = "person"
rows = 1
ledger = { path = "LEDGER", epsilon = 2 }
columns = { sex = { type = "text", keys = ["f", "m"] } }

[public.days]
source = "days.csv"
"""


@pytest.mark.parametrize("ledger", ["one.ledger", "./one.ledger", "other.ledger"])
def test_tables_of_a_file_stand_beside_one_another(ledger: str, tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text(FILE.replace("LEDGER", ledger))
    (tmp_path / "events.csv").write_text("person,x,day\n1,3,1\n1,4,2\n2,5,2\n")
    (tmp_path / "persons.csv").write_text("person,sex\n1,f\n2,m\n2,f\n")
    (tmp_path / "days.csv").write_text("day,holiday\n1,true\n2,false\n")
    tables = dp.open(tmp_path / "discreet.toml")
    table = tables["events"]
    by_holiday = table.join(tables.public["days"], "day").group_by("holiday")
    assert len(without_noise(by_holiday.agg(n=dp.count())).rows()) == 2
    text = (
        "SELECT holiday, SUM(x) AS s FROM events JOIN persons USING (person) "
        "JOIN days ON events.day = days.day GROUP BY holiday"
    )
    if ledger == "other.ledger":
        with pytest.raises(QueryRefused, match="two ledgers"):
            table.question(text)
        return
    rows = without_noise(table.question(text)).rows()
    assert [(row["holiday"], row["s"]) for row in rows] == [(False, 9), (True, 3)]
    table.sql(text, epsilon=1)
    assert table.ledger.spent().charges == 1  # type: ignore[attr-defined]  # of a Ledger
