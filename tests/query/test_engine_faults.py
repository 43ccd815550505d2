"""The faults of each engine's world, before the charge and after it: an error of ours, nothing that
isn't paid, and no word of a server or a library."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import ComputationFailed, DeclarationError
from discreet.ledger import Kind
from discreet.mechanisms import DiscreteLaplace
from discreet.mechanisms.statistics import moments
from discreet.query import Table
from tests.query import postgres_tables, spark_tables
from tests.query.postgres_tables import run

pytestmark = pytest.mark.filterwarnings("ignore")  # between Ibis and DuckDB

UNIT = dp.Unit("person")
ROWS = pa.table({"person": [n % 9 for n in range(60)], "days": [n % 5 for n in range(60)]})
COUNT = "SELECT COUNT(*), SUM(days) FROM t"

Cause = Callable[["Place"], object]


@dataclass(frozen=True)
class Place:
    """Where the rows of a test are: the source, and the file or the server's name of the table."""

    source: str
    name: str
    patch: pytest.MonkeyPatch


def _parquet(folder: Path, patch: pytest.MonkeyPatch) -> Place:
    pq.write_table(ROWS, folder / "t.parquet")
    return Place(str(folder / "t.parquet"), str(folder / "t.parquet"), patch)


def _database(folder: Path, patch: pytest.MonkeyPatch) -> Place:
    path = folder / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("given", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return Place(f"duckdb:{path}?table=main.t", str(path), patch)


def _postgres(folder: Path, patch: pytest.MonkeyPatch) -> Place:
    del folder
    name = postgres_tables.new_name()
    role = f"reader_of_{name}"
    run(
        f"CREATE TABLE {name} (person int8, days int4)",
        f"INSERT INTO {name} SELECT n % 9, n % 5 FROM generate_series(0, 59) AS n",
        f"CREATE ROLE {role} LOGIN PASSWORD 'right'",
        f"GRANT SELECT ON {name} TO {role}",
    )
    return Place(postgres_tables.url(name, role), name, patch)


def _spark(folder: Path, patch: pytest.MonkeyPatch) -> Place:
    return Place(spark_tables.stored(ROWS, folder), str(folder / "rows.parquet"), patch)


# --- causes ---


def _vanish(place: Place) -> None:
    Path(place.name).unlink()


def _cut(place: Place) -> None:
    os.truncate(place.name, 100)


def _replace(place: Place) -> None:
    Path(place.name).write_bytes(b"SECRET" * 5000)


def _other_columns(place: Place) -> None:
    others = ROWS.rename_columns(["person", "SECRET"])
    if place.source.startswith("duckdb:"):
        Path(place.name).unlink()
        with duckdb.connect(place.name) as connection:
            connection.register("given", others)
            connection.execute("CREATE TABLE t AS SELECT * FROM given")
    else:
        pq.write_table(others, place.name)


def _in_server(statement: str) -> Cause:
    return lambda place: run(statement.format(place.name, _role(place)))


def _role(place: Place) -> str:
    return place.source.removeprefix("postgresql://").partition("@")[0]


def _end_connections(place: Place) -> None:
    run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "  # names of ours
        f"WHERE usename = '{_role(place)}'"
    )


def _nobody_answers(place: Place) -> None:
    place.patch.setenv("PGHOSTADDR", "127.0.0.1")
    place.patch.setenv("PGPORT", "1")


@contextmanager
def _password_needed(place: Place) -> Iterator[None]:
    """Ask this role for its password; the other roles need none."""
    with import_module("psycopg").connect(postgres_tables.owner(), autocommit=True) as owner:
        rules = Path((owner.execute("SHOW hba_file").fetchone() or ("",))[0])
        before = rules.read_text()
        rules.write_text(f"local all {_role(place)} scram-sha-256\n{before}")
        try:
            owner.execute("SELECT pg_reload_conf()")
            time.sleep(0.3)  # the server reads its file soon
            yield
        finally:
            rules.write_text(before)
            owner.execute("SELECT pg_reload_conf()")


def _stop_java(place: Place) -> None:
    """End the application, as a machine does that runs out of memory."""
    del place
    context = import_module("pyspark").SparkContext._active_spark_context  # no public form
    gateway = context._gateway  # as above
    gateway.proc.kill()
    gateway.proc.wait()


