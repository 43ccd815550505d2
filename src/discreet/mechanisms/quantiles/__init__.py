"""Quantiles of a column, and its shape: exact mechanisms that look at single values."""

from discreet.mechanisms.quantiles.bounds import ApproximateBounds
from discreet.mechanisms.quantiles.cumulative import Cumulative
from discreet.mechanisms.quantiles.flipped import PermuteAndFlipQuantile
from discreet.mechanisms.quantiles.histogram import histogram
from discreet.mechanisms.quantiles.inter_quartile_range import InterQuartileRange
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.mechanisms.quantiles.quantiles import Quantiles
from discreet.mechanisms.quantiles.smooth import SmoothMedian

__all__ = [
    "ApproximateBounds",
    "Cumulative",
    "InterQuartileRange",
    "PermuteAndFlipQuantile",
    "Quantile",
    "Quantiles",
    "SmoothMedian",
    "histogram",
]
