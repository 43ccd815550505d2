"""Half-widths at a confidence of sums of independent noises: with weights, or of equal ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import scipy

from discreet._arrays import FloatArray
from discreet._bisection import halved_each
from discreet._exact import precision
from discreet.noise._laplace_sums import laplace_half_width
from discreet.noise._laws import DiscreteLaplaceLaw, NoiseLaw, RoundedGaussianLaw, half_width

PairLaw = DiscreteLaplaceLaw | RoundedGaussianLaw

_SAFE = 1 + 1e-9  # above the rounding of floats
_NEARLY_EQUAL = 1 - 1e-5  # the difference of two tails would lose its digits
_APART = 1.005  # at least, from one scale to the next of up to four
_FURTHER_APART = 1.04  # the same of up to six
_FEW = 6  # Laplace noises for which the sum of tails keeps its digits
_LEAST_RISK = 1e-6  # for which the tails of several keep three digits
_TAIL_ERROR = 1e-9
_FINENESS = 128  # cells to a standard deviation
_LEAST_TAIL = 2.0**-48
_ROUNDING = 2.0**-40
_BITS = 64
_HALVINGS = 2200  # between any two floats there is none after so many
_MOST = 64  # draws whose sum's law is computed
_OF_ROUNDING = 0.01  # the share of the risk that rounding may take
_SLOPES = np.geomspace(1e-5, 0.999, 400)  # at which Chernoff's bound is tried
_SAFE_LOGARITHM = 1 + 1e-6


@dataclass(frozen=True, slots=True)
class SummedLaw:
    """The law of the sum of this many independent draws of one law."""

    law: PairLaw
    count: int


def pair_half_width(
    laws: tuple[PairLaw | SummedLaw, PairLaw | SummedLaw],
    weights: tuple[float, float],
    confidence: Fraction,
) -> float:
    """`pair_half_widths` for one pair of weights."""
    return float(pair_half_widths(laws, np.array(weights)[:, np.newaxis], confidence)[0])


def pair_half_widths(
    laws: tuple[PairLaw | SummedLaw, PairLaw | SummedLaw],
    weights: FloatArray,
    confidence: Fraction,
) -> FloatArray:
    """For each pair of weights (a, b), shape (2, pair), an upper bound on the smallest q with
    P(|a M + b N| <= q) >= confidence, for independent noises M and N of the same kind.

    The bound increases with |a| and with |b|, since noise is symmetric and unimodal. Rounded
    Gaussian noise differs from Gaussian noise by at most 1/2. Discrete Laplace noise is a
    difference of the integer parts of two exponential numbers, and differs from Laplace noise by
    less than 1. The weighted sum of two Gaussian or two Laplace noises has a known law. Sums of
    several draws have simpler bounds: see `summed_half_width`.
    """
    one, other = laws
    a, b = np.abs(weights)
    if isinstance(one, SummedLaw) or isinstance(other, SummedLaw):
        pairs = zip(map(float, a), map(float, b), strict=True)
        return np.array([summed_half_width([(one, x), (other, y)], confidence) for x, y in pairs])
    outside = float(1 - confidence)
    if isinstance(one, RoundedGaussianLaw) and isinstance(other, RoundedGaussianLaw):
        spread = np.hypot(a * float(one.sigma), b * float(other.sigma))
        return np.asarray((_normal_quantile(outside) * spread + (a + b) / 2) * _SAFE)
    assert isinstance(one, DiscreteLaplaceLaw)
    assert isinstance(other, DiscreteLaplaceLaw)  # both are of one kind
    far = _two_laplace(a * float(one.scale), b * float(other.scale), outside)
    return np.asarray((far + a + b) * _SAFE)


def _two_laplace(a: FloatArray, b: FloatArray, outside: float) -> FloatArray:
    """For each pair of scales, the smallest float t with computed P(|X + Y| > t) <= outside, for
    Laplace X and Y."""
    large, small = np.maximum(a, b), np.minimum(a, b)

    def is_far(t: FloatArray) -> npt.NDArray[np.bool_]:
        return _two_laplace_tail(large, small, t) > outside

    return _first_near(is_far, (a + b) * math.log(4 / outside))


def _first_near(
    is_far: Callable[[FloatArray], npt.NDArray[np.bool_]], high: FloatArray
) -> FloatArray:
    """The smallest floats above 0 and up to ``high`` that are not far, one for each place."""
    return halved_each(is_far, np.zeros_like(high), high, _HALVINGS)[1]


def _two_laplace_tail(large: FloatArray, small: FloatArray, t: FloatArray) -> FloatArray:
    """P(|X + Y| > t) for Laplace X and Y of these scales. Nearly equal scales are replaced by the
    larger one."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        of_one = np.exp(-t / large)
        ratio = (small / large) ** 2
        of_both = (of_one - ratio * np.exp(-t / small)) / (1 - ratio)
    is_near = small > large * _NEARLY_EQUAL
    near = (1 + t / (2 * large)) * of_one
    return np.where(small == 0, of_one, np.where(is_near, near, of_both))


