"""The privacy profile of a loss, and the trade-off between the errors of any test.

The profile is delta as a function of epsilon, as an upper bound. A test guesses whether one unit
was in the data. Its type I error is to claim a unit that was not there, and its type II error is to
miss one that was. A trade-off function bounds the type II error from below, given the type I error
(Dong, Roth and Su 2022). It follows from the profile.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet import _checks, _html
from discreet._arrays import FloatArray
from discreet._exact import Number, float_up, fraction
from discreet.accounting import _bounds, _pairs, _theorems
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting.pld._continuous import UNDERFLOW_GUARD
from discreet.accounting.pld._distribution import ProfileLaw
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._tilt import CountedPairs
from discreet.errors import InvalidArgument

_LEAST = 1e-12
_TINIEST = 1e-20
_DELTA_NEAR_THE_END = 1e-6  # its epsilon shows whether a sum of fixed epsilons comes near its end
_NEARBY = 1.25  # ratio of two epsilons up to which one may replace the other
_HARDLY_MORE = 1 + Fraction(1, 1000)
_MOST_DELTA = 1 - Fraction(1, 10**6)
_LEVELS = (0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
_FURTHER = 1e3  # from one level to the next below these
_POINTS = 97
_FEW_POINTS = 33  # if each is a search over Renyi orders
_MOST_POINTS = 1000
_REFINEMENTS = 6
_LARGEST = 300.0  # the exponential's square is a number
_CHORD = 0.003  # largest relative distance of a chord from delta
_LAST = 1e-12  # relative rounding error of the last steps
_ROWS = 8
_DIGITS = 3

_ROUND = 2.0**-48  # bound on the relative rounding error of an error of a test
_LARGEST_POWER = 700.0  # whose exponential is still a float
_TYPE_ONES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
_DIGITS_OF_ERRORS = 4


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """For each epsilon a proven delta, rounded up: the loss is (epsilon, delta)-DP for all of
    them.

    ``epsilons`` rise from 0 to where delta is about 1e-12 (or what was asked for), or no longer
    falls; ``deltas`` fall.

    >>> from discreet.accounting import Gaussian
    >>> profile = (1 * Gaussian(2)).profile()
    >>> print(profile)
    epsilon       delta
          0       0.198
        0.5      0.0525
          1     0.00684
        1.5    0.000395
          2    9.45e-06
        2.5    9.07e-08
          3    3.41e-10
    >>> profile.delta(1.25) < 0.00184
    True
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    def delta(self, epsilon: Number) -> float:
        """A delta, rounded up, for any epsilon.

        Between two points that is the chord: delta is convex as a function of e^epsilon, being the
        mean of (p/q - e^epsilon)+. Beyond the last point delta falls no more here.
        """
        exact = _checks.not_negative(epsilon=epsilon)
        given = float(exact)
        at = bisect_right(self.epsilons, given) - 1
        if fraction(self.epsilons[at]) > exact:
            at -= 1
        if at == len(self.epsilons) - 1:
            return self.deltas[-1]
        start, end = self.epsilons[at : at + 2]
        width, reached = end - start, max(0.0, given - start - 4 * math.ulp(end))
        share = math.exp(reached - width) * math.expm1(-reached) / math.expm1(-width)
        fall = self.deltas[at] - self.deltas[at + 1]
        return min(self.deltas[at], (self.deltas[at] - share * (1 - _LAST) * fall) * (1 + _LAST))

    def table(self) -> list[tuple[float, float]]:
        """A few round epsilons and their deltas."""
        step = _round_step(self.epsilons[-1])
        if not step:
            return [(0.0, self.deltas[0])]
        rounded = (float(n * step) for n in range(2 * _ROWS))
        return [(one, self.delta(one)) for one in rounded if one <= self.epsilons[-1]]

    def __repr__(self) -> str:
        """Its range alone: the numbers are many."""
        return f"Profile({len(self.epsilons)} epsilons from 0 to {self.epsilons[-1]:.4g})"

    def __str__(self) -> str:
        """One line an epsilon, for a few round ones."""
        rows = [f"{'epsilon':>7}{'delta':>12}"]
        return "\n".join(
            rows + [f"{one:>7g}{_html.up(delta, _DIGITS):>12}" for one, delta in self.table()]
        )

    def _repr_html_(self) -> str:
        rows = [(f"{one:g}", _html.up(delta, _DIGITS)) for one, delta in self.table()]
        return _html.table("Privacy profile", ("epsilon", "delta"), rows)


