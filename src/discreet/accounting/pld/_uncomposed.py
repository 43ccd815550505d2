"""The law of a single loss, and its privacy profile: by plain sums, no transform."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from discreet._arrays import FloatArray
from discreet.accounting.pld._continuous import ROUND, Piece
from discreet.accounting.pld._dominating_pairs import ATOM, Pair, Side, sign_of

_TAIL = 1e-280
_BISECTIONS = 60
_CLOSE = 1e-10  # relative distance at which a bisection ends


@dataclass(frozen=True, slots=True)
class UncomposedPld:
    """Law of one loss, as a bound from one side.

    ``loss`` rises and has the probabilities ``mass``; both are moved to that side by their rounding
    errors. ``infinite`` is the mass at infinity, and ``pieces`` are the smooth parts.
    """

    side: Side
    loss: FloatArray
    mass: FloatArray
    infinite: float
    pieces: tuple[Piece, ...] = ()

    @staticmethod
    def of_pair(pair: Pair, side: Side) -> "UncomposedPld":
        """The law of a pair's loss, its pieces as they are."""
        atoms, sign = pair.atoms, sign_of(side)
        is_finite = np.isfinite(atoms.loss) & (atoms.p > 0)
        loss, mass = atoms.loss[is_finite], atoms.p[is_finite]
        order = np.argsort(loss)
        moved = sign * ATOM * float(np.abs(loss).max(initial=0.0))
        infinite = float(atoms.p[atoms.loss == np.inf].sum()) * (1 + sign * ATOM)
        mass = mass[order] * (1 + sign * ATOM)
        return UncomposedPld(side, loss[order] + moved, mass, infinite, pair.pieces)

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound on delta equals ``delta``. From above, it is infinite if
        the mass at infinity alone exceeds ``delta``."""
        left = (delta - self.infinite) * (1 - self._relative_error)
        if left <= 0:
            return math.inf if self.side is Side.UPPER else max(0.0, self._largest())
        if self._finite(0.0) <= left:
            return 0.0
        if self.pieces:
            return self._by_bisection(left)
        place = bisect_left(self.loss, True, key=lambda loss: self._finite(float(loss)) <= left)
        loss = float(self.loss[place])
        above, behind = self.mass[place:], loss - self.loss[place:]
        share = (left - self._finite(loss)) / float((above * np.exp(behind)).sum())
        before = max(0.0, float(self.loss[place - 1])) if place else 0.0
        return max(before, loss + math.log1p(-share)) if share < 1 else before

    def delta(self, epsilon: float) -> float:
        """The bound on delta at this epsilon."""
        found = (self._finite(epsilon) + self.infinite) * (1 + self._relative_error)
        return min(1.0, max(found, 0.0))

    def _by_bisection(self, left: float) -> float:
        """An epsilon near which the finite losses' delta falls to ``left``: the end of the bracket
        that suits the side."""
        low, high = 0.0, max(self._largest(), 1.0)
        while self._finite(high) > left:
            low, high = high, 2 * high
            if high > _LARGEST_LOSS:
                return math.inf if self.side is Side.UPPER else low
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._finite(middle) > left else (low, middle)
            if high - low <= _CLOSE * high:
                break
        return high if self.side is Side.UPPER else low

    def _largest(self) -> float:
        """About the largest loss."""
        grids = (float(piece.coarse_grid(_TAIL)[-1]) for piece in self.pieces)
        return max([float(self.loss.max(initial=0.0)), *grids])

    def _finite(self, epsilon: float) -> float:
        """Delta of the finite losses."""
        above = int(np.searchsorted(self.loss, epsilon, side="right"))
        found = float((self.mass[above:] * -np.expm1(epsilon - self.loss[above:])).sum())
        return found + sum(self._of_piece(piece, epsilon) for piece in self.pieces)

    def _of_piece(self, piece: Piece, epsilon: float) -> float:
        """p - q e^epsilon of the outcomes whose loss is above epsilon."""
        if epsilon > _LARGEST_LOSS:
            return 0.0 if self.side is Side.LOWER else 1.0
        cells = piece.masses(np.array([epsilon]), np.zeros(1))
        gap, q = float(cells.gap[-1]), float(cells.q[-1])
        rise = math.expm1(epsilon)
        error = float(cells.gap_radius[-1]) + rise * float(cells.q_radius[-1])
        error += 8 * ROUND * (abs(gap) + rise * q)
        return max(0.0, gap - rise * q + sign_of(self.side) * error)

    @property
    def _relative_error(self) -> float:
        """Relative error of a sum of all masses, with the sign of the side."""
        return sign_of(self.side) * 2 * ROUND * (len(self.loss) + 16)


_LARGEST_LOSS = 600.0  # its exponential is a number
