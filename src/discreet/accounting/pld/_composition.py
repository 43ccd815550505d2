"""The law of a sum of independent privacy losses on one grid, and bounds on its delta.

Masses are tilted (multiplied by e^(tilt loss)) before they are transformed. So rounding errors are
small against the masses that matter, however small delta is. Three errors are bounded and charged
to the requested side: rounding, mass that wraps round, and mass beyond the window. See
docs/proofs/accountant.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import fft

from discreet.accounting.pld._continuous import ROUND, Floats
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side
from discreet.accounting.pld._fourier import Indices, IntegerLaw, convolved
from discreet.accounting.pld._segments import Segments

LARGEST = 1 << 21
_LOG_OUTSIDE = -30.0
_REACHES = (0.5, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0)  # Chernoff powers, times the stddev
_USUAL = 4.0  # the first power to try
_PARTS = (0.2, 0.5, 0.8)  # Chernoff powers as parts of the tilt, or of `_ODDS`
_ODDS = 16.0  # suits rare losses that are far away
_EXPONENT = 500.0
_BLOCK = 1 << 12
_ROUNDS = 4
_SMALL = 1 << 14
_FAR_BELOW = 12.0  # -ln of a negligible share of delta
_NEAR = 4.0  # largest error in the guess of ln delta for which a window still suits
_FIRST = 5.7  # standard deviations in the first window that is tried

_Window = tuple[int, int, float, float]  # start, size, ln of bounds on the mass above and below


@dataclass(frozen=True, slots=True)
class TiltedSum:
    """Several laws on one grid, tilted, and normalized so that the shares of each add up to 1.

    The laws are laid out one behind the other in ``index`` and ``share``, divided by ``runs``.
    ``means`` (of each law), ``mean`` and ``stddev`` (of the whole sum) are in steps of the grid.
    """

    places: tuple[Indices, ...]
    index: Indices
    share: Floats
    runs: Segments
    counts: Floats
    tilt: float
    step: float
    log_total: float  # ln of the whole sum's tilted mass, with rounding on the requested side
    means: Floats
    mean: float
    stddev: float

    @staticmethod
    def of(parts: Sequence[tuple[Points, int]], tilt: float, side: Side) -> "TiltedSum":
        """Tilt the laws. Each mass is first moved to the requested side by its rounding error."""
        runs = Segments.of([len(points.index) for points, _ in parts])
        counts = np.array([count for _, count in parts], dtype=np.float64)
        index = np.concatenate([points.index for points, _ in parts])
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.concatenate([points.mass for points, _ in parts]))
        moved = tilt * np.concatenate([points.loss for points, _ in parts])
        most, weight = runs.exponentials(moved + log_mass)
        with np.errstate(invalid="ignore"):
            doubt = 6 * ROUND * (np.abs(moved) + np.abs(log_mass) + runs.spread(np.abs(most)))
        doubt = np.where(np.isfinite(log_mass), doubt + 8 * ROUND, 0.0)
        weight = weight * (1 + _sign(side) * doubt)
        total = runs.sums(weight)
        share = weight / runs.spread(total)
        logs = most + np.log(total)
        rounding = 8 * ROUND * float(counts @ (1 + np.abs(logs))) * (1 + len(parts) * ROUND)
        rounding += len(parts) * ROUND * float(counts @ np.abs(logs))
        log_total = float(counts @ logs) + _sign(side) * rounding
        means = runs.sums(share * index)
        squares = runs.sums(share * (index - runs.spread(means)) ** 2)
        mean, stddev = float(counts @ means), math.sqrt(float(counts @ squares))
        step = parts[0][0].step
        places = tuple(points.index for points, _ in parts)
        return TiltedSum(
            places, index, share, runs, counts, tilt, step, log_total, means, mean, stddev
        )

    def laws(self) -> Iterator[IntegerLaw]:
        """Index, share and count of each law."""
        starts = self.runs.starts.tolist()
        for place, start, count in zip(self.places, starts, self.counts.tolist(), strict=True):
            yield place, self.share[start : start + len(place)], int(count)

    @property
    def fall(self) -> float:
        """The fall of ln of an untilted mass, relative to the tilted one, at each step."""
        return self.tilt * self.step

    def log_outside(self, far: int, way: int, enough: float) -> float:
        """Chernoff's bound on ln of the probability that the sum's index lies at least ``far``
        above its mean (``way`` 1) or below it (``way`` -1). The search for the best power stops at
        a bound below ``enough``."""
        ends = self.runs.mosts(np.where(self.share > 0, way * self.index, -np.inf))
        if float(self.counts @ ends) < way * self.mean + far:
            return -math.inf
        if enough > 0:
            return 0.0
        centered = np.where(
            self.share > 0, way * (self.index - self.runs.spread(self.means)), -np.inf
        )
        stddev = max(self.stddev, 1e-9)
        whole = self.tilt if way < 0 < self.tilt else _ODDS
        powers = [reach / stddev for reach in _REACHES]
        powers = sorted([*powers, *(part * whole * self.step for part in _PARTS)])
        first = powers.index(_USUAL / stddev)
        best = self._log_above(centered, powers[first], far)
        for others in (powers[first - 1 :: -1], powers[first + 1 :]):  # it is convex in the power
            for power in others:
                if best < enough or (found := self._log_above(centered, power, far)) > best:
                    break
                best = found
        return min(best, 0.0)

    def _log_above(self, centered: Floats, power: float, far: int) -> float:
        """Chernoff's bound by one power."""
        most, weight = self.runs.exponentials(power * centered)
        moment = most + np.log(self.runs.sums(self.share * weight))
        total = float(self.counts @ moment) * (1 + 1e-12) + 1e-12 * float(self.counts.sum())
        return total - power * far


