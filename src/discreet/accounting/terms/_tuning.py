"""The best of a secret, random number of runs, which is Poisson or negative binomial.

All bounds follow from those of one run, by what the law of the number of runs adds (`_best_run`).
If the number has a ceiling, they are never worse than the bounds of that many runs, all of whose
outcomes are released.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from flint import arb

from discreet import _checks
from discreet._exact import (
    Number,
    ball,
    decimal_up,
    fraction,
    lower_fraction,
    precision,
    upper_fraction,
)
from discreet._fields import Converted, Count, Positive, field, frozen
from discreet._unit import Change
from discreet.accounting import _bounds
from discreet.accounting._bounds import TOO_LARGE, Unknown
from discreet.accounting._loss import PrivacyLoss, Term, change_of, group_loss, inner_loss
from discreet.accounting._pairs import ORDERS, Conversion, pair_of_profile
from discreet.accounting._profile import profile
from discreet.accounting._renyi import Curve, at_most_pure
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.accounting.terms import _best_run
from discreet.accounting.terms._best_run import (
    Ceiling,
    OneRun,
    Runs,
    least,
    pure_spread,
    spreads,
    widest_spread,
)
from discreet.errors import InvalidArgument

_BITS = 256
_DIGITS = 12
_LEAST = Fraction(1, 10**20)  # a delta below which no more points are needed
_ENOUGH = Fraction(101, 100)
_FURTHEST = 1 << 10
_NOT_PURE = Unknown("the best of some runs is known to be zCDP only if each run is pure")
_MOST_RUNS = 1000  # that are composed: beyond, the best of a random number of runs costs less

DeltaFunction = Callable[[Sequence[Fraction]], list[Fraction]]


def _run_loss(**named: PrivacyLoss | Term) -> PrivacyLoss:
    """The privacy loss of a run, for any relation between neighbours."""
    (given,) = named.values()
    known = PrivacyLoss.of(given) if isinstance(given, Term) else given
    change = change_of(known) if isinstance(known, PrivacyLoss) else None
    return inner_loss(given, change or Change.ADD_REMOVE)


def _gamma(**named: object) -> Fraction:
    exact = _checks.positive(**named)
    if exact > 1:
        ((name, value),) = named.items()
        raise InvalidArgument(f"{name} = {value}: give a number above 0 and up to 1")
    return exact


RunLoss = Annotated[Converted[PrivacyLoss, PrivacyLoss | Term], _run_loss]


class _BestOfRuns(Term):
    """The bounds of the terms below, which only differ in the law of the number of runs."""

    __slots__ = ()

    privacy_loss: PrivacyLoss
    most: int

    @property
    def runs(self) -> Runs:
        """The law of the number of runs, before its ceiling."""
        raise NotImplementedError

    @property
    def change(self) -> Change | None:  # type: ignore[override]  # follows one run
        """The relation between neighbours, which is that of one run."""
        return change_of(self.privacy_loss)

    def approximate(self) -> tuple[Fraction, Fraction] | Unknown:
        """Epsilon with the spread of `pure_spread`, and delta times the expected number of runs. If
        no run fails, the ratio of an outcome is at most one run's ratio times the ratio of f' (as
        in Papernot and Steinke 2022 for pure runs)."""
        one = _bounds.approximate(self.privacy_loss)
        if isinstance(one, Unknown):
            return one
        epsilon, delta = one
        if delta >= 1:
            return Unknown(f"{self.privacy_loss!r} leaves no guarantee for one run")
        runs = self.runs.thinned(delta)
        with precision(_BITS):
            more = upper_fraction(pure_spread(runs, epsilon, self.most))
        best = epsilon + (decimal_up(more, _DIGITS) if more > 0 else 0)
        failing = self._failing(delta)
        if self.most and self.most * delta <= failing:
            best = min(best, self.most * epsilon)
        return best, failing

    def failure_probability(self) -> Fraction:
        """The probability that any run fails: at most the expected number of failures."""
        return self._failing(_bounds.failure_probability(self.privacy_loss))

    def zcdp(self) -> Fraction | Unknown:
        """epsilon squared over 2, if one run is pure (Bun and Steinke 2016, Proposition 1.4); or
        rho of ``most`` runs."""
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
        """Papernot and Steinke (2022), Theorems 2 and 6, or a smaller bound of the same kind, at
        this order or at a larger one, with the outcome of no run counted in; or the divergence of
        ``most`` runs."""
        found = _curve(self)
        if isinstance(found, Unknown):
            return found
        higher, least = found.best
        best = least if order <= higher else found.at(order)
        composed = _bounds.renyi(self._all_runs, order) if self._all_runs else found
        best = best.min(composed) if isinstance(composed, arb) else best
        return at_most_pure(self, order, best)

    def pairs(self, side: Side) -> tuple[Pair, ...] | Unknown:
        """From above, one pair for both directions: its delta is one run's delta,
        moved and multiplied (as in Koskela, Redberg and Wang 2024)."""
        if side is Side.LOWER:
            return Unknown("no pair is known that the best of some runs attains")
        pair = _pair(self)
        return pair if isinstance(pair, Unknown) else (pair,)

    @property
    def _all_runs(self) -> PrivacyLoss | None:
        """The privacy loss of ``most`` runs, if they fail no more often than the best one does."""
        if not 0 < self.most <= _MOST_RUNS:
            return None
        failing = self.most * _bounds.failure_probability(self.privacy_loss)
        return self.most * self.privacy_loss if failing <= self.failure_probability() else None

    def _failing(self, failure: Fraction) -> Fraction:
        """The expected number of failures, rounded up."""
        if not failure:
            return failure
        with precision(_BITS):
            expected = upper_fraction(self.runs.mean())
        expected = min(expected, Fraction(self.most)) if self.most else expected
        return min(decimal_up(failure * expected, _DIGITS), Fraction(1))


@frozen
class TunedPoisson(_BestOfRuns):
    """The best outcome of K independent runs of a mechanism, in some order of all outcomes. K is
    Poisson with this ``mean``, and secret; only K = 0 shows, as there is no outcome then (Papernot
    and Steinke 2022).

    ``privacy_loss`` is the privacy loss of one run, with everything that the order depends on, such
    as a score. Unless ``most`` is 0, a number of runs above it is drawn anew, and the best run
    costs at most ``most`` runs.

    If a run is (epsilon, delta)-private, the best one is so with epsilon + mean tanh(epsilon / 2)
    and mean * delta.

    >>> from discreet.accounting import Gaussian
    >>> (1 * TunedPoisson(Gaussian(10), mean=10)).epsilon(1e-6) < 0.79
    True
    """

    privacy_loss: RunLoss
    mean: Positive
    most: Count = field(default=0)

    def for_group(self, size: int) -> "TunedPoisson | Unknown":
        """The theorem holds for any two laws of a run, so for those of a group."""
        loss = group_loss(self.privacy_loss, size)
        return loss if isinstance(loss, Unknown) else TunedPoisson(loss, self.mean, self.most)

    @property
    def runs(self) -> Runs:
        """The law of the number of runs, before its ceiling."""
        return _best_run.Poisson(self.mean)


@frozen
class TunedNegativeBinomial(_BestOfRuns):
    """The best outcome of K independent runs of a mechanism, in some order of all outcomes. K is
    secret; it is k from 1 on with probability proportional to (1 - gamma)^k Gamma(k + eta) / k!
    (Papernot and Steinke 2022).

    ``privacy_loss`` is the privacy loss of one run, with everything that the order depends on, such
    as a score. ``eta`` lies above -1; 1 is the geometric law (Liu and Talwar 2019), 0 the
    logarithmic one. Unless ``most`` is 0, a number of runs above it is drawn anew, and the best run
    costs at most ``most`` runs.

    If a run is (epsilon, delta)-private, the best one is so with epsilon + (1 + eta) ln((gamma +
    e^epsilon) / (1 + gamma e^epsilon)), which is less than (2 + eta) epsilon, and with delta times
    the expected number of runs.

    >>> from discreet.accounting import Gaussian, Pure
    >>> (1 * TunedNegativeBinomial(Pure(0.1), eta=1, gamma=0.01)).epsilon()
    0.296033195239
    >>> (1 * TunedNegativeBinomial(Gaussian(10), eta=0, gamma=0.01)).epsilon(1e-6) < 0.64
    True
    """

    privacy_loss: RunLoss
    eta: Annotated[Converted[Fraction, Number], _best_run.shape]
    gamma: Annotated[Converted[Fraction, Number], _gamma]
    most: Count = field(default=0)

    def for_group(self, size: int) -> "TunedNegativeBinomial | Unknown":
        """The theorems hold for any two laws of a run, so for those of a group."""
        loss = group_loss(self.privacy_loss, size)
        if isinstance(loss, Unknown):
            return loss
        return TunedNegativeBinomial(loss, self.eta, self.gamma, self.most)

    @property
    def runs(self) -> Runs:
        """The law of the number of runs, before its ceiling."""
        return _best_run.NegativeBinomial(self.eta, self.gamma)


@dataclass(frozen=True, slots=True)
class _BestRunCurve:
    """Renyi divergences apart from failures: at any order, at each of `ORDERS`, and the least."""

    at: Curve
    found: Sequence[arb]
    best: tuple[Fraction, arb]


@lru_cache(maxsize=256)
def _curve(best: _BestOfRuns) -> _BestRunCurve | Unknown:
    with precision(_BITS):
        one = OneRun.apart_from_failures(best.privacy_loss)
        runs = best.runs.thinned(_bounds.failure_probability(best.privacy_loss))
        ceiling = Ceiling.of(runs, best.most)

        def divergences(orders: Sequence[Fraction]) -> list[arb]:
            of_one = map(one.at, orders)
            each = zip(orders, of_one, spreads(runs, best.most, one, orders), strict=True)
            return ceiling.divergences(each)

        found = divergences(ORDERS)
        finite = [place for place, divergence in enumerate(found) if divergence.is_finite()]
        if not finite:
            return Unknown(
                f"no Renyi divergence is known of the best of some runs of {best.privacy_loss!r}"
            )
        least = min(finite, key=lambda place: upper_fraction(found[place]))
        best_one = ORDERS[least], found[least]
        return _BestRunCurve(lambda order: divergences([order])[0], found, best_one)


# The pair: a bound on delta at many epsilons, and the pair that has it


@lru_cache(maxsize=256)
def _pair(best: _BestOfRuns) -> Pair | Unknown:
    with precision(_BITS):
        deltas = _profile(best)
        if isinstance(deltas, Unknown):
            return deltas
        top = _top(best, deltas)
        return TOO_LARGE if top > _FURTHEST else pair_of_profile(deltas, top)


def _profile(best: _BestOfRuns) -> DeltaFunction | Unknown:
    """The smallest known delta at each epsilon. f' is at most the expected number of runs, and its
    ratio at most e^spread; so delta is at most this number times one run's delta at epsilon -
    spread. Renyi divergences, a pure epsilon, and the profile of ``most`` runs bound it too."""
    # 1. what bounds delta: one run, a Renyi curve, a pure epsilon, all runs composed
    one, ceiling = OneRun.of(best.privacy_loss), Ceiling.of(best.runs, best.most)
    curve = _curve(best)
    if isinstance(curve, Unknown):
        return curve
    spread, often = widest_spread(best.runs, one), ceiling.mean
    renyi, failure = Conversion(curve.found), ball(best.failure_probability())
    pure = best.approximate()
    composed = None
    if 0 < best.most <= _MOST_RUNS:
        composed = profile(best.most * best.privacy_loss, float(_LEAST))

    # 2. the smallest of them at each epsilon
    def deltas(epsilons: Sequence[Fraction]) -> list[Fraction]:
        left = [lower_fraction(ball(epsilon) - spread) for epsilon in epsilons]
        asked = [rest for rest in left if rest >= 0]
        answers = iter(one.deltas(asked) if asked else ())
        of_one = [often * next(answers) if rest >= 0 else arb(1) for rest in left]
        return list(map(least_delta, epsilons, of_one))

    def least_delta(epsilon: Fraction, of_one: arb) -> Fraction:
        found = [upper_fraction(least([arb(1), renyi.delta(epsilon) + failure, of_one]))]
        if not isinstance(pure, Unknown) and pure[0] <= epsilon:
            found.append(pure[1])
        if composed is not None:
            found.append(fraction(composed.delta(epsilon)))
        return min(found)

    return deltas


def _top(best: _BestOfRuns, deltas: DeltaFunction) -> Fraction:
    """An epsilon above which delta no longer falls, or is negligible."""
    pure = best.approximate()
    if not isinstance(pure, Unknown):
        return pure[0]
    top = Fraction(1)
    least = _ENOUGH * max(*deltas([Fraction(_FURTHEST)]), _LEAST)
    while top < _FURTHEST and deltas([top])[0] > least:
        top *= 2
    return top
