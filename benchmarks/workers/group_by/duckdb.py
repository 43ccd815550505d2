"""A count and a mean by place, by DuckDB without any privacy."""

import duckdb

from benchmarks.wages import ROWS, WAGES
from benchmarks.worker import serve

PLAIN = duckdb.connect()
PLAIN.register("wages", WAGES)
SQL = "SELECT place, COUNT(*), AVG(wage) FROM wages GROUP BY place"

serve({"count-and-mean": (ROWS, lambda: PLAIN.execute(SQL).fetchall())})
