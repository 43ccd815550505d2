"""How a ledger goes on: the state after each fact, and the rules that a whole chain obeys."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from discreet.accounting import Filter, Spent
from discreet.errors import LedgerDamaged
from discreet.ledger.entries import (
    Answer,
    Charge,
    Fact,
    Link,
    Lock,
    Opening,
    State,
    Steps,
    Unlock,
    terms_of,
)


def first_state(opening: Opening) -> State:
    """The state after the first entry: nothing spent."""
    start, terms = opening.filter.start, terms_of(opening)
    return State(start, 0, is_locked=False, opening=0, terms=terms, format=opening.format)


def next_state(head: Link, opening: Opening, fact: Fact) -> State:
    """The state after one more fact, under the opening in force."""
    state = head.state
    match fact:
        case Opening():
            return replace(state, opening=head.number + 1, terms=terms_of(fact))
        case Charge(loss):
            spent = opening.filter.add(state.spent, loss)
            return replace(state, spent=spent, charges=state.charges + 1)
        case Lock():
            return replace(state, is_locked=True)
        case Unlock():
            return replace(state, is_locked=False)
        case Answer() | Steps():
            return state


def verify(links: Iterable[Link]) -> None:
    """Raise `LedgerDamaged` unless each link follows from those before it by the rules.

    The sums are computed anew from the stored terms. A recorded sum may be above that, since a
    later version may know a better bound for a term; below it, the chain is refused.
    """
    head: Link | None = None
    opening: Opening | None = None
    past = _Past({}, {})
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


def check_sums(spent: Spent, chosen: Filter) -> None:
    """Raise `LedgerDamaged` unless there is one sum for each track of the filter."""
    if len(spent.sums) != len(chosen.tracks):
        raise LedgerDamaged("its sums don't belong to its filter")


def _first(link: Link) -> Opening:
    if not isinstance(link.fact, Opening) or link.state != first_state(link.fact):
        raise LedgerDamaged("its first entry doesn't open it with nothing spent")
    return link.fact


@dataclass(frozen=True, slots=True)
class _Past:
    """What was charged so far, and the last steps of each charge."""

    charges: dict[int, Charge]
    steps: dict[int, Steps]

    def remember(self, link: Link) -> None:
        if isinstance(link.fact, Charge):
            self.charges[link.number] = link.fact
        if isinstance(link.fact, Steps):
            self.steps[link.fact.charge] = link.fact


def _follows(link: Link, head: Link, opening: Opening, past: _Past) -> None:
    check_sums(link.state.spent, opening.filter)
    if not _is_allowed(link, head, opening, past):
        raise LedgerDamaged(f"entry {link.number} was not allowed where it stands")
    expected = next_state(head, opening, link.fact)
    if isinstance(link.fact, Charge) and _covers(link.state.spent, expected.spent):
        expected = replace(expected, spent=link.state.spent)
    if link.state != expected:
        raise LedgerDamaged(f"the sums or the state after entry {link.number} are not what follows")


def follow_on(steps: Steps, last: Steps | None) -> bool:
    """Whether these are the next steps of their charge, and of the same plan as the last ones."""
    is_next = (steps.block, steps.first) == ((last.block + 1, last.end) if last else (0, 0))
    is_same = last is None or (steps.of, steps.plan) == (last.of, last.plan)
    return is_next and is_same and 0 < steps.count <= steps.of - steps.first


def _is_allowed(link: Link, head: Link, opening: Opening, past: _Past) -> bool:
    charges = past.charges
    match link.fact:
        case Opening(_, chosen, form):
            return not charges and chosen == opening.filter and form == opening.format
        case Charge(loss):
            is_within = opening.filter.admits(link.state.spent)
            return is_within and loss.unit == opening.unit and not head.state.is_locked
        case Answer(number):
            return number in charges and charges[number].request is not None
        case Lock(number):
            return number in charges
        case Unlock():
            return head.state.is_locked
        case Steps(number):
            return number in charges and follow_on(link.fact, past.steps.get(number))


def _covers(spent: Spent, expected: Spent) -> bool:
    """Whether no sum lies below the one expected."""
    pairs = zip(spent.sums, expected.sums, strict=True)
    return spent.leak >= expected.leak and all(total >= least for total, least in pairs)
