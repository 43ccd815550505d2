"""The terms a privacy loss is made of, one file each: what is known of it, and from where."""

import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.accounting.terms._approximate import Approximate
    from discreet.accounting.terms._bounded_range import BoundedRange
    from discreet.accounting.terms._discrete_gaussian import DiscreteGaussian
    from discreet.accounting.terms._discrete_gaussian_vector import DiscreteGaussianVector
    from discreet.accounting.terms._discrete_laplace import DiscreteLaplace
    from discreet.accounting.terms._gaussian import Gaussian
    from discreet.accounting.terms._laplace import Laplace
    from discreet.accounting.terms._poisson_sampled import PoissonSampled
    from discreet.accounting.terms._pure import Pure
    from discreet.accounting.terms._random_allocation import RandomAllocation
    from discreet.accounting.terms._randomized_response import RandomizedResponse
    from discreet.accounting.terms._report_noisy_max import ReportNoisyMax
    from discreet.accounting.terms._sampled_with_replacement import SampledWithReplacement
    from discreet.accounting.terms._sampled_without_replacement import SampledWithoutReplacement
    from discreet.accounting.terms._shuffled import Shuffled
    from discreet.accounting.terms._shuffled_reports import ShuffledReports
    from discreet.accounting.terms._sparse_vector import SparseVector
    from discreet.accounting.terms._threshold import Threshold
    from discreet.accounting.terms._truncated_poisson import TruncatedPoisson
    from discreet.accounting.terms._tuned_negative_binomial import TunedNegativeBinomial
    from discreet.accounting.terms._tuned_poisson import TunedPoisson
    from discreet.accounting.terms._zcdp import Zcdp

__all__ = [
    "Approximate",
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "PoissonSampled",
    "Pure",
    "RandomAllocation",
    "RandomizedResponse",
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


def __getattr__(name: str) -> object:
    """A term, whose file is imported when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'discreet.accounting.terms' has no attribute {name!r}")
    file = re.sub("(?<=.)[A-Z]", r"_\g<0>", name).lower()
    return getattr(import_module(f"discreet.accounting.terms._{file}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
