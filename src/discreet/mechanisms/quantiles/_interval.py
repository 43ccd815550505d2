"""A quantile of each group of rows, with an interval for it.

The ends of the interval are quantiles too, of padded rows. Let t be a public number of rows. For
the lower end, t rows at the grid's least value are added to the group's rows, and the value is
drawn whose rank is q n among the n + t rows. A value above the quantile without noise has at least
q n of the group's rows below it, and the t others, so it misses by t or more, while some value
misses by 0. So t is chosen such that a draw misses by t with at most half of 1 - confidence. The
upper end is the same on the mirrored grid. Padding adds the same rows to neighbouring tables, so
the misses change as without it, and so does the privacy loss.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np

from discreet import accounting
from discreet._arrays import FloatArray, IndexArray
from discreet._exact import Number, shown
from discreet._fields import Positive, PositiveCount, Probability, field, frozen
from discreet._unit import Change
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import rows_part
from discreet.mechanisms._parts import RowsPart
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import GridField, Level
from discreet.mechanisms.quantiles._ranks import choose, most_missed, stretches
from discreet.noise import Bits

_END_SCALE = 2  # times the value's scale: an end costs half as much as the value
_MOST_PADDING = 2**40


@frozen
class QuantileIntervals:
    """Draws for each group a value of the column's grid as `Quantile` does, and the two ends of an
    interval, independently, with twice the ``scale``.

    Rows have one column, or two: the number of the row's group, from 0 to ``groups`` - 1, and the
    value. A draw is an array of shape (groups, 3): value, low and high, where the value is moved
    between the ends.

    For any rows, the interval of a group holds all values that miss the level by 0 with probability
    ``confidence`` at least, each group by itself. For a group that has few rows it is the whole
    range.

    Guarantee: an `accounting.BoundedRange` for the value and one for each end. Only the draws of a
    row's group depend on the row. So the changes of a unit's rows add up over the groups, and the
    length of the interval of privacy losses is 2 max(level, 1 - level) / scale for each row that
    comes or goes. A replaced row may go in one group and come in another; with several groups it
    costs twice that, with one group 2 / scale. The running time is not covered.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> median = QuantileIntervals.for_epsilon(1, ages, confidence=0.95)
    >>> median, median.padding, median.privacy_loss(ages).epsilon()
    (QuantileIntervals(0.5, scale=2, grid=Grid(0, 120), confidence=0.95), 34, 1.0)
    """

    level: Level = field(default=Fraction(1, 2), named=False)
    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField
    confidence: Probability
    groups: PositiveCount = field(default=1, brief=True)

    def __post_init__(self) -> None:
        if self.padding > _MOST_PADDING:
            raise InvalidArgument(
                f"scale = {shown(self.scale)} rows: give at most about 10^10; name a larger epsilon"
            )

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[Rows], *, level: Number = 0.5, confidence: Number
    ) -> "QuantileIntervals":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        groups, grid = _columns(rows_part(bounded))

        def make(scale: Fraction) -> QuantileIntervals:
            return QuantileIntervals(
                level, scale=scale, grid=grid, confidence=confidence, groups=groups
            )

        return at_epsilon(make, epsilon, bounded)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """The terms of the value and of the two ends, for the rows of a unit and its relation."""
        part = rows_part(bounded)
        if _columns(part) != (self.groups, self.grid):
            raise InvalidArgument(
                f"{bounded.name!r} has the columns {dict(part.columns)!r}: give {self.grid!r}, "
                f"after a column of {self.groups} groups if there are several"
            )
        far = 2 * part.per_unit * max(self.level, 1 - self.level)
        if bounded.unit.change is Change.REPLACE:
            far = 2 * far if self.groups > 1 else Fraction(2 * part.per_unit)
        value = accounting.BoundedRange(far / self.scale)
        end = accounting.BoundedRange(far / (self.scale * _END_SCALE))
        return PrivacyLoss.of(value, unit=bounded.unit) + 2 * PrivacyLoss.of(end, unit=bounded.unit)

    @property
    def padding(self) -> int:
        """The number of rows by which the ranks of the ends lie beyond the level."""
        failure = (1 - self.confidence) / 2
        return max(math.ceil(most_missed(self._end_scale, self.grid.size, failure)), 1)

    def sample(self, value: Rows, bits: Bits) -> FloatArray:
        """The value, low and high of each group."""
        drawn = np.empty((self.groups, 3))
        for group, places in enumerate(_by_group(value, self.groups)):
            drawn[group] = self._of_group(places, bits)
        return drawn

    def _of_group(self, places: IndexArray, bits: Bits) -> tuple[float, float, float]:
        # 1. the value
        last = self.grid.size - 1
        found = stretches(places, lower=0, upper=last, level=self.level)
        place = choose(found, 1 / (self.scale * self.level.denominator), bits)
        # 2. the ends
        low = self._end(places, self.level, bits)
        high = last - self._end(last - places[::-1], 1 - self.level, bits)
        if low > high:
            low, high = high, low
        # 3. the value between them
        return (
            self.grid.value(min(max(place, low), high)),
            self.grid.value(low),
            self.grid.value(high),
        )

    def _end(self, places: IndexArray, level: Fraction, bits: Bits) -> int:
        """The place of the lower end, for sorted places."""
        last = self.grid.size - 1
        found = stretches(places, lower=0, upper=last, level=level, padding=self.padding)
        return choose(found, 1 / (self._end_scale * level.denominator), bits)

    @property
    def _end_scale(self) -> Fraction:
        return self.scale * _END_SCALE


def _columns(part: RowsPart) -> tuple[int, Grid]:
    """The number of groups, and the values' grid."""
    grids = [grid for _, grid in part.columns]
    if len(grids) == 1:
        return 1, grids[0]
    if len(grids) == 2 and grids[0] == Grid(0, grids[0].size - 1):
        return grids[0].size, grids[1]
    raise InvalidArgument(
        f"{part.name!r} has {len(grids)} columns: give one, or the group's number, from 0, and one"
    )


def _by_group(rows: Rows, groups: int) -> Sequence[IndexArray]:
    """The sorted places of each group."""
    places = rows.column(len(rows.columns) - 1)
    if len(rows.columns) == 1:
        return [np.sort(places)]
    numbers = rows.column()
    order = np.lexsort((places, numbers))
    ends = np.searchsorted(numbers[order], np.arange(1, groups))
    return np.split(places[order], ends)
