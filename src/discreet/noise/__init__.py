"""Exact random integers from secure bits.

A law states its tail in ball arithmetic; `draw` decides each outcome from as many random bits
as that takes, so every outcome has exactly its stated probability. See docs/proofs/noise.md.
"""

from discreet.noise.bits import Bits, SecureBits
from discreet.noise.draw import draw, half_width
from discreet.noise.laws import DiscreteLaplaceLaw, Law, RoundedGaussianLaw

__all__ = [
    "Bits",
    "DiscreteLaplaceLaw",
    "Law",
    "RoundedGaussianLaw",
    "SecureBits",
    "draw",
    "half_width",
]