@dataclass(frozen=True, slots=True)
class Composition:
    """The tilted law of a sum of losses on a window, as a bound from one side.

    The probability of the loss ``first + i * step`` is ``mass[i]`` times e^(log_scale - tilt *
    i * step). ``outside`` bounds the tilted probability outside of the window, and ``beyond`` the
    untilted probability above it.
    """

    side: Side
    tilt: float
    step: float
    first: float
    log_scale: float
    mass: Floats
    infinite: float
    outside: float
    beyond: float

    @property
    def end(self) -> float:
        """The loss just above the window."""
        return self.first + len(self.mass) * self.step

    def masses(self) -> Floats:
        """The probability of each loss, untilted."""
        power = self.log_scale - self.tilt * self.step * np.arange(len(self.mass))
        return np.asarray(np.minimum(self.mass * np.exp(np.minimum(power, 700.0)), 1.0))

    def masses_inside(self) -> Floats:
        """The same without mass that may have wrapped round from outside of the window."""
        return replace(self, mass=np.maximum(self.mass - self.outside, 0.0)).masses()

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound on delta equals ``delta``. If the mass at infinity alone
        exceeds it: infinite from above, and 0 or the window's start from below."""
        left = delta - self.extra
        if left <= 0:
            return math.inf if self.side is Side.UPPER else max(0.0, self.first)
        start = max(0, math.ceil(-self.first / self.step) - 1)
        if start >= len(self.mass) - 1:
            return 0.0
        log_left = math.log(left) - self.log_scale - self._slip
        best = len(self.mass), 0.0, 0.0  # a place where delta is small enough, and the sums there
        for place, heads, deltas in self._blocks(start):
            first = self._first_fit(deltas, log_left + self.tilt * self.step * place)
            if first < len(deltas):
                best = place + first, float(heads[first]), float(deltas[first])
            if first:
                break
        else:
            if self.side is Side.LOWER:
                return 0.0
        place, head, found = best
        target = math.exp(min(log_left + self.tilt * self.step * place, 700.0))
        return max(0.0, self.first + place * self.step - self._back(target, head, found))

    def _first_fit(self, deltas: Floats, log_left: float) -> int:
        """The first place from which on no delta exceeds e^log_left. From below, mass that wraps
        round is subtracted before."""
        sure = deltas if self.side is Side.UPPER else np.maximum(deltas - self.outside, 0.0)
        with np.errstate(divide="ignore"):
            fits = np.log(sure) <= log_left + self.tilt * self.step * np.arange(len(sure))
        return 0 if fits.all() else len(fits) - int(np.argmin(fits[::-1]))

    @property
    def _slip(self) -> float:
        """Relative rounding error of sums over the window, with the sign of the side."""
        return _sign(self.side) * 8 * ROUND * (len(self.mass) + 2 * _EXPONENT)

    def _back(self, target: float, head: float, delta: float) -> float:
        """The distance before a point, at most a step, at which delta reaches the target. The
        target, ``head`` and ``delta`` are in the units of `_blocks` at that point."""

        def until(wanted: float) -> float:
            share = (wanted - delta) / head if head > 0 else 1.0
            return min(max(-math.log1p(-share), 0.0), self.step) if share < 1 else self.step

        back = until(target)
        if self.side is Side.LOWER:  # untilting enlarges mass that wraps round
            for _ in range(_ROUNDS):
                back = until(target + self.outside * math.exp(min(self.tilt * back, 700.0)))
            needed = target + self.outside * math.exp(min(self.tilt * back, 700.0))
            if back < self.step and delta - math.expm1(-back) * head < needed * (1 - 1e-9):
                return self.step
        return back

    def delta(self, epsilon: float) -> float:
        """The bound on delta at this epsilon. Masses below the window may be missing, so the
        bound from above is 1 there."""
        if self.side is Side.UPPER and epsilon < self.first:
            return 1.0
        place = max(0, math.ceil((epsilon - self.first) / self.step))
        if place >= len(self.mass):
            return min(1.0, self.extra + (self.beyond if self.side is Side.UPPER else 0.0))
        for _, heads, deltas in self._blocks(place):  # down to the place
            head, found = float(heads[0]), float(deltas[0])
        back = self.first + place * self.step - epsilon
        found -= math.expm1(-max(back, 0.0)) * head
        if self.side is Side.LOWER:
            found = max(0.0, found - self.outside * math.exp(min(self.tilt * back, 700.0)))
        power = self.log_scale + self._slip - self.tilt * self.step * place
        return min(
            1.0, self.extra + (math.exp(min(power + math.log(found), 0.0)) if found else 0.0)
        )

    @property
    def extra(self) -> float:
        """The part of delta that is the same at every epsilon."""
        return self.infinite + (self.beyond if self.side is Side.UPPER else 0.0)

    def _blocks(self, start: int) -> Iterator[tuple[int, Floats, Floats]]:
        """Yields blocks of places, from the window's end down to ``start``.

        A block is its first place and two numbers for each place j, both in units of
        e^(log_scale - tilt * j * step): the sum of all masses from j on, each times
        e^(loss_j - loss), and delta at epsilon = loss_j.
        """
        steep, flat = (self.tilt + 1) * self.step, self.tilt * self.step
        size = max(1, min(_BLOCK, int(_EXPONENT / steep)))
        steeply, flatly = (np.exp(-rate * np.arange(size + 1)) for rate in (steep, flat))
        head = rest = 0.0
        for stop in range(len(self.mass), start, -size):
            place = max(start, stop - size)
            heads = decayed_sums(self.mass[place:stop], steeply, head)
            rests = decayed_sums(heads, flatly, rest)
            after = np.append(rests[1:], rest) * flatly[1]
            yield place, heads, after * -math.expm1(-self.step)
            head, rest = float(heads[0]), float(rests[0])


