"""Sub-queries, UNION ALL and joins: what they mean, that no unit shows, and what is refused."""

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
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
from discreet.errors import QueryRefused
from discreet.mechanisms import Door
from discreet.query import Answer, Caps, Column, QuestionPrice, Table, release_question
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._relations import _derived as derived
from discreet.query._relations import _related as related
from tests.query.kit import without_noise
from tests.query.wages import WAGES, plan_sql

Row = dict[str, Any]
Rows = list[Row]
UNIT = dp.Unit("person")
EVENTS = pa.schema({"person": pa.int64(), "day": pa.int64(), "kind": pa.string(), "x": pa.int64()})
PERSONS = pa.schema(
    {"person": pa.string(), "sex": pa.string(), "day": pa.int64(), "age": pa.int64()}
)
WEATHER = pa.table({"day": [1, 2, 3, 9], "rain": [4, 0, 7, 2], "name": ["a", "é", "b", "a'"]})
KINDS = ["a", "b", "é", "a'", ""]
COLUMNS = {
    "events": {
        "day": Column.integer(1, 9),
        "kind": Column.text(keys=KINDS),
        "x": Column.integer(-5, 20),
    },
    "persons": {
        "sex": Column.text(keys=["f", "m"], null="f"),
        "day": Column.integer(1, 9),
        "age": Column.integer(0, 99),
    },
}
CAPS = {"events": Caps(4, groups=2, rows_per_group=3), "persons": Caps(2)}
WIDE = {"events": Caps(60), "persons": Caps(60)}

_DAYS = st.one_of(st.none(), st.integers(1, 4), st.sampled_from([9, -(2**63), 2**63 - 1]))
_KINDS = st.one_of(st.none(), st.sampled_from([*KINDS, "zz", "é́", "A"]))
_X = st.one_of(st.none(), st.integers(-9, 30))
_IDS = st.one_of(st.none(), st.integers(0, 4))
EVENT_ROWS = st.fixed_dictionaries({"person": _IDS, "day": _DAYS, "kind": _KINDS, "x": _X})
PERSON_ROWS = st.fixed_dictionaries(
    {
        "person": st.one_of(
            st.none(), st.integers(0, 4).map(str), st.sampled_from(["07", "é", ""])
        ),
        "sex": st.one_of(st.none(), st.sampled_from(["f", "m", "x"])),
        "day": _DAYS,
        "age": _X,
    }
)
Both = tuple[Rows, Rows]
TABLES = st.tuples(st.lists(EVENT_ROWS, max_size=12), st.lists(PERSON_ROWS, max_size=8))


def opened(tables: Both, caps: dict[str, Caps], ledger: Any = None) -> Table:
    """The events, with the persons and the weather beside them."""
    events, persons = (
        Table.declared(
            pa.Table.from_pylist(rows, schema=schema),
            dp.query.Declaration(name, UNIT, caps[name], COLUMNS[name]),
            ledger,
        )
        for rows, schema, name in zip(tables, (EVENTS, PERSONS), ("events", "persons"), strict=True)
    )
    return events.beside(persons, dp.PublicTable(WEATHER, name="weather"))


# --- a reference in plain Python: the rows of each construct, of known units ---


def _clamped(value: int | None, low: int, high: int) -> int | None:
    return None if value is None else min(max(value, low), high)


def _events(tables: Both) -> Iterator[Row]:
    for row in tables[0]:
        if row["person"] is not None:
            day, x = _clamped(row["day"], 1, 9), _clamped(row["x"], -5, 20)
            yield {"person": str(row["person"]), "day": day, "kind": row["kind"], "x": x}


def _persons(tables: Both) -> Iterator[Row]:
    for row in tables[1]:
        if row["person"] is not None:
            sex = "f" if row["sex"] is None else row["sex"]
            day, age = _clamped(row["day"], 1, 9), _clamped(row["age"], 0, 99)
            yield {"person": row["person"], "sex": sex, "day": day, "age": age}


def _weather(_: Both) -> Iterator[Row]:
    yield from WEATHER.to_pylist()


Read = Callable[[Both], Iterator[Row]]


def _joined(left: Read, right: Read, *on: str, is_left: bool = False) -> Read:
    """Columns that both have are named a_ and b_ as well; those of the left keep their name."""

    def read(tables: Both) -> Iterator[Row]:
        for one in left(tables):
            met = [
                other
                for other in right(tables)
                if all(one[n] is not None and one[n] == other[n] for n in on)
            ]
            columns = next(right(([], [dict.fromkeys(PERSONS.names, "0") | {"day": 1, "age": 1}])))
            if is_left and not met:
                met = [dict.fromkeys(columns)]
            for other in met:
                yield other | {f"b_{n}": v for n, v in other.items()} | one

    return read


