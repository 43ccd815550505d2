"""Many quantiles of a column, by recursive splits of its rows."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY

import numpy as np

from discreet import _checks, accounting
from discreet._arrays import FloatArray
from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of, part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._break_ties import break_ties, finer
from discreet.mechanisms.quantiles._column import GridField, LevelsField, exact_levels, width
from discreet.mechanisms.quantiles._one_quantile import MEDIAN
from discreet.mechanisms.quantiles._ranks import choose, most_missed_apart, stretches
from discreet.mechanisms.quantiles._splits import depth, influences, splits
from discreet.noise import Bits


@frozen
class Quantiles:
    """Draws values for several increasing levels: the middle level first, as `Quantile` does, then
    those on either side of it among the rows on that side, and so on.

    A split with a share s of its rows below has the scale max(s, 1 - s) * 2 * scale; for a median
    this is ``scale``, in rows. Equal values are first spread over finer places
    (`discreet.mechanisms.quantiles._break_ties`), so that a split can divide them.

    Guarantee: a row takes part in at most one split of each generation; there are
    floor(log2(levels)) + 1 generations. Earlier draws alone decide which split it is. So a
    generation is an `accounting.BoundedRange` of 1 / scale for each row of a unit that comes or
    goes, and of 2 / scale for each replaced row, within one split or between two. The running time
    is not covered.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> quartiles = Quantiles.for_epsilon(1, ages, levels=(0.25, 0.5, 0.75))
    >>> quartiles
    Quantiles((0.25, 0.5, 0.75), scale=2, grid=Grid(0, 120))
    >>> quartiles.privacy_loss(ages), quartiles.privacy_loss(ages).epsilon()
    ((2 * accounting.BoundedRange(eta=0.5)).for_unit(Unit.ROW), 1.0)

    Kaplan, Schnapp and Stemmer (2022), Differentially private approximate quantiles.
    """

    levels: LevelsField = field(named=False)
    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[Rows], *, levels: Sequence[Number]
    ) -> "Quantiles":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        _, grid = column_of(bounded)
        return at_epsilon(lambda scale: Quantiles(levels, scale=scale, grid=grid), epsilon, bounded)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, grid: Grid, levels: Sequence[Number]
    ) -> "Quantiles":
        """The cheapest mechanism whose error at ``confidence`` is at most ``error`` rows."""
        if _checks.not_negative(error=error) < len(exact_levels(levels)) + 1:
            raise InvalidArgument(f"error = {error}: give at least a row more than levels")
        return at_error(lambda scale: Quantiles(levels, scale=scale, grid=grid), error, confidence)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.BoundedRange` term for each generation of splits."""
        part_on(bounded, self.grid)
        term = accounting.BoundedRange(width(bounded, MEDIAN) / self.scale)
        return PrivacyLoss.of(term, unit=bounded.unit) * depth(self.levels)

    def sample(self, value: Rows, bits: Bits) -> FloatArray:
        """A value of the grid for each level; values do not decrease."""
        by = finer(self.grid.size)
        rows, last = break_ties(value.column(), by), self.grid.size * by - 1
        found: dict[int | None, int] = {}
        for split in splits(self.levels):
            lower, upper = found.get(split.below, -1), found.get(split.above, last)
            first, end = np.searchsorted(rows, (lower, upper), side="right")
            inside = stretches(rows[first:end], lower=max(lower, 0), upper=upper, level=split.share)
            rate = 1 / (self.scale * split.lopsided * split.share.denominator)
            found[split.number] = choose(inside, rate, bits)
        return np.array([self.grid.value(found[i] // by) for i in range(len(self.levels))])

    def error(self, confidence: Number) -> int:
        """An upper bound on the number of rows by which a value misses its level at this
        confidence, each value by itself.

        It adds the worst misses of all splits before a value. It holds for any rows of which at
        most 65 536 are equal (fewer on a grid of more than 2^46 values: `finer`).
        """
        failure = 1 - _checks.probability(confidence=confidence)
        found = splits(self.levels)
        lopsided = {split.number: split.lopsided for split in found}
        places = self.grid.size * finer(self.grid.size)

        def off(number: int, parts: int) -> int:
            return most_missed_apart(self.scale * lopsided[number], places, failure / parts) + 1

        return max(
            math.ceil(sum(weight * off(i, len(mine)) for i, weight in mine.items())) - 1
            for mine in influences(found).values()
        )