def composed(
    parts: Sequence[tuple[Points, int]],
    tilt: float,
    side: Side,
    *,
    log_delta: float | None = None,
    least: float = math.inf,
    window: tuple[int, int] | None = None,
) -> Composition:
    """Compose counted losses on a window, as a bound from this side.

    The window is given by its first index and its size, or chosen around the tilted mean. A chosen
    window holds nearly all of the tilted law; for bounds from above at deltas near e^log_delta, it
    holds the part that matters. It is extended down to ``least`` if that is near.
    """
    # 1. Tilt each law, and choose a window.
    tilted = TiltedSum.of(parts, tilt, side)
    step, sign = tilted.step, _sign(side)
    offsets = [count * points.offset for points, count in parts]
    start, size, above, below = _window(tilted, side, log_delta, window)
    lowest = (least - sum(offsets)) / step - 2
    if start - LARGEST < lowest < start and size < LARGEST:
        size = fft.next_fast_len(size + start - math.floor(lowest), real=True)
        start = math.floor(lowest)

    # 2. Compose by Fourier transforms.
    found = convolved(tilted.laws(), size)

    # 3. Move the results to the requested side by their rounding errors.
    first = start * step + sum(offsets)
    log_scale = tilted.log_total + found.log_whole - tilt * first
    reach = abs(first) + step * size + sum(abs(offset) for offset in offsets)
    log_scale += sign * 8 * ROUND * (abs(tilted.log_total) + abs(tilt) * reach + 8 * size)
    first += sign * 8 * (1 + len(parts)) * ROUND * reach
    mass = np.roll(found.mass, -(start - found.moved) % size) + sign * found.radius
    log_beyond = log_scale - tilt * step * size + above if tilt >= 0 else 0.0
    return Composition(
        side,
        tilt,
        step,
        first,
        log_scale,
        np.maximum(mass, 0.0),
        infinite_mass(parts, side),
        min(1.0, math.exp(above) + math.exp(below)),
        math.exp(min(0.0, log_beyond)),
    )


