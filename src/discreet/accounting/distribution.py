"""Bounds by privacy loss distributions: how to tilt, how fine a grid to take, and what follows.

Tilt, grid and window are choices, found by rough estimates: any choice gives bounds, a good one
gives close ones. What makes them bounds is in `grid` and `composition`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import erfcx

from discreet.accounting import grid
from discreet.accounting.composition import LARGEST, Composition, composed, infinite
from discreet.accounting.grid import Indices, Points, lowered, raised
from discreet.accounting.pairs import Atoms, Pair, Side, nothing
from discreet.accounting.pieces import Floats

Counted = Sequence[tuple[Pair, int]]

_TAIL = 1e-4
_LEAST_DELTA = 1e-280
_FIRST_TAIL = 1e-30
_JOINED_DELTAS = (1e-3, 1e-8, 1e-20)
_JOINED_TOLERANCE = 1e-5
_FINEST = 8
_FINEST_STEP = 2.0**-36
_CLOSE = 0.02
_NEGLIGIBLE = 30.0
_MOST_CELLS = 1 << 20
_WIDEST = 2.0
_WIDER = 1.5
_REFINEMENTS = 4
_FAR_OFF = 0.9
_RARE = 20.0
_LEAST_TILT = 0.1  # times the standard deviation
_FARTHEST = 600.0
_STEEPEST = 500.0
_DEEPEST = 2.0**52  # steps below 0
_UPPER_WINDOW, _LOWER_WINDOW = 16.0, 24.0  # in standard deviations, at most
_MOST_TRIES = 40


@dataclass(frozen=True, slots=True)
class Look:
    """A first look at a sum of pairs: cells of each atom and piece, one behind the other.
    ``starts`` tells where each pair's begin, ``pieces`` where each piece's lie."""

    pairs: Counted
    loss: Floats
    mass: Floats
    counts: Floats
    starts: Indices
    pieces: tuple[tuple[tuple[int, Floats], ...], ...]

    @staticmethod
    def at(pairs: Counted, tail: float) -> "Look":
        """Look at these pairs, leaving out this much of each."""
        cells: list[tuple[Floats, Floats]] = []
        starts, pieces, at = [], [], 0
        for pair, _ in pairs:
            starts.append(at)
            held = np.isfinite(pair.atoms.loss) & (pair.atoms.p > 0)
            loss = pair.atoms.loss[held]
            cells.append((loss, pair.atoms.p[held]))
            at += len(loss)
            seen = []
            for piece in pair.pieces:
                edges = piece.look(tail)
                mass = piece.masses(edges, np.zeros(len(edges))).p
                kept = max(int(np.count_nonzero(np.cumsum(mass[::-1])[::-1] > tail)), 2)
                edges, mass = edges[:kept], mass[: min(kept, len(edges))]
                cells.append((np.append(edges[:1], (edges[1:] + edges[:-1]) / 2), mass))
                seen.append((at + 1, edges))  # the first cell is open, and seen at its end
                at += len(mass)
            pieces.append(tuple(seen))
        loss, mass = (np.concatenate(column) for column in zip(*cells, strict=True))
        counts = np.array([count for _, count in pairs], dtype=np.float64)
        return Look(pairs, loss, mass, counts, np.array(starts), tuple(pieces))

    @property
    def largest(self) -> float:
        """The largest loss above 0, or, if there is none, in size."""
        return max(float(self.loss.max()), 0.0) or float(np.abs(self.loss).max())

    @property
    def is_too_far(self) -> bool:
        """Whether some loss is too large for its exponential to be a number."""
        return not len(self.loss) or not float(np.abs(self.loss).max()) < _FARTHEST

    def tilted(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        """Of each pair: ln of its moment, its shares and their mean loss."""
        sizes = np.diff(np.append(self.starts, len(self.loss)))
        power = tilt * self.loss
        most = np.maximum.reduceat(power, self.starts)
        weight = self.mass * np.exp(power - np.repeat(most, sizes))
        total = np.add.reduceat(weight, self.starts)
        share = weight / np.repeat(total, sizes)
        means = np.add.reduceat(share * self.loss, self.starts)
        return most + np.log(total), share, means

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Of the tilted sum: ln of the moment, mean and standard deviation."""
        log_moments, share, means = self.tilted(tilt)
        sizes = np.diff(np.append(self.starts, len(self.loss)))
        square = share * (self.loss - np.repeat(means, sizes)) ** 2
        variance = float(self.counts @ np.add.reduceat(square, self.starts))
        log_moment = float(self.counts @ log_moments)
        return log_moment, float(self.counts @ means), math.sqrt(variance)

    def log_delta(self, tilt: float) -> tuple[float, float, float]:
        """About ln delta at the epsilon that is the tilted mean (a normal law in place of the
        tilted one), that epsilon and the standard deviation."""
        log_moment, mean, stddev = self.moments(tilt)
        near, far = tilt * stddev / math.sqrt(2), (tilt + 1) * stddev / math.sqrt(2)
        share = float(erfcx(near) - erfcx(far)) / 2
        slope = 1 / math.sqrt(math.pi) - near * float(
            erfcx(near)
        )  # for arguments that nearly agree
        if far - near < _CLOSE * (1 + near):
            share = (far - near) * max(slope, 0.25 / (1 + near * near))
        return log_moment - tilt * mean + math.log(max(share, 1e-300)), mean, stddev