def _forget_spark() -> None:
    """Let the next test start an application of its own."""
    context = import_module("pyspark").SparkContext
    context._active_spark_context = context._gateway = context._jvm = None  # no public form
    sessions = import_module("pyspark.sql").SparkSession
    sessions._instantiatedSession = sessions._activeSession = None  # as above


DUCKDB = [(place, cause) for place in (_parquet, _database) for cause in (_vanish, _cut, _replace)]
BEFORE = [
    *DUCKDB,
    (_parquet, _other_columns),
    (_database, _other_columns),
    (_postgres, _in_server("DROP TABLE {0}")),
    (_postgres, _in_server("ALTER TABLE {0} DROP COLUMN days")),
    (_postgres, _in_server("ALTER TABLE {0} ALTER days TYPE bytea USING 'SECRET'")),
    (_postgres, _in_server("REVOKE SELECT ON {0} FROM {1}")),
    (_postgres, _in_server("GRANT UPDATE ON {0} TO {1}")),
    (_postgres, _in_server("ALTER ROLE {1} CONNECTION LIMIT 0")),
    (_postgres, _in_server("ALTER ROLE {1} NOLOGIN")),
    (_postgres, _nobody_answers),
]
AFTER = [*DUCKDB, (_postgres, _end_connections)]


class Payer:
    """A ledger, at whose charge something happens."""

    def __init__(self, ledger: dp.Ledger, then: Callable[[], object]) -> None:
        self._ledger, self._then = ledger, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def charge(self, *given: Any, **named: Any) -> Any:
        receipt = self._ledger.charge(*given, **named)
        self._then()
        return receipt


def _ask(place: Place, then: Callable[[], object] = lambda: None) -> tuple[dp.Ledger, Any]:
    """The ledger, and a function that asks."""
    ledger, table = _table(place, then)
    return ledger, lambda: table.sql(COUNT, epsilon=1)


def _table(place: Place, then: Callable[[], object] = lambda: None) -> tuple[dp.Ledger, Table]:
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10))
    columns = {"days": dp.Column.integer(0, 10)}
    plain = dp.Table(place.source, name="t", unit=UNIT, columns=columns, rows=9)
    return ledger, Table.declared(plain.source, plain.declaration, Payer(ledger, then))


def _charges(ledger: dp.Ledger) -> int:
    return sum(entry.kind is Kind.CHARGE for entry in ledger.history())


