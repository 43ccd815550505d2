"""Prices of charges: their additions to the sums of a filter, in whole units, rounded up.

A charge has one or two ways to be counted. In the plain one each term counts by itself. In the
other one the terms that have no square of mu, such as the steps of a training run, count together
as a normal value beside a leak; for everything else they count as in the plain way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import _knowledge
from discreet.accounting._domination import beside_leak, chords
from discreet.accounting._filter_sums import Epsilons, SquaresOfMu, Track
from discreet.accounting._loss import PrivacyLoss
from discreet.errors import NoBound

UNIT = Fraction(1, 10**18)
LEAK_UNIT = Fraction(1, 10**60)
EXHAUSTED = 10**40  # a sum that reaches this stays here, beyond every bound
_ELSEWHERE = 1 + Fraction(1, 10**6)  # floats of another machine may make a square so much larger
SQUARES = 1  # their place among the tracks, where there are any


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


def plain_way(tracks: Sequence[Track], loss: PrivacyLoss) -> Way:
    """Each term counted by itself."""
    leak = units_up(_knowledge.leak(loss), LEAK_UNIT)
    return Way(leak, tuple(_cost(track, loss) for track in tracks))


def way_beside_leak(
    track: SquaresOfMu,
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
    counted, rest = track.counted(loss)
    if not rest.terms or _knowledge.leak(rest):
        return None
    try:
        if leak is None:
            leak, square = beside_leak(rest, share, track.most)
        else:
            square = chords(rest, share).square(leak) / _ELSEWHERE
    except NoBound:
        return None
    total = min(units_up(track.cost(counted) + square, UNIT), EXHAUSTED)
    sums = (*plain.sums[:SQUARES], total, *plain.sums[SQUARES + 1 :])
    return Way(plain.leak + units_up(leak, LEAK_UNIT), sums)


def units_up(amount: Fraction, unit: Fraction) -> int:
    """The amount in whole units, rounded up."""
    return math.ceil(amount / unit)


def _cost(track: Track, loss: PrivacyLoss) -> int:
    """A sum of epsilons or of squares is exhausted by terms that it can't count; without a
    Renyi divergence or a rho, a charge is refused."""
    try:
        return units_up(track.cost(loss), UNIT)
    except NoBound:
        if isinstance(track, Epsilons | SquaresOfMu):
            return EXHAUSTED
        raise
