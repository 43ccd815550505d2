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


class TotalsReader:
    """Follows the totals of one chain; used during a transaction only."""

    def __init__(self) -> None:
        """Nothing is read so far."""
        self._until: AnchorMark | None = None
        self._totals = ChainTotals()

    def at(self, rows: Transaction, head: Link) -> ChainTotals:
        """The totals up to the head."""
        mark = AnchorMark.of(head)
        if not self._can_continue(rows, head):
            self._begin(rows, head)
        if self._until != mark:
            for link in rows.links(self._until):
                self._add(link)
        if self._until != mark:
            raise LedgerDamaged("its last entry is not the end of its chain")
        return self._totals

    def follow(self, before: Link, written: Iterable[Link]) -> None:
        """Add the links written after this head, if the totals are those at it; otherwise they are
        read when they are needed."""
        if self._until == AnchorMark.of(before):
            for link in written:
                self._add(link)

    def due(self, rows: Transaction, head: Link) -> Subtotal | None:
        """The subtotal to append after the head, if the last one is far enough behind. A subtotal
        of many terms is long, and is written more rarely."""
        behind = head.number - head.state.subtotal
        if behind < SUBTOTAL_EVERY:
            return None
        totals = self.at(rows, head)
        return totals.subtotal() if 2 * behind >= len(totals) else None

    def _add(self, link: Link) -> None:
        self._totals.add(link)
        self._until = AnchorMark.of(link)

    def _can_continue(self, rows: Transaction, head: Link) -> bool:
        """Whether the chain still has the last link that was added, and no later subtotal."""
        until = self._until
        if until is None or not head.state.subtotal <= until.number <= head.number:
            return False
        return until == AnchorMark.of(head) or rows.link(until.number).digest == until.digest

    def _begin(self, rows: Transaction, head: Link) -> None:
        """Begin at the last subtotal, or before the first entry."""
        self._until, self._totals = None, ChainTotals()
        if number := head.state.subtotal:
            link = rows.link(number)
            if not isinstance(link.fact, Subtotal):
                raise LedgerDamaged(f"entry {number} is no subtotal")
            self._until, self._totals = AnchorMark.of(link), ChainTotals(link.fact)
