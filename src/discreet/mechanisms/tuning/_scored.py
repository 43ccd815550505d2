"""One run of a tuning: a mechanism, with a noisy score of its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from discreet import _checks
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._mechanism import Mechanism, checked_mechanism
from discreet.mechanisms._parts import Part
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import Bits

V = TypeVar("V")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Scored(Generic[V, W]):
    """Runs a mechanism, and scores its result on the same data, with noise.

    ``measure(value, given)`` returns an integer; higher is better. For every possible result
    ``given``, a unit moves this integer by at most ``sensitivity``, as the caller asserts.
    ``noise`` is a mechanism for integers. The answer is a mapping with the ``score`` and the
    ``value``.

    Guarantee: the sum of both privacy losses, by adaptive composition. If ``measure`` raises, the
    ledger is locked, as after a failed computation.
    """

    is_scored: ClassVar[bool] = True

    mechanism: Mechanism[V, W]
    measure: Callable[[V, W], int]
    noise: Mechanism[int, int]
    sensitivity: int

    def __post_init__(self) -> None:
        checked_mechanism(self.mechanism, "mechanism")
        checked_mechanism(self.noise, "noise")
        moved = _checks.positive_count(sensitivity=self.sensitivity)
        object.__setattr__(self, "sensitivity", moved)
        if not callable(self.measure):
            raise InvalidArgument("measure: give a function of the value and of the result")

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """The sum of the mechanism's privacy loss and that of the score's noise."""
        score: Bounded[int] = Bounded(
            lambda: 0, sensitivity=self.sensitivity, unit=stated(bounded).unit, name="score"
        )
        return self.mechanism.privacy_loss(bounded) + self.noise.privacy_loss(score)

    def sample(self, value: V, bits: Bits) -> Mapping[str, Any]:  # Any: a score, and any result
        """The mechanism's answer and its noisy score."""
        given = self.mechanism.sample(value, bits)
        part = Part("score", (), Sensitivity(l1=self.sensitivity))
        score = int(part.checked(self.measure(value, given)))
        return {"score": self.noise.sample(score, bits), "value": given}

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the score's noise in [-q, q] at this confidence, as ``noise``
        states it. The mechanism's result has its own error."""
        stated = getattr(self.noise, "error", None)
        if stated is None:
            raise InvalidArgument(f"noise = {self.noise!r}: it states no error")
        return int(stated(confidence))

    def __repr__(self) -> str:
        """The public fields; the function isn't shown."""
        return f"Scored({self.mechanism!r}, {self.noise!r}, sensitivity={self.sensitivity})"
