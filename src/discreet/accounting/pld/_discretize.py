"""Putting a dominating pair on a grid of losses: from above, and from below.

From above, each cell's probability is divided between the cell's two ends, and both laws keep their
total probability ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022).
Rounding errors move mass up. From below, a convex polygon is inscribed under the privacy profile.
See docs/proofs/accountant.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from discreet._arrays import FloatArray, IndexArray, log_sums
from discreet.accounting.pld._continuous import ROUND, Each, Masses, Piece
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Pair

_LEAST_RATIO = 2.0**-16  # of heights; below it, an outcome counts as lying on the lower point
_TRIES = 4  # moves of the grid towards the loss with the largest tilted mass
_FEW = 8  # atoms off the grid that are moved down; a polygon pays off for more
_DEEP = 2.0**52  # steps below 0, below which atoms are moved up to it


@dataclass(frozen=True, slots=True)
class Points:
    """A pair's law on a grid, as a bound from one side: losses offset + index * step with their
    masses under P, and the mass at infinity. An index may appear more than once."""

    index: IndexArray
    mass: FloatArray
    infinite: float
    step: float
    offset: float

    @property
    def loss(self) -> FloatArray:
        return np.asarray(self.offset + self.index * self.step, dtype=np.float64)


def log_moments_of(points: Sequence[Points], tilt: float) -> FloatArray:
    """Estimates of ln E[e^(tilt loss)], for several laws on the same points."""
    with np.errstate(divide="ignore"):
        return log_sums(np.log([each.mass for each in points]) + tilt * points[0].loss)


@dataclass(frozen=True, slots=True)
class Cells:
    """A piece's probabilities between the points of a grid. Several pieces have a row each.

    One point is added above the requested ones, so that mass of uncertain place at the upper end
    stays finite.
    """

    index: IndexArray
    edges: FloatArray
    masses: Masses

    @staticmethod
    def of(piece: Piece, index: IndexArray, step: float) -> "Cells":
        points = np.append(index, index[-1] + 1)
        edges = _at(points, step)
        return Cells(points, edges, piece.masses(edges, np.zeros(len(edges))))


def discretize_upper(pair: Pair, cells: Sequence[Cells], step: float) -> list[Points]:
    """Points that dominate the pair, from its pieces' cells. A pair without atoms whose pieces
    hold columns stands for several pairs, with one result each."""
    loss_error = _loss_error(pair, [each.index for each in cells], step)
    parts = [_upper_part(each) for each in cells]
    if len(pair.atoms.loss) or not cells:
        parts.insert(0, _upper_atoms(pair, step))
    index = np.concatenate([part.index for part in parts])
    mass = np.concatenate([np.atleast_2d(part.mass) for part in parts], axis=-1)
    infinite = np.sum([np.atleast_1d(part.infinite) for part in parts], axis=0)
    rows = zip(mass, infinite.tolist(), strict=True)
    return [Points(index, row, beyond, step, loss_error) for row, beyond in rows]


def discretize_lower(pair: Pair, edges: Sequence[IndexArray], step: float, tilt: float) -> Points:
    """Points that the pair dominates. ``edges`` holds the places where each piece may have points.
    The grid is shifted so that the loss with the largest tilted mass lies on it."""
    pieces = [
        (piece, np.concatenate([index[:1] - 2, index, index[-1:] + 2]))  # room for the offset
        for piece, index in zip(pair.pieces, edges, strict=True)
    ]
    offset = 0.0
    if pair.lattice is None:
        before = math.inf
        for _ in range(_TRIES):  # moving the grid moves the loss a bit, too
            merged = [_outcomes_of_cells(piece, index, step, offset) for piece, index in pieces]
            miss = _off_grid([*merged, _outcomes_of_atoms(pair.atoms)], step, offset, tilt)
            offset += miss / (1 - min(max(miss / before, -0.5), 0.5))
            before = miss or math.inf
    parts = _lower_atoms(pair, step, offset)
    for piece, index in pieces:
        parts.append(
            _inscribed_polygon(index, step, offset, _outcomes_of_cells(piece, index, step, offset))
        )
    infinite = float(pair.atoms.p[pair.atoms.loss == np.inf].sum()) * (1 - ATOM)
    return Points(
        np.concatenate([index for index, _ in parts]),
        np.concatenate([mass for _, mass in parts]),
        infinite,
        step,
        offset - _loss_error(pair, edges, step),
    )


def log_moments(pair: Pair, cells: Sequence[Cells], tilt: float) -> FloatArray:
    """Estimates of ln E[e^(tilt loss)] with each cell as one outcome, one for each row of the
    cells. They show the error of a grid."""
    single = _outcomes_of_atoms(pair.atoms)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = [np.atleast_2d(np.log(single.p) + tilt * single.loss)]
        for each in cells:
            masses, ends = each.masses, each.edges
            gap, q, log_p = masses.gap[..., 1:-1], masses.q[..., 1:-1], np.log(masses.p)
            loss = np.log1p(gap / q)
            loss = np.clip(np.where(np.isfinite(loss), loss, ends[1:]), ends[:-1], ends[1:])
            powers.append(np.atleast_2d(log_p[..., 1:-1] + tilt * loss))
            powers.append(np.atleast_2d(log_p[..., :1] + tilt * ends[:1]))
    return log_sums(_beside(powers))


def _beside(parts: Sequence[FloatArray]) -> FloatArray:
    """The columns of all parts; empty parts are skipped."""
    return np.concatenate([part for part in parts if part.size] or parts[:1], axis=-1)


def _at(index: IndexArray, step: float, offset: float = 0.0) -> FloatArray:
    return np.asarray(index * step + offset, dtype=np.float64)


def _loss_error(pair: Pair, edges: Sequence[IndexArray], step: float) -> float:
    """Bound on the rounding error of any loss."""
    finite = pair.atoms.loss[np.isfinite(pair.atoms.loss)]
    largest = float(np.abs(finite).max(initial=0.0))
    ends = [step * float(np.abs(index[[0, -1]]).max()) for index in edges]
    if largest == 0.0 and not ends:
        return 0.0
    return 2 * ATOM * (largest + step) + 4 * ROUND * max([largest + step, *ends])


def _upper_atoms(pair: Pair, step: float) -> "_UpperPart":
    atoms = pair.atoms
    infinite = float(atoms.p[atoms.loss == np.inf].sum()) * (1 + ATOM)
    held = np.isfinite(atoms.loss) & (atoms.p > 0)
    loss, mass = np.maximum(atoms.loss[held], -_DEEP * step), atoms.p[held] * (1 + ATOM)
    index = np.floor(loss / step).astype(np.int64)
    above = np.clip(loss - index * step + ATOM * np.abs(loss), 0.0, step)
    up = mass * np.minimum(np.expm1(-above) / np.expm1(-step) * (1 + ATOM), 1.0)
    return _UpperPart(np.append(index, index + 1), np.append(mass - up, up), infinite)


@dataclass(frozen=True, slots=True)
class _UpperPart:
    """Points with their masses, and the mass at infinity; for several pieces, a row each."""

    index: IndexArray
    mass: FloatArray
    infinite: Each


def _upper_part(cells: Cells) -> _UpperPart:
    whole = cells.masses.p + cells.masses.p_radius
    inner = whole[..., 1:-1]
    up = np.minimum(_upper_shares(cells.masses, cells.edges), inner)
    mass = whole[..., :-1].copy()
    mass[..., 1:] = up
    mass[..., :-1] += inner - up
    return _UpperPart(cells.index, mass, whole[..., -1])


def _upper_shares(masses: Masses, edges: FloatArray) -> FloatArray:
    """Upper bounds on the mass that goes to each inner cell's upper end: (p - q e^low) /
    (1 - e^-width)."""
    q, gap = masses.q[..., 1:-1], masses.gap[..., 1:-1]
    rise, width = np.expm1(edges[:-1]), np.diff(edges)
    error = masses.gap_radius[..., 1:-1] + np.abs(rise) * masses.q_radius[..., 1:-1]
    error += 8 * ROUND * (np.abs(gap) + np.abs(rise) * q)
    share = (gap - q * rise + error) / -np.expm1(-width)
    return np.maximum(share, 0.0) * (1 + 16 * ROUND)


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Single losses in rising order, with p, q and the gap p - q, and error bounds on q and the
    gap."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    gap: FloatArray
    q_radius: FloatArray
    gap_radius: FloatArray


def _outcomes_of_cells(piece: Piece, index: IndexArray, step: float, offset: float) -> _Outcomes:
    """Each cell as one outcome. A point's cell reaches halfway to its neighbours."""
    edges = _at(index[1:] + index[:-1], step / 2, offset)
    masses = piece.masses(edges, np.zeros(len(edges)))
    q, gap = masses.q[1:-1], masses.gap[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log1p(np.maximum(gap / q, -1.0))
    inside = np.clip(np.where(np.isfinite(loss), loss, edges[1:]), edges[:-1], edges[1:])
    return _Outcomes(inside, masses.p[1:-1], q, gap, masses.q_radius[1:-1], masses.gap_radius[1:-1])


def _outcomes_of_atoms(atoms: Atoms) -> _Outcomes:
    held = np.flatnonzero(np.isfinite(atoms.loss) & (atoms.p > 0))
    held = held[np.argsort(atoms.loss[held])]
    loss, p = atoms.loss[held], atoms.p[held]
    gap = -p * np.expm1(-loss)
    q = p * np.exp(-loss)
    return _Outcomes(loss, p, q, gap, ATOM * q, ATOM * np.abs(gap))


def _off_grid(merged: Sequence[_Outcomes], step: float, offset: float, tilt: float) -> float:
    """The distance from the grid of the loss with the largest tilted mass."""
    loss = np.concatenate([one.loss for one in merged])
    with np.errstate(divide="ignore"):
        mass = np.log(np.concatenate([one.p for one in merged]))
    most = float(loss[int(np.argmax(mass + tilt * loss))])
    return most - offset - round((most - offset) / step) * step


def _lower_atoms(pair: Pair, step: float, offset: float) -> list[tuple[IndexArray, FloatArray]]:
    """Atoms on the grid unchanged, and others from below."""
    outcomes = _outcomes_of_atoms(pair.atoms)
    is_near = outcomes.loss > -_DEEP * step
    outcomes = _Outcomes(*(getattr(outcomes, column.name)[is_near] for column in fields(outcomes)))
    near = np.rint((outcomes.loss - offset) / step)
    on_grid = np.abs(outcomes.loss - offset - near * step) <= ATOM * (np.abs(outcomes.loss) + step)
    floor = np.floor((outcomes.loss - offset) / step)
    if np.count_nonzero(~on_grid) <= _FEW:
        place = np.where(on_grid, near, floor).astype(np.int64)
        return [(place, outcomes.p * (1 - 2 * ATOM))]
    parts = [(near[on_grid].astype(np.int64), outcomes.p[on_grid] * (1 - 2 * ATOM))]
    rest = _Outcomes(*(getattr(outcomes, column.name)[~on_grid] for column in fields(outcomes)))
    floor = floor[~on_grid].astype(np.int64)
    parts.append(_inscribed_polygon(np.unique(np.append(floor, floor + 1)), step, offset, rest))
    return parts


def _inscribed_polygon(
    index: IndexArray, step: float, offset: float, outcomes: _Outcomes
) -> tuple[IndexArray, FloatArray]:
    """Points whose privacy profile lies below that of the outcomes.

    The profile D(x), the integral of (p - x q)+, is convex in x = e^epsilon. Between two points it
    sags below its chord. For an outcome in this cell let A = p - q e^low and B = q e^high - p. It
    adds at most A B / (A + B) to the sag. Three pairs of heights account for it: this amount
    subtracted at both points; A at the low point only; or B at the high point only. D lies above
    the chords between the lowered values, and above their convex hull. The hull's corners are the
    points.
    """
    # 1. Each outcome's cell, and by how much it lets the profile sag below the chord there.
    edges = _at(index, step, offset)
    rise = np.expm1(edges)
    count = len(edges)
    rounding = 8 * (count + len(outcomes.loss)) * ROUND
    cell = np.clip(np.searchsorted(edges, outcomes.loss) - 1, 0, count - 2)
    low, high = rise[cell], rise[cell + 1]
    error_of_outcome = (
        outcomes.gap_radius + np.maximum(np.abs(low), np.abs(high)) * outcomes.q_radius
    )
    error_of_outcome += (
        8 * ROUND * (np.abs(outcomes.gap) + outcomes.q * np.maximum(np.abs(low), np.abs(high)))
    )
    below = np.maximum(outcomes.gap - outcomes.q * low, 0.0) + error_of_outcome
    above = np.maximum(outcomes.q * high - outcomes.gap, 0.0) + error_of_outcome
    each = below * above / (below + above + 1e-300) + error_of_outcome
    sag = np.bincount(cell, each, count - 1)

    def from_each(values: FloatArray) -> FloatArray:  # sums over the cells above each point
        return np.append(np.cumsum(np.bincount(cell, values, count - 1)[::-1])[::-1], 0.0)

    # 2. The profile at the points, minus all error bounds.
    q, gap = from_each(outcomes.q), from_each(outcomes.gap)
    error = from_each(outcomes.gap_radius) + from_each(outcomes.q_radius) * np.abs(rise)
    error += rounding * (from_each(np.abs(outcomes.gap)) + q * np.abs(rise))
    profile, line = gap - q * rise, gap[0] - q[0] * rise
    # 3. Subtract the larger sag of the two cells at each point.
    is_first = (sag > (profile - line)[:-1])[cell] & (below > _LEAST_RATIO * above)
    falls = is_first & (2 * above > profile[1:][cell])
    rises = is_first & ~falls
    at_low = np.where(falls, below, np.where(rises, 0.0, each))
    at_high = np.where(falls, 0.0, np.where(rises, above, each))
    lows = np.append(np.bincount(cell, at_low + error_of_outcome, count - 1), 0.0)
    highs = np.append(0.0, np.bincount(cell, at_high + error_of_outcome, count - 1))
    value = profile - error - np.maximum(lows, highs)
    # 4. The corners of the convex hull are the points of a measure.
    end = int(np.argmin(np.append(value, -1.0) > 0)) - 1  # here the polygon meets 0
    if end < 1:
        return index[:0], edges[:0]
    value[end] = 0.0
    total_error = float(outcomes.gap_radius.sum() + outcomes.q_radius.sum())
    whole = float(gap[0] + q[0]) * (1 - rounding) - total_error * (1 + rounding)
    corners, slopes = _hull(edges[: end + 1], value[: end + 1], whole)
    mass = np.maximum(np.diff(np.append(slopes, 0.0)), 0.0) * np.exp(edges[corners])
    return index[corners], mass * (1 - 2 * rounding - 128 * ROUND)


def _hull(edges: FloatArray, value: FloatArray, start: float) -> tuple[IndexArray, FloatArray]:
    """The corners of the lower convex hull of (0, start) and (e^edge, value), but for the first
    one, and the slope before each."""
    corners: list[int] = []
    slopes: list[float] = []
    xs, logs, values = np.exp(edges).tolist(), edges.tolist(), value.tolist()
    for place, height in enumerate(values):
        while True:
            if corners:
                last = corners[-1]
                run = xs[last] * math.expm1(logs[place] - logs[last])
                slope = (height - values[last]) / run
            else:
                slope = (height - start) / xs[place]
            if not corners or slope > slopes[-1]:
                break
            corners.pop()
            slopes.pop()
        corners.append(place)
        slopes.append(slope)
    return np.array(corners, dtype=np.int64), np.array(slopes)