def weighted_half_widths(
    laws: Sequence[PairLaw | SummedLaw], weights: FloatArray, confidence: Fraction
) -> FloatArray:
    """For each column of weights, shape (law, column), an upper bound on the smallest q with
    P(|w_1 N_1 + w_2 N_2 + ...| <= q) >= confidence, for independent noises of these laws, which are
    of one kind.

    Each bound increases with each |w|, and noise is rounded, as in `pair_half_width`. For up to six
    Laplace noises, scales that are nearly equal are moved apart upwards, so their sum has the tail
    sum_i A_i exp(-t / s_i), with A_i the product of s_i^2 / (s_i^2 - s_j^2) over the others. For
    more of them see `laplace_half_width`.
    """
    if any(isinstance(law, SummedLaw) for law in laws):
        terms = (list(zip(laws, map(float, column), strict=True)) for column in weights.T)
        return np.array([summed_half_width(one, confidence) for one in terms])
    sizes, outside = np.abs(weights), float(1 - confidence)
    if all(isinstance(law, RoundedGaussianLaw) for law in laws):
        sigmas = np.array([float(law.sigma) for law in laws if isinstance(law, RoundedGaussianLaw)])
        largest = sizes.max(axis=0)
        shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
        spread = largest * np.linalg.norm(shares * sigmas[:, np.newaxis], axis=0)
        return np.asarray((_normal_quantile(outside) * spread + sizes.sum(axis=0) / 2) * _SAFE)
    scales = np.array([float(law.scale) for law in laws if isinstance(law, DiscreteLaplaceLaw)])
    assert len(scales) == len(laws)  # all are of one kind
    stretched = sizes * scales[:, np.newaxis]
    if len(laws) > _FEW:
        far = np.array([laplace_half_width(column, outside) for column in stretched.T])
    else:
        far = _laplace_half_widths(stretched, outside)
    return np.asarray((far + sizes.sum(axis=0)) * _SAFE)


