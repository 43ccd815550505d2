"""Arithmetic of privacy: what accesses cost, as formal sums of terms and as proven numbers.

No data and no files here. The terms have the names of the mechanisms they stand for; at the top
level of `discreet`, those names are the mechanisms.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.accounting import terms
from discreet.accounting._loss import PrivacyLoss, Term

if TYPE_CHECKING:
    from discreet.accounting._calibration import Calibration, calibrate, calibrate_count
    from discreet.accounting._events import from_dp_event, to_dp_event
    from discreet.accounting._expression import Expression, parse
    from discreet.accounting._filter import Filter, Spent
    from discreet.accounting._interval import Interval
    from discreet.accounting.terms import (
        Approximate,
        BoundedRange,
        DiscreteGaussian,
        DiscreteGaussianVector,
        DiscreteLaplace,
        Gaussian,
        Laplace,
        PoissonSampled,
        Pure,
        RandomAllocation,
        RandomizedResponse,
        ReportNoisyMax,
        SampledWithoutReplacement,
        SampledWithReplacement,
        Shuffled,
        ShuffledReports,
        SparseVector,
        Threshold,
        TruncatedPoisson,
        TunedNegativeBinomial,
        TunedPoisson,
        Zcdp,
    )

_LATER = {
    **dict.fromkeys(terms.__all__, "terms"),
    **dict.fromkeys(("Calibration", "calibrate", "calibrate_count"), "_calibration"),
    **dict.fromkeys(("from_dp_event", "to_dp_event"), "_events"),
    **dict.fromkeys(("Expression", "parse"), "_expression"),
    **dict.fromkeys(("Filter", "Spent"), "_filter"),
    "Interval": "_interval",
}

__all__ = [
    "Approximate",
    "BoundedRange",
    "Calibration",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "Expression",
    "Filter",
    "Gaussian",
    "Interval",
    "Laplace",
    "PoissonSampled",
    "PrivacyLoss",
    "Pure",
    "RandomAllocation",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "Shuffled",
    "ShuffledReports",
    "SparseVector",
    "Spent",
    "Term",
    "Threshold",
    "TruncatedPoisson",
    "TunedNegativeBinomial",
    "TunedPoisson",
    "Zcdp",
    "calibrate",
    "calibrate_count",
    "from_dp_event",
    "parse",
    "to_dp_event",
]


def __getattr__(name: str) -> object:
    """The names that not every use needs, imported when they are first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'discreet.accounting' has no attribute {name!r}")
    return getattr(import_module(f"discreet.accounting.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
