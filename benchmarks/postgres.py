"""A private group-by in PostgreSQL beside bounding SQL written by hand:
``python -m benchmarks.postgres``."""

from statistics import median
from time import perf_counter

import psycopg

import discreet as dp
from benchmarks.tables import duration, show, table
from discreet.query._bounding._compiled_plan import prepare
from discreet.query._engines import _engine
from tests.query import postgres_tables

ROWS, UNITS, GROUPS, ROUNDS = 300_000, 30_000, 50, 5
_FILL = f"""
    SELECT (n * n * 7919::numeric % {UNITS})::int8, (n * 104729::int8 % {GROUPS})::int4,
      (n * 7919::int8 % 100000) / 1000.0 FROM generate_series(1::int8, {ROWS}) AS n
"""  # noqa: S608  # numbers of ours
# at most 3 groups of a unit and 4 rows in each, values clamped and on a grid: but no exact rounding
_BY_HAND = """
    SELECT grp, sum(rows), sum(total) FROM (
      SELECT grp, least(rows, 4) AS rows, total * least(rows, 4) / rows AS total,
        row_number() OVER (PARTITION BY person ORDER BY md5(person || ' ' || grp)) AS place
      FROM (
        SELECT person, grp, count(*) AS rows, sum(steps)::int8 AS total FROM (
          SELECT person, grp, round(least(greatest(wage, 0), 100) * 1048576)::int8 AS steps
          FROM {name} WHERE person IS NOT NULL AND grp BETWEEN 0 AND 49
        ) AS values GROUP BY person, grp
      ) AS cells
    ) AS ranked WHERE place <= 3 GROUP BY grp
"""


def main() -> None:
    """Print both times, and on the last line their ratio."""
    name = postgres_tables.new_name()
    postgres_tables.run(
        f"CREATE TABLE {name} (person int8, grp int4, wage float8)",
        f"INSERT INTO {name} {_FILL}",
        f"GRANT SELECT ON {name} TO {postgres_tables.reader()}",
        f"ANALYZE {name}",
    )
    found: dict[str, list[float]] = {"by hand": [], "discreet": []}
    for turn in range(ROUNDS + 1):
        for contestant, seconds in (("by hand", _by_hand(name)), ("discreet", _private(name))):
            found[contestant] += [seconds] if turn else []
    times = {contestant: median(seconds) for contestant, seconds in found.items()}
    made = table("median wall time of", "by hand", "discreet")
    made.add_row(f"{ROWS:,} rows", *(duration(seconds) for seconds in times.values()))
    show(made)
    print(f"postgres: ratio to hand-written = {times['discreet'] / times['by hand']:.1f}")


def _by_hand(name: str) -> float:
    with psycopg.connect(postgres_tables.owner(), autocommit=True) as connection:
        connection.execute("SET work_mem = '64MB'")
        connection.execute("SET jit = off")
        start = perf_counter()
        connection.execute(_BY_HAND.format(name=name)).fetchall()
        return perf_counter() - start


def _private(name: str) -> float:
    unit = dp.Unit("person")
    own = dp.Table(
        postgres_tables.url(name),
        name="t",
        unit=unit,
        columns={
            "grp": dp.Column.integer(0, GROUPS - 1, keys=range(GROUPS)),
            "wage": dp.Column.number(0, 100),
        },
        rows=12,
        groups=3,
        rows_per_group=4,
    )
    question = own.question("SELECT grp, COUNT(*), SUM(wage) FROM t GROUP BY grp")
    with _engine.opened(own.source) as engine:
        ready = prepare(question.plan, own.source, engine)
        start = perf_counter()
        ready.compute(None)
        return perf_counter() - start


if __name__ == "__main__":
    main()
