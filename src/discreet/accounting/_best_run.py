"""The best of some runs: its epsilon, its Renyi divergences and its pair, from those of one run."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import arb

from discreet._exact import ball, decimal_up, lower_fraction, precision, upper_fraction
from discreet._unit import Change
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss, Term, inner_loss
from discreet.accounting._theorems import log_conversion
from discreet.accounting._tuning import (
    ORDERS,
    Curve,
    Kept,
    Known,
    Runs,
    pure_spread,
    spread_of,
    widest_spread,
)
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side
from discreet.errors import NoBound

_BITS = 256
_DIGITS = 12
_DOTS = 240
_LEAST = Fraction(1, 10**20)  # a delta that no more dots are needed for
_ENOUGH = Fraction(101, 100)
_FURTHEST = 1 << 10
_NEXT_TO_NOTHING = Fraction(1, 10**290)

Dot = tuple[Fraction, Fraction]  # an e^epsilon and a delta there


@dataclass(frozen=True, slots=True)
class Best:
    """The best of some runs, each of which has this privacy loss; a number of runs above
    ``most``, if that is not 0, is drawn anew."""

    loss: PrivacyLoss
    runs: Runs
    most: int

    def approximate(self) -> tuple[Fraction, Fraction]:
        """Apart from what leaks, an outcome's ratio is at most that of one run times that of f'
        (as Papernot and Steinke 2022 for pure runs; here with what a run's ratio leaves of it)."""
        epsilon, delta = _knowledge.approximate(self.loss)
        if delta >= 1:
            raise NoBound(f"{self.loss!r} leaves no guarantee for one run")
        runs = self.runs.thinned(delta)
        with precision(_BITS):
            more = upper_fraction(pure_spread(runs, epsilon, self.most))
        best = epsilon + (decimal_up(more, _DIGITS) if more > 0 else 0)
        return best, self._leaking(delta)

    def leak(self) -> Fraction:
        """That any of the runs leaks."""
        return self._leaking(_knowledge.leak(self.loss))

    def zcdp(self) -> Fraction:
        """epsilon squared over 2, if one run is pure (Bun and Steinke 2016, Proposition 1.4)."""
        epsilon, delta = self.approximate()
        if delta > self.leak():
            raise NoBound("the best of some runs is known to be zCDP only if each run is pure")
        return epsilon**2 / 2

    def renyi(self, order: Fraction) -> arb:
        """The divergence at this order, or at a larger one where it is less."""
        least = _curve(self).best
        return least[1] if order <= least[0] else _curve(self).at(order)

    def pairs(self, side: Side) -> tuple[Pair, ...]:
        """One pair that dominates in both orders of the neighbours."""
        if side is Side.LOWER:
            raise NoBound("no pair is known that the best of some runs attains")
        return (_pair(self),)

    def _leaking(self, leak: Fraction) -> Fraction:
        """The expected number of leaks, rounded up."""
        if not leak:
            return leak
        with precision(_BITS):
            expected = upper_fraction(self.runs.mean())
        expected = min(expected, Fraction(self.most)) if self.most else expected
        return min(decimal_up(leak * expected, _DIGITS), Fraction(1))


@dataclass(frozen=True, slots=True)
class _Curve:
    """The Renyi divergences apart from leaks: at any order, and as they were found at many."""

    at: Curve
    found: Mapping[Fraction, arb]
    best: tuple[Fraction, arb]


@lru_cache(maxsize=256)
def _curve(best: Best) -> _Curve:
    with precision(_BITS):
        known = Known.apart_from_leaks(best.loss)
        runs = best.runs.thinned(_knowledge.leak(best.loss))
        kept, spread = Kept.of(runs, best.most), spread_of(runs, known)

        def at(order: Fraction) -> arb:
            return kept.divergence(order, known.at(order), spread(order))

        found = {order: at(order) for order in ORDERS}
        finite = {order: upper_fraction(b) for order, b in found.items() if b.is_finite()}
        if not finite:
            raise NoBound(f"no Renyi divergence is known of the best of some runs of {best.loss!r}")
        least = min(finite, key=finite.__getitem__)
        return _Curve(at, found, (least, found[least]))


# The pair: a bound on delta at many epsilons, and the pair that has it


@lru_cache(maxsize=64)
def _pair(best: Best) -> Pair:
    with precision(_BITS):
        delta = _profile(best)
        top, least = _top(best, delta), Fraction(1)
        if top > _FURTHEST:
            raise NoBound("its losses are too large for a grid")
        dots = []
        for number in range(_DOTS + 1):
            epsilon = top * number / _DOTS
            least = min(least, delta(epsilon))
            dots.append((upper_fraction(ball(epsilon).exp()), least))
    mirrored = ((1 / odds, 1 - (1 - delta) / odds) for odds, delta in reversed(dots[1:]))
    return through([*mirrored, *dots])


class _Conversion:
    """The deltas that follow from Renyi divergences of some orders: each by the order that is best
    in floats, any order's being a bound."""

    def __init__(self, curve: Mapping[Fraction, arb]) -> None:
        """Of a divergence for each order."""
        self._lines = [
            (log_conversion(order) + ball(order - 1) * found, ball(order - 1))
            for order, found in curve.items()
            if found.is_finite()
        ]
        self._starts = np.array([float(start) for start, _ in self._lines])
        self._falls = np.array([float(fall) for _, fall in self._lines])

    def delta(self, epsilon: Fraction) -> arb:
        """At this epsilon."""
        if not self._lines:
            return arb(1)
        start, fall = self._lines[np.argmin(self._starts - float(epsilon) * self._falls)]
        return (start - fall * ball(epsilon)).exp().min(arb(1))


def _profile(best: Best) -> Callable[[Fraction], Fraction]:
    """The smallest delta at an epsilon that is known: f' being at most the expected number of
    runs, and its ratio at most e^spread, delta is at most that number times one run's at
    epsilon - spread; or what follows from Renyi divergences, or from a pure epsilon."""
    known, kept = Known.of(best.loss), Kept.of(best.runs, best.most)
    spread = widest_spread(best.runs, known) - kept.share.log()
    often = kept.mean * kept.share / kept.within
    renyi, leak = _Conversion(_curve(best).found), best.leak()
    pure: tuple[Fraction, Fraction] | None = None
    with suppress(NoBound):
        pure = best.approximate()

    def delta(epsilon: Fraction) -> Fraction:
        found = [Fraction(1), upper_fraction(renyi.delta(epsilon)) + leak]
        left = lower_fraction(ball(epsilon) - spread)
        if left >= 0:
            found.append(upper_fraction(often * known.delta(left)))
        if pure is not None and pure[0] <= epsilon:
            found.append(pure[1])
        return min(found)

    return delta


def _top(best: Best, delta: Callable[[Fraction], Fraction]) -> Fraction:
    """An epsilon above which delta falls no more, or is next to nothing."""
    with suppress(NoBound):
        return best.approximate()[0]
    top = Fraction(1)
    least = _ENOUGH * max(delta(Fraction(_FURTHEST)), _LEAST)
    while top < _FURTHEST and delta(top) > least:
        top *= 2
    return top


def through(dots: Sequence[Dot]) -> Pair:
    """The pair whose delta, as a function of e^epsilon, is the lower hull of 1 at 0 and these
    dots, which rise in the former. It dominates all that have no larger delta at any dot, since
    deltas are convex in e^epsilon."""
    hull: list[Dot] = [(Fraction(0), Fraction(1))]
    for dot in dots:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], dot):
            hull.pop()
        hull.append(dot)
    slopes = [*(_slope(one, other) for one, other in pairwise(hull)), Fraction(0)]
    turns = [(odds, slopes[n + 1] - slopes[n]) for n, (odds, _) in enumerate(hull[1:])]
    atoms = [
        (_log(odds), float(odds * turn), float(turn))
        for odds, turn in turns
        if turn * min(odds, Fraction(1)) > _NEXT_TO_NOTHING
    ]
    sure = float(hull[-1][1] + len(turns) * _NEXT_TO_NOTHING)  # with what was left out
    return Pair(Atoms.of(*atoms, (math.inf, sure, 0.0), (-math.inf, 0.0, float(1 + slopes[0]))))


def _log(odds: Fraction) -> float:
    with precision(_BITS):
        return float(ball(odds).log().mid())


def _slope(one: Dot, other: Dot) -> Fraction:
    return (other[1] - one[1]) / (other[0] - one[0])


# What terms that hold one run have in common


def one_run(privacy_loss: PrivacyLoss | Term) -> PrivacyLoss:
    """What one run costs: of any relation between neighbours, and of no unit of its own."""
    terms = privacy_loss.terms if isinstance(privacy_loss, PrivacyLoss) else ((privacy_loss, 1),)
    bound = change_of(PrivacyLoss(terms)) if all(isinstance(t, Term) for t, _ in terms) else None
    return inner_loss(privacy_loss, bound or Change.ADD_REMOVE)


def change_of(loss: PrivacyLoss) -> Change | None:
    """How neighbours must differ for the privacy loss to say anything."""
    return next((term.change for term, _ in loss.terms if term.change is not None), None)
