"""The closed list of problems that the service answers with: name, status and text.

Texts depend on public facts only. Errors of questions and budgets show their own text; those of
files, databases and computations a fixed one, since theirs may name paths.
"""

from dataclasses import dataclass

from discreet import errors
from discreet.service._workers import FAILED, Busy, WorkerLost


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: its name in JSON, its status, and its text where this is fixed."""

    name: str
    status: int
    text: str


class Problem(Exception):
    """A request that is answered with a problem of the list."""

    def __init__(self, kind: ProblemKind, text: str = "") -> None:
        """A problem of this kind; ``text`` replaces the fixed one."""
        super().__init__(text or kind.text)
        self.kind = kind


UNAUTHORIZED = ProblemKind(
    "unauthorized", 401, "send a valid token in the header, as Authorization: Bearer TOKEN"
)
FORBIDDEN = ProblemKind("forbidden", 403, "the role of this token does not allow it")
FOREIGN = ProblemKind(
    "foreign", 403, "this form did not come from a page of your session: open the page again"
)
NO_SHARE = ProblemKind(
    "no_share", 403, "this token's name has no share of the table's budget: ask the owner for one"
)
NOT_FOUND = ProblemKind("not_found", 404, "there is nothing at this address for this token")
WRONG_METHOD = ProblemKind("wrong_method", 405, "this address takes another method")
BAD_BODY = ProblemKind(
    "bad_body", 400, "send one JSON object in UTF-8 with the members that the description lists"
)
TOO_LARGE = ProblemKind("too_large", 413, "send a body of at most 65536 bytes")
UNSUPPORTED = ProblemKind("unsupported", 415, "send application/json without a content encoding")
TOO_SLOW = ProblemKind("too_slow", 408, "send the whole body within 10 seconds")
TOO_MANY = ProblemKind("too_many_requests", 429, "send fewer requests with this token")
BUSY = ProblemKind("busy", 503, "all workers are busy: repeat the same request later")
LOST = ProblemKind("not_answered", 503, "no answer was made in time: repeat the same request")
LOCKED = ProblemKind("ledger_locked", 423, "the table is locked until its owner acts")
RECEIPT = ProblemKind(
    "receipt_differs", 422, "the receipt was altered, or the table's ledger has no such charge"
)
LEDGER = ProblemKind("ledger", 503, "the table's ledger can't be used: ask the owner")
DECLARATION = ProblemKind(
    "declaration", 503, "the table's rows or their declaration can't be used: ask the owner"
)
COMPUTATION = ProblemKind("computation_failed", 500, FAILED)
UNEXPECTED = ProblemKind("unexpected", 500, "an unexpected failure; what was paid stays paid")

# The first kind in this order that an error is an instance of; subclasses stand before their bases.
# An empty text is the error's own.
KINDS: tuple[tuple[type[BaseException], ProblemKind], ...] = (
    (errors.InvalidArgument, ProblemKind("invalid_argument", 400, "")),
    (errors.DeclarationError, DECLARATION),
    (errors.NoBound, ProblemKind("no_bound", 422, "")),
    (errors.WrongUnit, ProblemKind("wrong_unit", 422, "")),
    (errors.QueryRefused, ProblemKind("query_refused", 422, "")),
    (errors.RequestReused, ProblemKind("request_reused", 409, "")),
    (errors.QuestionFailed, ProblemKind("question_failed", 422, "")),
    (errors.SessionEnded, ProblemKind("session_ended", 422, "")),
    (errors.Refused, ProblemKind("refused", 422, "")),
    (errors.BudgetExceeded, ProblemKind("budget_exceeded", 402, "")),
    (errors.LedgerLocked, LOCKED),
    (errors.ReceiptDiffers, RECEIPT),
    (errors.LedgerError, LEDGER),
    (errors.ComputationFailed, COMPUTATION),
    (Busy, BUSY),
    (WorkerLost, LOST),
    (BaseException, UNEXPECTED),
)


def problem_of(error: BaseException) -> Problem:
    """The problem that answers this error."""
    if isinstance(error, Problem):
        return error
    kind = next(kind for base, kind in KINDS if isinstance(error, base))
    return Problem(kind, "" if kind.text else str(error))
