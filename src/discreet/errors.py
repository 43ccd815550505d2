"""Every error that discreet raises, in one tree.

    DiscreetError
    ├── InvalidArgument      a value that is never allowed there (also a ValueError)
    ├── DeclarationError     a mistake in what an owner wrote down about a table
    ├── Refused              understood, but there is no rule that makes it private
    │   ├── NoBound          nothing proven answers this question about a privacy loss
    │   ├── WrongUnit        privacy losses or bounds of different units met
    │   ├── QueryRefused     a part of a query has no rule
    │   ├── RequestReused    a request id came back with another question
    │   ├── QuestionFailed   this question failed after it was paid, and isn't allowed again
    │   └── SessionEnded     an interactive mechanism has given all that was paid for
    ├── BudgetExceeded       the charge would take the ledger over its limit
    ├── LedgerError          the ledger can't be used as it is
    │   ├── LedgerLocked     a computation failed after it was paid; its owner must look
    │   ├── LedgerDiffers    the ledger and the declaration contradict each other
    │   └── LedgerDamaged    its chain of entries is broken, or it is older than its anchor
    └── ComputationFailed    paid, then failed; says nothing about why

Texts depend on public facts only: no row of a private table shows in any of them.
"""


class DiscreetError(Exception):
    """Any error of discreet's own."""


class InvalidArgument(DiscreetError, ValueError):
    """A value that is never allowed there; says what was given and what is allowed."""


class DeclarationError(DiscreetError):
    """A mistake in the declaration of a table; says where and what is allowed."""


class Refused(DiscreetError):
    """The request was understood and is refused; nothing was read, nothing was charged."""


class NoBound(Refused):
    """Nothing proven is known about this privacy loss that would answer the question."""


class WrongUnit(Refused):
    """Privacy losses protect a unit; those of different units never add."""


class QueryRefused(Refused):
    """A part of the query has no rule; the text names the part and what is possible."""


class RequestReused(Refused):
    """This request id was used before, for another question or without a stored answer."""


class QuestionFailed(Refused):
    """This question failed after it was paid; its owner must allow it before it is asked again."""


class SessionEnded(Refused):
    """An interactive mechanism has given all that was paid for, or failed."""


class BudgetExceeded(DiscreetError):
    """The charge would take the ledger over its limit; nothing was charged."""


class LedgerError(DiscreetError):
    """The ledger can't be used as it is."""


class LedgerLocked(LedgerError):
    """A computation failed after it was paid; the owner must look before anything else runs."""


class LedgerDiffers(LedgerError):
    """What the ledger fixed when it was made differs from what is now declared."""


class LedgerDamaged(LedgerError):
    """The ledger's chain of entries is broken, or it is older than its anchor says."""


class ComputationFailed(DiscreetError):
    """The computation failed after it was paid; the cause is in the owner's log only."""
