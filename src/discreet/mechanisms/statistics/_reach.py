"""Bounds on a weighted sum of two independent noises, at a confidence."""

from dataclasses import dataclass
from fractions import Fraction

from discreet import _checks
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian
from discreet.noise._sums import pair_half_width

MomentNoise = DiscreteLaplace | Gaussian


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
