"""Mechanisms for real numbers on a public grid."""

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Self, cast

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._exact import Number, shown
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import most_noise
from discreet.mechanisms._additive import IndependentNoise, with_noise
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._fixed_point import FixedPoint
from discreet.mechanisms._parts import RealPart, Value
from discreet.noise import Bits, NoiseLaw


class NoiseOnGrid(ABC):
    """Adds independent noise to each number, in steps: the noise of a mechanism for integers.
    Number and noise are multiples of ``step``."""

    __slots__ = ()

    step: Fraction

    @classmethod
    def for_error(cls, error: Number, confidence: Number, bounded: Bounded[FixedPoint]) -> Self:
        """The mechanism with the most noise whose error at ``confidence`` is at most
        ``error``."""
        step = step_of(bounded)

        def error_in_steps(scale: Fraction) -> int:
            return cls._of(scale * step, step).in_steps.error(confidence)

        scale = most_noise(error_in_steps, _checks.positive(error=error) / step, confidence)
        return cls._of(scale * step, step)

    @classmethod
    def _of(cls, scale: Fraction, step: Fraction) -> Self:
        return cls(scale, step)  # type: ignore[call-arg]  # the fields of each such mechanism

    @property
    @abstractmethod
    def in_steps(self) -> IndependentNoise:
        """The mechanism for the whole numbers of steps."""

    def privacy_loss(self, bounded: Bounded[FixedPoint]) -> PrivacyLoss:
        """The privacy loss for the whole numbers of steps; raises for another grid."""
        step_of(bounded, self.step)
        return self.in_steps.privacy_loss(in_steps(bounded))

    def sample(self, value: FixedPoint, bits: Bits) -> float | FloatArray:
        """The number or array with noise, as floats."""
        return FixedPoint(with_noise(value.steps, _law_in_steps(self), bits), self.step).floats

    def error(self, confidence: Number) -> Fraction:
        """The smallest multiple q of the step with the noise in [-q, q] at this confidence. The
        rounding to the grid adds at most half a step."""
        return self.in_steps.error(confidence) * self.step

    def stddev_of_noise(self) -> float:
        """The standard deviation of the noise, in the units of the answer."""
        return self.in_steps.stddev_of_noise() * float(self.step)


@lru_cache(maxsize=64)
def _law_in_steps(mechanism: NoiseOnGrid) -> NoiseLaw:
    """The law of the noise in steps, without checking its parameters again for each draw."""
    return mechanism.in_steps.law


def step_of(bounded: Bounded[FixedPoint], expected: Fraction | None = None) -> Fraction:
    """The step of the computation's grid; raises for integers, and for another grid."""
    part = stated(bounded).part
    if not isinstance(part, RealPart):
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: state real numbers by Bounded.real, or use a "
            "mechanism for integers, as DiscreteLaplace or Gaussian"
        )
    if expected is not None and part.step != expected:
        raise InvalidArgument(
            f"step = {shown(expected)}: {bounded.name!r} is on multiples of {shown(part.step)}, "
            "give that step"
        )
    return part.step


def in_steps(bounded: Bounded[FixedPoint]) -> Bounded[Value]:
    """The computation in whole steps."""
    step_of(bounded)
    part = bounded.part
    return Bounded(
        bounded.then(attrgetter("steps")),
        sensitivity=part.sensitivity,
        unit=bounded.unit,
        name=bounded.name,
        shape=cast(RealPart, part).shape,
        basis=bounded.basis,
    )
