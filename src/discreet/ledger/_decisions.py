"""The decisions of a ledger: whether a charge is well formed, admitted, refused or repeated.

A charge goes through these stages:

1. `ChargeOrder`: the well-formed `Charge`, with its statement and the share that pays it
2. `PricedCharge`: its cost by a filter, computed before the transaction
3. `CountedCharge`: the sums of one `Track` after it; the filter admits them or not
"""

from dataclasses import dataclass
from functools import lru_cache

from discreet import _checks
from discreet._bisection import smallest_whole
from discreet._budget import AnyLimit, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent, Term
from discreet.accounting.filter._sums import Counting, FilterCost, Squares
from discreet.errors import (
    AnchorDiffers,
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
from discreet.ledger._canonical import text_digest
from discreet.ledger._entries import answer_key, request_key, steps_key
from discreet.ledger._fact_json import shared_filter
from discreet.ledger._facts import (
    Backup,
    Charge,
    Link,
    Lock,
    Opening,
    StepReservation,
    StoredAnswer,
)
from discreet.ledger._store import Transaction
from discreet.ledger._views import FilterUse, refusal

_LOSSES = 256  # that are remembered, of charges
_MOST_TIMES = 10**900  # a privacy loss takes counts below 10^1000, so sums of charges fit
_FAILED = (
    "a computation failed after it was paid, and the ledger is locked: its owner finds the cause "
    "in the log 'discreet.owner', then calls ledger.unlock(reason, by) or `discreet unlock`"
)
_BACKUP = (
    "this ledger is a backup, which lacks all later charges: charge the original ledger. If the "
    "original is lost, its owner calls ledger.unlock(reason, by) here, or `discreet unlock`"
)
_RIGHT = (
    "The right ledger is the copy that opens with this anchor: put it in this place. A backup is "
    "refused as well, if it lacks that entry"
)


def opening_for(unit: Unit, limit: AnyLimit, chosen: Filter | None) -> Opening:
    """The opening for this unit and limit, with the default filter unless one is chosen."""
    if not isinstance(unit, Unit):
        raise InvalidArgument(
            f"unit = {_checks.quoted(unit)}: give a Unit, like Unit('person_id') or Unit.ROW"
        )
    if not isinstance(limit, AnyLimit):
        raise InvalidArgument(
            f"limit = {_checks.quoted(limit)}: give a Limit, like Limit(epsilon=2, delta=1e-6)"
        )
    if chosen is None:
        return Opening(unit, shared_filter(Filter.for_limit(limit)))
    if not isinstance(chosen, Filter) or chosen.limit != limit:
        raise InvalidArgument(
            f"filter = {_checks.quoted(chosen)}: give a Filter that is made for this limit"
        )
    return Opening(unit, shared_filter(_exact(chosen)))


def _exact(chosen: Filter) -> Filter:
    """The filter with its numbers at the exact values that are stored."""
    shares = (
        (_checks.positive(order=a), _checks.positive(share=part)) for a, part in chosen.shares
    )
    squares = chosen.squares and Squares(
        _checks.positive(share=chosen.squares.share),
        _checks.not_negative(floor=chosen.squares.floor),
    )
    failures = _checks.not_negative(failures=chosen.failures)
    return Filter(chosen.limit, failures, tuple(shares), squares)


def charge_for(
    loss: PrivacyLoss | Term,
    purpose: str,
    by: str,
    request: Request | None,
    *,
    is_insecure: bool,
    statement: str | None,
) -> Charge:
    """The charge, after a check that it can be stored and read again as the same value."""
    whole = loss_of(loss)
    if request is not None and not (isinstance(request, Request) and isinstance(request.body, str)):
        raise InvalidArgument(
            f"request = {_checks.quoted(request)}: give a Request with a text as body"
        )
    asked = request and Request(str.__str__(request.id), str.__str__(request.body))
    exact, why, who = storable(whole), _checks.text(purpose=purpose), _checks.text(by=by)
    digest = None if statement is None else text_digest(statement)
    return Charge(exact, why, who, asked, bool(is_insecure), digest)


@dataclass(frozen=True, slots=True)
class ChargeOrder:
    """A charge that is well formed, with the text of its statement and the share that pays it."""

    fact: Charge
    statement: str | None = None
    share: str | None = None

    @staticmethod
    def of(
        loss: PrivacyLoss | Term,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
        share: str | None = None,
    ) -> "ChargeOrder":
        """The order of this charge, by the arguments of `Ledger.charge`."""
        text = None if statement is None else str.__str__(statement)
        fact = charge_for(loss, purpose, by, request, is_insecure=is_insecure, statement=text)
        return ChargeOrder(fact, text, share)

    @property
    def key(self) -> str | None:
        """The key of its request, under which there may be an entry; None without a request."""
        fact = self.fact
        return None if fact.request is None else request_key(fact.by, fact.request)


def loss_of(loss: PrivacyLoss | Term) -> PrivacyLoss:
    """The privacy loss, which may be given as a single term."""
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {_checks.quoted(loss)}: give a PrivacyLoss")
    return whole


def storable(loss: PrivacyLoss) -> PrivacyLoss:
    """The loss as it is read from storage, which must equal the given one."""
    if any(count > _MOST_TIMES for _, count in loss.terms):
        raise InvalidArgument("this privacy loss has a count above 10^900: give a smaller one")
    try:
        read = (_read_again if type(loss) is PrivacyLoss else _read_again.__wrapped__)(loss)
    except (ValueError, TypeError, AttributeError) as mistake:
        raise InvalidArgument(f"this privacy loss can't be stored: {mistake}") from mistake
    if read != loss:
        raise InvalidArgument(f"{loss!r} would be read again as {read!r}: build it by + and *")
    return read


@lru_cache(_LOSSES)
def _read_again(loss: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss.from_json(loss.to_json())


def check_open(rows: Transaction, head: Link, purpose: str) -> None:
    """Raise if the ledger is locked, or this question has failed before."""
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
    """The entries that locked the ledger since it was last unlocked, the latest first."""
    found, link = [], head
    while link.state.is_locked:
        if isinstance(link.fact, Lock | Backup):
            found.append(link)
        link = rows.link(link.number - 1)
    return found


def is_backup(rows: Transaction, head: Link) -> bool:
    """Whether the ledger is a copy that its owner has not unlocked."""
    return any(isinstance(link.fact, Backup) for link in locking(rows, head))


def failures(rows: Transaction, head: Link) -> list[Link]:
    """The charges whose questions failed and may not be repeated, those of this lock included."""
    numbers = {link.fact.charge for link in locking(rows, head) if isinstance(link.fact, Lock)}
    return [rows.link(number) for number in sorted(numbers | set(head.state.failed))]


def _charge(rows: Transaction, number: int) -> Charge:
    fact = rows.link(number).fact
    if not isinstance(fact, Charge):
        raise LedgerDamaged(f"entry {number} is recorded as a failed charge, but is no charge")
    return fact


@dataclass(frozen=True, slots=True)
class Track:
    """A filter that must admit a charge, its sums so far, and the amount that is reserved for
    others. ``share`` is the name of the share whose filter it is; None for the ledger's."""

    opening: Opening
    spent: Spent
    reserved: Counting | None = None
    share: str | None = None

    @property
    def use(self) -> FilterUse:
        """The spent and the remaining part of the filter's limit."""
        return FilterUse(self.opening.filter, self.spent, self.reserved)


@dataclass(frozen=True, slots=True)
class PricedCharge:
    """A charge with its cost by the filter of one opening, or the error that there is instead."""

    opening: Opening
    loss: PrivacyLoss
    cost: FilterCost | DiscreetError

    @staticmethod
    def of(opening: Opening, loss: PrivacyLoss) -> "PricedCharge":
        """Compute the cost. This may take long, so it belongs before the transaction."""
        try:
            loss = loss.for_unit(opening.unit)
            cost: FilterCost | DiscreetError = opening.filter.cost(loss)
        except DiscreetError as mistake:
            cost = mistake
        except (ArithmeticError, ValueError, RuntimeWarning):
            cost = NoBound("the numbers of this privacy loss are too extreme for a cost")
        return PricedCharge(opening, loss, cost)

    def at(self, track: Track) -> "CountedCharge | None":
        """The charge after the sums of this track, which takes no time, since the cost is known;
        None if the unit or the filter is another one. Raises the error, if there is one."""
        if self.opening != track.opening:
            return None
        if isinstance(self.cost, DiscreetError):
            raise self.cost
        after = track.opening.filter.charged(track.spent, self.cost, track.reserved)
        return CountedCharge(track, self.loss, after)


@dataclass(frozen=True, slots=True)
class CountedCharge:
    """A charge on one track, with the sums after it."""

    track: Track
    loss: PrivacyLoss
    after: Spent

    @staticmethod
    def of(track: Track, loss: PrivacyLoss) -> "CountedCharge":
        """Compute the cost, which may take long; raises the error, if there is one."""
        counted = PricedCharge.of(track.opening, loss).at(track)
        assert counted is not None  # it is the same opening
        return counted

    @property
    def sums(self) -> Spent | None:
        """The sums after the charge; ``None`` if the filter does not admit them."""
        total = self.after.beside(self.track.reserved)
        return self.after if self.track.opening.filter.admits(total) else None

    @property
    def refusal(self) -> BudgetExceeded:
        """The error that says why the filter does not admit the sums."""
        loss, track = self.loss, self.track
        named = "" if track.share is None else f"share {track.share!r}: "
        before, after = (sums.beside(track.reserved) for sums in (track.spent, self.after))
        why = refusal(track.opening.filter, before, after, loss)
        reserved = "; a part of the limit is reserved for shares" * (track.reserved is not None)
        return BudgetExceeded(f"{named}{why}{reserved}")


def repeated(
    rows: Transaction, first: Link, request: Request, use: FilterUse, *, statement: str | None
) -> Receipt:
    """The first receipt of this request, with its answer and the balance now."""
    if not isinstance(first.fact, Charge) or first.fact.request is None:
        raise LedgerDamaged(f"entry {first.number} has a request's key, but is no requested charge")
    if first.fact.request.body != request.body:
        raise RequestReused(
            f"request id {request.id!r} was used for another question (charge {first.number}): "
            "take a new id for this one"
        )
    answer = rows.under(answer_key(first.number))
    if answer is None or not isinstance(answer.fact, StoredAnswer):
        raise RequestReused(
            f"request id {request.id!r} was paid (charge {first.number}), but no answer is stored: "
            "it is being computed now, or was lost in a crash. It is never drawn again: ask under "
            "a new id, which is a new charge"
        )
    text = answer.fact.text
    return receipt_of(first, first.fact, use, statement=statement, answer=text)


def charge_of(rows: Transaction, head: Link, receipt: Receipt) -> Charge:
    """The charge of a receipt; `InvalidArgument` if the receipt is not from this ledger."""
    if 0 < receipt.number <= head.number:
        link = rows.link(receipt.number)
        if isinstance(link.fact, Charge) and link.digest == receipt.digest:
            return link.fact
    raise _foreign(receipt)


def check_receipt_type(receipt: Receipt) -> None:
    """Refuse everything but a plain receipt. The thread that leads a group reads it, and runs no
    method of a subclass, which may wait for this thread."""
    is_plain = type(receipt) is Receipt and type(receipt.number) is int
    if not (is_plain and type(receipt.digest) is str):
        raise _foreign(receipt)


def _foreign(receipt: object) -> InvalidArgument:
    return InvalidArgument(f"receipt = {_checks.quoted(receipt)}: it is not from this ledger")


def last_reservation(rows: Transaction, charge: int) -> StepReservation | None:
    """The last steps that were reserved of a charge; its blocks have consecutive numbers."""
    blocks = smallest_whole(lambda block: not rows.has(steps_key(charge, block)), 0)
    link = rows.under(steps_key(charge, blocks - 1))
    if link is None:
        return None
    if not isinstance(link.fact, StepReservation):
        raise LedgerDamaged(f"entry {link.number} has a key of steps, but holds none")
    return link.fact


def receipt_of(
    link: Link,
    paid: Charge,
    use: FilterUse | None,
    *,
    statement: str | None,
    answer: str | None = None,
) -> Receipt:
    """The receipt of a charge, with the balance now and, for a repeat, the stored answer. It has
    the statement only if its digest is the recorded one."""
    is_recorded = statement is not None and text_digest(statement) == paid.statement
    return Receipt(
        link.number,
        link.digest,
        link.at,
        paid.purpose,
        paid.by,
        answer,
        paid.is_insecure,
        use,
        request=None if paid.request is None else paid.request.id,
        privacy_loss=paid.loss.to_json(),
        statement=statement if is_recorded else None,
    )


def verified_head(rows: Transaction, anchored: AnchorMark | None) -> Link:
    """The head, after a check that the chain contains the anchor's mark."""
    head = rows.head()
    if anchored is not None:
        if anchored.number > head.number:
            raise AnchorDiffers(
                "it is older than its anchor: a rolled-back copy? It ends at entry "
                f"{head.number}, and its anchor has entry {anchored.number}. {_RIGHT}"
            )
        if rows.link(anchored.number).digest != anchored.digest:
            raise AnchorDiffers(
                f"entry {anchored.number} is another one than its anchor has: another copy went "
                f"on, or this is the anchor of another ledger? {_RIGHT}"
            )
    return head
