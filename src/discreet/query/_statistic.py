"""A statistic of rows whose answer has a shape of its own; `release` asks for it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from discreet import _checks
from discreet._budget import Payer
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.query._question import DeclaredTable

Found = TypeVar("Found", covariant=True)


@dataclass(frozen=True, slots=True)
class Asking:
    """How a statistic is released: its price and confidence, who pays, who asks, and an id."""

    epsilon: Number
    delta: Number
    confidence: Fraction
    ledger: Payer[PrivacyLoss]
    by: str
    request: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Statistic(Generic[Found]):
    """A statistic that is not yet paid, such as the most frequent groups of a `Selection`.

    ``is_pure`` says that its noise takes an epsilon alone.
    """

    name: str
    table: DeclaredTable
    is_pure: bool
    released: Callable[[Asking], Found]

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        confidence: Number = 0.95,
        by: str = "owner",
        request: str | None = None,
    ) -> Found:
        """The private answer, charged to the ledger before a row is read. ``by`` says who asks. The
        same ``request`` id gives the same answer again, at no cost."""
        if self.is_pure and _checks.not_negative(delta=delta):
            raise InvalidArgument(f"{self.name}: its noise has no use for a delta; leave it out")
        level = _checks.probability(confidence=confidence)
        return self.released(Asking(epsilon, delta, level, self.table.ledger, by, request))

    def __repr__(self) -> str:
        return f"Statistic: {self.name} of {self.table.declaration.name}"
