"""The best of a secret, random number of runs: bounds on its cost.

One private mechanism runs K times, and the best outcome is shown. The law of K enters by its
generating function f(x) = E[x^K] only. The probability of an outcome is that of one run times a
mean of f' at probabilities q, and for two neighbours the privacy loss of one run bounds the ratio
f'(q) / f'(q'). docs/proofs/terms.md has the argument, under "Tuned".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from flint import arb

from discreet._bisection import halved
from discreet._exact import (
    ball,
    decimal_up,
    fraction,
    lower_fraction,
    upper_fraction,
)
from discreet.accounting import _bounds, _theorems
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting._pairs import ORDERS, whole_pairs
from discreet.accounting._profile import quick_deltas
from discreet.accounting._renyi import Curve
from discreet.accounting.pld._distribution import float_below
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Side
from discreet.accounting.terms._run_counts import NegativeBinomial, Poisson, Runs

_DIGITS = 12
_ROUNDING = 1e-9  # of a sum of floats
_STEPS = 14  # of a bisection, down to one part in 10^4


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
        return [
            self._least_delta(e, ball(whole)) for e, whole in zip(epsilons, wholes, strict=True)
        ]

    def _least_delta(self, epsilon: Fraction, whole: arb) -> arb:
        failure = ball(self.failure)
        found = [arb(1), (whole + ball(epsilon).exp() * failure) / (1 - failure)]
        if self.epsilon is not None:
            rest = -(ball(epsilon) - ball(self.epsilon)).expm1()
            found.append((rest / (1 + (-ball(self.epsilon)).exp())).max(arb(0)))
        return least(found)

    def at(self, order: Fraction) -> arb:
        """The Renyi divergence at this order; infinite if none is known."""
        return arb("inf") if self.curve is None else self.curve(order)


def _deltas(loss: Sum, epsilons: Sequence[Fraction]) -> list[Fraction]:
    """The deltas of the loss, in a way that is quick for many epsilons: by the atoms of a single
    term's pair, or by distributions that serve all epsilons."""
    if pairs := _atoms(loss):
        return [max(_hockey_stick(atoms, epsilon) for atoms in pairs) for epsilon in epsilons]
    quick = quick_deltas(loss)
    known = np.ones(len(epsilons))
    if not isinstance(quick, Unknown):
        known = quick(np.array([float_below(epsilon) for epsilon in epsilons]))
    return [
        fraction(found if found < 1 else _theorems.delta(loss, epsilon))
        for epsilon, found in zip(epsilons, known.tolist(), strict=True)
    ]


@lru_cache(maxsize=64)
def _atoms(loss: Sum) -> tuple[Atoms, ...]:
    if sum(count for _, count in loss.terms) != 1:
        return ()
    pairs = whole_pairs(loss, Side.UPPER)
    if isinstance(pairs, Unknown) or any(pair.pieces for pair in pairs):
        return ()
    return tuple(pair.atoms for pair in pairs)


def _hockey_stick(atoms: Atoms, epsilon: Fraction) -> Fraction:
    """The sum of (P - e^epsilon Q)+, rounded up."""
    level = float_below(epsilon)
    finite = atoms.loss[np.isfinite(atoms.loss)]
    loss_error = ATOM * (1 + float(np.abs(finite).max(initial=0.0)) + level)
    gap = -np.expm1(np.minimum(level - atoms.loss - loss_error, 0.0))
    return min(Fraction(1), fraction(float((atoms.p * gap).sum()) * (1 + _ROUNDING)))


def _curve(loss: Sum) -> Curve | None:
    curve = _bounds.renyi_curve(loss)
    return None if isinstance(curve, Unknown) else curve


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


def spreads(runs: Runs, one: OneRun, orders: Sequence[Fraction]) -> list[arb]:
    """For each order, the spread that serves its divergence."""
    if isinstance(runs, Poisson):  # Papernot and Steinke (2022), Theorem 6
        deltas = one.deltas([_near_zero(order) for order in orders])
        return [ball(runs.expected) * delta for delta in deltas]
    return [_negative_binomial_spread(runs, one)] * len(orders)


def _near_zero(order: Fraction) -> Fraction:
    """ln(1 + 1 / (order - 1)), rounded down."""
    return max(Fraction(0), lower_fraction((1 / ball(order - 1)).log1p()))


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
