"""Estimates with intervals: bounds on the noise of a weighted sum, and interval arithmetic."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian
from discreet.noise._sums import pair_half_width

MomentNoise = DiscreteLaplace | Gaussian

_SAFE = 1e-12  # above the rounding of floats of size 1
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class NoisyEstimate:
    """An estimate, with the ends of an interval around it."""

    value: float
    lower: float
    upper: float

    def moved(self, factor: float, shift: float) -> "NoisyEstimate":
        """Value and ends times a positive factor, plus a shift."""
        ends = (self.value, self.lower, self.upper)
        return NoisyEstimate(*(float(shift + factor * end) for end in ends))

    def within(self, least: float, most: float) -> "NoisyEstimate":
        """The part of the interval between these bounds, with the estimate moved into it."""
        lower, upper = (min(max(end, least), most) for end in (self.lower, self.upper))
        return NoisyEstimate(min(max(self.value, lower), upper), lower, upper)

    def __str__(self) -> str:
        """The estimate and its interval in words."""
        return f"{self.value:.4g} (from {self.lower:.4g} to {self.upper:.4g})"


def ratio(
    total: float, count: float, reach: Callable[[float], float], least: float
) -> NoisyEstimate:
    """An interval that holds all t from ``least`` to 1 with abs(total - t count) <= reach(t), where
    the reach increases with abs(t). Each round takes the reach at the ends of the last interval."""
    found = NoisyEstimate(total / max(count, 1.0), -math.inf, math.inf).within(least, 1.0)
    for _ in range(_ROUNDS if count > 0 else 0):
        q = reach(max(abs(found.lower), abs(found.upper))) + _SAFE * (abs(total) + count)
        ends = NoisyEstimate(found.value, (total - q) / count, (total + q) / count)
        found = ends.within(least, 1.0)
    return found


def product(one: NoisyEstimate, other: NoisyEstimate) -> NoisyEstimate:
    """The product of two numbers, each within its interval."""
    corners = [a * b for a in (one.lower, one.upper) for b in (other.lower, other.upper)]
    return NoisyEstimate(one.value * other.value, min(corners), max(corners))


def square(one: NoisyEstimate) -> NoisyEstimate:
    """The square of a number within its interval."""
    low, high = sorted((abs(one.lower), abs(one.upper)))
    has_zero = one.lower <= 0 <= one.upper
    return NoisyEstimate(one.value**2, 0.0 if has_zero else low**2, high**2)


@dataclass(frozen=True, slots=True)
class Reach:
    """A bound q(a, b) with P(|a M + b N| <= q) >= confidence for independent noises M and N, in
    units of ``unit``."""

    noise: MomentNoise
    confidence: Fraction
    unit: int

    def of(self, one: float, other: float) -> float:
        """The bound for these weights."""
        weights = one / self.unit, other / self.unit
        return pair_half_width((self.noise.law, self.noise.law), weights, self.confidence)


def split(confidence: object, count: int) -> Fraction:
    """The confidence that each of ``count`` statements needs for all to hold at this one."""
    return 1 - (1 - _checks.probability(confidence=confidence)) / count
