"""Mechanisms that add independent noise to integers."""

from abc import ABC, abstractmethod
from typing import Any, Self, TypeVar

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_error
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Part, Value, within_int64
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import Bits, Law, NoiseLaw, half_width

V = TypeVar("V", bound=Value)

_INT64 = np.iinfo(np.int64)


class IndependentNoise(ABC):
    """Adds an independent draw of one law to each integer. A mechanism of this kind states its law
    and its privacy loss."""

    __slots__ = ()

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise, in the units of the answer."""

    @abstractmethod
    def _privacy_loss(self, sensitivity: Sensitivity) -> PrivacyLoss:
        """The privacy loss for integers of this sensitivity."""

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """The privacy loss for this computation's sensitivity; raises unless it gives integers."""
        return self._privacy_loss(integers(bounded).sensitivity).for_unit(bounded.unit)

    def sample(self, value: V, bits: Bits) -> V:
        """The value with independent noise on each number."""
        return with_noise(value, self.law, bits)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the noise in [-q, q] at this confidence, by its exact law."""
        return half_width(self.law, _checks.probability(confidence=confidence))

    def stddev_of_noise(self) -> float:
        """The standard deviation of the noise, by its exact law, in the units of the answer."""
        return self.law.stddev()


class ScaledNoise(IndependentNoise):
    """Independent noise with one field, in the units of the answer: its scale."""

    __slots__ = ()

    @classmethod
    def for_error(cls, error: Number, confidence: Number) -> Self:
        """The mechanism with the most noise whose error at ``confidence`` is at most
        ``error``."""
        return at_error(cls, error, confidence)


def integers(bounded: Bounded[Any]) -> Part:  # Any: checked here
    """The computation's only part; raises unless it gives integers of a public shape."""
    part = stated(bounded).part
    if not isinstance(part, Part):
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: this mechanism adds noise to integers of a "
            "public shape"
        )
    return part


def with_noise(value: V, law: Law, bits: Bits) -> V:
    """The value with an independent draw of the law added to each of its numbers.

    Python integers, alone or in an object array, are exact at any size. In an int64 array, a sum
    beyond int64 becomes the end of int64: a function of the noisy value, so it costs nothing.
    """
    return _noisy(value, law, bits)  # type: ignore[return-value]  # an integer or an array in, the same out


def _noisy(value: Value, law: Law, bits: Bits) -> Value:
    if not isinstance(value, np.ndarray):
        return value + law.draw(bits)
    noise = law.draws(bits, value.shape)
    if object in (value.dtype, noise.dtype):
        exact = np.asarray(value.astype(object) + noise.astype(object), dtype=object)
        return exact if value.dtype == object else within_int64(exact)
    noisy: IntegerArray = np.asarray(value + noise)
    is_over = ((noise ^ noisy) & (value ^ noisy)) < 0  # the sum has another sign than both
    if np.any(is_over):
        noisy = np.where(is_over, np.where(noise < 0, _INT64.min, _INT64.max), noisy)
    return noisy