@pytest.mark.parametrize(("make", "cause"), BEFORE)
def test_a_fault_before_the_charge_costs_nothing(
    make: Callable[[Path, pytest.MonkeyPatch], Place],
    cause: Cause,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = make(tmp_path, monkeypatch)
    ledger, table = _table(place)
    handed_over = moments(table.rows("days"))
    noise = DiscreteLaplace.for_epsilon(1, handed_over)
    paid = dp.release(handed_over, noise, ledger, request="paid")
    cause(place)
    for ask in (
        lambda: table.sql(COUNT, epsilon=1),
        lambda: dp.release(handed_over, noise, ledger),
    ):
        with pytest.raises(DeclarationError) as failure:
            ask()
        assert failure.value.__suppress_context__ or failure.value.__context__ is None
        assert "FATAL" not in str(failure.value)
        assert "SECRET" not in str(failure.value).replace("it has person, SECRET", "")
    assert _charges(ledger) == 1
    assert not ledger.is_locked
    again = dp.release(handed_over, noise, ledger, request="paid")  # needs no rows
    assert again.value.tolist() == paid.value.tolist()


@pytest.mark.parametrize(("make", "cause"), AFTER)
def test_a_fault_after_the_charge_says_nothing(
    make: Callable[[Path, pytest.MonkeyPatch], Place],
    cause: Cause,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = make(tmp_path, monkeypatch)
    ledger, ask = _ask(place, lambda: cause(place))
    _check_fails_and_is_paid(place, ledger, ask)


def _check_fails_and_is_paid(place: Place, ledger: dp.Ledger, ask: Callable[[], object]) -> None:
    with pytest.raises(ComputationFailed) as failure:
        ask()
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    for word in (place.name, "SECRET", "terminat", "Py4J", "Parquet", "file"):
        assert word not in str(failure.value)
    assert _charges(ledger) == 1
    assert ledger.is_locked


def test_a_wrong_password_is_named_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _postgres(tmp_path, monkeypatch)
    ledger, ask = _ask(place)
    with _password_needed(place):
        monkeypatch.setenv("PGPASSWORD", "SECRET")
        with pytest.raises(DeclarationError, match="refuses the password") as failure:
            ask()
        assert "SECRET" not in str(failure.value)
        assert _charges(ledger) == 0
        monkeypatch.setenv("PGPASSWORD", "right")
        ask()


def test_a_right_that_is_given_after_the_charge_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _postgres(tmp_path, monkeypatch)
    grant = _in_server("GRANT UPDATE ON {0} TO {1}")
    ledger, ask = _ask(place, lambda: grant(place))
    ask()
    assert not ledger.is_locked
    with pytest.raises(DeclarationError, match="may change"):
        ask()
    assert _charges(ledger) == 1


@pytest.mark.parametrize("end", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_server_that_stops_while_it_compiles_is_not_the_fault_of_the_question(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _postgres(tmp_path, monkeypatch)
    ledger, ask = _ask(place)
    engine = import_module("discreet.query._engines._postgres").PostgresEngine
    compute = engine.run

    def stopped(self: Any, *given: Any) -> Any:  # Any: the arguments of `run`
        if end == "pg_terminate_backend":
            _end_connections(place)
        else:
            self.connection.execute("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)")
        return compute(self, *given)

    monkeypatch.setattr(engine, "run", stopped)
    with pytest.raises(DeclarationError, match=r"before the charge .*: try again"):
        ask()
    assert _charges(ledger) == 0
    assert not ledger.is_locked


LATE = {  # files that arrive between the charge and the reading of the rows
    "with another type": lambda path: pq.write_table(
        pa.table({"person": [1], "days": ["SECRET"]}), path
    ),
    "without a column": lambda path: pq.write_table(pa.table({"person": [1]}), path),
    "cut": lambda path: path.write_bytes(b"PAR1 SECRET"),
    "alike": lambda path: pq.write_table(ROWS, path),
}
ASKED: dict[str, Callable[[Table], object]] = {
    "a question": lambda table: table.sql(COUNT, epsilon=1),
    "two statements": lambda table: table.sql("SELECT SUM(days), MEDIAN(days) FROM t", epsilon=1),
    "a diagnosis": lambda table: table.question(COUNT).diagnose(epsilon=1),
    "a check": lambda table: table.share_of_null("days", epsilon=1),
    "rows for a mechanism": lambda table: table.quantiles("days", [0.5], epsilon=1),
    "rows of each unit": lambda table: table.sql(
        "SELECT SUM(d) FROM (SELECT person, SUM(days) AS d FROM t GROUP BY person) AS p", epsilon=1
    ),
}


@pytest.mark.parametrize("write", LATE.values(), ids=[*LATE])
@pytest.mark.parametrize("ask", ASKED.values(), ids=[*ASKED])
def test_a_file_that_arrives_after_the_charge_is_for_the_next_question(
    ask: Callable[[Table], object], write: Callable[[Path], object], tmp_path: Path
) -> None:
    pq.write_table(ROWS, tmp_path / "1.parquet")
    ledger = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10))
    columns = {"days": dp.Column.integer(0, 10)}
    plain = dp.Table(tmp_path, name="t", unit=UNIT, columns=columns, rows=9)
    late = tmp_path / "2.parquet"
    table = Table.declared(plain.source, plain.declaration, Payer(ledger, lambda: write(late)))
    ask(table)
    assert not ledger.is_locked
    assert late.exists()


def test_a_server_that_can_only_read_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _postgres(tmp_path, monkeypatch)
    run(f"ALTER ROLE {_role(place)} SET default_transaction_read_only = on")
    _, ask = _ask(place)
    ask()


@pytest.mark.long
def test_an_application_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In mid-question it leaves the question paid, and then a new question is refused by name,
    until the program has another application."""
    place = _spark(tmp_path, monkeypatch)
    ledger, ask = _ask(place, lambda: _stop_java(place))
    try:
        _check_fails_and_is_paid(place, ledger, ask)
        other, ask_anew = _ask(place)
        with pytest.raises(DeclarationError, match="has ended"):
            ask_anew()
        assert _charges(other) == 0
    finally:
        _forget_spark()
    ask_anew()
    assert _charges(other) == 1