def profile(loss: Sum, least: float = _LEAST) -> Profile:
    """The loss's profile, by the theorems that give the smallest deltas, to where delta is about
    ``least``."""
    end = _end(loss, least)
    points = _spread(end, _POINTS).tolist()
    if not isinstance(_bounds.mu_squared(loss), Unknown):
        return _refined(lambda epsilon: _theorems.delta(loss, fraction(epsilon)), points)
    found = _Deltas.of(loss, least, end)
    if isinstance(found, Unknown):
        return _pointwise(loss, _spread(end, _FEW_POINTS))
    if least < found.spent < 1 and end < (last := _failure_reached(loss, found.whole, found.spent)):
        points.append(last)
    return _refined(found.delta, points)


@lru_cache(maxsize=256)
def quick_deltas(loss: Sum) -> Callable[[FloatArray], FloatArray]:
    """A bound on delta at each of any epsilons, for sums of which many deltas are needed.

    It is about as close as `PrivacyLoss.delta`, apart from deltas below 1e-12 next to the largest
    loss of a pure sum.
    """
    found = _Deltas.of(loss, _TINIEST, _end(loss, _TINIEST), _pairs.pairs)
    if not isinstance(found, Unknown) and _bounds.is_attained(loss):
        return found.deltas
    other = _theorems.quick_delta(loss)  # which may improve on distributions here

    def deltas(epsilons: FloatArray) -> FloatArray:
        others = np.array([other(fraction(one)) for one in epsilons.tolist()])
        return others if isinstance(found, Unknown) else np.minimum(found.deltas(epsilons), others)

    return deltas


_PairsOf = Callable[[Sum, Side], list[CountedPairs] | Unknown]


@dataclass(frozen=True, slots=True)
class _Deltas:
    """Bounds on delta from distributions, one for each direction. From the epsilon ``whole``
    on, delta is ``spent``."""

    laws: tuple[ProfileLaw, ...]
    whole: float
    spent: float

    @staticmethod
    def of(
        loss: Sum, least: float, end: float, pairs_of: "_PairsOf" = _pairs.own_pairs
    ) -> "_Deltas | Unknown":
        """Precise from epsilon 0 to the end, where delta is about ``least``."""
        directions = pairs_of(loss, Side.UPPER)
        if isinstance(directions, Unknown):
            return directions
        laws = tuple(ProfileLaw.of(each, _levels(least), end / _POINTS) for each in directions)
        basic = _bounds.approximate(loss)
        if isinstance(basic, Unknown):
            return _Deltas(laws, math.inf, 1.0)
        whole = float_up(basic[0])
        spent = _theorems.delta(loss, fraction(whole)) if math.isfinite(whole) else 1.0
        return _Deltas(laws, whole, spent)

    def delta(self, epsilon: float) -> float:
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """`delta` at each epsilon."""
        below = np.nextafter(epsilons, 0.0)
        each = np.array([law.deltas(below) for law in self.laws])  # (direction, epsilon)
        worst = np.where(epsilons > 0, each.max(0), each.min(0))  # at 0 both are the same
        return np.where(epsilons >= self.whole, self.spent, worst * (1 + _LAST))


def _pointwise(loss: Sum, epsilons: FloatArray) -> Profile:
    points = epsilons.tolist()
    return _falling(points, [_theorems.delta(loss, fraction(one)) for one in points])


