"""What the trees share: which noise their sums get, what it costs, and how far sums of it go."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from discreet._exact import precision
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_gaussian import DiscreteGaussian
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import FloatArray
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    NoiseLaw,
    RoundedGaussianLaw,
    half_width,
)

Noise = DiscreteLaplace | Gaussian | DiscreteGaussian
"""A mechanism that can make the sums of a tree private."""

_FINENESS = 128  # cells to a standard deviation
_FAR = 2.0**-48
_ROUNDING = 2.0**-40
_BITS = 64


def checked_noise(noise: object) -> Noise:
    """The noise, if it is one of those that trees know."""
    if isinstance(noise, DiscreteLaplace | Gaussian | DiscreteGaussian):
        return noise
    raise InvalidArgument(f"noise = {noise!r}: give DiscreteLaplace, Gaussian or DiscreteGaussian")


def law_of(noise: Noise) -> NoiseLaw:
    """Its law."""
    match noise:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplaceLaw(scale)
        case Gaussian(stddev=stddev):
            return RoundedGaussianLaw(stddev)
        case DiscreteGaussian(stddev=stddev):
            return DiscreteGaussianLaw(stddev)


def price(noise: Noise, levels: Iterable[Sensitivity], unit: Unit) -> PrivacyLoss:
    """The sum over the levels, each an array of sums of this sensitivity."""
    stated = (
        Bounded(_nothing, sensitivity=level, unit=unit, name="level", shape=(max(level.l0, 1),))
        for level in levels
    )
    return sum((noise.privacy_loss(level) for level in stated), PrivacyLoss(unit=unit))


def _nothing() -> int:
    return 0


def sum_half_width(noise: Noise, count: int, confidence: Fraction) -> int:
    """A whole q with the sum of so many independent draws, at most 64, in [-q, q] at this
    confidence: the smallest one for one draw, and hardly above it for others.

    Each draw is put into a cell, and the chances of sums of cells are found by Fourier's
    transform; a draw is at most half a cell away from its cell's middle.
    """
    law = law_of(noise)
    if count == 1:
        return half_width(law, confidence)
    outside, stddev = float(1 - confidence) - _ROUNDING, law.stddev()
    if outside <= _ROUNDING or not math.isfinite(stddev):  # each draw by itself
        return count * half_width(law, 1 - (1 - confidence) / count)
    half = int(stddev / _FINENESS) // 2  # a cell is 2 half + 1 wide
    cells = _cells(law, half)
    farthest = count * (cells.size // 2)
    size = 1 << (2 * farthest).bit_length()
    chances = np.fft.irfft(np.fft.rfft(cells, size) ** count, size)[:farthest]
    within = int(np.searchsorted(2 * np.cumsum(chances), outside, side="right"))
    return (farthest - within) * (2 * half + 1) + count * half


def _cells(law: NoiseLaw, half: int) -> FloatArray:
    """The chance of each cell, up to where hardly anything is left, which is put into the last."""
    beyond = [1.0]  # the middle of cell 0, of cell 1, ... and its mirror image
    with precision(_BITS):
        while beyond[-1] > _FAR:
            beyond.append(float(law.tail((2 * half + 1) * (len(beyond) - 1) + half + 1)))
    sides = -np.diff([*beyond[1:-1], 0.0]) / 2
    return np.concatenate([sides[::-1], [1 - beyond[1]], sides])
