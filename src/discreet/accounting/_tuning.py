"""The best of a secret, random number of runs: what is common to the terms that price it.

K runs are made of one private mechanism, and the best of their outcomes is shown. All that enters
of the law of K is its generating function f(x) = E[x^K]: an outcome's probability is that of one
run times a mean of f' at probabilities q, and for two neighbours f'(q) / f'(q') is bounded by what
one run can tell. docs/proofs/terms.md has the argument, under "Tuned".
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Protocol

import numpy as np
from flint import arb

from discreet import _checks
from discreet._exact import (
    ball,
    decimal_down,
    decimal_up,
    fraction,
    lower_fraction,
    precision,
    upper_fraction,
)
from discreet.accounting import _knowledge
from discreet.accounting._loss import PrivacyLoss
from discreet.accounting._sampling import whole_pairs
from discreet.accounting._theorems import best_delta
from discreet.accounting.pld._distribution import float_below
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Side
from discreet.errors import InvalidArgument, NoBound

_DIGITS = 12
_DIGITS_OF_GAMMA, _BITS_OF_GAMMA = 15, 56
_BITS = 256
_LAST = 1e-9  # for the rounding of a sum of floats
_LARGEST = 10**6
_STEPS = 14  # of a search: to one part in 10^4
ORDERS = tuple(1 + Fraction(2) ** (step // 4) * (4 + step % 4) / 4 for step in range(-40, 121))

Curve = Callable[[Fraction], arb]


def shape(**named: object) -> Fraction:
    """One named shape of `NegativeBinomial`: above -1, and not so large that balls lose it."""
    if -1 < (exact := _checks.finite(**named)) <= _LARGEST:
        return exact
    raise InvalidArgument(f"{next(iter(named))}: give a number above -1 and up to 10^6")


class Runs(Protocol):
    """The law of the number of runs."""

    def chances(self) -> Iterator[arb]:
        """The probabilities of 0, 1, 2, ... runs."""
        ...

    def mean(self) -> arb:
        """The expected number."""
        ...

    def generating(self, x: arb) -> arb:
        """f(x), the mean of x to the power of the number."""
        ...

    def thinned(self, leak: Fraction) -> "Runs":
        """The law, given that none of the runs did what each does with this probability."""
        ...


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """P(k) proportional to (1 - gamma)^k Gamma(k + eta) / k! for k from 1 on, eta being above -1;
    eta 1 is the geometric law, eta 0 the logarithmic one; at gamma 1 there is one run."""

    eta: Fraction
    gamma: Fraction

    @staticmethod
    def of_mean(eta: Fraction, mean: Fraction) -> "NegativeBinomial":
        """The law with this mean, which is at least 1, or by a hair more runs."""
        if eta == 1:
            return NegativeBinomial(eta, 1 / mean)
        low = high = Fraction(1)
        with precision(_BITS):
            while not NegativeBinomial(eta, low).mean() >= ball(mean):
                low, high = low / 2, low
            while high - low > low / 2**_BITS_OF_GAMMA:
                middle = (low + high) / 2
                is_enough = NegativeBinomial(eta, middle).mean() >= ball(mean)
                low, high = (middle, high) if is_enough else (low, middle)
        return NegativeBinomial(eta, decimal_down(low, _DIGITS_OF_GAMMA))

    def chances(self) -> Iterator[arb]:
        """Each from the one before it."""
        yield arb(0)
        kept, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.gamma == 1:
            chance = arb(1)
        elif self.eta == 0:
            chance = -rest / kept.log()
        else:
            chance = ball(self.eta) * rest / (-ball(self.eta) * kept.log()).expm1()
        runs = 1
        while True:
            yield chance
            chance *= rest * ball((runs + self.eta) / (runs + 1))
            runs += 1

    def mean(self) -> arb:
        """eta (1 - gamma) / (gamma (1 - gamma^eta))."""
        if self.gamma == 1:
            return arb(1)
        if self.eta == 1:
            return ball(1 / self.gamma)
        kept, rest = ball(self.gamma), ball(1 - self.gamma)
        if self.eta == 0:
            return -rest / kept / kept.log()
        return -ball(self.eta) * rest / kept / (ball(self.eta) * kept.log()).expm1()

    def generating(self, x: arb) -> arb:
        """((1 - (1 - gamma) x)^-eta - 1) / (gamma^-eta - 1)."""
        if self.gamma == 1:
            return x
        logs = [-(1 - ball(1 - self.gamma) * each).log() for each in (x, arb(1))]
        if self.eta:
            logs = [(ball(self.eta) * each).expm1() for each in logs]
        return logs[0] / logs[1]

    def thinned(self, leak: Fraction) -> "NegativeBinomial":
        """Every run counts (1 - leak) once more."""
        return NegativeBinomial(self.eta, 1 - (1 - self.gamma) * (1 - leak))


@dataclass(frozen=True, slots=True)
class Poisson:
    """P(k) = e^-mean mean^k / k!; there may be no run."""

    expected: Fraction

    def chances(self) -> Iterator[arb]:
        """Each from the one before it."""
        chance, runs = ball(-self.expected).exp(), 0
        while True:
            yield chance
            runs += 1
            chance *= ball(self.expected / runs)

    def mean(self) -> arb:
        """As given."""
        return ball(self.expected)

    def generating(self, x: arb) -> arb:
        """e^(mean (x - 1))."""
        return (ball(self.expected) * (x - 1)).exp()

    def thinned(self, leak: Fraction) -> "Poisson":
        """Every run counts (1 - leak) once more."""
        return Poisson(self.expected * (1 - leak))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a law of runs if a number above the ceiling is drawn anew: ``none`` and
    ``within`` are the probabilities of no run and of one within the ceiling, ``mean`` the
    expected number, all of the whole law, and ``share`` the part of that mean within it."""

    none: arb
    within: arb
    mean: arb
    share: arb

    @staticmethod
    def of(runs: Runs, most: int) -> "Kept":
        """Of this law and at most so many runs; without a ceiling at 0."""
        none, mean = next(runs.chances()), runs.mean()
        if not most:
            return Kept(none, arb(1), mean, arb(1))
        within = counted = arb(0)
        for number, chance in zip(range(most + 1), runs.chances(), strict=False):
            within += chance
            counted += number * chance
        return Kept(none, within.min(arb(1)), mean, (counted / mean).min(arb(1)))

    def divergence(self, order: Fraction, one_run: arb, spread: arb) -> arb:
        """The Renyi divergence of the best run, from one run's, and from a bound on what f'(q)
        over f'(q') is, as a logarithm."""
        power = ball(order - 1)
        grown = power * (one_run + spread - self.share.log()) + self.mean.log()
        other = (self.none * (-grown).exp()).log1p()
        return (grown + other - self.within.log()) / power