def _united(tables: Both) -> Iterator[Row]:
    for row in _events(tables):
        if row["x"] is not None and row["x"] > 1:
            yield {"person": row["person"], "k": "e", "v": row["x"] * 2, "day": row["day"]}
    for row in _persons(tables):
        yield {"person": row["person"], "k": "p", "v": row["age"], "day": row["day"]}


_UNITED = (
    "(SELECT person, 'e' AS k, x * 2 AS v, day FROM events WHERE x > 1 UNION ALL "
    "SELECT person, 'p', age, day FROM persons) AS u"
)

# FROM, its rows in Python, a value, a key, the same of a row in Python, and a condition
CONSTRUCTS: dict[str, tuple[str, Read, str, str, str, str, str, Callable[[Row], object]]] = {
    "a sub-query": (
        "(SELECT x + 1 AS y, kind AS k FROM events WHERE day > 1) AS s",
        lambda tables: (
            {**row, "y": None if row["x"] is None else row["x"] + 1}
            for row in _events(tables)
            if row["day"] is not None and row["day"] > 1
        ),
        "y",
        "k",
        "y",
        "kind",
        "y > 3",
        lambda row: row["y"] is not None and row["y"] > 3,
    ),
    "a join on the unit": (
        "events e JOIN persons p USING (person)",
        _joined(_events, _persons, "person"),
        "x",
        "sex",
        "x",
        "sex",
        "age > 3",
        lambda row: row["age"] is not None and row["age"] > 3,
    ),
    "a left join on the unit and a column": (
        "events e LEFT JOIN persons p ON p.person = e.person AND e.day = p.day",
        _joined(_events, _persons, "person", "day", is_left=True),
        "x + COALESCE(age, 1)",
        "kind",
        "",
        "kind",
        "p.day IS NULL",
        lambda row: row["b_day"] is None,
    ),
    "a join with a public table": (
        "events e JOIN weather w USING (day)",
        _joined(_events, _weather, "day"),
        "x * rain",
        "name",
        "",
        "name",
        "rain > 1",
        lambda row: row["rain"] > 1,
    ),
    "tables one after the other": (
        _UNITED,
        _united,
        "v",
        "k",
        "v",
        "k",
        "v < 25",
        lambda row: row["v"] is not None and row["v"] < 25,
    ),
    "all of it": (
        f"{_UNITED} JOIN persons q USING (person) LEFT JOIN weather w ON u.day = w.day",
        _joined(_joined(_united, _persons, "person"), _weather, "day", is_left=True),
        "v",
        "sex",
        "v",
        "sex",
        "rain IS NULL OR rain > 1",
        lambda row: row["rain"] is None or row["rain"] > 1,
    ),
}


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


def _busy(events: int, persons: int) -> Both:
    rest: Both = ([{"person": 2, "day": 1, "kind": "a", "x": 3}], [])
    own = (
        [{"person": 1, "day": 1 + n % 4, "kind": KINDS[n % 4], "x": 20} for n in range(events)],
        [{"person": "1", "sex": "fm"[n % 2], "day": 1, "age": 99 - n} for n in range(persons)],
    )
    return (own[0] + rest[0], own[1] + rest[1])


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_unit_with_too_much_moves_no_more_than_the_caps(name: str) -> None:
    for text in _texts(name):
        replay(partial(_ask, text), _busy(30, 7), _busy(0, 0))


def test_a_table_joins_no_more_of_a_unit_than_its_cap() -> None:
    """Otherwise the rows of one unit could make a join large."""
    source = CONSTRUCTS["a join on the unit"][0]
    question = opened(_busy(30, 9), CAPS).question(f"SELECT COUNT(*) AS n FROM {source}")
    found = question.table.source
    assert isinstance(found, related.RelationSource)
    with found.rows(["x", "person"]) as rows:
        assert rows.num_rows == 4 * 2
    assert question.plan.declaration.caps == Caps(8, groups=4, rows_per_group=8)
    assert any("4 of events, 2 of persons" in note for note in without_noise(question).notes)


def test_a_join_in_which_one_unit_could_have_very_many_rows_is_refused() -> None:
    table = opened(_busy(1, 1), {"events": Caps(101), "persons": Caps(100)})
    with pytest.raises(QueryRefused, match=r"10,100 joined rows .*declare fewer rows, or join"):
        table.question("SELECT COUNT(*) FROM events JOIN persons USING (person)")
    table = opened(_busy(1, 1), {"events": Caps(10**6), "persons": Caps(1)})
    table.question("SELECT COUNT(*) FROM events JOIN persons USING (person)")


