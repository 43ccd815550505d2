"""The kinds of term that a privacy loss is made of: the bounds on each, with their sources.

By family: `_pure` and `_gaussian` (promises and noise), `_selection`, `_sampling` and
`_fixed_samples`, `_shuffling`, `_tuning` (terms around another privacy loss), and `_curves`
(bounds and distributions that come from elsewhere).

They build on `_around_loss` (any term around another privacy loss), `_allocation` (shuffled steps)
and `_best_run` (tuning).
"""

from discreet.accounting.terms._curves import LossDistribution, ProfileCurve, RenyiCurve
from discreet.accounting.terms._fixed_samples import (
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from discreet.accounting.terms._gaussian import (
    DiscreteGaussian,
    DiscreteGaussianVector,
    Gaussian,
    Zcdp,
)
from discreet.accounting.terms._pure import (
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    Laplace,
    Pure,
    RandomizedResponse,
)
from discreet.accounting.terms._sampling import PoissonSampled, TruncatedPoisson
from discreet.accounting.terms._selection import ReportNoisyMax, SparseVector, Threshold
from discreet.accounting.terms._shuffling import RandomAllocation, Shuffled, ShuffledReports
from discreet.accounting.terms._tuning import TunedNegativeBinomial, TunedPoisson

__all__ = [
    "Approximate",
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "LossDistribution",
    "PoissonSampled",
    "ProfileCurve",
    "Pure",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiCurve",
    "ReportNoisyMax",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "Shuffled",
    "ShuffledReports",
    "SparseVector",
    "Threshold",
    "TruncatedPoisson",
    "TunedNegativeBinomial",
    "TunedPoisson",
    "Zcdp",
]
