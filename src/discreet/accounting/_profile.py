"""The privacy profile of a loss: its delta as a function of epsilon, as an upper bound."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._exact import Number, float_up, fraction
from discreet.accounting import _bounds, _html, _pairs, _theorems
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting.pld._continuous import Floats
from discreet.accounting.pld._distribution import NothingLeft, closely
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._tilt import Counted, Look, aim_at_delta, aim_at_epsilon

_LEAST = 1e-12
_NEAR = 1e-6
_LEVELS = (0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
_FURTHER = 1e3  # from one level to the next below these
_POINTS = 97
_FEW_POINTS = 33  # where each is a search over Renyi orders
_TOLERANCE = 3e-4
_TAIL = 1e-20
_LAST = 1e-12  # for the rounding of the last steps
_ROWS = 8
_DIGITS = 3


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
          1     0.00685
        1.5    0.000396
          2    9.55e-06
        2.5    9.23e-08
          3    3.49e-10
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
        """How far it reaches: the numbers are many."""
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
    if not isinstance(_bounds.mu_squared(loss), Unknown):
        return _pointwise(loss, _spread(end, _POINTS))
    orders = _pairs.own_pairs(loss, Side.UPPER)
    if isinstance(orders, Unknown):
        return _pointwise(loss, _spread(end, _FEW_POINTS))
    epsilons = _spread(end, _POINTS)
    deltas = np.max([_by_distribution(order, epsilons, least) for order in orders], axis=0)
    whole = _bounds.approximate(loss)
    if not isinstance(whole, Unknown):
        deltas[[fraction(one) >= whole[0] for one in epsilons.tolist()]] = float_up(whole[1])
    return _falling(epsilons.tolist(), deltas.tolist())


def _pointwise(loss: Sum, epsilons: Floats) -> Profile:
    points = epsilons.tolist()
    return _falling(points, [_theorems.delta(loss, fraction(one)) for one in points])


def _falling(epsilons: Sequence[float], deltas: Sequence[float]) -> Profile:
    """The profile through these points: no delta is larger than one before it."""
    return Profile(tuple(epsilons), tuple(np.minimum.accumulate(deltas).tolist()))


def _end(loss: Sum, least: float) -> float:
    """An epsilon at which delta is tiny, or hardly above where it stays."""
    whole = _bounds.approximate(loss)
    if not isinstance(whole, Unknown):  # where a sum of fixed epsilons comes near, it ends there
        end = float_up(whole[0])
        if end <= 1.05 * _theorems.epsilon(loss, fraction(_NEAR)) < math.inf:
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


def _spread(end: float, points: int) -> Floats:
    return np.linspace(0.0, end, points) if end else np.zeros(1)


def _levels(least: float) -> list[float]:
    """Deltas to aim at, from large to small, the last of them being the least."""
    levels = [level for level in _LEVELS if level > least]
    while levels and levels[-1] > least * _FURTHER:
        levels.append(levels[-1] / _FURTHER)
    return [*levels, least]


def _by_distribution(order: Counted, epsilons: Floats, least: float) -> Floats:
    """For one order of the neighbours: each delta by the looks that aim just below and above it."""
    if not order:
        return np.zeros(len(epsilons))
    look = Look.at(order, min(_TAIL, least * _TAIL / _LEAST))
    if look.is_too_far:
        return np.ones(len(epsilons))
    far = [aim_at_delta(look, level) for level in _levels(least)]
    near = aim_at_epsilon(look, far[-1].epsilon / 16)  # closer to 0 a look takes long, for little
    aims = [near]
    for aim in far:
        if aim.epsilon > aims[-1].epsilon + epsilons[-1] / _POINTS:
            aims.append(aim)
    try:
        laws = [closely(look, aim, _TOLERANCE, Side.UPPER) for aim in aims]
    except NothingLeft:
        return np.ones(len(epsilons))
    places = np.searchsorted([aim.epsilon for aim in aims], epsilons).tolist()
    found = [
        min(law.delta(math.nextafter(one, 0.0)) for law in laws[max(0, at - 1) : at + 1])
        for one, at in zip(epsilons.tolist(), places, strict=True)
    ]
    return np.minimum(np.array(found) * (1 + _LAST), 1.0)


def _round_step(end: float) -> Fraction:
    """A round distance of which some eight go into the range."""
    if not end:
        return Fraction(0)
    power = Fraction(10) ** math.floor(math.log10(end / _ROWS))
    return min((power * n for n in (1, 2, 5, 10)), key=lambda step: abs(end / float(step) - _ROWS))
