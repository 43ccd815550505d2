"""The smooth parts of a privacy loss's law: probabilities of intervals, with error bounds.

All numbers are floats and carry a radius, a bound on their error. The error bounds of SciPy's
functions are declared here and checked against balls by the tests. See docs/proofs/accountant.md.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from discreet._arrays import FloatArray

Each = float | FloatArray  # a number, or a column with one number for each of several pieces

ROUND = 2.0**-53
UNDERFLOW_GUARD = 1e-300  # above every underflow; avoids divisions by 0 and logarithms of 0
FINEST_STEP = 2.0**-36  # of the largest loss: indices stay far below 2^53
_GRID = 256  # losses on a coarse grid: enough for an estimate, and quick
_FINEST = 1e-8  # part of the width within which losses near an end count as one
_LOWEST_LOSS = -20.0  # losses before sampling that are lower nearly coincide after it
_OCTAVE = 2  # pieces are alike if their numbers agree to a quarter of an octave or so
_LEAST_SIGNED = 2.0**-40  # e^loss before sampling; nearer to 0, rounding hides its sign


@dataclass(frozen=True, slots=True)
class Masses:
    """Probabilities of cells: ``q`` under Q, and the ``gap`` p - q, each up to its radius. The
    first and the last cell are open to one side. Several pieces have a row each."""

    q: FloatArray
    gap: FloatArray
    q_radius: FloatArray
    gap_radius: FloatArray

    @property
    def p(self) -> FloatArray:
        return np.maximum(self.q + self.gap, 0.0)

    @property
    def p_radius(self) -> FloatArray:
        return self.q_radius + self.gap_radius + 2 * ROUND * self.q


class Piece(Protocol):
    """A part of the law of ln(p/q) that has no atoms."""

    def coarse_grid(self, tail: float) -> FloatArray:
        """About 256 rising losses that cover each law but for a probability of ``tail``."""

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """The cells between rising edges. ``edge_error`` bounds each edge's error."""


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """The loss of two normal laws of variance 1 whose means are mu apart: normal itself, with
    variance mu^2, and mean mu^2/2 under P and -mu^2/2 under Q. ``mu`` is right to 2^-52."""

    mu: Each

    def coarse_grid(self, tail: float) -> FloatArray:
        """Evenly spaced losses."""
        far = -float(scipy.special.ndtri(min(max(tail, UNDERFLOW_GUARD), 1e-17)))
        end = float(np.max(self.mu * (self.mu / 2 + far)))
        return np.linspace(-end, end, _GRID)

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """By the normal distribution function."""
        z, half = edges / self.mu, self.mu / 2
        z_error = 6 * ROUND * (np.abs(z) + half) + edge_error / self.mu
        p, p_radius = _normal(z - half, z_error)
        q, q_radius = _normal(z + half, z_error)
        return Masses(q, p - q, q_radius, p_radius + q_radius)


