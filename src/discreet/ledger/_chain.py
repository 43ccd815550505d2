"""The state after each fact, and the rules that a whole chain obeys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.accounting.filter._sums import Counting
from discreet.errors import LedgerDamaged
from discreet.ledger._entries import opening_digest
from discreet.ledger._facts import (
    Backup,
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
    StepReservation,
    StoredAnswer,
    Subtotal,
    Unlock,
)
from discreet.ledger._reserves import reserve_used, together, without
from discreet.ledger._totals import ChainTotals

_FLOAT_TOLERANCE = 1 + Fraction(1, 10**6)  # costs of another machine may differ by this factor


def first_state(opening: Opening) -> LedgerState:
    """The state after the first entry: nothing spent."""
    return LedgerState(
        opening.filter.start, 0, is_locked=False, opening=0, opening_digest=opening_digest(opening)
    )


def next_state(head: Link, opening: Opening, fact: Fact) -> LedgerState:
    """The state after the next fact, under the opening in force."""
    state = head.state
    match fact:
        case Opening():
            return replace(state, opening=head.number + 1, opening_digest=opening_digest(fact))
        case Charge(loss, share=share):
            return charged(state, opening.filter.add(state.spent, loss), share)
        case Grant(reserve=Reserve() as reserve):
            return replace(state, reserved=together(state.reserved, reserve.amount))
        case Revoke(released=released):
            return replace(state, reserved=without(state.reserved, released))
        case Lock(charge):
            is_new = charge not in state.failed
            return replace(state, is_locked=True, failed=state.failed + (charge,) * is_new)
        case Unlock(_, _, allow_repeat):
            return replace(state, is_locked=False, failed=() if allow_repeat else state.failed)
        case Backup():
            return replace(state, is_locked=True)
        case Subtotal():
            return replace(state, subtotal=head.number + 1)
        case StoredAnswer() | StepReservation() | Grant():
            return state


def charged(state: LedgerState, spent: Spent, share: ShareCharge | None) -> LedgerState:
    """The state after a charge that leads to these sums, and to those of a share."""
    reserved = without(state.reserved, None if share is None else share.drawn)
    return replace(state, spent=spent, charges=state.charges + 1, reserved=reserved)


def verify(links: Iterable[Link]) -> None:
    """Raise `LedgerDamaged` unless each link follows from those before it by the rules.

    The sums are computed again from the stored terms; each charge is counted in the way in which it
    was recorded. A recorded sum may be larger, since a later version may know a better bound for a
    term; a smaller one is refused. The cost of a charge by itself, and its normal value beside a
    failure, are computed in floating point, so that machines may differ a little.
    """
    head: Link | None = None
    opening: Opening | None = None
    past = _ChainHistory()
    for link in links:
        if head is None or opening is None:
            opening = _first(link)
        else:
            _follows(link, head, opening, past)
        if isinstance(link.fact, Opening):
            opening = link.fact
        past.remember(link)
        head = link
    if head is None:
        raise LedgerDamaged("it has no entries")


def without_text(link: Link) -> Link:
    """The link without the text of a stored answer, which may be long; no rule reads it."""
    fact = link.fact
    return replace(link, fact=replace(fact, text="")) if isinstance(fact, StoredAnswer) else link


def check_sums(spent: Spent, chosen: Filter, reserved: Counting | None = None) -> None:
    """Raise `LedgerDamaged` unless there is one sum for each track of the filter."""
    _check_length(spent.sums, chosen)
    if reserved is not None:
        _check_length(reserved.sums, chosen)


def _check_length(sums: Sequence[int], chosen: Filter) -> None:
    if len(sums) != len(chosen.sums):
        raise LedgerDamaged("its sums don't belong to its filter")


def _first(link: Link) -> Opening:
    if not isinstance(link.fact, Opening) or link.state != first_state(link.fact):
        raise LedgerDamaged("its first entry doesn't open it with nothing spent")
    return link.fact


@dataclass(frozen=True, slots=True)
class _ChainHistory:
    """The purposes of the charges so far, those with a request, the last reserved steps of each,
    and the sum of all."""

    purposes: dict[int, str] = field(default_factory=dict)
    requested: set[int] = field(default_factory=set)
    steps: dict[int, StepReservation] = field(default_factory=dict)
    totals: ChainTotals = field(default_factory=ChainTotals)

    def remember(self, link: Link) -> None:
        self.totals.add(link)
        if isinstance(link.fact, Charge):
            self.purposes[link.number] = link.fact.purpose
            if link.fact.request is not None:
                self.requested.add(link.number)
        if isinstance(link.fact, StepReservation):
            self.steps[link.fact.charge] = link.fact


def _follows(link: Link, head: Link, opening: Opening, past: _ChainHistory) -> None:
    check_sums(link.state.spent, opening.filter, link.state.reserved)
    if not _is_allowed(link, head, opening, past):
        raise LedgerDamaged(f"entry {link.number} was not allowed where it stands")
    are_right = True
    if not isinstance(link.fact, Charge):
        expected = next_state(head, opening, link.fact)
    else:
        expected = charged(head.state, link.state.spent, link.fact.share)
        tracks = [(opening.filter, head.state.spent, link.state.spent)]
        if (share := link.fact.share) is not None:
            before = past.totals.shares[share.name]
            tracks.append((before.filter, before.spent, share.spent))
        are_right = all(_follow(link.fact.loss, *track) for track in tracks)
    if link.state != expected or not are_right:
        raise LedgerDamaged(
            f"the sums or the state after entry {link.number} do not follow from it"
        )


def is_next_block(steps: StepReservation, last: StepReservation | None) -> bool:
    """Whether these steps follow the last reserved ones of their charge, and have the same plan."""
    is_next = (steps.block, steps.first) == ((last.block + 1, last.end) if last else (0, 0))
    is_same = last is None or (steps.of, steps.plan) == (last.of, last.plan)
    return is_next and is_same and 0 < steps.count <= steps.of - steps.first


def _is_allowed(link: Link, head: Link, opening: Opening, past: _ChainHistory) -> bool:
    charges = past.purposes
    match link.fact:
        case Opening(_, chosen):
            return not charges and chosen == opening.filter
        case Charge():
            return _is_admitted(link, head, opening, past)
        case StoredAnswer(number):
            return number in past.requested
        case Lock(number):
            return number in charges
        case Unlock(_, _, allow_repeat):
            return head.state.is_locked or (allow_repeat and bool(head.state.failed))
        case Backup():
            return True
        case Grant() | Revoke():
            return _is_share_allowed(link, opening, past)
        case Subtotal():
            return past.totals.agree_with(link.fact)
        case StepReservation(number):
            return number in charges and is_next_block(link.fact, past.steps.get(number))


def _is_admitted(link: Link, head: Link, opening: Opening, past: _ChainHistory) -> bool:
    fact = link.fact
    assert isinstance(fact, Charge)
    is_within = _is_in_limit(link, opening) and _is_in_share(fact.share, past)
    is_within = is_within and _is_drawn(link, head, opening, past)
    purposes = {past.purposes[number] for number in head.state.failed}
    is_free = not head.state.is_locked and fact.purpose not in purposes
    return is_within and fact.loss.unit == opening.unit and is_free


def _is_in_limit(link: Link, opening: Opening) -> bool:
    """Whether the limit admits the sums, with all that is reserved and without."""
    spent = link.state.spent
    return all(opening.filter.admits(one) for one in (spent, spent.beside(link.state.reserved)))


def _is_reserved(link: Link, opening: Opening) -> bool:
    """Whether the reserve of a grant, if it has one, has its loss's amount and fits the limit."""
    assert isinstance(link.fact, Grant)
    reserve, start = link.fact.reserve, opening.filter.start
    if reserve is None:
        return True
    _check_length(reserve.amount.sums, opening.filter)
    is_whole = _follow(reserve.loss, opening.filter, start, start.plus(reserve.amount))
    return is_whole and reserve.loss.unit == opening.unit and _is_in_limit(link, opening)


