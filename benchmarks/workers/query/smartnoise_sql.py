"""The same by SmartNoise SQL on a frame of pandas, of a hundredth of the rows."""

import pandas as pd
from snsql import Privacy, from_df

from benchmarks.wages import LARGEST, MOST_PLACES, PEOPLE, PLACES, ROWS, columns
from benchmarks.worker import on_cores, serve

FEW = ROWS // 100
WAGES = pd.DataFrame(columns(FEW, PEOPLE // 100))
FACTS = {
    "": {
        "t": {
            "wages": {
                "max_ids": MOST_PLACES,
                "person": {"type": "int", "private_id": True},
                "place": {"type": "int", "lower": 0, "upper": PLACES - 1},
                "wage": {"type": "float", "lower": 0, "upper": LARGEST},
            }
        }
    }
}
SQL = "SELECT place, COUNT(*), SUM(wage), AVG(wage) FROM t.wages GROUP BY place"


def _run() -> None:
    reader = from_df(WAGES, metadata=FACTS, privacy=Privacy(epsilon=1.0, delta=1e-6))
    assert len(reader.execute(SQL)) > PLACES // 2


serve({"one-core": (FEW, on_cores(_run, 1))})
