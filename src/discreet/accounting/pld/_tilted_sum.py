"""A sum of privacy losses on one grid, tilted, and the window that its law is computed on.

Masses are tilted (multiplied by e^(tilt loss)), so that rounding errors are small against the
masses that matter, however small delta is. A window is as small as the mass outside of it allows.
See docs/proofs/accountant.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from discreet._arrays import FloatArray, IndexArray, Segments
from discreet.accounting.pld._continuous import ROUND
from discreet.accounting.pld._convolution import IntegerLaw
from discreet.accounting.pld._discretize import Points
from discreet.accounting.pld._dominating_pairs import Side, sign_of

LARGEST = 1 << 21
_LOG_OUTSIDE = -30.0
_REACHES = (0.5, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0)  # Chernoff powers, times the stddev
_USUAL = 4.0  # the first power to try
_PARTS = (0.2, 0.5, 0.8)  # Chernoff powers as parts of the tilt, or of `_ODDS`
_ODDS = 16.0  # suits rare losses that are far away
_SPARE_POINTS = 1 << 14  # beyond which a window is not made larger than many standard deviations
_FAR_BELOW = 12.0  # -ln of a negligible share of delta
_ERROR_OF_GUESS = 4.0  # largest error in the guess of ln delta for which a window still suits
_FIRST = 5.7  # standard deviations in the first window that is tried

Window = tuple[int, int, float, float]  # start, size, ln of bounds on the mass above and below


@dataclass(frozen=True, slots=True)
class TiltedSum:
    """Several laws on one grid, tilted, and normalized so that the shares of each add up to 1.

    The laws are laid out one behind the other in ``index`` and ``share``, divided by ``runs``.
    ``means`` (of each law), ``mean`` and ``stddev`` (of the whole sum) are in steps of the grid.
    """

    indices_of_laws: tuple[IndexArray, ...]
    index: IndexArray
    share: FloatArray
    runs: Segments
    counts: FloatArray
    tilt: float
    step: float
    log_total: float  # ln of the whole sum's tilted mass, with rounding on the requested side
    means: FloatArray
    mean: float
    stddev: float

    @staticmethod
    def of(parts: Sequence[tuple[Points, int]], tilt: float, side: Side) -> "TiltedSum":
        """Tilt the laws. Each mass is first moved to the requested side by its rounding error."""
        # 1. tilted masses, relative to the largest of their law
        runs = Segments.of([len(points.index) for points, _ in parts])
        counts = np.array([count for _, count in parts], dtype=np.float64)
        index = np.concatenate([points.index for points, _ in parts])
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.concatenate([points.mass for points, _ in parts]))
        moved = tilt * np.concatenate([points.loss for points, _ in parts])
        most, weight = runs.exponentials(moved + log_mass)
        with np.errstate(invalid="ignore"):
            relative_error = (
                6 * ROUND * (np.abs(moved) + np.abs(log_mass) + runs.spread(np.abs(most)))
            )
        # 2. each mass moved to the side that is asked for
        relative_error = np.where(np.isfinite(log_mass), relative_error + 8 * ROUND, 0.0)
        weight = weight * (1 + sign_of(side) * relative_error)
        # 3. shares of each law, and the logarithm of all totals together
        total = runs.sums(weight)
        share = weight / runs.spread(total)
        logs = most + np.log(total)
        rounding = 8 * ROUND * float(counts @ (1 + np.abs(logs))) * (1 + len(parts) * ROUND)
        rounding += len(parts) * ROUND * float(counts @ np.abs(logs))
        log_total = float(counts @ logs) + sign_of(side) * rounding
        # 4. moments of the sum
        means = runs.sums(share * index)
        squares = runs.sums(share * (index - runs.spread(means)) ** 2)
        mean, stddev = float(counts @ means), math.sqrt(float(counts @ squares))
        step = parts[0][0].step
        indices = tuple(points.index for points, _ in parts)
        return TiltedSum(
            indices, index, share, runs, counts, tilt, step, log_total, means, mean, stddev
        )

    def laws(self) -> Iterator[IntegerLaw]:
        """Index, share and count of each law."""
        starts = self.runs.starts.tolist()
        laws = zip(self.indices_of_laws, starts, self.counts.tolist(), strict=True)
        for index, start, count in laws:
            yield index, self.share[start : start + len(index)], int(count)

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

    def _log_above(self, centered: FloatArray, power: float, far: int) -> float:
        """Chernoff's bound by one power."""
        most, weight = self.runs.exponentials(power * centered)
        moment = most + np.log(self.runs.sums(self.share * weight))
        total = float(self.counts @ moment) * (1 + 1e-12) + 1e-12 * float(self.counts.sum())
        return total - power * far


def chosen_window(
    tilted: TiltedSum, side: Side, log_delta: float | None, window: tuple[int, int] | None
) -> Window:
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


def _above_only(tilted: TiltedSum, log_little: float, log_scale: float) -> Window:
    """A window for bounds from above.

    Mass above the window is charged to delta. Mass below the window wraps round to its upper end,
    where untilting makes it negligible. So the window may be smaller than the law, if little mass
    from above wraps round to its lower end. If delta comes from losses far from the mean, rounding
    errors dominate; a wide window keeps them small.
    """
    # 1. The upper end: widen it until Chernoff's bound on the mass above is small.
    half, fall = 7 * tilted.stddev + 32, tilted.fall
    log_beyond = log_little - log_scale
    wanted = min(half, max(-log_beyond, 0.0) / fall) + 8
    while True:
        up = min(math.ceil(wanted), LARGEST // 2)
        enough = log_beyond + fall * up
        above = tilted.log_outside(up - 2, 1, enough)
        if above < enough or wanted >= LARGEST // 2 or wanted > 100 * tilted.stddev + _SPARE_POINTS:
            break
        wanted *= 1.4
    # 2. The size: as small as wrapping round allows.
    is_usual = -1.5 * _FAR_BELOW < log_beyond < -0.5 * _FAR_BELOW  # delta comes from near the mean
    most = max(half, up) + (up if is_usual else max(half, up))
    near = min(most, _ERROR_OF_GUESS / fall + 8)
    wanted = max(_FIRST * tilted.stddev, -log_little / fall, up) + near if is_usual else most
    while wanted < most and tilted.log_outside(int(wanted - near), 1, log_beyond) > log_beyond:
        wanted *= 1.2
    size = scipy.fft.next_fast_len(math.ceil(min(wanted, most, LARGEST)), real=True)
    return math.floor(tilted.mean) + up - size, size, above, 0.0


def _both_ways(tilted: TiltedSum) -> Window:
    """A window with next to no mass outside of it, on either side: for untilted laws, and for
    bounds from below, from which the mass outside is subtracted."""
    wanted = 14 * tilted.stddev + 64
    while True:
        size = scipy.fft.next_fast_len(min(math.ceil(wanted), LARGEST), real=True)
        far = size // 2 - 2
        above = tilted.log_outside(far, 1, _LOG_OUTSIDE)
        below = tilted.log_outside(far, -1, _LOG_OUTSIDE)
        is_enough = max(above, below) < _LOG_OUTSIDE
        if is_enough or wanted >= LARGEST or wanted > 200 * tilted.stddev + _SPARE_POINTS:
            return math.floor(tilted.mean) - size // 2, size, above, below
        wanted *= 1.4
