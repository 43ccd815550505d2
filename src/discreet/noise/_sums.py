"""Half-widths at a confidence of sums of independent noises: some with weights, or many equal."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from discreet._exact import precision
from discreet.noise._arrays import FloatArray
from discreet.noise._laws import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw, half_width

PairLaw = DiscreteLaplaceLaw | RoundedGaussianLaw

_SAFE = 1 + 1e-9  # above the rounding of floats
_NEARLY_EQUAL = 1 - 1e-5  # the difference of two tails would lose its digits
_APART = 1.005  # at least, from one scale to the next of several
_LEAST_RISK = 1e-6  # for which the tails of several keep three digits
_TAIL_ERROR = 1e-9
_HALVINGS = 64
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


def weighted_half_widths(
    laws: Sequence[PairLaw], weights: FloatArray, confidence: Fraction
) -> FloatArray:
    """For each column of weights, shape (law, column), an upper bound on the smallest q with
    P(|w_1 N_1 + w_2 N_2 + ...| <= q) >= confidence, for independent noises of these laws, which are
    at most four and of one kind.

    Each bound increases with each |w|, and noise is rounded, as in `pair_half_width`. Scales that
    are nearly equal are moved apart upwards, so the sum of Laplace noises has the tail
    sum_i A_i exp(-t / s_i), with A_i the product of s_i^2 / (s_i^2 - s_j^2) over the others.
    """
    sizes, outside = np.abs(weights), float(1 - confidence)
    if all(isinstance(law, RoundedGaussianLaw) for law in laws):
        sigmas = np.array([float(law.sigma) for law in laws if isinstance(law, RoundedGaussianLaw)])
        largest = sizes.max(axis=0)
        shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
        spread = largest * np.linalg.norm(shares * sigmas[:, np.newaxis], axis=0)
        return np.asarray((-float(ndtri(outside / 2)) * spread + sizes.sum(axis=0) / 2) * _SAFE)
    scales = np.array([float(law.scale) for law in laws if isinstance(law, DiscreteLaplaceLaw)])
    assert len(scales) == len(laws) <= 4  # as the docstring says
    far = _laplace_half_widths(sizes * scales[:, np.newaxis], outside)
    return np.asarray((far + sizes.sum(axis=0)) * _SAFE)


def _laplace_half_widths(scales: FloatArray, outside: float) -> FloatArray:
    """For each column, the smallest float t with computed P(|X_1 + X_2 + ...| > t) <= outside, for
    Laplace X of these scales."""
    largest = scales.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    found = np.maximum(np.sort(scales / unit, axis=0), np.finfo(float).tiny ** 0.25)
    if outside < _LEAST_RISK:  # union bound
        return np.asarray(largest * found.sum(axis=0) * math.log(len(scales) / outside))
    for place in range(1, len(found)):
        found[place] = np.maximum(found[place], _APART * found[place - 1])
    squares = found**2
    shares = np.ones_like(found)
    for one in range(len(found)):
        for other in range(len(found)):
            if one != other:
                shares[one] *= squares[one] / (squares[one] - squares[other])
    low = np.zeros_like(unit)
    high = found.sum(axis=0) * math.log(2 * len(found) / outside)
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        is_far = (shares * np.exp(-middle / found)).sum(axis=0) + _TAIL_ERROR > outside
        low, high = np.where(is_far, middle, low), np.where(is_far, high, middle)
    return np.asarray(high * largest)


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
