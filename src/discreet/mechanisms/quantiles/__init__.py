"""Quantiles of a column, and its shape: exact mechanisms that look at single values."""

from discreet.mechanisms.quantiles._bounds import ApproximateBounds
from discreet.mechanisms.quantiles._cumulative import Cumulative
from discreet.mechanisms.quantiles._flipped import PermuteAndFlipQuantile
from discreet.mechanisms.quantiles._histogram import histogram
from discreet.mechanisms.quantiles._inter_quartile_range import InterQuartileRange
from discreet.mechanisms.quantiles._quantile import Quantile
from discreet.mechanisms.quantiles._quantiles import Quantiles
from discreet.mechanisms.quantiles._ranks import Score
from discreet.mechanisms.quantiles._smooth import SmoothMedian

__all__ = [
    "ApproximateBounds",
    "Cumulative",
    "InterQuartileRange",
    "PermuteAndFlipQuantile",
    "Quantile",
    "Quantiles",
    "Score",
    "SmoothMedian",
    "histogram",
]