def test_an_answer_says_how_many_rows_of_a_unit_a_union_takes_of_each_table() -> None:
    text = f"SELECT COUNT(*) AS n FROM {_UNITED}"
    notes = without_noise(opened(_busy(3, 1), CAPS).question(text)).notes
    assert any("rows in all: 4 of events, 2 of persons" in note for note in notes)


def test_no_amount_of_text_overflows_the_offsets_of_a_batch() -> None:
    """32-bit offsets would fail from 2 GiB in one batch, which one unit's texts may reach."""
    text = "SELECT COUNT(*) FROM (SELECT kind FROM events UNION ALL SELECT sex FROM persons) u"
    with opened(_busy(2, 1), CAPS).question(text).table.source.rows(["kind", "person"]) as rows:
        assert rows.schema.field("kind").type == pa.large_string()


@pytest.mark.parametrize("check", ["_check_on_unit", "_check_each_once"])
def test_a_check_that_is_left_out_is_found(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusals below come from these checks alone."""
    monkeypatch.setattr(derived, check, lambda *_: None)
    table = opened(_busy(1, 1), CAPS)
    if check == "_check_on_unit":
        table.question("SELECT COUNT(*) FROM events e JOIN persons p USING (day)")
    else:
        _of_rows().question("SELECT COUNT(*) FROM (SELECT x FROM r UNION ALL SELECT x FROM r) u")


# --- what is refused, and costs nothing ---


def _of_rows(**others: Any) -> Table:
    rows, same = (pa.table({"x": [1, 2], "day": [1, 2]}) for _ in range(2))
    columns = {"x": Column.integer(0, 9), "day": Column.integer(1, 9)}
    unit = dp.Unit.ROW
    ledger = dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=9))
    made = Table(rows, name="r", unit=unit, columns=columns, ledger=ledger)
    other = Table(same, name="q", unit=unit, columns=columns, ledger=ledger)
    return made.beside(other, dp.PublicTable(WEATHER, name="weather"), *others.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("events JOIN persons USING (day)", "joined on person"),
        ("events e JOIN persons p ON e.day = p.day", "joined on person"),
        ("events JOIN weather ON events.kind = weather.day", "kind is text, day is integer"),
        ("weather JOIN events USING (day)", "begins with a table that is not public"),
        ("events JOIN weather USING (person)", "it identifies units"),
        ("events e JOIN (SELECT day FROM events) f USING (day)", "joined on person"),
        ("(SELECT x FROM events UNION ALL SELECT kind FROM events) u", "of several types"),
        ("(SELECT x FROM events UNION ALL SELECT rain FROM weather) u", "don't mix"),
        ("(SELECT person, x FROM events UNION ALL SELECT x, person FROM events) u", "places"),
        ("(SELECT x AS person FROM events) s JOIN persons USING (person)", "identifies units"),
        (
            " JOIN ".join(["events"] + [f"events e{n} USING (person)" for n in range(8)]),
            "more than",
        ),
    ],
)
def test_what_would_mix_units_is_refused(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        opened(([], []), CAPS).question(f"SELECT COUNT(*) FROM {text}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(SELECT x FROM r UNION ALL SELECT x FROM r) u", "each row of r is a unit"),
        ("r JOIN q USING (x)", "each row is a unit here"),
        ("r a JOIN r b ON a.x = b.x", "each row is a unit here"),
    ],
)
def test_where_each_row_is_a_unit_it_counts_once(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        _of_rows().question(f"SELECT COUNT(*) FROM {text}")


def test_rows_that_are_units_are_united_and_joined_with_public_tables() -> None:
    table = _of_rows()
    text = "(SELECT x, day FROM r UNION ALL SELECT x, day FROM q) u JOIN weather w USING (day)"
    question = table.question(f"SELECT COUNT(*) AS n, SUM(x * rain) AS s FROM {text}")
    assert without_noise(question).rows()[0]["n"] == 4
    assert without_noise(question).rows()[0]["s"] == 8
    assert question.plan.declaration.caps == Caps(1)


def test_one_file_under_two_names_is_refused_where_rows_are_units(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,day\n1,1\n")
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9))
    columns = {"x": Column.integer(0, 9)}
    one, other = (
        Table(path, name=name, unit=dp.Unit.ROW, columns=columns, ledger=ledger) for name in "ab"
    )
    asked = one.beside(other).question(
        "SELECT COUNT(*) FROM (SELECT x FROM a UNION ALL SELECT x FROM b) u"
    )
    with pytest.raises(QueryRefused, match="have the same rows"):
        asked.release(epsilon=1)
    assert ledger.spent().charges == 0


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_one_frame_under_two_names_is_refused_where_rows_are_units(make: Any) -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9))
    declare = partial(Table, unit=dp.Unit.ROW, columns={"x": Column.integer(0, 9)}, ledger=ledger)
    frame, equal = make({"x": [1, 2]}), make({"x": [1, 2]})
    one, other, third = (
        declare(rows, name=name) for rows, name in zip((frame, frame, equal), "abc", strict=True)
    )
    with pytest.raises(QueryRefused, match="have the same rows"):
        one.union_all(other).agg(n=dp.count()).release(epsilon=1)
    one.union_all(third).agg(n=dp.count()).release(epsilon=1)
    assert ledger.spent().charges == 1


def _numbers(count: int) -> dict[str, list[int]]:
    return {"x": list(range(count)), "y": list(range(count))}


SLICES: dict[str, tuple[Any, Callable[[Any], list[Any]], Callable[[Any], Any]]] = {
    "pandas": (
        pd.DataFrame(_numbers(90)),
        lambda frame: [frame[10:], frame[:0], frame[::2], frame[["x"]], frame.assign(z=1)],
        pd.DataFrame.copy,
    ),
    "polars": (
        pl.DataFrame(_numbers(90)),
        lambda frame: [frame[10:], frame[:9], frame.clone(), frame.with_columns(z=1)],
        lambda frame: pl.DataFrame(frame.to_dict(as_series=False)),
    ),
    "arrow": (
        pa.table({name: pa.array(values) for name, values in _numbers(90).items()}),
        lambda rows: [rows.slice(10), rows.slice(0, 0), rows.select(["x"]), rows.slice(89, 1)],
        lambda rows: pa.table(rows.to_pydict()),
    ),
    "texts": (
        pa.table({"x": ["a", "bc", ""] * 30}),
        lambda rows: [rows.slice(10), rows.slice(0, 1)],
        lambda rows: pa.table(rows.to_pydict()),
    ),
    "truth values": (
        pa.table({"x": [True, False] * 45}),
        lambda rows: [rows.slice(10), rows.slice(0, 1)],
        lambda rows: pa.table(rows.to_pydict()),
    ),
}


@pytest.mark.parametrize("kind", SLICES)
def test_slices_of_one_frame_are_refused_where_rows_are_units(kind: str) -> None:
    """All of them: the number of rows may decide whether two slices overlap."""
    frame, slices, copied = SLICES[kind]
    columns = {"texts": Column.text(), "truth values": Column.boolean()}
    columns = {"x": columns.get(kind, Column.integer(0, 99))}
    declare = partial(Table, unit=dp.Unit.ROW, columns=columns)
    first = declare(slices(frame)[0], name="a")
    for other in slices(frame):
        with pytest.raises(QueryRefused, match="slices of one frame"):
            without_noise(first.union_all(declare(other, name="b")).agg(n=dp.count()))
    for one in (frame, slices(frame)[0]):
        other = copied(one)
        made = first.union_all(declare(other, name="b")).agg(n=dp.count())
        assert without_noise(made).rows()[0]["n"] == len(slices(frame)[0]) + len(other)


def test_one_file_by_two_links_is_refused_where_rows_are_units(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").hardlink_to(tmp_path / "a.csv")
    (tmp_path / "c.csv").symlink_to(tmp_path / "a.csv")
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=9))
    declare = partial(Table, unit=dp.Unit.ROW, columns={"x": Column.integer(0, 9)}, ledger=ledger)
    one, *others = (declare(tmp_path / f"{name}.csv", name=name) for name in "abc")
    for other in others:
        with pytest.raises(QueryRefused, match="have the same rows"):
            one.union_all(other).agg(n=dp.count()).release(epsilon=1)


def test_a_joined_table_answers_for_its_own_rows_only() -> None:
    """The plan of another table's question would bound other rows than those that are read."""
    table = opened(_busy(2, 1), CAPS)
    persons = opened(_busy(2, 1), CAPS)._beside["persons"]
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


def test_what_caps_and_bounds_cut_is_asked_of_the_tables_of_a_join() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    table = opened(_busy(30, 9), CAPS, ledger)
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT SUM(x) FROM weather JOIN events USING (day)", "write FROM events JOIN weather"),
        (
            "SELECT SUM(x) FROM events e JOIN persons p ON e.person = p.person AND e.day = 3",
            "put other conditions in WHERE",
        ),
        ("WITH RECURSIVE t AS (SELECT x FROM events) SELECT SUM(x) FROM t", "recursion is refused"),
        (
            "WITH t AS (SELECT x FROM events UNION ALL SELECT x FROM t) SELECT SUM(x) FROM t",
            "recursion is refused",
        ),
    ],
)
def test_a_refusal_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        opened(_busy(1, 1), CAPS).question(text)


