"""Sums in cells are the integers of the engine's own sums, bit for bit, and need bounded memory."""

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, seed, settings

from discreet._unit import Unit
from discreet.errors import QueryRefused
from discreet.query import Column, Declaration, Query, Question, Table
from discreet.query._bounding import _cell_choice, _cell_sums, _cells
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._bounding._numbering import with_numbers
from discreet.query._engines import _engine
from discreet.query._rows._source import source_of
from tests.query.kit import DAYS, QUERIES, SCHEMA, arrow, declarations, in_the_engine

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

IDS = {
    "dense": np.arange(40),
    "sparse": np.array([-(2**63), -5, 0, 3, 2**40, 2**62, 2**63 - 1]),
    "negative": np.arange(-(2**63), -(2**63) + 30),
    "int8": np.arange(-20, 20).astype(np.int8),
    "uint32": np.arange(2**32 - 30, 2**32).astype(np.uint32),
}
CAPS = [(30, 3, 10), (7, 3, 5), (1, 1, 1), (4, 7, 2), (900, 2, 900), (2**20, 6, 2**19)]
QUESTION = (
    "SELECT place, COUNT(*), COUNT(wage), SUM(wage), AVG(wage), AVG(age), SUM(age), COUNT_UNITS(*)"
    " FROM t GROUP BY place"
)


def rows_of(ids: Any, count: int = 1_500) -> pa.Table:  # Any: arrays
    """Units of skewed activity, with values beyond their bounds, and NULL in each column."""
    chance = np.random.default_rng(7)
    owners = ids[(len(ids) * chance.random(count) ** 3).astype(int)]
    wages = chance.choice([0.0, -0.0, 1 / 3, 59.99, 1e308, np.nan, -np.inf, 17.25, -3.0], count)
    places = chance.integers(-1, 9, count)
    columns = {
        "person": owners,
        "place": places,
        "wage": wages,
        "age": chance.integers(-9, 99, count),
    }
    missing = {name: chance.random(count) < 0.03 for name in columns}
    return pa.table({n: pa.array(each, mask=missing[n]) for n, each in columns.items()})


def table_of(rows: pa.Table, caps: tuple[int, int, int]) -> Table:
    columns = {
        "place": Column.integer(keys=range(7)),
        "wage": Column.number(-2.5, 60),
        "age": Column.integer(-5, 90, null=7),
    }
    most, groups, in_group = caps
    return Table(
        rows,
        name="t",
        unit=Unit("person"),
        columns=columns,
        rows=most,
        groups=groups,
        rows_per_group=in_group,
    )


def parts(question: Question, *, is_in_cells: bool) -> dict[str, Any]:  # Any: of each part
    with _engine.opened() as engine, nullcontext() if is_in_cells else in_the_engine():
        made = prepare(question.plan, question.table.source, engine)
        assert (made.cells is not None) <= is_in_cells
        found = made.compute(None)
    return {name: np.asarray(part).tolist() for name, part in found.items()}


def cells_of_question(question: Question) -> _cell_sums.CellSums:
    ids = pa.schema([question.table.source.types()[0]])
    found = _cell_sums.cell_sums_of(question.plan, ids)
    assert found is not None
    return found


@pytest.mark.parametrize(("ids", "caps"), [*zip([*IDS, "dense"], CAPS, strict=True)])
def test_cells_and_rows_have_the_same_integers(ids: str, caps: tuple[int, int, int]) -> None:
    question = table_of(rows_of(IDS[ids]), caps).question(QUESTION)
    assert cells_of_question(question).recipes
    found = parts(question, is_in_cells=True)
    assert found == parts(question, is_in_cells=False)
    assert all(map(any, found.values()))


@pytest.mark.parametrize("groups", [1, 3, 5])
@pytest.mark.parametrize("ends", [(18, 99), (-99, -18), (0, 60)])
def test_a_missing_value_adds_nothing_where_bounds_exclude_0(
    ends: tuple[int, int], groups: int
) -> None:
    """Its addend is 0, which no value has: it must neither move others nor fail."""
    columns = {
        "place": Column.integer(keys=range(groups)),
        "wage": Column.number(*ends),
        "age": Column.integer(*ends),
    }
    rows = rows_of(IDS["dense"])
    table = Table(rows, name="t", unit=Unit("person"), rows=900, columns=columns)
    where = " WHERE wage > 5" if ends[0] == 0 else ""  # which leaves 5 as the lower bound
    question = table.question(QUESTION.replace(" GROUP", f"{where} GROUP"))
    found = parts(question, is_in_cells=True)
    assert found == parts(question, is_in_cells=False)
    kept = [n for n, place in enumerate(rows["place"].to_pylist()) if place in range(groups)]
    there = rows.take(kept).filter(pc.is_valid(rows["person"].take(kept)))
    if not where:  # no unit has so many rows here that the caps cut
        assert sum(found["count(age)"]) == len(there) - there["age"].null_count


