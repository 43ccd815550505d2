"""Reading a ledger: its balance, shares, entries and receipts, each from one transaction.

Whatever is read was verified up to the head of the chain, which must be no older than the anchor.
Nothing here writes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from discreet._budget import Receipt
from discreet.accounting import Filter, PrivacyLoss, Spent
from discreet.errors import LedgerDamaged, LedgerError, ReceiptDiffers
from discreet.ledger import _appending, _chain
from discreet.ledger._anchor import AnchorPlace
from discreet.ledger._decisions import (
    Track,
    charge_of,
    check_receipt_type,
    failures,
    last_reservation,
    locking,
    receipt_of,
    verified_head,
)
from discreet.ledger._facts import Charge, LedgerState, Link, Opening, ShareState
from discreet.ledger._shares import ShareBalance, balances
from discreet.ledger._store import Store, Transaction, links_in_chunks
from discreet.ledger._subtotals import TotalsReader
from discreet.ledger._views import Balance, Entry, FilterUse, summary


@dataclass(frozen=True, slots=True)
class LedgerReader:
    """Answers questions about a ledger, from its store, its anchor and the totals of its chain."""

    store: Store
    anchor: AnchorPlace | None
    totals: TotalsReader  # used during a transaction only

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, Link]]:
        """A transaction that reads, and the verified head. The anchor is read first, because the
        chain may grow in between."""
        mark = None if self.anchor is None else self.anchor.read()
        with self.store.reading() as rows:
            yield rows, verified_head(rows, mark)

    def links(self, last: int | None = None) -> Iterator[Link]:
        """All links, or the last ones of them, each verified against the one before."""
        return links_in_chunks(self.reading, last)

    def look(self) -> tuple[Opening, LedgerState]:
        """The opening in force and the state."""
        with self.reading() as (rows, head):
            return rows.opening(head), head.state

    # Shares

    def shares_at(self, rows: Transaction, head: Link) -> Mapping[str, ShareState]:
        """The shares that are open at the head, by name."""
        return self.totals.at(rows, head).shares

    def open_share(self, share: str) -> ShareState:
        """The open share of this name; `InvalidArgument` if there is none."""
        with self.reading() as (rows, head):
            return _appending.open_share(self.shares_at(rows, head), share)

    def shares(self) -> tuple[ShareBalance, ...]:
        """The balance of each open share, by name."""
        with self.reading() as (rows, head):
            opening, opened = rows.opening(head), self.shares_at(rows, head)
            return balances(opening, head.state, opened.values())

    def tracks(self, share: str | None) -> tuple[Track, ...]:
        """The ledger's filter and state, then those of the share, if one is named and open."""
        with self.reading() as (rows, head):
            state = None if share is None else self.shares_at(rows, head).get(share)
            return _appending.tracks(rows.opening(head), head.state, state)

    def filters(self, share: str | None) -> tuple[tuple[Filter, Spent], ...]:
        """The filters that must each admit a charge to this share, with their running sums."""
        with self.reading() as (rows, head):
            state = (
                None if share is None else _appending.open_share(self.shares_at(rows, head), share)
            )
            both = _appending.tracks(rows.opening(head), head.state, state)
        return tuple((one.opening.filter, one.spent.beside(one.reserved)) for one in both)

    # The budget

    def spent(self) -> Balance:
        """The spent and the remaining part of the limit, by the filter that decides."""
        with self.reading() as (rows, head):
            opening, total = rows.opening(head), self.totals.at(rows, head).sum
        state = head.state
        use = FilterUse(opening.filter, state.spent, state.reserved)
        try:
            reached, with_reserved = use.reached, use.reached_with_reserved
        except LedgerDamaged as damage:
            raise LedgerDamaged(f"{self.store.name} is damaged: {damage}") from None
        total = total.for_unit(opening.unit)
        return Balance(use.limit, reached, use.left, state.charges, total, with_reserved)

    def count_left(self, loss: PrivacyLoss) -> int:
        """The number of further charges of this privacy loss that the filter admits."""
        opening, state = self.look()
        spent = state.spent.beside(state.reserved)
        return opening.filter.count_left(spent, loss.for_unit(opening.unit))

    # Charges and receipts

    def under(self, key: str) -> Entry | None:
        """The entry of this key; None if there is none."""
        with self.reading() as (rows, _):
            link = rows.under(key)
        return None if link is None else Entry.of(link)

    def entry(self, number: int) -> Entry | None:
        """The entry of this number; None if there is none."""
        link = self._link(number)
        return None if link is None else Entry.of(link)

    def _link(self, number: int) -> Link | None:
        with self.reading() as (rows, head):
            is_there = type(number) is int and 0 <= number <= head.number
            return rows.link(number) if is_there else None

    def receipt(self, number: int, statement: str | None) -> Receipt:
        """The receipt of the charge at this number, without a balance."""
        link = self._link(number)
        if link is None or not isinstance(link.fact, Charge):
            raise ReceiptDiffers(f"{self.store.name} has no charge {number!r}")
        found = receipt_of(link, link.fact, None, statement=statement)
        if found.statement != statement or (statement is None and link.fact.statement):
            raise ReceiptDiffers(f"charge {number} of {self.store.name} has another statement")
        return found

    def reserved(self, receipt: Receipt) -> int:
        """The number of reserved steps, of those that this receipt paid."""
        check_receipt_type(receipt)
        with self.reading() as (rows, head):
            charge_of(rows, head, receipt)
            last = last_reservation(rows, receipt.number)
        return 0 if last is None else last.end

    def failed(self) -> tuple[Entry, ...]:
        """The charges whose questions failed and may not be asked again."""
        with self.reading() as (rows, head):
            return tuple(map(Entry.of, failures(rows, head)))

    def locking(self) -> tuple[Entry, ...]:
        """The entries that locked the ledger since it was last unlocked, in order."""
        with self.reading() as (rows, head):
            return tuple(map(Entry.of, reversed(locking(rows, head))))

    # The whole

    def verify(self) -> None:
        """Raise `LedgerDamaged` unless the file, the chain and the running sums are sound."""
        with self.reading() as (rows, _):
            self.store.check(rows)
        _chain.verify(_chain.without_text(link) for link in self.links())

    def summary(self) -> str:
        """One line: the name, the unit, the budget, and whether the ledger is locked."""
        name = self.store.name.removeprefix("the ledger ")
        try:
            opening, state = self.look()
        except LedgerError as mistake:
            return f"<Ledger {name}: {mistake}>"
        chosen = opening.filter
        said = summary(chosen.limit, chosen.reached(state.spent), state.charges)
        return f"<Ledger {name}: {opening.unit!r}; {said}{'; LOCKED' * state.is_locked}>"
