"""What a ledger owes to those who charge it: a limit that holds, and a receipt.

The layers above know a payer by its three verbs only; what a privacy loss is, it is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from discreet import _checks
from discreet._exact import Number, shown
from discreet.errors import InvalidArgument

Loss = TypeVar("Loss", contravariant=True)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Limit:
    """The largest total privacy loss for one data set, as epsilon and delta.

    All charges together, by anyone and however adaptively chosen, stay (epsilon,
    delta)-differentially private. Limits of other kinds are `RhoLimit`, `MuLimit` and `RenyiLimit`.

    >>> Limit(epsilon=2, delta=1e-6)
    Limit(epsilon=2, delta=1e-06)
    """

    symbol: ClassVar[str] = "ε"

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        """Keep both at their exact value; ``delta=0`` allows pure privacy losses only."""
        object.__setattr__(self, "epsilon", _checks.positive(epsilon=epsilon))
        object.__setattr__(self, "delta", _checks.delta(delta=delta))

    @property
    def most(self) -> Fraction:
        """What its measure, epsilon, may reach."""
        return self.epsilon

    def __str__(self) -> str:
        """The limit in words."""
        return f"ε = {shown(self.epsilon)}" + (f", δ = {shown(self.delta)}" if self.delta else "")

    def __repr__(self) -> str:
        """The limit as it is written in code."""
        return f"Limit(epsilon={shown(self.epsilon)}, delta={shown(self.delta)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RhoLimit:
    """A limit as rho of zero-concentrated differential privacy (Bun and Steinke 2016, Definition
    1.1): everything charged together, however adaptively, stays rho-zCDP. There is no delta, so
    what leaks with some probability, such as private keys, can't be charged under it.

    >>> RhoLimit(0.5)
    RhoLimit(rho=0.5)
    """

    symbol: ClassVar[str] = "ρ"

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        """Keep rho at its exact value."""
        object.__setattr__(self, "rho", _checks.positive(rho=rho))

    @property
    def most(self) -> Fraction:
        """What its measure, rho, may reach."""
        return self.rho

    def __str__(self) -> str:
        """The limit in words."""
        return f"ρ = {shown(self.rho)}"

    def __repr__(self) -> str:
        """The limit as it is written in code."""
        return f"RhoLimit(rho={shown(self.rho)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MuLimit:
    """A limit as mu of Gaussian differential privacy (Dong, Roth and Su 2022, Definition 2.6):
    everything charged together, however adaptively, is no easier to tell apart than two normal
    laws of variance 1 whose means are mu apart. There is no delta here either.

    >>> MuLimit(1)
    MuLimit(mu=1)
    """

    symbol: ClassVar[str] = "μ"

    mu: Fraction

    def __init__(self, mu: Number) -> None:
        """Keep mu at its exact value."""
        object.__setattr__(self, "mu", _checks.positive(mu=mu))

    @property
    def most(self) -> Fraction:
        """What its measure, mu, may reach."""
        return self.mu

    def __str__(self) -> str:
        """The limit in words."""
        return f"μ = {shown(self.mu)}"

    def __repr__(self) -> str:
        """The limit as it is written in code."""
        return f"MuLimit(mu={shown(self.mu)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RenyiLimit:
    """A limit as a Renyi curve (Mironov 2017, Definition 4): at each of its orders, everything
    charged together, however adaptively, stays within the bound for that order.

    ``bounds`` holds (order, bound), by order. There is no delta.

    >>> RenyiLimit({8: 1, 2: 0.25})
    RenyiLimit({2: 0.25, 8: 1})
    """

    symbol: ClassVar[str] = "share"

    bounds: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, bounds: Mapping[Number, Number]) -> None:
        """Keep orders, which lie above 1, and their bounds at their exact values."""
        if not (isinstance(bounds, Mapping) and bounds):
            raise InvalidArgument(
                f"bounds = {bounds!r}: give a bound for each order, like {{2: 0.5}}"
            )
        exact = {_checks.positive(order=a): _checks.positive(bound=b) for a, b in bounds.items()}
        if min(exact) <= 1 or len(exact) < len(bounds):
            raise InvalidArgument(
                f"bounds = {bounds!r}: orders lie above 1, and each is there once"
            )
        object.__setattr__(self, "bounds", tuple(sorted(exact.items())))

    @property
    def most(self) -> Fraction:
        """What its measure, the largest share of a bound at its order, may reach: 1."""
        return Fraction(1)

    def __str__(self) -> str:
        """The limit in words."""
        return ", ".join(f"{shown(bound)} at order {shown(order)}" for order, bound in self.bounds)

    def __repr__(self) -> str:
        """The limit as it is written in code."""
        curve = ", ".join(f"{shown(order)}: {shown(bound)}" for order, bound in self.bounds)
        return f"RenyiLimit({{{curve}}})"


AnyLimit = Limit | RhoLimit | MuLimit | RenyiLimit


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
            raise InvalidArgument(
                f"request = {_checks.quoted(self.id)}: give a text of 1 to 200 characters"
            )
        if isinstance(self.body, str) and len(self.body) > _checks.LONGEST_TEXT:
            raise InvalidArgument(
                f"the body of a request has {len(self.body)} characters: give a digest of it"
            )


class BudgetUse(Protocol):
    """How much of a limit is spent and left, as the payer that decides computes it."""

    @property
    def limit(self) -> AnyLimit:
        """The most that may ever be spent."""
        ...

    @property
    def reached(self) -> Fraction:
        """How far the charges have come, in the limit's own measure."""
        ...

    @property
    def left(self) -> Fraction:
        """The largest pure epsilon that one more charge may cost."""
        ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a privacy loss was recorded before anything was computed.

    ``digest`` names the ledger's entry. ``kept`` is the answer stored earlier under the same
    request, if there is one. ``is_insecure`` marks a charge whose noise was not secret.
    ``balance`` is what was left when the receipt was given, where the payer knows it; it is
    computed when it is first read, and no part of what the receipt proves.
    """

    number: int
    digest: str
    at: datetime
    purpose: str
    by: str
    kept: str | None = None
    is_insecure: bool = False
    balance: BudgetUse | None = field(default=None, compare=False, repr=False)


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


@runtime_checkable
class CountsSteps(Protocol[Loss]):
    """Counts the steps of what was paid as a whole, durably, so that none runs twice."""

    def reserve(self, receipt: Receipt, loss: Loss, *, count: int, of: int, plan: str) -> range:
        """Take the next steps of this receipt before they run; they are never given again."""
        ...

    def reserved(self, receipt: Receipt) -> int:
        """How many steps were taken."""
        ...
