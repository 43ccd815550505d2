"""The noise of a total: the sum of the independent noises of the groups that it adds up."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet import _checks
from discreet._exact import Number
from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.noise._sums import PairLaw, SummedLaw, sum_half_width


@dataclass(frozen=True, slots=True)
class SummedNoise:
    """The noise of the sum of ``count`` numbers that a mechanism released."""

    mechanism: DiscreteLaplace | Gaussian
    count: int

    @property
    def law(self) -> SummedLaw:
        """The law of the noise."""
        return SummedLaw(self.mechanism.law, self.count)

    def error(self, confidence: Number) -> int:
        """A whole q with the noise in [-q, q] at this confidence."""
        return _error(self.mechanism.law, self.count, _checks.probability(confidence=confidence))

    def stddev_of_noise(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(self.count) * self.mechanism.stddev_of_noise()


AdditiveNoise = DiscreteLaplace | Gaussian | SummedNoise


def summed(noise: DiscreteLaplace | Gaussian, count: int) -> AdditiveNoise:
    """The noise of a sum of this many draws."""
    return noise if count == 1 else SummedNoise(noise, count)


@lru_cache(maxsize=256)
def _error(law: PairLaw, count: int, confidence: Fraction) -> int:
    return sum_half_width(law, count, confidence)
