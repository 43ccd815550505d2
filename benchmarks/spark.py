"""A private group-by in Spark beside bounding SQL written by hand: ``python -m benchmarks.spark``.

Both run in one local application, whose CPU time Linux tells. Java compiles while they run, so the
first rounds don't count. The goal is 1.2.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.server_question import asked
from benchmarks.tables import duration, show, table
from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES, columns
from benchmarks.worker import spent_by
from discreet.query._bounding._compiled_plan import CompiledPlan, prepare
from discreet.query._engines import _engine
from discreet.query._rows._source import served_by

ROWS, WARMING, ROUNDS = 4_000_000, 4, 5
# values clamped and on a grid: but no exact rounding of a unit's rows
_BY_HAND = f"""
    SELECT place, sum(least(rows, {MOST_ROWS})),
      sum(CAST(total * least(rows, {MOST_ROWS}) / rows AS BIGINT)) FROM (
      SELECT place, rows, total, row_number() OVER (
          PARTITION BY person ORDER BY xxhash64(person * {PLACES} + place)
        ) AS rank
      FROM (
        SELECT person, place, count(*) AS rows,
          sum(CAST(round(least(greatest(wage, 0), {LARGEST}) * 8388608) AS BIGINT)) AS total
        FROM t WHERE person IS NOT NULL AND place BETWEEN 0 AND {PLACES - 1}
        GROUP BY person, place
      ) AS cells
    ) AS ranked WHERE rank <= {MOST_PLACES} GROUP BY place
"""  # noqa: S608  # numbers of ours


def main() -> None:
    """Print both times, and on the last line their ratio."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wages.parquet")
        pq.write_table(pa.table(columns(rows, rows // 10)), path)
        times = {name: median(seconds) for name, seconds in _both(path).items()}
    made = table("median CPU time of", "by hand", "discreet")
    made.add_row(f"{rows:,} rows", *(duration(seconds) for seconds in times.values()))
    show(made)
    print(f"spark: ratio to hand-written = {times['discreet'] / times['by hand']:.2f}")


def _both(path: Path) -> dict[str, list[float]]:
    own, question = asked(f"spark:{path}")
    found: dict[str, list[float]] = {"by hand": [], "discreet": []}
    with _engine.opened(served_by(own.source)) as engine:
        session: Any = engine.session  # type: ignore[attr-defined]  # that of Spark
        ready = prepare(question.plan, own.source, engine)
        for turn in range(WARMING + ROUNDS):
            seconds = _by_hand(session, path), _private(session, ready)
            for name, one in zip(found, seconds, strict=True):
                found[name] += [one] if turn >= WARMING else []
    return found


def _spent(session: Any) -> float:  # Any: pyspark's own
    """The CPU time of the application's Java."""
    return spent_by(session.sparkContext._gateway.proc.pid)  # noqa: SLF001  # it has no public form


def _by_hand(session: Any, path: Path) -> float:
    start = _spent(session)
    session.read.parquet(str(path)).createOrReplaceTempView("t")
    session.sql(_BY_HAND).toArrow()
    return _spent(session) - start


def _private(session: Any, ready: CompiledPlan) -> float:
    start = _spent(session)
    ready.compute(None)
    return _spent(session) - start


if __name__ == "__main__":
    main()
