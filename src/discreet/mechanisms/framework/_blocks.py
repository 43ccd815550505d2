"""The private median or mean of the values of blocks, where each unit is in one block."""

from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np

from discreet import _checks, accounting
from discreet._arrays import IndexArray
from discreet._exact import Number, decimal_down
from discreet._fields import Positive, Size, frozen
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._additive import integers
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._fixed_point import FixedPoint, IntegerArray
from discreet.mechanisms._parts import Part
from discreet.mechanisms._rows import Grid
from discreet.mechanisms.quantiles._column import GridField, checked_grid
from discreet.mechanisms.quantiles._ranks import most_missed
from discreet.mechanisms.selection._gaps import exponential_chance, smallest_gap
from discreet.noise import Bits, DiscreteLaplaceLaw
from discreet.noise._pieces import choose_place

_DIGITS = 9


@frozen
class MedianOfBlocks:
    """Draws a value v of the grid with probability proportional to exp(-b / scale). Here b is the
    number of blocks with a value below v or the number with a value above v, whichever is larger.

    Guarantee: an `accounting.BoundedRange`. The privacy loss lies in an interval of length
    2 / scale for each block's value that a unit may move, under either relation. This is the
    exponential mechanism of McSherry and Talwar (2007). The running time is not covered.

    >>> from discreet.mechanisms.framework import sample_and_aggregate
    >>> from discreet import Unit
    >>> ids, pay = np.arange(1000), np.linspace(3, 30, 1000)
    >>> spread = sample_and_aggregate(
    ...     lambda: (ids, pay), np.std, blocks=40, grid=Grid(0, 20, step=0.01), default=0,
    ...     unit=Unit("person"), name="spread of pay",
    ... )
    >>> mechanism = MedianOfBlocks.for_epsilon(1, spread, grid=Grid(0, 20, step=0.01))
    >>> mechanism, mechanism.error(0.95)
    (MedianOfBlocks(scale=2, grid=Grid(0, 20, step=0.01)), 21)
    """

    scale: Positive  # in blocks
    _: KW_ONLY
    grid: GridField

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[IntegerArray], *, grid: Grid
    ) -> "MedianOfBlocks":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        return at_epsilon(lambda scale: MedianOfBlocks(scale, grid=grid), epsilon, bounded)

    @staticmethod
    def for_error(error: Number, confidence: Number, *, grid: Grid) -> "MedianOfBlocks":
        """The cheapest mechanism whose error at ``confidence`` is at most ``error`` blocks."""
        blocks = int(_checks.not_negative(error=error)) + 1
        failure = 1 - _checks.probability(confidence=confidence)
        each = most_missed(Fraction(1), checked_grid(grid).size, failure)
        if not each:
            raise InvalidArgument(f"confidence = {confidence}: any scale has it on {grid!r}")
        return MedianOfBlocks(decimal_down(blocks / each, _DIGITS), grid=grid)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.BoundedRange` term; raises for values of another grid."""
        moved = max(_values(bounded, self.grid).sensitivity.l0, 1)
        return PrivacyLoss.of(BoundedRange(2 * moved / self.scale), unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> float:
        """A value of the grid."""
        starts, lengths, scores = _stretches(_clipped(value, self.grid), self.grid.size)
        place = choose_place(starts, lengths, scores, rate=1 / self.scale, bits=bits)
        return self.grid.value(place)

    def error(self, confidence: Number) -> int:
        """A whole number r such that at this confidence at most half of the blocks plus
        r have values below the released one, and at most half plus r have values above it."""
        return smallest_gap(exponential_chance(1 / self.scale, self.grid.size - 1), confidence)


@frozen
class MeanOfBlocks:
    """Adds discrete Laplace noise to the sum of the blocks' values, and divides by the number of
    blocks.

    Guarantee: the same as for `DiscreteLaplace`. A unit moves the sum by at most the width of the
    grid, and a replaced unit by at most twice the width. The result becomes a float after the
    noise. The running time is not covered.

    >>> MeanOfBlocks(0.1, grid=Grid(0, 20, step=0.01), blocks=40).error(0.95)
    Fraction(599, 2000)
    """

    scale: Positive  # of the mean, in the units of the values
    _: KW_ONLY
    grid: GridField
    blocks: Size

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[IntegerArray], *, grid: Grid
    ) -> "MeanOfBlocks":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        count = _values(bounded, checked_grid(grid)).shape[0]
        return at_epsilon(
            lambda scale: MeanOfBlocks(scale, grid=grid, blocks=count), epsilon, bounded
        )

    @staticmethod
    def for_error(error: Number, confidence: Number, *, grid: Grid, blocks: int) -> "MeanOfBlocks":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        each = checked_grid(grid).step / _checks.size(blocks=blocks)
        inner = DiscreteLaplace.for_error(_checks.positive(error=error) / each, confidence)
        return MeanOfBlocks(inner.scale * each, grid=grid, blocks=blocks)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.DiscreteLaplace` term; raises for values of another grid and for another
        number of blocks."""
        part = _values(bounded, self.grid)
        if part.shape != (self.blocks,):
            raise InvalidArgument(f"blocks = {self.blocks}: {bounded.name!r} has {part.shape[0]}")
        term = accounting.DiscreteLaplace(self._inner.scale, max(part.sensitivity.l1, 1))
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> float:
        """The mean with noise."""
        total = sum(_clipped(value, self.grid).tolist())
        noisy = total + DiscreteLaplaceLaw(self._inner.scale).draw(bits)
        return float(FixedPoint(1, self.grid.lower + noisy * self._each).floats)

    def error(self, confidence: Number) -> Fraction:
        """The smallest q with the noise of the mean in [-q, q] at this confidence, exactly. The
        rounding of values to the grid adds at most half a step."""
        return self._inner.error(confidence) * self._each

    @property
    def _each(self) -> Fraction:
        """The change of the mean if one value changes by a step."""
        return self.grid.step / self.blocks

    @property
    def _inner(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale / self._each)


def _stretches(places: IndexArray, size: int) -> tuple[IndexArray, IndexArray, IndexArray]:
    """The starts, lengths and scores of the stretches of the grid with equal score.

    A stretch is the place of a value, or a gap between values. The score is minus the number of
    values on the fuller side.
    """
    # 1. starts and lengths
    values, counts = np.unique(places, return_counts=True)
    ends = np.append(values + 1, size)
    gaps = np.concatenate([[0], values + 1])
    starts = np.stack([gaps, ends - 1], axis=1).ravel()[:-1]  # a gap, a value, a gap, ..., a gap
    lengths = np.diff(np.append(starts, size))
    # 2. scores
    upto = np.concatenate([[0], np.cumsum(counts)])
    below = np.repeat(upto, 2)[:-1]
    above = places.size - np.repeat(upto, 2)[1:]
    scores = -np.maximum(below, above)
    is_there = lengths > 0
    return starts[is_there], lengths[is_there], scores[is_there]


def _clipped(value: IntegerArray, grid: Grid) -> IndexArray:
    return np.clip(value, 0, grid.size - 1).astype(np.int64)


def _values(bounded: Bounded[IntegerArray], grid: Grid) -> Part:
    """The part; raises unless it gives places on this grid in one dimension."""
    part = integers(bounded)
    if len(part.shape) != 1 or not part.shape[0] or part.sensitivity.linf != grid.size - 1:
        raise InvalidArgument(
            f"{bounded.name!r} does not give places on {grid!r}: make it by sample_and_aggregate, "
            "with this grid"
        )
    return part
