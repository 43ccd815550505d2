"""Texts are compared by their bytes, whatever collation the source compares them by."""

import itertools
import operator
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pytest

from discreet._unit import Change, Unit
from discreet.audit import replay
from discreet.errors import QueryRefused
from discreet.mechanisms import Door
from discreet.query import (
    Answer,
    Caps,
    Column,
    Declaration,
    Query,
    Question,
    QuestionPrice,
    Table,
    release_question,
)
from discreet.query._bounding import _bounding
from discreet.query._engines import _duckdb
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import (
    Aggregate,
    ColumnRef,
    Comparison,
    Condition,
    Literal,
    Membership,
    Relation,
)
from discreet.query._plan import _plan
from tests.query import chosen
from tests.query.kit import without_noise

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

TEXTS = [
    "",
    " ",
    "a",
    "A",
    "a ",
    " a",
    "á",
    "a\u0301",
    "Á",
    "ß",
    "SS",
    "ss",
    "ﬁ",
    "fi",
    "\0",
    "a\0",
]
KEYS = [text for text in TEXTS if text not in ("Á", "SS", "fi")]
COLLATIONS = ["NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT"]
PLACES = [*(f"COLLATE {name}" for name in COLLATIONS), *(f"default {name}" for name in COLLATIONS)]

SCHEMA = pa.schema({"person": pa.string(), "place": pa.string(), "wage": pa.int64()})
Rows = list[dict[str, Any]]  # Any: values of any column
ROWS: Rows = [
    {"person": person, "place": place, "wage": 1 + index % 50}
    for index, (person, place) in enumerate(itertools.product(TEXTS, [*TEXTS, None]))
]


def in_duckdb(rows: Rows, where: str) -> ir.Table:
    """The rows as a table whose texts are compared in another way."""
    connection = ibis.duckdb.connect()
    collation = where if where.startswith("COLLATE") else ""
    if not collation:
        connection.raw_sql(f"SET default_collation = '{where.removeprefix('default ')}'")
    connection.raw_sql(
        f"CREATE TABLE t (person VARCHAR {collation}, place VARCHAR {collation}, wage BIGINT)"
    )
    connection.con.register("rows", pa.Table.from_pylist(rows, SCHEMA))
    connection.raw_sql("INSERT INTO t SELECT * FROM rows")
    return connection.table("t")


def declaration(
    groups: int, change: Change = Change.ADD_REMOVE, null: str | None = None
) -> Declaration:
    columns = {
        "place": Column.text(keys=KEYS, null=null),
        "wage": Column.integer(0, 60),
    }
    return Declaration(
        "t", Unit("person", change), Caps(groups * 2, groups=groups, rows_per_group=2), columns
    )


def asked(where: Condition | None = None) -> Query:
    return Query(
        "t", (Aggregate(AggregateFunction.SUM, ColumnRef("wage"), "pay"),), ("place",), where
    )


def asking_by_place(declared: Declaration) -> Callable[[Door, ir.Table], Answer]:
    def act(door: Door, table: ir.Table) -> Answer:
        return release_question(
            door, Question.of(Table.declared(table, declared), asked()), QuestionPrice(1)
        )

    return act


def reference(
    rows: Rows, declared: Declaration, holds: Callable[[str], bool] = lambda place: True
) -> list[int]:
    """The sums of the same question, in plain Python."""
    groups = [(("place", key),) for key in sorted(KEYS)]
    place_of = {key: place for place, key in enumerate(sorted(KEYS))}
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    null = declared.columns["place"].null
    assert null is None or isinstance(null, str)
    for row in rows:
        place = null if row["place"] is None else row["place"]
        if place is not None and place in place_of and holds(place):
            sums[row["person"]][place_of[place]] += row["wage"]
    total = [0] * len(KEYS)
    for person, mine in sums.items():
        for place in chosen.kept(person, groups, mine, declared.caps.groups):
            total[place] += mine[place]
    return total


RELATIONS: dict[Relation, Callable[[str, str], bool]] = {
    Relation.EQUAL: operator.eq,
    Relation.UNEQUAL: operator.ne,
    Relation.LESS: operator.lt,
    Relation.AT_LEAST: operator.ge,
}
CHOSEN = ("a", "Á", "ß", "\0")


def compared(relation: Relation, text: str) -> tuple[Condition, Callable[[str], bool]]:
    condition = Comparison(relation, ColumnRef("place"), Literal(text))
    return condition, lambda place: RELATIONS[relation](place, text)


