"""Totals at the head of a chain, without a full reading.

The chain holds subtotals, entries with the totals of all entries before them, and each state names
the last one. The totals continue from there, or from an earlier head that is still in the chain.
Every link in between is verified up to the head, so a subtotal is as trustworthy as the head.
"""

from collections.abc import Iterable

from discreet.errors import LedgerDamaged
from discreet.ledger._anchor import AnchorMark
from discreet.ledger._facts import Link, Subtotal
from discreet.ledger._store import Transaction
from discreet.ledger._totals import ChainTotals

SUBTOTAL_EVERY = 512  # entries, at least

# the last link that was added, and the totals there
_Position = tuple[AnchorMark | None, ChainTotals]


class TotalsReader:
    """Follows the totals of one chain; used during a transaction only.

    An interruption or an error leaves the totals of a link together with its mark, or nothing.
    """

    def __init__(self) -> None:
        self._position: _Position = None, ChainTotals()

    def at(self, rows: Transaction, head: Link) -> ChainTotals:
        """The totals up to the head."""
        mark = AnchorMark.of(head)
        if not self._can_continue(rows, head):
            self._position = _beginning(rows, head)
        if self._position[0] != mark:
            self._add(rows.links(self._position[0]))
        until, totals = self._position
        if until != mark:
            raise LedgerDamaged("its last entry is not the end of its chain")
        return totals

    def follow(self, before: Link, written: Link) -> None:
        """Add the link written after this head, if the totals are those at it; otherwise it is read
        when it is needed. If it is not committed, no chain has it, and the totals begin again."""
        if self._position[0] == AnchorMark.of(before):
            self._add((written,))

    def due(self, rows: Transaction, head: Link) -> Subtotal | None:
        """The subtotal to append after the head, if the last one is far enough behind. A subtotal
        of many terms is long, and is written more rarely."""
        behind = head.number - head.state.subtotal
        if behind < SUBTOTAL_EVERY:
            return None
        totals = self.at(rows, head)
        return None if 2 * behind < len(totals) else totals.subtotal()

    def _add(self, links: Iterable[Link]) -> None:
        """Continue by these links. Meanwhile nothing is known: a link that was added before an
        interruption would be added again."""
        (until, totals), self._position = self._position, (None, ChainTotals())
        for link in links:
            totals.add(link)
            until = AnchorMark.of(link)
        self._position = until, totals

    def _can_continue(self, rows: Transaction, head: Link) -> bool:
        """Whether the chain still has the last link that was added, and no later subtotal."""
        until = self._position[0]
        if until is None or not head.state.subtotal <= until.number <= head.number:
            return False
        return until == AnchorMark.of(head) or rows.link(until.number).digest == until.digest


def _beginning(rows: Transaction, head: Link) -> _Position:
    """The last subtotal, or nothing before the first entry."""
    number = head.state.subtotal
    if not number:
        return None, ChainTotals()
    link = rows.link(number)
    if not isinstance(link.fact, Subtotal):
        raise LedgerDamaged(f"entry {number} is no subtotal")
    return AnchorMark.of(link), ChainTotals(link.fact)
