"""Bounds by privacy loss distributions: how to tilt, how fine a grid to take, and what follows.

Tilt, grid and window are choices, found by rough estimates: any choice gives bounds, a good one
gives close ones. What makes them bounds is in `grid` and `composition`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.pld._composition import (
    LARGEST,
    Composition,
    composed,
    delta_by_moment,
    infinite,
)
from discreet.accounting.pld._continuous import Floats
from discreet.accounting.pld._discretize import (
    Cells,
    Indices,
    Points,
    log_moments,
    log_moments_of,
    lowered,
    raised_together,
)
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Pair, Side, nothing
from discreet.accounting.pld._tilt import Aim, Counted, Look, Seen, aim_at_delta, aim_at_epsilon
from discreet.accounting.pld._uncomposed import Single
from discreet.errors import NoBound

ONE_SIDE = 0.3  # of a tolerance: what one side's grid may use, so that two ends fit, and margins
_LEAST_DELTA = 1e-280  # below, masses are no longer told from 0
_TAIL = 1e-4  # of delta: what a look may leave out of all terms together
_FIRST_TAIL = 1e-30  # the same, while delta is not known
_JOINED_DELTAS = (1e-3, 1e-8, 1e-20)  # at which a sum that is to be sampled is seen closely
_JOINED_LEAST = -80.0  # ln of what may be missing above each of their windows
_UNTILTED = Aim(0.0, 0.0, 0.0, -30.0)  # and how such a sum is seen where most of it lies
_JOINED_TOLERANCE = 1e-5  # of the sum's epsilon: what is sampled may matter less than it
_JOINED_POINTS = 1 << 17  # between 0 and the largest loss of interest of such a sum
_REFINEMENTS = 4  # each at least halves the step, and most sums need one or none
_FINEST = 8  # steps in a standard deviation, at least
_FINEST_STEP = 2.0**-36  # of the largest loss: indices stay far below 2^53
_UPPER_WINDOW, _LOWER_WINDOW = 16.0, 24.0  # standard deviations that a window must be able to hold
_WIDER = 1.5  # a cell's root mean square width in steps: cells cost time, and wide ones exactness
_NEGLIGIBLE = 30.0  # -ln of a share of the tilted law that no longer matters
_MOST_CELLS = 1 << 20  # of one piece
_WIDEST = 2.0  # a cell's width in those of the first look, at most
_RARE = 20.0  # -ln of a share of the tilted law from which on cells may be wider than `bend` says
_LEAST_SHARE = 1e-18  # of the tilted law: less in a cell counts as this
_FLATTEST = 1e-300  # what is above 0 in a quotient or a logarithm
_FAR_OFF = 0.9  # an epsilon so far below the aim's asks for another one
_COARSEST = 0.1  # a tolerance, where another order of the neighbours has a larger epsilon
_STEEPEST = 500.0  # a tilt times a step: its exponential is a number
_DEEPEST = 2.0**52  # steps below 0
_LARGEST = 700.0  # a loss whose exponential is a number
_TOO_FAR = "the losses of a sum that is sampled are too large for a grid"


class NothingLeft(Exception):
    """Of some pair no mass at a finite loss is left."""


def closely(
    look: Look, aim: Aim, tolerance: float, side: Side, *, least: float = math.inf
) -> Composition | Single:
    """The sum's law as a bound from one side; epsilons near the aim's are about right to this
    tolerance, relatively."""
    points, tilt = _tilted(look, aim, tolerance, side)
    if look.count == 1:
        return Single.of(points[0][0], side)
    return composed(points, tilt, side, log_delta=aim.log_delta, least=least)


def _tilted(
    look: Look, aim: Aim, tolerance: float, side: Side
) -> tuple[list[tuple[Points, int]], float]:
    """Each pair on one grid, and the aim's tilt, or what that grid bears."""
    points = _gridded(look, aim, tolerance, side)
    if not all(float(one.mass.sum()) > 0 for one, _ in points):
        raise NothingLeft
    return points, min(aim.tilt, _STEEPEST / points[0][0].step)


def _gridded(
    look: Look, aim: Aim, tolerance: float, side: Side, *, finest: float = 0.0
) -> list[tuple[Points, int]]:
    """Each pair on one grid, fine enough for the tolerance at the aim, if it need not be finer
    than this: as is seen by how far the grid moves the moment."""
    size = max(aim.epsilon, aim.stddev / 64)
    square = 8 * tolerance * size / ((aim.tilt + 1) * look.count)
    step = min(math.sqrt(square) / _WIDER, max(aim.stddev / _FINEST, tolerance * size / 4))
    widest = _UPPER_WINDOW if side is Side.UPPER else _LOWER_WINDOW
    finest = max(finest, widest * aim.stddev / LARGEST, look.largest * _FINEST_STEP) or 1.0
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
    fineness = _Fineness.at(aim, step, tolerance)
    on_grid = _above if side is Side.UPPER else _below
    points: list[tuple[Points, int]] = []
    moved = 0.0
    for group in look.groups:
        found, off = on_grid(group, fineness)
        points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
        moved += float(group.counts @ np.abs(off))
    return points, moved / max(aim.tilt, _FLATTEST)


