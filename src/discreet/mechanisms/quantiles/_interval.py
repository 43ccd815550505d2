"""A quantile of each group of rows, with an interval for it.

The value is drawn first, at a place v. The lower end is a quantile, too, of padded rows in cells
that double away from v: {v}, {v - 1}, {v - 3, v - 2} and so on, down to the least place. Let t be a
public number of rows. At the least place t rows are added, and the cell is drawn that holds the
row of rank q n among the n + t rows. A cell above the quantile without noise has at least q n of
the group's rows below it, and the t others, so it misses by t or more, while some cell further away
misses by 0. Each cell has as many candidates as all cells between it and v together. So t, which is
chosen such that one candidate that misses by t is drawn beside one that misses by 0 with at most
half of 1 - confidence, is enough for any number of places. The end is the lowest place of the cell.
The upper end is the same on the mirrored grid.

Cells follow from v, which is released. They move each row by itself, and padding adds the same rows
to neighbouring tables. So the misses change as without both, and so does the privacy loss.
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
from discreet.noise._pieces import choose_piece

_END_SCALE = 2  # times the value's scale: an end costs half as much as the value
_CANDIDATES = 2  # the right one, and as many wrong ones as there are right ones
_MOST_PADDING = 2**40


@frozen
class QuantileIntervals:
    """Draws for each group a value of the column's grid as `Quantile` does, and then the two ends
    of an interval on either side of it, with twice the ``scale``.

    Rows have one column, or two: the number of the row's group, from 0 to ``groups`` - 1, and the
    value. A draw is an array of shape (groups, 3): value, low and high.

    For any rows, the interval of a group holds all values that miss the level by 0 with probability
    ``confidence`` at least, each group by itself. Where rows lie evenly it spans about 3 times the
    ``padding`` in rows. For a group that has few rows it is the whole range.

    Guarantee: an `accounting.BoundedRange` for the value and one for each end, by adaptive
    composition. Only the draws of a row's group depend on the row. So the changes of a unit's rows
    add up over the groups, and the length of the interval of privacy losses is
    2 max(level, 1 - level) / scale for each row that comes or goes. A replaced row may go in one
    group and come in another; with several groups it costs twice that, with one group 2 / scale.
    The running time is not covered.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> median = QuantileIntervals.for_epsilon(1, ages, confidence=0.95)
    >>> median, median.padding, median.privacy_loss(ages).epsilon()
    (QuantileIntervals(0.5, scale=2, grid=Grid(0, 120), confidence=0.95), 15, 1.0)
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
        return max(math.ceil(most_missed(self.scale * _END_SCALE, _CANDIDATES, failure)), 1)

    def sample(self, value: Rows, bits: Bits) -> FloatArray:
        """The value, low and high of each group."""
        drawn, padding = np.empty((self.groups, 3)), self.padding
        for group, places in enumerate(_by_group(value, self.groups)):
            drawn[group] = self._of_group(places, padding, bits)
        return drawn

    def _of_group(self, places: IndexArray, padding: int, bits: Bits) -> tuple[float, float, float]:
        last, level = self.grid.size - 1, self.level
        found = stretches(places, lower=0, upper=last, level=level)
        place = choose(found, 1 / (self.scale * level.denominator), bits)
        rate = 1 / (self.scale * _END_SCALE * level.denominator)
        low = _choose_end(places, place, level, padding=padding, rate=rate, bits=bits)
        mirrored = last - places[::-1]
        high = last - _choose_end(
            mirrored, last - place, 1 - level, padding=padding, rate=rate, bits=bits
        )
        return self.grid.value(place), self.grid.value(low), self.grid.value(high)


def _choose_end(
    places: IndexArray, start: int, level: Fraction, *, padding: int, rate: Fraction, bits: Bits
) -> int:
    """The place of the lower end, at most ``start``, for sorted places."""
    # 1. cells that double, and the number of rows below each and up to it
    sizes = 1 << np.arange(start.bit_length(), dtype=np.int64)  # of the cells below the start
    lowest = np.maximum(np.concatenate([[start], start + 1 - 2 * sizes]), 0)
    below = np.searchsorted(places, lowest)
    upto = np.concatenate([[places.size], below[:-1]])
    # 2. misses of the level, with the padding in the last cell
    target = level.numerator * places.size
    least = level.denominator * (below + np.where(lowest > 0, padding, 0)) - target
    most = level.denominator * (upto + padding) - target
    misses = np.maximum(np.maximum(least, -most), 0)
    # 3. a cell; the last one counts as if the grid did not end within it
    return int(lowest[choose_piece(np.concatenate([[1], sizes]), -misses, rate, bits)])


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
