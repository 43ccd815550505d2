"""Rows in Spark: their addresses, the tables that are refused, and faults in mid-question."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import ComputationFailed, DeclarationError, DiscreetError, InvalidArgument
from discreet.ledger import Kind
from discreet.query._engines._address import address_of, is_address
from discreet.query._engines._spark_table import SparkRows
from discreet.query._rows._source import kinds, place_of, source_of
from tests.query import spark_tables

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

UNIT = dp.Unit("person")
COUNT = "SELECT COUNT(*) AS n FROM t"
ROWS = pa.table({"person": [n % 9 for n in range(60)], "days": [n % 5 for n in range(60)]})


def table_of(source: str) -> dp.Table:
    """A table to ask."""
    return dp.Table(
        source,
        name="t",
        unit=UNIT,
        columns={"days": dp.Column.integer(0, 10)},
        rows=7,
        ledger=dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10_000)),
    )


def charges(table: dp.Table) -> int:
    """The number of charges in the table's ledger."""
    ledger = table.ledger
    assert isinstance(ledger, dp.Ledger)
    return sum(entry.kind is Kind.CHARGE for entry in ledger.history())


def count(table: dp.Table) -> int:
    """The number of rows, at a price that leaves no noise."""
    return int(table.sql(COUNT, epsilon=1000).to_pandas()["n"][0])


# --- addresses; no Spark is needed ---


@pytest.mark.parametrize(
    "text",
    [
        *("spark:visits", "spark:clinic.visits", "spark:spark_catalog.clinic.visits"),
        *("spark:/data/visits", "spark:/data/visits.parquet", "spark:file:/data/visits"),
        *("spark:hdfs://host:8020/data/visits", "spark:s3a://bucket/visits"),
    ],
)
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert is_address(text)
    assert address_of(str(address_of(text))) == address_of(text)


@pytest.mark.parametrize(
    "text",
    [
        *("spark:", "spark:a b", "spark:a.b.c.d", "spark:visits; DROP TABLE x", "spark:a`b"),
        *("spark:/data/*", "spark:/data/{a,b}", "spark:/data/[a]", "spark:/data/../other"),
        *("spark:visits/2024", "spark:s3a://key:secret@bucket/visits", "spark:/a?key=secret"),
    ],
)
def test_an_address_that_is_a_pattern_or_has_a_secret_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        address_of(text)
    assert "secret" not in str(refusal.value)


def test_one_table_has_one_place() -> None:
    def place(text: str) -> object:
        return place_of(source_of(text, []))

    assert place("spark:Clinic.visits") == place("SPARK:clinic.VISITS")
    assert place("spark:/data//visits/") == place("spark:file:///data/visits")
    assert place("spark:/data/visits") != place("spark:/data/Visits")


DECLARED = (
    '[tables.visits]\nsource = "{}"\nunit = "person"\nrows = 7\n{}\n'
    '[tables.visits.ledger]\npath = "a.ledger"\nepsilon = 10000\n'
    '[tables.visits.columns]\ndays = {{type = "integer", lower = 0, upper = 10}}\n'
)


