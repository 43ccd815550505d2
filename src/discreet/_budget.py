"""Limits, receipts and payers: what a ledger offers to the layers that charge it.

Those layers know a payer by its three methods only. A payer takes any kind of privacy loss.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as plain_field
from datetime import datetime
from fractions import Fraction
from typing import Annotated, ClassVar, Protocol, TypeVar, runtime_checkable

from discreet import _checks, _html
from discreet._exact import Number, shown
from discreet._fields import Converted, Delta, Positive, field, frozen
from discreet.errors import InvalidArgument

Loss = TypeVar("Loss", contravariant=True)

RECEIPT_FORMAT = 1


@frozen
class Limit:
    """The largest total privacy loss for one data set, as epsilon and delta.

    All charges together, by anyone and however adaptively chosen, stay (epsilon,
    delta)-differentially private. Limits of other kinds are `RhoLimit`, `MuLimit` and `RenyiLimit`.

    >>> Limit(epsilon=2, delta=1e-6)
    Limit(epsilon=2, delta=1e-06)
    """

    symbol: ClassVar[str] = "ε"

    epsilon: Positive
    delta: Delta = field(default=0)

    @property
    def most(self) -> Fraction:
        """The largest epsilon."""
        return self.epsilon

    def __str__(self) -> str:
        return f"ε = {shown(self.epsilon)}" + (f", δ = {shown(self.delta)}" if self.delta else "")


@frozen
class RhoLimit:
    """A limit as rho of zero-concentrated differential privacy (Bun and Steinke 2016, Definition
    1.1): all charges together, however adaptively chosen, stay rho-zCDP. It has no delta, so
    mechanisms that fail with some probability, such as private keys, can't be charged under it.

    >>> RhoLimit(0.5)
    RhoLimit(rho=0.5)
    """

    symbol: ClassVar[str] = "ρ"

    rho: Positive

    @property
    def most(self) -> Fraction:
        """The largest rho."""
        return self.rho

    def __str__(self) -> str:
        return f"ρ = {shown(self.rho)}"


@frozen
class MuLimit:
    """A limit as mu of Gaussian differential privacy (Dong, Roth and Su 2022, Definition 2.6):
    all charges together, however adaptively chosen, are no easier to tell apart than two normal
    laws of variance 1 whose means are mu apart. It has no delta either.

    >>> MuLimit(1)
    MuLimit(mu=1)
    """

    symbol: ClassVar[str] = "μ"

    mu: Positive

    @property
    def most(self) -> Fraction:
        """The largest mu."""
        return self.mu

    def __str__(self) -> str:
        return f"μ = {shown(self.mu)}"


def _renyi_bounds(**named: object) -> tuple[tuple[Fraction, Fraction], ...]:
    ((name, bounds),) = named.items()
    if not (isinstance(bounds, Mapping) and bounds):
        raise InvalidArgument(f"{name} = {bounds!r}: give a bound for each order, like {{2: 0.5}}")
    exact = {_checks.positive(order=a): _checks.positive(bound=b) for a, b in bounds.items()}
    if min(exact) <= 1 or len(exact) < len(bounds):
        raise InvalidArgument(f"{name} = {bounds!r}: give orders above 1, each once")
    return tuple(sorted(exact.items()))


@frozen
class RenyiLimit:
    """A limit as a Renyi curve (Mironov 2017, Definition 4): at each of its orders, all charges
    together, however adaptively chosen, stay within the bound for that order.

    It is given as a mapping; ``bounds`` holds (order, bound), by order. It has no delta.

    >>> RenyiLimit({8: 1, 2: 0.25})
    RenyiLimit({2: 0.25, 8: 1})
    """

    symbol: ClassVar[str] = "share"

    bounds: Annotated[
        Converted[tuple[tuple[Fraction, Fraction], ...], Mapping[Number, Number]], _renyi_bounds
    ]

    @property
    def most(self) -> Fraction:
        """1: the whole of the bound at each order."""
        return Fraction(1)

    def __str__(self) -> str:
        return ", ".join(f"{shown(bound)} at order {shown(order)}" for order, bound in self.bounds)

    def __repr__(self) -> str:
        curve = ", ".join(f"{shown(order)}: {shown(bound)}" for order, bound in self.bounds)
        return f"RenyiLimit({{{curve}}})"


AnyLimit = Limit | RhoLimit | MuLimit | RenyiLimit


@dataclass(frozen=True, slots=True)
class Request:
    """A question under an id that its analyst chose, so that repeating it costs nothing.

    ``body`` is a digest of the whole question; the same id with another body is refused.
    """

    id: str
    body: str

    def __post_init__(self) -> None:
        """Refuse ids that are empty or too long to store."""
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
        """The spent amount, in the limit's own measure."""
        ...

    @property
    def left(self) -> Fraction:
        """The largest pure epsilon that one more charge may cost."""
        ...


