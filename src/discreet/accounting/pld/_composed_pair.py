"""One dominating pair of atoms for a whole sum, to be sampled, mixed, or evaluated at any loss.

A tilted composition has precise masses only near its own mean. So the sum is composed at a ladder
of tilts whose precise parts overlap. Every composition bounds every mass; the best bound is taken.
Then neighbouring atoms are merged. See docs/proofs/accountant.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from discreet._arrays import FloatArray, IndexArray
from discreet.accounting.pld._composition import composed, first_loss, infinite_mass
from discreet.accounting.pld._continuous import FINEST_STEP, ROUND, UNDERFLOW_GUARD
from discreet.accounting.pld._convolution import SumMasses, convolved_directly
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import (
    Atoms,
    Pair,
    Side,
    UncomposedPld,
    nothing,
    sign_of,
)
from discreet.accounting.pld._grid import CountedPoints, on_common_grid
from discreet.accounting.pld._tilt import CoarsePld, CountedPairs

_TAIL_OF_CELLS = 1e-100  # probability of each loss above the cells of a coarse estimate
_LOG_TAIL = -230.0  # ln of the probability above the last rung
_PARTS = (1.0, 0.4, 0.15)  # parts of that logarithm, tried until the grid is fine enough
_LEAST_LOG_TAIL = -40.0
_LOG_OTHER_TAIL = -40.0  # ln of the other law's probability below the first rung
_ROOM = -30.0  # added to `_LOG_TAIL` from below: mass that wraps round is subtracted there
_VISIBLE = -20.0  # ln of a share that rounding hardly changes
_APART = 8.0  # standard deviations between two rungs
_FARTHEST = 40.0  # Bregman divergence of two rungs, in ln of a probability
_MOST_RUNGS, _MOST_HALVINGS = 24, 20
_FINENESS = 0.01  # a step in the scale of the bulk, times the root of the count
_COARSEST = 1 / 64  # a step in that scale, at most
_BELOW = 16.0  # scales of the bulk; masses further below have no effect at losses above 0
_MOST_POINTS = 1 << 17  # of a window
_CELLS = 2048  # of the pair
_LARGEST_LOSS = 700.0  # its exponential is a number
_LEAST_SHARE = 1e-40  # of the largest mass; each point counts as having at least this
_WEIGHT_PER_RUNG = 0.03  # masses at a rung count less by this factor than those one rung nearer
_MARGIN = 8  # points beyond the last possible sum


@dataclass(frozen=True, slots=True)
class _Rung:
    """A tilt's exponent, ln of the sum's moment, and the tilted mean and standard deviation."""

    exponent: float
    log_moment: float
    mean: float
    stddev: float

    @staticmethod
    def at(coarse: CoarsePld, exponent: float) -> "_Rung":
        with np.errstate(all="ignore"):  # an exponent may be far too large: no rung is near it
            return _Rung(exponent, *coarse.moments(exponent))

    def divergence(self, other: "_Rung") -> float:
        way = other.exponent - self.exponent
        return other.log_moment - self.log_moment - way * self.mean

    def is_near(self, other: "_Rung") -> bool:
        """Whether the masses between the two survive rounding."""
        return min(self.divergence(other), other.divergence(self)) <= _FARTHEST


@dataclass(frozen=True, slots=True)
class _BoundedMasses:
    """Bounds from one side on the masses of a whole sum at evenly spaced, rising losses, and on
    its mass at infinity. ``importance`` is large where the tilted laws have mass."""

    loss: FloatArray
    mass: FloatArray
    infinite: float
    importance: FloatArray


def composed_pair(pairs: CountedPairs, side: Side) -> Pair | None:
    """One pair for the sum of all pairs, as a bound from this side; ``None`` if its losses are too
    large for a grid."""
    if not pairs:
        return nothing()
    if len(pairs) == 1 and pairs[0][1] == 1:
        return pairs[0][0]
    found = _composed_masses(pairs, side, _LOG_TAIL)
    if found is None:
        return None
    return _upper_pair(found) if side is Side.UPPER else _lower_pair(found)


def composed_pld(pairs: CountedPairs, side: Side, tail: float) -> UncomposedPld | None:
    """The whole sum's law as a bound from this side; ``None`` as in `composed_pair`. It is precise
    at all losses up to one that has probability at most ``tail``. It takes longer than one tilted
    composition, and is for sums that no tilt suits."""
    log_tail = max(math.log(tail), _LOG_TAIL)
    found = _composed_masses(pairs, side, log_tail, is_above_0=True)
    if found is None:
        return None
    moved = sign_of(side) * 4 * ROUND * np.abs(found.loss)
    return UncomposedPld(side, found.loss + moved, found.mass, found.infinite)


def _composed_masses(
    pairs: CountedPairs, side: Side, log_tail: float, *, is_above_0: bool = False
) -> _BoundedMasses | None:
    # 1. Choose tilts, and a grid that suits all of them.
    coarse = CoarsePld.of(pairs, _TAIL_OF_CELLS)
    if coarse.is_too_large:
        return None
    for part in _PARTS:  # a far tail must not make the grid coarse
        ends = min(part * log_tail, max(log_tail, _LEAST_LOG_TAIL))
        rungs = _ladder(coarse, ends)
        middle = next(place for place, rung in enumerate(rungs) if rung.exponent == 0)
        bulk = coarse.bulk(rungs[middle].stddev or coarse.largest)
        step = bulk * min(_FINENESS / math.sqrt(coarse.count), _COARSEST)
        low, high = _reach(coarse, rungs, ends + (_ROOM if side is Side.LOWER else 0.0))
        if is_above_0:
            rungs, middle, low = rungs[middle:], 0, max(low, rungs[middle].mean - _BELOW * bulk)
        most = _MOST_POINTS << is_above_0
        finest = max((high - low) / most, coarse.largest * FINEST_STEP)
        if finest <= step:
            break
    exponents = [rung.exponent for rung in rungs]
    points = on_common_grid(coarse, exponents, max(step, finest), side, least=low - max(high, 0.0))
    if not all(float(one.mass.sum()) > 0 for one, _ in points):
        return None

    # 2. Bound each mass on one window.
    window = _window(points, low, high)
    if (found := convolved_directly(points, side, window)) is not None:
        return _directly(found, points, side, exponents=exponents, middle=middle)
    return _at_all(points, side, window, exponents=exponents, middle=middle)


def _at_all(
    points: CountedPoints,
    side: Side,
    window: tuple[int, int],
    *,
    exponents: Sequence[float],
    middle: int,
) -> _BoundedMasses | None:
    """Compositions at each tilt, and the best bound on each mass."""
    # 1. Compose at each tilt, on the same window.
    laws = [composed(points, exponent, side, window=window) for exponent in exponents]
    if max(abs(laws[0].first), abs(laws[0].end)) > _LARGEST_LOSS:
        return None
    importance = np.zeros(window[1])
    for place, law in enumerate(laws):
        weight = _WEIGHT_PER_RUNG ** abs(place - middle) / max(
            float(law.mass.max()), UNDERFLOW_GUARD
        )
        importance = np.maximum(importance, weight * law.mass)

    # 2. Take the best bound on each mass.
    loss = np.asarray(laws[0].first + np.arange(window[1]) * laws[0].step, dtype=np.float64)
    if side is Side.LOWER:
        mass = np.max([law.masses_inside() for law in laws], axis=0)
        return _BoundedMasses(loss, mass, laws[0].infinite, importance)
    mass = np.min([law.masses() for law in laws], axis=0)
    top = sum(count * float(one.loss[one.mass > 0].max()) for one, count in points)
    mass[loss > top + laws[0].step / 2] = 0.0  # rounding only: no sum reaches there
    if laws[0].outside:  # mass below the window moves up to its first point
        mass[0] += math.exp(min(laws[0].log_scale + math.log(laws[0].outside), 0.0))
    beyond = min(law.beyond for law in laws)
    return _BoundedMasses(loss, mass, laws[0].infinite + beyond, importance)


def _directly(
    found: SumMasses,
    points: CountedPoints,
    side: Side,
    *,
    exponents: Sequence[float],
    middle: int,
) -> _BoundedMasses | None:
    """Bounds on each mass by a plain convolution, which is precise everywhere."""
    size, step = len(found.mass), points[0][0].step
    first = first_loss(points, found.start, size, side)
    loss = np.asarray(first + np.arange(size) * step, dtype=np.float64)
    if max(abs(float(loss[0])), abs(float(loss[-1]))) > _LARGEST_LOSS:
        return None
    with np.errstate(divide="ignore"):
        power = np.log(found.mass) + np.multiply.outer(exponents, loss)
    tilted = np.maximum(np.exp(power - power.max(axis=1, keepdims=True)), 2.0**-51)
    weights = _WEIGHT_PER_RUNG ** np.abs(np.arange(len(exponents)) - middle)
    importance = (weights[:, np.newaxis] * tilted).max(axis=0)
    infinite = infinite_mass(points, side)
    if side is Side.LOWER:
        return _BoundedMasses(loss, found.mass, infinite, importance)
    found.mass[0] += found.below  # mass below the window moves up to its first point
    return _BoundedMasses(loss, found.mass, infinite + found.above, importance)


def _ladder(coarse: CoarsePld, log_tail: float) -> list[_Rung]:
    """Rungs in rising order, near each other, from the exponent -1, at which the tilted law is
    the other law's, over 0 to where ln of the mass is below ``log_tail`` or the last mass shows."""
    start = _Rung.at(coarse, 0.0)
    down = [start]
    while down[-1].exponent > -1:
        down.append(_next(coarse, down[-1], -1.0))
    up = [start]
    end, log_end = _last_mass(coarse)
    while len(up) < _MOST_RUNGS:
        last = up[-1]
        is_past = last.log_moment - last.exponent * last.mean < log_tail
        if is_past or last.exponent * end + log_end - last.log_moment > _VISIBLE:
            break
        up.append(_next(coarse, last, math.inf))
    return [*reversed(down), *up[1:]]


