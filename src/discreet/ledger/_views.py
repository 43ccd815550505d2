"""The texts and values that a ledger shows: entries, balances, reasons for refusals."""

from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from discreet import _html
from discreet._budget import AnyLimit, Limit, RenyiLimit
from discreet._exact import decimal_down, decimal_up, fraction, shown
from discreet.accounting import Filter, PrivacyLoss, Spent, _bounds
from discreet.accounting._bounds import Unknown
from discreet.accounting.filter._sums import FAILURE_RESOLUTION, RESOLUTION, Counting
from discreet.errors import LedgerDamaged, NoBound
from discreet.ledger._facts import (
    Backup,
    Charge,
    Grant,
    Kind,
    Link,
    Lock,
    Opening,
    Revoke,
    StepReservation,
    StoredAnswer,
    Subtotal,
    Unlock,
)

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger's history; fields that its kind lacks are None.

    ``purpose`` of a `Kind.UNLOCK` entry is its reason. ``about`` is the number of the charge that
    an answer, a lock or steps belong to. ``request`` is the request id of a charge, ``body`` the
    digest of what was requested, and ``share`` the share that a charge, a grant or its end belongs
    to. ``reserve`` is the privacy loss that a grant reserves for its share.
    """

    number: int
    at: datetime
    kind: Kind
    purpose: str | None
    by: str | None
    loss: PrivacyLoss | None
    about: int | None
    is_insecure: bool
    digest: str
    request: str | None = None
    share: str | None = None
    reserve: PrivacyLoss | None = None
    body: str | None = None

    @staticmethod
    def of(link: Link) -> "Entry":
        """The public line of a link; it leaves out the text of a stored answer."""
        blank = Entry(link.number, link.at, link.kind, None, None, None, None, False, link.digest)
        match link.fact:
            case Charge(loss, purpose, by, request, is_insecure):
                paid = replace(blank, purpose=purpose, by=by, loss=loss, is_insecure=is_insecure)
                share = None if link.fact.share is None else link.fact.share.name
                asked = (None, None) if request is None else (request.id, request.body)
                return replace(paid, request=asked[0], body=asked[1], share=share)
            case Grant(share, _, by, reserve):
                reserved = None if reserve is None else reserve.loss
                return replace(blank, by=by, share=share, reserve=reserved)
            case Revoke(share, by):
                return replace(blank, by=by, share=share)
            case Unlock(reason, by):
                return replace(blank, purpose=reason, by=by)
            case StoredAnswer(charge) | Lock(charge) | StepReservation(charge):
                return replace(blank, about=charge)
            case Opening() | Backup() | Subtotal():
                return blank


@dataclass(frozen=True, slots=True)
class FilterUse:
    """The spent and the remaining part of a filter's limit, beside the amount that is reserved for
    others; computed when it is read."""

    filter: Filter
    sums: Spent
    reserved: Counting | None = None

    @property
    def limit(self) -> AnyLimit:
        """The most that may ever be spent."""
        return self.filter.limit

    @property
    def reached(self) -> Fraction:
        """The spent amount in the limit's own measure, as in `Balance`."""
        return self._reached(self.sums)

    @property
    def reached_with_reserved(self) -> Fraction:
        """The same as if the reserved amount were spent, too."""
        return self._reached(self.sums.beside(self.reserved))

    @property
    def left(self) -> Fraction:
        """The largest single pure epsilon that would still be admitted."""
        return self.filter.pure_left(self.sums.beside(self.reserved))

    def _reached(self, sums: Spent) -> Fraction:
        found = self.filter.reached(sums)
        if found is None:
            raise LedgerDamaged("its sums are beyond every bound")
        return found


