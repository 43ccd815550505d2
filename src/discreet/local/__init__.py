"""Local differential privacy: each person's device adds the noise, and nobody sees the values.

A mechanism makes reports of values (`randomize`, on the clients' devices) and estimates from the
reports of all (`estimate`). It says what a report costs its client (`privacy_loss`), what it costs
among many that are shuffled, and how wrong the estimate will be before anybody is asked (`error`).
The number of reports is public: neighbours replace one client's value, so that these losses never
add to those of a ledger whose units come and go.

`discreet.local.client` is the part that runs on a device, and stands alone.
"""

from discreet.local._count_mean_sketch import CountMeanSketch
from discreet.local._duchi_mean import DuchiMean
from discreet.local._estimate import Estimate, EstimateInterval
from discreet.local._hadamard_response import HadamardResponse
from discreet.local._local_hashing import LocalHashing
from discreet.local._mechanism import ONE_REPORT
from discreet.local._piecewise_mean import PiecewiseMean
from discreet.local._randomized_response import RandomizedResponse
from discreet.local._rappor import Rappor
from discreet.local._unary_encoding import UnaryEncoding
from discreet.local.client import PermanentAnswers, SketchReports

__all__ = [
    "ONE_REPORT",
    "CountMeanSketch",
    "DuchiMean",
    "Estimate",
    "EstimateInterval",
    "HadamardResponse",
    "LocalHashing",
    "PermanentAnswers",
    "PiecewiseMean",
    "RandomizedResponse",
    "Rappor",
    "SketchReports",
    "UnaryEncoding",
]
