"""A count, a sum and a mean by place, by DuckDB without any privacy."""

import duckdb
import pyarrow as pa

from benchmarks.wages import ROWS, columns
from benchmarks.worker import on_cores, serve

WAGES = pa.table(columns())
SQL = "SELECT place, COUNT(*), SUM(wage), AVG(wage) FROM wages GROUP BY place"


def _run() -> None:
    with duckdb.connect() as plain:  # as many threads as cores
        plain.register("wages", WAGES)
        plain.execute(SQL).fetchall()


serve({name: (ROWS, on_cores(_run, cores)) for name, cores in (("one-core", 1), ("two-cores", 2))})
