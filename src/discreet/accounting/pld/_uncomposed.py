"""The law of a single loss on a grid, and what it says of delta: by plain sums, no transform."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from discreet.accounting.pld._continuous import ROUND, Floats
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side


@dataclass(frozen=True, slots=True)
class Single:
    """A law as a bound from one side: rising losses, moved to that side by what rounding may do,
    their masses, and the mass at infinity."""

    side: Side
    loss: Floats
    mass: Floats
    infinite: float

    @staticmethod
    def of(points: Points, side: Side) -> "Single":
        """The law of these points."""
        order = np.argsort(points.index)
        loss, sign = points.loss[order], 1 if side is Side.UPPER else -1
        moved = 4 * ROUND * (np.abs(loss) + 2 * abs(points.offset))
        return Single(side, loss + sign * moved, points.mass[order], points.infinite)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound on delta is just this; from above, infinite if the mass
        at infinity alone is more."""
        left = (delta - self.infinite) * (1 - self._slip)
        if left <= 0:
            return math.inf if self.side is Side.UPPER else max(0.0, float(self.loss[-1]))
        if self._finite(0.0) <= left:
            return 0.0
        place = bisect_left(self.loss, True, key=lambda loss: self._finite(float(loss)) <= left)
        loss = float(self.loss[place])
        above, behind = self.mass[place:], loss - self.loss[place:]
        share = (left - self._finite(loss)) / float((above * np.exp(behind)).sum())
        before = max(0.0, float(self.loss[place - 1])) if place else 0.0
        return max(before, loss + math.log1p(-share)) if share < 1 else before

    def delta(self, epsilon: float) -> float:
        """The bound on delta at this epsilon."""
        return min(1.0, (self._finite(epsilon) + self.infinite) * (1 + self._slip))

    def _finite(self, epsilon: float) -> float:
        """The sum over the finite losses."""
        above = int(np.searchsorted(self.loss, epsilon, side="right"))
        return float((self.mass[above:] * -np.expm1(epsilon - self.loss[above:])).sum())

    @property
    def _slip(self) -> float:
        """What such a sum may be off by, relatively, to the side that is asked for."""
        size = 2 * ROUND * (len(self.loss) + 16)
        return size if self.side is Side.UPPER else -size
