"""What a ledger decides: what may be asked of it, and whether a charge is admitted or repeated."""

import time
from dataclasses import dataclass

from discreet import _checks
from discreet._budget import AnyLimit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent, Term
from discreet.accounting._shares import Squares
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InvalidArgument,
    LedgerDamaged,
    LedgerLocked,
    NoBound,
    QuestionFailed,
    RequestReused,
)
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._entries import (
    Backup,
    Charge,
    Link,
    Lock,
    Opening,
    StepReservation,
    StoredAnswer,
    answer_key,
    steps_key,
)
from discreet.ledger._store import Transaction
from discreet.ledger._views import FilterUse, refusal

_FAILED = (
    "a computation failed after it was paid, and the ledger is locked; its owner looks for "
    "the cause in the log 'discreet.owner', then calls ledger.unlock(reason, by) or "
    "`discreet unlock`"
)
_BACKUP = (
    "this ledger is a backup: what was charged after it was made is not in it. Charge the ledger "
    "that it was made of; if that one is lost, its owner calls ledger.unlock(reason, by) here, or "
    "`discreet unlock`"
)


def opening_for(unit: Unit, limit: AnyLimit, chosen: Filter | None) -> Opening:
    """The opening that is asked for; the default filter unless one is chosen."""
    if not isinstance(unit, Unit):
        raise InvalidArgument(
            f"unit = {_checks.quoted(unit)}: give a Unit, like Unit('person_id') or Unit.ROW"
        )
    if not isinstance(limit, AnyLimit):
        raise InvalidArgument(
            f"limit = {_checks.quoted(limit)}: give a Limit, like Limit(epsilon=2, delta=1e-6)"
        )
    if chosen is None:
        return Opening(unit, Filter.for_limit(limit))
    if not isinstance(chosen, Filter) or chosen.limit != limit:
        raise InvalidArgument(
            f"filter = {_checks.quoted(chosen)}: give a Filter that is made for this limit"
        )
    return Opening(unit, _exact(chosen))


def _exact(chosen: Filter) -> Filter:
    """The filter with its numbers as they will be read again."""
    shares = (
        (_checks.positive(order=a), _checks.positive(share=part)) for a, part in chosen.shares
    )
    squares = chosen.squares and Squares(
        _checks.positive(share=chosen.squares.share),
        _checks.not_negative(floor=chosen.squares.floor),
        chosen.squares.beside_leaks is True,
    )
    leak = _checks.not_negative(leak=chosen.leak)
    return Filter(chosen.limit, leak, tuple(shares), squares)


def charge_for(
    loss: PrivacyLoss | Term, purpose: str, by: str, request: Request | None, *, is_insecure: bool
) -> Charge:
    """The charge that is asked for, once it is sure that it can be written down and read again."""
    whole = loss_of(loss)
    if request is not None and not (isinstance(request, Request) and isinstance(request.body, str)):
        raise InvalidArgument(
            f"request = {_checks.quoted(request)}: give a Request with a text as body"
        )
    exact, told, who = _written(whole), _checks.text(purpose=purpose), _checks.text(by=by)
    return Charge(exact, told, who, request, bool(is_insecure))


def loss_of(loss: PrivacyLoss | Term) -> PrivacyLoss:
    """The privacy loss that is given, also as a single term."""
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {_checks.quoted(loss)}: give a PrivacyLoss")
    return whole


def _written(loss: PrivacyLoss) -> PrivacyLoss:
    """The loss as it will be read again, which must be the very same."""
    try:
        read = PrivacyLoss.from_json(loss.to_json())
    except (ValueError, TypeError, AttributeError) as mistake:
        raise InvalidArgument(f"this privacy loss can't be written down: {mistake}") from mistake
    if read != loss:
        raise InvalidArgument(f"{loss!r} would be read again as {read!r}: build it by + and *")
    return read


def check_open(rows: Transaction, head: Link, purpose: str) -> None:
    """Raise unless nothing is locked and this question may be asked."""
    if head.state.is_locked:
        raise LedgerLocked(_BACKUP if is_backup(rows, head) else _FAILED)
    for number in head.state.failed:
        if _charge(rows, number).purpose == purpose:
            raise QuestionFailed(
                f"this question failed after it was paid (charge {number}), and each repeat could "
                "fail again for the same reason: its owner allows it by "
                "ledger.unlock(reason, by, allow_repeat=True) or `discreet unlock --allow-repeat`"
            )


def locking(rows: Transaction, head: Link) -> list[Link]:
    """The entries that locked the ledger since it was last open, the latest first."""
    found, link = [], head
    while link.state.is_locked:
        if isinstance(link.fact, Lock | Backup):
            found.append(link)
        link = rows.link(link.number - 1)
    return found


def is_backup(rows: Transaction, head: Link) -> bool:
    """Whether the ledger is a copy that its owner has not taken into use."""
    return any(isinstance(link.fact, Backup) for link in locking(rows, head))


