"""Dominating pairs of whole sums: from the terms' own pairs, and from curves where they have none.

A profile, a trade-off curve and a Renyi curve each bound delta at all epsilons. The pair that has
just these deltas dominates every mechanism within the bounds (Zhu, Dong and Wang 2022,
Proposition 8), and it composes with the pairs of other terms.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise, starmap
from typing import TypeVar

import numpy as np
from flint import arb, fmpq

from discreet._bisection import halved
from discreet._exact import ball, precision, upper_fraction
from discreet.accounting import _bounds
from discreet.accounting._bounds import TOO_LARGE, Bounds, Sum, Unknown, on_grid
from discreet.accounting._renyi import Curve, log_conversion
from discreet.accounting.pld._composed_pair import composed_pair
from discreet.accounting.pld._dominating_pairs import Atoms, Pair, Side, normal, tells_nothing
from discreet.accounting.pld._tilt import CountedPairs

_BITS = 128
_POINTS = 240  # between epsilon 0 and the largest one of interest
_LEAST = Fraction(1, 10**20)  # points at smaller deltas are not needed
_ENOUGH = Fraction(101, 100)
_FURTHEST = 1 << 10
_HALVINGS = 6
_NEXT_TO_NOTHING = fmpq(1, 10**290)
_SUM_TOO_LARGE = Unknown("the losses of a sum that is sampled are too large for a grid")

# Orders at which a curve is converted: four between any two powers of 2, from 2^-10 to 2^30 + 1.
ORDERS = tuple(1 + Fraction(2) ** (step // 4) * (4 + step % 4) / 4 for step in range(-40, 121))

CurvePoint = tuple[Fraction, Fraction]  # an e^epsilon, and a delta there


# Sums


def pairs(loss: Sum, side: Side) -> list[CountedPairs] | Unknown:
    """The pairs of all terms with their counts: a list for each direction, or one for both.

    From above, the terms without pairs count together by the pair of their Renyi curve. From
    below they are left out: an attack may ignore them. `Unknown` if no term has a pair.
    """
    found, others, reason = _split(loss, side)
    if reason is None:
        return _by_direction(found)
    if not found:
        return reason
    if side is Side.UPPER:
        converted = _pair_of_terms(tuple(others))
        if isinstance(converted, Unknown):
            return reason
        found.append(((converted,), 1))
    return _by_direction(found)


def own_pairs(loss: Sum, side: Side) -> list[CountedPairs] | Unknown:
    """As `pairs`, but `Unknown` if any term has no pair of its own."""
    found, _, reason = _split(loss, side)
    return _by_direction(found) if reason is None else reason


def whole_pairs(loss: Sum, side: Side) -> tuple[Pair, ...] | Unknown:
    """One pair for the whole sum in each direction, or one pair for both directions."""
    directions = pairs(loss, side)
    if isinstance(directions, Unknown):
        return directions
    whole = on_grid(*(composed_pair(direction, side) for direction in directions))
    return _SUM_TOO_LARGE if isinstance(whole, Unknown) else whole


def _split(
    loss: Sum, side: Side
) -> tuple[list[tuple[tuple[Pair, ...], int]], list[tuple[Bounds, int]], Unknown | None]:
    """The known pairs with their counts, the terms without one, and the reason why the first of
    these has none. All Gaussian mechanisms together have one pair (Dong, Roth and Su 2022,
    Corollary 3.3)."""
    found: list[tuple[tuple[Pair, ...], int]] = []
    others: list[tuple[Bounds, int]] = []
    square, reason = Fraction(0), None
    for term, count in loss.terms:
        mu_squared = term.mu_squared()
        if not isinstance(mu_squared, Unknown):
            square += count * mu_squared
            continue
        both = term.pairs(side)
        if isinstance(both, Unknown):
            others.append((term, count))
            reason = reason or both
        else:
            found.append((both, count))
    if square:
        gaussian = on_grid(normal(square))
        if isinstance(gaussian, Unknown):
            return [], list(loss.terms), gaussian
        found.append((gaussian, 1))
    return found, others, reason


def _by_direction(known: Sequence[tuple[tuple[Pair, ...], int]]) -> list[CountedPairs]:
    known = [(both, n) for both, n in known if not all(tells_nothing(pair) for pair in both)]
    directions = max((len(both) for both, _ in known), default=1)
    return [
        [(both[min(n, len(both) - 1)], count) for both, count in known] for n in range(directions)
    ]


# Curves


@lru_cache(maxsize=64)
def _pair_of_terms(terms: tuple[tuple[Bounds, int], ...]) -> Pair | Unknown:
    """The pair of the sum of these terms' Renyi curves and failure probabilities."""
    whole = _Terms(terms)
    curve = _bounds.renyi_curve(whole)
    if isinstance(curve, Unknown):
        return curve
    return pair_of_curve(curve, _bounds.failure_probability(whole))


@dataclass(frozen=True, slots=True)
class _Terms:
    terms: tuple[tuple[Bounds, int], ...]


def pair_of_curve(curve: Curve, failure: Fraction = Fraction(0)) -> Pair | Unknown:
    """The pair that has the deltas of a Renyi curve, for both directions. The curve
    may fail with probability ``failure``."""
    with precision(_BITS):
        conversion = Conversion(map(curve, ORDERS))

        def delta(epsilon: Fraction) -> Fraction:
            return min(Fraction(1), upper_fraction(conversion.delta(epsilon)) + failure)

        top = _top(delta)
        return TOO_LARGE if top is None else pair_of_profile(lambda at: map(delta, at), top)


