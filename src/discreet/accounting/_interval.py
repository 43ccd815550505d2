"""Two proven ends for the epsilon of a privacy loss.

All mechanisms with its terms satisfy the upper end; one of them reaches the lower end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet import _html
from discreet._exact import float_up
from discreet.accounting import _bounds, _pairs
from discreet.accounting._analytic import gaussian_attained
from discreet.accounting._bounds import Sum, Unknown
from discreet.accounting._theorems import distribution_epsilon, epsilon
from discreet.accounting.pld import _distribution
from discreet.accounting.pld._distribution import SHARE_OF_ONE_SIDE, float_below
from discreet.accounting.pld._dominating_pairs import Side, highest

_FINENESS = (1.0, 1 / 4, 1 / 32, 1 / 256)  # parts of the tolerance, tried until ends are close
_STALLED = 0.9  # part of the last gap: if the new one is larger, the ends will not meet
_LAST = 1e-12  # relative rounding error of the last steps
_AGREEMENT = 1e-9  # relative distance by which rounding may make the ends cross


@dataclass(frozen=True, slots=True)
class Interval:
    """Proven ends for an epsilon, and the relative distance that was asked for; unpacks into the
    two ends."""

    lower: float
    upper: float
    tolerance: float

    def __iter__(self) -> Iterator[float]:
        """The lower end, then the upper one."""
        return iter((self.lower, self.upper))

    @property
    def width(self) -> float:
        """The distance of the ends; 0 if both are infinite."""
        return self.upper - self.lower if self.upper > self.lower else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether the ends are farther apart than was asked for."""
        if math.isinf(self.upper):
            return not math.isinf(self.lower)
        return self.width > self.tolerance * self.upper

    def __str__(self) -> str:
        """One line in words."""
        if math.isinf(self.lower):
            return "proven: infinite"
        ends = f"proven: between {self.lower:.7g} and {self.upper:.7g}"
        return f"{ends} (wide: no closer ends were found)" if self.is_wide else ends

    def _repr_html_(self) -> str:
        ends = "proven ends" if not self.is_wide else "proven ends, farther apart than was wanted"
        rows = [("at least", _html.down(self.lower)), ("at most", _html.up(self.upper))]
        return _html.table(f"epsilon: {ends}", (), rows)


def interval(loss: Sum, delta: Fraction, tolerance: Fraction) -> Interval:
    """Proven ends for the smallest epsilon at this delta, computed ever more closely."""
    aim, gap = float(tolerance), math.inf
    lower, upper = 0.0, epsilon(loss, delta)
    for fineness in _FINENESS:
        lower = max(lower, attained(loss, delta, aim * fineness))
        if math.isinf(lower) or upper - lower <= aim * upper or upper - lower > _STALLED * gap:
            break
        gap = upper - lower
        closer = distribution_epsilon(loss, delta, aim * fineness)
        if not isinstance(closer, Unknown):
            upper = min(upper, float_up(closer))
    assert lower <= upper * (1 + _AGREEMENT), "a lower end above the upper one"
    return Interval(min(lower, upper), upper, aim)


def attained(loss: Sum, delta: Fraction, tolerance: float) -> float:
    """An epsilon that some mechanism with these terms reaches, as far as one is known."""
    square = _bounds.mu_squared(loss)
    if not isinstance(square, Unknown):
        return gaussian_attained(square, delta)
    directions = _pairs.pairs(loss, Side.LOWER)
    if isinstance(directions, Unknown):
        return 0.0
    if delta:
        delta_above = math.nextafter(float_below(delta), 1.0)
        part = tolerance * SHARE_OF_ONE_SIDE
        found = max(
            _distribution.epsilon(direction, delta_above, part, Side.LOWER)
            for direction in directions
        )
    else:
        found = max(
            sum(count * highest(pair) for pair, count in direction) for direction in directions
        )
    return max(0.0, found * (1 - _LAST))