def _window(
    tilted: TiltedSum, side: Side, log_delta: float | None, window: tuple[int, int] | None
) -> _Window:
    if window is not None:
        start, size = window
        far_up = math.floor(start + size - tilted.mean) - 1
        far_down = math.floor(tilted.mean - start) - 1
        above = tilted.log_outside(far_up, 1, _LOG_OUTSIDE) if far_up > 0 else 0.0
        below = tilted.log_outside(far_down, -1, _LOG_OUTSIDE) if far_down > 0 else 0.0
        return start, size, above, below
    if side is Side.UPPER and tilted.tilt > 0 and log_delta is not None:
        log_scale = tilted.log_total - tilted.fall * tilted.mean
        return _above_only(tilted, log_delta - _FAR_BELOW, log_scale)
    return _both_ways(tilted)


def _above_only(tilted: TiltedSum, log_little: float, log_scale: float) -> _Window:
    """A window for bounds from above.

    Mass above the window is charged to delta. Mass from below wraps round to the window's upper
    end, where untilting makes it negligible. So the window may be smaller than the law, as long as
    little mass from above wraps round. If delta does not come from near the mean, rounding errors
    dominate, and a wide window keeps them small.
    """
    # 1. The upper end: widen it until Chernoff's bound on the mass above is small.
    half, fall = 7 * tilted.stddev + 32, tilted.fall
    log_beyond = log_little - log_scale
    wanted = min(half, max(-log_beyond, 0.0) / fall) + 8
    while True:
        up = min(math.ceil(wanted), LARGEST // 2)
        enough = log_beyond + fall * up
        above = tilted.log_outside(up - 2, 1, enough)
        if above < enough or wanted >= LARGEST // 2 or wanted > 100 * tilted.stddev + _SMALL:
            break
        wanted *= 1.4
    # 2. The size: as small as wrapping round allows.
    is_usual = -1.5 * _FAR_BELOW < log_beyond < -0.5 * _FAR_BELOW  # delta comes from near the mean
    most = max(half, up) + (up if is_usual else max(half, up))
    near = min(most, _NEAR / fall + 8)
    wanted = max(_FIRST * tilted.stddev, -log_little / fall, up) + near if is_usual else most
    while wanted < most and tilted.log_outside(int(wanted - near), 1, log_beyond) > log_beyond:
        wanted *= 1.2
    size = fft.next_fast_len(math.ceil(min(wanted, most, LARGEST)), real=True)
    return math.floor(tilted.mean) + up - size, size, above, 0.0


def _both_ways(tilted: TiltedSum) -> _Window:
    """A window with next to no mass outside of it, on either side: for untilted laws, and for
    bounds from below, from which the mass outside is subtracted."""
    wanted = 14 * tilted.stddev + 64
    while True:
        size = fft.next_fast_len(min(math.ceil(wanted), LARGEST), real=True)
        far = size // 2 - 2
        above = tilted.log_outside(far, 1, _LOG_OUTSIDE)
        below = tilted.log_outside(far, -1, _LOG_OUTSIDE)
        is_enough = max(above, below) < _LOG_OUTSIDE
        if is_enough or wanted >= LARGEST or wanted > 200 * tilted.stddev + _SMALL:
            return math.floor(tilted.mean) - size // 2, size, above, below
        wanted *= 1.4


def delta_by_moment(parts: Sequence[tuple[Points, int]], tilt: float, epsilon: float) -> float:
    """A bound on delta of the sum by one moment: (1 - e^(epsilon - loss))+ is at most tilt^tilt /
    (1 + tilt)^(1 + tilt) times e^(tilt (loss - epsilon))."""
    log_total = TiltedSum.of(parts, tilt, Side.UPPER).log_total
    log_share = -tilt * math.log1p(1 / tilt) - math.log1p(tilt) if tilt else 0.0
    log_delta = log_total - tilt * epsilon + log_share
    log_delta += 8 * ROUND * (abs(log_total) + tilt * epsilon + abs(log_share) + 8)
    return math.exp(min(log_delta, 0.0)) + infinite_mass(parts, Side.UPPER)


def _sign(side: Side) -> int:
    return 1 if side is Side.UPPER else -1


def infinite_mass(parts: Sequence[tuple[Points, int]], side: Side) -> float:
    """The probability that some loss is infinite."""
    finite = 0.0
    for points, count in parts:
        if points.infinite >= 1:
            return 1.0
        finite += count * math.log1p(-points.infinite)
    sign = _sign(side)
    return min(1.0, -math.expm1(finite) * (1 + sign * (64 + 2 * len(parts)) * ROUND))


def decayed_sums(values: Floats, falls: Floats, carried: float) -> Floats:
    """For each j, the sum over i >= j of values[i] times falls[i - j]. ``falls`` holds the powers
    of falls[1]; ``carried`` counts as one more value behind the last one."""
    length = len(values)
    part = falls[:length]
    inside = np.cumsum((values * part)[::-1])[::-1]
    return np.asarray((inside + carried * falls[length]) / part)
