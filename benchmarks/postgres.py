"""A private group-by in PostgreSQL beside bounding SQL written by hand:
``python -m benchmarks.postgres``.

Both run in one process of the server, whose CPU time Linux tells. The goal is 1.2.
"""

import os
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import csv

from benchmarks.server_question import asked
from benchmarks.tables import duration, show, table
from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES, columns
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from discreet.query._rows._source import served_by
from tests.query import postgres_tables

ROWS, ROUNDS = 1_000_000, 5
# values clamped and on a grid: but no exact rounding of a unit's rows
_BY_HAND = f"""
    SELECT place, sum(least(rows, {MOST_ROWS})), sum(total * least(rows, {MOST_ROWS}) / rows) FROM (
      SELECT place, rows, total, row_number() OVER (
          PARTITION BY person ORDER BY hashint8extended(person * {PLACES} + place, 7)
        ) AS rank
      FROM (
        SELECT person, place, count(*) AS rows,
          sum(round(least(greatest(wage, 0), {LARGEST}) * 8388608)::int8)::int8 AS total
        FROM {{name}} WHERE person IS NOT NULL AND place BETWEEN 0 AND {PLACES - 1}
        GROUP BY person, place
      ) AS cells
    ) AS ranked WHERE rank <= {MOST_PLACES} GROUP BY place
"""  # noqa: S608  # numbers of ours


def main() -> None:
    """Print both times, and on the last line their ratio."""
    name = _filled()
    try:
        found: dict[str, list[float]] = {"by hand": [], "discreet": []}
        for turn in range(ROUNDS + 1):
            for contestant, seconds in (("by hand", _by_hand(name)), ("discreet", _private(name))):
                found[contestant] += [seconds] if turn else []
    finally:
        postgres_tables.run(f"DROP TABLE {name}")
    times = {contestant: median(seconds) for contestant, seconds in found.items()}
    made = table("median CPU time of", "by hand", "discreet")
    made.add_row(f"{ROWS:,} rows", *(duration(seconds) for seconds in times.values()))
    show(made)
    print(f"postgres: ratio to hand-written = {times['discreet'] / times['by hand']:.2f}")


def _filled() -> str:
    name, text = postgres_tables.new_name(), BytesIO()
    csv.write_csv(pa.table(columns(ROWS, ROWS // 10)), text, csv.WriteOptions(include_header=False))
    postgres_tables.run(f"CREATE TABLE {name} (person int8, place int4, wage float8)")
    with (
        psycopg.connect(postgres_tables.owner(), autocommit=True) as connection,
        connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy,
    ):
        copy.write(text.getvalue())
    postgres_tables.run(
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}", f"VACUUM ANALYZE {name}"
    )
    return name


def _spent(connection: Any) -> float:  # Any: psycopg's own
    """The CPU time of the server's process for this connection."""
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2]
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def _by_hand(name: str) -> float:
    with psycopg.connect(postgres_tables.owner(), autocommit=True) as connection:
        connection.execute("SET work_mem = '64MB'")
        connection.execute("SET jit = off")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        start = _spent(connection)
        connection.execute(_BY_HAND.format(name=name)).fetchall()
        return _spent(connection) - start


def _private(name: str) -> float:
    own, question = asked(postgres_tables.url(name))
    with _engine.opened(served_by(own.source)) as engine:
        connection: Any = engine.connection  # type: ignore[attr-defined]  # that of PostgreSQL
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        ready = prepare(question.plan, own.source, engine)
        start = _spent(connection)
        ready.compute(None)
        return _spent(connection) - start


if __name__ == "__main__":
    main()
