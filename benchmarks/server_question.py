"""The question that servers are asked: the group-by of `benchmarks.wages`."""

import discreet as dp
from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PLACES
from discreet.query import Question


def asked(address: str) -> tuple[dp.Table, Question]:
    """The table at this address, and the question."""
    own = dp.Table(
        address,
        name="t",
        unit=dp.Unit("person"),
        columns={
            "place": dp.Column.integer(keys=range(PLACES)),
            "wage": dp.Column.number(0, LARGEST),
        },
        rows=MOST_PLACES * MOST_ROWS,
        groups=MOST_PLACES,
        rows_per_group=MOST_ROWS,
    )
    return own, own.question("SELECT place, COUNT(*), SUM(wage), AVG(wage) FROM t GROUP BY place")
