"""Running totals of a chain: the sum of all charges up to one link, and the open shares."""

from collections import Counter
from dataclasses import replace

from discreet.accounting import PrivacyLoss, Term
from discreet.errors import LedgerDamaged
from discreet.ledger._facts import Charge, Grant, Link, Revoke, ShareState, Subtotal
from discreet.ledger._reserves import without


class ChainTotals:
    """The sum of all charges up to one link of a chain, and the shares that are open there."""

    def __init__(self, start: Subtotal | None = None) -> None:
        """Begin with this subtotal, or before the first charge."""
        start = Subtotal(PrivacyLoss()) if start is None else start
        self._counts: Counter[Term] = Counter(dict(start.total.terms))
        self.shares = {share.name: share for share in start.shares}
        self._sum: PrivacyLoss | None = None  # computed when it is read

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def sum(self) -> PrivacyLoss:
        """The sum of all charges, without a unit."""
        if self._sum is None:
            self._sum = PrivacyLoss(tuple(self._counts.items()))
        return self._sum

    def add(self, link: Link) -> None:
        """Continue by the next link."""
        match link.fact:
            case Charge(loss, share=share):
                for term, count in loss.terms:
                    self._counts[term] += count
                self._sum = None
                if share is not None:
                    state = self._share(share.name)
                    left = without(state.reserved, share.drawn)
                    self.shares[share.name] = replace(state, spent=share.spent, reserved=left)
            case Grant(name, chosen, reserve=reserve):
                amount = None if reserve is None else reserve.amount
                self.shares[name] = ShareState(name, chosen, chosen.start, amount)
            case Revoke(name):
                self.shares.pop(self._share(name).name)

    def subtotal(self) -> Subtotal:
        """The totals as an entry."""
        return Subtotal(self.sum, self._open)

    def agree_with(self, recorded: Subtotal) -> bool:
        """Whether this entry records these totals; the order of its terms is of no account."""
        is_sum = dict(recorded.total.terms) == dict(self.sum.terms)
        return is_sum and recorded.shares == self._open

    def _share(self, name: str) -> ShareState:
        if name not in self.shares:
            raise LedgerDamaged(f"an entry names the share {name!r}, which was not open")
        return self.shares[name]

    @property
    def _open(self) -> tuple[ShareState, ...]:
        return tuple(self.shares[name] for name in sorted(self.shares))
