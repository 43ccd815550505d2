"""The choice of a grid: its step, and the widths of each piece's cells.

Any choice gives bounds. A grid is fine enough if it hardly changes the moment of the tilted law.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray, IndexArray
from discreet.accounting.pld._continuous import FINEST_STEP, UNDERFLOW_GUARD
from discreet.accounting.pld._discretize import (
    Cells,
    Points,
    discretize_lower,
    discretize_upper,
    log_moments,
    log_moments_of,
)
from discreet.accounting.pld._dominating_pairs import Pair, Side
from discreet.accounting.pld._tilt import CoarseGroup, CoarsePld, Tilt
from discreet.accounting.pld._tilted_sum import LARGEST

_REFINEMENTS = 4  # each at least halves the step, and most sums need one or none
_FINEST = 8  # least number of steps in a standard deviation
_UPPER_WINDOW, _LOWER_WINDOW = 16.0, 24.0  # standard deviations that a window must be able to hold
_WIDER = 1.5  # root mean square of the cells' widths, in steps
_NEGLIGIBLE = 30.0  # -ln of a negligible share of the tilted law
_MOST_CELLS = 1 << 20  # of one piece
_WIDEST = 2.0  # largest width of a cell, in cells of the coarse grid
_RARE = 20.0  # -ln of a share of the tilted law below which cells may be wider than `bend` allows
_LEAST_SHARE = 1e-18  # least share of the tilted law that a cell counts as having
_DEEPEST = 2.0**52  # steps below 0
_STEEPEST = 500.0  # an exponent times a step: its exponential is a number
_BEND = 0.02  # of cells that serve several tilts

CountedPoints = list[tuple[Points, int]]


class NoFiniteMass(Exception):
    """A discretized pair has no mass at finite losses."""


def discretized(
    coarse: CoarsePld, tilt: Tilt, tolerance: float, side: Side
) -> tuple[CountedPoints, float]:
    """All pairs on one grid, and the tilt's exponent, capped so that floats suffice.

    The relative error of an epsilon near the tilt's is about the tolerance.
    """
    # 1. Guess a step. Floating point and the window's size limit how fine it can be.
    size = max(tilt.epsilon, tilt.stddev / 64)
    square = 8 * tolerance * size / ((tilt.exponent + 1) * coarse.count)
    step = min(math.sqrt(square) / _WIDER, max(tilt.stddev / _FINEST, tolerance * size / 4))
    widest = _UPPER_WINDOW if side is Side.UPPER else _LOWER_WINDOW
    finest = max(widest * tilt.stddev / LARGEST, coarse.largest * FINEST_STEP) or 1.0

    # 2. Refine the step until the grid hardly moves the moment.
    for _ in range(_REFINEMENTS):
        step = _on_lattice(max(step, finest), [pair for pair, _ in coarse.pairs])
        points, moved = _at_step(coarse, tilt, _Fineness.at(tilt, step, tolerance), side)
        if moved <= 1.5 * tolerance * size or step <= finest:
            break
        step *= max(min(tolerance * size / moved, 0.5), 1 / 64)
    if not all(float(one.mass.sum()) > 0 for one, _ in points):
        raise NoFiniteMass
    return points, min(tilt.exponent, _STEEPEST / points[0][0].step)


def on_common_grid(
    coarse: CoarsePld, exponents: Sequence[float], step: float, side: Side, *, least: float
) -> CountedPoints:
    """All pairs on one grid that is fine wherever one of the tilted laws has mass. Below the loss
    ``least``, each piece may be a single cell."""
    step = _on_lattice(step, [pair for pair, _ in coarse.pairs])
    fineness = _Fineness(0.0, _BEND, (_WIDER * step) ** 2, step)
    offset_at = min((one for one in exponents if one > 0), default=0.0)
    points: CountedPoints = []
    for group in coarse.groups:
        share, widest = _of_all(group, exponents)
        if side is Side.UPPER:
            edges = fineness.edges(group, share.max(axis=0), widest.min(axis=0), least)
            found = discretize_upper(group.whole, _cells(group, edges, step), step)
            points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
            continue
        for (pair, count), one, wide in zip(group.pairs, share, widest, strict=True):
            edges = fineness.edges(group, one, wide, least)
            points.append((discretize_lower(pair, edges, step, offset_at), count))
    return points


def _of_all(group: CoarseGroup, exponents: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """For each pair and cell: the largest share of the mass in one of the tilted laws, and the
    distance by which the mass may be moved up in all of them."""
    most, widest = np.zeros(group.mass.shape), np.full(group.mass.shape, math.inf)
    for exponent in exponents:
        share = group.tilted(exponent)[1]
        most = np.maximum(most, share)
        rare = -np.log(np.maximum(share, UNDERFLOW_GUARD))
        moved = _BEND + np.maximum(rare - _RARE, 0) / 2
        widest = np.minimum(widest, moved / (1 + max(exponent, 0.0)))
    return most, widest


def _at_step(
    coarse: CoarsePld, tilt: Tilt, fineness: "_Fineness", side: Side
) -> tuple[CountedPoints, float]:
    """All pairs on a grid of this fineness, and about how far the grid moves epsilon."""
    on_grid = _upper if side is Side.UPPER else _lower
    points: CountedPoints = []
    moved = 0.0
    for group in coarse.groups:
        found, error = on_grid(group, fineness)
        points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
        moved += float(group.counts @ np.abs(error))
    return points, moved / max(tilt.exponent, UNDERFLOW_GUARD)


def _upper(group: CoarseGroup, fineness: "_Fineness") -> tuple[list[Points], FloatArray]:
    """Discretize similar pairs from above, on the same points.

    Also returns the error of ln of each pair's moment.
    """
    log_moment, share = group.tilted(fineness.tilt)
    mean = group.counts @ share / group.counts.sum()
    edges = fineness.edges(group, mean, fineness.widest(mean), fineness.least(log_moment))
    cells = _cells(group, edges, fineness.step)
    found = discretize_upper(group.whole, cells, fineness.step)
    exact = log_moments(group.whole, cells, fineness.tilt)
    return found, log_moments_of(found, fineness.tilt) - exact


def _lower(group: CoarseGroup, fineness: "_Fineness") -> tuple[list[Points], FloatArray]:
    """Discretize similar pairs from below, each on its own points. Errors are as in `_upper`."""
    found, errors = [], []
    for (pair, _), log_moment, share in zip(group.pairs, *group.tilted(fineness.tilt), strict=True):
        edges = fineness.edges(group, share, fineness.widest(share), fineness.least(log_moment))
        one = discretize_lower(pair, edges, fineness.step, fineness.tilt)
        both = zip(pair.pieces, edges, strict=True)
        cells = [Cells.of(piece, each, fineness.step) for piece, each in both]
        exact = log_moments(pair, cells, fineness.tilt)
        found.append(one)
        errors.append(float((log_moments_of([one], fineness.tilt) - exact)[0]))
    return found, np.array(errors)


def _cells(group: CoarseGroup, edges: Sequence[IndexArray], step: float) -> list[Cells]:
    both = zip(group.whole.pieces, edges, strict=True)
    return [Cells.of(piece, each, step) for piece, each in both]


def upper_ends(coarse: CoarsePld) -> list[tuple[Points, int]]:
    """All pairs from above with one cell for each piece. The ends are exact."""
    step = coarse.largest * 2.0**-20 or 1.0
    points: CountedPoints = []
    for group in coarse.groups:
        ends = [(math.floor(e[0] / step), math.ceil(e[-1] / step)) for _, e in group.pieces]
        cells = _cells(group, [np.array(end) for end in ends], step)
        found = discretize_upper(group.whole, cells, step)
        points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
    return points


@dataclass(frozen=True, slots=True)
class _Fineness:
    """The wanted fineness of cells: the mean square of their widths under the tilted law, the
    largest effect of one cell on a curve that falls by e^(-tilt loss), and the grid's step."""

    tilt: float
    bend: float
    square: float
    step: float

    @staticmethod
    def at(tilt: Tilt, step: float, tolerance: float) -> "_Fineness":
        """The fineness that the tolerance needs at this tilt."""
        bend = min(math.sqrt(4 * tolerance * (1 + tilt.exponent * max(tilt.epsilon, 0.0))), 0.5)
        return _Fineness(tilt.exponent, bend, (_WIDER * step) ** 2, step)

    def least(self, log_moment: FloatArray) -> float:
        """A loss below which the tilted laws with these moments have negligible mass."""
        return (float(np.min(log_moment)) - _NEGLIGIBLE) / max(self.tilt, UNDERFLOW_GUARD)

    def widest(self, share: FloatArray) -> FloatArray:
        """The distance by which each cell's mass may be moved up."""
        rare = -np.log(np.maximum(share, UNDERFLOW_GUARD))
        return np.asarray(self.bend * (1 + np.maximum(rare - _RARE, 0)) / (1 + self.tilt))

    def edges(
        self, group: CoarseGroup, share: FloatArray, widest: FloatArray, least: float
    ) -> list[IndexArray]:
        """Edges of cells for each piece, in steps, from the tilted law's shares and the largest
        widths of cells. One cell is enough below the least loss."""
        return [
            self._of_piece(edges, share[part], widest[part], least)
            for edges, part in ((e, slice(at, at + len(e) - 1)) for at, e in group.pieces)
        ]

    def _of_piece(
        self, edges: FloatArray, share: FloatArray, widest: FloatArray, least: float
    ) -> IndexArray:
        """Edges of one piece. Cells are finer where the tilted law has more mass, so that few cells
        reach the wanted mean square. Widths are powers of 2 times the step."""
        # 1. Leave out losses below the least one.
        first = min(max(int(np.searchsorted(edges, least)) - 1, 0), len(edges) - 2)
        least = max(least, -_DEEPEST * self.step)
        edges, share = np.maximum(edges[first:], least), share[first:]

        # 2. Wanted widths: density^(-1/3) gives the least mean square for a number of cells.
        width = np.maximum(np.diff(edges), UNDERFLOW_GUARD)
        total = max(float(share.sum()), UNDERFLOW_GUARD)
        density = np.maximum(share, _LEAST_SHARE * total) / width
        wish = density ** (-1 / 3)
        wish *= math.sqrt(self.square / max(float(share @ wish**2), UNDERFLOW_GUARD))
        wish = np.minimum(wish, np.minimum(widest[first:], _WIDEST * width))
        while float((width / np.maximum(wish, self.step)).sum()) > _MOST_CELLS:
            wish = 2 * np.maximum(wish, self.step)

        # 3. Runs of coarse cells that want the same width are divided evenly.
        level = np.floor(np.log2(np.maximum(wish / self.step, 1.0))).astype(np.int64)
        changes = np.flatnonzero(np.diff(level)) + 1
        parts = []
        for start, stop in zip([0, *changes], [*changes, len(level)], strict=True):
            stride = 1 << int(level[start])
            low = math.floor(edges[start] / (self.step * stride))
            high = math.ceil(edges[stop] / (self.step * stride))
            parts.append(stride * np.arange(low, high + 1, dtype=np.int64))
        found = np.sort(np.concatenate(parts))
        found = found[np.append(True, np.diff(found) > 0)]
        return found if len(found) > 1 else np.append(found, found[-1:] + 1)


def _on_lattice(step: float, pairs: Sequence[Pair]) -> float:
    """A step, at most the given one, that divides the losses of all atoms. If no common divisor is
    known, or it is much finer, the given step."""
    lattices = [pair.lattice for pair in pairs if len(pair.atoms.loss)]
    spacings = [spacing for spacing in lattices if spacing is not None]
    if not spacings or len(spacings) < len(lattices):
        return step
    whole = math.lcm(*(one.denominator for one in spacings))
    common = Fraction(math.gcd(*(int(one * whole) for one in spacings)), whole)
    if float(common) > step and not any(pair.pieces for pair in pairs):
        return float(common)  # every loss is on the grid
    parts = math.ceil(float(common) / step)
    if parts > 1:
        return float(common / parts)
    return float(common) if float(common) * _FINEST > step else step
