"""Prices of charges: their additions to the sums of a filter, in whole units, rounded up.

A charge is counted in one or two ways. In the plain one each term counts by itself. In the other
one the terms that have no square of mu, such as the steps of a training run, count together as a
normal value beside a leak; in all other sums they count as in the plain way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import _bounds
from discreet.accounting._bounds import Unknown, known
from discreet.accounting._domination import beside_leak, chords
from discreet.accounting._filter_sums import Epsilons, FilterSum, SquaresOfMu
from discreet.accounting._loss import PrivacyLoss

UNIT = Fraction(1, 10**18)
LEAK_UNIT = Fraction(1, 10**60)
EXHAUSTED = 10**40  # a sum that reaches this stays here, beyond every bound
_ELSEWHERE = 1 + Fraction(1, 10**6)  # floats of another machine may make a square so much larger
SQUARES = 1  # their place among the sums, where there are any


@dataclass(frozen=True, slots=True)
class Way:
    """One way to count a charge: what it adds to the leaks, and to each sum."""

    leak: int
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """The addition of a charge to the sums of one filter. It is known before anything is drawn, and
    it doesn't depend on what was spent before.

    ``ways`` holds one or two ways to count it, the better one first. ``alone`` is what it costs by
    itself with all of delta, if it fits the filter in no way at all.
    """

    ways: tuple[Way, ...]
    alone: int | None = None

    @property
    def plain(self) -> Way:
        """The way with the smallest leak."""
        return min(self.ways, key=lambda way: way.leak)


def plain_way(sums: Sequence[FilterSum], loss: PrivacyLoss) -> Way:
    """Each term counted by itself."""
    leak = units_up(_bounds.failure_probability(loss), LEAK_UNIT)
    return Way(leak, tuple(_cost(each, loss) for each in sums))


def way_beside_leak(
    squares: SquaresOfMu,
    loss: PrivacyLoss,
    plain: Way,
    *,
    share: Fraction,
    leak: Fraction | None = None,
) -> Way | None:
    """The terms without a square counted together as a normal value beside a leak: the one of
    which most copies fit into the leaks' share; or, to check what was recorded, the one beside
    this leak, less what machines differ by. ``None`` if there are no such terms, or no such normal
    value."""
    with_square, rest = squares.split(loss)
    if not rest.terms or _bounds.failure_probability(rest):
        return None
    both = beside_leak(rest, share, squares.most) if leak is None else _recorded(rest, share, leak)
    if isinstance(both, Unknown):
        return None
    chosen, square = both
    total = min(units_up(known(squares.cost(with_square)) + square, UNIT), EXHAUSTED)
    sums = (*plain.sums[:SQUARES], total, *plain.sums[SQUARES + 1 :])
    return Way(plain.leak + units_up(chosen, LEAK_UNIT), sums)


def _recorded(
    loss: PrivacyLoss, share: Fraction, leak: Fraction
) -> tuple[Fraction, Fraction] | Unknown:
    """The leak that was recorded, and the square beside it, less the difference of machines."""
    profile = chords(loss, share)
    if isinstance(profile, Unknown):
        return profile
    square = profile.square(leak)
    return square if isinstance(square, Unknown) else (leak, square / _ELSEWHERE)


def units_up(amount: Fraction, unit: Fraction) -> int:
    """The amount in whole units, rounded up."""
    return math.ceil(amount / unit)


def _cost(each: FilterSum, loss: PrivacyLoss) -> int:
    """A sum of epsilons or of squares is exhausted by terms that it can't count; without a
    Renyi divergence or a rho, a charge is refused."""
    cost = each.cost(loss)
    if isinstance(cost, Unknown) and isinstance(each, Epsilons | SquaresOfMu):
        return EXHAUSTED
    return units_up(known(cost), UNIT)