@dataclass(frozen=True, slots=True)
class Aim:
    """How to look closely: the tilt, and about which epsilon and what spread will be found."""

    tilt: float
    epsilon: float
    stddev: float
    log_delta: float


def aim_at_delta(look: Look, delta: float) -> Aim:
    """The tilt whose mean is about the epsilon for this delta, or 0."""
    wanted = math.log(delta)

    def miss(tilt: float) -> float:
        found, mean, stddev = look.log_delta(tilt)
        return max(found - wanted, -mean / (stddev or 1.0))

    return replace(_aimed(look, miss), log_delta=wanted)


def aim_at_epsilon(look: Look, epsilon: float) -> Aim:
    """The tilt whose mean is about this epsilon."""

    def miss(tilt: float) -> float:
        _, mean, stddev = look.log_delta(tilt)
        return (epsilon - mean) / (stddev or 1.0)

    return _aimed(look, miss)


def _aimed(look: Look, miss: Callable[[float], float]) -> Aim:
    """Where ``miss``, which falls, is nearly 0; or the end of what is sensible."""
    scale = look.largest or 1.0
    spread = look.moments(0.0)[2] or scale
    least, most = min(_LEAST_TILT / spread, 1 / scale), 1e5 / scale
    low = high = min(most, 1 / spread)
    at_low = at_high = miss(low)
    while at_high > 0 and high < most:
        low, at_low, high = high, at_high, high * 4
        at_high = miss(high)
    while at_low < 0 and low > least:
        high, at_high, low = low, at_low, low / 4
        at_low = miss(low)
    for _ in range(_MOST_TRIES):
        if at_low <= _CLOSE or -at_high <= _CLOSE or high <= low * (1 + _CLOSE / 4):
            break
        share = min(max(at_low / (at_low - at_high), 0.05), 0.95)
        tilt = low * (high / low) ** share
        found = miss(tilt)
        low, at_low, high, at_high = (
            (tilt, found, high, at_high) if found > 0 else (low, at_low, tilt, found)
        )
    tilt = low if abs(at_low) < abs(at_high) else high
    log_delta, mean, stddev = look.log_delta(tilt)
    return Aim(tilt, mean, stddev, log_delta)


class _NothingLeft(Exception):
    """Of some pair no mass at a finite loss is left."""


def closely(
    look: Look, aim: Aim, tolerance: float, side: Side, *, least: float = math.inf
) -> Composition:
    """The sum's law as a bound from one side; epsilons near the aim's are about right to this
    tolerance, relatively."""
    points = _gridded(look, aim, tolerance, side)
    if not all(float(one.mass.sum()) > 0 for one, _ in points):
        raise _NothingLeft
    tilt = min(aim.tilt, _STEEPEST / points[0][0].step)
    return composed(points, tilt, side, log_delta=aim.log_delta, least=least)


def _gridded(look: Look, aim: Aim, tolerance: float, side: Side) -> list[tuple[Points, int]]:
    """Each pair on one grid, fine enough for the tolerance at the aim: as is seen by how far the
    grid moves the moment."""
    size = max(aim.epsilon, aim.stddev / 64)
    square = 8 * tolerance * size / ((aim.tilt + 1) * float(look.counts.sum()))
    step = min(math.sqrt(square) / _WIDER, max(aim.stddev / _FINEST, tolerance * size / 4))
    widest = _UPPER_WINDOW if side is Side.UPPER else _LOWER_WINDOW
    finest = max(widest * aim.stddev / LARGEST, look.largest * _FINEST_STEP) or 1.0
    for _ in range(_REFINEMENTS):
        step = _on_lattice(max(step, finest), [pair for pair, _ in look.pairs])
        points, moved = _at_step(look, aim, step, tolerance=tolerance, side=side)
        if moved <= 1.5 * tolerance * size or step <= finest:
            break
        step *= max(min(tolerance * size / moved, 0.5), 1 / 64)
    return points


