"""Shares of a ledger: payers whose charges must fit a limit of their own, and the ledger's."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet import _html
from discreet._budget import AnyLimit, CountsSteps, Payer, Receipt, Request
from discreet._unit import Unit
from discreet.accounting import Filter, PrivacyLoss, Spent, Term
from discreet.ledger._appending import tracks
from discreet.ledger._facts import LedgerState, Opening, ShareState
from discreet.ledger._views import FilterUse, down, up


@dataclass(frozen=True, slots=True)
class ShareBalance:
    """The spent and the remaining part of a share.

    ``reached`` is in the measure of the share's limit, as in `Balance`. ``left`` is the largest
    single pure epsilon that both the share and the ledger would still admit. ``reserved`` is the
    part of the ledger's limit that is set aside for the share now, in the measure of that limit:
    the revocation of the share releases it.
    """

    share: str
    limit: AnyLimit
    reached: Fraction
    left: Fraction
    reserved: Fraction

    def _repr_html_(self) -> str:
        """The balance as a table in notebooks."""
        rows = [
            ("limit", str(self.limit)),
            ("spent", f"{self.limit.symbol} = {up(self.reached)}"),
            ("one more charge without a delta may cost at most", f"ε = {down(self.left)}"),
        ]
        return _html.table(f"share {self.share}", (), rows)


def balances(
    opening: Opening, state: LedgerState, opened: Iterable[ShareState]
) -> tuple[ShareBalance, ...]:
    """The balances of these shares by name, below the whole ledger's."""
    found = []
    whole = FilterUse(opening.filter, state.spent, state.reserved).reached_with_reserved
    for share in sorted(opened, key=lambda share: share.name):
        use, (above, _) = FilterUse(share.filter, share.spent), tracks(opening, state, share)
        reserved = whole - above.use.reached_with_reserved
        left = min(use.left, above.use.left)
        found.append(ShareBalance(share.name, use.limit, use.reached, left, reserved))
    return tuple(found)


class SharedPayer(Payer[PrivacyLoss | Term], CountsSteps[PrivacyLoss | Term], Protocol):
    """A payer that has shares."""

    @property
    def unit(self) -> Unit:
        """The protected unit."""

    def charge(
        self,
        loss: PrivacyLoss | Term,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
        share: str | None = None,
    ) -> Receipt:
        """Record this privacy loss, for a share if one is named."""

    def filters_of(self, share: str | None) -> tuple[tuple[Filter, Spent], ...]:
        """The filters that must each admit a charge to this share, with their sums."""

    def has_request(self, request: str, by: str) -> bool:
        """Whether this analyst charged under this request id before."""


class Share:
    """A share of a ledger, for one analyst or project; `Ledger.share` gives it. It is a payer.

    Guarantee: a charge to it is admitted only if both its own filter and the ledger's admit it, and
    one entry records both sums. Shares may add up to more than the ledger's limit; what they spend
    together never exceeds it.

    >>> from discreet import Ledger, Limit
    >>> from discreet.accounting import Pure
    >>> ledger = Ledger.in_memory(unit=Unit("patient_id"), limit=Limit(epsilon=2))
    >>> ledger.grant("ana", limit=Limit(epsilon=0.5), by="owner")
    >>> receipt = ledger.share("ana").charge(Pure(0.4), purpose="ages", by="ana")
    >>> ledger.share("ana").charge(Pure(0.2), purpose="wages", by="ana")
    Traceback (most recent call last):
        ...
    discreet.errors.BudgetExceeded: share 'ana': would reach ε = 0.60, the limit is 0.5 (δ = 0); \
at most ε = 0.1 is left for one more charge without a delta; lower the budget of this query or ask \
the owner
    """

    __slots__ = ("_ledger", "name")

    def __init__(self, ledger: SharedPayer, name: str) -> None:
        """The share of this name; use `Ledger.share`."""
        self._ledger, self.name = ledger, name

    @property
    def unit(self) -> Unit:
        """The protected unit."""
        return self._ledger.unit

    @property
    def filters(self) -> tuple[tuple[Filter, Spent], ...]:
        """The filters that must each admit a charge, with their sums: the ledger's, the share's."""
        return self._ledger.filters_of(self.name)

    def charge(
        self,
        loss: PrivacyLoss | Term,
        *,
        purpose: str,
        by: str,
        request: Request | None = None,
        is_insecure: bool = False,
        statement: str | None = None,
    ) -> Receipt:
        """Record this privacy loss for the share and the ledger, as `Ledger.charge` does. Raises
        `InvalidArgument` if the share was revoked."""
        return self._ledger.charge(
            loss,
            purpose=purpose,
            by=by,
            request=request,
            is_insecure=is_insecure,
            statement=statement,
            share=self.name,
        )

    def keep(self, receipt: Receipt, answer: str) -> None:
        """Store the answer to a paid request durably, before it is shown."""
        self._ledger.keep(receipt, answer)

    def lock(self, receipt: Receipt) -> None:
        """Lock the whole ledger until its owner unlocks: a paid computation failed."""
        self._ledger.lock(receipt)

    def reserve(
        self, receipt: Receipt, loss: PrivacyLoss | Term, *, count: int, of: int, plan: str
    ) -> range:
        """Reserve the next steps of this receipt, as `Ledger.reserve` does."""
        return self._ledger.reserve(receipt, loss, count=count, of=of, plan=plan)

    def reserved(self, receipt: Receipt) -> int:
        """The number of reserved steps, of those that this receipt paid."""
        return self._ledger.reserved(receipt)

    def has_request(self, request: str, by: str) -> bool:
        """Whether this analyst charged the ledger under this request id before."""
        return self._ledger.has_request(request, by)

    def __repr__(self) -> str:
        return f"<share {self.name!r} of {self._ledger!r}>"