@pytest.mark.long
def test_random_questions_have_the_same_integers_in_both_forms() -> None:
    """Most of them are computed in cells."""
    chance, computed = random.Random(3), []
    values: dict[str, Sequence[Any]] = {  # Any: values of rows
        "person": [None, *range(9), -1, 2**63 - 1, -(2**63)],
        "wage": [
            None,
            float("nan"),
            float("inf"),
            0.0,
            -0.0,
            1e308,
            5e-324,
            -20.0,
            2.5,
            1 / 3,
            60.0,
        ],
        "age": [None, -200, 200, 7, 50, 0, 2**63 - 1, -(2**63)],
        "union": [None, True, False],
        "place": [None, "a", "b", "c", "", "A", "a'b", "zz", "é"],
        "day": [None, *DAYS],
    }
    rows = arrow([{key: chance.choice(values[key]) for key in values} for _ in range(400)])
    source = source_of(rows, SCHEMA.names)

    @seed(2)
    @settings(
        max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(declarations(), QUERIES)
    def check(declaration: Declaration, query: Query) -> None:
        try:
            question = Question.of(Table.declared(source, declaration, None), query)
            found = parts(question, is_in_cells=True)
        except QueryRefused:
            return
        reference = parts(question, is_in_cells=False)
        assert {n: np.sort(one, axis=None).tolist() for n, one in found.items()} == {
            n: np.sort(one, axis=None).tolist() for n, one in reference.items()
        }
        ids = pa.schema([SCHEMA.field("person")])
        computed.append(_cell_sums.cell_sums_of(question.plan, ids) is not None)

    check()
    assert sum(computed) > 20


# --- without an engine ---

ENDS = [(-(2**31) + 1, 2**31 - 1), (0, 1)]


def batches_of(ids: Any, count: int, groups: int) -> list[Any]:  # Any: Arrow's
    chance = np.random.default_rng(5)
    columns = {
        "unit": ids[(len(ids) * chance.random(count) ** 3).astype(int)].astype(np.int64),
        "place": chance.integers(0, groups, count).astype(np.uint8),
        "sum0": chance.integers(-(2**31) + 1, 2**31, count).astype(np.int32),
        "sum1": chance.integers(0, 2, count).astype(np.int8),
    }
    return list(pa.table(columns).to_batches(max_chunksize=100))


def added_up(batches: list[Any], groups: int) -> dict[tuple[int, int], list[int]]:  # Any: Arrow's
    """The rows and sums of each cell, as `_cells` gives them, from Arrow's batches."""
    found: dict[tuple[int, int], list[int]] = {}
    for cells in _cells.cells_of(lambda: nullcontext(batches), groups, ENDS):
        keys = zip(cells.ids[cells.owners].tolist(), cells.places.tolist(), strict=True)
        numbers = np.stack([cells.rows, *cells.sums], axis=1).tolist()
        made = dict(zip(keys, numbers, strict=True))
        assert list(made) == sorted(
            made, key=lambda key: (cells.ids.tolist().index(key[0]), key[1])
        )
        assert not made.keys() & found.keys()
        found |= made
    return found


@pytest.mark.parametrize("ids", ["dense", "sparse", "negative"])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"_PART": 1, "_BLOCK": 1},
        {"_PART": 7, "_BLOCK": 350},
        {"_MOST_ROWS": 90},
        {"_MOST_ROWS": 0},
        {"_UNIT_BITS": 0},
        {"_WORD_BITS": 44},  # an addend fits a word of its own
        {"_WORD_BITS": 20, "_UNIT_BITS": 10},  # no addend fits a word
    ],
    ids=str,
)
def test_cells_hold_their_rows_under_any_limits(
    ids: str, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = batches_of(IDS[ids], 1_000, groups=5)
    due: dict[tuple[int, int], list[int]] = {}
    for batch in batches:
        for unit, place, *addends in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            known = due.setdefault((unit, place), [0, 0, 0])
            due[unit, place] = [a + b for a, b in zip(known, [1, *addends], strict=True)]
    for name, limit in limits.items():
        monkeypatch.setattr(_cells, name, limit)
    assert added_up(batches, 5) == due


def test_an_addend_beyond_its_ends_reaches_no_other_unit() -> None:
    rows = pa.table({"unit": [4, 5, 6], "place": [0, 0, 1], "sum0": [2, -9, 9]})
    (cells,) = _cells.cells_of(lambda: nullcontext(rows.to_batches()), 2, [(0, 3)])
    assert cells.ids.tolist() == [4, 5, 6]
    assert cells.places.tolist() == [0, 0, 1]
    assert [each.tolist() for each in cells.sums] == [[2, 0, 3]]


def test_more_rows_than_memory_holds_are_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more rows than the limit and one batch are held at once, and none of several slices."""
    monkeypatch.setattr(_cells, "_MOST_ROWS", 300)
    held: list[int] = []
    plain = _cells._cells_of_blocks

    def watched(blocks: Any, *facts: Any) -> Iterator[_cells.UnitCells]:  # Any: arrays, facts
        held.append(sum(block[0].size for block in blocks))
        yield from plain(blocks, *facts)

    monkeypatch.setattr(_cells, "_cells_of_blocks", watched)
    batches = batches_of(np.arange(500), 2_000, groups=5)
    added_up(batches, 5)
    assert sum(held) == 2_000
    assert max(held) <= 400
    assert len(held) >= 7


def test_equal_hashes_are_decided_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(2)
    flags = chance.random((200, 9)) < 0.6
    owners, places = np.nonzero(flags)
    ones = np.ones(owners.size, np.int64)
    cells = _cells.UnitCells(np.arange(200), owners, places, ones, ())
    hashed = chance.integers(0, 3, owners.size)
    monkeypatch.setattr(
        _cell_choice, "hashes", lambda some, *_: hashed[np.isin(owners, some.owners)]
    )
    for most in (1, 2, 3, 8):
        # the real hash is asked of the units in too many groups only
        full = np.flatnonzero(np.bincount(owners, minlength=200) > most)
        due = []
        for unit, own in itertools.groupby(range(owners.size), owners.__getitem__):
            listed = list(own)
            if unit in full:
                listed = sorted(listed, key=lambda at: (hashed[at], places[at]))[:most]
            due += sorted(listed)
        assert _cell_choice.first_cells(cells, np.zeros((4, 9), np.int64), most).tolist() == due


def test_scaled_totals_are_exact_at_the_ends_of_64_bits() -> None:
    chance = random.Random(1)
    for _ in range(300):
        rows = chance.choice([1, 2, 7, 2**31, 2**32 - 1, chance.randint(1, 2**32 - 1)])
        total = chance.choice([-1, 1]) * chance.randint(0, rows * (2**31 - 1))
        allotted, offset = chance.randint(0, min(rows, 2**30)), chance.randrange(rows)
        size = (abs(total) * allotted + offset) // rows
        given = (np.array([one]) for one in (total, allotted, rows, offset))
        assert _cell_sums._scaled(*given).tolist() == [size if total > 0 else -size if total else 0]


@pytest.mark.parametrize("bits", [1, 30, 43, 44, 60])
def test_sums_of_groups_are_exact(bits: int) -> None:
    chance = np.random.default_rng(bits)
    values = chance.integers(-(2**bits), 2**bits, 5_000, endpoint=True)
    values[:50] = 2**bits
    places = chance.integers(0, 3, values.size)
    due = [sum(values[places == place].tolist()) for place in range(3)]
    assert _cell_sums._by_group(values, places, 3, 2**bits) == due


@pytest.mark.parametrize(
    ("change", "is_allowed"),
    [
        ({}, True),
        ({"person": pa.uint64()}, False),
        ({"person": pa.float64()}, False),
        ({"person": pa.string()}, False),
    ],
)
def test_ids_decide_on_the_form_by_their_type(
    change: dict[str, pa.DataType], is_allowed: bool
) -> None:
    rows = pa.schema([("person", pa.int64()), ("place", pa.int64()), ("wage", pa.float64())])
    rows = pa.schema([(f.name, change.get(f.name, f.type)) for f in rows]).empty_table()
    table = table_of(rows.append_column("age", pa.array([], pa.int64())), (3, 3, 3))
    question = table.question("SELECT place, SUM(wage) FROM t GROUP BY place")
    ids = pa.schema([rows.schema.field("person")])
    assert (_cell_sums.cell_sums_of(question.plan, ids) is not None) is is_allowed


@pytest.mark.parametrize(
    "refused",
    ["SELECT place, STDDEV(wage) FROM t GROUP BY place", "SELECT COUNT(DISTINCT age) FROM t"],
)
def test_large_addends_are_left_to_the_engine(refused: str) -> None:
    table = table_of(rows_of(IDS["dense"], 1), (3, 3, 3))
    ids = pa.schema([("person", pa.int64())])
    assert _cell_sums.cell_sums_of(table.question(refused).plan, ids) is None


@pytest.mark.parametrize(
    ("caps", "is_allowed"),
    [((2**30, 1, 2**30), True), ((2**30, 2, 2**30), False), ((2**31, 1, 2**31), False)],
)
def test_caps_of_which_a_product_could_leave_64_bits_are_left_to_the_engine(
    caps: tuple[int, int, int], is_allowed: bool
) -> None:
    question = table_of(rows_of(IDS["dense"], 1), caps).question("SELECT COUNT(*) AS n FROM t")
    grouped = table_of(rows_of(IDS["dense"], 1), caps).question(
        "SELECT place, COUNT(*) AS n FROM t GROUP BY place"
    )
    ids = pa.schema([("person", pa.int64())])
    assert (_cell_sums.cell_sums_of(grouped.plan, ids) is not None) is is_allowed
    assert (_cell_sums.cell_sums_of(question.plan, ids) is not None) is (caps[2] <= 2**30)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_larger_end_of_a_sum_decides_how_many_are_added_at_once(sign: int) -> None:
    """Floats add up so few values that they are exact, whichever end is the larger one."""
    most, unit = 2**22, 2**52 + 1  # the sum of three has 54 bits, and is odd
    table = Table(
        pa.table({"person": pa.array([], pa.int64()), "age": pa.array([], pa.int64())}),
        name="t",
        unit=Unit("person"),
        columns={"age": Column.integer(*sorted((sign * (2**31 - 1), -sign)))},
        rows=most,
    )
    found = cells_of_question(table.question("SELECT SUM(age) AS s FROM t"))
    three = np.arange(3)
    cells = _cells.UnitCells(three, three, 0 * three, np.full(3, most), (np.full(3, sign * unit),))
    assert found._bounded(cells, np.zeros((4, 1), np.int64)) == [[3 * sign * unit]]


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize(("total", "least"), [(10**9, 270), (-(10**9), -15), (44, None)])
def test_a_total_beyond_its_ends_counts_as_the_end(
    total: int, least: int | None, rows: int
) -> None:
    """Three rows of a unit count: both of two, and three of four."""
    table = table_of(rows_of(IDS["dense"], 1), (3, 1, 3))
    found = cells_of_question(table.question("SELECT SUM(age) AS s FROM t"))
    one = np.zeros(1, np.int64)
    cells = _cells.UnitCells(one, one, one, one + rows, (one + total,))
    ((counted,),) = found._bounded(cells, np.zeros((4, 1), np.int64))
    assert counted == (total * min(3, rows) // rows if least is None else least)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("size", "is_allowed"), [(2**31 - 1, True), (2**31, False), (2**31 + 1, False), (2**50, False)]
)
def test_the_largest_addends_fit_their_column(size: int, sign: int, is_allowed: bool) -> None:
    """A cast that overflowed would fail for the rows of one unit only."""
    age = Column.integer(*sorted((sign * size, -sign)))
    rows = pa.table({"person": [1, 2], "age": [sign * size, 0]})
    table = Table(rows, name="t", unit=Unit("person"), columns={"age": age}, rows=2)
    question = table.question("SELECT SUM(age) AS s FROM t")
    found = _cell_sums.cell_sums_of(question.plan, pa.schema([("person", pa.int64())]))
    assert (found is not None) is is_allowed
    assert parts(question, is_in_cells=True) == {"sum(age)": [sign * size]}


def test_keys_in_a_row_are_numbered_without_overflow() -> None:
    ends = [-(2**63), 2**63 - 1, None, 4, 5, 6, 7, 8]
    rows = pa.table({"key": pa.array(ends, pa.int64())})
    with _engine.opened() as engine:
        found = with_numbers(engine.table(rows.schema), "key", [5, 6, 7], "0")
        assert sorted(engine.run(engine.statement(found), rows)["key"].to_pylist()) == [0, 1, 2]
