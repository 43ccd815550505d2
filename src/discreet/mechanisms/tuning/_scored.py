"""A mechanism with a private score of what it gave: one run of a tuning."""

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
    """Runs a mechanism, and measures on the same data how good what it gave is, with noise.

    ``measure(value, given)`` is a whole number, higher being better, and for each thing that can
    be given, a unit moves it by at most ``sensitivity``. ``noise`` is a mechanism for integers.
    What comes out is a mapping with the ``score`` and the ``value``.

    Guarantee: the sum of both privacy losses, by adaptive composition, given that the stated
    sensitivity is right: it is asserted by the caller. A ``measure`` that fails on some data locks
    the ledger, as a computation does.
    """

    is_scored: ClassVar[bool] = True

    mechanism: Mechanism[V, W]
    measure: Callable[[V, W], int]
    noise: Mechanism[int, int]
    sensitivity: int

    def __post_init__(self) -> None:
        """Refuse what is no function, and a sensitivity that is no whole number above 0."""
        checked_mechanism(self.mechanism, "mechanism")
        checked_mechanism(self.noise, "noise")
        moved = _checks.positive_count(sensitivity=self.sensitivity)
        object.__setattr__(self, "sensitivity", moved)
        if not callable(self.measure):
            raise InvalidArgument("measure: give a function of the value and of what is given")

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """That of the mechanism, and that of the score's noise."""
        score: Bounded[int] = Bounded(
            lambda: 0, sensitivity=self.sensitivity, unit=stated(bounded).unit, name="score"
        )
        return self.mechanism.privacy_loss(bounded) + self.noise.privacy_loss(score)

    def sample(self, value: V, bits: Bits) -> Mapping[str, Any]:  # Any: a score, and whatever comes
        """The mechanism's answer and its noisy score."""
        given = self.mechanism.sample(value, bits)
        part = Part("score", (), Sensitivity(l1=self.sensitivity))
        score = int(part.checked(self.measure(value, given)))
        return {"score": self.noise.sample(score, bits), "value": given}

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the score's noise in [-q, q] at this confidence: what
        ``noise`` says of itself. What the mechanism gives has the mechanism's own error."""
        stated = getattr(self.noise, "error", None)
        if stated is None:
            raise InvalidArgument(f"noise = {self.noise!r}: it states no error")
        return int(stated(confidence))

    def __repr__(self) -> str:
        """The public fields; the function isn't shown."""
        return f"Scored({self.mechanism!r}, {self.noise!r}, sensitivity={self.sensitivity})"
