"""After the charge nothing fails for public reasons: what can be refused is refused before it."""

import datetime
import enum
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import DiscreetError, Refused, RequestReused
from discreet.query import Caps, Column, Declaration, Noise, Table, suggest
from discreet.query._engines import _duckdb
from discreet.query._engines._engine_statement import EngineStatement

UNIT = dp.Unit("u")
ROWS = pa.table({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0], "n": [1, 2, 3], "s": ["a", "b", "a"]})
COLUMNS = {
    "x": Column.number(0, 10),
    "n": Column.integer(-5, 10),
    "s": Column.text(keys=["a", "b"]),
}


def _ledger(unit: dp.Unit = UNIT) -> dp.Ledger:
    return dp.Ledger.in_memory(unit=unit, limit=dp.Limit(epsilon=10**6, delta=0.5))


def answered_or_free(act: Callable[[dp.Ledger], object], unit: dp.Unit = UNIT) -> bool:
    """Whether the act gave its answer; else it was refused by an error of ours, and free."""
    ledger = _ledger(unit)
    with suppress(DiscreetError):
        act(ledger)
        assert ledger.spent().charges == 1
        return True
    assert ledger.spent().charges == 0
    assert not ledger.is_locked
    return False


EXPONENTS = st.integers(-330, 300)


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
@example(81, 0, None, 0.5)
@given(EXPONENTS, EXPONENTS, st.sampled_from([None, *Noise]), st.floats(1e-9, 1 - 1e-9))
def test_prices_of_any_size(epsilon: int, delta: int, noise: Noise | None, level: float) -> None:
    prices = {
        "epsilon": Fraction(10) ** epsilon,
        "delta": min(Fraction(10) ** delta, Fraction(1, 9)),
    }

    def act(ledger: dp.Ledger) -> object:
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
        question = table.group_by("s").agg(c=dp.count(), t=dp.sum("x"), m=dp.mean("n"))
        return repr(question.release(**prices, noise=noise, confidence=level))  # type: ignore[arg-type]

    answered_or_free(act)


CAPS = [2.0, Decimal(2), Fraction(2), np.int64(2), 2**40, 2**41, 2**70, 10**400, 0, -1, 1.5]


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", ["rows", "groups", "rows_per_group"])
def test_caps_of_any_kind(name: str, cap: Any) -> None:
    def act(ledger: dp.Ledger) -> object:
        given = {"rows": 2, name: cap}
        table = Table(ROWS, name="t", unit=UNIT, columns=COLUMNS, ledger=ledger, **given)
        return table.group_by("s").agg(c=dp.count(), t=dp.sum("x")).release(epsilon=1)

    was_answered = answered_or_free(act)
    assert was_answered or cap not in (2.0, Decimal(2), Fraction(2), np.int64(2))


TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(38, 0), pa.bool_()),
    *(pa.decimal128(5, -3), pa.decimal256(76, 10), pa.string(), pa.large_string(), pa.date32()),
    *(pa.date64(), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.time64("us"), pa.binary()),
    *(pa.duration("us"), pa.null(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])),
    *(
        pa.dictionary(pa.int8(), pa.string()),
        pa.string_view(),
        pa.binary(3),
        pa.month_day_nano_interval(),
    ),
]
DECLARED = [
    *(Column.integer(-5, 5), Column.integer(0, 2**63 - 1), Column.integer(-(2**63), 0)),
    *(Column.integer(keys=[1, 2]), Column.number(-1e100, 1e100), Column.number(-1, 0)),
    *(Column.boolean(), Column.text(keys=["a"]), Column.date()),
]


@pytest.mark.parametrize("number", range(len(TYPES)), ids=map(str, TYPES))
def test_every_type_of_a_source(number: int) -> None:
    """Each as a declared column of one of the types, and as an id."""
    _check_type(TYPES[number], [DECLARED[number % len(DECLARED)]])


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_of_a_source_as_each_declared_one(kind: pa.DataType) -> None:
    _check_type(kind, DECLARED)


def _check_type(kind: pa.DataType, declared: list[Column]) -> None:
    rows = ROWS.append_column("c", pa.nulls(3, kind))
    for column in declared:
        asked = dp.sum("c") if column.lower is not None else dp.count("c")

        def act(ledger: dp.Ledger, column: Column = column, asked: Any = asked) -> object:
            table = Table(rows, name="t", unit=UNIT, rows=1, columns={"c": column}, ledger=ledger)
            selected = table.where(~dp.col("c").is_null())
            grouped = selected if column.keys is None else selected.group_by("c")
            return grouped.agg(c_=asked).release(epsilon=1)

        answered_or_free(act)

    def by_it(ledger: dp.Ledger) -> object:
        columns = {"x": Column.number(0, 1)}
        table = Table(rows, name="t", unit=ledger.unit, rows=1, columns=columns, ledger=ledger)
        return table.agg(c=dp.count()).release(epsilon=1)

    answered_or_free(by_it, dp.Unit("c"))


