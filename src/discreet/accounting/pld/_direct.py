"""Laws of a single loss and of sums of few short laws, by plain sums: no tilt, no transform.

All numbers are probabilities, so no digits cancel: each mass has a small relative error, however
small it is. A sum of n products in any order has a relative error of at most n + 1 times the
rounding unit.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet._arrays import FloatArray
from discreet.accounting.pld._continuous import ROUND, Piece, takes_rows
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import ATOM, Pair, Side, sign_of

_TAIL = 1e-280
_BISECTIONS = 60
_CLOSE = 1e-10  # relative distance at which a bisection ends
_LARGEST_LOSS = 600.0  # its exponential is a number, and times 1e-300 below 1e-39
_MOST_PRODUCTS = 1 << 24  # of two masses; more of them are left to tilted compositions
_MOST_LAWS = 32  # copies of one law, each convolved by itself
_UNDERFLOW = 1e-300  # bounds a product that no normal float holds; it hardly matters at any loss


# A single loss


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
        return float(self.deltas(np.array([epsilon]))[0])

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """`delta` at each epsilon; hundreds take little longer than one."""
        found = (self._finite_at(epsilons) + self.infinite) * (1 + self._relative_error)
        return np.clip(found, 0.0, 1.0)

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
        return float(self._finite_at(np.array([epsilon]))[0])

    def _finite_at(self, epsilons: FloatArray) -> FloatArray:
        found = np.array([self._of_atoms(epsilon) for epsilon in epsilons.tolist()])
        for piece in self.pieces:
            found += self._of_piece(piece, epsilons)
        return found

    def _of_atoms(self, epsilon: float) -> float:
        above = int(np.searchsorted(self.loss, epsilon, side="right"))
        return float((self.mass[above:] * -np.expm1(epsilon - self.loss[above:])).sum())

    def _of_piece(self, piece: Piece, epsilons: FloatArray) -> FloatArray:
        """p - q e^epsilon of the outcomes whose loss is above epsilon, for each epsilon."""
        if len(epsilons) > 1 and not takes_rows(piece):
            each = [self._of_piece(piece, epsilons[n : n + 1]) for n in range(len(epsilons))]
            return np.concatenate(each)
        edges = np.minimum(epsilons, _LARGEST_LOSS)
        rows = edges[:, np.newaxis] if len(edges) > 1 else edges  # (epsilon, 1) or (1,)
        cells = piece.masses(rows, np.zeros_like(rows))
        gap, q = cells.gap[..., -1], cells.q[..., -1]
        rise = np.array([math.expm1(edge) for edge in edges.tolist()])
        error = cells.gap_radius[..., -1] + rise * cells.q_radius[..., -1]
        error += 8 * ROUND * (np.abs(gap) + rise * q)
        found = np.maximum(0.0, gap - rise * q + sign_of(self.side) * error)
        return np.where(epsilons > _LARGEST_LOSS, float(self.side is Side.UPPER), found)

    @property
    def _relative_error(self) -> float:
        """Relative error of a sum of all masses, with the sign of the side."""
        return sign_of(self.side) * 2 * ROUND * (len(self.loss) + 16)


# Sums of few short laws


@dataclass(frozen=True, slots=True)
class SumMasses:
    """Bounds from one side on the masses of a sum at the indices from ``start`` on, and on its
    probabilities below and above them."""

    start: int
    mass: FloatArray
    below: float
    above: float


def convolved_directly(
    parts: Sequence[tuple[Points, int]], side: Side, window: tuple[int, int]
) -> SumMasses | None:
    """The masses of the sum on a window, given by its first index and its size; ``None`` if the
    laws are too many, too long, or have losses too large for this."""
    # 1. The range of indices with mass, and the work.
    ranges = []
    products, length, farthest = 0, 1, 0.0
    for points, count in parts:
        index = points.index[points.mass > 0]
        least, size = int(index.min()), int(index.max() - index.min()) + 1
        ranges.append((least, size))
        farthest += count * max(
            abs(points.offset + at * points.step) for at in (least, least + size)
        )
        if count > _MOST_LAWS or farthest > _LARGEST_LOSS:
            return None
        for _ in range(count):
            products, length = products + length * size, length + size
    if products > _MOST_PRODUCTS:
        return None

    # 2. Convolve.
    whole, first, relative_error = np.ones(1), 0, 0.0
    for (points, count), (least, size) in zip(parts, ranges, strict=True):
        has_mass = points.mass > 0
        law = np.bincount(points.index[has_mass] - least, points.mass[has_mass], size)
        for _ in range(count):
            relative_error += (min(len(whole), size) + len(points.index) + 2) * ROUND
            whole, first = np.convolve(whole, law), first + least

    # 3. Move the masses to the requested side by their rounding errors, and cut out the window.
    if side is Side.UPPER:
        whole = whole * (1 + 2 * relative_error) + _UNDERFLOW
    else:
        whole = np.maximum(whole * (1 - 2 * relative_error) - _UNDERFLOW, 0.0)
    start, size = window
    safe = 1 + sign_of(side) * 2 * (len(whole) + 2) * ROUND
    low, high = (min(max(place - first, 0), len(whole)) for place in (start, start + size))
    mass = np.zeros(size)
    at = first + low - start
    mass[at : at + high - low] = whole[low:high]
    below, above = (float(part.sum()) * safe for part in (whole[:low], whole[high:]))
    return SumMasses(start, mass, min(below, 1.0), min(above, 1.0))
