"""The roles of a mechanism: its privacy loss and its draws."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.noise import Bits

V = TypeVar("V")
W_out = TypeVar("W_out", covariant=True)


class Mechanism(Protocol[V, W_out]):
    """Turns the value of a `Bounded` into a private answer. Only `release` calls `sample`."""

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """The privacy loss of a draw for the unit of this computation, before anything is spent."""

    def sample(self, value: V, bits: Bits) -> W_out:
        """The answer for the value, drawn with these bits."""


def checked_mechanism(mechanism: object, name: str) -> None:
    """Raise unless this is a mechanism. Another object may be private, so the error shows only its
    type."""
    verbs = (getattr(mechanism, verb, None) for verb in ("privacy_loss", "sample"))
    if isinstance(mechanism, type) or not all(map(callable, verbs)):
        raise InvalidArgument(
            f"{name} is of type {type(mechanism).__name__}: give a mechanism, as DiscreteLaplace(2)"
        )


class Interactive(Protocol[V, W_out]):
    """Answers one `Bounded` after the other; the whole session is paid for before the first one.
    Only `session` calls `begin`."""

    def privacy_loss(self, unit: Unit) -> PrivacyLoss:
        """The privacy loss of the whole session for the unit."""

    def check(self, bounded: Bounded[V]) -> None:
        """Raise unless the privacy loss covers this computation's sensitivity."""

    def begin(self, bits: Bits) -> Callable[[V], tuple[W_out, bool]]:
        """A function with secret state that takes each value in turn, and gives the answer and
        whether another may follow."""
