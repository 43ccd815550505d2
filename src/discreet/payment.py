"""What a ledger owes to those who charge it: a limit that holds, and a receipt.

The layers above know a payer by its three verbs only; what a privacy loss is, it is told.
"""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Protocol, TypeVar

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.exact import Number, shown

Loss = TypeVar("Loss", contravariant=True)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Limit:
    """The most that may ever be spent on one dataset: everything charged together, by
    whomever, however adaptively, stays (epsilon, delta)-differentially private.

    >>> Limit(epsilon=2, delta=1e-6)
    Limit(epsilon=2, delta=1e-06)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        """Keep both at their exact value; ``delta=0`` allows pure privacy losses only."""
        object.__setattr__(self, "epsilon", checks.positive(epsilon=epsilon))
        object.__setattr__(self, "delta", checks.delta(delta=delta))

    def __repr__(self) -> str:
        """The limit as it is written in code."""
        return f"Limit(epsilon={shown(self.epsilon)}, delta={shown(self.delta)})"


@dataclass(frozen=True, slots=True)
class Request:
    """A question under an id that its analyst chose, so that asking again costs nothing.

    ``body`` is a digest of everything that was asked; the same id with another body is refused.
    """

    id: str
    body: str

    def __post_init__(self) -> None:
        """Refuse ids that are empty or too long to keep."""
        if not (isinstance(self.id, str) and 0 < len(self.id) <= 200):
            raise InvalidArgument(f"request = {self.id!r}: give a text of 1 to 200 characters")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a privacy loss was recorded before anything was computed.

    ``digest`` names the ledger's entry. ``kept`` is the answer stored earlier under the same
    request, if there is one. ``is_insecure`` marks a charge whose noise was not secret.
    """

    number: int
    digest: str
    at: datetime
    purpose: str
    by: str
    kept: str | None = None
    is_insecure: bool = False


class Payer(Protocol[Loss]):
    """Who pays: every release charges one, before it looks at anything private."""

    def charge(
        self,
        loss: Loss,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
    ) -> Receipt:
        """Record the privacy loss durably, or raise and record nothing."""
        ...

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Store the answer of a paid request durably, before anyone sees it."""
        ...

    def lock(self, receipt: Receipt) -> None:
        """Refuse every further charge until the owner acts: a paid computation failed."""
        ...
