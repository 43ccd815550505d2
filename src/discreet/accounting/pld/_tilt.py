"""A first look at a sum of privacy losses: how to tilt, and what epsilon and spread to expect.

All here is rough: any choice gives bounds, a good one gives close ones.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erfcx

from discreet.accounting.pld._continuous import Floats, likeness, together
from discreet.accounting.pld._dominating_pairs import Pair
from discreet.accounting.pld._segments import Runs, log_sums

Counted = Sequence[tuple[Pair, int]]

_CLOSE = 0.02  # how close, in ln delta or standard deviations, an aim comes to what is wanted
_FARTHEST = 600.0  # a loss whose exponential, and its square root's inverse, is a number
_LEAST_TILT = 0.1  # times the standard deviation: a smaller tilt changes nothing
_LARGEST_TILT = 1e5  # times the largest loss: a larger one leaves nothing but that loss
_MOST_TRIES = 40  # bisections, at least, halve what is left 20 times
_FLATTEST = 1e-300  # what is above 0 in a logarithm
_MANY = 3  # from so many pairs on it pays to look which are alike
_TOGETHER = 64  # at most: so that numbers on all cells of a group stay in a processor's cache
_SKIP = 2  # of the losses of a look, those that are enough where many pairs are seen

_NOTHING = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Seen:
    """One pair, or several that are alike, as one pair whose pieces hold columns: the losses of
    cells, one atom or piece behind the other, and for each pair a row of masses. ``pieces`` tells
    where each piece's cells begin, and what lies between them."""

    pairs: Counted
    whole: Pair
    loss: Floats
    mass: Floats
    pieces: tuple[tuple[int, Floats], ...]

    @staticmethod
    def at(pairs: Counted, tail: float) -> "Seen":
        """Look at these pairs, leaving out this much of each."""
        whole = pairs[0][0]
        if len(pairs) > 1:
            columns = zip(*(pair.pieces for pair, _ in pairs), strict=True)
            whole = replace(whole, pieces=tuple(map(together, columns)))
        held = np.isfinite(whole.atoms.loss) & (whole.atoms.p > 0)
        losses, masses, pieces = [whole.atoms.loss[held]], [whole.atoms.p[held]], []
        at = len(losses[0])
        for piece in whole.pieces:
            edges = piece.look(tail)
            if len(pairs) > 1:
                edges = np.unique(np.append(edges[::_SKIP], edges[-1]))
            mass = piece.masses(edges, np.zeros(len(edges))).p
            above = np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1]
            kept = max(int(np.count_nonzero(above > tail, axis=-1).max()), 2)
            edges, mass = edges[:kept], mass[..., : min(kept, len(edges))]
            losses.append(np.append(edges[:1], (edges[1:] + edges[:-1]) / 2))
            masses.append(mass)
            pieces.append((at + 1, edges))  # the first cell is open, and seen at its end
            at += mass.shape[-1]
        mass = np.concatenate(masses[len(pairs) > 1 :], axis=-1)
        return Seen(pairs, whole, np.concatenate(losses), np.atleast_2d(mass), tuple(pieces))

    @property
    def counts(self) -> Floats:
        """How often each pair is counted."""
        return np.array([count for _, count in self.pairs], dtype=np.float64)

    def tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """Of each pair: ln of its moment, and its shares."""
        with np.errstate(divide="ignore"):
            power = tilt * self.loss + np.log(self.mass)
        log_moment = log_sums(power)
        return log_moment, np.exp(power - log_moment[:, np.newaxis])

    def moments(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        """Of each tilted pair: ln of its moment, mean and variance."""
        power = tilt * self.loss
        most = float(power.max())
        weight = np.exp(power - most)
        total = (self.mass * weight).sum(axis=-1)
        if float(total.min()) < _FLATTEST:  # some have nothing where others have most
            log_moment, share = self.tilted(tilt)
            means = share @ self.loss
            return log_moment, means, (share * (self.loss - means[:, np.newaxis]) ** 2).sum(axis=-1)
        means = (self.mass * (weight * self.loss)).sum(axis=-1) / total
        middle = float(means.mean())
        squares = (self.mass * (weight * (self.loss - middle) ** 2)).sum(axis=-1) / total
        return most + np.log(total), means, np.maximum(squares - (means - middle) ** 2, 0.0)


@dataclass(frozen=True, slots=True)
class Look:
    """A first look at a sum of pairs. Those that are seen by themselves lie one behind the other,
    as ``runs`` tells: there may be thousands of few cells each."""

    groups: tuple[Seen, ...]
    loss: Floats
    mass: Floats
    counts: Floats
    runs: Runs

    @staticmethod
    def at(pairs: Counted, tail: float) -> "Look":
        """Look at these pairs, leaving out this much of each."""
        groups = tuple(Seen.at(group, tail) for group in _alike(pairs))
        lone = [group for group in groups if len(group.pairs) == 1]
        return Look(
            groups,
            np.concatenate([_NOTHING, *(group.loss for group in lone)]),
            np.concatenate([_NOTHING, *(group.mass[0] for group in lone)]),
            np.array([group.pairs[0][1] for group in lone], dtype=np.float64),
            Runs.of([len(group.loss) for group in lone]),
        )

    @property
    def pairs(self) -> Counted:
        """All pairs, counted."""
        return [counted for group in self.groups for counted in group.pairs]

    @property
    def count(self) -> int:
        """How many losses are added up."""
        return sum(count for _, count in self.pairs)

    @property
    def shared(self) -> Iterator[Seen]:
        """The groups of several pairs."""
        return (group for group in self.groups if len(group.pairs) > 1)

    @property
    def largest(self) -> float:
        """The largest loss above 0, or, if there is none, in size."""
        losses = [self.loss, *(group.loss for group in self.shared)]
        most = max(float(loss.max(initial=0.0)) for loss in losses)
        return most or max(float(np.abs(loss).max(initial=0.0)) for loss in losses)

    @property
    def is_too_far(self) -> bool:
        """Whether some loss is too large for its exponential to be a number, or all are."""
        losses = [self.loss, *(group.loss for group in self.shared)]
        most = max(float(np.abs(loss).max(initial=0.0)) for loss in losses)
        return not self.runs.sizes.all() or not most < _FARTHEST

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Of the tilted sum: ln of the moment, mean and standard deviation."""
        sums = self._of_lone(tilt) if len(self.loss) else np.zeros(3)
        for group in self.shared:
            sums = sums + np.array(group.moments(tilt)) @ group.counts
        log_moment, mean, variance = sums.tolist()
        return log_moment, mean, math.sqrt(variance)

    def _of_lone(self, tilt: float) -> Floats:
        most, powers = self.runs.exponentials(tilt * self.loss)
        weight = self.mass * powers
        total = self.runs.sums(weight)
        share = weight / self.runs.spread(total)
        means = self.runs.sums(share * self.loss)
        squares = self.runs.sums(share * (self.loss - self.runs.spread(means)) ** 2)
        return np.array([most + np.log(total), means, squares]) @ self.counts

    def log_delta(self, tilt: float) -> tuple[float, float, float]:
        """About ln delta at the epsilon that is the tilted mean (a normal law in place of the
        tilted one), that epsilon and the standard deviation."""
        log_moment, mean, stddev = self.moments(tilt)
        near, far = tilt * stddev / math.sqrt(2), (tilt + 1) * stddev / math.sqrt(2)
        share = float(erfcx(near) - erfcx(far)) / 2
        if far - near < _CLOSE * (1 + near):  # arguments nearly agree: by the slope
            slope = 1 / math.sqrt(math.pi) - near * float(erfcx(near))
            share = (far - near) * max(slope, 0.25 / (1 + near * near))
        return log_moment - tilt * mean + math.log(max(share, _FLATTEST)), mean, stddev


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
    least, most = min(_LEAST_TILT / spread, 1 / scale), _LARGEST_TILT / scale
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


def _alike(pairs: Counted) -> Iterator[Counted]:
    """The pairs in groups that may be seen together: those with atoms are alone."""
    found: dict[Hashable, list[tuple[Pair, int]]] = {}
    for place, (pair, count) in enumerate(pairs):
        is_smooth = not len(pair.atoms.loss) and len(pairs) >= _MANY
        kind = tuple(map(likeness, pair.pieces)) if is_smooth else place
        found.setdefault(kind, []).append((pair, count))
    for group in found.values():
        for start in range(0, len(group), _TOGETHER):
            yield group[start : start + _TOGETHER]
