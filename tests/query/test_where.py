"""The facts that follow from WHERE hold in each row that meets it, and leave out what can't be."""

import datetime
from contextlib import suppress
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import QueryRefused
from discreet.query import Caps, Column, Declaration, Table
from discreet.query._expressions._expressions import (
    Both,
    ColumnRef,
    Comparison,
    Condition,
    Either,
    FunctionCall,
    Holds,
    IsNull,
    Literal,
    Membership,
    Negation,
    Relation,
    Scalar,
    Truth,
)
from discreet.query._expressions._keys import public_keys
from discreet.query._expressions._where import facts_where, keys_where
from discreet.query._functions._scalar_rules import ScalarFunction
from tests.query.kit import without_noise
from tests.query.reference import Value, constant, meaning, truth
from tests.query.wages import plan_sql

DAYS = [datetime.date(2024, 1, 30) + datetime.timedelta(days=n) for n in range(4)]
FACTS = Declaration(
    "t",
    dp.Unit("person"),
    Caps(8),
    {
        "year": Column.integer(keys=range(1980, 1984)),
        "place": Column.text(keys=["a", "B", "bb"], null="a"),
        "note": Column.text(),
        "flag": Column.boolean(null=True),
        "hours": Column.integer(0, 3, null=2),
        "code": Column.integer(),
        "wage": Column.number(0, 2, null=1),
        "price": Column.number(0, 2, decimals=1),
        "day": Column.date(DAYS[0], DAYS[-1], null=DAYS[1]),
        "visit": Column.date(keys=DAYS[:2]),
    },
)
VALUES: dict[str, list[Any]] = {
    "year": [1980, 1981, 1982, 1983, None],
    "place": [b"a", b"B", b"bb"],
    "note": [b"a", b"", b"z", None],
    "flag": [True, False],
    "hours": [0, 1, 2, 3],
    "code": [-(2**63), 0, 1, 5, 2**63 - 1, None],
    "wage": [0.0, 0.3, 1.0, 1.5, 2.0],
    "price": [0.0, 0.3, 1.0, 1.5, 2.0, None],
    "day": DAYS,
    "visit": [*DAYS[:2], None],
}
KEYS: list[Scalar] = [
    *map(ColumnRef, VALUES.keys() - {"wage", "price"}),
    FunctionCall(ScalarFunction.YEAR, (ColumnRef("visit"),)),
    FunctionCall(ScalarFunction.MONTH, (ColumnRef("day"),)),
    FunctionCall(ScalarFunction.LOWER, (ColumnRef("place"),)),
    Truth(Comparison(Relation.GREATER, ColumnRef("hours"), Literal(Fraction(1)))),
]


def _literals(name: str) -> st.SearchStrategy[Literal]:
    found = [one for one in VALUES[name] if one is not None]
    if isinstance(found[0], bytes):
        return st.sampled_from([*(one.decode() for one in found), "x"]).map(Literal)
    if isinstance(found[0], bool | datetime.date):
        return st.sampled_from(found).map(Literal)
    between = [Fraction(1, 2), Fraction(3, 10), Fraction(10) ** 30, Fraction(-(10**30))]
    return st.sampled_from([*map(Fraction, map(str, found)), *between]).map(Literal)


def _compared(value: Scalar, name: str) -> st.SearchStrategy[Condition]:
    relations, literals = st.sampled_from(list(Relation)), _literals(name)
    lists = st.lists(literals, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Comparison, relations, st.just(value), literals),
        st.builds(Comparison, relations, literals, st.just(value)),
        st.builds(Membership, st.just(value), lists),
        st.just(IsNull(value)),
    )


_SIMPLE = st.one_of(
    *(_compared(ColumnRef(name), name) for name in VALUES),
    _compared(KEYS[-2], "place"),
    _compared(KEYS[-3], "hours"),
    st.just(Holds(ColumnRef("flag"))),
    st.just(Comparison(Relation.GREATER, ColumnRef("hours"), Literal(Fraction(1)))),
    st.builds(
        Comparison,
        st.sampled_from(list(Relation)),
        st.sampled_from(["wage", "price"]).map(ColumnRef),
        st.just(ColumnRef("hours")),
    ),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        st.builds(Both, inner, inner), st.builds(Either, inner, inner), st.builds(Negation, inner)
    ),
    max_leaves=5,
)


_RANDOM = Random(19)
ROWS: list[dict[str, Value]] = [
    {name: _RANDOM.choice(values) for name, values in VALUES.items()} for _ in range(60)
]


