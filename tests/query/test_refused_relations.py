"""Sub-queries, UNION ALL and joins: what is refused, and costs nothing."""

import datetime
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DeclarationError, QueryRefused
from discreet.query import Caps, Column, Declaration, Table
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._expressions._relation import (
    Joined,
    JoinStep,
    PerUnit,
    Selected,
    TableRef,
    United,
)
from discreet.query._facts._declaration import Through
from discreet.query._relations import _derived as derived
from tests.query.kit import without_noise
from tests.query.relation_rows import CAPS, UNIT, WEATHER, busy, opened


@pytest.mark.parametrize("check", ["_check_on_unit", "_check_each_once"])
def test_a_check_that_is_left_out_is_found(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusals below come from these checks alone."""
    monkeypatch.setattr(derived, check, lambda *_: None)
    table = opened(busy(1, 1), CAPS)
    if check == "_check_on_unit":
        table.question("SELECT COUNT(*) FROM events e JOIN persons p USING (day)")
    else:
        _of_rows().question("SELECT COUNT(*) FROM (SELECT x FROM r UNION ALL SELECT x FROM r) u")


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
def test_relations_that_mix_units_are_refused(text: str, said: str) -> None:
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
        opened(busy(1, 1), CAPS).question(text)


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
    table = opened(busy(1, 1), CAPS)
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
    table = opened(busy(2, 1), CAPS, ledger)
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
    events = opened(busy(2, 1), CAPS, dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9)))
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
    asked = opened(busy(1, 1), CAPS).beside(persons)
    for text in (
        "events JOIN persons USING (person)",
        "events e JOIN persons p ON e.person = p.other",
        "(SELECT x FROM events UNION ALL SELECT age FROM persons) u",
    ):
        with pytest.raises(QueryRefused):
            asked.question(f"SELECT COUNT(*) FROM {text}")


@pytest.mark.parametrize("one", [datetime.date(2020, 1, 1), Decimal("1.5"), True])
@pytest.mark.parametrize("other", [7, "7"])
def test_ids_whose_types_do_not_compare_are_refused_and_free(one: object, other: object) -> None:
    """Otherwise one unit would have two ids, and count twice."""
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=9))
    made = [
        Table(
            pa.table({"person": [id_], "x": [1]}),
            name=name,
            unit=UNIT,
            rows=1,
            columns={"x": Column.integer(0, 9)},
            ledger=ledger,
        )
        for name, id_ in (("a", one), ("b", other))
    ]
    for text in (
        "(SELECT x FROM a UNION ALL SELECT x FROM b) u",
        "a JOIN b USING (person)",
    ):
        question = made[0].beside(made[1]).question(f"SELECT COUNT(*) FROM {text}")
        with pytest.raises(DeclarationError, match="types that don't compare"):
            question.release(epsilon=1)
    assert ledger.spent().charges == 0


X, T, OPEN = ColumnRef("x"), TableRef("t"), TableRef("open")
OF_X = (("x", X),)
COUNT = Aggregate(AggregateFunction.COUNT, None, "n")


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        (lambda ids: Selected(T, (("PERSON", X),), None, ids), "identifies units"),
        (lambda _: Selected(T, (("y", X),)), "keep the unit's id"),
        (lambda _: PerUnit(T, (COUNT,), None, ()), "in FROM names person"),
        (lambda ids: PerUnit(TableRef("keyed"), (COUNT,), None, ids), "these rows have keys"),
        (lambda _: Joined(T, (JoinStep(OPEN),)), "columns of equal values"),
        (lambda _: Joined(OPEN, (JoinStep(T, (("x", "x"),)),)), "is not public"),
        (lambda ids: United((Selected(T, OF_X, None, ids), Selected(OPEN, OF_X))), "don't mix"),
    ],
)
@pytest.mark.parametrize("ids", [("person",), ("person", "city")])
def test_relations_that_no_text_can_ask_are_refused(
    ids: tuple[str, ...], relation: Callable[[tuple[str, ...]], Any], said: str
) -> None:
    """The texts that ask for them are refused as such."""
    columns, unit = {"x": Column.integer(0, 9)}, dp.Unit(ids if len(ids) > 1 else ids[0])
    own = Declaration("t", unit, Caps(2), columns)
    keyed = replace(own, name="keyed", through=Through("t", (("x", "x"),), 2, 1))
    public = Declaration("open", dp.Unit.ROW, Caps(1), columns)
    catalog = derived.Catalog({"t": own, "keyed": keyed, "open": public}, frozenset({"open"}))
    with pytest.raises(QueryRefused, match=said):
        derived.declaration_of(relation(ids), catalog)
