"""Local differential privacy: each client's device adds the noise, and no collector is trusted.

A mechanism makes reports of values (`randomize`, on the clients' devices) and estimates from all
reports (`estimate`). It states what a report costs its client (`privacy_loss`), also among reports
that are shuffled (`shuffled`), and the error of the estimate before any data exist (`error`). The
number of reports is public: neighbours replace one client's value, so these privacy losses never
add to those of a ledger whose units are added or removed.

`discreet.local.client` runs on a device and needs nothing else of discreet. Read first
`client/_randomized_response`, then `_randomized_response`, the mechanism on top of it, with
`_mechanism` (the common methods), `_odds` (from epsilon to odds), `_estimate` (intervals) and
`_forecast` (errors in advance). All other mechanisms have the same shape:
`_unary_encoding`, `_local_hashing`, `_hadamard_response`, `_count_mean_sketch`, `_rappor`, and
`_means` for means.
"""

from discreet.local._count_mean_sketch import CountMeanSketch
from discreet.local._estimate import Estimate, EstimateInterval
from discreet.local._hadamard_response import HadamardResponse
from discreet.local._local_hashing import LocalHashing
from discreet.local._means import DuchiMean, PiecewiseMean
from discreet.local._mechanism import ONE_REPORT
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
