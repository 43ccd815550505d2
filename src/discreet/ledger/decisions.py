"""What a ledger decides: what may be asked of it, and whether a charge is admitted or repeated."""

from discreet import checks
from discreet.accounting import Filter, PrivacyLoss, Term
from discreet.accounting.shares import Squares
from discreet.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerDamaged,
    LedgerLocked,
    RequestReused,
)
from discreet.ledger.anchor import Mark
from discreet.ledger.entries import (
    Answer,
    Charge,
    Link,
    Opening,
    State,
    Steps,
    answer_key,
    steps_key,
)
from discreet.ledger.store import Rows
from discreet.ledger.views import refusal
from discreet.payment import AnyLimit, Receipt, Request
from discreet.unit import Unit


def opening_for(unit: Unit, limit: AnyLimit, chosen: Filter | None) -> Opening:
    """The opening that is asked for; the default filter unless one is chosen."""
    if not isinstance(unit, Unit):
        raise InvalidArgument(f"unit = {unit!r}: give a Unit, like Unit('person_id') or Unit.ROW")
    if not isinstance(limit, AnyLimit):
        raise InvalidArgument(f"limit = {limit!r}: give a Limit, like Limit(epsilon=2, delta=1e-6)")
    if chosen is None:
        return Opening(unit, Filter.for_limit(limit))
    if not isinstance(chosen, Filter) or chosen.limit != limit:
        raise InvalidArgument(f"filter = {chosen!r}: give a Filter that is made for this limit")
    return Opening(unit, _exact(chosen))


def _exact(chosen: Filter) -> Filter:
    """The filter with its numbers as they will be read again."""
    shares = ((checks.positive(order=a), checks.positive(share=part)) for a, part in chosen.shares)
    squares = chosen.squares and Squares(
        checks.positive(share=chosen.squares.share),
        checks.not_negative(floor=chosen.squares.floor),
        chosen.squares.beside_leaks is True,
    )
    leak = checks.not_negative(leak=chosen.leak)
    return Filter(chosen.limit, leak, tuple(shares), squares)


def charge_for(
    loss: PrivacyLoss | Term, purpose: str, by: str, request: Request | None, *, is_insecure: bool
) -> Charge:
    """The charge that is asked for, once it is sure that it can be written down and read again."""
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {loss!r}: give a PrivacyLoss")
    if request is not None and not (isinstance(request, Request) and isinstance(request.body, str)):
        raise InvalidArgument(f"request = {request!r}: give a Request with a text as body")
    exact, told, who = _written(whole), checks.text(purpose=purpose), checks.text(by=by)
    return Charge(exact, told, who, request, bool(is_insecure))


def _written(loss: PrivacyLoss) -> PrivacyLoss:
    """The loss as it will be read again, which must be the very same."""
    try:
        read = PrivacyLoss.from_json(loss.to_json())
    except (ValueError, TypeError, AttributeError) as mistake:
        raise InvalidArgument(f"this privacy loss can't be written down: {mistake}") from mistake
    if read != loss:
        raise InvalidArgument(f"{loss!r} would be read again as {read!r}: build it by + and *")
    return read


def admit(chosen: Filter, before: State, after: State, loss: PrivacyLoss) -> None:
    """Raise unless nothing is locked and the filter admits the sums after the charge."""
    if before.is_locked:
        raise LedgerLocked(
            "a computation failed after it was paid, and the ledger is locked; its owner looks for "
            "the cause in the log 'discreet.owner', then calls ledger.unlock(reason, by) or "
            "`discreet unlock`"
        )
    if not chosen.admits(after.spent):
        raise BudgetExceeded(refusal(chosen, before.spent, after.spent, loss))


def repeated(rows: Rows, first: Link, request: Request) -> Receipt:
    """The first receipt of this request, with its answer."""
    if not isinstance(first.fact, Charge) or first.fact.request is None:
        raise LedgerDamaged(f"entry {first.number} stands under a request and is none")
    if first.fact.request.body != request.body:
        raise RequestReused(
            f"request id {request.id!r} was used for another question (charge {first.number}): "
            "take a new id for this one"
        )
    kept = rows.under(answer_key(first.number))
    if kept is None or not isinstance(kept.fact, Answer):
        raise RequestReused(
            f"request id {request.id!r} was paid (charge {first.number}), but no answer is stored: "
            "it is being computed now, or was lost in a crash; it is never drawn again, so ask "
            "under a new id, which is a new charge"
        )
    return receipt_of(first, first.fact, kept.fact.text)


def paid(rows: Rows, head: Link, receipt: Receipt) -> Charge:
    """The charge that a receipt stands for."""
    if isinstance(receipt, Receipt) and 0 < receipt.number <= head.number:
        link = rows.link(receipt.number)
        if isinstance(link.fact, Charge) and link.digest == receipt.digest:
            return link.fact
    raise InvalidArgument(f"receipt = {receipt!r}: it is not from this ledger")


def last_steps(rows: Rows, charge: int) -> Steps | None:
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
    if not isinstance(link.fact, Steps):
        raise LedgerDamaged(f"entry {link.number} stands for steps and is none")
    return link.fact


def receipt_of(link: Link, paid: Charge, kept: str | None = None) -> Receipt:
    """The receipt of a charge, with the answer that was kept if it is asked again."""
    told = {"purpose": paid.purpose, "by": paid.by}
    return Receipt(
        link.number, link.digest, link.at, **told, kept=kept, is_insecure=paid.is_insecure
    )


def verified_head(rows: Rows, anchored: Mark | None) -> Link:
    """The head, once the chain is known to hold what the anchor has seen."""
    head = rows.head()
    if anchored is not None:
        is_there = anchored.number <= head.number
        if not is_there or rows.link(anchored.number).digest != anchored.digest:
            raise LedgerDamaged("it is older than its anchor: a rolled-back copy?")
    return head