def test_an_id_in_one_part_of_a_union_only_is_refused() -> None:
    """COUNT(DISTINCT person) would mean the units, and not the values of both parts."""
    columns = {"person": Column.integer(0, 9), "x": Column.integer(0, 9)}
    one = Table(pa.table({"person": [1], "x": [1]}), name="p", unit=UNIT, columns=columns, rows=1)
    united = "(SELECT person, x FROM p UNION ALL SELECT {}, x FROM p) AS u"
    text = f"SELECT COUNT(DISTINCT person) FROM {united}"
    (asked,) = one.question(text.format("person")).query.aggregates
    assert asked.function is AggregateFunction.COUNT_UNITS
    for other in ("x AS y", "person + 0 AS y"):
        with pytest.raises(QueryRefused, match="the unit's id at the same places"):
            one.question(text.format(other))


def test_a_column_that_both_tables_have_is_named_with_its_table() -> None:
    table = opened(_busy(1, 1), CAPS)
    persons = table._beside["persons"]
    assert isinstance(persons, Table)
    joined = table.join(persons, "person")
    with pytest.raises(QueryRefused, match=r"several tables: name events\.day or persons\.day"):
        joined.agg(x=dp.mean("day"))
    joined.agg(x=dp.mean("events.day"))


def test_two_columns_of_a_join_that_would_have_one_name_are_refused() -> None:
    columns = {"x": Column.integer(0, 9), "q.x": Column.integer(0, 9)}
    rows = pa.table({"person": [1], "x": [1], "q.x": [2]})
    one = Table(rows, name="p", unit=UNIT, columns=columns, rows=1)
    other = Table(rows, name="q", unit=UNIT, columns={"x": columns["x"]}, rows=1)
    with pytest.raises(QueryRefused, match=r"two columns would be called \"q.x\""):
        one.join(other, "person")


