"""Certified bounds from privacy loss distributions: epsilon at a delta, delta at an epsilon,
and delta at every epsilon.

Rough estimates choose the tilt, the grid and the window. They affect only how close the results
are: `_discretize` and `_composition` make them bounds.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet._arrays import FloatArray
from discreet.accounting.pld._composed_pair import composed_pld
from discreet.accounting.pld._composition import (
    Composition,
    composed,
    delta_by_moment,
    infinite_mass,
)
from discreet.accounting.pld._continuous import UNDERFLOW_GUARD
from discreet.accounting.pld._dominating_pairs import ATOM, Atoms, Pair, Side, UncomposedPld
from discreet.accounting.pld._grid import NoFiniteMass, discretized, upper_ends
from discreet.accounting.pld._tilt import (
    CoarsePld,
    CountedPairs,
    Tilt,
    tilt_for_delta,
    tilt_for_epsilon,
)

SHARE_OF_ONE_SIDE = 0.3  # part of a tolerance that the grid of one end of an interval may use
_LEAST_DELTA = 1e-280  # below, masses are lost in underflow
_LARGEST_FLOAT = sys.float_info.max
_TAIL_OF_COARSE = 1e-4  # part of delta that the coarse estimate of all terms leaves out

# Remote losses
_REMOTE_LOSS = 590.0  # a larger loss with next to no mass is moved to infinity
_NEXT_TO_NOTHING = 1e-200

# Epsilon at a delta
_RETILT_BELOW = 0.9  # part of the expected epsilon; below it, a new tilt is chosen
_COARSEST = 0.1  # largest tolerance, for a direction whose epsilon is the smaller one
_NEXT_TO_0 = 0.1  # of a standard deviation: an expected epsilon below it may really be 0
_UNEXPECTED = 0.1  # relative distance from the expected epsilon; above it, seek large losses
_LOPSIDED = 0.4  # a sum whose bulk is below this part of its stddev has rare, large losses

# Delta at an epsilon
_TAIL_UNKNOWN_DELTA = 1e-30  # tail that the coarse estimate leaves out while delta is unknown
_REFINEMENTS = 4  # rounds in which an unknown delta is estimated
_POWERS = (0.5, 1.0, 2.0, 4.0, 8.0)  # Chernoff powers, times the standard deviation
_SHARE_OUTSIDE = 0.003  # largest part of delta that may come from outside of the window

# Profiles
_LEFT_OUT = 1e-8  # part of the least delta that a coarse estimate for a profile leaves out
_TOLERANCE = 3e-4  # of a profile
_LEVELS_PER_LAW = 2  # levels of a profile that share a law, if laws take long
_EVERYTHING = UncomposedPld(Side.UPPER, np.zeros(0), np.zeros(0), 1.0)  # its delta is 1


def float_below(number: Fraction) -> float:
    """The largest float that is at most the number."""
    if number > _LARGEST_FLOAT:
        return _LARGEST_FLOAT
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def epsilon(
    pairs: CountedPairs, delta: float, tolerance: float, side: Side, *, enough: float = 0.0
) -> float:
    """Bound from this side on the epsilon at this delta, for one direction.

    If no bound can be computed, it is infinite from above and 0 from below. A result from above
    may be coarse if it is at most ``enough``.
    """
    unknown = math.inf if side is Side.UPPER else 0.0
    if not pairs:
        return 0.0

    # 1. Infinite losses and a single loss need no grid.
    pairs = _without_remote(pairs, side, delta * _TAIL_OF_COARSE)
    infinite = sum(count * float(p.atoms.p[p.atoms.loss == np.inf].sum()) for p, count in pairs)
    if infinite >= delta and _surely_infinite(pairs) > delta:
        return math.inf
    if infinite >= delta or delta < _LEAST_DELTA:
        return unknown
    if len(pairs) == 1 and pairs[0][1] == 1:
        return UncomposedPld.of_pair(pairs[0][0], side).epsilon(delta)

    # 2. A coarse estimate, and the tilt that suits this delta.
    coarse = CoarsePld.of(pairs, delta * _TAIL_OF_COARSE / sum(count for _, count in pairs))
    if coarse.is_too_large:
        return unknown
    tilt = tilt_for_delta(coarse, delta - infinite)
    try:
        # 3. A coarse bound is enough where the other direction has a larger epsilon.
        found = _coarse_epsilon(coarse, tilt, delta, enough=enough, finest=2 * tolerance)
        if found <= enough:
            return found
        return _epsilon_at(coarse, tilt, delta, side, tolerance=tolerance)
    except NoFiniteMass:
        return unknown


def _coarse_epsilon(
    coarse: CoarsePld, tilt: Tilt, delta: float, *, enough: float, finest: float
) -> float:
    """A cheap upper bound on epsilon: on the coarsest grid that can show it is at most
    ``enough``."""
    room = min((enough / max(tilt.epsilon, UNDERFLOW_GUARD) - 1) / 2, _COARSEST)
    if room <= finest:
        return math.inf
    points, exponent = discretized(coarse, tilt, room, Side.UPPER)
    if delta_by_moment(points, exponent, enough) <= delta:
        return enough
    return composed(points, exponent, Side.UPPER, log_delta=tilt.log_delta).epsilon(delta)


def _epsilon_at(
    coarse: CoarsePld, tilt: Tilt, delta: float, side: Side, *, tolerance: float
) -> float:
    """Epsilon by one tilted composition, and by further ones if the tilt turns out not to suit."""
    found = _composition_at(coarse, tilt, tolerance, side).epsilon(delta)
    closer = min if side is Side.UPPER else max
    if side is Side.UPPER and found > 0 and tilt.epsilon < _NEXT_TO_0 * tilt.stddev:
        tail = delta * _TAIL_OF_COARSE / coarse.count
        precision = _DeltaPrecision(tolerance, expected=delta, tail=tail)
        if _delta_at(coarse.pairs, 0.0, precision, side) <= delta:
            return 0.0
    if 0 < found < _RETILT_BELOW * tilt.epsilon:
        again = replace(tilt_for_epsilon(coarse, found), log_delta=math.log(delta))
        found = closer(found, _composition_at(coarse, again, tolerance, side).epsilon(delta))
    if abs(found - tilt.epsilon) > _UNEXPECTED * tilt.epsilon and _is_lopsided(coarse, tilt):
        law = composed_pld(coarse.pairs, side, delta * _TAIL_OF_COARSE / len(coarse.pairs))
        found = found if law is None else closer(found, law.epsilon(delta))
    return found


def _composition_at(
    coarse: CoarsePld, tilt: Tilt, tolerance: float, side: Side, *, least: float = math.inf
) -> Composition:
    """The sum composed at this tilt, on a grid that suits the tolerance."""
    points, exponent = discretized(coarse, tilt, tolerance, side)
    return composed(points, exponent, side, log_delta=tilt.log_delta, least=least)


def _without_remote(pairs: CountedPairs, side: Side, level: float) -> CountedPairs:
    """The pairs without atoms whose losses are too large for floating point. Only atoms with next
    to no mass are changed: they are moved up for bounds from above, and dropped for bounds from
    below."""
    found = []
    for pair, count in pairs:
        loss, p, q = pair.atoms.loss, pair.atoms.p, pair.atoms.q
        is_remote = np.isfinite(loss) & (np.abs(loss) > _REMOTE_LOSS)
        above = is_remote & (loss > 0)
        if not is_remote.any() or count * float(p[above].sum()) > level:
            found.append((pair, count))
            continue
        if side is Side.UPPER:
            atoms = Atoms(np.where(above, np.inf, np.where(is_remote, -_REMOTE_LOSS, loss)), p, q)
        else:
            atoms = Atoms(loss[~is_remote], p[~is_remote], q[~is_remote])
        lattice = None if (is_remote & ~above).any() and side is Side.UPPER else pair.lattice
        found.append((Pair(atoms, pair.pieces, lattice), count))
    return found


def _surely_infinite(pairs: CountedPairs) -> float:
    """The probability that some loss is infinite, rounded down."""
    finite = 0.0
    for pair, count in pairs:
        infinite = float(pair.atoms.p[pair.atoms.loss == np.inf].sum())
        finite += count * math.log1p(-min(infinite * (1 - ATOM), 0.5))
    return -math.expm1(finite) * (1 - ATOM * (1 + len(pairs)))


def delta(pairs: CountedPairs, epsilon: float, tolerance: float, side: Side) -> float:
    """Bound from this side on the delta at this epsilon, for one direction."""
    if not pairs:
        return 0.0
    if len(pairs) == 1 and pairs[0][1] == 1:
        return UncomposedPld.of_pair(pairs[0][0], side).delta(epsilon)
    total = sum(count for _, count in pairs)
    unknown = 1.0 if side is Side.UPPER else 0.0
    pairs = _without_remote(pairs, side, _NEXT_TO_NOTHING)

    # 1. A coarse estimate. If no finite loss reaches epsilon, delta is the mass at infinity.
    coarse = CoarsePld.of(pairs, _TAIL_UNKNOWN_DELTA)
    if coarse.is_too_large:
        return unknown
    if side is Side.UPPER and (beyond := _delta_beyond(coarse, epsilon)) is not None:
        return beyond
    tilt = tilt_for_epsilon(coarse, epsilon)
    level = math.exp(min(max(tilt.log_delta, math.log(_LEAST_DELTA)), 0.0))
    best, closer = unknown, min if side is Side.UPPER else max

    # 2. Bounds at the tilt that suits epsilon. The coarse estimate leaves out a small part of the
    # expected delta. If delta is smaller than expected, repeat with less left out.
    for _ in range(_REFINEMENTS):
        tail = max(level * _TAIL_OF_COARSE / total, _LEAST_DELTA)
        try:
            found = _delta_at(pairs, epsilon, _DeltaPrecision(tolerance, level, tail), side)
        except NoFiniteMass:
            return best
        best = closer(best, found)
        if found >= level / 10 or level <= _LEAST_DELTA:
            break
        level = max(found / 10, _LEAST_DELTA)
    return best


@dataclass(frozen=True, slots=True)
class _DeltaPrecision:
    """How closely a delta is computed: ``tail`` is the probability that may be left out."""

    tolerance: float
    expected: float
    tail: float


def _delta_at(pairs: CountedPairs, epsilon: float, precision: _DeltaPrecision, side: Side) -> float:
    """Delta by one tilted composition, if one suits the sum."""
    coarse = CoarsePld.of(pairs, precision.tail)
    if coarse.is_too_large:
        raise NoFiniteMass
    tilt = tilt_for_epsilon(coarse, epsilon)
    tilt = replace(tilt, log_delta=min(tilt.log_delta, math.log(precision.expected)))
    closeness = precision.tolerance / max(1.0, tilt.exponent * epsilon)  # of delta, not of epsilon
    if _is_lopsided(coarse, tilt):
        return _delta_of_lopsided(coarse, epsilon, side, closeness=closeness, tail=precision.tail)
    law = _composition_at(coarse, tilt, closeness, side, least=epsilon)
    found = law.delta(epsilon)
    if side is Side.UPPER and from_outside(law, coarse) > _SHARE_OUTSIDE * found:
        whole = composed_pld(pairs, side, precision.tail)
        return found if whole is None else min(found, whole.delta(epsilon))
    return found


def _delta_of_lopsided(
    coarse: CoarsePld, epsilon: float, side: Side, *, closeness: float, tail: float
) -> float:
    """The closest of several deltas of a sum that no tilt seems to suit. Near the largest loss of
    a discrete sum, a composition at one tilt has a finer grid than the composition at many."""
    unknown, closer = (1.0, min) if side is Side.UPPER else (0.0, max)
    law = composed_pld(coarse.pairs, side, tail)
    found = unknown if law is None else law.delta(epsilon)
    level = found
    with suppress(NoFiniteMass):
        while _LEAST_DELTA < level < 1:
            tilt = tilt_for_delta(coarse, level)
            one = _composition_at(coarse, tilt, closeness, side).delta(epsilon)
            level = one if one < level / 2 else 0.0  # a tilt for this smaller delta may be closer
            found = closer(found, one)
    return found


def from_outside(law: Composition, coarse: CoarsePld) -> float:
    """A rough estimate of the part of an upper bound on delta that comes from losses outside of
    the window. Losses above it are charged, and losses below it wrap round."""
    log_wrapped = -law.tilt * (law.end - law.first)
    spread = coarse.moments(0.0)[2]
    for power in _POWERS:
        exponent = -power / (spread or 1.0)
        log_below = coarse.moments(exponent)[0] - exponent * law.first
        log_wrapped = min(log_wrapped, log_below - law.tilt * (law.end - law.first))
    return law.beyond + math.exp(min(log_wrapped, 0.0))


def _is_lopsided(coarse: CoarsePld, tilt: Tilt) -> bool:
    """Whether rare, large losses make up most of the spread, so that no tilt suits the sum."""
    return coarse.bulk(tilt.stddev, tilt.exponent) < _LOPSIDED * tilt.stddev


def _delta_beyond(coarse: CoarsePld, epsilon: float) -> float | None:
    """The upper bound on delta if no sum of finite losses reaches epsilon, or ``None``."""
    points = upper_ends(coarse)
    if sum(count * float(one.loss.max(initial=-math.inf)) for one, count in points) > epsilon:
        return None
    return infinite_mass(points, Side.UPPER)


# A whole profile


@dataclass(frozen=True, slots=True)
class ProfileLaw:
    """Laws of one sum from above, for one direction, each near its own epsilon."""

    epsilons: tuple[float, ...]
    laws: tuple[Composition | UncomposedPld, ...]

    @staticmethod
    def of(pairs: CountedPairs, levels: Sequence[float], apart: float) -> "ProfileLaw":
        """Laws that suit these falling deltas, for epsilons that are at least ``apart`` from each
        other."""
        if not pairs:
            return ProfileLaw((), ())
        if len(pairs) == 1 and pairs[0][1] == 1:
            return ProfileLaw((0.0,), (UncomposedPld.of_pair(pairs[0][0], Side.UPPER),))
        least = levels[-1]
        pairs = _without_remote(pairs, Side.UPPER, least * _LEFT_OUT)
        coarse = CoarsePld.of(pairs, min(least, 1e-12) * _LEFT_OUT)
        if coarse.is_too_large:
            return ProfileLaw((0.0,), (_EVERYTHING,))
        # 1. Tilts for the levels, and one near 0. Even closer to 0, compositions take long and gain
        # little.
        far = [tilt_for_delta(coarse, level) for level in levels]
        tilts = [tilt_for_epsilon(coarse, far[-1].epsilon / 16)]
        for tilt in far:
            if tilt.epsilon > tilts[-1].epsilon + apart:
                tilts.append(tilt)

        # 2. A law for each tilt; or, if no tilt suits the sum, slower ones for a few levels.
        if any(_is_lopsided(coarse, one) for one in (tilt_for_epsilon(coarse, 0.0), *tilts)):
            few = [*levels[:-1:_LEVELS_PER_LAW], least]
            whole: list[UncomposedPld] = []
            for level in few:
                law = composed_pld(pairs, Side.UPPER, level * _LEFT_OUT)
                if law is None:
                    break
                whole.append(law)
            else:
                ends = (law.epsilon(level) for law, level in zip(whole, few, strict=True))
                return ProfileLaw(tuple(ends), tuple(whole))
        try:
            laws = [_composition_at(coarse, tilt, _TOLERANCE, Side.UPPER) for tilt in tilts]
        except NoFiniteMass:
            return ProfileLaw((0.0,), (_EVERYTHING,))
        return ProfileLaw(tuple(tilt.epsilon for tilt in tilts), tuple(laws))

    def delta(self, epsilon: float) -> float:
        """The smaller delta of the laws just below and above this epsilon."""
        place = bisect_left(self.epsilons, epsilon)
        near = self.laws[max(0, place - 1) : place + 1]
        return min((law.delta(epsilon) for law in near), default=0.0)

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """`delta` at each epsilon; hundreds take little longer than one for an uncomposed law."""
        if len(self.laws) == 1 and isinstance(law := self.laws[0], UncomposedPld):
            return law.deltas(epsilons)
        return np.array([self.delta(epsilon) for epsilon in epsilons.tolist()])
