"""The law of a sum of independent privacy losses on one grid, and bounds on its delta.

The laws are tilted (`_tilted_sum`) before they are transformed. Three errors are bounded and
charged to the requested side: rounding, mass that wraps round, and mass beyond the window. See
docs/proofs/accountant.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from discreet._arrays import FloatArray
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._convolution import convolved
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, sign_of
from discreet.accounting.pld._tilted_sum import LARGEST, TiltedSum, chosen_window

_EXPONENT = 500.0  # of a block's smallest factor: e^-500 is a normal float
_BLOCK = 1 << 12  # places in a block, so that its numbers stay in a processor's cache
_ROUNDS = 4  # of the fixed point for mass that wraps round; a check follows them


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
    mass: FloatArray
    infinite: float
    outside: float
    beyond: float

    @property
    def end(self) -> float:
        """The loss just above the window."""
        return self.first + len(self.mass) * self.step

    def masses(self) -> FloatArray:
        """The probability of each loss, untilted."""
        power = self.log_scale - self.tilt * self.step * np.arange(len(self.mass))
        return np.asarray(np.minimum(self.mass * np.exp(np.minimum(power, 700.0)), 1.0))

    def masses_inside(self) -> FloatArray:
        """The probability of each loss, without mass that may have wrapped round."""
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
        log_left = math.log(left) - self.log_scale - self._relative_error
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

    def _first_fit(self, deltas: FloatArray, log_left: float) -> int:
        """The first place from which on no delta exceeds e^log_left. From below, mass that wraps
        round is subtracted before."""
        safe = deltas if self.side is Side.UPPER else np.maximum(deltas - self.outside, 0.0)
        with np.errstate(divide="ignore"):
            fits = np.log(safe) <= log_left + self.tilt * self.step * np.arange(len(safe))
        return 0 if fits.all() else len(fits) - int(np.argmin(fits[::-1]))

    @property
    def _relative_error(self) -> float:
        """Relative rounding error of sums over the window, with the sign of the side."""
        return sign_of(self.side) * 8 * ROUND * (len(self.mass) + 2 * _EXPONENT)

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
        power = self.log_scale + self._relative_error - self.tilt * self.step * place
        return min(
            1.0, self.extra + (math.exp(min(power + math.log(found), 0.0)) if found else 0.0)
        )

    @property
    def extra(self) -> float:
        """The part of delta that is the same at every epsilon."""
        return self.infinite + (self.beyond if self.side is Side.UPPER else 0.0)

    def _blocks(self, start: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
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
    step, sign = tilted.step, sign_of(side)
    offsets = [count * points.offset for points, count in parts]
    start, size, above, below = chosen_window(tilted, side, log_delta, window)
    lowest = (least - sum(offsets)) / step - 2
    if start - LARGEST < lowest < start and size < LARGEST:
        size = scipy.fft.next_fast_len(size + start - math.floor(lowest), real=True)
        start = math.floor(lowest)

    # 2. Compose by Fourier transforms.
    found = convolved(tilted.laws(), size)

    # 3. Move the results to the requested side by their rounding errors.
    first, reach = start * step + sum(offsets), _reach(parts, start, size)
    log_scale = tilted.log_total + found.log_whole - tilt * first
    log_scale += sign * 8 * ROUND * (abs(tilted.log_total) + abs(tilt) * reach + 8 * size)
    mass = np.roll(found.mass, -(start - found.shift) % size) + sign * found.radius
    log_beyond = log_scale - tilt * step * size + above if tilt >= 0 else 0.0
    return Composition(
        side,
        tilt,
        step,
        first_loss(parts, start, size, side),
        log_scale,
        np.maximum(mass, 0.0),
        infinite_mass(parts, side),
        min(1.0, math.exp(above) + math.exp(below)),
        math.exp(min(0.0, log_beyond)),
    )


def first_loss(parts: Sequence[tuple[Points, int]], start: int, size: int, side: Side) -> float:
    """The loss at a window's first index, moved to the requested side by the rounding errors of all
    losses in it."""
    first = start * parts[0][0].step + sum(count * points.offset for points, count in parts)
    return first + sign_of(side) * 8 * (1 + len(parts)) * ROUND * _reach(parts, start, size)


def _reach(parts: Sequence[tuple[Points, int]], start: int, size: int) -> float:
    """A bound on the numbers that are added up in a window's losses."""
    step, offsets = parts[0][0].step, [count * points.offset for points, count in parts]
    return abs(start * step + sum(offsets)) + step * size + sum(abs(each) for each in offsets)


def delta_by_moment(parts: Sequence[tuple[Points, int]], tilt: float, epsilon: float) -> float:
    """A bound on delta of the sum by one moment: (1 - e^(epsilon - loss))+ is at most tilt^tilt /
    (1 + tilt)^(1 + tilt) times e^(tilt (loss - epsilon))."""
    log_total = TiltedSum.of(parts, tilt, Side.UPPER).log_total
    log_share = -tilt * math.log1p(1 / tilt) - math.log1p(tilt) if tilt else 0.0
    log_delta = log_total - tilt * epsilon + log_share
    log_delta += 8 * ROUND * (abs(log_total) + tilt * epsilon + abs(log_share) + 8)
    return math.exp(min(log_delta, 0.0)) + infinite_mass(parts, Side.UPPER)


def infinite_mass(parts: Sequence[tuple[Points, int]], side: Side) -> float:
    """The probability that some loss is infinite."""
    finite = 0.0
    for points, count in parts:
        if points.infinite >= 1:
            return 1.0
        finite += count * math.log1p(-points.infinite)
    sign = sign_of(side)
    return min(1.0, -math.expm1(finite) * (1 + sign * (64 + 2 * len(parts)) * ROUND))


def decayed_sums(values: FloatArray, falls: FloatArray, carried: float) -> FloatArray:
    """For each j, the sum over i >= j of values[i] times falls[i - j]. ``falls`` holds the powers
    of falls[1]; ``carried`` counts as one more value behind the last one."""
    length = len(values)
    part = falls[:length]
    inside = np.cumsum((values * part)[::-1])[::-1]
    return np.asarray((inside + carried * falls[length]) / part)