TEXTS = [
    "\ud800",
    "a\ud800",
    "x\0y",
    "'",
    '"',
    "\\",
    "{}",
    "%s",
    "?",
    "$1",
    "é",
    "a" * 10_000,
    "\n",
]


RARE = {'"', "\\", "%s", "?", "$1", "é"}  # forms that others here have, too
OF_ALL_KINDS = [
    pytest.param(text, marks=[pytest.mark.long] if text in RARE else []) for text in TEXTS
]


@pytest.mark.parametrize("text", OF_ALL_KINDS)
def test_texts_of_all_kinds(text: str) -> None:
    """As a constant, a key, a column's name, a table's name, an answer's name."""

    def asked(column: str = "s", key: str = "a", table: str = "t", name: str = "c") -> Any:
        def act(ledger: dp.Ledger) -> object:
            rows = ROWS.rename_columns(["u", "x", "n", column]) if column != "s" else ROWS
            columns = {column: Column.text(keys=dict.fromkeys(["a", key]))}
            made = Table(rows, name=table, unit=UNIT, rows=1, columns=columns, ledger=ledger)
            where = made.where(dp.col(column) == text, dp.col(column).isin(["a", text]))
            return repr(where.group_by(column).agg(**{name: dp.count()}).release(epsilon=1))

        return act

    for given_ in ({"column": text}, {"key": text}, {"table": text}, {"name": text}, {}):
        try:
            answered_or_free(asked(**given_))
        except UnicodeEncodeError:  # Arrow can't name a column of the test's own rows so
            assert given_.get("column") == text


def _from_depth(frames: int, act: Callable[[], object]) -> object:
    return act() if not frames else _from_depth(frames - 1, act)


@pytest.mark.parametrize("left", [*range(20, 320, 25), 500, 700])
def test_from_any_depth_of_a_program(left: int) -> None:
    def act(ledger: dp.Ledger) -> object:
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
        here = len(_frames())
        text = "SELECT s, SUM(x + n * 2) AS a, AVG(x) AS b FROM t WHERE n > 1 AND x < 5 GROUP BY s"

        def ask() -> object:
            return table.sql(text, epsilon=1)

        try:
            return _from_depth(sys.getrecursionlimit() - here - left, ask)
        except RecursionError:
            raise Refused("before the charge") from None  # `answered_or_free` looks that it was

    answered_or_free(act)


def _frames() -> list[object]:
    found: list[object] = []
    frame = sys._getframe()
    while frame is not None:
        found.append(None)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def test_deep_expressions_are_refused_and_free() -> None:
    def act(ledger: dp.Ledger) -> object:
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
        value = dp.col("x")
        for _ in range(20_000):
            value = value + 0
        return table.agg(s=dp.sum(value)).release(epsilon=1)

    assert not answered_or_free(act)


def _declared(**changed: Any) -> Declaration:
    facts = Declaration("t", UNIT, Caps(4, groups=2, rows_per_group=2), COLUMNS)
    column = changed.pop("s", None)
    if column is not None:
        changed["columns"] = {**COLUMNS, "s": column}
    return replace(facts, **changed)


CHANGES: list[Declaration] = [
    _declared(caps=Caps(2, groups=1)),
    _declared(caps=Caps(3, groups=2, rows_per_group=2)),
    _declared(s=Column.text(keys=["b", "c"])),
    _declared(s=Column.text(keys=["A", "b"])),
    _declared(s=Column.text(keys=["a", "b"], null="a")),
    _declared(columns={**COLUMNS, "x": Column.number(0, 11)}),
    _declared(columns={**COLUMNS, "x": Column.number(0, 10, null=3)}),
    _declared(columns={**COLUMNS, "x": Column.integer(0, 10)}),
]


@pytest.mark.parametrize("changed", CHANGES)
def test_a_request_belongs_to_its_declaration(changed: Declaration) -> None:
    ledger = _ledger()
    _ask(Table.declared(ROWS, _declared(), ledger))
    with pytest.raises(RequestReused):
        _ask(Table.declared(ROWS, changed, ledger))
    assert ledger.spent().charges == 1


def _ask(table: Table) -> object:
    question = table.group_by("s").agg(c=dp.count(), m=dp.mean("x"))
    return question.release(epsilon=1, request="monday")


def test_a_request_survives_what_it_has_nothing_to_do_with() -> None:
    ledger = _ledger()
    first = _ask(Table.declared(ROWS, _declared(), ledger))
    other = _declared(columns={**COLUMNS, "n": Column.integer(0, 7), "z": Column.boolean()})
    rows = ROWS.append_column("z", pa.array([True, False, True]))
    again = _ask(Table.declared(rows, other, ledger))
    assert repr(first) == repr(again)
    assert ledger.spent().charges == 1


