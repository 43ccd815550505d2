"""The best of some runs: its epsilon, its Renyi divergences and its pair, from those of one run.

All follow from one run's by what the law of the number of runs adds (`_tuning`). If the number has
a ceiling, they are never worse than those of that many runs, all of whose outcomes are released.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from discreet._exact import ball, decimal_up, fraction, lower_fraction, precision, upper_fraction
from discreet.accounting import _bounds
from discreet.accounting._bounds import Bounds, Sum, Unknown
from discreet.accounting._pairs import ORDERS, TOO_LARGE, Conversion, pair_of_profile
from discreet.accounting._profile import Profile, profile
from discreet.accounting._renyi import Curve
from discreet.accounting._tuning import (
    Ceiling,
    OneRun,
    Runs,
    pure_spread,
    spread_of,
    widest_spread,
)
from discreet.accounting.pld._dominating_pairs import Pair, Side

_BITS = 256
_DIGITS = 12
_LEAST = Fraction(1, 10**20)  # a delta below which no more points are needed
_ENOUGH = Fraction(101, 100)
_FURTHEST = 1 << 10
_NOT_PURE = Unknown("the best of some runs is known to be zCDP only if each run is pure")
_MOST_RUNS = 1000  # that are composed instead: beyond, the best of a random number costs less


@dataclass(frozen=True, slots=True)
class Best:
    """The best of some runs, each of which has this privacy loss; a number of runs above
    ``most``, if that is not 0, is drawn anew."""

    loss: Sum
    runs: Runs
    most: int

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """Apart from failures, an outcome's ratio is at most that of one run times that of f'
        (as Papernot and Steinke 2022 for pure runs; here for a run that didn't fail)."""
        one = _bounds.approximate(self.loss)
        if isinstance(one, Unknown):
            return one
        epsilon, delta = one
        if delta >= 1:
            return Unknown(f"{self.loss!r} leaves no guarantee for one run")
        runs = self.runs.thinned(delta)
        with precision(_BITS):
            spread = pure_spread(runs, epsilon, self.most)
            if isinstance(spread, Unknown):
                return spread
            more = upper_fraction(spread)
        best = epsilon + (decimal_up(more, _DIGITS) if more > 0 else 0)
        failing = self._failing(delta)
        if self.most and self.most * delta <= failing:
            best = min(best, self.most * epsilon)
        return best, failing

    def failure_probability(self) -> Fraction:
        """That any of the runs fails."""
        return self._failing(_bounds.failure_probability(self.loss))

    def zcdp(self) -> Fraction | Unknown:
        """epsilon squared over 2, if one run is pure (Bun and Steinke 2016, Proposition 1.4); or
        that of as many runs as there may be."""
        whole, found = self.approximate(), []
        if not isinstance(whole, Unknown) and whole[1] <= self.failure_probability():
            found.append(whole[0] ** 2 / 2)
        rho = _bounds.zcdp(self._all_runs) if self._all_runs else None
        if isinstance(rho, Fraction):
            found.append(rho)
        if not found:
            return whole if isinstance(whole, Unknown) else _NOT_PURE
        return min(found)

    def renyi(self, order: Fraction) -> arb | Unknown:
        """The divergence at this order, or at a larger one where it is less; or that of as many
        runs as there may be."""
        found = _curve(self)
        if isinstance(found, Unknown):
            return found
        higher, least = found.best
        best = least if order <= higher else found.at(order)
        composed = _bounds.renyi(self._all_runs, order) if self._all_runs else found
        return best.min(composed) if isinstance(composed, arb) else best

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """One pair that dominates in both orders of the neighbours."""
        if side is Side.LOWER:
            return Unknown("no pair is known that the best of some runs attains")
        pair = _pair(self)
        return pair if isinstance(pair, Unknown) else (pair,)

    @property
    def _all_runs(self) -> "_Repeated | None":
        """As many runs as there may be, if they fail no more often than the best one does."""
        if not 0 < self.most <= _MOST_RUNS:
            return None
        failing = self.most * _bounds.failure_probability(self.loss)
        return _Repeated(self.loss, self.most) if failing <= self.failure_probability() else None

    def _failing(self, failure: Fraction) -> Fraction:
        """The expected number of failures, rounded up."""
        if not failure:
            return failure
        with precision(_BITS):
            expected = upper_fraction(self.runs.mean())
        expected = min(expected, Fraction(self.most)) if self.most else expected
        return min(decimal_up(failure * expected, _DIGITS), Fraction(1))


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A sum that happens several times."""

    once: Sum
    times: int

    @property
    def terms(self) -> tuple[tuple[Bounds, int], ...]:
        return tuple((term, count * self.times) for term, count in self.once.terms)


@dataclass(frozen=True, slots=True)
class _BestRunCurve:
    """The Renyi divergences apart from failures: at any order, and as they were found at many."""

    at: Curve
    found: Mapping[Fraction, arb]
    best: tuple[Fraction, arb]


@lru_cache(maxsize=256)
def _curve(best: Best) -> _BestRunCurve | Unknown:
    with precision(_BITS):
        one = OneRun.apart_from_failures(best.loss)
        runs = best.runs.thinned(_bounds.failure_probability(best.loss))
        ceiling, spread = Ceiling.of(runs, best.most), spread_of(runs, one)
        if isinstance(spread, Unknown):
            return spread

        def at(order: Fraction) -> arb:
            return ceiling.divergence(order, one.at(order), spread(order))

        found = {order: at(order) for order in ORDERS}
        finite = {order: upper_fraction(b) for order, b in found.items() if b.is_finite()}
        if not finite:
            return Unknown(
                f"no Renyi divergence is known of the best of some runs of {best.loss!r}"
            )
        least = min(finite, key=finite.__getitem__)
        return _BestRunCurve(at, found, (least, found[least]))


# The pair: a bound on delta at many epsilons, and the pair that has it


@lru_cache(maxsize=64)
def _pair(best: Best) -> Pair | Unknown:
    with precision(_BITS):
        delta = _profile(best)
        if isinstance(delta, Unknown):
            return delta
        top = _top(best, delta)
        return TOO_LARGE if top > _FURTHEST else pair_of_profile(delta, top)


DeltaFunction = Callable[[Fraction], Fraction]


def _profile(best: Best) -> DeltaFunction | Unknown:
    """The smallest delta at an epsilon that is known: f' being at most the expected number of
    runs, and its ratio at most e^spread, delta is at most that number times one run's at
    epsilon - spread; or what follows from Renyi divergences, from a pure epsilon, or from the
    profile of as many runs as there may be."""
    one, ceiling = OneRun.of(best.loss), Ceiling.of(best.runs, best.most)
    curve, widest = _curve(best), widest_spread(best.runs, one)
    if isinstance(curve, Unknown):
        return curve
    if isinstance(widest, Unknown):
        return widest
    spread = widest - ceiling.share.log()
    often = ceiling.mean * ceiling.share / ceiling.within
    renyi, failure = Conversion(curve.found), best.failure_probability()
    pure = best.approximate()
    composed = _composed(best)

    def delta(epsilon: Fraction) -> Fraction:
        found = [Fraction(1), upper_fraction(renyi.delta(epsilon)) + failure]
        left = lower_fraction(ball(epsilon) - spread)
        if left >= 0:
            found.append(upper_fraction(often * one.delta(left)))
        if not isinstance(pure, Unknown) and pure[0] <= epsilon:
            found.append(pure[1])
        if composed is not None:
            found.append(fraction(composed.delta(epsilon)))
        return min(found)

    return delta


def _composed(best: Best) -> Profile | None:
    """The profile of as many runs as there may be."""
    if not 0 < best.most <= _MOST_RUNS:
        return None
    return profile(_Repeated(best.loss, best.most), float(_LEAST))


def _top(best: Best, delta: DeltaFunction) -> Fraction:
    """An epsilon above which delta falls no more, or is next to nothing."""
    pure = best.approximate()
    if not isinstance(pure, Unknown):
        return pure[0]
    top = Fraction(1)
    least = _ENOUGH * max(delta(Fraction(_FURTHEST)), _LEAST)
    while top < _FURTHEST and delta(top) > least:
        top *= 2
    return top