_END = "\n}"  # of a receipt's text


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a privacy loss was recorded before anything was computed.

    ``digest`` names the ledger's entry. ``stored`` is the answer of an earlier charge under the
    same request, if there is one. ``is_insecure`` marks a charge whose noise was not secret.
    ``balance`` is the balance after the charge, if the payer knows it. It is computed when it is
    first read, and it is not part of the proof. ``request`` is the id of the request, and
    ``privacy_loss`` the JSON of the privacy loss. ``statement`` is JSON too: the question with its
    unit, assumptions and mechanisms, if the payer recorded its digest.
    """

    number: int
    digest: str
    at: datetime
    purpose: str
    by: str
    stored: str | None = None
    is_insecure: bool = False
    balance: BudgetUse | None = plain_field(default=None, compare=False, repr=False)
    request: str | None = plain_field(default=None, compare=False, repr=False)
    privacy_loss: str | None = plain_field(default=None, compare=False, repr=False)
    statement: str | None = plain_field(default=None, compare=False, repr=False)

    def to_json(self) -> str:
        """The receipt as JSON, which `discreet verify` checks against the ledger without the data.

        A receipt has exactly one text. Its last member is a checksum of the others.
        """
        facts: dict[str, object] = {
            "receipt": RECEIPT_FORMAT,
            "number": self.number,
            "digest": self.digest,
            "at": self.at.isoformat(),
            "purpose": self.purpose,
            "by": self.by,
            "request": self.request,
            "is_insecure": self.is_insecure,
            "privacy_loss": None if self.privacy_loss is None else json.loads(self.privacy_loss),
            "statement": None if self.statement is None else json.loads(self.statement),
        }
        text = receipt_text(facts)
        return f'{text.removesuffix(_END)},\n  "checksum": "{_checksum(text)}"{_END}'

    def _repr_html_(self) -> str:
        """The receipt as a table in notebooks."""
        rows = [
            ("number", str(self.number)),
            ("digest", self.digest),
            ("at", self.at.isoformat()),
            ("purpose", self.purpose),
            ("by", self.by),
            *([] if self.request is None else [("request", self.request)]),
            *([("INSECURE", "the noise was not secret")] if self.is_insecure else []),
        ]
        return _html.table("receipt", (), rows)


def receipt_text(facts: Mapping[str, object]) -> str:
    """The one text of these members of a receipt."""
    return json.dumps(facts, indent=2, allow_nan=False)


def receipt_checksum(facts: Mapping[str, object]) -> str:
    """The checksum of a receipt's other members; it finds damage, not forgery."""
    return _checksum(receipt_text(facts))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Payer(Protocol[Loss]):
    """Something that pays: every release charges one, before it reads any private value."""

    def charge(
        self,
        loss: Loss,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
    ) -> Receipt:
        """Record the privacy loss durably, with the digest of the statement, or raise and record
        nothing."""
        ...

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a paid request durably, before it is shown."""
        ...

    def lock(self, receipt: Receipt) -> None:
        """Refuse every further charge until the owner unlocks: a paid computation failed."""
        ...


@runtime_checkable
class _KnowsRequests(Protocol):
    """Tells whether it has paid before."""

    def has_request(self, request: str, by: str) -> bool:
        """Whether this analyst charged under this request id before."""
        ...


def has_paid(payer: object, request: str | None, by: str) -> bool:
    """Whether this analyst charged under this request id before, as far as the payer can tell."""
    if request is None or not isinstance(payer, _KnowsRequests):
        return False
    return payer.has_request(request, by)


@runtime_checkable
class CountsSteps(Protocol[Loss]):
    """Counts the steps of a plan that was paid as a whole, durably, so that none runs twice."""

    def reserve(self, receipt: Receipt, loss: Loss, *, count: int, of: int, plan: str) -> range:
        """Reserve the next steps of this receipt before they run; no step is reserved twice."""
        ...

    def reserved(self, receipt: Receipt) -> int:
        """The number of steps that were reserved."""
        ...