@dataclass(frozen=True, slots=True)
class Known:
    """Of one run: its privacy loss, of which this leak is set aside, and what is known of the
    rest: its Renyi curve, and its epsilon, if it is pure."""

    loss: PrivacyLoss
    leak: Fraction
    curve: Curve | None
    epsilon: Fraction | None

    @staticmethod
    def of(loss: PrivacyLoss) -> "Known":
        """With what leaks."""
        curve = None if _knowledge.leak(loss) else _curve(loss)
        return Known(loss, Fraction(0), curve, _pure(loss, Fraction(0)))

    @staticmethod
    def apart_from_leaks(loss: PrivacyLoss) -> "Known":
        """What Renyi divergences are of."""
        leak = _knowledge.leak(loss)
        return Known(loss, leak, _curve(loss), _pure(loss, leak))

    def delta(self, epsilon: Fraction) -> arb:
        """A bound on the probability that is left at this epsilon, from 0 on."""
        whole, leak = ball(_delta(self.loss, epsilon)), ball(self.leak)
        found = [arb(1), (whole + ball(epsilon).exp() * leak) / (1 - leak)]
        if self.epsilon is not None:
            rest = -(ball(epsilon) - ball(self.epsilon)).expm1()
            found.append((rest / (1 + (-ball(self.epsilon)).exp())).max(arb(0)))
        return least(found)

    def at(self, order: Fraction) -> arb:
        """The Renyi divergence of this order."""
        return arb("inf") if self.curve is None else self.curve(order)


def _delta(loss: PrivacyLoss, epsilon: Fraction) -> Fraction:
    """That of its pair, if it is a single term of atoms only, since it is asked for many times."""
    found = _atoms(loss)
    if not found:
        return fraction(best_delta(loss, epsilon))
    return max(_hockey_stick(atoms, epsilon) for atoms in found)


@lru_cache(maxsize=64)
def _atoms(loss: PrivacyLoss) -> tuple[Atoms, ...]:
    if sum(count for _, count in loss.terms) == 1:
        with suppress(NoBound):
            pairs = whole_pairs(loss, Side.UPPER)
            return () if any(pair.pieces for pair in pairs) else tuple(p.atoms for p in pairs)
    return ()


