"""How a ledger goes on: the state after each fact, and the rules that a whole chain obeys."""

from collections.abc import Iterable
from dataclasses import replace

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
        case Answer():
            return state


def verify(links: Iterable[Link]) -> None:
    """Raise `LedgerDamaged` unless each link follows from those before it by the rules.

    The sums are computed anew from the stored terms. A recorded sum may be above that, since a
    later version may know a better bound for a term; below it, the chain is refused.
    """
    head: Link | None = None
    opening: Opening | None = None
    charges: dict[int, Charge] = {}
    for link in links:
        if head is None or opening is None:
            opening = _first(link)
        else:
            _follows(link, head, opening, charges)
        if isinstance(link.fact, Opening):
            opening = link.fact
        if isinstance(link.fact, Charge):
            charges[link.number] = link.fact
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


def _follows(link: Link, head: Link, opening: Opening, charges: dict[int, Charge]) -> None:
    check_sums(link.state.spent, opening.filter)
    if not _is_allowed(link, head, opening, charges):
        raise LedgerDamaged(f"entry {link.number} was not allowed where it stands")
    expected = next_state(head, opening, link.fact)
    if isinstance(link.fact, Charge) and _covers(link.state.spent, expected.spent):
        expected = replace(expected, spent=link.state.spent)
    if link.state != expected:
        raise LedgerDamaged(f"the sums or the state after entry {link.number} are not what follows")


def _is_allowed(link: Link, head: Link, opening: Opening, charges: dict[int, Charge]) -> bool:
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


def _covers(spent: Spent, expected: Spent) -> bool:
    """Whether no sum lies below the one expected."""
    pairs = zip(spent.sums, expected.sums, strict=True)
    return spent.leak >= expected.leak and all(total >= least for total, least in pairs)