def failures(rows: Transaction, head: Link) -> list[Link]:
    """The charges that failed and may not be asked again, with those of this lock."""
    numbers = {link.fact.charge for link in locking(rows, head) if isinstance(link.fact, Lock)}
    return [rows.link(number) for number in sorted(numbers | set(head.state.failed))]


def _charge(rows: Transaction, number: int) -> Charge:
    fact = rows.link(number).fact
    if not isinstance(fact, Charge):
        raise LedgerDamaged(f"entry {number} stands for a failed charge and is none")
    return fact


@dataclass(frozen=True, slots=True)
class PricedCharge:
    """The result of a charge under an opening, from these sums: other sums, or an error."""

    opening: Opening
    before: Spent
    loss: PrivacyLoss
    after: Spent | DiscreetError
    seconds: float

    @staticmethod
    def of(opening: Opening, before: Spent, loss: PrivacyLoss) -> "PricedCharge":
        """Compute it; this may take long, and so belongs before the transaction."""
        begin = time.monotonic()
        try:
            after: Spent | DiscreetError = opening.filter.add(before, loss.for_unit(opening.unit))
        except DiscreetError as mistake:
            after = mistake
        except (ArithmeticError, ValueError, RuntimeWarning):
            after = NoBound("the numbers of this privacy loss are too extreme for a price")
        return PricedCharge(opening, before, loss, after, time.monotonic() - begin)

    def fits(self, opening: Opening, before: Spent) -> bool:
        """Whether this is what it was computed for. Whatever the sums, an error stays the same."""
        is_same = self.before == before or isinstance(self.after, DiscreetError)
        return self.opening == opening and is_same

    @property
    def sums(self) -> Spent | None:
        """The sums after the charge; ``None`` if they are not admitted. Raises the error."""
        if isinstance(self.after, DiscreetError):
            raise self.after
        return self.after if self.opening.filter.admits(self.after) else None

    @property
    def refusal(self) -> BudgetExceeded:
        """The error that says why the sums are not admitted."""
        assert not isinstance(self.after, DiscreetError)
        loss = self.loss.for_unit(self.opening.unit)
        return BudgetExceeded(refusal(self.opening.filter, self.before, self.after, loss))


def repeated(rows: Transaction, first: Link, request: Request, use: FilterUse) -> Receipt:
    """The first receipt of this request, with its answer and what is left now."""
    if not isinstance(first.fact, Charge) or first.fact.request is None:
        raise LedgerDamaged(f"entry {first.number} stands under a request and is none")
    if first.fact.request.body != request.body:
        raise RequestReused(
            f"request id {request.id!r} was used for another question (charge {first.number}): "
            "take a new id for this one"
        )
    kept = rows.under(answer_key(first.number))
    if kept is None or not isinstance(kept.fact, StoredAnswer):
        raise RequestReused(
            f"request id {request.id!r} was paid (charge {first.number}), but no answer is stored: "
            "it is being computed now, or was lost in a crash; it is never drawn again, so ask "
            "under a new id, which is a new charge"
        )
    return receipt_of(first, first.fact, use, kept.fact.text)


def paid(rows: Transaction, head: Link, receipt: Receipt) -> Charge:
    """The charge that a receipt stands for."""
    if isinstance(receipt, Receipt) and 0 < receipt.number <= head.number:
        link = rows.link(receipt.number)
        if isinstance(link.fact, Charge) and link.digest == receipt.digest:
            return link.fact
    raise InvalidArgument(f"receipt = {_checks.quoted(receipt)}: it is not from this ledger")


def last_reservation(rows: Transaction, charge: int) -> StepReservation | None:
    """The last steps that were taken of a charge, found by doubling and halving."""
    found, ahead = -1, 0
    while rows.has(steps_key(charge, ahead)):
        found, ahead = ahead, 2 * ahead + 1
    while ahead - found > 1:
        middle = (found + ahead) // 2
        is_there = rows.has(steps_key(charge, middle))
        found, ahead = (middle, ahead) if is_there else (found, middle)
    link = rows.under(steps_key(charge, found))
    if link is None:
        return None
    if not isinstance(link.fact, StepReservation):
        raise LedgerDamaged(f"entry {link.number} stands for steps and is none")
    return link.fact


def receipt_of(link: Link, paid: Charge, use: FilterUse, kept: str | None = None) -> Receipt:
    """The receipt of a charge, with what is left now, and the stored answer to a repeat."""
    return Receipt(
        link.number, link.digest, link.at, paid.purpose, paid.by, kept, paid.is_insecure, use
    )


def verified_head(rows: Transaction, anchored: AnchorMark | None) -> Link:
    """The head, once the chain is known to hold what the anchor has seen."""
    head = rows.head()
    if anchored is not None:
        is_there = anchored.number <= head.number
        if not is_there or rows.link(anchored.number).digest != anchored.digest:
            raise LedgerDamaged("it is older than its anchor: a rolled-back copy?")
    return head
