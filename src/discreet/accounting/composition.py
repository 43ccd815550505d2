"""The law of a sum of independent privacy losses on one grid, and what it says of delta.

Masses are tilted, multiplied by e^(tilt loss), before they meet a Fourier transform: so rounding
is small against the masses that matter, however small delta is. What may have gone wrong
(rounding, wrapping round, what lies beyond the window) is bounded, and charged to the side that is
asked for. See docs/proofs/accountant.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from discreet.accounting.grid import Points
from discreet.accounting.pairs import Side
from discreet.accounting.pieces import ROUND, Floats
from discreet.accounting.runs import Runs
from discreet.accounting.spectrum import Indices, Law, convolved

LARGEST = 1 << 21
_LOG_OUTSIDE = -30.0
_REACHES = (4.0, 2.0, 1.0, 0.5, 8.0, 16.0)  # Chernoff's powers, over the standard deviation
_PARTS = (0.2, 0.5, 0.8)  # and, below, of the tilt: an untilted law's tail
_EXPONENT = 500.0
_ROUNDS = 4
_SMALL = 1 << 14


@dataclass(frozen=True, slots=True)
class Tilted:
    """Several laws on one grid, after multiplication by e^(tilt loss): one behind the other, the
    shares of each adding up to 1. All is counted in steps: of each law the mean, and of the whole
    sum the mean and the standard deviation."""

    places: tuple[Indices, ...]
    index: Indices
    share: Floats
    runs: Runs
    counts: Floats
    tilt: float
    step: float
    log_total: float  # ln of what the whole sum's masses add up to, moved by what rounding may do
    means: Floats
    mean: float
    stddev: float

    @staticmethod
    def of(parts: Sequence[tuple[Points, int]], tilt: float, side: Side) -> "Tilted":
        """The laws, tilted; each mass is first moved by what rounding may change."""
        runs = Runs.of([len(points.index) for points, _ in parts])
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
        return Tilted(
            places, index, share, runs, counts, tilt, step, log_total, means, mean, stddev
        )

    def laws(self) -> Iterator[Law]:
        """Index, share and count of each law."""
        starts = self.runs.starts.tolist()
        for place, start, count in zip(self.places, starts, self.counts.tolist(), strict=True):
            yield place, self.share[start : start + len(place)], int(count)

    def log_outside(self, size: int, way: int, enough: float) -> float:
        """A bound on ln of the probability that the sum's index lies half a window of this size
        or more above its mean, or below (Chernoff's); not looked for further than is enough."""
        far = size // 2 - 2
        ends = self.runs.mosts(np.where(self.share > 0, way * self.index, -np.inf))
        if float(self.counts @ ends) < way * self.mean + far:
            return -math.inf
        centered = np.where(
            self.share > 0, way * (self.index - self.runs.spread(self.means)), -np.inf
        )
        best = 0.0
        powers = [reach / max(self.stddev, 1e-9) for reach in _REACHES]
        if way < 0 and self.tilt > 0:
            powers += [part * self.tilt * self.step for part in _PARTS]
        for power in powers:
            most, weight = self.runs.exponentials(power * centered)
            moment = most + np.log(self.runs.sums(self.share * weight))
            total = float(self.counts @ moment) * (1 + 1e-12) + 1e-12 * float(self.counts.sum())
            best = min(best, total - power * far)
            if best < enough:
                break
        return best


@dataclass(frozen=True, slots=True)
class Composition:
    """The tilted law of a sum of losses on a window, as a bound from one side.

    The probability of the loss ``first + i * step`` is ``mass[i]`` times e^(log_scale - tilt *
    i * step); ``outside`` is the tilted probability that lies out of the window, ``beyond`` the
    plain one above it.
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

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the bound on delta is just this; from above, infinite if the mass
        at infinity alone is more, from below, 0."""
        left = delta - self.extra
        if left <= 0:
            return math.inf if self.side is Side.UPPER else max(0.0, self.first)
        start = max(0, math.ceil(-self.first / self.step) - 1)
        if start >= len(self.mass) - 1:
            return 0.0
        heads, deltas = self._sums(start)
        places = np.arange(start, len(self.mass))
        wanted = math.log(left) - self.log_scale + self.tilt * self.step * places
        sure = deltas if self.side is Side.UPPER else np.maximum(deltas - self.outside, 0.0)
        with np.errstate(divide="ignore"):
            fits = np.log(sure) <= wanted
        if fits.all() and self.side is Side.LOWER:
            return 0.0
        first = len(fits) - int(np.argmin(fits[::-1])) if not fits.all() else 0
        if first == len(fits):
            return math.inf if self.side is Side.UPPER else self.end - self.step
        loss = self.first + float(places[first]) * self.step
        target = math.exp(min(float(wanted[first]), 700.0))
        back = self._back(target, float(heads[first]), float(deltas[first]))
        return max(0.0, loss - back)

    def _back(self, target: float, head: float, delta: float) -> float:
        """How far before a point, at most a step, delta reaches the target: all in units there,
        the head and the delta being the sums at the point."""

        def until(wanted: float) -> float:
            share = (wanted - delta) / head if head > 0 else 1.0
            return min(max(-math.log1p(-share), 0.0), self.step) if share < 1 else self.step

        back = until(target)
        if self.side is Side.LOWER:  # what wraps round counts more, the further before
            for _ in range(_ROUNDS):
                back = until(target + self.outside * math.exp(min(self.tilt * back, 700.0)))
            needed = target + self.outside * math.exp(min(self.tilt * back, 700.0))
            if back < self.step and delta - math.expm1(-back) * head < needed * (1 - 1e-9):
                return self.step
        return back

    def delta(self, epsilon: float) -> float:
        """The bound on delta at this epsilon; below the window masses may be missing, and so it
        is 1 from above."""
        if self.side is Side.UPPER and epsilon < self.first:
            return 1.0
        place = max(0, math.ceil((epsilon - self.first) / self.step))
        if place >= len(self.mass):
            return min(1.0, self.extra + (self.beyond if self.side is Side.UPPER else 0.0))
        heads, deltas = self._sums(place)
        back = self.first + place * self.step - epsilon
        found = float(deltas[0]) - math.expm1(-max(back, 0.0)) * float(heads[0])
        if self.side is Side.LOWER:
            found = max(0.0, found - self.outside * math.exp(min(self.tilt * back, 700.0)))
        power = self.log_scale - self.tilt * self.step * place
        return min(
            1.0, self.extra + (math.exp(min(power + math.log(found), 0.0)) if found else 0.0)
        )

    @property
    def extra(self) -> float:
        """What is added at every epsilon."""
        return self.infinite + (self.beyond if self.side is Side.UPPER else 0.0)

    def _sums(self, start: int) -> tuple[Floats, Floats]:
        """For each place j from ``start`` on, in units of e^(log_scale - tilt * j * step): the sum
        of the masses from j on, each times e^(loss_j - loss), and delta at epsilon = loss_j."""
        heads = decayed_sums(self.mass[start:], (self.tilt + 1) * self.step)
        rest = decayed_sums(heads, self.tilt * self.step)
        after = np.append(rest[1:], 0.0) * math.exp(-self.tilt * self.step)
        return heads, after * -math.expm1(-self.step)


def composed(
    parts: Sequence[tuple[Points, int]],
    tilt: float,
    side: Side,
    *,
    log_delta: float,
    least: float = math.inf,
) -> Composition:
    """The law of the sum of independent losses, each so many times, on a window around its tilted
    mean that leaves out next to nothing; it reaches down to the least loss of interest."""
    tilted = Tilted.of(parts, tilt, side)
    log_scale = tilted.log_total - tilt * (tilted.mean * tilted.step)
    log_beyond = log_delta - 12 - log_scale
    size, above, below = _window(tilted, side, log_beyond)
    step, sign = tilted.step, _sign(side)
    offsets = [count * points.offset for points, count in parts]
    start = math.floor(tilted.mean) - size // 2
    lowest = (least - sum(offsets)) / step - 2
    if start - LARGEST < lowest < start and size < LARGEST:
        size = fft.next_fast_len(size + start - math.floor(lowest), real=True)
        start = math.floor(lowest)
    found = convolved(tilted.laws(), size)
    first = start * step + sum(offsets)
    log_scale = tilted.log_total + found.log_whole - tilt * first
    reach = abs(first) + step * size + sum(abs(offset) for offset in offsets)
    log_scale += sign * 8 * ROUND * (abs(tilted.log_total) + tilt * reach + 8 * size)
    first += sign * 8 * (1 + len(parts)) * ROUND * reach
    mass = np.roll(found.mass, -(start - found.moved) % size) + sign * found.radius
    return Composition(
        side,
        tilt,
        step,
        first,
        log_scale,
        np.maximum(mass, 0.0),
        infinite(parts, side),
        min(1.0, math.exp(above) + math.exp(below)),
        math.exp(min(0.0, log_scale - tilt * step * size + above)),
    )


def _window(tilted: Tilted, side: Side, log_beyond: float) -> tuple[int, float, float]:
    """A size for the window, and bounds on ln of the probabilities above it and below it. What
    wraps round matters to lower bounds; to upper ones, only what lies above."""
    stddev = tilted.stddev
    wanted = 14 * stddev + 64
    while True:
        size = fft.next_fast_len(min(math.ceil(wanted), LARGEST), real=True)
        enough = _LOG_OUTSIDE
        if side is Side.UPPER:
            enough = log_beyond + tilted.tilt * tilted.step * (size // 2)
        above, below = tilted.log_outside(size, 1, enough), tilted.log_outside(size, -1, enough)
        needed = above if side is Side.UPPER else max(above, below)
        if needed < enough or wanted >= LARGEST or wanted > 200 * stddev + _SMALL:
            return size, above, below
        wanted *= 1.4


def _sign(side: Side) -> int:
    return 1 if side is Side.UPPER else -1


def infinite(parts: Sequence[tuple[Points, int]], side: Side) -> float:
    """The probability that some loss is infinite."""
    finite = 0.0
    for points, count in parts:
        if points.infinite >= 1:
            return 1.0
        finite += count * math.log1p(-points.infinite)
    sign = _sign(side)
    return min(1.0, -math.expm1(finite) * (1 + sign * (64 + 2 * len(parts)) * ROUND))


def decayed_sums(values: Floats, rate: float) -> Floats:
    """For each j, the sum over i >= j of values[i] e^(-rate (i - j))."""
    length = len(values)
    block = length if rate * length <= _EXPONENT else max(1, int(_EXPONENT / rate))
    fall = np.exp(-rate * np.arange(block))
    sums = np.empty(length)
    carried = 0.0
    for stop in range(length, 0, -block):
        start = max(0, stop - block)
        part = fall[: stop - start]
        inside = np.cumsum((values[start:stop] * part)[::-1])[::-1]
        carried_in = carried * math.exp(-rate * (stop - start)) if carried else 0.0
        sums[start:stop] = (inside + carried_in) / part
        carried = float(sums[start])
    return sums
