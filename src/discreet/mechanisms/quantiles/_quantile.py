"""A quantile of a column, by the exponential mechanism over the gaps between its values."""

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet import _checks, accounting
from discreet._exact import Number, decimal_down
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import checked_grid, checked_level, width
from discreet.mechanisms.quantiles._one_quantile import MEDIAN, OneQuantile
from discreet.mechanisms.quantiles._ranks import Score, checked_score, choose, most_missed
from discreet.mechanisms.selection._gaps import exponential_chance
from discreet.noise import Bits

_DIGITS = 9


class Quantile(OneQuantile):
    """Draws a value of the column's grid with probability proportional to exp(-m / scale), where
    it misses the level by m rows.

    A value misses the level by 0 rows if at most a share ``level`` of the rows lies below it and at
    most a share 1 - ``level`` lies above it. Each of these values is a quantile; it may lie between
    two rows. With ``score=Score.MID_RANK``, a value misses by the distance of the level from the
    middle of its ranks; this is better if values are dense and each is shared by several rows.

    Guarantee: an `accounting.BoundedRange`. The privacy loss lies in an interval whose length is
    2 max(level, 1 - level) / scale for each added or removed row of a unit, and 2 / scale for each
    replaced row. Empty tables and tables with a single value are covered. The running time, which
    reveals the number of different values, is not covered.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.array([31, 44, 58]), columns={"age": Grid(0, 120)},
    ...     unit=Unit.ROW, name="ages",
    ... )
    >>> median = Quantile.for_epsilon(0.5, ages)
    >>> median
    Quantile(0.5, scale=2, grid=Grid(0, 120))
    >>> median.error(0.95), median.privacy_loss(ages).epsilon()
    (15, 0.5)

    Smith (2011), Privacy-preserving statistical estimation with optimal convergence rates; the
    proof of the privacy loss is in `discreet.mechanisms.quantiles._ranks`.
    """

    __slots__ = ()

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        *,
        grid: Grid,
        level: Number = MEDIAN,
        score: Score = Score.INTERVAL,
    ) -> "Quantile":
        """The cheapest mechanism whose error at ``confidence`` is at most ``error`` rows."""
        finest = Fraction(1, checked_score(score).parts(checked_level(level=level)))
        rows = math.floor(_checks.not_negative(error=error)) + finest
        failure = 1 - _checks.probability(confidence=confidence)
        each = most_missed(Fraction(1), checked_grid(grid).size, failure)
        if not each:
            raise InvalidArgument(f"confidence = {confidence}: any scale has it on {grid!r}")
        return Quantile(level, scale=decimal_down(rows / each, _DIGITS), grid=grid, score=score)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.BoundedRange` term, for the rows of a unit and its relation."""
        part_on(bounded, self.grid)
        term = accounting.BoundedRange(width(bounded, self.level) / self.scale)
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """One of the grid's values."""
        return self.grid.value(choose(self._stretches(value), self._rate, bits))

    def _chance_to_miss(self) -> Callable[[int], arb]:
        return exponential_chance(self._rate, self.grid.size - 1)
