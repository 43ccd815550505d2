"""The best of a secret, random number of runs: the laws of this number, and bounds on the cost.

One private mechanism runs K times, and the best outcome is shown. The law of K enters by its
generating function f(x) = E[x^K] and its mean, and by its single probabilities if there is a
ceiling. The probability of an outcome is that of one run times a
mean of f' at probabilities q, and for two neighbours the privacy loss of one run bounds the ratio
f'(q) / f'(q'). docs/proofs/terms.md has the argument, under "Tuned".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice

import numpy as np
from flint import arb

from discreet import _checks
from discreet._bisection import halved
from discreet._exact import (
    ball,
    decimal_down,
    decimal_up,
    fraction,
    lower_fraction,
    precision,
    upper_fraction,
)
from discreet.accounting import _bounds, _theorems
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting._pairs import ORDERS, whole_pairs
from discreet.accounting._profile import quick_deltas
from discreet.accounting._renyi import Curve
from discreet.accounting.pld._distribution import float_below
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Side
from discreet.errors import InvalidArgument

_DIGITS = 12
_ROUNDING = 1e-9  # of a sum of floats
_STEPS = 14  # of a bisection, down to one part in 10^4
_DIGITS_OF_GAMMA, _BITS_OF_GAMMA = 15, 56
_BITS = 256
_LARGEST = 10**6


# Laws of the number of runs


def shape(**named: object) -> Fraction:
    """One named shape of `NegativeBinomial`: above -1, and small enough for balls."""
    if -1 < (exact := _checks.finite(**named)) <= _LARGEST:
        return exact
    raise InvalidArgument(f"{next(iter(named))}: give a number above -1 and up to 10^6")


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """P(k) proportional to (1 - gamma)^k Gamma(k + eta) / k! for k from 1 on, with eta above -1.
    Eta 1 is the geometric law, eta 0 the logarithmic one; at gamma 1 there is one run."""

    eta: Fraction
    gamma: Fraction

    @staticmethod
    def of_mean(eta: Fraction, mean: Fraction) -> "NegativeBinomial":
        """The law with this mean, which is at least 1; the mean may be rounded up a little."""
        if eta == 1:
            return NegativeBinomial(eta, 1 / mean)

        def is_enough(gamma: Fraction) -> bool:
            return bool(NegativeBinomial(eta, gamma).mean() >= ball(mean))

        low = high = Fraction(1)
        with precision(_BITS):
            while not is_enough(low):
                low, high = low / 2, low
            found, _ = halved(is_enough, low, high, _BITS_OF_GAMMA if low < high else 0)
        return NegativeBinomial(eta, decimal_down(found, _DIGITS_OF_GAMMA))

    def chances(self) -> Iterator[arb]:
        """The probabilities of 0, 1, 2, ... runs."""
        yield arb(0)
        gamma, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.gamma == 1:
            chance = arb(1)
        elif self.eta == 0:
            chance = -rest / gamma.log()
        else:
            chance = ball(self.eta) * rest / (-ball(self.eta) * gamma.log()).expm1()
        runs = 1
        while True:
            yield chance
            chance *= rest * ball((runs + self.eta) / (runs + 1))
            runs += 1

    def mean(self) -> arb:
        """The expected number, eta (1 - gamma) / (gamma (1 - gamma^eta))."""
        if self.gamma == 1:
            return arb(1)
        if self.eta == 1:
            return ball(1 / self.gamma)
        gamma, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.eta == 0:
            return -rest / gamma / gamma.log()
        return -ball(self.eta) * rest / gamma / (ball(self.eta) * gamma.log()).expm1()

    def generating(self, x: arb) -> arb:
        """f(x) = ((1 - (1 - gamma) x)^-eta - 1) / (gamma^-eta - 1)."""
        if self.gamma == 1:
            return x
        logs = [-(1 - ball(1 - self.gamma) * each).log() for each in (x, arb(1))]
        if self.eta:
            logs = [(ball(self.eta) * each).expm1() for each in logs]
        return logs[0] / logs[1]

    def thinned(self, failure: Fraction) -> "NegativeBinomial":
        """The law, given that no run fails, if each one fails with this probability."""
        return NegativeBinomial(self.eta, 1 - (1 - self.gamma) * (1 - failure))


@dataclass(frozen=True, slots=True)
class Poisson:
    """P(k) = e^-mean mean^k / k!; there may be no run."""

    expected: Fraction

    def chances(self) -> Iterator[arb]:
        """The probabilities of 0, 1, 2, ... runs."""
        chance, runs = ball(-self.expected).exp(), 0
        while True:
            yield chance
            runs += 1
            chance *= ball(self.expected / runs)

    def mean(self) -> arb:
        """The expected number."""
        return ball(self.expected)

    def generating(self, x: arb) -> arb:
        """f(x) = e^(mean (x - 1))."""
        return (ball(self.expected) * (x - 1)).exp()

    def thinned(self, failure: Fraction) -> "Poisson":
        """The law, given that no run fails, if each one fails with this probability."""
        return Poisson(self.expected * (1 - failure))


Runs = NegativeBinomial | Poisson


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A law of runs with a ceiling: a number above the ceiling is drawn anew.

    ``none`` is the probability of no run and ``mean`` the expected number, both with the ceiling;
    ``within`` is the probability, before it, that no number has to be drawn anew.
    """

    none: arb
    within: arb
    mean: arb

    @staticmethod
    def of(runs: Runs, most: int) -> "Ceiling":
        """A ceiling of ``most`` runs; no ceiling if that is 0."""
        none = next(runs.chances())
        if not most:
            return Ceiling(none, arb(1), runs.mean())
        within = counted = arb(0)
        for number, chance in zip(range(most + 1), runs.chances(), strict=False):
            within += chance
            counted += number * chance
        return Ceiling(none / within, within.min(arb(1)), counted / within)

    def divergences(self, each: Iterable[tuple[Fraction, arb, arb]]) -> list[arb]:
        """The Renyi divergence of the best run at some orders, each with the divergence of one run
        and with the spread, a bound on ln f'(q) / f'(q')."""
        log_mean = self.mean.log()
        found = []
        for order, one_run, spread in each:
            power = ball(order - 1)
            grown = power * (one_run + spread) + log_mean
            found.append((grown + (self.none * (-grown).exp()).log1p()) / power)
        return found


