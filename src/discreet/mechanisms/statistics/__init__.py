"""Statistics of tables: sums with exact sensitivity, and the numbers that follow from them.

A function here turns rows (`Bounded.rows`) into integers of known sensitivity, again a `Bounded`,
for `DiscreteLaplace` or `Gaussian`; or it reads their release. To read the files in order:

1. Moments: `_layout` (weights and sensitivity), `_products` (exact sums), `_moments`.
2. Their release: `_summary` (means, covariances), `_regression`; `_intervals` bounds the noise and
   combines intervals.
3. `_second_moments` and `_components`: principal components.
4. `_contingency` (tables and the chi-square test) and `_association` (scores of attributes).
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
from discreet.mechanisms.statistics._regression import (
    INTERCEPT,
    Regression,
    regression,
    regression_errors,
)
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
    "regression_errors",
    "second_moment_matrix",
    "second_moments",
    "spectral_error",
]