@pytest.mark.parametrize(
    ("source", "more", "why"),
    [
        ("spark:/data/*", "", "without patterns"),
        ("spark:clinic.visits", 'format = "parquet"', "only a file has it"),
    ],
)
def test_a_declaration_is_refused_by_name(source: str, more: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "discreet.toml"
    file.write_text(DECLARED.format(source, more))
    with pytest.raises(DeclarationError, match=why):
        dp.open(file)


# --- tables that are asked ---


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of rows."""
    spark_tables.check()
    for number in range(2):
        (tmp_path / "rows" / f"day={number}").mkdir(parents=True)
        part = ROWS.slice(30 * number, 30)
        pq.write_table(part, tmp_path / "rows" / f"day={number}" / "part.parquet")
    return tmp_path / "rows"


@pytest.mark.long
def test_a_declared_folder_is_asked(folder: Path, tmp_path: Path) -> None:
    """All files below it, whose folders' names are no columns."""
    file = tmp_path / "discreet.toml"
    file.write_text(DECLARED.format(f"spark:{folder}", ""))
    declared = dp.open(file)["visits"]
    answer = declared.sql("SELECT SUM(days) AS n FROM visits", epsilon=9000)
    assert round(float(answer.to_pandas()["n"][0])) == sum(ROWS["days"].to_pylist())
    assert [name for name, _ in declared.source.types()] == ["person", "days"]


@pytest.mark.long
def test_the_command_declares_a_folder_and_asks_it(folder: Path, tmp_path: Path) -> None:
    """In a process without pandas, where Spark writes nothing of its own."""

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "discreet", *arguments]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert not re.search("WARN|ERROR|log4j|Setting default", ended.stderr + ended.stdout)
        return ended.stdout

    about = ("--unit", "person", "--rows", "7", "--bound", "days=0..10", "--epsilon", "9000")
    run("declare", f"spark:{folder}", "--name", "visits", *about)
    asked = ("visits", "SELECT SUM(days) AS n FROM visits", "--epsilon", "9000")
    assert run("ask", *asked, "--csv").splitlines()[1].split(",")[0] == "120"


def _session() -> Any:  # Any: pyspark's own
    """The program's own session."""
    from discreet.query._engines._spark_session import session

    with session("the tests"):
        from pyspark.sql import SparkSession

        return SparkSession.builder.getOrCreate()


def _stored(own: Any, *, form: str = "USING PARQUET") -> str:  # Any: as above
    """A new table of the catalog."""
    name = f"rows_{time.monotonic_ns()}"
    own.sql(f"CREATE TABLE {name} {form} AS SELECT id % 9 AS person, id % 5 AS days FROM range(60)")
    return name


@pytest.mark.long
def test_a_table_of_the_catalog_is_asked_and_the_programs_session_stays_as_it_was() -> None:
    spark_tables.check()
    own = _session()
    name = _stored(own)
    hostile = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.shuffle.partitions": "7",
    }
    for setting, value in hostile.items():
        own.conf.set(setting, value)
    try:
        before = own.conf.getAll
        assert count(table_of(f"spark:default.{name}")) == 60
        assert own.conf.getAll == before
        assert not [view for view in own.catalog.listTables() if view.isTemporary]
    finally:
        for setting in hostile:
            own.conf.unset(setting)


def _view(own: Any, name: str) -> str:  # Any: as above
    own.sql(f"CREATE VIEW {name}_v AS SELECT * FROM {name}")
    return f"{name}_v"


def _temporary(own: Any, name: str) -> str:  # Any: as above
    own.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name}_t AS SELECT * FROM {name}")
    return f"{name}_t"


def _global(own: Any, name: str) -> str:  # Any: as above
    own.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {name}_g AS SELECT * FROM {name}")
    return f"global_temp.{name}_g"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_view, "no table that stores rows"),
        (_temporary, "can't read it"),
        (_global, "no table that stores rows"),
        (lambda own, _: _stored(own, form="USING CSV"), "only Parquet has a rule"),
        (lambda own, _: _stored(own, form="USING PARQUET PARTITIONED BY (days)"), "partitioned"),
        (lambda *_: "nothing_of_this_name", "can't read it"),
        (lambda *_: "/nothing/of/this/name", "can't read it"),
    ],
)
def test_a_table_that_may_not_be_asked_is_refused(
    change: Callable[[Any, str], str], why: str
) -> None:
    spark_tables.check()
    own = _session()
    table = table_of(f"spark:{change(own, _stored(own))}")
    with pytest.raises(DiscreetError, match=why):
        table.sql(COUNT, epsilon=1)
    assert charges(table) == 0


