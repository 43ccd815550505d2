"""Whether a ledger admits several charges, asked before the first of them is paid."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from discreet._budget import has_paid
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent

PlannedCharge = tuple[PrivacyLoss, str | None]  # with the request id under which it is paid, if any


@runtime_checkable
class _FilteredLedger(Protocol):
    """The parts of a ledger that tell which charges it admits."""

    @property
    def unit(self) -> Unit:
        """The protected unit of all charges."""

    @property
    def filters(self) -> tuple[tuple[Filter, Spent], ...]:
        """The filters that must each admit a charge, with their sums of all charges."""


def admits_all(ledger: object, charges: Sequence[PlannedCharge], by: str) -> bool:
    """Whether each filter of the ledger admits these charges one after the other, apart from those
    that this analyst paid before. A payer without a filter decides when it is charged.

    A filter may admit a sum of losses as one charge and not its terms as several.
    """
    if not isinstance(ledger, _FilteredLedger):
        return True
    left = [
        loss.for_unit(ledger.unit) for loss, request in charges if not has_paid(ledger, request, by)
    ]
    return all(count_together(chosen, left, spent, most=1) == 1 for chosen, spent in ledger.filters)


def count_together(
    chosen: Filter, losses: Sequence[PrivacyLoss], spent: Spent, *, most: int
) -> int:
    """The number of times, up to ``most``, that the filter admits all these charges, one by one."""
    costs, sums = [chosen.cost(loss) for loss in losses], spent
    for count in range(most):
        for cost in costs:
            sums = chosen.charged(sums, cost)
            if not chosen.admits(sums):
                return count
    return most