def _refined(delta: Callable[[float], float], epsilons: list[float]) -> Profile:
    """The profile through these points and others between them, until chords lie close above."""
    deltas = [min(1.0, delta(one)) for one in epsilons]
    for _ in range(_REFINEMENTS):
        wide = _wide(np.array(epsilons), np.array(deltas))
        if not wide or len(epsilons) > _MOST_POINTS:
            break
        added = [(epsilons[at] + epsilons[at + 1]) / 2 for at in wide]
        more = [min(1.0, delta(one)) for one in added]
        points = sorted(zip(epsilons + added, deltas + more, strict=True))
        epsilons, deltas = [one for one, _ in points], [one for _, one in points]
    return _falling(epsilons, deltas)


def _wide(epsilons: FloatArray, deltas: FloatArray) -> list[int]:
    """Intervals in whose middle the chord may lie too far above delta. The estimate is a quarter
    of the distance of the chord over two intervals from their common point."""
    if len(epsilons) < 3:
        return []
    rise = np.exp(np.minimum(np.diff(epsilons), _LARGEST))  # of e^epsilon, over each interval
    share = (1 - 1 / rise[:-1]) / (rise[1:] - 1 / rise[:-1])  # of the middle point
    chord = deltas[:-2] + share * (deltas[2:] - deltas[:-2])
    is_wide = (chord - deltas[1:-1]) > 4 * _CHORD * np.maximum(deltas[1:-1], UNDERFLOW_GUARD)
    both = np.append(is_wide, False) | np.append(False, is_wide)
    return np.flatnonzero(both & (deltas[:-1] > deltas[1:] * (1 + _CHORD))).tolist()


def _falling(epsilons: Sequence[float], deltas: Sequence[float]) -> Profile:
    """The profile through these points, in which no delta exceeds an earlier one."""
    return Profile(tuple(epsilons), tuple(np.minimum.accumulate(deltas).tolist()))


def _end(loss: Sum, least: float) -> float:
    """An epsilon at which delta is about ``least``, or close to its limit."""
    whole = _bounds.approximate(loss)
    if not isinstance(whole, Unknown):  # where a sum of fixed epsilons comes near, it ends there
        end = float_up(whole[0])
        if end <= 1.05 * _theorems.epsilon(loss, fraction(_DELTA_NEAR_THE_END)) < math.inf:
            return end
    found = _theorems.epsilon(loss, fraction(least))
    low, high = math.log(least), 0.0
    while math.isinf(found) or (high - low > 0.1 and high < 0.0):
        middle = (low + high) / 2
        tried = _theorems.epsilon(loss, fraction(math.exp(middle)))
        if high - low < 1e-3:
            return 1.0  # there is no such epsilon: any range shows it
        low, high, found = (low, middle, tried) if math.isfinite(tried) else (middle, high, found)
    return found


def _failure_reached(loss: Sum, whole: float, failure: float) -> float:
    """An epsilon at which hardly more than the failure is left: the whole epsilon, or a smaller one
    if that is far below. 0 if both are too large."""
    near = _theorems.epsilon(loss, min(fraction(failure) * _HARDLY_MORE, _MOST_DELTA))
    found = whole if whole <= _NEARBY * near else near
    return found if found < _LARGEST else 0.0


def _spread(end: float, points: int) -> FloatArray:
    return np.linspace(0.0, end, points) if end else np.zeros(1)


def _levels(least: float) -> list[float]:
    """Falling deltas to aim at; the last one is ``least``."""
    levels = [level for level in _LEVELS if level > least]
    while levels and levels[-1] > least * _FURTHER:
        levels.append(levels[-1] / _FURTHER)
    return [*levels, least]


def _round_step(end: float) -> Fraction:
    """A round distance, about an eighth of the range."""
    if not end:
        return Fraction(0)
    power = Fraction(10) ** math.floor(math.log10(end / _ROWS))
    return min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(end / float(step) - _ROWS))


# Trade-off functions