def _last_mass(coarse: CoarsePld) -> tuple[float, float]:
    """The largest loss of the coarse estimate, and ln of its probability."""
    end = log_end = 0.0
    with np.errstate(divide="ignore"):
        for group in coarse.groups:
            place = int(np.argmax(group.loss))
            end += float(group.counts.sum()) * float(group.loss[place])
            log_end += float(group.counts @ np.log(group.mass[:, place]))
    return end, log_end


def _next(coarse: CoarsePld, last: _Rung, limit: float) -> _Rung:
    """The next rung on the way to the limit, near the last one."""
    width = _APART / max(last.stddev, coarse.largest * 1e-6)
    for _ in range(_MOST_HALVINGS):
        moved = last.exponent + math.copysign(width, limit)
        found = _Rung.at(coarse, max(moved, limit) if limit < 0 else moved)
        if last.is_near(found):
            break
        width /= 2
    return found


def _reach(coarse: CoarsePld, rungs: Sequence[_Rung], log_tail: float) -> tuple[float, float]:
    """Two losses; the probability below the first and above the second is at most e^log_tail, by
    Chernoff's bound."""
    up = [one for one in rungs if one.exponent > 0]
    down = [one for one in rungs if one.exponent < 0]
    high = min([(one.log_moment - log_tail) / one.exponent for one in up], default=math.inf)
    low = max([(one.log_moment - log_tail) / one.exponent for one in down], default=-math.inf)
    other = _next(coarse, rungs[0], -math.inf)  # its power of the other law is below 0
    low_of_other = (other.log_moment - _LOG_OTHER_TAIL) / (other.exponent + 1)
    return max(min(low, low_of_other), -_LARGEST_LOSS), min(high, _LARGEST_LOSS)


