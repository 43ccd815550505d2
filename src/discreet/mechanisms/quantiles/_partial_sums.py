"""The largest distance of partial sums of noise from 0, at a confidence."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet._bisection import smallest_whole
from discreet.errors import InvalidArgument

_FINEST = 128  # lattice points to a scale
_ROUND_OFF = Fraction(1, 10**13)  # above the error of a sum in float64, with 128 points to a scale
_LEAST_FAILURE = Fraction(1, 10**9)


def most_strayed(scale: Fraction, count: int, failure: Fraction) -> int:
    """A whole number q such that all partial sums of ``count`` independent discrete Laplace noises
    lie in [-q, q], except with probability ``failure``.

    For scales up to 128 it is the smallest one. For larger scales each noise is rounded to a
    multiple of g = 2h + 1, about a hundredth of the scale, and h is added for each noise.
    """
    if failure < max(_LEAST_FAILURE, 10 * count * _ROUND_OFF):
        raise InvalidArgument(
            "confidence: give one of at most 1 - 10^-9; less for 1000 sums or more"
        )
    half = math.ceil(scale / _FINEST) // 2
    stays = _staying(scale, count, 2 * half + 1)
    wanted = float(1 - failure + count * _ROUND_OFF)
    width = smallest_whole(lambda width: stays(width) >= wanted, 0)
    return width * (2 * half + 1) + count * half


def _staying(scale: Fraction, count: int, step: int) -> Callable[[int], float]:
    """The probability that all sums, in steps, lie within a width, as a function of the width."""
    from scipy.linalg.lapack import dpttrf, dpttrs

    # 1. the law of one noise, in steps
    half = step // 2
    ratio, one = _decay(step / scale), _decay(1 / scale)
    near = math.exp(half / scale) * (1 - ratio) / (1 + one)
    none = 1 - 2 * _decay((half + 1) / scale) / (1 + one)
    gap = 1 - ratio**2  # noise of i steps has probability near * ratio^|i|, of 0 steps ``none``

    # 2. the mass that stays within the width, one noise after the other
    def stays(width: int) -> float:
        mass = np.zeros(2 * width + 1)
        mass[width] = 1.0
        # the matrix of ratio^|i - j| has a tridiagonal inverse, so a convolution solves a system
        diagonal = np.full(mass.size, (1 + ratio**2) / gap)
        diagonal[[0, -1]] = 1 / gap if width else 1.0
        off = np.full(mass.size - 1, -ratio / gap)
        factors = dpttrf(diagonal, off)[:2] if width else None
        for _ in range(count):
            spread = dpttrs(*factors, mass)[0] if factors else mass
            mass = near * (spread - mass) + none * mass
        return float(mass.sum())

    return stays


def _decay(exponent: Fraction) -> float:
    return math.exp(-float(min(exponent, Fraction(1000))))
