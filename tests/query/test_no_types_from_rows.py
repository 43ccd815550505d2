"""Only the id and the declared columns are read, and no value decides about a type.

One nasty value beside ordinary ones, in a declared or an undeclared column, must not change
whether a question is answered, refused or failed, nor anything of the answer but by its own row.
"""

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
from discreet.query._expressions._expressions import Aggregate, ColumnRef
from discreet.query._expressions._query import Query
from tests.query.kit import without_noise

FACTS = {
    "number": Column.number(0, 10),
    "integer": Column.integer(0, 10),
    "text": Column.text(keys=["a", "b"]),
    "boolean": Column.boolean(),
    "date": Column.date(keys=[datetime.date(2024, 1, 1)]),
}


class Rude(str):
    """A text whose methods fail."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __len__ = encode = __str__  # type: ignore[assignment]


class RudeNumber(int):
    """A whole number whose methods fail."""

    def __repr__(self) -> str:
        raise SystemError("no")

    __str__ = __int__ = __index__ = bit_length = __repr__  # type: ignore[assignment]


class Level(enum.IntEnum):
    """An enumeration."""

    HIGH = 3


class Unfriendly:
    """An object on which everything fails."""

    def __getattribute__(self, name: str) -> Any:  # Any: never returns
        raise RuntimeError(name)


class Moment(datetime.datetime):
    """A time whose text is none."""

    def isoformat(self, *_: Any) -> str:  # Any: whatever is asked
        return 7  # type: ignore[return-value]


class Leaving(datetime.date):
    """A day that leaves the program."""

    def isoformat(self) -> str:
        raise SystemExit


class Liar:
    """An object that leaves the program when it is asked for its class."""

    def __getattribute__(self, name: str) -> Any:  # Any: never returns
        raise SystemExit


class Zone(datetime.tzinfo):
    """A zone that fails."""

    def utcoffset(self, moment: datetime.datetime | None) -> datetime.timedelta:
        raise RuntimeError("no")

    dst = utcoffset

    def tzname(self, moment: datetime.datetime | None) -> str:
        raise RuntimeError("no")


VALUES: list[Any] = [  # Any: whatever can stand in a list
    *(None, "", "a", "\ud800", "x\0y", "é", 1, 2**63, -(2**63) - 1, 10**40, 10**5000, -1),
    *(1.5, 1e400, -0.0, float("nan"), True, b"a", b"\xff", 1j, object(), {1}, [1, 2], {"a": 1}),
    *(decimal.Decimal(10**41), decimal.Decimal("1e-400"), decimal.Decimal("sNaN")),
    *(datetime.date(1, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.time(3)),
    *(pd.Timestamp("2024-01-01", tz="UTC"), pd.NaT, pd.NA, pd.Timedelta(1), uuid.UUID(int=3)),
    *(np.datetime64("NaT"), np.datetime64("2024-01-01"), np.float32(0.1), np.int8(3), np.bool_(1)),
    *(np.longdouble("1e4000"), np.str_("b"), Rude("b"), RudeNumber(3), Level.HIGH, Unfriendly()),
    *(np.array([1, 2]), pd.Series([1]), Moment(2024, 1, 1), Leaving(2024, 1, 1), Liar()),
    datetime.datetime(2024, 1, 1, tzinfo=Zone()),
]


def _object_frame(values: list[Any]) -> pd.DataFrame:  # Any: as above
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return pd.DataFrame({"person": range(len(values)), "x": pd.Series(column, dtype=object)})


def _polars_frame(values: list[Any]) -> pl.DataFrame:  # Any: as above
    series = pl.Series("x", values, dtype=pl.Object)
    return pl.DataFrame({"person": range(len(values)), "x": series})


FRAMES: list[Callable[[list[Any]], Any]] = [_object_frame, _polars_frame]  # Any: as above


def _count(door: Any, rows: Any, column: Column) -> object:  # Any: for `replay`
    facts = Declaration("t", dp.Unit("person"), Caps(1), {"x": column})
    query = Query("t", (Aggregate(AggregateFunction.COUNT, ColumnRef("x"), "n"),))
    return release_question(door, Question.of(Table.declared(rows, facts), query), QuestionPrice(1))


CASES = [*((kind, _object_frame) for kind in FACTS), ("number", _polars_frame)]


@pytest.mark.parametrize("place", range(len(CASES)))
def test_one_object_changes_nothing_but_its_own_row(place: int) -> None:
    """Each object as one kind of column; `make test-long` tries all pairs."""
    kind, frame = CASES[place]
    _try_objects(kind, frame, VALUES[place :: len(CASES)])


@pytest.mark.long
@pytest.mark.parametrize(("kind", "frame"), CASES)
def test_no_object_in_any_column_changes_another_row(kind: str, frame: Any) -> None:
    _try_objects(kind, frame, VALUES)


def _try_objects(kind: str, frame: Any, values: list[Any]) -> None:  # Any: as above
    ordinary: list[Any] = ["1", 1, True, "a", datetime.date(2024, 1, 1)]
    for value in values:
        rows, others = frame([*ordinary, value]), frame(ordinary)
        run = replay(lambda door, given: _count(door, given, FACTS[kind]), rows, others)
        assert run.facts("released"), (kind, type(value))


@pytest.mark.parametrize("frame", FRAMES)
def test_an_undeclared_column_is_never_looked_at(frame: Any) -> None:
    ledger = dp.Ledger.in_memory(unit=dp.Unit("person"), limit=dp.Limit(epsilon=1))
    rows = frame(VALUES)
    rows = rows.assign(n=1) if hasattr(rows, "assign") else rows.with_columns(n=pl.lit(1))
    columns = {"n": Column.integer(0, 5)}
    table = Table(rows, name="t", unit=dp.Unit("person"), rows=1, columns=columns, ledger=ledger)
    answer = without_noise(table.agg(n=dp.sum("n")))
    assert answer.rows()[0]["n"] == len(VALUES)


ODD_TYPES: list[tuple[str, pa.Array]] = [
    ("half", pa.array([1.0, 2.0], pa.float16())),
    ("decimal256", pa.array([1, 2]).cast(pa.decimal256(60, 2))),
    ("duration", pa.array([0, 2**62]).cast(pa.duration("s"))),
    ("list", pa.array([[1], [2, 3]])),
    ("struct", pa.array([{"a": 1}, {"a": 2}])),
    ("binary", pa.array([b"a", b"\xff"])),
    ("null", pa.nulls(2)),
    ("zone", pa.array([0, 1]).cast(pa.timestamp("us", "UTC"))),
    ("far", pa.array([2**62, -(2**62)]).cast(pa.timestamp("s"))),
    ("map", pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))),
    ("dictionary", pa.array(["a", "b"]).dictionary_encode()),
    ("case", pa.array([1, 2])),
]


@pytest.mark.parametrize(("name", "column"), ODD_TYPES)
def test_no_undeclared_type_makes_a_question_fail(
    name: str, column: pa.Array, tmp_path: Path
) -> None:
    rows = pa.table({"person": [1, 2], "n": [1, 1], "N": column, name: column})
    columns = {"n": Column.integer(0, 5)}
    sources: list[Any] = [rows]  # Any: everything that can be a source
    if name not in ("half", "duration", "far"):  # which Parquet doesn't hold as they are
        pq.write_table(rows, tmp_path / "t.parquet")
        sources.append(tmp_path / "t.parquet")
    for source in sources:
        table = Table(source, name="t", unit=dp.Unit("person"), rows=1, columns=columns)
        assert without_noise(table.agg(n=dp.sum("n"))).rows()[0]["n"] == 2


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["person", 1, "1"]),
        pd.DataFrame([[1, 2, 3]], columns=["person", "1", "1"]),
        pa.Table.from_arrays([pa.array([1])] * 3, names=["person", "1", "1"]),
    ],
)
def test_two_columns_of_one_name_are_refused_by_name(frame: Any) -> None:
    with pytest.raises(dp.DiscreetError, match="2 columns are named '1'"):
        Table(frame, name="t", unit=dp.Unit("person"), rows=1, columns={"1": Column.integer(0, 5)})
    if isinstance(frame, pd.DataFrame):
        other = frame.assign(n=1)
        table = Table(
            other, name="t", unit=dp.Unit("person"), rows=1, columns={"n": Column.integer(0, 5)}
        )
        assert without_noise(table.agg(n=dp.sum("n"))).rows()[0]["n"] == 1


def test_categories_are_read_as_what_they_are() -> None:
    texts = pd.Series(["a", None, "b", "a"], dtype="category")
    mixed = pd.Series([1, "a", None, 2.5], dtype="category")
    whole = pd.Series([1, 2, None, 2], dtype="category")
    frame = pd.DataFrame({"person": range(4), "t": texts, "m": mixed, "w": whole})
    columns = {
        "t": Column.text(keys=["a", "b"]),
        "m": Column.number(0, 10),
        "w": Column.integer(0, 10),
    }
    table = Table(frame, name="t", unit=dp.Unit("person"), rows=1, columns=columns)
    answer = without_noise(table.agg(t=dp.count("t"), m=dp.sum("m"), w=dp.sum("w"))).rows()[0]
    assert (answer["t"], answer["m"], answer["w"]) == (3, 3.5, 5)
