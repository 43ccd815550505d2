"""Exact random integers from secure bits, at the speed of NumPy's generators.

A law decides each outcome from as many random bits as that takes, so that every outcome has
exactly its stated probability. See docs/proofs/noise.md.
"""

from discreet.noise._bits import Bits, SecureBits, Words
from discreet.noise._choices import BernoulliLaw, CategoricalLaw, poisson_mask
from discreet.noise._discrete_gaussian import DiscreteGaussianLaw
from discreet.noise._grid import OnGrid
from discreet.noise._half_width import half_width
from discreet.noise._laws import DiscreteLaplaceLaw, GeometricLaw, Law, NoiseLaw, RoundedGaussianLaw
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