def _above(group: Seen, fineness: "_Fineness") -> tuple[list[Points], Floats]:
    """The pairs from above, all between the same points; and by how much ln of their moments is
    off."""
    cells = _between(group, fineness.of_all(group), fineness.step)
    found = raised_together(group.whole, cells, fineness.step)
    exact = log_moments(group.whole, cells, fineness.tilt)
    return found, log_moments_of(found, fineness.tilt) - exact


def _below(group: Seen, fineness: "_Fineness") -> tuple[list[Points], Floats]:
    """The pairs from below, each on points of its own; and the same."""
    found, off = [], []
    for (pair, _), log_moment, share in zip(group.pairs, *group.tilted(fineness.tilt), strict=True):
        edges = fineness.edges(group, share, float(log_moment))
        one = lowered(pair, edges, fineness.step, fineness.tilt)
        both = zip(pair.pieces, edges, strict=True)
        cells = [Cells.of(piece, each, fineness.step) for piece, each in both]
        exact = log_moments(pair, cells, fineness.tilt)
        found.append(one)
        off.append(float((log_moments_of([one], fineness.tilt) - exact)[0]))
    return found, np.array(off)


def _between(group: Seen, edges: Sequence[Indices], step: float) -> list[Cells]:
    """The cells of each piece of the group between these edges."""
    both = zip(group.whole.pieces, edges, strict=True)
    return [Cells.of(piece, each, step) for piece, each in both]


@dataclass(frozen=True, slots=True)
class _Fineness:
    """How fine cells are to be: the mean square of their widths under the tilted law, the most
    that one may bend a curve that falls by e^(-tilt loss), and the grid's step."""

    tilt: float
    bend: float
    square: float
    step: float

    @staticmethod
    def at(aim: Aim, step: float, tolerance: float) -> "_Fineness":
        """What the tolerance needs at this aim."""
        bend = min(math.sqrt(4 * tolerance * (1 + aim.tilt * max(aim.epsilon, 0.0))), 0.5)
        return _Fineness(aim.tilt, bend, (_WIDER * step) ** 2, step)

    def of_all(self, group: Seen) -> list[Indices]:
        """Edges of cells for each piece of the group, for all its pairs."""
        log_moment, share = group.tilted(self.tilt)
        mean = group.counts @ share / group.counts.sum()
        return self.edges(group, mean, float(log_moment.min()))

    def edges(self, group: Seen, share: Floats, log_moment: float) -> list[Indices]:
        """Edges of cells for each piece, in steps, given the tilted law's shares; below some loss
        one cell is enough."""
        least = (log_moment - _NEGLIGIBLE) / max(self.tilt, _FLATTEST)
        return [
            self._of_piece(edges, share[at : at + len(edges) - 1], least)
            for at, edges in group.pieces
        ]

    def _of_piece(self, edges: Floats, share: Floats, least: float) -> Indices:
        """Finer where the tilted law has more, so that the mean square is kept with few cells.
        Widths are powers of 2 times the step."""
        first = min(max(int(np.searchsorted(edges, least)) - 1, 0), len(edges) - 2)
        least = max(least, -_DEEPEST * self.step)
        edges, share = np.maximum(edges[first:], least), share[first:]
        width = np.maximum(np.diff(edges), _FLATTEST)
        total = max(float(share.sum()), _FLATTEST)
        density = np.maximum(share, _LEAST_SHARE * total) / width
        wish = density ** (-1 / 3)
        wish *= math.sqrt(self.square / max(float(share @ wish**2), _FLATTEST))
        rare = np.log(total) - np.log(np.maximum(share, _FLATTEST))
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


