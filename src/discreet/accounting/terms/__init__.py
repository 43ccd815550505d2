"""The terms a privacy loss is made of, one file each: what is known of it, and from where."""

from discreet.accounting.terms.approximate import Approximate
from discreet.accounting.terms.bounded_range import BoundedRange
from discreet.accounting.terms.discrete_gaussian import DiscreteGaussian
from discreet.accounting.terms.discrete_gaussian_vector import DiscreteGaussianVector
from discreet.accounting.terms.discrete_laplace import DiscreteLaplace
from discreet.accounting.terms.gaussian import Gaussian
from discreet.accounting.terms.laplace import Laplace
from discreet.accounting.terms.poisson_sampled import PoissonSampled
from discreet.accounting.terms.pure import Pure
from discreet.accounting.terms.random_allocation import RandomAllocation
from discreet.accounting.terms.randomized_response import RandomizedResponse
from discreet.accounting.terms.report_noisy_max import ReportNoisyMax
from discreet.accounting.terms.sampled_with_replacement import SampledWithReplacement
from discreet.accounting.terms.sampled_without_replacement import SampledWithoutReplacement
from discreet.accounting.terms.shuffled import Shuffled
from discreet.accounting.terms.shuffled_reports import ShuffledReports
from discreet.accounting.terms.sparse_vector import SparseVector
from discreet.accounting.terms.threshold import Threshold
from discreet.accounting.terms.truncated_poisson import TruncatedPoisson
from discreet.accounting.terms.tuned_negative_binomial import TunedNegativeBinomial
from discreet.accounting.terms.tuned_poisson import TunedPoisson
from discreet.accounting.terms.zcdp import Zcdp

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