def test_another_file_is_another_request(tmp_path: Path) -> None:
    ledger, facts = _ledger(), _declared()
    for name in ("may.csv", "june.csv"):
        (tmp_path / name).write_text("u,x,n,s\n1,2,3,a\n")
    _ask(Table.declared(tmp_path / "may.csv", facts, ledger))
    with pytest.raises(RequestReused):
        _ask(Table.declared(tmp_path / "june.csv", facts, ledger))


def test_rows_spill_into_a_private_folder_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = pa.table({"x": rng.permutation(2_000_000), "y": rng.random(2_000_000)})
    with _duckdb.opened() as own:
        (found,) = own.connection.sql(
            "SELECT value FROM duckdb_settings() WHERE name = 'temp_directory'"
        ).fetchall()
        folder = Path(found[0])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()
        own.run(EngineStatement("SELECT sum(x) FROM source"), rows)
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM 'x.csv'",
        "SELECT * FROM read_csv('x.csv')",
        "COPY source TO 'x.parquet'",
        "ATTACH 'x.db'",
        "SET enable_external_access = true",
        "SET temp_directory = '.'",
        "INSTALL httpfs",
        "SELECT * FROM rows",
    ],
)
@pytest.mark.parametrize(
    ("opened", "rows"),
    [(_duckdb.opened, ROWS), (_duckdb.compiling, ROWS[:0])],
    ids=["own", "shared"],
)
def test_the_engine_opens_nothing(
    opened: Callable[[], AbstractContextManager[_duckdb.DuckdbEngine]],
    rows: pa.Table,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a\n1\n")
    with opened() as own, pytest.raises(duckdb.Error):
        own.run(EngineStatement(text), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_a_host_without_temporary_folders_is_refused_and_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/none")

    def act(ledger: dp.Ledger) -> object:
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
        return table.agg(n=dp.count()).release(epsilon=1)

    def suggested(ledger: dp.Ledger) -> object:
        return suggest(ROWS.select(["u"]), unit=UNIT, ledger=ledger, epsilon=1)

    for each in (act, suggested):
        assert not answered_or_free(each)


@pytest.mark.parametrize("epsilon", ["9e-300", "2e-299", "1e-250", "1e-320", "7e-309", "1e-190"])
def test_noise_beyond_every_number_is_refused_for_many_groups_too(epsilon: str) -> None:
    def ask(ledger: dp.Ledger) -> object:
        columns = {**COLUMNS, "n": Column.integer(keys=range(1000))}
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=columns, ledger=ledger)
        return table.group_by("n").agg(m=dp.mean("x")).release(epsilon=Decimal(epsilon))

    def check(ledger: dp.Ledger) -> object:
        table = Table(ROWS, name="t", unit=UNIT, rows=1, columns=COLUMNS, ledger=ledger)
        return table.share_of_null("x", epsilon=Decimal(epsilon))

    for act in (ask, check):
        assert answered_or_free(act) == (epsilon == "1e-190")


def test_a_check_of_another_file_is_another_request(tmp_path: Path) -> None:
    ledger, facts = _ledger(), _declared()
    for name in ("may.csv", "june.csv"):
        (tmp_path / name).write_text("u,x,n,s\n1,2,3,a\n")
        table = Table.declared(tmp_path / name, facts, ledger)
        if name == "june.csv":
            with pytest.raises(RequestReused):
                table.share_of_null("x", epsilon=1, request="r")
        else:
            table.share_of_null("x", epsilon=1, request="r")


class Day(datetime.date):
    """A day of somebody's own class."""


class Name(enum.StrEnum):
    """A name."""

    A = "a"


@pytest.mark.parametrize(
    "column",
    [
        Column.text(keys=np.array(["a", "b"])),
        Column.text(keys=list(Name), null=Name.A),
        Column.date(keys=[Day(2024, 1, 1)], null=Day(2024, 1, 1)),
        Column.integer(keys=[signal.SIGINT, 3], null=signal.SIGINT),
    ],
)
def test_keys_of_all_classes_are_the_values_that_they_are(column: Column) -> None:
    assert {type(key) for key in column.keys or ()} <= {str, int, datetime.date}
    rows = ROWS.append_column("k", pa.nulls(3, pa.string()))

    def act(ledger: dp.Ledger) -> object:
        table = Table(rows, name="t", unit=UNIT, rows=1, columns={"k": column}, ledger=ledger)
        return table.group_by("k").agg(n=dp.count()).release(epsilon=1)

    assert answered_or_free(act)
