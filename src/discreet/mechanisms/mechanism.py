"""The role of a mechanism: what it costs, and how it draws."""

from typing import Protocol, TypeVar

from discreet.accounting import PrivacyLoss
from discreet.exact import Number
from discreet.mechanisms.bounded import Bounded
from discreet.noise import Bits

V = TypeVar("V")


class Mechanism(Protocol[V]):
    """Turns the value of a `Bounded` into one that may be shown. Only `release` calls `sample`."""

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """What a draw costs the unit of this computation; known before anything is spent."""
        ...

    def sample(self, value: V, bits: Bits) -> V:
        """The value with noise from these bits."""
        ...


class Additive(Protocol):
    """A mechanism that adds the same symmetric noise to each number, so that its error is known."""

    def error(self, confidence: Number) -> int:
        """The smallest whole q such that each number's noise lies in [-q, q] with at least this
        probability."""
        ...

    def stddev_of_noise(self) -> float:
        """The standard deviation of each number's noise."""
        ...
