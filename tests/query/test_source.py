"""No row decides what others say, what an error says, or whether there is one."""

import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.audit import replay
from discreet.query import (
    Caps,
    Column,
    Declaration,
    Question,
    QuestionPrice,
    Table,
    release_question,
)
from discreet.query._expressions._aggregates import AggregateFunction
from discreet.query._expressions._expressions import Aggregate, ColumnRef, IsNull
from discreet.query._expressions._query import Query
from discreet.query._rows._csv_reader import read_lines
from discreet.query._rows._files import CsvFile
from discreet.query._toml._proposed import propose_types
from tests.query.kit import without_noise

COLUMNS = {"x": Column.number(0, 10), "s": Column.text(keys=["a", "b"])}
PEOPLE = Declaration("t", dp.Unit("u"), Caps(4, groups=2, rows_per_group=2), COLUMNS)
COUNT = Query("t", (Aggregate(AggregateFunction.COUNT, None, "n"),))
SUMS = Query("t", (Aggregate(AggregateFunction.SUM, ColumnRef("x"), "pay"),), ("s",))


def _act(door: Any, source: Any, query: Query = COUNT, facts: Declaration = PEOPLE) -> object:
    return release_question(
        door, Question.of(Table.declared(source, facts), query), QuestionPrice(1)
    )


def _file(folder: Path, lines: list[bytes]) -> CsvFile:
    path = folder / str(hash(tuple(lines))) / "t.csv"  # a statement has the name of the file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"u,x,s\n" + b"".join(line + b"\n" for line in lines))
    return CsvFile(path)


OTHERS = [b"%d,%d,a" % (person, person % 7) for person in range(1300)]


@pytest.mark.parametrize(
    "line",
    [
        b'9999,1,"open',
        b'9999,1,"a\nb"',
        b"9999,1,a\r",
        b"9999,\xff,a",
        b'99\r99,1,"a\rb"',
        b'99\r99,\r"1",a\r"',
        b"9999,1,a,b,c,d",
        b"9999",
        b'"',
        b"9999,1,a\x00",
        b"9999,1," + b"a" * 3_000_000,
    ],
)
@pytest.mark.parametrize("place", [0, 1000])
def test_no_line_of_a_csv_file_changes_what_others_say(
    line: bytes, place: int, tmp_path: Path
) -> None:
    with_it = _file(tmp_path, [*OTHERS[:place], line, *OTHERS[place:]])
    without_it = _file(tmp_path, OTHERS)
    for query in (COUNT, SUMS):
        run = replay(partial(_act, query=query), with_it, without_it)
        assert run.facts("released")


LINES = st.lists(st.sampled_from([*'0,"\r\n\0a1', "é"]), max_size=12).map("".join)


@settings(max_examples=40)
@given(rest=st.lists(LINES, max_size=6), own=LINES)
def test_no_line_at_all_does(
    rest: list[str], own: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A unit is one line here, so the unit is a row; an owner's line breaks make more of them."""
    facts = Declaration("t", dp.Unit.ROW, Caps(1), COLUMNS)
    folder = tmp_path_factory.mktemp("lines")
    others = [line.replace("\n", " ").encode() for line in rest]
    with_own = [own.replace("\n", " ").encode(), *others]
    act = partial(_act, query=SUMS, facts=facts)
    replay(act, _file(folder, with_own), _file(folder, others))


def test_lines_are_read_or_left_out(tmp_path: Path) -> None:
    lines = [
        b'1,2,"say ""hi"", x"',
        b'2,1,"a',
        b'b"',
        b'3,1,a"b',
        b'4,1,"a"b',
        b"5,1",
        b"6,1,a,b",
        b"",
        b'7,"",',
        b'8,"3","\xff"\r',
        b'9\r,"3",\x00"',
        b'9\r,"3",\x00',
    ]
    source = _file(tmp_path, lines)
    assert read_lines(source.path, ",").to_pylist() == [
        {"u": "1", "x": "2", "s": 'say "hi", x'},
        {"u": "7", "x": None, "s": None},
        {"u": "8", "x": "3", "s": "\ufffd"},
        {"u": "9 ", "x": "3", "s": "\ufffd"},
    ]


def test_a_header_error_says_nothing_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"u,x,s\n1,2,a\n7,\xff,b\n")
    assert [name for name, _ in CsvFile(path).types()] == ["u", "x", "s"]
    path.write_bytes(b"u,\xff,s\n1,2,a\n")
    with pytest.raises(dp.DiscreetError, match="first line must name") as refused:
        CsvFile(path).types()
    assert "xff" not in str(refused.value)


def test_a_file_that_cannot_be_guessed_is_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('u;x\n1;"2\n3;4\n')
    assert list(propose_types(CsvFile(path))) == ["u;x"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2]).cast(pa.decimal256(60, 2)),
        pa.array([0, 2**62]).cast(pa.duration("s")),
        pa.array([b"a", b"b"]),
    ],
)
def test_types_that_a_value_could_fail_on_are_refused_and_free(column: pa.Array) -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit("u"), limit=dp.Limit(epsilon=1))
    for kind in (Column.number(0, 1), Column.date(), Column.text()):
        frame = pa.table({"u": [1, 2], "x": column})
        table = Table(
            frame, name="t", unit=dp.Unit("u"), rows=1, columns={"x": kind}, ledger=ledger
        )
        with pytest.raises(dp.DiscreetError, match="a type without a rule"):
            table.agg(n=dp.count()).release(epsilon=0.5)
    assert ledger.spent().charges == 0


