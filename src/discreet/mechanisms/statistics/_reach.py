"""How far a weighted sum of two independent noises lies from 0, at a confidence."""

import math
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import ndtri

from discreet import _checks
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian

Noise = DiscreteLaplace | Gaussian

_SAFE = 1 + 1e-9  # more than what floats round


@dataclass(frozen=True, slots=True)
class Reach:
    """A bound q(a, b) with P(|a M + b N| <= q) >= confidence for two noises M and N, counted in
    ``unit``. It rises with the size of either weight, noise being symmetric and unimodal.

    Rounded Gaussian noise is within 1/2 of Gaussian noise. Discrete Laplace noise, a difference of
    two whole parts of exponentials, is within 1 of Laplace noise. Of both two have a known law.
    """

    noise: Noise
    confidence: Fraction
    unit: int

    def of(self, one: float, other: float) -> float:
        """The bound for these weights."""
        small, large = sorted((abs(one), abs(other)))
        outside = float(1 - self.confidence)
        if isinstance(self.noise, Gaussian):
            exact = -float(ndtri(outside / 2)) * math.hypot(small, large)
            spread, rounding = self.noise.stddev, Fraction(1, 2)
        else:
            exact = _two_laplace(large, small, outside)
            spread, rounding = self.noise.scale, Fraction(1)
        whole = exact * float(spread / self.unit) + (small + large) * float(rounding / self.unit)
        return whole * _SAFE


def _two_laplace(large: float, small: float, outside: float) -> float:
    """A t with P(|large X + small Y| > t) <= outside, X and Y being Laplace of scale 1."""
    low, high = 0.0, (large + small) * math.log(4 / outside)
    while low < (middle := low + (high - low) / 2) < high:
        is_far = _two_laplace_tail(large, small, middle) > outside
        low, high = (middle, high) if is_far else (low, middle)
    return high


def _two_laplace_tail(large: float, small: float, t: float) -> float:
    """P(|large X + small Y| > t); where the two are nearly equal, that of twice the larger."""
    if small > large * (1 - 1e-5):
        return (1 + t / (2 * large)) * math.exp(-t / large)
    if small == 0:
        return math.exp(-t / large)
    ratio = (small / large) ** 2
    return (math.exp(-t / large) - ratio * math.exp(-t / small)) / (1 - ratio)


def split(confidence: object, count: int) -> Fraction:
    """The confidence that so many statements need for all of them to hold at this one."""
    return 1 - (1 - _checks.probability(confidence=confidence)) / count