# Bounds on one run


@dataclass(frozen=True, slots=True)
class OneRun:
    """The privacy loss of one run, which fails with the probability ``failure``.

    ``curve`` and ``epsilon`` bound its Renyi divergences and its largest loss if it doesn't fail.
    Each is ``None`` if no bound is known.
    """

    loss: Sum
    failure: Fraction
    curve: Curve | None = field(compare=False)  # follows from the others, as does the next one
    epsilon: Fraction | None = field(compare=False)

    @staticmethod
    def of(loss: Sum) -> "OneRun":
        """Bounds that hold with failures counted in."""
        curve = None if _bounds.failure_probability(loss) else _curve(loss)
        return OneRun(loss, Fraction(0), curve, _pure(loss, Fraction(0)))

    @staticmethod
    def apart_from_failures(loss: Sum) -> "OneRun":
        """Bounds apart from failures, as for Renyi divergences."""
        failure = _bounds.failure_probability(loss)
        return OneRun(loss, failure, _curve(loss), _pure(loss, failure))

    def delta(self, epsilon: Fraction) -> arb:
        """A bound on delta at this epsilon, which is at least 0."""
        return self.deltas([epsilon])[0]

    def deltas(self, epsilons: Sequence[Fraction]) -> list[arb]:
        """`delta` at each epsilon; hundreds take little longer than one for many terms."""
        wholes = _deltas(self.loss, epsilons)
        return list(map(self._least_delta, epsilons, wholes))

    def _least_delta(self, epsilon: Fraction, whole: arb) -> arb:
        # Failures may hide what other outcomes show: delta may be larger without them than with.
        failure = ball(self.failure)
        found = [arb(1), (whole + ball(epsilon).exp() * failure) / (1 - failure)]
        if self.epsilon is not None:
            rest = -(ball(epsilon) - ball(self.epsilon)).expm1()
            found.append((rest / (1 + (-ball(self.epsilon)).exp())).max(arb(0)))
        return least(found)

    def at(self, order: Fraction) -> arb:
        """The Renyi divergence at this order; infinite if none is known."""
        return arb("inf") if self.curve is None else self.curve(order)


def _deltas(loss: Sum, epsilons: Sequence[Fraction]) -> list[arb]:
    """The deltas of the loss, in a way that is quick for many epsilons: by the atoms of a single
    term's pair, or by distributions that serve all epsilons."""
    if pairs := _atoms(loss):
        return [max(_hockey_stick(atoms, epsilon) for atoms in pairs) for epsilon in epsilons]
    quick = quick_deltas(loss)(np.array([float_below(epsilon) for epsilon in epsilons]))
    return [
        arb(found) if found < 1 else ball(fraction(_theorems.delta(loss, epsilon)))
        for epsilon, found in zip(epsilons, quick.tolist(), strict=True)
    ]


@lru_cache(maxsize=64)
def _atoms(loss: Sum) -> tuple[Atoms, ...]:
    if sum(count for _, count in loss.terms) != 1:
        return ()
    pairs = whole_pairs(loss, Side.UPPER)
    if isinstance(pairs, Unknown) or any(pair.pieces for pair in pairs):
        return ()
    return tuple(pair.atoms for pair in pairs)


