"""A result that one release paid for."""

from typing import Any

from discreet._budget import Receipt
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import Release


class PaidResult:
    """A result computed from one ``release``, which has its cost and its proof."""

    __slots__ = ()

    release: Release[Any]  # Any: its value is another one for each kind of result

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the result, for its unit."""
        return self.release.privacy_loss

    @property
    def receipt(self) -> Receipt:
        """The ledger's proof that the charge was recorded first."""
        return self.release.receipt
