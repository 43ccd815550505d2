"""The same from bounded rows, by the fastest SQL for DuckDB that we know: one packed key for each
person and place, the three smallest hashes of each person by a join, and no exact rounding."""

import duckdb
import pyarrow as pa

from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES, ROWS, columns
from benchmarks.worker import on_cores, peak, serve

WAGES = pa.table(columns())
SQL = f"""
    WITH cells AS MATERIALIZED (
      SELECT key // {PLACES} AS person, key % {PLACES} AS place, hash(key) AS h, rows, total FROM (
        SELECT person * {PLACES} + place AS key, count(*) AS rows,
          sum(CAST(round(greatest(least(wage, {LARGEST}), 0) * 1048576) AS BIGINT))::BIGINT AS total
        FROM wages WHERE place BETWEEN 0 AND {PLACES - 1} GROUP BY key
      )
    ),
    last AS (SELECT person, list_last(min(h, {MOST_PLACES})) AS edge FROM cells GROUP BY person)
    SELECT place, sum(least(rows, {MOST_ROWS})), sum(total * least(rows, {MOST_ROWS}) / rows)
    FROM cells JOIN last USING (person) WHERE h <= edge GROUP BY place
"""  # noqa: S608  # numbers of ours


def _run() -> None:
    with duckdb.connect() as plain:
        plain.register("wages", WAGES)
        plain.execute(SQL).fetchall()


CASES = {name: (ROWS, on_cores(_run, cores)) for name, cores in (("one-core", 1), ("two-cores", 2))}
serve(CASES, figures={"peak": lambda: peak(_run)})
