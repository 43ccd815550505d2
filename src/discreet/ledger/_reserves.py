"""Reserves: parts of the ledger's limit that are set aside for shares.

An amount is an addition to each of the ledger's own sums. A charge is decided as if all that is
reserved for others were spent, so that nobody else can spend it; the recorded sums hold charges
only. A charge to a share with a reserve draws on it.
"""

from operator import add, sub

from discreet.accounting import Filter, Spent
from discreet.accounting.filter._sums import EXHAUSTED, Counting
from discreet.errors import LedgerDamaged


def together(one: Counting | None, other: Counting | None) -> Counting | None:
    """Both amounts, exactly: unlike spent sums, reserved ones may be beyond `EXHAUSTED`."""
    if one is None or other is None:
        return other if one is None else one
    return Counting(one.failures + other.failures, tuple(map(add, one.sums, other.sums)))


def without(whole: Counting | None, part: Counting | None) -> Counting | None:
    """The rest of an amount; None if nothing is left."""
    if part is None:
        return whole
    if whole is not None and len(whole.sums) == len(part.sums):
        failures, sums = whole.failures - part.failures, tuple(map(sub, whole.sums, part.sums))
        if min(failures, *sums) >= 0:
            return Counting(failures, sums) if failures or any(sums) else None
    raise LedgerDamaged("more is drawn from its reserves than they hold")


def reserve_used(
    chosen: Filter,
    reserved: Counting | None,
    before: Spent,
    after: Spent,
    *,
    others: Counting | None,
) -> Counting | None:
    """The amount by which a charge that leads from ``before`` to ``after`` reduces the reserve of
    its share. ``others`` is reserved for other shares.

    Each sum of the reserve falls by what the charge adds to it, to 0 at least. If the limit has no
    room for the rest, because the charge was larger than the reserve, the rest is given up.
    """
    if reserved is None:
        return None
    steps = zip(reserved.sums, before.sums, after.sums, strict=True)
    left = Counting(
        max(0, reserved.failures - (after.failures - before.failures)),
        tuple(_left(amount, old, new) for amount, old, new in steps),
    )
    is_usual = after.alone == before.alone or before.alone is not None
    if is_usual and chosen.admits(after.beside(together(others, left))):
        return without(reserved, left)
    return reserved


def _left(reserved: int, before: int, after: int) -> int:
    if after == EXHAUSTED:
        return 0  # nothing more fits this sum, reserved or not
    return reserved if reserved >= EXHAUSTED else max(0, reserved - (after - before))