def _laplace_half_widths(scales: FloatArray, outside: float) -> FloatArray:
    """For each column, the smallest float t with computed P(|X_1 + X_2 + ...| > t) <= outside, for
    Laplace X of these scales."""
    largest = scales.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    found = np.maximum(np.sort(scales / unit, axis=0), np.finfo(float).tiny ** 0.25)
    if outside < _LEAST_RISK:  # union bound
        return np.asarray(largest * found.sum(axis=0) * math.log(len(scales) / outside))
    apart = _APART if len(found) <= 4 else _FURTHER_APART
    for place in range(1, len(found)):
        found[place] = np.maximum(found[place], apart * found[place - 1])
    squares = found**2
    shares = np.ones_like(found)
    for one in range(len(found)):
        for other in range(len(found)):
            if one != other:
                shares[one] *= squares[one] / (squares[one] - squares[other])

    def is_far(t: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray((shares * np.exp(-t / found)).sum(axis=0) + _TAIL_ERROR > outside)

    high = found.sum(axis=0) * math.log(2 * len(found) / outside)
    return np.asarray(_first_near(is_far, high) * largest)


def summed_half_width(
    terms: Sequence[tuple[PairLaw | SummedLaw, float]], confidence: Fraction
) -> float:
    """An upper bound on the smallest q such that the weighted sum of all draws lies in [-q, q] at
    this confidence. All noises are of one kind, and all draws are independent.

    Gaussian noises add up to a Gaussian. The part that rounding adds to each draw has the mean 0
    and is at most 1/2: it takes its full size, or by Hoeffding's inequality a hundredth of the
    risk. For discrete Laplace noise this is Chernoff's bound: for each t > 0 the two-sided risk at
    q is at most 2 exp(-t q) times the product of E exp(t w X) over the draws X of weight w.
    """
    sums = [(one if isinstance(one, SummedLaw) else SummedLaw(one, 1), abs(w)) for one, w in terms]
    outside = float(1 - confidence)
    sums = [(one, weight) for one, weight in sums if weight > 0 and one.count > 0]
    if not sums:
        return 0.0
    if all(isinstance(one.law, RoundedGaussianLaw) for one, _ in sums):
        return _gaussian_sum(sums, outside) * _SAFE
    return _laplace_sum(sums, outside) * _SAFE_LOGARITHM


def _normal_quantile(outside: float) -> float:
    """The number that a standard normal one exceeds in size with this probability."""
    return -float(scipy.special.ndtri(outside / 2))


def _gaussian_sum(sums: Sequence[tuple[SummedLaw, float]], outside: float) -> float:
    squares = math.fsum(one.count * (w * float(one.law.sigma)) ** 2 for one, w in sums)  # type: ignore[union-attr]  # all are Gaussian
    spread, length = math.sqrt(squares), math.fsum(one.count * w for one, w in sums)
    all_of_it = _normal_quantile(outside) * spread + length / 2
    rest = outside * _OF_ROUNDING
    rounding = math.sqrt(math.fsum(one.count * w**2 for one, w in sums) * math.log(2 / rest) / 2)
    return min(all_of_it, _normal_quantile(outside - rest) * spread + rounding)


def _laplace_sum(sums: Sequence[tuple[SummedLaw, float]], outside: float) -> float:
    scales = [(one.count, w, float(one.law.scale)) for one, w in sums]  # type: ignore[union-attr]  # all are Laplace
    slopes = _SLOPES * min(1 / (weight * scale) for _, weight, scale in scales)
    logarithms = np.full_like(slopes, math.log(2 / outside))
    for count, weight, scale in scales:
        tilt, rate = weight * slopes, 1 / scale
        without = np.log(-np.expm1(tilt - rate)) + np.log(-np.expm1(-tilt - rate))
        logarithms += count * (2 * math.log(-math.expm1(-rate)) - without)
    return float(np.min(logarithms / slopes))


def sum_half_width(law: NoiseLaw, count: int, confidence: Fraction) -> int:
    """A whole q such that the sum of ``count`` independent draws lies in [-q, q] at this
    confidence. It is the smallest one for one draw, and hardly larger for up to 64.

    Each draw is put into a cell, at most half a cell from the cell's middle. The law of sums of
    cells comes from a Fourier transform. For more than 64 draws it is `summed_half_width`.
    """
    if count == 1:
        return half_width(law, confidence)
    if count > _MOST and isinstance(law, DiscreteLaplaceLaw | RoundedGaussianLaw):
        return math.ceil(summed_half_width([(SummedLaw(law, count), 1.0)], confidence))
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
        while beyond[-1] > _LEAST_TAIL:
            beyond.append(float(law.tail((2 * half + 1) * (len(beyond) - 1) + half + 1)))
    sides = -np.diff([*beyond[1:-1], 0.0]) / 2
    return np.concatenate([sides[::-1], [1 - beyond[1]], sides])
