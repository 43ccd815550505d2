"""A coarse estimate of a sum of privacy losses, and the exponential tilt that follows from it.

A tilt multiplies each mass by e^(exponent * loss). A good tilt moves the mean of the sum to the
epsilon in question (a saddle point). All numbers here are rough estimates: any choice of tilt gives
bounds, and a good choice gives close ones.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from discreet._arrays import FloatArray, Segments, log_sums
from discreet.accounting.pld._continuous import UNDERFLOW_GUARD, similarity, stacked
from discreet.accounting.pld._dominating_pairs import Pair

CountedPairs = Sequence[tuple[Pair, int]]

_TILT_TOLERANCE = 0.02  # tolerance of a tilt, in ln delta or in standard deviations
_LARGEST_LOSS = 600.0  # its exponential is finite
_LEAST_EXPONENT = 0.1  # times the standard deviation: smaller exponents hardly tilt
_LARGEST_EXPONENT = 1e5  # times the largest loss: at larger exponents only that loss has mass
_MOST_TRIES = 40  # steps of the search, which halve the bracket 20 times at least
_MANY = 3  # smallest number of pairs of which similar ones are grouped
_LARGEST_GROUP = 64  # so that the numbers of a group stay in a processor's cache
_CAP = 4.0  # in scales of the bulk: squares of larger losses are capped
_SETTLED = 0.9  # ratio of two successive scales at which the search for the bulk ends
_SKIP = 2  # groups of several pairs use each second point of the coarse grid

_NOTHING = np.zeros(0)


@dataclass(frozen=True, slots=True)
class CoarseGroup:
    """One pair, or several similar pairs stacked into one, on a coarse grid of losses.

    ``loss`` holds the atoms and then the cells of each piece, ``mass`` a row of probabilities
    for each pair. ``pieces`` gives the place of each piece's second cell, and the piece's edges.
    """

    pairs: CountedPairs
    whole: Pair
    loss: FloatArray
    mass: FloatArray
    pieces: tuple[tuple[int, FloatArray], ...]

    @staticmethod
    def of(pairs: CountedPairs, tail: float) -> "CoarseGroup":
        """Evaluate similar pairs. At most ``tail`` of each law lies above its cells."""
        whole = pairs[0][0]
        if len(pairs) > 1:
            columns = zip(*(pair.pieces for pair, _ in pairs), strict=True)
            whole = replace(whole, pieces=tuple(map(stacked, columns)))
        is_finite = np.isfinite(whole.atoms.loss) & (whole.atoms.p > 0)
        losses, masses, pieces = [whole.atoms.loss[is_finite]], [whole.atoms.p[is_finite]], []
        at = len(losses[0])
        for piece in whole.pieces:
            edges = piece.coarse_grid(tail)
            if len(pairs) > 1:
                edges = np.unique(np.append(edges[::_SKIP], edges[-1]))
            mass = piece.masses(edges, np.zeros(len(edges))).p
            above = np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1]
            used = max(int(np.count_nonzero(above > tail, axis=-1).max()), 2)
            edges, mass = edges[:used], mass[..., : min(used, len(edges))]
            losses.append(np.append(edges[:1], (edges[1:] + edges[:-1]) / 2))
            masses.append(mass)
            pieces.append((at + 1, edges))  # the first cell is open: its loss is its one edge
            at += mass.shape[-1]
        mass = np.concatenate(masses[len(pairs) > 1 :], axis=-1)
        return CoarseGroup(pairs, whole, np.concatenate(losses), np.atleast_2d(mass), tuple(pieces))

    @property
    def counts(self) -> FloatArray:
        """Count of each pair."""
        return np.array([count for _, count in self.pairs], dtype=np.float64)

    def tilted(self, exponent: float) -> tuple[FloatArray, FloatArray]:
        """ln of each pair's moment, and its tilted masses, which add up to 1."""
        with np.errstate(divide="ignore"):
            power = exponent * self.loss + np.log(self.mass)
        log_moment = log_sums(power)
        return log_moment, np.exp(power - log_moment[:, np.newaxis])

    def moments(self, exponent: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """ln of each pair's moment, and the tilted mean and variance."""
        power = exponent * self.loss
        most = float(power.max())
        weight = np.exp(power - most)
        total = (self.mass * weight).sum(axis=-1)
        if float(total.min()) < UNDERFLOW_GUARD:  # some pairs have no mass where others have most
            log_moment, share = self.tilted(exponent)
            means = share @ self.loss
            return log_moment, means, (share * (self.loss - means[:, np.newaxis]) ** 2).sum(axis=-1)
        means = (self.mass * (weight * self.loss)).sum(axis=-1) / total
        middle = float(means.mean())
        squares = (self.mass * (weight * (self.loss - middle) ** 2)).sum(axis=-1) / total
        return most + np.log(total), means, np.maximum(squares - (means - middle) ** 2, 0.0)


@dataclass(frozen=True, slots=True)
class CoarsePld:
    """A coarse estimate of a sum of pairs.

    Groups of a single pair are laid out one behind the other in ``loss`` and ``mass``, divided by
    ``segments``: there may be thousands of them, with few cells each.
    """

    groups: tuple[CoarseGroup, ...]
    loss: FloatArray
    mass: FloatArray
    counts: FloatArray
    segments: Segments

    @staticmethod
    def of(pairs: CountedPairs, tail: float) -> "CoarsePld":
        """Evaluate counted pairs. At most ``tail`` of each law lies above its cells."""
        groups = tuple(CoarseGroup.of(group, tail) for group in _similar(pairs))
        single = [group for group in groups if len(group.pairs) == 1]
        return CoarsePld(
            groups,
            np.concatenate([_NOTHING, *(group.loss for group in single)]),
            np.concatenate([_NOTHING, *(group.mass[0] for group in single)]),
            np.array([group.pairs[0][1] for group in single], dtype=np.float64),
            Segments.of([len(group.loss) for group in single]),
        )

    @property
    def pairs(self) -> CountedPairs:
        """All pairs with their counts."""
        return [counted for group in self.groups for counted in group.pairs]

    @property
    def count(self) -> int:
        """Number of losses in the sum."""
        return sum(count for _, count in self.pairs)

    @property
    def shared(self) -> Iterator[CoarseGroup]:
        """Groups of several pairs."""
        return (group for group in self.groups if len(group.pairs) > 1)

    @property
    def largest(self) -> float:
        """Largest positive loss, or the largest absolute value if none is positive."""
        losses = [self.loss, *(group.loss for group in self.shared)]
        most = max(float(loss.max(initial=0.0)) for loss in losses)
        return most or max(float(np.abs(loss).max(initial=0.0)) for loss in losses)

    @property
    def is_too_large(self) -> bool:
        """Whether some loss is too large for floating point, or a pair has no finite loss."""
        losses = [self.loss, *(group.loss for group in self.shared)]
        most = max(float(np.abs(loss).max(initial=0.0)) for loss in losses)
        return not self.segments.sizes.all() or not most < _LARGEST_LOSS

    def moments(self, exponent: float) -> tuple[float, float, float]:
        """ln of the sum's moment, and the tilted mean and standard deviation."""
        sums = self._of_single(exponent) if len(self.loss) else np.zeros(3)
        for group in self.shared:
            sums = sums + np.array(group.moments(exponent)) @ group.counts
        log_moment, mean, variance = sums.tolist()
        return log_moment, mean, math.sqrt(variance)

    def _of_single(self, exponent: float) -> FloatArray:
        most, powers = self.segments.exponentials(exponent * self.loss)
        weight = self.mass * powers
        total = self.segments.sums(weight)
        share = weight / self.segments.spread(total)
        means = self.segments.sums(share * self.loss)
        squares = self.segments.sums(share * (self.loss - self.segments.spread(means)) ** 2)
        return np.array([most + np.log(total), means, squares]) @ self.counts

    def log_delta(self, exponent: float) -> tuple[float, float, float]:
        """About ln delta at the epsilon that is the tilted mean, that epsilon, and the tilted
        standard deviation. The tilted law is taken to be normal."""
        log_moment, mean, stddev = self.moments(exponent)
        near, far = exponent * stddev / math.sqrt(2), (exponent + 1) * stddev / math.sqrt(2)
        share = float(scipy.special.erfcx(near) - scipy.special.erfcx(far)) / 2
        if far - near < _TILT_TOLERANCE * (1 + near):  # arguments nearly agree: by the slope
            slope = 1 / math.sqrt(math.pi) - near * float(scipy.special.erfcx(near))
            share = (far - near) * max(slope, 0.25 / (1 + near * near))
        return log_moment - exponent * mean + math.log(max(share, UNDERFLOW_GUARD)), mean, stddev

    def bulk(self, stddev: float, exponent: float | None = None) -> float:
        """Scale of the sum without its rare, large losses; at most ``stddev``, the scale with them.

        It is the root of a sum of squares, each capped at the square of a few times the result.
        The squares are those of the losses. Given an exponent, they are those of the distances from
        the tilted means."""
        parts = list(self._squares(exponent))
        scale = stddev
        while True:
            cap = (_CAP * scale) ** 2
            found = math.sqrt(
                sum(float(weight @ np.minimum(square, cap)) for square, weight in parts)
            )
            if found > _SETTLED * scale or not found:
                return min(found, stddev) or stddev
            scale = found

    def _squares(self, exponent: float | None) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Squares of losses, or of tilted distances, with their expected numbers."""
        if len(self.loss):
            counts = self.segments.spread(self.counts)
            if exponent is None:
                yield self.loss**2, self.mass * counts
            else:
                weight = self.mass * self.segments.exponentials(exponent * self.loss)[1]
                share = weight / self.segments.spread(self.segments.sums(weight))
                means = self.segments.spread(self.segments.sums(share * self.loss))
                yield (self.loss - means) ** 2, share * counts
        for group in self.shared:
            share = group.mass if exponent is None else group.tilted(exponent)[1]
            means = np.zeros(len(share)) if exponent is None else share @ group.loss
            squares = (group.loss - means[:, np.newaxis]) ** 2
            yield squares.ravel(), (share * group.counts[:, np.newaxis]).ravel()


@dataclass(frozen=True, slots=True)
class Tilt:
    """An exponent, and the epsilon, spread and ln delta that are expected there."""

    exponent: float
    epsilon: float
    stddev: float
    log_delta: float


def tilt_for_delta(coarse: CoarsePld, delta: float) -> Tilt:
    """The tilt whose mean is about the epsilon for this delta, or 0."""
    wanted = math.log(delta)

    def miss(exponent: float) -> float:
        found, mean, stddev = coarse.log_delta(exponent)
        return max(found - wanted, -mean / (stddev or 1.0))

    return replace(_tilt_where(coarse, miss), log_delta=wanted)


def tilt_for_epsilon(coarse: CoarsePld, epsilon: float) -> Tilt:
    """The tilt whose mean is about this epsilon."""

    def miss(exponent: float) -> float:
        _, mean, stddev = coarse.log_delta(exponent)
        return (epsilon - mean) / (stddev or 1.0)

    return _tilt_where(coarse, miss)


def _tilt_where(coarse: CoarsePld, miss: Callable[[float], float]) -> Tilt:
    """The tilt at which the falling function ``miss`` is about 0, or the end of the range."""
    # 1. Bracket the exponent, beginning where it is one over the standard deviation.
    scale = coarse.largest or 1.0
    spread = coarse.moments(0.0)[2] or scale
    least, most = min(_LEAST_EXPONENT / spread, 1 / scale), _LARGEST_EXPONENT / scale
    low = high = min(most, 1 / spread)
    at_low = at_high = miss(low)
    while at_high > 0 and high < most:
        low, at_low, high = high, at_high, high * 4
        at_high = miss(high)
    while at_low < 0 and low > least:
        high, at_high, low = low, at_low, low / 4
        at_low = miss(low)

    # 2. Interpolate in the logarithm of the exponent.
    for _ in range(_MOST_TRIES):
        if (
            at_low <= _TILT_TOLERANCE
            or -at_high <= _TILT_TOLERANCE
            or high <= low * (1 + _TILT_TOLERANCE / 4)
        ):
            break
        share = min(max(at_low / (at_low - at_high), 0.05), 0.95)
        exponent = low * (high / low) ** share
        found = miss(exponent)
        low, at_low, high, at_high = (
            (exponent, found, high, at_high) if found > 0 else (low, at_low, exponent, found)
        )
    exponent = low if abs(at_low) < abs(at_high) else high
    log_delta, mean, stddev = coarse.log_delta(exponent)
    return Tilt(exponent, mean, stddev, log_delta)


def _similar(pairs: CountedPairs) -> Iterator[CountedPairs]:
    """Groups of pairs that can be evaluated together. A pair with atoms is a group of its own."""
    found: dict[Hashable, list[tuple[Pair, int]]] = {}
    for place, (pair, count) in enumerate(pairs):
        is_smooth = not len(pair.atoms.loss) and len(pairs) >= _MANY
        kind = tuple(map(similarity, pair.pieces)) if is_smooth else place
        found.setdefault(kind, []).append((pair, count))
    for group in found.values():
        for start in range(0, len(group), _LARGEST_GROUP):
            yield group[start : start + _LARGEST_GROUP]