def _top(delta: Callable[[Fraction], Fraction]) -> Fraction | None:
    """An epsilon above which delta is negligible or hardly falls; ``None`` if there is none."""
    least = _ENOUGH * max(delta(Fraction(_FURTHEST)), _LEAST)
    low, high = Fraction(0), Fraction(1)
    while delta(high) > least:
        low, high = high, 2 * high
        if high > _FURTHEST:
            return None
    return halved(lambda epsilon: delta(epsilon) <= least, high, low, _HALVINGS)[0]


def pair_of_profile(
    deltas: Callable[[Sequence[Fraction]], Iterable[Fraction]], top: Fraction
) -> Pair:
    """The pair of a bound on delta in both directions, from its values at epsilons between 0 and
    the ``top``."""
    epsilons = [top * number / _POINTS for number in range(_POINTS + 1 if top else 1)]
    with precision(_BITS):
        falling = accumulate(deltas(epsilons), min, initial=Fraction(1))
        next(falling)  # 1 itself
        points = [
            (upper_fraction(ball(epsilon).exp()), least)
            for epsilon, least in zip(epsilons, falling, strict=True)
        ]
    return pair_through(points)


def pair_through(points: Sequence[CurvePoint]) -> Pair:
    """The pair whose delta in both directions, as a function of e^epsilon, is the
    lower hull of 1 at 0 and these points, whose e^epsilon rise from 1. It dominates all that have
    no larger delta at any point, since deltas are convex in e^epsilon."""
    exact = [_rational(point) for point in points]
    above = [(odds, delta) for odds, delta in exact if odds > 1]
    mirrored = [(1 / odds, 1 - (1 - delta) / odds) for odds, delta in reversed(above)]
    return _pair_below(mirrored + exact)


# Rationals of python-flint, which add and divide many times faster than fractions
_HullPoint = tuple[fmpq, fmpq]


def _rational(point: CurvePoint) -> _HullPoint:
    odds, delta = (fmpq(one.numerator, one.denominator) for one in point)
    return odds, delta


def _pair_below(points: Iterable[_HullPoint]) -> Pair:
    every = [(fmpq(0), fmpq(1)), *points]
    hull = [every[place] for place in lower_hull(every)]
    slopes = [*starmap(_slope, pairwise(hull)), fmpq(0)]
    turns = [(odds, slopes[n + 1] - slopes[n]) for n, (odds, _) in enumerate(hull[1:])]
    with precision(_BITS):
        atoms = [
            (float(arb(odds).log().mid()), _float(odds * turn), _float(turn))
            for odds, turn in turns
            if turn * min(odds, fmpq(1)) > _NEXT_TO_NOTHING
        ]
    infinite = _float(hull[-1][1] + len(turns) * _NEXT_TO_NOTHING)  # with all atoms left out above
    lowest = (-math.inf, 0.0, _float(1 + slopes[0]))
    return Pair(Atoms.of(*atoms, (math.inf, infinite, 0.0), lowest))


def _slope(one: _HullPoint, other: _HullPoint) -> fmpq:
    return (other[1] - one[1]) / (other[0] - one[0])


def _float(number: fmpq) -> float:
    """The nearest float."""
    return int(number.p) / int(number.q)


class Conversion:
    """The deltas that follow from the Renyi divergences of `ORDERS`. Any order gives a bound; the
    one that is best in floats is taken."""

    def __init__(self, divergences: Iterable[arb]) -> None:
        self._lines = [
            (constant + fall * divergence, fall)
            for (constant, fall), divergence in zip(_conversions(), divergences, strict=True)
            if divergence.is_finite()
        ]
        self._starts = np.array([float(start) for start, _ in self._lines])
        self._falls = np.array([float(fall) for _, fall in self._lines])

    def delta(self, epsilon: Fraction) -> arb:
        """A bound on delta at this epsilon; at most 1."""
        if not self._lines:
            return arb(1)
        start, fall = self._lines[np.argmin(self._starts - float(epsilon) * self._falls)]
        return (start - fall * ball(epsilon)).exp().min(arb(1))


@cache
def _conversions() -> list[tuple[arb, arb]]:
    """`log_conversion` and order - 1 for each of `ORDERS`: each conversion needs them all."""
    with precision(2 * _BITS):
        return [(log_conversion(order), ball(order - 1)) for order in ORDERS]


# The lower convex hull of points


_Coordinate = TypeVar("_Coordinate", float, Fraction, fmpq)


def lower_hull(points: Sequence[tuple[_Coordinate, _Coordinate]]) -> list[int]:
    """The places of the hull's corners among the points, whose first coordinates rise. A point on a
    chord between two others is no corner."""
    hull: list[int] = []
    for place, point in enumerate(points):
        while len(hull) > 1 and _is_above(points[hull[-2]], points[hull[-1]], point):
            hull.pop()
        hull.append(place)
    return hull


def _is_above(
    first: tuple[_Coordinate, _Coordinate],
    middle: tuple[_Coordinate, _Coordinate],
    last: tuple[_Coordinate, _Coordinate],
) -> bool:
    """Whether the middle point lies on the chord of the others, or above it."""
    rise, whole = middle[1] - first[1], last[1] - first[1]
    return rise * (last[0] - first[0]) >= whole * (middle[0] - first[0])
