"""A private group-by of 100 thousand to 100 million rows: ``python -m benchmarks.query_sizes``.

The rows are Parquet files in a temporary folder, of 2 GB in all. The goals: the time grows in
proportion to the rows, and a million declared keys take at most 10 s.
"""

import tempfile
from math import log
from pathlib import Path
from statistics import linear_regression

import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp
from benchmarks.tables import duration, show, table
from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES, columns
from benchmarks.worker import peak, spent
from discreet.query import Question

SIZES = (10**5, 10**6, 10**7, 10**8)
KEYS = 10**6
_BLOCK = 10**7  # rows that are made at once
_UNIT = dp.Unit("person")
_LIMIT = dp.Limit(epsilon=100)


def main() -> None:
    """Print times and memory, and on the last line the exponent and the time of the keys."""
    made = table("Parquet", "CPU time", "a row", "peak memory")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.parquet"
            _write(path, size)
            question = _by_place(path, PLACES)
            if size == SIZES[0]:
                question.release(epsilon=1)  # compiles the statement of all
            start = spent()
            memory = peak(lambda: question.release(epsilon=1))  # noqa: B023  # run at once
            seconds.append(spent() - start)
            each = duration(seconds[-1] / size)
            made.add_row(f"{size:,} rows", duration(seconds[-1]), each, f"{memory:,.0f} MiB")
            path.unlink()
        few = pa.table(columns(SIZES[0], SIZES[0] // 10))
        times = []
        for keys in (PLACES, KEYS):
            start = spent()
            _by_place(few, keys).release(epsilon=1)
            times.append(spent() - start)
    show(made)
    exponent = linear_regression(list(map(log, SIZES)), list(map(log, seconds))).slope
    print(f"query_sizes: exponent = {exponent:.2f}, a million keys = {times[1] - times[0]:.1f} s")


def _write(path: Path, size: int) -> None:
    few = pa.table(columns(1, 1))
    with pq.ParquetWriter(path, few.schema) as writer:
        for start in range(0, size, _BLOCK):
            rows = min(_BLOCK, size - start)
            writer.write_table(pa.table(columns(rows, size // 10)))


def _by_place(rows: pa.Table | Path, keys: int) -> Question:
    declared = {
        "place": dp.Column.integer(keys=range(keys)),
        "wage": dp.Column.number(0, LARGEST),
    }
    private = dp.Table(
        rows,
        name="wages",
        unit=_UNIT,
        columns=declared,
        rows=MOST_PLACES * MOST_ROWS,
        groups=MOST_PLACES,
        rows_per_group=MOST_ROWS,
        ledger=dp.Ledger.in_memory(unit=_UNIT, limit=_LIMIT),
    )
    return private.question("SELECT place, COUNT(*), SUM(wage) FROM wages GROUP BY place")


if __name__ == "__main__":
    main()