def test_a_unit_of_a_type_without_a_rule_is_refused() -> None:
    frame = pa.table({"u": pa.array([0, 2**62]).cast(pa.duration("s")), "x": [1.0, 2.0]})
    table = Table(frame, name="t", unit=dp.Unit("u"), rows=1, columns={"x": Column.number(0, 1)})
    with pytest.raises(dp.DiscreetError, match="unit's column 'u' has a type without a rule"):
        without_noise(table.agg(n=dp.count()))


def test_texts_that_are_no_utf8_fail_nothing(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"a\xff", b"b"])
    texts = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(
        pa.table({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0], "s": texts}), tmp_path / "t.parquet"
    )
    answer = without_noise(Question.of(Table.declared(tmp_path / "t.parquet", PEOPLE), SUMS))
    assert [row["pay"] for row in answer.rows()] == [1.0, 3.0]


def test_columns_that_differ_in_case_only_are_refused() -> None:
    frame = pa.table({"X": [1, 2, 3, 4], "x": [5, 6, 7, 8], "x_1": [1, 1, 1, 1]})
    one = {"x": Column.integer(0, 9)}
    both = {**one, "X": Column.integer(0, 9)}
    table = Table(frame, name="t", unit=dp.Unit("x_1"), rows=1, columns=both)
    with pytest.raises(dp.DiscreetError, match="differ in case only"):
        without_noise(table.agg(n=dp.count()))
    alone = Table(frame, name="t", unit=dp.Unit("x_1"), rows=1, columns=one)
    assert without_noise(alone.agg(s=dp.sum("x"))).rows()[0]["s"] == 6  # one row of 5, 6, 7 and 8


def test_no_value_is_quoted_where_a_frame_is_refused() -> None:
    good = pd.DataFrame({"u": [1], "x": [0.77310]})
    table = Table(good, name="t", unit=dp.Unit("u"), rows=1, columns={"x": Column.number(0, 1)})
    for wrong in (lambda: table.where(good.x > 0), lambda: table.agg(n=good.x)):  # type: ignore[arg-type]
        with pytest.raises(dp.DiscreetError, match="a Series") as refused:
            wrong()
        assert "773" not in str(refused.value)
    with pytest.raises(dp.DiscreetError, match="names of columns"):
        table.group_by(["x"])  # type: ignore[arg-type]


def test_bounds_next_to_nothing_are_refused_and_free() -> None:
    columns = {"x": Column.number(-1e-300, 1e-300)}
    table = Table(
        pa.table({"u": [1], "x": [0.0]}), name="t", unit=dp.Unit("u"), rows=1, columns=columns
    )
    with pytest.raises(dp.DiscreetError, match="too close to 0"):
        table.agg(s=dp.sum("x"))


def test_extreme_values_fail_nothing() -> None:
    far = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    frame = pa.table(
        {
            "u": pa.array([0, 2**64 - 1], pa.uint64()),
            "a": pa.array([np.finfo(np.float32).max, -np.inf], pa.float32()),
            "b": pa.array([2**64 - 1, 0], pa.uint64()),
            "c": pa.array(["9" * 400, "-1e999"]),
            "d": pa.array(far, pa.date32()),
        }
    )
    columns = {
        "a": Column.number(-1e100, 1e100),
        "b": Column.integer(-(2**63), 2**63 - 1),
        "c": Column.integer(-5, 5),
        "d": Column.date(keys=far),
    }
    table = Table(frame, name="t", unit=dp.Unit("u"), rows=1, columns=columns)
    aggregates = {name: dp.sum(name) for name in ("a", "b", "c")}
    assert without_noise(table.agg(**aggregates, nulls=dp.count("c"))).rows()[0]["c"] == 0
    is_null = Query(
        "t", (Aggregate(AggregateFunction.COUNT, None, "n"),), ("d",), IsNull(ColumnRef("a"))
    )
    assert len(without_noise(Question.of(table, is_null)).rows()) == len(far)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_ids_outside_the_calendar_fail_nothing_and_change_nothing_of_others(unit: str) -> None:
    def counted(ids: list[int]) -> list[object]:
        frame = pa.table(
            {
                "u": pa.array([n for n in ids for _ in "ab"]).cast(pa.timestamp(unit)),
                "s": [*"ab"] * len(ids),
            }
        )
        columns = {"s": Column.text(keys=["a", "b"])}
        table = Table(frame, name="t", unit=dp.Unit("u"), rows=1, columns=columns)
        return [row["n"] for row in without_noise(table.group_by("s").agg(n=dp.count())).rows()]

    known = [10**6 * n for n in range(30)]
    some = counted(known)
    for odd in (-(2**63), 2**63 - 1, 2**62, -(2**62)):
        more = counted([odd, *known])
        moved = [m - n for m, n in zip(more, some, strict=True)]  # type: ignore[operator]
        assert all(0 <= m <= 1 for m in moved)
        assert sum(moved) <= 1
