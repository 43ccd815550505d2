"""Statistics of tables: sums whose sensitivity is known exactly, and what follows from them.

Each function here turns rows, `Bounded.rows`, into whole numbers of known sensitivity, a `Bounded`
again, which `DiscreteLaplace` or `Gaussian` makes private; or reads what was released.
"""

from discreet.mechanisms.statistics._association import (
    CHI_SQUARE_STEP,
    chi_square_scores,
    difference_scores,
)
from discreet.mechanisms.statistics._components import (
    Components,
    nearest_positive,
    principal_components,
)
from discreet.mechanisms.statistics._contingency import ChiSquare, chi_square, contingency
from discreet.mechanisms.statistics._intervals import NoisyEstimate
from discreet.mechanisms.statistics._moments import moment_errors, moments
from discreet.mechanisms.statistics._regression import INTERCEPT, Regression, regression
from discreet.mechanisms.statistics._second_moments import (
    second_moment_matrix,
    second_moments,
    spectral_error,
)
from discreet.mechanisms.statistics._summary import Moments

__all__ = [
    "CHI_SQUARE_STEP",
    "INTERCEPT",
    "ChiSquare",
    "Components",
    "Moments",
    "NoisyEstimate",
    "Regression",
    "chi_square",
    "chi_square_scores",
    "contingency",
    "difference_scores",
    "moment_errors",
    "moments",
    "nearest_positive",
    "principal_components",
    "regression",
    "second_moment_matrix",
    "second_moments",
    "spectral_error",
]