def _is_share_allowed(link: Link, opening: Opening, past: _ChainHistory) -> bool:
    """Whether a share is granted or revoked once. Its end releases the rest of its reserve."""
    assert isinstance(link.fact, Grant | Revoke)
    state = past.totals.shares.get(link.fact.share)
    if isinstance(link.fact, Grant):
        return state is None and _is_reserved(link, opening)
    return state is not None and state.reserved == link.fact.released


def _is_drawn(link: Link, head: Link, opening: Opening, past: _ChainHistory) -> bool:
    """Whether a charge draws on the reserve of its share by the rules."""
    assert isinstance(link.fact, Charge)
    if (share := link.fact.share) is None:
        return True
    own = past.totals.shares[share.name].reserved
    others, sums = without(head.state.reserved, own), (head.state.spent, link.state.spent)
    return share.drawn == reserve_used(opening.filter, own, *sums, others=others)


def _is_in_share(share: ShareCharge | None, past: _ChainHistory) -> bool:
    """Whether the share, if there is one, is open and admits its sums."""
    if share is None:
        return True
    state = past.totals.shares.get(share.name)
    if state is None:
        return False
    check_sums(share.spent, state.filter)
    return state.filter.admits(share.spent)


def _follow(loss: PrivacyLoss, chosen: Filter, before: Spent, recorded: Spent) -> bool:
    """Whether the recorded sums follow from those before by this charge. A first charge that was
    admitted by itself is counted so, even if a sum would admit it today."""
    expected = chosen.recounted(before, recorded, loss)
    if before == chosen.start and recorded.alone is not None and expected.alone is None:
        expected = replace(expected, alone=chosen.alone(loss))
    return _covers(recorded, expected)


def _covers(spent: Spent, expected: Spent) -> bool:
    """Whether each sum is at least the expected one."""
    pairs = zip(spent.sums, expected.sums, strict=True)
    if spent.alone is None or expected.alone is None:
        is_alone_covered = spent.alone == expected.alone
    else:
        is_alone_covered = spent.alone * _FLOAT_TOLERANCE >= expected.alone
    are_covered = all(total >= least for total, least in pairs)
    return spent.failures >= expected.failures and are_covered and is_alone_covered
