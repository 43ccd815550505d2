"""Every error that discreet raises, in one tree.

    DiscreetError
    ├── InvalidArgument      a value that is never allowed there (also a ValueError)
    ├── DeclarationError     a mistake in the declaration of a table
    ├── Refused              understood, but no rule makes it private
    │   ├── NoBound          no theorem bounds this privacy loss
    │   ├── WrongUnit        privacy losses or bounds of different units met
    │   ├── QueryRefused     a part of a query has no rule
    │   ├── RequestReused    a request id was used for another question
    │   ├── QuestionFailed   this question failed after it was paid, and may not be repeated
    │   └── SessionEnded     an interactive mechanism has used all that was paid
    ├── BudgetExceeded       the charge would take the ledger over its limit
    ├── LedgerError          the ledger can't be used as it is
    │   ├── LedgerLocked     a computation failed after it was paid; the owner must unlock
    │   ├── LedgerDiffers    the ledger and the declaration contradict each other
    │   ├── ReceiptDiffers   a receipt was altered, or is not from this ledger
    │   └── LedgerDamaged    its chain of entries is broken
    │       └── AnchorDiffers    it lacks the entry that its anchor has: it is another copy
    ├── ServiceError         a service gave no answer, or none that a service sends
    └── ComputationFailed    it was paid, then failed; only the owner's log has the cause

    UselessAnswerWarning     an answer that is about to be paid will tell nothing

Texts depend on public facts only: no row of a private table shows in any of them.
"""


class DiscreetError(Exception):
    """Any error of discreet's own."""


class InvalidArgument(DiscreetError, ValueError):
    """A value that is not allowed; the text says what was given and what is allowed."""


class DeclarationError(DiscreetError):
    """A mistake in the declaration of a table; the text says where, and what is allowed."""


class Refused(DiscreetError):
    """The request was understood and is refused; nothing was read, nothing was charged."""


class NoBound(Refused):
    """No theorem bounds this privacy loss in the way that was asked."""


class WrongUnit(Refused):
    """Privacy losses protect a unit; those of different units never add."""


class QueryRefused(Refused):
    """A part of the query has no rule; the text names the part and what is possible."""


class RequestReused(Refused):
    """This request id was used before, for another question or without a stored answer."""


class QuestionFailed(Refused):
    """This question failed after it was paid; the owner must allow its repetition."""


class SessionEnded(Refused):
    """An interactive mechanism has used all that was paid, or failed."""


class BudgetExceeded(DiscreetError):
    """The charge would take the ledger over its limit; nothing was charged."""


class LedgerError(DiscreetError):
    """The ledger can't be used as it is."""


class LedgerLocked(LedgerError):
    """A computation failed after it was paid; the owner must unlock before the next charge."""


class LedgerDiffers(LedgerError):
    """The ledger's limit or unit differs from the declaration."""


class ReceiptDiffers(LedgerError):
    """A receipt was altered, or the ledger has no such charge."""


class LedgerDamaged(LedgerError):
    """The ledger's chain of entries is broken, or lacks an entry."""


class AnchorDiffers(LedgerDamaged):
    """The ledger lacks the entry that its anchor has: it is older, another copy, or another ledger.
    The right one is the copy that opens with this anchor."""


class ServiceError(DiscreetError):
    """A service can't be reached, or its reply is none that a service sends."""


class ComputationFailed(DiscreetError):
    """The computation failed after it was paid; the cause is in the owner's log only."""


class UselessAnswerWarning(UserWarning):
    """An answer whose intervals will tell nothing is about to be paid; the text says which epsilon
    would help. ``warnings.simplefilter("error", UselessAnswerWarning)`` makes it an error, raised
    before the charge."""
