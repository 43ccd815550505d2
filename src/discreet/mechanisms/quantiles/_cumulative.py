"""A cumulative distribution: the number of rows up to each public edge."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from fractions import Fraction
from itertools import accumulate
from typing import Annotated

import numpy as np

from discreet import _checks, accounting
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet._fields import Converted, Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._additive import with_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.quantiles._histogram import counts, first_places, rising_edges
from discreet.mechanisms.quantiles._partial_sums import most_strayed
from discreet.noise import Bits, DiscreteLaplaceLaw


@frozen
class Cumulative:
    """Releases the number of rows from the first edge up to each other edge, as numbers that do not
    decrease.

    Each bin's count gets discrete Laplace noise of this scale. The partial sums are replaced by the
    nearest numbers, in least squares, that do not decrease and are 0 or above. Divide by the last
    number for a distribution function, at no further cost.

    Guarantee: epsilon-DP with epsilon = L1 sensitivity of the counts / scale. Sums are
    post-processing. The replacement does not increase the largest error, since the true numbers do
    not decrease.

    >>> from discreet.mechanisms import Grid
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> by_decade = Cumulative.for_epsilon(1, ages, edges=range(0, 130, 10))
    >>> by_decade.error(0.95), by_decade.privacy_loss(ages)
    (10, (1 * accounting.DiscreteLaplace(scale=1, sensitivity=1)).for_unit(Unit.ROW))
    """

    edges: Annotated[Converted[tuple[Fraction, ...], Sequence[Number]], rising_edges] = field(
        named=False
    )
    _: KW_ONLY
    scale: Positive  # in rows

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[Rows], *, edges: Sequence[Number]
    ) -> "Cumulative":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        return at_epsilon(lambda scale: Cumulative(edges, scale=scale), epsilon, bounded)

    @staticmethod
    def for_error(error: Number, confidence: Number, *, edges: Sequence[Number]) -> "Cumulative":
        """The mechanism with the most noise whose error at ``confidence`` is at most
        ``error`` rows."""
        return at_error(lambda scale: Cumulative(edges, scale=scale), error, confidence)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.DiscreteLaplace` term of this scale and the histogram's sensitivity."""
        part, _ = column_of(bounded)
        term = accounting.DiscreteLaplace(self.scale, part.sensitivity.l1)
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> FloatArray:
        """One number for each bin."""
        ((_, grid),) = value.columns
        found = counts(value, first_places(grid, self.edges))
        noisy = with_noise(found, DiscreteLaplaceLaw(self.scale), bits)
        return np.maximum(isotonic(list(accumulate(noisy.tolist()))), 0)

    def error(self, confidence: Number) -> int:
        """The largest error of all numbers together at this confidence, in rows, for any rows. For
        scales up to 128 it is exact if counts are so large that the noisy sums increase."""
        failure = 1 - _checks.probability(confidence=confidence)
        return most_strayed(self.scale, len(self.edges) - 1, failure)


def isotonic(numbers: Sequence[int]) -> FloatArray:
    """Isotonic regression: the nearest numbers, in least squares, that do not decrease. Neighbours
    that decrease are pooled into their mean until none does (Ayer et al. 1955)."""
    blocks: list[tuple[int, int]] = []  # each a sum and a count
    for number in numbers:
        total, count = number, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((total, count))
    return np.repeat([total / count for total, count in blocks], [many for _, many in blocks])