def _valued(row: dict[str, Value], scalar: Scalar) -> Value:
    if isinstance(scalar, ColumnRef):
        return row[scalar.name]
    if isinstance(scalar, Literal):
        return constant(scalar)
    return meaning(scalar, lambda part: _valued(row, part))


@settings(max_examples=200)
@given(condition=CONDITIONS)
def test_each_row_that_meets_the_condition_has_the_facts(condition: Condition) -> None:
    facts = facts_where(condition, FACTS)
    keys = {key: public_keys(key, facts) for key in KEYS}
    left = {
        key: None if found is None else set(keys_where(condition, key, found))
        for key, found in keys.items()
    }
    for row in ROWS:
        if not truth(condition, partial(_valued, row)):
            continue
        for name, column in facts.columns.items():
            if row[name] is not None and column.range is not None:
                value = row[name].toordinal() if column.type.value == "date" else row[name]
                assert column.range[0] <= Fraction(str(value)) <= column.range[1]
        for key, found in left.items():
            value = _valued(row, key)
            plain = value.decode() if isinstance(value, bytes) else value
            assert found is None or plain is None or plain in found


@settings(max_examples=200)
@given(condition=CONDITIONS)
def test_no_condition_adds_keys(condition: Condition) -> None:
    """Not even one that no row can meet."""
    facts = facts_where(condition, FACTS)
    for key in KEYS:
        if (before := public_keys(key, FACTS)) is not None:
            after = public_keys(key, facts)
            assert after is not None
            assert set(after) <= set(before)


# what is left of keys, and of bounds
LEFT = [
    ("year = 1981", "year", [1981]),
    ("1981 < year", "year", [1982, 1983]),
    ("year <> 1980 AND NOT year IN (1981, 1990)", "year", [1982, 1983]),
    ("year = 1980 OR (year = 1983 AND wage > 1)", "year", [1980, 1983]),
    ("year = 1980 OR wage > 1", "year", [1980, 1981, 1982, 1983]),
    ("place LIKE 'b%' AND place <> 'a'", "place", ["B", "bb"]),
    ("UPPER(place) = 'B'", "place", ["B"]),
    ("place > 'Z'", "place", ["a", "bb"]),
    ("flag", "flag", [True]),
    ("NOT flag", "flag", [False]),
    ("day >= '2024-02-01'", "day", DAYS[2:]),
    ("MONTH(day) = 1", "day", DAYS[:2]),
    ("day >= '2024-02-01'", "MONTH(day)", [2]),
    ("hours = 2", "hours", [2]),
    ("hours < 1.5", "hours", [0, 1]),
    ("hours * 2 > 3", "hours", [0, 1, 2, 3]),
    ("hours > 1", "hours > 1", [True]),
    ("FLOOR(hours / 2) = 1", "FLOOR(hours / 2)", [1]),
    ("hours > 1", "FLOOR(hours / 2)", [1]),
    ("code BETWEEN 3 AND 4", "code", [3, 4]),  # nobody declared its keys
    ("code IN (9, 7) AND code <> 9", "code", [7]),
    ("note IN ('x', 'a')", "note", ["a", "x"]),
    ("note = 'x' OR note = 'a'", "note", ["a", "x"]),
]


@pytest.mark.parametrize(("where", "key", "left"), LEFT)
def test_the_groups_are_those_that_the_condition_leaves(
    where: str, key: str, left: list[Any]
) -> None:
    made = plan_sql(f"SELECT COUNT(*) FROM t WHERE {where} GROUP BY {key}", FACTS)
    assert [value for (value,) in made.groups] == left


@pytest.mark.parametrize("where", ["year = 1999", "year < 1980", "flag AND NOT flag"])
def test_a_condition_that_leaves_no_group_is_refused(where: str) -> None:
    key = where.split(maxsplit=1)[0]
    with pytest.raises(QueryRefused, match=f"WHERE excludes all values of {key}"):
        plan_sql(f"SELECT COUNT(*) FROM t WHERE {where} GROUP BY {key}", FACTS)


@pytest.mark.parametrize(
    ("where", "ends"),
    [
        ("wage <= 0.5", (0, 0.5)),
        ("wage > 0.5 AND wage < 1.5", (0.5, 1.5)),
        ("NOT (wage > 0.5 OR flag)", (0, 0.5)),
        ("wage = 1", (1, 2)),  # a column with one value is none
        ("wage > 7", (0, 2)),  # no row can meet it
        ("wage < 0.5 OR wage > 1.5", (0, 2)),
        ("price < 0.55", (0, 0.6)),
    ],
)
def test_sums_have_the_bounds_that_the_condition_leaves(
    where: str, ends: tuple[float, float]
) -> None:
    name = where.removeprefix("NOT (").split()[0]
    (total,) = plan_sql(f"SELECT SUM({name}) FROM t WHERE {where}", FACTS).sums
    assert total.grid is not None
    found = [float(end * total.grid.step) for end in (total.grid.lower, total.grid.upper)]
    assert found == pytest.approx(ends)


