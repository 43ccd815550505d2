"""The same by OpenDP's front end for Polars, of a hundredth of the rows."""

from typing import Any

import opendp.prelude as dp
import polars as pl

from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PEOPLE, PLACES, ROWS, columns
from benchmarks.worker import on_cores, serve

dp.enable_features("contrib")
FEW = ROWS // 100
WAGES = pl.LazyFrame(columns(FEW, PEOPLE // 100))
KEYS = pl.LazyFrame({"place": list(range(PLACES))}, schema={"place": pl.Int64})
UNIT = dp.unit_of(
    contributions=[
        dp.polars.Bound(per_group=MOST_ROWS),
        dp.polars.Bound(by=["place"], num_groups=MOST_PLACES),
    ],
    identifier="person",
)
WAGE: Any = pl.col("wage").fill_nan(0.0).fill_null(0.0)  # Any: OpenDP adds its names to Polars


def _run() -> None:
    context = dp.Context.compositor(
        data=WAGES,
        privacy_unit=UNIT,
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["place"], max_length=FEW, max_groups=PLACES)],
    )
    bounded = context.query().truncate_per_group(MOST_ROWS, by=["place"])
    # "first", since its choice by a hash fails for a single column; a mean is the sum by the count
    bounded = bounded.truncate_num_groups(MOST_PLACES, by=["place"], keep="first")
    asked = bounded.group_by("place").agg(
        dp.len(signed=True).alias("n"), WAGE.dp.sum((0.0, float(LARGEST))).alias("total")
    )
    assert asked.with_keys(KEYS).release().collect().height == PLACES


serve({"one-core": (FEW, on_cores(_run, 1))})