def _at_step(
    look: Look, aim: Aim, step: float, *, tolerance: float, side: Side
) -> tuple[list[tuple[Points, int]], float]:
    """Each pair on a grid of this step; and about how far that moves epsilon."""
    log_moments, share, _ = look.tilted(aim.tilt)
    points, moved = [], 0.0
    bend = min(math.sqrt(4 * tolerance * (1 + aim.tilt * max(aim.epsilon, 0.0))), 0.5)
    for (pair, count), pieces, log_moment in zip(look.pairs, look.pieces, log_moments, strict=True):
        least = (float(log_moment) - _NEGLIGIBLE) / max(aim.tilt, 1e-300)
        fineness = _Fineness(aim.tilt, bend, (_WIDER * step) ** 2, step, least)
        cells = [fineness.cells(edges, share[at : at + len(edges) - 1]) for at, edges in pieces]
        if side is Side.UPPER:
            found = raised(pair, cells, step)
        else:
            found = lowered(pair, cells, step, aim.tilt)
        points.append((found, count))
        exact = grid.log_moment(pair, cells, step, aim.tilt)
        moved += count * abs(found.log_moment(aim.tilt) - exact) / max(aim.tilt, 1e-300)
    return points, moved


@dataclass(frozen=True, slots=True)
class _Fineness:
    """How fine cells are to be: the mean square of their widths under the tilted law, the most
    that one may bend a curve that falls by e^(-tilt loss), the grid's step, and the loss below
    which one cell is enough."""

    tilt: float
    bend: float
    square: float
    step: float
    least: float

    def cells(self, edges: Floats, share: Floats) -> Indices:
        """Edges of cells, in steps: finer where the tilted law has more, so that the mean square
        is kept with few of them. Widths are powers of 2 times the step."""
        first = min(max(int(np.searchsorted(edges, self.least)) - 1, 0), len(edges) - 2)
        least = max(self.least, -_DEEPEST * self.step)
        edges, share = np.maximum(edges[first:], least), share[first:]
        width = np.maximum(np.diff(edges), 1e-300)
        total = max(float(share.sum()), 1e-300)
        density = np.maximum(share, 1e-18 * total) / width
        wish = density ** (-1 / 3)
        wish *= math.sqrt(self.square / max(float(share @ wish**2), 1e-300))
        rare = np.log(total) - np.log(np.maximum(share, 1e-300))
        widest = self.bend * (1 + np.maximum(rare - _RARE, 0)) / (1 + self.tilt)
        wish = np.minimum(wish, np.minimum(widest, _WIDEST * width))
        while float((width / np.maximum(wish, self.step)).sum()) > _MOST_CELLS:
            wish = 2 * np.maximum(wish, self.step)
        level = np.floor(np.log2(np.maximum(wish / self.step, 1.0))).astype(np.int64)
        changes = np.flatnonzero(np.diff(level)) + 1
        parts = []
        for start, stop in zip([0, *changes], [*changes, len(level)], strict=True):
            stride = 1 << int(level[start])
            low = math.floor(edges[start] / (self.step * stride))
            high = math.ceil(edges[stop] / (self.step * stride))
            parts.append(stride * np.arange(low, high + 1, dtype=np.int64))
        found = np.unique(np.concatenate(parts))
        return found if len(found) > 1 else np.append(found, found[-1:] + 1)


def _on_lattice(step: float, pairs: Sequence[Pair]) -> float:
    """A step, at most this one, that divides all atoms' losses, where a common one is known and
    not much finer."""
    spacings = [pair.lattice for pair in pairs if len(pair.atoms.loss)]
    known = [spacing for spacing in spacings if spacing is not None]
    if not known or len(known) < len(spacings):
        return step
    whole = math.lcm(*(one.denominator for one in known))
    common = Fraction(math.gcd(*(int(one * whole) for one in known)), whole)
    if float(common) > step and not any(pair.pieces for pair in pairs):
        return float(common)  # nothing is off the grid
    parts = math.ceil(float(common) / step)
    if parts > 1:
        return float(common / parts)
    return float(common) if float(common) * _FINEST > step else step