@dataclass(frozen=True, slots=True, repr=False)
class TradeOff:
    """For each type I error, the least type II error of any attack, rounded down.

    It holds for every attacker, whatever they know of the other units, and in either order of the
    neighbours: ``type_two`` is its own inverse. It is made from ``epsilons`` and ``deltas``.
    ``advantage`` is the largest difference of a test's true and false positive rates.

    >>> from discreet.accounting import Gaussian
    >>> errors = (1 * Gaussian(1)).trade_off()
    >>> print(errors)
    type I error   type II error
           0.001          0.9816
            0.01          0.9076
            0.05          0.7404
             0.1          0.6107
            0.25          0.3722
             0.5          0.1585
    >>> round(errors.advantage, 6)
    0.382925
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    @property
    def advantage(self) -> float:
        """The largest amount, rounded up, by which 1 exceeds the sum of the two errors."""
        return self.deltas[0]

    def type_two(self, type_one: Number) -> float:
        """The least type II error, rounded down, of a test with this type I error or less."""
        given = _checks.not_negative(type_one=type_one)
        if given > 1:
            raise InvalidArgument(f"type_one = {type_one}: give a probability, from 0 to 1")
        above = float(given)
        if Fraction(above) < given:
            above = math.nextafter(above, 1.0)
        return float(self._least(np.array([above]))[0])

    def curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Type I errors at which the bound bends, in order, and the type II errors there."""
        slopes = np.exp(np.minimum(self.epsilons, _LARGEST_POWER))
        with np.errstate(divide="ignore", invalid="ignore"):
            bends = -np.diff(self.deltas) / np.diff(slopes)
        bends = bends[(bends > 0) & (bends < 1)]
        mirrored = self._least(bends)
        ones = np.unique(np.concatenate([[0.0, 1.0, 1 - self.deltas[-1]], bends, mirrored]))
        return tuple(ones.tolist()), tuple(self._least(ones).tolist())

    def table(self) -> list[tuple[float, float]]:
        """A few type I errors with their type II errors."""
        return [(one, self.type_two(one)) for one in _TYPE_ONES]

    def _least(self, type_one: FloatArray) -> FloatArray:
        """The largest of the lines that each (epsilon, delta) puts below the errors (Wasserman and
        Zhou 2010; Dong, Roth and Su 2022, Proposition 2.5), in both directions."""
        delta = np.array(self.deltas)[:, None]  # (epsilon, type I error)
        epsilon = np.array(self.epsilons)[:, None]
        power = np.where(delta > 0, np.nextafter(1 - delta, 0.0), 1.0)
        odds = np.where(
            epsilon < _LARGEST_POWER, np.exp(np.minimum(epsilon, _LARGEST_POWER)), np.inf
        )
        with np.errstate(invalid="ignore"):
            lost = np.where(type_one > 0, odds * type_one * (1 + _ROUND), 0.0)
        steep = np.where(lost > 0, np.nextafter(power - lost, -1.0), power)
        rest = np.where(type_one > 0, np.nextafter(power - type_one, -1.0), power)
        flat = np.exp(-epsilon) * rest * np.where(epsilon > 0, 1 - _ROUND, 1.0)
        return np.asarray(np.maximum(np.maximum(steep, flat).max(axis=0), 0.0))

    def __repr__(self) -> str:
        """Its advantage alone: the numbers are many."""
        return f"TradeOff(advantage {self.advantage:.4g})"

    def __str__(self) -> str:
        """One line a type I error, for a few of them."""
        rows = [f"{'type I error':>12}{'type II error':>16}"]
        rows += [f"{one:>12g}{_html.down(two, _DIGITS_OF_ERRORS):>16}" for one, two in self.table()]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        rows = [(f"{one:g}", _html.down(two, _DIGITS_OF_ERRORS)) for one, two in self.table()]
        return _html.table("Trade-off of errors", ("type I error", "least type II error"), rows)


def trade_off(loss: Sum) -> TradeOff:
    """The errors that the loss leaves to any test, by its privacy profile."""
    known = profile(loss)
    return TradeOff(known.epsilons, known.deltas)
