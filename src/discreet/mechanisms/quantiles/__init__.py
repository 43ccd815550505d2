"""Quantiles and histograms of a column: exact mechanisms on single values.

To read the files in order:

1. `_ranks`: by how many rows each value misses a quantile, and the choice by that; `_column` has
   levels, grids and the sensitivity of a miss.
2. One quantile: `_one_quantile` (the base), `_quantile` (exponential mechanism), `_flipped`
   (permute-and-flip), `_smooth` (smooth sensitivity), `_inter_quartile_range`; `_interval` (with
   an interval, for each group).
3. Several: `_splits` and `_break_ties`, then `_quantiles`.
4. Counts: `_histogram`, `_cumulative` (with `_partial_sums`), `_bounds` (the range of the values),
   `_checked_bounds` (with the share that it holds).
"""

from discreet.mechanisms.quantiles._bounds import ApproximateBounds
from discreet.mechanisms.quantiles._checked_bounds import CheckedBounds
from discreet.mechanisms.quantiles._cumulative import Cumulative
from discreet.mechanisms.quantiles._flipped import PermuteAndFlipQuantile
from discreet.mechanisms.quantiles._histogram import histogram
from discreet.mechanisms.quantiles._inter_quartile_range import InterQuartileRange
from discreet.mechanisms.quantiles._interval import QuantileIntervals
from discreet.mechanisms.quantiles._quantile import Quantile
from discreet.mechanisms.quantiles._quantiles import Quantiles
from discreet.mechanisms.quantiles._ranks import Score
from discreet.mechanisms.quantiles._smooth import SmoothMedian

__all__ = [
    "ApproximateBounds",
    "CheckedBounds",
    "Cumulative",
    "InterQuartileRange",
    "PermuteAndFlipQuantile",
    "Quantile",
    "QuantileIntervals",
    "Quantiles",
    "Score",
    "SmoothMedian",
    "histogram",
]
