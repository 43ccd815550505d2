"""Durable charges a second, by 32 threads and by one: ``python -m benchmarks.ledger``.

The bare shape beside it does what any durable log must do: it inserts a row of the same size into a
SQLite file with the same journal and the same syncs, 32 rows to a transaction for the threads and
one for the lone charge. The two take turns, so that both meet the same disk.
"""

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.tables import show, table
from discreet import Limit, Unit
from discreet.accounting import Pure
from discreet.ledger import Ledger

CLIENTS, EACH, ALONE, ROUNDS = 32, 25, 25, 5
GOAL, GOAL_ALONE, GOAL_WAIT = 1_500, 0.005, 2.0  # charges a second; seconds beyond the bare shape
BODY = "x" * 500  # about the size of an entry
LOSS = 1 * Pure(0.001)
_SCHEMA = "CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT, digest TEXT UNIQUE)"


def main() -> None:
    """Print the rates, and on the last line those of the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(
            Path(folder) / "x.ledger", unit=Unit("person"), limit=Limit(1_000, 1e-6)
        )
        bare = Bare(Path(folder) / "bare.sqlite")
        ledger.charge(LOSS, purpose="warm up", by="ana")
        bare.insert(1)
        rates, alone, waits, bare_rates, bare_alone = [], [], [], [], []
        for _ in range(ROUNDS):
            rate, wait = by_threads(lambda: charge(ledger))
            rates.append(rate)
            waits.append(wait)
            bare_rates.append(1 / seconds(lambda: bare.insert(CLIENTS), EACH) * CLIENTS)
            alone.append(seconds(lambda: charge(ledger), ALONE))
            bare_alone.append(seconds(lambda: bare.insert(1), ALONE))
        bare.end()
    rate, one = median(rates), median(alone)
    beyond = one - median(bare_alone)
    shown = table(f"{CLIENTS} threads", "charges a second", "bare shape", "goal", "met")
    shown.add_row(
        "SQLite", f"{rate:,.0f}", f"{median(bare_rates):,.0f}", f"{GOAL:,}", met(rate >= GOAL)
    )
    show(shown)
    times = table("milliseconds", "ledger", "bare shape", "difference", "goal", "met")
    figures = (f"{1e3 * each:.1f}" for each in (one, median(bare_alone), beyond, GOAL_ALONE))
    times.add_row("one alone, SQLite", *figures, met(beyond <= GOAL_ALONE))
    longest = max(waits)
    shown_wait, goal = f"{1e3 * longest:.0f}", f"{1e3 * GOAL_WAIT:.0f}"
    times.add_row("longest wait, SQLite", shown_wait, "", "", goal, met(longest <= GOAL_WAIT))
    show(times)
    print(f"ledger: charges per second = {rate:,.0f} (SQLite), one alone = {1e3 * one:.1f} ms")


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
    """One charge that always fits."""
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


def met(is_met: object) -> str:
    """Whether a goal is met, in a word."""
    return "yes" if is_met else "NO"


if __name__ == "__main__":
    main()
