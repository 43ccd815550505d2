"""The same, private for each person; and a small question that is asked again."""

import numpy as np
import pyarrow as pa

import discreet as dp
from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES, ROWS, columns
from benchmarks.worker import on_cores, peak, serve

UNIT = dp.Unit("person")
COLUMNS = {"place": dp.Column.integer(keys=range(PLACES)), "wage": dp.Column.number(0, LARGEST)}
LEDGER = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=10_000))


def _question(rows: dict[str, np.ndarray]) -> dp.query.Question:
    private = dp.Table(
        pa.table(rows),
        name="wages",
        unit=UNIT,
        columns=COLUMNS,
        rows=MOST_PLACES * MOST_ROWS,
        groups=MOST_PLACES,
        rows_per_group=MOST_ROWS,
        ledger=LEDGER,
    )
    return private.question(
        "SELECT place, COUNT(*), SUM(wage), AVG(wage) FROM wages GROUP BY place"
    )


LARGE, SMALL = _question(columns()), _question(columns(1_000, 100))


def _run() -> None:
    LARGE.release(epsilon=1)


CASES = {
    "one-core": (ROWS, on_cores(_run, 1)),
    "two-cores": (ROWS, on_cores(_run, 2)),
    "small": (1, lambda: SMALL.release(epsilon=1)),
    "forecast": (1, lambda: SMALL.forecast(epsilon=1)),
}
serve(CASES, figures={"peak": lambda: peak(_run)})