def float_below(number: Fraction) -> float:
    """A float at most the number, and next to it."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def epsilon(
    pairs: Counted, delta: float, tolerance: float, side: Side, *, enough: float = 0.0
) -> float:
    """A bound from this side on the epsilon at this delta, for one order of the neighbours;
    infinite or 0 where it can't be told. From above, one that is at most ``enough`` may be as
    coarse as that."""
    unknown = math.inf if side is Side.UPPER else 0.0
    if not pairs:
        return 0.0
    told = sum(count * float(p.atoms.p[p.atoms.loss == np.inf].sum()) for p, count in pairs)
    if told >= delta and _surely_told(pairs) > delta:
        return math.inf
    if told >= delta or delta < _LEAST_DELTA:
        return unknown
    look = Look.at(pairs, delta * _TAIL / sum(count for _, count in pairs))
    if look.is_too_far:
        return unknown
    aim = aim_at_delta(look, delta - told)
    room = min((enough / max(aim.epsilon, _FLATTEST) - 1) / 2, _COARSEST)
    try:
        if room > 2 * tolerance:
            points, tilt = _tilted(look, aim, room, side)
            if delta_by_moment(points, tilt, enough) <= delta:
                return enough
            roughly = composed(points, tilt, side, log_delta=aim.log_delta)
            if (found := roughly.epsilon(delta)) <= enough:
                return found
        found = closely(look, aim, tolerance, side).epsilon(delta)
        if 0 < found < _FAR_OFF * aim.epsilon:
            again = replace(aim_at_epsilon(look, found), log_delta=math.log(delta))
            closer = min if side is Side.UPPER else max
            found = closer(found, closely(look, again, tolerance, side).epsilon(delta))
    except NothingLeft:
        return unknown
    return found


def _surely_told(pairs: Counted) -> float:
    """The probability that some loss is infinite, rounded down."""
    finite = 0.0
    for pair, count in pairs:
        infinite = float(pair.atoms.p[pair.atoms.loss == np.inf].sum())
        finite += count * math.log1p(-min(infinite * (1 - ATOM), 0.5))
    return -math.expm1(finite) * (1 - ATOM * (1 + len(pairs)))


def delta(pairs: Counted, epsilon: float, tolerance: float, side: Side) -> float:
    """A bound from this side on the delta at this epsilon, for one order of the neighbours."""
    if not pairs:
        return 0.0
    total = sum(count for _, count in pairs)
    unknown = 1.0 if side is Side.UPPER else 0.0
    look = Look.at(pairs, _FIRST_TAIL)
    if look.is_too_far:
        return unknown
    if (beyond := _delta_beyond(look, epsilon, side)) is not None:
        return beyond
    aim = aim_at_epsilon(look, epsilon)
    level = math.exp(max(aim.log_delta, math.log(_LEAST_DELTA)))
    best, closer = unknown, min if side is Side.UPPER else max
    for _ in range(_REFINEMENTS):
        look = Look.at(pairs, max(level * _TAIL / total, _LEAST_DELTA))
        if look.is_too_far:
            return best
        aim = aim_at_epsilon(look, epsilon)
        aim = replace(aim, log_delta=min(aim.log_delta, math.log(level)))
        closeness = tolerance / max(1.0, aim.tilt * epsilon)  # of delta, not of epsilon
        try:
            found = closely(look, aim, closeness, side, least=epsilon).delta(epsilon)
        except NothingLeft:
            return best
        best = closer(best, found)
        if found >= level / 10 or level <= _LEAST_DELTA:
            break
        level = max(found / 10, _LEAST_DELTA)  # what was left out was too much
    return best


def _delta_beyond(look: Look, epsilon: float, side: Side) -> float | None:
    """The bound on delta if no sum of finite losses reaches epsilon; else ``None``."""
    if side is Side.LOWER:
        return None
    step = look.largest * 2.0**-20 or 1.0
    points: list[tuple[Points, int]] = []
    for group in look.groups:
        ends = ((math.floor(e[0] / step), math.ceil(e[-1] / step)) for _, e in group.pieces)
        found = raised_together(group.whole, _between(group, [*map(np.array, ends)], step), step)
        points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
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
    if look.is_too_far:
        raise NoBound("the losses of a sum that is sampled are too large for a grid")
    aims = [
        _UNTILTED,
        *(replace(aim_at_delta(look, d), log_delta=_JOINED_LEAST) for d in _JOINED_DELTAS),
    ]
    points = _gridded_for(look, aims)
    laws = [composed(points, aim.tilt, side, log_delta=aim.log_delta) for aim in aims]
    starts = [round((law.first - laws[0].first) / law.step) for law in laws]
    most = starts[-1] + len(laws[-1].mass)  # hardly anything lies above the last window
    mass = np.ones(most)
    for at, law in zip(starts, laws, strict=True):  # each bounds each mass
        seen = mass[max(at, 0) : at + len(law.mass)]
        np.minimum(seen, law.masses()[max(-at, 0) :][: len(seen)], out=seen)
    mass[0] += laws[0].outside  # untilted: all that lies below its window counts there
    loss = laws[0].first + np.arange(most) * laws[0].step
    if float(np.abs(loss[[0, -1]]).max()) > _LARGEST:
        raise NoBound(_TOO_FAR)
    top = sum(count * float(one.loss[one.mass > 0].max(initial=-np.inf)) for one, count in points)
    mass[loss > top + laws[0].step / 2] = 0.0  # rounding only: no sum reaches there
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


def _gridded_for(look: Look, aims: Sequence[Aim]) -> list[tuple[Points, int]]:
    """Each pair from above on one grid that is fine at all aims."""
    farthest = aims[-1].epsilon + _UPPER_WINDOW * aims[-1].stddev
    finest = min(look.largest * look.count, farthest) / _JOINED_POINTS
    middle = aims[len(aims) // 2]
    at_middle = _gridded(look, middle, _JOINED_TOLERANCE, Side.UPPER, finest=finest)
    step = at_middle[0][0].step
    finenesses = [_Fineness.at(aim, step, _JOINED_TOLERANCE) for aim in aims]
    points: list[tuple[Points, int]] = []
    for group in look.groups:
        of_pieces = zip(*(fineness.of_all(group) for fineness in finenesses), strict=True)
        edges = [np.unique(np.concatenate(each)) for each in of_pieces]
        found = raised_together(group.whole, _between(group, edges, step), step)
        points += [(one, count) for one, (_, count) in zip(found, group.pairs, strict=True)]
    return points