@pytest.mark.parametrize("key", ["FLOOR(x)", "i * 4", "FLOOR(x) - 1", "ROUND(x)"])
def test_a_key_has_the_type_that_the_engine_computes(key: str) -> None:
    """Within wide bounds it is no whole number: its values are refused or right, and never fail."""
    columns = {"x": Column.number(-(10**100), 10**100), "i": Column.integer(-(2**62), 2**62)}
    rows = pd.DataFrame({"x": [0.5, 1.5, 9.0], "i": [0, 1, 2]})
    ledger = dp.Ledger.in_memory(unit=dp.Unit.ROW, limit=dp.Limit(epsilon=10))
    table = Table(rows, name="t", unit=dp.Unit.ROW, columns=columns, ledger=ledger)
    where = "WHERE x BETWEEN 0 AND 5 AND i BETWEEN 0 AND 5"
    for text in (
        f"SELECT COUNT(*) AS n, SUM({key}) AS s, MEDIAN({key}) AS m FROM t {where}",
        f"SELECT {key} AS k, COUNT(*) AS n FROM t {where} GROUP BY {key}",
        f"SELECT MODE({key}) AS n FROM t {where}",
    ):
        with suppress(QueryRefused):
            table.sql(text, epsilon=1)
            continue
        assert "SUM" not in text


def test_answers_are_those_of_the_rows_that_meet_it() -> None:
    frame = pd.DataFrame(
        {
            "person": range(60),
            "year": [1980 + n % 4 for n in range(60)],
            "place": [["a", "B", "bb", None][n % 4 - n % 3] for n in range(60)],
            "hours": [n % 9 for n in range(60)],  # beyond the bounds, too
            "wage": [n % 7 / 2 - 0.5 for n in range(60)],
        }
    )
    columns = {name: FACTS.columns[name] for name in ("year", "place", "hours", "wage")}
    unit = dp.Unit("person")
    table = Table(frame, name="t", unit=unit, rows=1, columns=columns)
    clamped = frame.assign(hours=frame.hours.clip(0, 3), wage=frame.wage.clip(0, 2))
    rows = clamped[(clamped.wage <= 1.5) & (clamped.hours > 1) & (clamped.year != 1981)]
    answer = without_noise(
        table.question(
            "SELECT year, COUNT(*) AS n, SUM(wage) AS w, AVG(hours) AS h, MEDIAN(hours) AS m, "
            "MODE(place) AS p FROM t WHERE wage <= 1.5 AND hours > 1 AND year <> 1981 "
            "AND place <> 'a' GROUP BY year"
        )
    ).to_pandas()
    rows = rows[rows.place.isin(["B", "bb"])]
    found = rows.groupby("year").agg(n=("wage", "size"), w=("wage", "sum"), h=("hours", "mean"))
    assert answer.year.tolist() == found.index.tolist() == [1980, 1982, 1983]
    assert answer.n.tolist() == found.n.tolist()
    assert answer.w.tolist() == pytest.approx(found.w.tolist())
    assert answer.h.tolist() == pytest.approx(found.h.tolist())
    assert set(answer.p) <= {"B", "bb"}
    assert answer.m.between(2, 3).all()


def test_totals_add_up_the_groups_that_are_left() -> None:
    frame = pd.DataFrame({"person": range(8), "year": [1980, 1981, 1982, 1983] * 2})
    table = Table(
        frame, name="t", unit=dp.Unit("person"), rows=1, columns={"year": FACTS.columns["year"]}
    )
    question = table.question(
        "SELECT year, COUNT(*) AS n FROM t WHERE year < 1983 GROUP BY ROLLUP (year)"
    )
    assert without_noise(question).to_pandas().n.tolist() == [2, 2, 2, 6]


def test_a_relation_has_the_facts_of_its_own_condition() -> None:
    frame = pd.DataFrame({"person": range(8), "year": [1980, 1981, 1982, 1983] * 2})
    table = Table(
        frame, name="t", unit=dp.Unit("person"), rows=1, columns={"year": FACTS.columns["year"]}
    )
    question = table.question(
        "SELECT year, COUNT(*) AS n FROM (SELECT year FROM t WHERE year < 1982) AS s GROUP BY year"
    )
    assert without_noise(question).to_pandas().year.tolist() == [1980, 1981]