def _window(points: Sequence[tuple[Points, int]], low: float, high: float) -> tuple[int, int]:
    """First index and size of a window that holds all sums between the two losses."""
    step = points[0][0].step
    offset = sum(count * one.offset for one, count in points)
    least = sum(count * int(one.index[one.mass > 0].min()) for one, count in points)
    most = sum(count * int(one.index[one.mass > 0].max()) for one, count in points)
    start = max(math.floor((low - offset) / step), least) - _MARGIN
    stop = min(math.ceil((high - offset) / step), most) + _MARGIN
    return start, scipy.fft.next_fast_len(max(stop - start, 2 * _MARGIN), real=True)


def _upper_pair(found: _BoundedMasses) -> Pair:
    """Atoms from above: a cell's probability goes to its two ends, so that both laws keep their
    masses."""
    ends = _cells(found.importance)
    cell = np.searchsorted(ends, np.arange(len(found.mass)), side="right") - 1
    cell = np.minimum(cell, len(ends) - 2)
    loss = found.loss[ends]
    low, high = loss[cell], loss[cell + 1]
    up = found.mass * np.expm1(low - found.loss) / np.expm1(low - high)
    up = np.minimum(up * (1 + 16 * ROUND), found.mass)
    at_low = np.bincount(cell, found.mass - up, len(ends))
    at_high = np.bincount(cell + 1, up, len(ends))
    rounding = 4 * (int(np.diff(ends).max()) + 8) * ROUND
    p = np.asarray((at_low + at_high) * (1 + rounding), dtype=np.float64)
    q = p * np.exp(-loss)
    rest = max(0.0, 1 - float(q.sum()) * (1 - 1e-9))
    return Pair(
        Atoms(
            np.concatenate([[-np.inf], loss, [np.inf]]),
            np.concatenate([[0.0], p, [found.infinite]]),
            np.concatenate([[rest], q, [0.0]]),
        )
    )


