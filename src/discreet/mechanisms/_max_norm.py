"""The K-norm mechanism for many integers, each of which a unit may move by a little."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Positive, PositiveCount, frozen
from discreet.accounting import PrivacyLoss, Pure
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._additive import integers, with_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Part, Value
from discreet.noise import Bits, MaxNormLaw
from discreet.noise._inversion import OutcomeArray, Shape

V = TypeVar("V", bound=Value)


@frozen
class MaxNorm:
    """Adds to ``length`` integers noise z, together, with P(z) proportional to
    exp(-max |z_i| / scale).

    Guarantee: epsilon-DP with epsilon = L-infinity sensitivity / scale, under either relation:
    the K-norm mechanism (Hardt and Talwar 2010) for a cube, on the integers. If a unit may move
    each of d numbers by 1, its largest noise is about d / epsilon, less than with
    `DiscreteLaplace` of scale d / epsilon. The running time is not covered.

    >>> import numpy as np
    >>> from discreet.mechanisms import Sensitivity
    >>> from discreet import Unit
    >>> answers = Bounded(
    ...     lambda: np.zeros(20, int), sensitivity=Sensitivity(linf=1, length=20), shape=(20,),
    ...     unit=Unit("patient_id"), name="yes to each of 20",
    ... )
    >>> mechanism = MaxNorm.for_epsilon(2, answers)
    >>> mechanism, mechanism.error(0.95), mechanism.privacy_loss(answers).epsilon()
    (MaxNorm(scale=0.5, length=20), 14, 2.0)
    """

    scale: Positive  # in the units of the answer
    _: KW_ONLY
    length: PositiveCount

    def __post_init__(self) -> None:
        MaxNormLaw(self.scale, self.length)

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[V]) -> "MaxNorm":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        length = _length(integers(bounded))
        return at_epsilon(lambda scale: MaxNorm(scale, length=length), epsilon, bounded)

    @staticmethod
    def for_error(error: Number, confidence: Number, bounded: Bounded[V]) -> "MaxNorm":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        length = _length(integers(bounded))
        return at_error(lambda scale: MaxNorm(scale, length=length), error, confidence)

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """One `accounting.Pure` term; raises for another number of integers."""
        part = integers(bounded)
        if _length(part) != self.length:
            raise InvalidArgument(
                f"length = {self.length}: {bounded.name!r} has {_length(part)} numbers, give that"
            )
        return PrivacyLoss.of(Pure(max(part.sensitivity.linf, 1) / self.scale), unit=bounded.unit)

    def sample(self, value: V, bits: Bits) -> V:
        """The integers with noise."""
        return with_noise(value, _JointDraws(self._law), bits)

    def error(self, confidence: Number) -> int:
        """A whole q such that all noises together lie in [-q, q] at this confidence. It is the
        smallest one for small scales, and hardly larger for others."""
        return self._law.half_width(_checks.probability(confidence=confidence))

    @property
    def _law(self) -> MaxNormLaw:
        return MaxNormLaw(self.scale, self.length)


@dataclass(frozen=True, slots=True)
class _JointDraws:
    """One draw of the noise in the value's shape."""

    law: MaxNormLaw

    def draw(self, bits: Bits) -> int:
        return int(self.law.draws(bits)[0])

    def draws(self, bits: Bits, shape: Shape) -> OutcomeArray:
        return self.law.draws(bits).reshape(shape)


def _length(part: Part) -> int:
    return math.prod(part.shape)