def epsilon(pairs: Counted, delta: float, tolerance: float, side: Side) -> float:
    """A bound from this side on the epsilon at this delta, for one order of the neighbours;
    infinite or 0 where it can't be told."""
    told = sum(count * float(p.atoms.p[p.atoms.loss == np.inf].sum()) for p, count in pairs)
    if told >= delta or delta < _LEAST_DELTA:
        return math.inf if side is Side.UPPER else 0.0
    look = Look.at(pairs, delta * _TAIL / sum(count for _, count in pairs))
    if look.is_too_far:
        return math.inf if side is Side.UPPER else 0.0
    aim = aim_at_delta(look, delta - told)
    try:
        found = closely(look, aim, tolerance, side).epsilon(delta)
        if 0 < found < _FAR_OFF * aim.epsilon:
            again = replace(aim_at_epsilon(look, found), log_delta=math.log(delta))
            found = closely(look, again, tolerance, side).epsilon(delta)
    except _NothingLeft:
        return math.inf if side is Side.UPPER else 0.0
    return found


def delta(pairs: Counted, epsilon: float, tolerance: float, side: Side) -> float:
    """A bound from this side on the delta at this epsilon, for one order of the neighbours."""
    total = sum(count for _, count in pairs)
    unknown = 1.0 if side is Side.UPPER else 0.0
    look = Look.at(pairs, _FIRST_TAIL)
    if look.is_too_far:
        return unknown
    if (beyond := _delta_beyond(look, epsilon, side)) is not None:
        return beyond
    aim = aim_at_epsilon(look, epsilon)
    level = math.exp(max(aim.log_delta, math.log(_LEAST_DELTA)))
    for _ in range(_REFINEMENTS):
        look = Look.at(pairs, max(level * _TAIL / total, _LEAST_DELTA))
        if look.is_too_far:
            return unknown
        aim = aim_at_epsilon(look, epsilon)
        closeness = tolerance / max(1.0, aim.tilt * epsilon)  # of delta, not of epsilon
        try:
            found = closely(look, aim, closeness, side, least=epsilon).delta(epsilon)
        except _NothingLeft:
            return unknown
        if found >= level / 10 or level <= _LEAST_DELTA:
            break
        level = max(found / 10, _LEAST_DELTA)  # what was left out was too much
    return found


def _delta_beyond(look: Look, epsilon: float, side: Side) -> float | None:
    """The bound on delta if no sum of finite losses reaches epsilon; else ``None``."""
    if side is Side.LOWER:
        return None
    step = look.largest * 2.0**-20 or 1.0
    points = []
    for (pair, count), pieces in zip(look.pairs, look.pieces, strict=True):
        ends = [
            (math.floor(edges[0] / step), math.ceil(edges[-1] / step) + 1) for _, edges in pieces
        ]
        points.append((raised(pair, [np.array(end) for end in ends], step), count))
    if sum(count * float(one.loss.max(initial=-math.inf)) for one, count in points) > epsilon:
        return None
    return infinite(points, side)


def joined(pairs: Counted, side: Side) -> Pair:
    """One pair for the whole sum, to be sampled or mixed; from below, that of one part of it."""
    if not pairs:
        return nothing()
    if len(pairs) == 1 and pairs[0][1] == 1:
        return pairs[0][0]
    if side is Side.LOWER:
        return max((pair for pair, _ in pairs), key=lambda p: Look.at([(p, 1)], 0.1).moments(0)[2])
    look = Look.at(pairs, _JOINED_DELTAS[-1])
    points = _gridded(look, aim_at_delta(look, _JOINED_DELTAS[1]), _JOINED_TOLERANCE, side)
    laws = [
        composed(points, aim.tilt, side, log_delta=aim.log_delta)
        for aim in (
            Aim(0.0, 0.0, 0.0, -_NEGLIGIBLE),
            *(aim_at_delta(look, d) for d in _JOINED_DELTAS),
        )
    ]
    start = round(laws[0].first / laws[0].step)
    starts = [start + round((law.first - laws[0].first) / law.step) for law in laws]
    least, most = min(starts), max(at + len(law.mass) for at, law in zip(starts, laws, strict=True))
    mass = np.full(most - least, np.inf)
    for at, law in zip(starts, laws, strict=True):  # each bounds each mass
        seen = mass[at - least : at - least + len(law.mass)]
        np.minimum(seen, law.masses(), out=seen)
    mass[0] += laws[0].outside  # untilted: all that lies below may have been lost
    loss = laws[0].first + (np.arange(least, most) - starts[0]) * laws[0].step
    rest_above = laws[-1].infinite + laws[-1].beyond
    q = mass * np.exp(-loss)
    rest = max(0.0, 1 - float(q.sum()) * (1 - 1e-9))
    return Pair(
        Atoms(
            np.concatenate([[-np.inf], loss, [np.inf]]),
            np.concatenate([[0.0], mass, [rest_above]]),
            np.concatenate([[rest], q, [0.0]]),
        )
    )
