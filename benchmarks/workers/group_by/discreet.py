"""A count and a mean by place, private for each person."""

import discreet as dp
from benchmarks.wages import PLACES, ROWS, WAGES
from benchmarks.worker import serve

UNIT = dp.Unit("person")
COLUMNS = {"place": dp.Column.integer(keys=range(PLACES)), "wage": dp.Column.number(0, 100)}
LEDGER = dp.Ledger.in_memory(unit=UNIT, limit=dp.Limit(epsilon=1000))
PRIVATE = (
    dp.Table(
        WAGES,
        name="wages",
        unit=UNIT,
        columns=COLUMNS,
        rows=15,
        groups=3,
        rows_per_group=5,
        ledger=LEDGER,
    )
    .group_by("place")
    .agg(people=dp.count(), pay=dp.mean("wage"))
)

serve({"count-and-mean": (ROWS, lambda: PRIVATE.release(epsilon=1))})
