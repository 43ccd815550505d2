"""A tree of counts: noisy sums over larger and larger ranges of a histogram."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated

import numpy as np

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet._fields import PositiveCount, frozen, optional
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._additive import integers, with_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Part
from discreet.mechanisms._release import Release
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.trees._noise import TreeNoise, checked_noise, summed_loss
from discreet.noise import Bits

TreeLevels = tuple[IntegerArray, ...]
"""The noisy sums of a tree: one array for each level, the total first."""

_INT64 = np.iinfo(np.int64)


@frozen
class TreeCounts:
    """Releases noisy sums on the levels of a tree: the total, the sums over ``branching`` equal
    ranges, over ``branching`` parts of each range, and so on down to the counts.

    Guarantee: the sum of the privacy losses of all levels. On each level a unit moves the sums, in
    L1, by at most as much as the counts, under either relation. ``total`` is a smaller bound on the
    move of the total, if one is known. It is 0 if a replaced unit is in one bin before and in one
    bin after; then the total costs nothing. The caller asserts ``total``, and that all counts fit
    into int64: a count beyond int64 would become its end, and the total would move. Sums beyond
    int64 become its ends.

    The value is a tuple of arrays, from the total down to the counts. `consistent` turns it into
    counts with the best estimates of all range sums. Hay, Rastogi, Miklau and Suciu (2010); with
    consistency, about 16 branches are a good choice (Qardaji, Yang and Li 2013).

    >>> from discreet import Unit
    >>> ages = Bounded(
    ...     lambda: np.arange(100), sensitivity=1, shape=(100,), unit=Unit("id"), name="ages",
    ... )
    >>> mechanism = TreeCounts.for_epsilon(1, ages, branching=10)
    >>> mechanism.noise, mechanism.sizes(100), mechanism.privacy_loss(ages).epsilon()
    (DiscreteLaplace(scale=3), [1, 10, 100], 1.0)
    """

    noise: Annotated[TreeNoise, checked_noise]  # of each sum
    _: KW_ONLY
    branching: PositiveCount = 16
    total: Annotated[int | None, optional(_checks.count)] = None  # sensitivity of the total

    def __post_init__(self) -> None:
        if self.branching < 2:
            raise InvalidArgument(f"branching = {self.branching}: give a whole number, 2 or above")

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        *,
        branching: int = 16,
        total: int | None = None,
    ) -> "TreeCounts":
        """The tree with discrete Laplace noise whose release costs exactly epsilon."""

        def make(scale: Fraction) -> TreeCounts:
            return TreeCounts(DiscreteLaplace(scale), branching=branching, total=total)

        return at_epsilon(make, epsilon, bounded)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, branching: int = 16, total: int | None = None
    ) -> "TreeCounts":
        """The tree with the most discrete Laplace noise with which the error of each sum at
        ``confidence`` is at most ``error``."""
        noise = DiscreteLaplace.for_error(error, confidence)
        return TreeCounts(noise, branching=branching, total=total)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """The sum of the privacy losses of all levels; raises unless the computation gives integers
        in one dimension."""
        return summed_loss(self.noise, self._sensitivities(_histogram(bounded)), bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> TreeLevels:
        """The levels with noise, the total first."""
        law = self.noise.law
        return tuple(with_noise(level, law, bits) for level in self._sums(value))

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the noise of each sum in [-q, q] at this confidence."""
        return self.noise.error(confidence)

    def stddev_of_range(self, first: int, stop: int, *, length: int) -> float:
        """The standard deviation of the sum of the `consistent` counts from ``first`` up to, but
        not including, ``stop``, in a histogram of ``length`` counts.

        Least squares from sums A x with independent noise estimates a^T x with the variance
        a^T (A^T A)^-1 a, and `consistent` computes (A^T A)^-1 A^T y for any y.
        """
        size = _checks.positive_count(length=length)
        if not 0 <= _checks.count(first=first) < _checks.count(stop=stop) <= size:
            raise InvalidArgument(f"first = {first}, stop = {stop}: 0 <= first < stop <= {length}")
        among = np.zeros(size)
        among[first:stop] = 1
        zeros = [np.zeros(count) for count in self.sizes(size)[:-1]]
        solved = _least_squares((*zeros, among), self.branching)
        return self.noise.stddev_of_noise() * math.sqrt(float(among @ solved))

    def sizes(self, length: int) -> list[int]:
        """The number of sums on each level, for this number of counts; ranges beyond the last count
        have no sum."""
        sizes = [_checks.positive_count(length=length)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // self.branching))
        return sizes[::-1]

    def _sensitivities(self, part: Part) -> Iterator[Sensitivity]:
        """The sensitivity of each level that a unit may move, from the counts up.

        At most (l1 + total) / 2 of all changes have the same sign, so no sum moves further.
        """
        moved, width = part.sensitivity, self.branching
        total = moved.l1 if self.total is None else min(self.total, moved.l1)
        yield moved
        for size in self.sizes(part.shape[0])[-2::-1]:
            most = min((moved.l1 + total) // 2 if size > 1 else total, moved.linf * width)
            if most or not moved.l1:
                yield Sensitivity(l0=min(moved.l0, size), l1=moved.l1, linf=most)
            width *= self.branching

    def _sums(self, value: IntegerArray) -> list[IntegerArray]:
        """The levels without noise: exact, but at most the ends of int64."""
        level = np.clip(value, _INT64.min, _INT64.max).astype(np.int64)
        is_small = bool(np.all(np.abs(level.astype(np.float64)) * max(level.size, 1) < 2.0**62))
        exact = level if is_small else level.astype(object)
        levels = [level]
        while exact.size > 1:
            exact = np.add.reduceat(exact, np.arange(0, exact.size, self.branching))
            levels.append(np.clip(exact, _INT64.min, _INT64.max).astype(np.int64))
        return levels[::-1]


def consistent(release: Release[TreeLevels]) -> Release[FloatArray]:
    """The counts that fit all noisy sums of a released tree best. The sum over any range is the
    best linear unbiased estimate (Hay, Rastogi, Miklau and Suciu 2010, Theorem 4).

    Guarantee: post-processing of the release, so its privacy loss and receipt stay the same.
    """
    mechanism = release.mechanism
    if not isinstance(mechanism, TreeCounts) or release.processing:
        raise InvalidArgument(f"{release.name!r}: give an unprocessed release by TreeCounts")
    return release.processed(
        lambda levels: _least_squares(levels, mechanism.branching), by="least squares on the tree"
    )


def _least_squares(levels: tuple[IntegerArray | FloatArray, ...], branching: int) -> FloatArray:
    """The counts that fit all sums best, by least squares in two passes."""
    # 1. upwards: average each sum with that of its parts, weighted by inverse variances
    means, variances = [levels[-1].astype(np.float64)], [np.ones(levels[-1].size)]
    sums = []
    for level in reversed(levels[:-1]):
        starts = np.arange(0, means[-1].size, branching)
        below, spread = (np.add.reduceat(a, starts) for a in (means[-1], variances[-1]))
        sums.append((below, spread))
        means.append((level * spread + below) / (spread + 1))
        variances.append(spread / (spread + 1))
    # 2. downwards: share the residual of each sum among its parts, by their variances
    found: FloatArray = means.pop()
    for mean, variance, (below, spread) in zip(
        reversed(means), reversed(variances[:-1]), reversed(sums), strict=True
    ):
        shares = np.repeat((found - below) / spread, branching)[: mean.size]
        found = mean + variance * shares
    return found


def _histogram(bounded: Bounded[IntegerArray]) -> Part:
    part = integers(bounded)
    if len(part.shape) != 1 or part.shape[0] == 0:
        raise InvalidArgument(
            f"{bounded.name!r} has the shape {part.shape}: give counts in one dimension"
        )
    return part