def _normal(z: FloatArray, z_error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The standard normal law's probabilities between edges with errors of at most ``z_error``."""
    size = np.abs(z)
    tail = scipy.special.ndtr(-size)
    with np.errstate(invalid="ignore", over="ignore"):
        radius = (
            tail * (ndtr_radius(size) + np.expm1((size + 1 + z_error) * z_error)) + UNDERFLOW_GUARD
        )
    radius = np.where(np.isinf(z), 0.0, np.where(radius <= 1.0, radius, 1.0))
    tails, radii = _padded(tail, 0.0, 0.0), _padded(radius, 0.0, 0.0)
    is_upper = _padded(z, -1.0, 1.0) >= 0
    mass = np.diff(tails)
    np.negative(mass, out=mass, where=is_upper[..., :-1])
    around = ~is_upper[..., :-1] & is_upper[..., 1:]
    mass[around] = 1.0 - tails[..., :-1][around] - tails[..., 1:][around]
    return np.maximum(mass, 0.0), radii[..., :-1] + radii[..., 1:] + 2 * ROUND * np.abs(mass)


def _padded(row: FloatArray, first: Each, last: Each) -> FloatArray:
    """The row, or each row, with one number before it and one behind it."""
    found = np.empty((*row.shape[:-1], row.shape[-1] + 2))
    found[..., :1], found[..., 1:-1], found[..., -1:] = first, row, last
    return found


def ndtr_radius(size: FloatArray) -> FloatArray:
    """Bound on the relative error of ``scipy.special.ndtr(-size)`` where it is above 1e-300."""
    return ROUND * (32 + 3 * size * size)


@dataclass(frozen=True, slots=True)
class LaplaceLoss:
    """Losses on [-width, width] of density weight/2 e^((loss - width)/2) under P, mirrored under
    Q. Both fields are right to 2^-50."""

    width: Each
    weight: Each

    def coarse_grid(self, tail: float) -> FloatArray:
        """Ever closer to both ends, where a tilted law may have nearly all of its mass."""
        width = float(np.max(self.width))
        upper = np.append(width - np.geomspace(width, width * _FINEST, _GRID // 2), width)
        return np.unique(np.append(-upper, upper))

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """In closed form: the gap is a product of two hyperbolic sines."""
        width = self.width
        ends = _padded(np.clip(edges, -width, width), -width, width)
        low, high = ends[..., :-1], ends[..., 1:]
        middle, quarter = np.abs(low + high) / 4, (high - low) / 4
        spread = -np.expm1(-2 * quarter)
        q = self.weight * np.exp((-low - width) / 2) * spread
        gap = self.weight * np.exp(middle + quarter - width / 2) * spread
        gap *= -np.expm1(-2 * middle) * np.sign(low + high)
        far = np.maximum(np.abs(low), np.abs(high))
        inner = np.broadcast_to(edge_error + 8 * ROUND * width, ends[..., 1:-1].shape)
        error = _padded(inner, 0.0, 0.0)
        larger = np.maximum(error[..., :-1], error[..., 1:])
        radius = self.weight * np.exp((far - width) / 2) * larger
        radius = np.minimum(radius + 32 * ROUND * (q + np.abs(gap)) * (1 + width), 2.0)
        with np.errstate(invalid="ignore"):  # an infinite edge may have an infinite error
            radius[..., 1:][edges - inner >= width] = 0.0  # nothing lies there
            radius[..., :-1][edges + inner <= -width] = 0.0
        return Masses(q, gap, radius, radius * np.minimum(far, 1.0))


@dataclass(frozen=True, slots=True)
class Subsampled:
    """The piece of ((1 - rate) Q + rate P, Q): P is reached with probability ``rate`` only."""

    piece: Piece
    rate: Each

    def coarse_grid(self, tail: float) -> FloatArray:
        """The piece's own grid, without the lowest losses, which nearly coincide."""
        rate = float(np.max(self.rate))
        return np.unique(
            subsampled_loss(np.maximum(self.piece.coarse_grid(tail), _LOWEST_LOSS), rate, 1 - rate)
        )

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """The piece's own masses between the edges before sampling."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            grown = np.expm1(edges) / self.rate
            whole = 1 + grown  # e^(loss before sampling)
            before = np.where(edges < 600, np.log1p(grown), edges - np.log(self.rate))
            scale = np.where(edges < 600, np.exp(edges) / self.rate / whole, 1.0)
            propagated = edge_error * scale  # to first order
            error = 6 * ROUND * np.abs(grown / whole) + 4 * ROUND * np.abs(before)
            error = np.where(edges < 600, error, 8 * ROUND * np.abs(before)) + 1.2 * propagated
        is_below = whole <= -_LEAST_SIGNED
        is_uncertain = ~is_below & (edges < 600) & ~((whole >= _LEAST_SIGNED) & (propagated < 0.1))
        before[is_below], error[is_below] = -np.inf, 0.0
        before[is_uncertain] = np.log(np.maximum(whole[is_uncertain], _LEAST_SIGNED))
        error[is_uncertain] = np.inf
        base = self.piece.masses(before, error)
        gap = self.rate * base.gap
        radius = self.rate * base.gap_radius + 4 * ROUND * np.abs(gap)
        return Masses(base.q, gap, base.q_radius, radius)


def subsampled_loss(loss: FloatArray, rate: float, rest: float) -> FloatArray:
    """ln(rest + rate e^loss), where rest is 1 - rate."""
    with np.errstate(divide="ignore"):
        near = np.log1p(rate * np.expm1(np.minimum(loss, 600.0)))
    high = np.maximum(loss, 600.0) + math.log(rate)
    high = high + np.log1p(rest / rate * np.exp(-np.maximum(loss, 600.0)))
    found = np.where(loss <= 600.0, near, high)
    if rate <= 0.5:
        return found
    return np.where(loss < -1.0, np.log(rest + rate * np.exp(np.minimum(loss, -1.0))), found)


@dataclass(frozen=True, slots=True)
class Swapped:
    """The piece with P and Q exchanged."""

    piece: Piece

    def coarse_grid(self, tail: float) -> FloatArray:
        """The piece's own grid with the signs changed."""
        return -self.piece.coarse_grid(tail)[::-1]

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """The piece's own masses between the mirrored edges."""
        seen = self.piece.masses(-edges[..., ::-1], edge_error[..., ::-1])
        back = (seen.p, -seen.gap, seen.p_radius, seen.gap_radius)
        return Masses(*(column[..., ::-1] for column in back))


@dataclass(frozen=True, slots=True)
class Scaled:
    """A part of the piece: both laws times ``weight``, whose relative error is at most 2^-48."""

    piece: Piece
    weight: Each

    def coarse_grid(self, tail: float) -> FloatArray:
        """The piece's own grid."""
        return self.piece.coarse_grid(min(tail / float(np.max(self.weight)), 0.1))

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """The piece's own masses times the weight."""
        seen, w = self.piece.masses(edges, edge_error), self.weight
        relative_error = 64 * ROUND
        return Masses(
            w * seen.q,
            w * seen.gap,
            w * (1 + relative_error) * (seen.q_radius + relative_error * seen.q),
            w * (1 + relative_error) * (seen.gap_radius + relative_error * np.abs(seen.gap)),
        )


@dataclass(frozen=True, slots=True)
class Symmetrized:
    """The piece's losses above 0, and their mirror image below 0."""

    piece: Piece

    def coarse_grid(self, tail: float) -> FloatArray:
        """The upper part of the piece's own grid, and its mirror image."""
        upper = self.piece.coarse_grid(tail)
        upper = upper[upper > 0]
        return np.concatenate([-upper[::-1], [0.0], upper])

    def masses(self, edges: FloatArray, edge_error: FloatArray) -> Masses:
        """From cells between the edges, their mirror images and 0."""
        # 1. a grid that has each edge and its mirror image, and both sides on it
        finite = edges[np.isfinite(edges)]
        fine = np.unique(np.concatenate([finite, -finite, [0.0]]))
        spread = np.full(len(fine), float(np.max(edge_error, initial=0.0)))
        upper = self.piece.masses(fine, spread)
        lower = Swapped(self.piece).masses(fine, spread)
        # 2. the cells of this grid that lie between two edges, as ranges
        is_upper = np.concatenate([[False], fine >= 0])
        ends = np.where(np.isneginf(edges), 0, np.searchsorted(fine, edges) + 1)
        ends = np.where(np.isposinf(edges), len(is_upper), ends)

        def joined(above: FloatArray, below: FloatArray) -> FloatArray:
            sums = np.append(0.0, np.where(is_upper, above, below))
            bounds = np.concatenate([[0], ends, [len(is_upper)]])
            filled = np.add.reduceat(sums, np.minimum(bounds[:-1] + 1, len(is_upper)))
            return np.where(bounds[1:] > bounds[:-1], filled, 0.0)

        def errors_joined(
            above: FloatArray, below: FloatArray
        ) -> FloatArray:  # an empty cell has the largest error of any cell
            largest = float(np.maximum(above, below).max())
            return joined(above, below) + np.where(
                np.diff(ends, prepend=0, append=len(is_upper)) > 0, 0.0, largest
            )

        return Masses(
            joined(upper.q, lower.q),
            joined(upper.gap, lower.gap),
            errors_joined(upper.q_radius, lower.q_radius),
            errors_joined(upper.gap_radius, lower.gap_radius),
        )


def takes_rows(piece: Piece) -> bool:
    """Whether edges may have several rows, each with masses of its own."""
    parts = [getattr(piece, name) for name in piece.__slots__] if isinstance(piece, _ALIKE) else []
    inner = (part for part in parts if not isinstance(part, float | np.ndarray))
    return bool(parts) and all(map(takes_rows, inner))


def similarity(piece: Piece) -> Hashable:
    """A key that pieces share if they can be stacked: their kinds and, roughly, their numbers. Any
    other piece has a key of its own."""
    if not isinstance(piece, _ALIKE):
        return id(piece)
    parts = (getattr(piece, name) for name in piece.__slots__)
    rough = (
        round(_OCTAVE * math.log2(p)) if isinstance(p, float) else similarity(p) for p in parts
    )
    return (type(piece), *rough)


def stacked(pieces: Sequence[Piece]) -> Piece:
    """Several similar pieces as one piece, with a column for each of their numbers."""
    first = pieces[0]
    assert isinstance(first, _ALIKE)
    columns = ([getattr(piece, name) for piece in pieces] for name in first.__slots__)
    kind: Callable[..., Piece] = type(first)
    return kind(*(_column(each) for each in columns))


def _column(each: Sequence[Piece] | Sequence[float]) -> Piece | FloatArray:
    if isinstance(each[0], float):
        return np.array(each).reshape(-1, 1)
    return stacked([piece for piece in each if not isinstance(piece, float)])


_ALIKE = (GaussianLoss, LaplaceLoss, Subsampled, Swapped, Scaled)
