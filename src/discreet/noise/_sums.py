"""Half-widths at a confidence of sums of independent noises: two with weights, or many equal."""

import math
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from discreet._exact import precision
from discreet.noise._arrays import FloatArray
from discreet.noise._laws import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw, half_width

PairLaw = DiscreteLaplaceLaw | RoundedGaussianLaw

_SAFE = 1 + 1e-9  # above the rounding of floats
_NEARLY_EQUAL = 1 - 1e-5  # the difference of two tails would lose its digits
_FINENESS = 128  # cells to a standard deviation
_FAR = 2.0**-48
_ROUNDING = 2.0**-40
_BITS = 64


def pair_half_width(
    laws: tuple[PairLaw, PairLaw], weights: tuple[float, float], confidence: Fraction
) -> float:
    """An upper bound on the smallest q with P(|a M + b N| <= q) >= confidence, for independent
    noises M and N of the same kind and weights a and b.

    The bound increases with |a| and with |b|, since noise is symmetric and unimodal. Rounded
    Gaussian noise differs from Gaussian noise by at most 1/2. Discrete Laplace noise is a
    difference of the integer parts of two exponential numbers, and differs from Laplace noise by
    less than 1. The weighted sum of two Gaussian or two Laplace noises has a known law.
    """
    (one, other), (a, b) = laws, map(abs, weights)
    outside = float(1 - confidence)
    if isinstance(one, RoundedGaussianLaw) and isinstance(other, RoundedGaussianLaw):
        spread = math.hypot(a * float(one.sigma), b * float(other.sigma))
        return (-float(ndtri(outside / 2)) * spread + (a + b) / 2) * _SAFE
    assert isinstance(one, DiscreteLaplaceLaw)
    assert isinstance(other, DiscreteLaplaceLaw)  # both are of one kind
    far = _two_laplace(a * float(one.scale), b * float(other.scale), outside)
    return (far + a + b) * _SAFE


def _two_laplace(a: float, b: float, outside: float) -> float:
    """The smallest float t with computed P(|X + Y| > t) <= outside, for Laplace X and Y of scales a
    and b."""
    low, high = 0.0, (a + b) * math.log(4 / outside)
    while low < (middle := low + (high - low) / 2) < high:
        is_far = _two_laplace_tail(max(a, b), min(a, b), middle) > outside
        low, high = (middle, high) if is_far else (low, middle)
    return high


def _two_laplace_tail(large: float, small: float, t: float) -> float:
    """P(|X + Y| > t) for Laplace X and Y of these scales. Nearly equal scales are replaced by the
    larger one."""
    if small == 0:
        return math.exp(-t / large)
    if small > large * _NEARLY_EQUAL:
        return (1 + t / (2 * large)) * math.exp(-t / large)
    ratio = (small / large) ** 2
    return (math.exp(-t / large) - ratio * math.exp(-t / small)) / (1 - ratio)


def sum_half_width(law: NoiseLaw, count: int, confidence: Fraction) -> int:
    """A whole q such that the sum of ``count`` <= 64 independent draws lies in [-q, q] at this
    confidence. It is the smallest one for one draw, and hardly larger for more.

    Each draw is put into a cell, at most half a cell from the cell's middle. The law of sums of
    cells comes from a Fourier transform.
    """
    if count == 1:
        return half_width(law, confidence)
    outside, stddev = float(1 - confidence) - _ROUNDING, law.stddev()
    if outside <= _ROUNDING or not math.isfinite(stddev):  # union bound over the draws
        return count * half_width(law, 1 - (1 - confidence) / count)
    half = int(stddev / _FINENESS) // 2  # a cell is 2 half + 1 wide
    cells = _cells(law, half)
    farthest = count * (cells.size // 2)
    size = 1 << (2 * farthest).bit_length()
    chances = np.fft.irfft(np.fft.rfft(cells, size) ** count, size)[:farthest]
    within = int(np.searchsorted(2 * np.cumsum(chances), outside, side="right"))
    return (farthest - within) * (2 * half + 1) + count * half


def _cells(law: NoiseLaw, half: int) -> FloatArray:
    """The probability of each cell; the last cell on each side holds the rest of the tail."""
    beyond = [1.0]  # the middle of cell 0, of cell 1, ... and its mirror image
    with precision(_BITS):
        while beyond[-1] > _FAR:
            beyond.append(float(law.tail((2 * half + 1) * (len(beyond) - 1) + half + 1)))
    sides = -np.diff([*beyond[1:-1], 0.0]) / 2
    return np.concatenate([sides[::-1], [1 - beyond[1]], sides])
