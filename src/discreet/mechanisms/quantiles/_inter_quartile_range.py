"""The inter-quartile range of a column."""

from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np

from discreet import _checks
from discreet._exact import Number, root_down
from discreet._fields import Positive, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import GridField
from discreet.mechanisms.quantiles._quantile import Quantile
from discreet.mechanisms.quantiles._ranks import choose, stretches
from discreet.noise import Bits

_LEVELS = Fraction(1, 4), Fraction(3, 4)


@frozen
class InterQuartileRange:
    """Draws both quartiles as `Quantile` does, independently with this ``scale``, and releases the
    upper one minus the lower one, or 0 if the difference is negative.

    Guarantee: the sum of the privacy losses of the two quantiles. The error of the range depends on
    the density of the values near the quartiles. So `error` states only by how many rows the
    quartiles miss.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> spread = InterQuartileRange.for_epsilon(1, ages)
    >>> spread, spread.privacy_loss(ages).epsilon()
    (InterQuartileRange(scale=3, grid=Grid(0, 120)), 1.0)
    """

    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[Rows]) -> "InterQuartileRange":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: InterQuartileRange(scale=scale, grid=grid), epsilon, bounded
        )

    @staticmethod
    def for_error(error: Number, confidence: Number, *, grid: Grid) -> "InterQuartileRange":
        """The cheapest mechanism whose error at ``confidence`` is at most ``error`` rows."""
        each = _for_each(_checks.probability(confidence=confidence))
        one = Quantile.for_error(error, each, grid=grid, level=_LEVELS[0])
        return InterQuartileRange(scale=one.scale, grid=grid)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.BoundedRange` term for each quartile."""
        return 2 * self._quartile.privacy_loss(bounded)

    def sample(self, value: Rows, bits: Bits) -> float:
        """A number of the column's unit, 0 or above."""
        rows, last = np.sort(value.column()), self.grid.size - 1
        parts = (stretches(rows, lower=0, upper=last, level=level) for level in _LEVELS)
        low, high = (choose(part, 1 / (4 * self.scale), bits) for part in parts)
        return float(max(high - low, 0) * self.grid.step)

    def error(self, confidence: Number) -> int:
        """The number of rows by which both quartiles miss at most at this confidence: the smallest
        whole number that holds for all tables."""
        return self._quartile.error(_for_each(_checks.probability(confidence=confidence)))

    @property
    def _quartile(self) -> Quantile:
        return Quantile(_LEVELS[0], scale=self.scale, grid=self.grid)


def _for_each(confidence: Fraction) -> Fraction:
    """The confidence, rounded up, of each of two independent statements that hold together at this
    confidence: its square root."""
    return max(confidence, 1 - (1 - confidence) / (1 + root_down(confidence)))
