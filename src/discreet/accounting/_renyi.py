"""Renyi divergences: from a curve to epsilon, to delta and to a dominating pair, and back.

A curve gives a bound on the Renyi divergence of each order above 1, as a ball. All functions run
inside a `precision` block, unless they open their own.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb

from discreet._arrays import log_sums
from discreet._bisection import smallest_whole
from discreet._exact import ball, fraction, precision, upper_fraction
from discreet.accounting._bounds import Bounds, Unknown
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._dominating_pairs import ATOM, Pair

_BITS = 256
_LOWEST_LOG_ORDER, _HIGHEST_LOG_ORDER = -20, 60  # of an order less 1
_LATTICE = 32  # orders of a lattice while the order less 1 grows e-fold
_NO_ORDER = Unknown("no Renyi divergence is known at any order")

Curve = Callable[[Fraction], arb]


# From a curve to numbers


def log_conversion(order: Fraction) -> arb:
    """ln c of an order a, c being (a-1)^(a-1) / a^a: a Renyi divergence R of that order gives
    delta = c e^((a-1)(R - epsilon)) (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    a = ball(order)
    return (a - 1) * (a - 1).log() - a * a.log()


def epsilon_from_curve(curve: Curve, delta: Fraction) -> Fraction | Unknown:
    """An epsilon at this delta, by an order near the best one."""

    def epsilon(order: Fraction) -> arb:
        return curve(order) + (log_conversion(order) - ball(delta).log()) / ball(order - 1)

    with precision(_BITS):
        found = epsilon(_best_order(epsilon))
        return max(Fraction(0), upper_fraction(found)) if found.is_finite() else _NO_ORDER


def delta_from_curve(curve: Curve, epsilon: Fraction) -> Fraction:
    """A delta at this epsilon, by an order near the best one; at most 1."""

    def log_delta(order: Fraction) -> arb:
        return log_conversion(order) + ball(order - 1) * (curve(order) - ball(epsilon))

    with precision(_BITS):
        least = log_delta(_best_order(log_delta))
        return upper_fraction(least.exp()) if least < 0 else Fraction(1)


def quick_deltas_from_curve(curve: Curve) -> Callable[[Fraction], Fraction]:
    """`delta_from_curve` for many epsilons: by orders of a lattice, each asked once, since a curve
    takes long to compute."""

    @cache
    def line(place: int) -> tuple[arb, arb]:
        """ln delta is the first number minus the second one times epsilon."""
        order = _order(place / _LATTICE)
        fall = ball(order - 1)
        return log_conversion(order) + fall * curve(order), fall

    def height(place: int, epsilon: float) -> float:
        start, fall = line(place)
        return float(start) - float(fall) * epsilon if start.is_finite() else math.inf

    def delta(epsilon: Fraction) -> Fraction:
        at = float(epsilon)

        def is_past(place: int) -> bool:
            """Whether the least height is here or before: heights fall, then rise."""
            return not height(place + 1, at) < height(place, at)

        low, high = _LOWEST_LOG_ORDER * _LATTICE, _HIGHEST_LOG_ORDER * _LATTICE
        with precision(_BITS):
            start, fall = line(smallest_whole(is_past, low, high))
            least = start - fall * ball(epsilon)
            return upper_fraction(least.exp()) if least < 0 else Fraction(1)

    return delta


def _best_order(cost: Curve) -> Fraction:
    """An order near which the cost is least, by golden section. Any order gives a bound."""
    low, high = float(_LOWEST_LOG_ORDER), float(_HIGHEST_LOG_ORDER)
    golden = (math.sqrt(5) - 1) / 2

    def at(log_order: float) -> arb:
        value = cost(_order(log_order))
        return value.mid() if value.is_finite() else arb("inf")

    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = at(left), at(right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = at(right)
    return _order((low + high) / 2)


def _order(log_order: float) -> Fraction:
    return 1 + Fraction(math.exp(log_order))


def between_whole_orders(order: Fraction, log_moment: Callable[[int], arb]) -> arb:
    """A bound on the Renyi divergence of an order. ``log_moment`` is (order - 1) times the
    divergence of a whole order; it is convex, so chords between whole orders bound it."""
    low = math.floor(order)
    share = ball(order - low)
    moment = (1 - share) * log_moment(low)
    if order != low:
        moment += share * log_moment(low + 1)
    return moment / ball(order - 1)


# Pure mechanisms: one bit reported truly with odds e^epsilon to 1 is the worst of them in every
# Renyi divergence (Kairouz, Oh and Viswanath 2015, Theorem 3.3 with delta 0)


def randomized_response_renyi(epsilon: Fraction, order: Fraction) -> arb:
    """The Renyi divergence of one bit reported truly with odds exp(epsilon) to 1.

    With p = e^eps / (1 + e^eps): ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) / (a - 1).
    The larger of the two powers is taken out of the logarithm, so that nothing overflows.
    """
    a, eps = ball(order), ball(epsilon)
    sum_of_powers = ((1 - 2 * a) * eps).exp().log1p() - (-eps).exp().log1p()
    return eps + sum_of_powers / (a - 1)


def at_most_pure(term: Bounds, order: Fraction, found: arb) -> arb:
    """The smaller of the bound ``found`` and the bit's for the term's own epsilon."""
    whole = term.approximate()
    if isinstance(whole, Unknown) or whole[1] > term.failure_probability():
        return found
    return found.min(randomized_response_renyi(whole[0], order))


# Pairs that consist of atoms only, apart from infinite losses


def log_moment(pair: Pair, order: Fraction) -> Fraction:
    """ln of the sum of p (p/q)^(order - 1) over a pair's finite losses, rounded up: (order - 1)
    times its Renyi divergence apart from `infinite_probability`."""
    atoms, power = pair.atoms, float(order - 1)
    finite = np.isfinite(atoms.loss) & (atoms.p > 0)
    loss, log_p = atoms.loss[finite], np.log(atoms.p[finite])
    found = float(log_sums(log_p + power * loss))
    largest = float(np.abs(loss).max(initial=0.0))
    size = power * largest + float(np.abs(log_p).max(initial=0.0))
    error = ATOM * power * largest + ROUND * (16 * size + 4 * len(loss) + 16) + ATOM
    return max(fraction(math.nextafter(found + error, math.inf)), Fraction(0))


def infinite_probability(pair: Pair) -> Fraction:
    """The probability of an infinite loss, rounded up."""
    infinite = float(pair.atoms.p[pair.atoms.loss == np.inf].sum())
    return fraction(infinite * (1 + ATOM)) if infinite else Fraction(0)
