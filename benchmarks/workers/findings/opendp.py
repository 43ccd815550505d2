"""Mechanisms of OpenDP on two neighbouring datasets."""

import math
from typing import Any

import opendp.prelude as dp
import polars as pl

from benchmarks.draws import Mechanism, serve_draws

dp.enable_features("contrib")

ROWS = 8
CHANGED = 2  # a row is replaced: one is removed, one is added
INTEGER = (dp.atom_domain(T=int), dp.absolute_distance(T=int))
REAL = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float))
WHOLE = dp.m.make_laplace(*INTEGER, scale=1.0)
FLOAT = dp.m.make_laplace(*REAL, scale=1.0)


def counted(expression: pl.Expr) -> Mechanism:
    """The count of an expression on rows of a public number; in the neighbour one is NaN."""
    tables = [pl.LazyFrame({"share": [0.5] * (ROWS - 1) + [last]}) for last in (0.5, math.nan)]
    shares = dp.series_domain("share", dp.option_domain(dp.atom_domain(T=float)))
    margin = dp.polars.Margin(max_length=ROWS, invariant="lengths")
    count: Any = expression.count()  # Any: OpenDP adds ``dp`` to Polars
    release = dp.m.make_private_lazyframe(
        dp.with_margin(dp.lazyframe_domain([shares]), margin),
        dp.frame_distance(dp.symmetric_distance()),
        dp.max_divergence(),
        tables[0].select(count.dp.noise()),
        global_scale=1.0,
    )
    stated = release.map([dp.polars.Bound(per_group=CHANGED)])

    def draw(place: int) -> Any:  # Any: a number of a frame
        return release(tables[place]).collect().item()

    return Mechanism(draw, stated)


FILLED = pl.col("share").fill_null(0.0)

serve_draws(
    {
        "count-after-cast": counted(FILLED.cast(pl.Int64, strict=False)),
        "count-after-cut": counted(FILLED.cut([0.7])),
        "integer-Laplace": Mechanism(WHOLE, WHOLE.map(1)),
        "float-Laplace": Mechanism(lambda place: FLOAT(float(place)), FLOAT.map(1.0)),
    }
)
