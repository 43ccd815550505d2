"""The kinds of failures of commands: for each its name in JSON, its exit code and its advice.

The list is fixed, so that programs can rely on it. `docs/commands.md` shows it.
"""

from dataclasses import dataclass

import typer

from discreet.errors import (
    AnchorDiffers,
    BudgetExceeded,
    ComputationFailed,
    DeclarationError,
    DiscreetError,
    InvalidArgument,
    LedgerDamaged,
    LedgerDiffers,
    LedgerError,
    LedgerLocked,
    NoBound,
    QueryRefused,
    QuestionFailed,
    ReceiptDiffers,
    Refused,
    RequestReused,
    ServiceError,
    SessionEnded,
    WrongUnit,
)

USAGE, REFUSED, BUDGET, FAILED = 2, 3, 4, 5
INTERRUPTED = 130  # as a shell counts an end by Ctrl-C

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # of the parser that Typer uses


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure: ``name`` is its ``error`` in JSON."""

    name: str
    exit_code: int
    advice: str


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """A failure of a command: its kind and its text. ``hint`` is further advice, and ``request``
    the id of what may have been paid."""

    kind: FailureKind
    message: str
    hint: str = ""
    request: str | None = None

    def to_json(self) -> dict[str, str]:
        """The failure as one object of JSON."""
        advice = " ".join(part for part in (self.kind.advice, self.hint) if part)
        request = {} if self.request is None else {"request": self.request}
        return {"error": self.kind.name, "message": self.message, "advice": advice, **request}


class Declined(Exception):
    """The user was asked, and decided not to go on."""


class FailureExit(Exception):
    """A failure that the command has shown already, beside what it printed."""

    def __init__(self, exit_code: int) -> None:
        """End with this exit code."""
        super().__init__()
        self.exit_code = exit_code


class Stopped(Exception):
    """Ctrl-C stopped a command that may have paid for this request."""

    def __init__(self, text: str, request: str) -> None:
        """Advise by this text, which names the request."""
        super().__init__(text)
        self.request = request


# The first kind in this order that an error is an instance of; subclasses stand before their bases.
KINDS: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (UsageError, FailureKind("usage", USAGE, "look at the command's --help")),
    (InvalidArgument, FailureKind("invalid_argument", USAGE, "give an allowed value")),
    (DeclarationError, FailureKind("declaration", USAGE, "correct the declaration's file")),
    (NoBound, FailureKind("no_bound", REFUSED, "name a delta, or use another mechanism")),
    (WrongUnit, FailureKind("wrong_unit", REFUSED, "use privacy losses of one unit")),
    (QueryRefused, FailureKind("query_refused", REFUSED, "ask without the part that is named")),
    (RequestReused, FailureKind("request_reused", REFUSED, "take a new request id")),
    (QuestionFailed, FailureKind("question_failed", REFUSED, "ask the owner to allow it again")),
    (SessionEnded, FailureKind("session_ended", REFUSED, "open another session")),
    (Refused, FailureKind("refused", REFUSED, "follow the message")),
    (LedgerLocked, FailureKind("ledger_locked", REFUSED, "ask the owner to unlock the table")),
    (LedgerDiffers, FailureKind("ledger_differs", REFUSED, "declare what the ledger recorded")),
    (ReceiptDiffers, FailureKind("receipt_differs", REFUSED, "do not rely on this receipt")),
    (BudgetExceeded, FailureKind("budget_exceeded", BUDGET, "spend less, or ask the owner")),
    (AnchorDiffers, FailureKind("anchor_differs", FAILED, "use the copy that its anchor opens")),
    (LedgerDamaged, FailureKind("ledger_damaged", FAILED, "restore the ledger from a backup")),
    (LedgerError, FailureKind("ledger", FAILED, "look at the ledger's file")),
    (ServiceError, FailureKind("service", FAILED, "repeat the command with its --request")),
    (ComputationFailed, FailureKind("computation_failed", FAILED, "ask the owner to look")),
    (DiscreetError, FailureKind("failed", FAILED, "follow the message")),
    (Declined, FailureKind("declined", REFUSED, "answer y to go on")),
    (KeyboardInterrupt, FailureKind("interrupted", INTERRUPTED, "look at the ledger")),
    (BaseException, FailureKind("unexpected", FAILED, "ask the owner to read the log")),
)


def usage_text(error: Exception) -> str:
    """The text of a mistake in the command line."""
    text: str = getattr(error, "format_message", error.__str__)()
    return text


def error_kind(error: BaseException) -> FailureKind:
    """The kind of an error."""
    return next(kind for base, kind in KINDS if isinstance(error, base))
