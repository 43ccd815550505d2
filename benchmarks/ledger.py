"""Durable charges a second, by 32 threads and by one: ``python -m benchmarks.ledger``.

The bare shape beside it does what any durable log must do: it inserts a row of the same size into a
SQLite file with the same journal and the same syncs, 32 rows to a transaction for the threads and
one for the lone charge. The two take turns, so that both meet the same disk. PostgreSQL is timed if
``DISCREET_POSTGRES`` is the address of a database, such as ``postgresql://postgres@localhost/test``.
"""

import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sqlalchemy import create_engine, make_url

from benchmarks.tables import show, table
from discreet import Limit, Unit
from discreet.accounting import Pure
from discreet.ledger import Ledger

CLIENTS, EACH, ALONE, ROUNDS = 32, 25, 25, 5
GOAL, GOAL_ALONE, GOAL_WAIT = 1_500, 0.005, 2.0  # charges a second; seconds beyond the bare shape
BODY = "x" * 500  # about the size of an entry
LOSS = 1 * Pure(0.001)
_SCHEMA = "CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT, digest TEXT UNIQUE)"


@dataclass(frozen=True)
class Figures:
    """The medians of all rounds, of the ledger and of the bare shape; and the longest wait."""

    rate: float
    bare_rate: float
    alone: float
    bare_alone: float
    wait: float
    cpu: float  # seconds for one charge of the threads


def main() -> None:
    """Print the rates, and on the last line those of the ledger."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder) / "bare.sqlite")
        found["SQLite"] = measured(str(Path(folder) / "x.ledger"), bare.insert)
        bare.end()
    if address := os.environ.get("DISCREET_POSTGRES"):
        found["PostgreSQL"] = in_postgres(address)
    rates = table(f"{CLIENTS} threads", "charges a second", "bare shape", "goal", "met")
    times = table("milliseconds", "ledger", "bare shape", "difference", "goal", "met")
    for place, figures in found.items():
        rate, bare_rate = f"{figures.rate:,.0f}", f"{figures.bare_rate:,.0f}"
        rates.add_row(place, rate, bare_rate, f"{GOAL:,}", met(figures.rate >= GOAL))
        beyond = figures.alone - figures.bare_alone
        shown = (ms(each) for each in (figures.alone, figures.bare_alone, beyond, GOAL_ALONE))
        times.add_row(f"one alone, {place}", *shown, met(beyond <= GOAL_ALONE))
        is_met = met(figures.wait <= GOAL_WAIT)
        times.add_row(f"longest wait, {place}", ms(figures.wait), "", "", ms(GOAL_WAIT), is_met)
        times.add_row(f"CPU of one of {CLIENTS}, {place}", f"{1e3 * figures.cpu:.2f}")
    show(rates)
    show(times)
    each = ", ".join(f"{figures.rate:,.0f} ({place})" for place, figures in found.items())
    print(f"ledger: charges per second = {each}, one alone = {ms(found['SQLite'].alone)} ms")


def measured(address: str, insert: Callable[[int], None]) -> Figures:
    """A new ledger at this address beside the bare shape, in turns."""
    ledger = Ledger.create(address, unit=Unit("person"), limit=Limit(1_000, 1e-6))
    charge(ledger)
    insert(1)
    rates, alone, waits, cpus, bare_rates, bare_alone = [], [], [], [], [], []
    for _ in range(ROUNDS):
        begin = time.process_time()
        rate, wait = by_threads(lambda: charge(ledger))
        cpus.append((time.process_time() - begin) / CLIENTS / EACH)
        rates.append(rate)
        waits.append(wait)
        bare_rates.append(CLIENTS / seconds(lambda: insert(CLIENTS), EACH))
        alone.append(seconds(lambda: charge(ledger), ALONE))
        bare_alone.append(seconds(lambda: insert(1), ALONE))
    return Figures(
        median(rates),
        median(bare_rates),
        median(alone),
        median(bare_alone),
        max(waits),
        median(cpus),
    )


def in_postgres(address: str) -> Figures:
    """In new schemas of this database, which are removed afterwards."""
    url = make_url(address).set(drivername="postgresql")
    name = f"benchmark_{secrets.token_hex(6)}"
    engine = create_engine(url.set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:

        def insert(count: int) -> None:
            connection.exec_driver_sql(f"SELECT turn FROM {name}_bare.head FOR UPDATE")  # noqa: S608  # a name made here
            rows = [(BODY, os.urandom(32).hex()) for _ in range(count)]
            connection.exec_driver_sql(
                f"INSERT INTO {name}_bare.entries (body, digest) VALUES (%s, %s)",  # noqa: S608  # the same
                rows,
            )
            connection.commit()

        connection.exec_driver_sql(f"CREATE SCHEMA {name}_bare")
        connection.exec_driver_sql(f"CREATE TABLE {name}_bare.head AS SELECT 0 AS turn")
        connection.exec_driver_sql(
            f"CREATE TABLE {name}_bare.entries (number serial PRIMARY KEY, body text, "
            "digest text UNIQUE)"
        )
        connection.commit()
        try:
            ledger = url.update_query_dict({"ledger": name})
            return measured(ledger.render_as_string(hide_password=False), insert)
        finally:
            for schema in (name, f"{name}_bare"):
                connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
            connection.commit()


class Bare:
    """A log in SQLite that checks nothing."""

    def __init__(self, path: Path) -> None:
        """Make the file, with a ledger's journal and syncs."""
        self._connection = sqlite3.connect(path, isolation_level=None)
        for command in ("PRAGMA journal_mode = PERSIST", "PRAGMA synchronous = FULL", _SCHEMA):
            self._connection.execute(command).fetchall()

    def insert(self, count: int) -> None:
        """Insert rows in one durable transaction."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            rows = [(BODY, os.urandom(32).hex()) for _ in range(count)]
            cursor.executemany("INSERT INTO entries (body, digest) VALUES (?, ?)", rows)
            cursor.execute("COMMIT")

    def end(self) -> None:
        """Close the file."""
        self._connection.close()


def charge(ledger: Ledger) -> None:
    """Make one charge, which always fits."""
    ledger.charge(LOSS, purpose="benchmark", by="ana")


def by_threads(act: Callable[[], object]) -> tuple[float, float]:
    """The number of acts a second of all clients, and the longest time that one took."""
    waits: list[float] = []

    def run() -> None:
        for _ in range(EACH):
            begin = time.perf_counter()
            act()
            waits.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(waits) / (time.perf_counter() - begin), max(waits)


def seconds(act: Callable[[], object], count: int) -> float:
    """The mean time of an act."""
    begin = time.perf_counter()
    for _ in range(count):
        act()
    return (time.perf_counter() - begin) / count


def ms(duration: float) -> str:
    """A duration in milliseconds."""
    return f"{1e3 * duration:.1f}"


def met(is_met: object) -> str:
    """Whether a goal is met, in a word."""
    return "yes" if is_met else "NO"


if __name__ == "__main__":
    main()
