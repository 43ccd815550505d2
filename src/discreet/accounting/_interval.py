"""Two proven ends for an epsilon: what all mechanisms with some terms satisfy, and what one of
them does not beat."""

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from discreet._exact import float_up
from discreet.accounting import _html, _knowledge
from discreet.accounting._analytic import gaussian_attained
from discreet.accounting._loss import PrivacyLoss
from discreet.accounting._theorems import best_epsilon, upper_epsilon
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._distribution import ONE_SIDE, float_below
from discreet.accounting.pld._dominating_pairs import Side, highest
from discreet.errors import NoBound

_FINENESS = (1.0, 1 / 4, 1 / 32, 1 / 256)  # of the tolerance, tried until the ends are close
_STALLED = 0.9  # of the gap: ends that come no closer than this are of different mechanisms
_LAST = 1e-12  # for the rounding of the last steps
_AGREEMENT = 1e-9  # how far the two ends may cross by rounding alone


@dataclass(frozen=True, slots=True)
class Interval:
    """Proven ends for an epsilon, and how close they were wanted, relatively."""

    lower: float
    upper: float
    tolerance: float

    @property
    def width(self) -> float:
        """How far the ends are apart; 0 if both are infinite."""
        return self.upper - self.lower if self.upper > self.lower else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether the ends are farther apart than was wanted."""
        if math.isinf(self.upper):
            return not math.isinf(self.lower)
        return self.width > self.tolerance * self.upper

    def __str__(self) -> str:
        """One line in words."""
        if math.isinf(self.lower):
            return "proven: infinite"
        told = f"proven: between {self.lower:.7g} and {self.upper:.7g}"
        return f"{told} (wide: no closer ends were found)" if self.is_wide else told

    def _repr_html_(self) -> str:
        return _html.interval(self)


def interval(loss: PrivacyLoss, delta: Fraction, tolerance: Fraction) -> Interval:
    """Proven ends for the smallest epsilon at this delta, computed ever more closely."""
    aim, gap = float(tolerance), math.inf
    lower, upper = 0.0, best_epsilon(loss, delta)
    for fineness in _FINENESS:
        lower = max(lower, attained(loss, delta, aim * fineness))
        if math.isinf(lower) or upper - lower <= aim * upper or upper - lower > _STALLED * gap:
            break
        gap = upper - lower
        with suppress(NoBound):
            upper = min(upper, float_up(upper_epsilon(loss, delta, aim * fineness)))
    assert lower <= upper * (1 + _AGREEMENT), "a lower end above the upper one"
    return Interval(min(lower, upper), upper, aim)


def attained(loss: PrivacyLoss, delta: Fraction, tolerance: float) -> float:
    """An epsilon that some mechanism with these terms reaches, as far as one is known."""
    with suppress(NoBound):
        return gaussian_attained(_knowledge.gaussian(loss), delta)
    try:
        orders = _knowledge.pairs(loss, Side.LOWER)
    except NoBound:
        return 0.0
    if delta:
        level = math.nextafter(float_below(delta), 1.0)
        part = tolerance * ONE_SIDE
        found = max(_distribution.epsilon(order, level, part, Side.LOWER) for order in orders)
    else:
        found = max(sum(count * highest(pair) for pair, count in order) for order in orders)
    return max(0.0, found * (1 - _LAST))