def _hockey_stick(atoms: Atoms, epsilon: Fraction) -> Fraction:
    """The sum of what P has more than e^epsilon times Q, rounded up."""
    level = float_below(epsilon)
    finite = atoms.loss[np.isfinite(atoms.loss)]
    doubt = ATOM * (1 + float(np.abs(finite).max(initial=0.0)) + level)
    gap = -np.expm1(np.minimum(level - atoms.loss - doubt, 0.0))
    return min(Fraction(1), fraction(float((atoms.p * gap).sum()) * (1 + _LAST)))


def _curve(loss: PrivacyLoss) -> Curve:
    return lambda order: _knowledge.renyi(loss, order)


def _pure(loss: PrivacyLoss, leak: Fraction) -> Fraction | None:
    """Its epsilon, if there is no delta but for the leak."""
    with suppress(NoBound):
        epsilon, delta = _knowledge.approximate(loss)
        return epsilon if delta <= leak else None
    return None


def least(bounds: Iterable[arb]) -> arb:
    """The smallest of some bounds; those that came out without end say nothing."""
    found = arb("inf")
    for bound in bounds:
        if bound.is_finite() and not bound.upper() >= found:
            found = bound.upper()
    return found


# What one run can tell of being better than others: bounds on ln f'(q) / f'(q')


def pure_spread(runs: Runs, epsilon: Fraction, most: int = 0) -> arb:
    """If one run is epsilon-private: the best test tells the two laws apart with odds e^epsilon
    to 1 on either side. With a ceiling f' is a sum; docs/proofs/terms.md says why the same test is
    the best one then."""
    if most:
        high = (1 + (-ball(epsilon)).exp()) ** -1
        return (_slope(runs, most, high) / _slope(runs, most, 1 - high)).log()
    match runs:
        case Poisson(mean):
            return ball(mean) * (ball(epsilon) / 2).tanh()
        case NegativeBinomial(eta, gamma):
            kept, odds = ball(gamma), (-ball(epsilon)).exp()
            return ball(1 + eta) * ((1 + kept * odds) / (kept + odds)).log()
    raise NoBound(f"nothing is known of {runs!r}")


def _slope(runs: Runs, most: int, x: arb) -> arb:
    """The sum of k P(k) x^(k - 1) over at most so many runs."""
    found, power = arb(0), arb(1)
    for number, chance in zip(range(1, most + 1), islice(runs.chances(), 1, None), strict=False):
        found += number * chance * power
        power *= x
    return found


def widest_spread(runs: Runs, known: Known) -> arb:
    """The bound for all that one run can tell."""
    match runs:
        case Poisson(mean):
            return ball(mean) * known.delta(Fraction(0))
        case NegativeBinomial():
            return _negative_binomial_spread(runs, known)
    raise NoBound(f"nothing is known of {runs!r}")


def spread_of(runs: Runs, known: Known) -> Curve:
    """The bound for the divergence of each order."""
    if isinstance(runs, Poisson):  # Papernot and Steinke (2022), Theorem 6
        mean = runs.expected
        return lambda order: ball(mean) * known.delta(_near_zero(order))
    widest = widest_spread(runs, known)
    return lambda _: widest


def _near_zero(order: Fraction) -> Fraction:
    """ln(1 + 1 / (order - 1)), rounded down."""
    return max(Fraction(0), lower_fraction((1 / ball(order - 1)).log1p()))


def _negative_binomial_spread(runs: NegativeBinomial, known: Known) -> arb:
    """The least of: what `pure_spread` says; Theorem 2 of Papernot and Steinke (2022), with what
    its proof leaves on the way; and (1 + eta) epsilon for an epsilon at which one run's delta is
    at most (e^epsilon - 1) gamma / (1 - gamma), as in Koskela, Redberg and Wang (2024)."""
    power, gamma = ball(1 + runs.eta), ball(runs.gamma)
    if runs.gamma == 1:
        return arb(0)
    found = [-power * gamma.log()]
    if known.epsilon is not None:
        found.append(pure_spread(runs, known.epsilon))
    for order in ORDERS:
        grown = (ball(order - 1) * known.at(order)).exp()
        found.append(power * ((gamma + (1 - gamma) * grown).log() - gamma.log()) / ball(order))
    bound = least(found)
    low, high = Fraction(0), decimal_up(upper_fraction(bound / power), _DIGITS)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if known.delta(middle) <= ball(middle).expm1() * gamma / (1 - gamma):
            high = middle
        else:
            low = middle
    return bound.min(power * ball(high))
