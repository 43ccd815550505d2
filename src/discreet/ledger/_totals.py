"""Running totals of a chain: the sum of all charges up to one link."""

from collections import Counter

from discreet.accounting import PrivacyLoss, Term
from discreet.ledger._facts import Charge, Link, Subtotal


class Totals:
    """The sum of all charges up to one link of a chain."""

    def __init__(self, start: Subtotal | None = None) -> None:
        """Begin with this subtotal, or before the first charge."""
        self._counts: Counter[Term] = (
            Counter() if start is None else Counter(dict(start.total.terms))
        )
        self._sum: PrivacyLoss | None = None  # computed when it is read

    def __len__(self) -> int:
        """The number of different terms."""
        return len(self._counts)

    @property
    def sum(self) -> PrivacyLoss:
        """The sum of all charges, without a unit."""
        if self._sum is None:
            self._sum = PrivacyLoss(tuple(self._counts.items()))
        return self._sum

    def add(self, link: Link) -> None:
        """Continue by the next link."""
        if isinstance(link.fact, Charge):
            for term, count in link.fact.loss.terms:
                self._counts[term] += count
            self._sum = None

    def subtotal(self) -> Subtotal:
        """The totals as an entry."""
        return Subtotal(self.sum)

    def agree_with(self, recorded: Subtotal) -> bool:
        """Whether this entry records these totals; the order of its terms is of no account."""
        return dict(recorded.total.terms) == dict(self.sum.terms)
