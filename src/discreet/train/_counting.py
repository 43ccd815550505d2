"""Counts steps in memory, for payers that count none. Such a run can't be resumed."""

from typing import ClassVar

from discreet._budget import Receipt
from discreet._ownership import Owned
from discreet.accounting import PrivacyLoss
from discreet.errors import SessionEnded


class Uncounted(Owned):
    """The count of one run's steps. A ledger counts them durably."""

    __slots__ = ("_taken",)

    described: ClassVar[str] = "a run's count of steps"

    def __init__(self) -> None:
        self._taken = 0

    def reserve(
        self,
        receipt: Receipt,
        loss: PrivacyLoss,  # noqa: ARG002  # a ledger compares it
        *,
        count: int,
        of: int,
        plan: str,  # noqa: ARG002  # the same
    ) -> range:
        self.check_process()
        if self._taken >= of:
            raise SessionEnded(f"all {of} steps that charge {receipt.number} paid were taken")
        first, self._taken = self._taken, min(self._taken + count, of)
        return range(first, self._taken)

    def reserved(self, receipt: Receipt) -> int:  # noqa: ARG002  # one run, one receipt
        return self._taken
