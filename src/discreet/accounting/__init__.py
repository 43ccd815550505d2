"""Arithmetic of privacy: what accesses cost, as formal sums of terms and as proven numbers.

No data and no files here. The terms have the names of the mechanisms they stand for; at the top
level of `discreet`, those names are the mechanisms.
"""

from discreet.accounting.calibration import Calibration, calibrate, calibrate_count
from discreet.accounting.expression import Expression, parse
from discreet.accounting.filter import Filter, Spent
from discreet.accounting.loss import PrivacyLoss, Term
from discreet.accounting.terms import (
    Approximate,
    DiscreteLaplace,
    Gaussian,
    Pure,
    RandomizedResponse,
    Zcdp,
)

__all__ = [
    "Approximate",
    "Calibration",
    "DiscreteLaplace",
    "Expression",
    "Filter",
    "Gaussian",
    "PrivacyLoss",
    "Pure",
    "RandomizedResponse",
    "Spent",
    "Term",
    "Zcdp",
    "calibrate",
    "calibrate_count",
    "parse",
]
