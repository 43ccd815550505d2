"""A quantile of a column, by the exponential mechanism over the gaps between its values."""

import math
from fractions import Fraction

from discreet import _checks, accounting
from discreet._exact import Number, decimal_down
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import a_grid, a_level, width
from discreet.mechanisms.quantiles._one_quantile import MEDIAN, OneQuantile
from discreet.mechanisms.quantiles._ranks import Score, a_score, choose, most_missed
from discreet.noise import Bits

_DIGITS = 9


class Quantile(OneQuantile):
    """Draws a value of the column's grid with probability proportional to
    exp(-rows by which it misses the level / scale).

    A value misses the level by 0 rows if at most a share ``level`` of the rows lies below it, and
    at most the rest above it. Each of these values is a quantile, also between two rows. With
    ``score=Score.MID_RANK``, a value misses by the distance of the level from the middle of its
    ranks: better if values are dense and each is shared by several rows.

    Guarantee: the privacy loss lies in an interval of length 2 max(level, 1 - level) / scale for
    each row of a unit that comes or goes, 2 / scale for each replaced row: an
    `accounting.BoundedRange`. Empty tables and tables with a single value are covered. The running
    time, which reveals the number of different values, is not covered.

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
    proof of the price is in `discreet.mechanisms.quantiles._ranks`.
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
        """The cheapest mechanism whose error at this confidence is at most ``error`` rows."""
        finest = Fraction(1, a_score(score).parts(a_level(level=level)))
        rows = math.floor(_checks.not_negative(error=error)) + finest
        failure = 1 - _checks.probability(confidence=confidence)
        each = most_missed(Fraction(1), a_grid(grid).size, failure)
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

    def error(self, confidence: Number) -> int:
        """The number of rows by which the value misses the level at this confidence, beyond the
        miss of the best value of the grid: the smallest whole number that holds for all tables.
        With `Score.MID_RANK` and a level other than 1/2 it may be larger.

        With the interval score the best value misses by 0. With mid-ranks it misses by at most half
        of the rows that equal the quantile. No value misses by more with the interval score.
        """
        failure = 1 - _checks.probability(confidence=confidence)
        least = most_missed(self.scale, self.grid.size, failure)
        return max(0, math.ceil(least - Fraction(1, self._parts)))