@dataclass(frozen=True, slots=True)
class Balance:
    """The spent and the remaining part of a limit, by the filter that decides.

    ``reached`` bounds all charges together, however adaptively they were chosen, in the limit's own
    measure: epsilon at the limit's delta, rho, or mu. For a Renyi limit it is the largest share of
    a bound that is spent, over all orders. ``left`` is the largest single pure epsilon that would
    still be admitted, and ``total`` the sum of all charges. ``reached_with_reserved`` is the same
    as ``reached`` if all that is reserved for shares were spent, too.
    """

    limit: AnyLimit
    reached: Fraction
    left: Fraction
    charges: int
    total: PrivacyLoss
    reached_with_reserved: Fraction

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that is spent; `NoBound` under a limit of another kind."""
        if isinstance(self.limit, Limit):
            return self.reached
        raise NoBound(f"{self.limit!r} has no epsilon: read `reached`")

    @property
    def epsilon_if_fixed_beforehand(self) -> float:
        """The epsilon of the total at the limit's delta (0 if it has none). It is valid only if the
        charges were fixed beforehand, and decides nothing."""
        return self.total.epsilon(self.limit.delta if isinstance(self.limit, Limit) else 0)

    def __str__(self) -> str:
        said = (
            f"{summary(self.limit, self.reached, self.charges)}{self._reserved}; "
            f"one more charge without a delta may cost at most ε = {down(self.left)}"
        )
        if not isinstance(self.limit, Limit):
            return said
        fixed = self.epsilon_if_fixed_beforehand
        figure = up(fraction(fixed)) if fixed < float("inf") else "unbounded"
        return f"{said}\n(ε = {figure} if all charges had been fixed beforehand)"

    @property
    def _reserved(self) -> str:
        if self.reached_with_reserved <= self.reached:
            return ""
        amount = f"{self.limit.symbol} = {up(self.reached_with_reserved)}"
        return f", and {amount} with what is reserved for shares"

    def _repr_html_(self) -> str:
        """The balance as a table in notebooks."""
        rows = [
            ("limit", str(self.limit)),
            ("spent", f"{self.limit.symbol} = {up(self.reached)}{self._reserved}"),
            ("charges", f"{self.charges:,}"),
            ("one more charge without a delta may cost at most", f"ε = {down(self.left)}"),
        ]
        return _html.table("balance", (), rows)


def summary(limit: AnyLimit, reached: Fraction | None, charges: int) -> str:
    """The spent part of the limit, in a few words."""
    amount = "an unknown amount" if reached is None else up(reached)
    return f"spent {limit.symbol} = {amount} of {_most(limit)}, in {_charges(charges)}"


def refusal(chosen: Filter, before: Spent, after: Spent, loss: PrivacyLoss) -> str:
    """The reason for refusing a charge that leads from ``before`` to ``after``, and what to do."""
    # 1. the budget that is left
    limit, reached = chosen.limit, chosen.would_reach(before, loss)
    most = down(chosen.pure_left(before))
    left = f"at most ε = {most} is left for one more charge without a delta"
    if isinstance(limit, Limit) and not _is_pure(loss):
        if (multiplier := chosen.multiplier_left(before)) is not None:
            left += f", or for Gaussian noise at a multiplier of {up(multiplier)} or more"
        left = f"{_by_itself(chosen, loss)}{left}"
    advice = "lower the budget of this query or ask the owner"
    # 2. a failure, or a delta, that the limit has no room for
    if isinstance(limit, Limit) and limit.delta == 0 and not _is_pure(loss):
        return (
            f"this charge has no pure bound, and the limit is {_most(limit)}: ask with noise that "
            f"needs no delta ({left}), or name a delta in the limit when the ledger is made"
        )
    if after.failures and not isinstance(limit, Limit):
        return (
            f"this charge fails with a small probability, and a limit in {limit.symbol} has no "
            f"delta for that: ask with a mechanism that needs no delta ({left})"
        )
    if after.failures > chosen.failure_bound:
        return (
            "the deltas of its terms would add up to "
            f"{up(after.failures * FAILURE_RESOLUTION)}, and "
            f"{down(chosen.failure_bound * FAILURE_RESOLUTION)} of the limit's delta is set aside "
            "for them; "
            f"{left}; {advice}"
        )
    # 3. a first charge that took the whole delta
    if before.alone is not None and not _is_pure(loss):
        taken = "the first charge took the whole delta"
        return f"{taken}, and only charges without a delta fit now; {left}"
    if reached is None and len(chosen.cost(loss).ways) > 1:
        return (
            "it is counted as a normal value together with a failure, and too little is left of "
            f"the limit's delta that is set aside for failures; {left}; {advice}"
        )
    # 4. sums beyond the limit
    if reached is None:
        return f"would be far beyond the limit {_most(limit)}; {left}; {advice}"
    would = f"would reach {limit.symbol} = {_above(reached, limit.most)}"
    return f"{would}, the limit is {_most(limit)}; {left}; {advice}"


def _by_itself(chosen: Filter, loss: PrivacyLoss) -> str:
    """The cost of the charge by itself, in words; empty if it is not known."""
    cost, part = chosen.alone(loss), chosen.part(chosen.cost(loss))
    if cost is None:
        return ""
    said = f"by itself this charge costs ε = {up(cost * RESOLUTION)}"
    if part is not None:
        said += f" and takes {up(100 * part)} % of an empty ledger"
    return f"{said}; "


def up(number: Fraction) -> str:
    """The number as text, rounded up."""
    return shown(decimal_up(number, _DIGITS))


def down(number: Fraction) -> str:
    """The number as text, rounded down."""
    return shown(decimal_down(number, _DIGITS))


def _above(number: Fraction, limit: Fraction) -> str:
    """A number above a limit as text: rounded up, with enough decimals to tell the two apart."""
    if number <= limit:
        return up(number)
    decimals = 2
    while (rounded := _ceiling(number, decimals)) - number > (number - limit) / 10:
        decimals += 1
    whole, part = divmod(int(rounded * 10**decimals), 10**decimals)
    return f"{whole}.{part:0{decimals}d}"


def _ceiling(number: Fraction, decimals: int) -> Fraction:
    return Fraction(-(-number * 10**decimals // 1), 10**decimals)


def _is_pure(loss: PrivacyLoss) -> bool:
    whole = _bounds.approximate(loss)
    return not isinstance(whole, Unknown) and whole[1] == 0


def _most(limit: AnyLimit) -> str:
    match limit:
        case Limit(epsilon, delta):
            return f"{shown(epsilon)} (δ = {shown(delta)})"
        case RenyiLimit():
            return f"1 ({limit})"
    return shown(limit.most)


def _charges(count: int) -> str:
    return "1 charge" if count == 1 else f"{count} charges"
