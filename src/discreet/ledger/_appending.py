"""Decisions that append an entry: each reads the head of the chain, checks, and appends."""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace

from discreet import _checks
from discreet._budget import Receipt
from discreet.accounting import PrivacyLoss
from discreet.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerDiffers,
    LedgerError,
    SessionEnded,
)
from discreet.ledger import _chain
from discreet.ledger._decisions import (
    CountedCharge,
    PricedCharge,
    Track,
    charge_of,
    check_open,
    failures,
    last_reservation,
    locking,
    receipt_of,
    repeated,
)
from discreet.ledger._entries import answer_key, request_key
from discreet.ledger._facts import (
    Charge,
    Fact,
    Grant,
    LedgerState,
    Link,
    Lock,
    Opening,
    Reserve,
    Revoke,
    ShareCharge,
    ShareState,
    StepReservation,
    StoredAnswer,
    Unlock,
)
from discreet.ledger._reserves import reserve_used, without
from discreet.ledger._store import Transaction
from discreet.ledger._views import Entry


def pay(
    rows: Transaction,
    head: Link,
    fact: Charge,
    prices: Sequence[PricedCharge],
    *,
    to: tuple[str, Mapping[str, ShareState]] | None,
    statement: str | None,
    may_wait: bool,
) -> Receipt | CountedCharge | None:
    """The receipt of this charge, or of the first charge under its request; or the count that a
    filter does not admit; or None, if a cost must be computed for another filter or unit, and
    ``may_wait`` allows to do so outside the transaction.

    ``prices`` are those of `tracks`, as they were before the transaction. ``to`` names a share, and
    has those that are open."""
    # 1. a repeated request gets its first receipt
    opening = rows.opening(head)
    if fact.request is not None:
        first = rows.under(request_key(fact.by, fact.request))
        if first is not None:
            (whole,) = tracks(opening, head.state, None)
            return repeated(rows, first, fact.request, whole.use, statement=statement)
    # 2. the budgets that must admit the charge, as they are now
    check_open(rows, head, fact.purpose)
    share = None if to is None else open_share(to[1], to[0])
    now = tracks(opening, head.state, share)
    if len(prices) < len(now):
        return None  # it was opened meanwhile
    # 3. the sums of each with this charge
    found: list[Track] = []
    loss = fact.loss
    for price, track in zip(prices, now, strict=True):
        counted = price.at(track)
        if counted is None:
            if may_wait:
                return None
            counted = CountedCharge.of(track, fact.loss)
        if (sums := counted.sums) is None:
            return counted
        found.append(replace(track, spent=sums))
        loss = counted.loss
    # 4. the entry
    charged = None if share is None else _share_charge(now[0], found[0], found[1], share)
    recorded = replace(fact, loss=loss.for_unit(opening.unit), share=charged)
    after = _chain.charged(head.state, found[0].spent, charged)
    link = rows.append(head, recorded, after)
    (whole,) = tracks(opening, after, None)
    return receipt_of(link, recorded, whole.use, statement=statement)


def _share_charge(before: Track, after: Track, own: Track, share: ShareState) -> ShareCharge:
    chosen, others = before.opening.filter, before.reserved
    amount = reserve_used(chosen, share.reserved, before.spent, after.spent, others=others)
    return ShareCharge(share.name, own.spent, amount)


def tracks(opening: Opening, state: LedgerState, share: ShareState | None) -> tuple[Track, ...]:
    """The tracks of a charge: the ledger's, and that of the share. On the ledger's, everything is
    reserved but the reserve of this share."""
    if share is None:
        return (Track(opening, state.spent, state.reserved),)
    whole = Track(opening, state.spent, without(state.reserved, share.reserved))
    return whole, Track(replace(opening, filter=share.filter), share.spent, share=share.name)


def grant(
    rows: Transaction,
    head: Link,
    fact: Grant,
    opened: Container[str],
    *,
    reserve: PrivacyLoss | None,
) -> None:
    """Open a share, and reserve this loss for it."""
    if fact.share in opened:
        raise InvalidArgument(
            f"share = {fact.share!r}: this share is open already: revoke it first, or take "
            "another name"
        )
    if reserve is not None:
        fact = replace(fact, reserve=_reserve(rows, head, fact, reserve))
    _append(rows, head, fact)


