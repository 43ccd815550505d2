"""The facts that a ledger records, and the state of the whole ledger after each of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from discreet._budget import Request
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.accounting.filter._sums import Counting


class Kind(Enum):
    """The kinds of entries."""

    OPEN = "open"
    CHARGE = "charge"
    ANSWER = "answer"
    LOCK = "lock"
    UNLOCK = "unlock"
    STEPS = "steps"
    BACKUP = "backup"
    SUBTOTAL = "subtotal"
    GRANT = "grant"
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True)
class Opening:
    """The protected unit, and the filter that decides, with its limit."""

    unit: Unit
    filter: Filter


@dataclass(frozen=True, slots=True)
class ShareCharge:
    """The share that a charge was made to, and the sums of its filter after the charge.

    ``drawn`` is the amount by which the charge reduces the share's reserve; None without one.
    """

    name: str
    spent: Spent
    drawn: Counting | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """A privacy loss that was paid; ``statement`` is the digest of the receipt's statement.
    ``share`` is None for charges to no share."""

    loss: PrivacyLoss
    purpose: str
    by: str
    request: Request | None
    is_insecure: bool
    statement: str | None = None
    share: ShareCharge | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to a paid request."""

    charge: int
    text: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The computation of a charge failed; the owner must unlock before the next charge."""

    charge: int


@dataclass(frozen=True, slots=True)
class Unlock:
    """The owner allows charges again; with ``allow_repeat``, failed questions may be repeated."""

    reason: str
    by: str
    allow_repeat: bool = False


@dataclass(frozen=True, slots=True)
class StepReservation:
    """Steps of a charge that was paid as a whole. They are reserved before they run, and never
    given back.

    ``count`` steps are reserved from ``first`` on, of ``of`` steps in all. ``block`` is the number
    of this reservation among those of the charge, and ``plan`` a digest of the steps' plan.
    """

    charge: int
    block: int
    first: int
    count: int
    of: int
    plan: str

    @property
    def end(self) -> int:
        """The first step after these."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class Backup:
    """Marks a copy: all entries before this one come from another file. The owner must unlock it
    before the next charge."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """A privacy loss that is reserved for a share, and the amount in the ledger's own sums that is
    set aside for it."""

    loss: PrivacyLoss
    amount: Counting


@dataclass(frozen=True, slots=True)
class Grant:
    """A share below the ledger's limit: a filter of its own for the charges that are made to it.

    With a ``reserve``, a part of the ledger's limit is set aside for these charges.
    """

    share: str
    filter: Filter
    by: str
    reserve: Reserve | None = None


@dataclass(frozen=True, slots=True)
class Revoke:
    """The end of a share: it takes no further charge. ``released`` is the rest of its reserve."""

    share: str
    by: str
    released: Counting | None = None


@dataclass(frozen=True, slots=True)
class ShareState:
    """A share that is open: its filter, the filter's sums, and the rest of its reserve in the
    ledger's sums; None if nothing is reserved."""

    name: str
    filter: Filter
    spent: Spent
    reserved: Counting | None = None


@dataclass(frozen=True, slots=True)
class Subtotal:
    """The sum of all charges before this entry, and the open shares by name, so that a reader need
    not read those entries."""

    total: PrivacyLoss
    shares: tuple[ShareState, ...] = ()


PlainFact = StoredAnswer | Lock | Unlock | StepReservation | Backup  # of plain values
Fact = Opening | Charge | Subtotal | Grant | Revoke | PlainFact

KINDS: dict[type[Fact], Kind] = {
    Opening: Kind.OPEN,
    Charge: Kind.CHARGE,
    StoredAnswer: Kind.ANSWER,
    Lock: Kind.LOCK,
    Unlock: Kind.UNLOCK,
    StepReservation: Kind.STEPS,
    Backup: Kind.BACKUP,
    Subtotal: Kind.SUBTOTAL,
    Grant: Kind.GRANT,
    Revoke: Kind.REVOKE,
}


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Everything that decides on the next charge; the state of the last link is in force.

    ``opening`` is the number of the opening in force, and ``opening_digest`` its digest.
    ``failed`` lists the charges whose questions failed and may not be asked again. ``subtotal`` is
    the number of the last subtotal, or 0. ``reserved`` is the sum of what is left of all reserves,
    in the ledger's own sums; None if nothing is reserved.
    """

    spent: Spent
    charges: int
    is_locked: bool
    opening: int
    opening_digest: str
    failed: tuple[int, ...] = ()
    subtotal: int = 0
    reserved: Counting | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of the chain: a fact, its time, and the state after it.

    ``id`` is random, so that no other entry has the same digest, even if two copies of a ledger
    record equal facts at the same time: the anchor then knows one of them only. If the outcome of a
    commit is not known, the entry is looked up by its digest.
    """

    number: int
    at: datetime
    id: str
    fact: Fact
    state: LedgerState
    digest: str

    @property
    def kind(self) -> Kind:
        """The kind of the fact."""
        return KINDS[type(self.fact)]
