"""Exact random integers from secure bits, at the speed of NumPy's generators.

A law reads random bits until they decide the outcome. So every outcome has exactly its stated
probability: docs/proofs/noise.md has the proofs. To read the files in order:

1. `_bits`: the source of random words.
2. `_inversion`: a draw inverts the cumulative distribution, reading digits of a uniform U.
3. The laws: `_affine_quantile` and `_quantiles` (fast, proven float64), `_laws` (discrete Laplace,
   rounded Gaussian, geometric), `_steps` and `_choices` (few outcomes), `_uniform`, `_staircase`,
   `_discrete_gaussian` and `_max_norm` (by rejection).
4. Draws that are no numbers: `_pieces` (exponential mechanism) and `_flipped_pieces`
   (permute-and-flip), where one piece is many candidates of the same score; `_selection` (one of
   many by scores) and `_order` (permutations).
5. Forecasts of errors: `half_width` in `_laws`, `_tail_inversion`, `_normal_tails`, `_sums`,
   `_laplace_sums`.
6. `_grid`: noise for real numbers, in whole steps.
"""

from discreet.noise._bits import Bits, SecureBits, Words
from discreet.noise._choices import BernoulliLaw, CategoricalLaw, poisson_mask
from discreet.noise._discrete_gaussian import DiscreteGaussianLaw
from discreet.noise._grid import OnGrid
from discreet.noise._laws import (
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    NoiseLaw,
    RoundedGaussianLaw,
    half_width,
)
from discreet.noise._max_norm import MaxNormLaw
from discreet.noise._order import permutation, sample_without_replacement
from discreet.noise._selection import exponential_choice, permute_and_flip
from discreet.noise._staircase import StaircaseLaw
from discreet.noise._uniform import UniformLaw

__all__ = [
    "BernoulliLaw",
    "Bits",
    "CategoricalLaw",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "GeometricLaw",
    "Law",
    "MaxNormLaw",
    "NoiseLaw",
    "OnGrid",
    "RoundedGaussianLaw",
    "SecureBits",
    "StaircaseLaw",
    "UniformLaw",
    "Words",
    "exponential_choice",
    "half_width",
    "permutation",
    "permute_and_flip",
    "poisson_mask",
    "sample_without_replacement",
]