def _reserve(rows: Transaction, head: Link, fact: Grant, loss: PrivacyLoss) -> Reserve:
    """The reserve of a share, which both filters must admit."""
    opening, state, chosen = rows.opening(head), head.state, fact.filter
    loss = loss.for_unit(opening.unit)
    (whole,) = tracks(opening, state, None)
    own = Track(replace(opening, filter=chosen), chosen.start, share=fact.share)
    for cost in (CountedCharge.of(whole, loss), CountedCharge.of(own, loss)):
        if cost.sums is None:
            raise BudgetExceeded(f"this reserve does not fit: {cost.refusal}")
        is_alone = whole.spent.alone is None and cost.sums.alone is not None
        if cost.track is whole and is_alone:
            raise BudgetExceeded(
                "this reserve does not fit: by itself it takes the whole delta, as only a first "
                "charge can: charge it at once, or reserve less"
            )
    way = opening.filter.counting(state.spent.beside(state.reserved), opening.filter.cost(loss))
    if not (way.failures or any(way.sums)):
        raise InvalidArgument(f"reserve = {loss}: it costs nothing: give a privacy loss")
    return Reserve(loss, way)


def revoke(rows: Transaction, head: Link, fact: Revoke, opened: Mapping[str, ShareState]) -> None:
    """End a share, and release what is left of its reserve."""
    released = open_share(opened, fact.share).reserved
    _append(rows, head, replace(fact, released=released))


def open_share(opened: Mapping[str, ShareState], name: str) -> ShareState:
    """The share of this name, which must be open."""
    if name not in opened:
        raise InvalidArgument(
            f"share = {_checks.quoted(name)}: no share of this name is open: the owner of the "
            "ledger can grant one"
        )
    return opened[name]


def store_answer(rows: Transaction, head: Link, receipt: Receipt, answer: str) -> None:
    """Store the answer to a request that this receipt paid."""
    if charge_of(rows, head, receipt).request is None:
        raise InvalidArgument(
            f"charge {receipt.number} was made without a request id, under which answers "
            "are stored: charge with a Request"
        )
    if rows.under(answer_key(receipt.number)) is not None:
        raise InvalidArgument(f"the answer to charge {receipt.number} is stored already")
    _append(rows, head, StoredAnswer(receipt.number, answer))


def lock(rows: Transaction, head: Link, receipt: Receipt) -> None:
    """Lock the ledger: the computation that this receipt paid failed."""
    charge_of(rows, head, receipt)
    _append(rows, head, Lock(receipt.number))


def unlock(
    rows: Transaction, head: Link, fact: Unlock, name: str, *, locks: Collection[int] | None = None
) -> tuple[Entry, ...]:
    """Unlock the ledger, if these entries locked it; the charges whose questions failed."""
    if locks is not None and {link.number for link in locking(rows, head)} != set(locks):
        raise InvalidArgument(
            "locks: other failures lock it now than you looked at: look again, and then unlock it"
        )
    found = tuple(Entry.of(link) for link in failures(rows, head))
    if not head.state.is_locked and not (fact.allow_repeat and found):
        raise LedgerError(f"{name} isn't locked")
    _append(rows, head, fact)
    return found


def reserve(
    rows: Transaction,
    head: Link,
    receipt: Receipt,
    loss: PrivacyLoss,
    *,
    count: int,
    of: int,
    plan: str,
) -> range:
    """Reserve the next steps of the plan that this receipt paid."""
    if charge_of(rows, head, receipt).loss != loss.for_unit(rows.opening(head).unit):
        raise InvalidArgument(
            f"charge {receipt.number} paid for something else, not for {loss}: continue "
            "with the plan that it was made for"
        )
    last = last_reservation(rows, receipt.number)
    block, first = (0, 0) if last is None else (last.block + 1, last.end)
    if last is not None and (of, plan) != (last.of, last.plan):
        raise InvalidArgument(
            f"charge {receipt.number} was made for another plan: continue with that one"
        )
    if first >= of:
        raise SessionEnded(f"all {of} steps that charge {receipt.number} paid were taken")
    taken = range(first, min(first + count, of))
    _append(rows, head, StepReservation(receipt.number, block, first, len(taken), of, plan))
    return taken


def agree(rows: Transaction, head: Link, declared: Opening, name: str) -> None:
    """Check the declared limit and unit; before the first charge, record the declared unit."""
    recorded = rows.opening(head)
    if recorded.filter.limit != declared.filter.limit:
        raise LedgerDiffers(
            f"{name} was made with the limit {recorded.filter.limit}, declared is "
            f"{declared.filter.limit}; the ledger decides: declare its limit, or another ledger"
        )
    if recorded.unit == declared.unit:
        return
    if head.state.charges:
        raise LedgerDiffers(
            f"{name} protects {recorded.unit}, declared is {declared.unit}; "
            "it has charges, so the ledger decides: declare its unit and change"
        )
    _append(rows, head, replace(recorded, unit=declared.unit))


def _append(rows: Transaction, head: Link, fact: Fact) -> None:
    rows.append(head, fact, _chain.next_state(head, rows.opening(head), fact))