def test_a_public_table_that_a_row_would_meet_twice_is_refused_and_free() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    table = opened(_busy(2, 1), CAPS, ledger)
    twice = dp.PublicTable(pa.table({"day": [1, 1], "rain": [1, 2]}), name="twice")
    for text in ("events JOIN twice USING (day)", "events LEFT JOIN twice USING (day)"):
        question = table.beside(twice).question(f"SELECT SUM(rain) FROM {text}")
        with pytest.raises(QueryRefused, match="several rows with the same values"):
            question.release(epsilon=1)
    once = "(SELECT day, rain FROM twice WHERE rain > 1) w"
    text = f"SELECT SUM(rain) FROM events JOIN {once} USING (day)"
    table.beside(twice).question(text).release(epsilon=1)
    assert ledger.spent().charges == 1


def test_two_ledgers_are_refused() -> None:
    events = opened(_busy(2, 1), CAPS, dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9)))
    persons = Table(
        pa.table({"person": [1], "age": [3]}),
        name="persons",
        unit=UNIT,
        rows=1,
        columns={"age": Column.integer(0, 9)},
        ledger=dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9)),
    )
    asked = events.beside(persons)
    with pytest.raises(QueryRefused, match="two ledgers"):
        asked.question("SELECT SUM(x) FROM events JOIN persons USING (person)")
    with pytest.raises(QueryRefused, match="two ledgers"):
        events.join(persons, "person")


@pytest.mark.parametrize("unit", [dp.Unit("other"), UNIT.with_change(dp.Change.REPLACE)])
def test_two_units_are_refused(unit: dp.Unit) -> None:
    columns = {"age": Column.integer(0, 9)}
    rows = pa.table({"person": [1], "other": [1], "age": [3]})
    persons = Table(rows, name="persons", unit=unit, rows=1, columns=columns)
    asked = opened(_busy(1, 1), CAPS).beside(persons)
    for text in (
        "events JOIN persons USING (person)",
        "events e JOIN persons p ON e.person = p.other",
        "(SELECT x FROM events UNION ALL SELECT age FROM persons) u",
    ):
        with pytest.raises(QueryRefused):
            asked.question(f"SELECT COUNT(*) FROM {text}")


def test_a_changed_public_table_is_another_question() -> None:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    text = "SELECT SUM(rain) FROM events JOIN weather USING (day)"
    table = opened(_busy(2, 1), CAPS, ledger)
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
    tables = _busy(3, 2)
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
