"""A count and a mean by 50 groups, for 200 000 people with 2 000 000 rows: with privacy, and by
DuckDB without any. Seconds are per row."""

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dp
from benchmarks.worker import serve

ROWS, PEOPLE, GROUPS = 2_000_000, 200_000, 50

generator = np.random.default_rng(1)
TABLE = pa.table(
    {
        "person": generator.integers(0, PEOPLE, ROWS),
        "place": generator.integers(0, GROUPS, ROWS),
        "wage": generator.uniform(0, 100, ROWS),
    }
)
UNIT = dp.Unit("person")
COLUMNS = {"place": dp.Column.integer(keys=range(GROUPS)), "wage": dp.Column.number(0, 100)}
LEDGER = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1000))
PRIVATE = (
    dp.Table(
        TABLE,
        name="wages",
        unit=UNIT,
        columns=COLUMNS,
        max_groups=3,
        max_rows_per_group=5,
        ledger=LEDGER,
    )
    .group_by("place")
    .agg(people=dp.count(), pay=dp.mean("wage"))
)
PLAIN = duckdb.connect()
PLAIN.register("wages", TABLE)

serve(
    {
        "private": (ROWS, lambda: PRIVATE.release(epsilon=1)),
        "duckdb-without-privacy": (
            ROWS,
            lambda: PLAIN.execute(
                "SELECT place, COUNT(*), AVG(wage) FROM wages GROUP BY place"
            ).fetchall(),
        ),
    }
)