def _hockey_stick(atoms: Atoms, epsilon: Fraction) -> arb:
    """The sum of (P - e^epsilon Q)+, rounded up."""
    level = float_below(epsilon)
    finite = atoms.loss[np.isfinite(atoms.loss)]
    loss_error = ATOM * (1 + float(np.abs(finite).max(initial=0.0)) + level)
    gap = -np.expm1(np.minimum(level - atoms.loss - loss_error, 0.0))
    return arb(min(1.0, float((atoms.p * gap).sum()) * (1 + _ROUNDING)))


def _curve(loss: Sum) -> Curve | None:
    curve = _bounds.renyi_curve(loss)
    return None if isinstance(curve, Unknown) else cache(curve)


def _pure(loss: Sum, failure: Fraction) -> Fraction | None:
    """The epsilon of the loss, if its delta is at most this failure probability."""
    whole = _bounds.approximate(loss)
    return None if isinstance(whole, Unknown) or whole[1] > failure else whole[0]


def least(bounds: Iterable[arb]) -> arb:
    """The smallest of the finite bounds; infinite if there are none."""
    found = arb("inf")
    for bound in bounds:
        if bound.is_finite() and not bound.upper() >= found:
            found = bound.upper()
    return found


# Bounds on the spread, ln f'(q) / f'(q'), by the privacy loss of one run


def pure_spread(runs: Runs, epsilon: Fraction, most: int = 0) -> arb:
    """The spread if one run is epsilon-private. The best test then tells the two laws apart with
    odds e^epsilon to 1 on either side. With a ceiling f' is a sum; docs/proofs/terms.md says why
    the same test is the best one then."""
    if most:
        high = (1 + (-ball(epsilon)).exp()) ** -1
        return (_slope(runs, most, high) / _slope(runs, most, 1 - high)).log()
    if isinstance(runs, Poisson):
        return ball(runs.expected) * (ball(epsilon) / 2).tanh()
    least, odds = ball(runs.gamma), (-ball(epsilon)).exp()
    return ball(1 + runs.eta) * ((1 + least * odds) / (least + odds)).log()


def _slope(runs: Runs, most: int, x: arb) -> arb:
    """The sum of k P(k) x^(k - 1) over at most this number of runs."""
    found, power = arb(0), arb(1)
    for number, chance in zip(range(1, most + 1), islice(runs.chances(), 1, None), strict=False):
        found += number * chance * power
        power *= x
    return found


def widest_spread(runs: Runs, one: OneRun) -> arb:
    """The spread for all outcomes."""
    if isinstance(runs, Poisson):
        return ball(runs.expected) * one.delta(Fraction(0))
    return _negative_binomial_spread(runs, one)


def spreads(runs: Runs, most: int, one: OneRun, orders: Sequence[Fraction]) -> list[arb]:
    """For each order, the spread that serves its divergence, with a ceiling of ``most`` runs."""
    if isinstance(runs, Poisson):  # Papernot and Steinke (2022), Theorem 6, at a ceiling's slope
        slope = _relative_slope(runs, most)
        deltas = one.deltas([_near_zero(order, slope) for order in orders])
        return [ball(runs.expected) * delta for delta in deltas]
    return [_negative_binomial_spread(runs, one)] * len(orders)


def _relative_slope(runs: Poisson, most: int) -> arb:
    """f''(1) / f'(1) over the mean without a ceiling: P(K <= most - 2) / P(K <= most - 1)."""
    if not most:
        return arb(1)
    below, fewer = arb(0), arb(0)
    for chance in islice(runs.chances(), most):
        fewer, below = below, below + chance
    return fewer / below


def _near_zero(order: Fraction, slope: arb) -> Fraction:
    """ln(1 + slope / (order - 1)), rounded down."""
    return max(Fraction(0), lower_fraction((slope / ball(order - 1)).log1p()))


@lru_cache(maxsize=64)
def _negative_binomial_spread(runs: NegativeBinomial, one: OneRun) -> arb:
    """The smallest of three bounds: `pure_spread`; Theorem 2 of Papernot and Steinke (2022), as
    sharp as its proof allows; and (1 + eta) epsilon for an epsilon at which the delta of one run is
    at most (e^epsilon - 1) gamma / (1 - gamma), as in Koskela, Redberg and Wang (2024)."""
    power, gamma = ball(1 + runs.eta), ball(runs.gamma)
    if runs.gamma == 1:
        return arb(0)
    found = [-power * gamma.log()]
    if one.epsilon is not None:
        found.append(pure_spread(runs, one.epsilon))
    for order in ORDERS:
        grown = (ball(order - 1) * one.at(order)).exp()
        found.append(power * ((gamma + (1 - gamma) * grown).log() - gamma.log()) / ball(order))
    bound = least(found)

    def is_enough(epsilon: Fraction) -> bool:
        return bool(one.delta(epsilon) <= ball(epsilon).expm1() * gamma / (1 - gamma))

    most = decimal_up(upper_fraction(bound / power), _DIGITS)
    return bound.min(power * ball(halved(is_enough, most, Fraction(0), _STEPS)[0]))
