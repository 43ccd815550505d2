"""The same by Tumult Analytics on a local Spark, of a hundredth of the rows."""

import os
import sys
import tempfile
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PEOPLE, PLACES, ROWS, columns
from benchmarks.worker import serve, spent, spent_by

os.environ["PYSPARK_PYTHON"] = sys.executable
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.master": "local[1]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": tempfile.mkdtemp(),
}
FEW = ROWS // 100
SPARK: Any = SparkSession.builder.config(map=SETTINGS).getOrCreate()  # Any: as Java has it
SPARK.sparkContext.setLogLevel("OFF")
WAGES = SPARK.createDataFrame(pd.DataFrame(columns(FEW, PEOPLE // 100)))
KEYS = KeySet.from_dict({"place": list(range(PLACES))})
WHOLE, EACH = PureDPBudget(3), PureDPBudget(1)


def _run() -> None:
    session = Session.from_dataframe(
        WHOLE, "wages", WAGES, protected_change=AddRowsWithID("person")
    )
    bounded = (
        QueryBuilder("wages")
        .enforce(MaxGroupsPerID("place", MOST_PLACES))
        .enforce(MaxRowsPerGroupPerID("place", MOST_ROWS))
        .groupby(KEYS)
    )
    asked = (bounded.count(), bounded.sum("wage", 0, LARGEST), bounded.average("wage", 0, LARGEST))
    for one in asked:
        assert session.evaluate(one, EACH).toPandas().shape == (PLACES, 2)


def _spent() -> float:
    java = SPARK.sparkContext._gateway.proc.pid  # noqa: SLF001  # it has no public form
    return spent() + spent_by(java)


serve({"one-core": (FEW, _run)}, clock=_spent)