def _lower_pair(found: _BoundedMasses) -> Pair:
    """Atoms from below: each cell is one outcome."""
    # 1. Sum up each cell.
    starts = _cells(found.importance)[:-1]
    sizes = np.diff(np.append(starts, len(found.mass)))
    rounding = 4 * (int(sizes.max()) + 8) * ROUND
    low = found.loss[starts]
    p = np.add.reduceat(found.mass, starts)
    fall = -np.expm1(np.repeat(low, sizes) - found.loss)
    excess = np.add.reduceat(found.mass * fall, starts)  # p - q e^low

    # 2. The loss ln(p/q) of each cell, rounded down.
    has_mass = p > 0
    p, share = p[has_mass], np.minimum(excess[has_mass] / p[has_mass], 1.0)
    loss = low[has_mass] - np.log1p(-share * (1 - rounding))
    p *= 1 - rounding
    q = p * np.exp(-loss)

    # 3. Cut off the lowest losses where the other law would have more mass than 1.
    above = np.cumsum(q[::-1])[::-1] * (1 + rounding + len(q) * ROUND)
    room = np.clip((1 - (above - q)) / q, 0.0, 1.0)
    p, q = p * room, q * room
    return Pair(Atoms(np.append(loss, np.inf), np.append(p, found.infinite), np.append(q, 0.0)))


def _cells(importance: FloatArray) -> IndexArray:
    """Ends of cells, as places of the window, finer where the laws have more mass: the cube root
    of a density divides cells so that the mean square of their widths is least."""
    last = len(importance) - 1
    if last < _CELLS:
        return np.arange(last + 1)
    wish = np.cumsum(np.cbrt(np.maximum(importance, _LEAST_SHARE)))
    place = np.searchsorted(wish, np.linspace(wish[0], wish[-1], _CELLS))
    ends = np.concatenate([[0], place, [last]])  # never falls
    return ends[np.diff(ends, prepend=-1) > 0]
