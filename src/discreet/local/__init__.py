"""Local differential privacy: each person's device adds the noise, and nobody sees the values.

A mechanism makes reports of values (`randomize`, on the clients' devices) and estimates from the
reports of all (`estimate`). It says what a report costs its client (`privacy_loss`), what it costs
among many that are shuffled, and how wrong the estimate will be before anybody is asked (`error`).
The number of reports is public: neighbours replace one client's value, so that these losses never
add to those of a ledger whose units come and go.

`discreet.local.client` is the part that runs on a device, and stands alone.
"""

from discreet.local.client import PermanentAnswers, SketchReports
from discreet.local.count_mean_sketch import CountMeanSketch
from discreet.local.duchi_mean import DuchiMean
from discreet.local.estimate import Estimate, Interval
from discreet.local.hadamard_response import HadamardResponse
from discreet.local.local_hashing import LocalHashing
from discreet.local.mechanism import ONE_REPORT
from discreet.local.piecewise_mean import PiecewiseMean
from discreet.local.randomized_response import RandomizedResponse
from discreet.local.rappor import Rappor
from discreet.local.unary_encoding import UnaryEncoding

__all__ = [
    "ONE_REPORT",
    "CountMeanSketch",
    "DuchiMean",
    "Estimate",
    "HadamardResponse",
    "Interval",
    "LocalHashing",
    "PermanentAnswers",
    "PiecewiseMean",
    "RandomizedResponse",
    "Rappor",
    "SketchReports",
    "UnaryEncoding",
]
