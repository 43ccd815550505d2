"""Laws of sampled mechanisms on tables of a few units, by enumeration of all samples.

A `Law` holds the probability of each outcome on two neighbouring tables. The mechanisms add noise
to the sum of the sample's values; outcomes far out are counted as one, and normal noise is only
seen through the cells of a ruler, which is post-processing: the real mechanism is no more private.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.special import logsumexp, ndtr

from discreet._arrays import FloatArray

Noise = Callable[[float], FloatArray]  # the probability of each outcome, given the sum
Batches = Callable[[Sequence[float]], dict[float, float]]  # how probable each sum is

ABSENT = float("inf")  # the value of a unit that isn't in the table


@dataclass(frozen=True)
class Law:
    """The probabilities of all outcomes on one table, ``p``, and on its neighbour, ``q``."""

    p: FloatArray
    q: FloatArray

    def delta(self, epsilon: float) -> float:
        """The larger hockey stick divergence of both orders."""
        k = float(np.exp(epsilon))
        forth = np.maximum(self.p - k * self.q, 0.0).sum()
        back = np.maximum(self.q - k * self.p, 0.0).sum()
        return float(max(forth, back))

    def renyi(self, order: float) -> float:
        """The larger Renyi divergence of both orders."""
        with np.errstate(divide="ignore"):
            p, q = np.log(self.p), np.log(self.q)
        held = np.isfinite(p) & np.isfinite(q)
        assert self.p[~held].sum() + self.q[~held].sum() < 1e-30
        ratio = (order - 1) * (p - q)[held]
        moments = (logsumexp(p[held] + ratio), logsumexp(q[held] - ratio))
        return float(max(moments) / (order - 1))

    def and_again(self, other: "Law") -> "Law":
        """Both outcomes, of independent samples."""
        return Law(np.outer(self.p, other.p).ravel(), np.outer(self.q, other.q).ravel())


def law(batches: Batches, noise: Noise, table: Sequence[float], other: Sequence[float]) -> Law:
    """The law of a noisy sum over a sample from either table."""

    def of(values: Sequence[float]) -> FloatArray:
        return np.asarray(sum(p * noise(total) for total, p in batches(values).items()))

    return Law(of(table), of(other))


def gaussian(multiplier: float, reach: float = 12.0, width: float = 0.125) -> Noise:
    """Normal noise, seen through cells."""
    ruler = np.arange(-reach * multiplier, reach * multiplier, width * multiplier)

    def noise(total: float) -> FloatArray:
        below = ndtr((ruler - total) / multiplier)
        above = ndtr((total - ruler) / multiplier)
        inner = np.where(ruler[1:] < total, np.diff(below), -np.diff(above))
        return np.concatenate([below[:1], inner, above[-1:]])

    return noise


def discrete_laplace(scale: float, reach: int = 12) -> Noise:
    """Noise with P(x) proportional to e^(-|x| / scale); far out the outcome is cut."""

    def noise(total: float) -> FloatArray:
        p = np.exp(-1 / scale)
        outcomes = np.arange(-reach, reach + 1)
        mass = (1 - p) / (1 + p) * p ** np.abs(outcomes - total)
        mass[[0, -1]] /= 1 - p
        return np.asarray(mass)

    return noise


def without_replacement(size: int) -> Batches:
    """Every set of this many units is equally likely."""

    def batches(values: Sequence[float]) -> dict[float, float]:
        sums = Counter(sum(chosen) for chosen in combinations(values, size))
        return {total: ways / sums.total() for total, ways in sums.items()}

    return batches


def with_replacement(size: int) -> Batches:
    """Every row of this many draws is equally likely."""

    def batches(values: Sequence[float]) -> dict[float, float]:
        sums = Counter(sum(chosen) for chosen in product(values, repeat=size))
        return {total: ways / sums.total() for total, ways in sums.items()}

    return batches


def truncated_poisson(rate: float, most: int) -> Batches:
    """Each unit by a coin of its own; of those the first ``most``, tables being in the order of
    the units' priorities."""

    def batches(values: Sequence[float]) -> dict[float, float]:
        there = [value for value in values if value != ABSENT]
        sums: dict[float, float] = {}
        for coins in product((False, True), repeat=len(there)):
            chosen = [value for value, coin in zip(there, coins, strict=True) if coin][:most]
            p = float(np.prod([rate if coin else 1 - rate for coin in coins]))
            sums[sum(chosen)] = sums.get(sum(chosen), 0.0) + p
        return sums

    return batches


def neighbours(
    units: int, values: Sequence[float], changed: Sequence[tuple[float, float]]
) -> Iterator[tuple[list[float], list[float]]]:
    """All pairs of tables of this many units that differ in one of them, at any place."""
    for place in range(units):
        for rest in product(values, repeat=units - 1):
            for one, other in changed:
                table = [*rest[:place], one, *rest[place:]]
                yield table, [*rest[:place], other, *rest[place:]]


def reported(*values: bool, epsilon: float) -> FloatArray:
    """The probability of each row of answers, each of which is true with odds e^epsilon to 1."""
    rows: FloatArray = np.ones(1)
    true = 1 / (1 + np.exp(-epsilon))
    for value in values:
        rows = np.outer(rows, [1 - true, true] if value else [true, 1 - true]).ravel()
    return rows


def allocated(units: int, steps: int, epsilon: float) -> FloatArray:
    """The answers of an epoch: of each step, whether its batch holds anyone."""
    rows: FloatArray = np.zeros(2**steps)
    for places in product(range(steps), repeat=units):
        rows += reported(*(step in places for step in range(steps)), epsilon=epsilon) / steps**units
    return rows


def shuffled(values: Sequence[int], categories: int, epsilon: float) -> FloatArray:
    """The number of times that each value is reported, by randomized response."""
    total = np.exp(epsilon) + categories - 1
    law: dict[tuple[int, ...], float] = {(0,) * categories: 1.0}
    for value in values:
        grown: dict[tuple[int, ...], float] = {}
        for counts, p in law.items():
            for report in range(categories):
                key = tuple(n + (each == report) for each, n in enumerate(counts))
                share = np.exp(epsilon) / total if report == value else 1 / total
                grown[key] = grown.get(key, 0.0) + p * share
        law = grown
    return np.array([law[key] for key in sorted(law)])