@pytest.mark.long
def test_types_without_a_rule_are_named_and_odd_names_are_read(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "person": [1, 2],
            "a.b`c \u00e9": [1, 2],
            "large": pa.array([2**64 - 1, 0], pa.uint64()),
            "bytes": [b"a", b"b"],
            "list": [[1], [2]],
            "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
            "inner": [{"x": 1}, {"x": 2}],
        }
    )
    source = source_of(spark_tables.stored(rows, tmp_path), [])
    found = kinds(source)
    assert [name for name in rows.schema.names if found[name] is None] == rows.schema.names[3:]
    table = dp.Table(
        source,
        name="t",
        unit=UNIT,
        columns={"a.b`c \u00e9": dp.Column.integer(0, 9), "large": dp.Column.number(0, 1e20)},
        rows=1,
        ledger=dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10_000)),
    )
    asked = 'SELECT SUM("a.b`c \u00e9") AS n FROM t'
    assert round(float(table.sql(asked, epsilon=5000).to_pandas()["n"][0])) == 3


# --- faults after the charge ---


def _once_read(patch: pytest.MonkeyPatch, act: Callable[[Any], Any]) -> None:  # Any: frames
    """Something happens to the opened rows between the charge and the answer."""
    plain = SparkRows.selected
    patch.setattr(SparkRows, "selected", lambda rows, frame: act(plain(rows, frame)))


def _check_failed_and_paid(table: dp.Table, secret: str) -> None:
    with pytest.raises(ComputationFailed) as failure:
        table.sql(COUNT, epsilon=1)
    assert secret not in str(failure.value)
    assert charges(table) == 1


def _rewritten(folder: Path) -> None:
    pq.write_table(ROWS.slice(0, 7), folder / "day=1" / "part.parquet")


def _removed(folder: Path) -> None:
    shutil.rmtree(folder / "day=1")


def _retyped(folder: Path) -> None:
    other = ROWS.set_column(1, "days", pa.array(["x"] * 60))
    pq.write_table(other, folder / "day=1" / "part.parquet")


@pytest.mark.long
@pytest.mark.parametrize("change", [_rewritten, _removed, _retyped])
def test_a_file_that_changes_in_mid_question_fails_it_and_says_nothing(
    change: Callable[[Path], None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(f"spark:{folder}")

    def act(frame: Any) -> Any:  # Any: frames of Spark
        change(folder)
        return frame

    _once_read(monkeypatch, act)
    _check_failed_and_paid(table, "part.parquet")


@pytest.mark.long
def test_a_file_that_is_added_in_mid_question_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(f"spark:{folder}")

    def act(frame: Any) -> Any:  # Any: frames of Spark
        pq.write_table(ROWS, folder / "more.parquet")
        return frame

    _once_read(monkeypatch, act)
    assert count(table) == 60


_is_paid = threading.Event()


def _slow(frame: Any) -> Any:  # Any: frames of Spark
    """The rows, each read in minutes."""
    _is_paid.set()
    return frame.crossJoin(frame.sparkSession.range(10**12).filter("id % 7 <> 3")).select(
        *frame.columns
    )


def _when_busy(act: Callable[[Any], None]) -> threading.Thread:  # Any: a context of Spark
    """A thread that acts once a job runs after the charge."""
    context = _session().sparkContext
    _is_paid.clear()

    def wait() -> None:
        _is_paid.wait(300)
        for _ in range(600):
            if context.statusTracker().getActiveStageIds():
                act(context)
                return
            time.sleep(0.1)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.long
def test_ctrl_c_cancels_the_jobs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(f"spark:{folder}")
    context = _session().sparkContext
    _once_read(monkeypatch, _slow)
    threads = threading.enumerate()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # test workers ignore it
    thread = _when_busy(lambda _: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            table.sql(COUNT, epsilon=1)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert not any(one.is_alive() for one in threading.enumerate() if one not in threads)
    for _ in range(100):
        if not context.statusTracker().getActiveStageIds():
            break
        time.sleep(0.1)
    assert not context.statusTracker().getActiveStageIds()
    assert charges(table) == 1


@pytest.mark.long
def test_an_application_that_ends_in_mid_question_leaves_it_paid_and_says_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(f"spark:{folder}")
    _once_read(monkeypatch, _slow)
    thread = _when_busy(lambda context: context.stop())
    try:
        _check_failed_and_paid(table, "stopped")
    finally:
        thread.join()
    monkeypatch.undo()
    assert count(table_of(f"spark:{folder}")) == 60  # in a new application