CONDITIONS = [
    (Membership(ColumnRef("place"), tuple(map(Literal, CHOSEN))), CHOSEN.__contains__),
    *(compared(relation, text) for relation in RELATIONS for text in ("a", "SS")),
]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(("groups", "null"), [(1, None), (3, "a"), (20, "")])
def test_keys_and_ids_that_a_collation_takes_for_one_are_apart(
    where: str, groups: int, null: str | None
) -> None:
    declared = declaration(groups, null=null)
    question = Question.of(Table.declared(in_duckdb(ROWS, where), declared), asked())
    answer = without_noise(question).to_pandas()
    assert answer.place.tolist() == sorted(KEYS)
    assert answer.pay.tolist() == reference(ROWS, declared)


@pytest.mark.parametrize("where", ["COLLATE NOCASE", "default NOCASE.NOACCENT"])
@pytest.mark.parametrize(("condition", "holds"), CONDITIONS, ids=map(str, range(len(CONDITIONS))))
def test_conditions_compare_bytes(
    where: str, condition: Condition, holds: Callable[[str], bool]
) -> None:
    """And keys that the condition excludes have no group."""
    declared, keys = declaration(20), sorted(KEYS)
    table = Table.declared(in_duckdb(ROWS, where), declared)
    if not any(map(holds, keys)):
        with pytest.raises(QueryRefused, match="excludes all values of place"):
            Question.of(table, asked(condition))
        return
    answer = without_noise(Question.of(table, asked(condition))).to_pandas()
    sums = reference(ROWS, declared, holds)
    expected = [(key, one) for key, one in zip(keys, sums, strict=True) if holds(key)]
    assert [*zip(answer.place, answer.pay, strict=True)] == expected


@pytest.mark.parametrize("where", ["COLLATE NOCASE", "default NOCASE.NOACCENT"])
@pytest.mark.parametrize("change", Change)
def test_nobody_shows_among_ids_that_a_collation_takes_for_one(where: str, change: Change) -> None:
    generator = random.Random(where)
    declared = declaration(1, change)

    for _ in range(2):
        rows = generator.sample(ROWS, 60)
        who = generator.choice(rows)["person"]
        rest = [row for row in rows if row["person"] != who]
        fresh = [row for row in ROWS if row["person"] == who] if change is Change.REPLACE else []
        replay(asking_by_place(declared), in_duckdb(rows, where), in_duckdb(rest + fresh, where))


@pytest.mark.parametrize("where", ["COLLATE NOCASE", "default NOCASE"])
@pytest.mark.parametrize("places", [("a", "ss"), ("ss", "a")])
@pytest.mark.parametrize("who", ["p", "P"])
def test_two_units_that_a_collation_takes_for_one_choose_by_themselves(
    where: str, places: tuple[str, str], who: str
) -> None:
    rows: Rows = [
        {"person": person, "place": place, "wage": 60}
        for person, place in zip("pP", places, strict=True)
    ]
    rest = [row for row in rows if row["person"] != who]
    replay(asking_by_place(declaration(1)), in_duckdb(rows, where), in_duckdb(rest, where))


def test_many_keys_take_no_room_in_the_engines_text() -> None:
    sizes = []
    for count in (2, 50_000):
        keys = [f"key {index}" for index in range(count)]
        named = {"place": Column.text(keys=keys), "wage": Column.integer(0, 60)}
        table = pa.table(
            {
                "person": range(100_000),
                "place": [keys[index % count] for index in range(100_000)],
                "wage": [index % 50 for index in range(100_000)],
            }
        )
        declared = Declaration("t", Unit("person"), Caps(1), named)
        question = Question.of(Table.declared(table, declared), asked())
        answer = without_noise(question).to_pandas()
        expected: dict[str, int] = defaultdict(int)
        for key, wage in zip(table["place"].to_pylist(), table["wage"].to_pylist(), strict=True):
            expected[key] += wage
        assert dict(zip(answer.place, answer.pay, strict=True)) == expected
        sizes.append(text_size(declared, table))
    assert sizes[1] <= sizes[0] + 100


def test_the_engines_text_grows_with_columns_only() -> None:
    columns = {f"c{index}": Column.boolean() for index in range(8)}
    sizes = []
    for count in (1, 4, 8):
        table = pa.table({"person": [1], "wage": [1], **{name: [True] for name in columns}})
        named = {**dict(list(columns.items())[:count]), "wage": Column.integer(0, 60)}
        declared = Declaration("t", Unit("person"), Caps(1), named)
        sizes.append(text_size(declared, table, tuple(columns)[:count]))
    assert sizes[1] < 2 * sizes[0]
    assert sizes[2] < 3 * sizes[0]


def text_size(declared: Declaration, table: pa.Table, keys: tuple[str, ...] = ("place",)) -> int:
    query = Query("t", asked().aggregates, keys)
    with _duckdb.opened() as own:
        expression = _bounding.bounded_sums(_plan.plan(query, declared), own.table(table.schema))
        return len(own.statement(expression).text)
