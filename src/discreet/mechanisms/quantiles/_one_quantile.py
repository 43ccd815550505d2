"""The base of mechanisms for one quantile of a column."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
from flint import arb

from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.quantiles._column import GridField, Level
from discreet.mechanisms.quantiles._ranks import Score, Stretches, checked_score, stretches
from discreet.mechanisms.selection._gaps import smallest_gap

MEDIAN = Fraction(1, 2)


@frozen
class OneQuantile(ABC):
    """Draws a value of the column's grid. Values that miss the level by fewer rows are more likely.
    Pure epsilon is the number of rows by which a unit can move two misses apart, over the scale."""

    level: Level = field(default=MEDIAN, named=False)
    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField
    score: Annotated[Score, checked_score] = field(default=Score.INTERVAL, brief=True)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        bounded: Bounded[Rows],
        *,
        level: Number = MEDIAN,
        score: Score = Score.INTERVAL,
    ) -> Self:
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: cls(level, scale=scale, grid=grid, score=score), epsilon, bounded
        )

    @abstractmethod
    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """The privacy loss of a value for this computation."""

    @abstractmethod
    def _chance_to_miss(self) -> Callable[[int], arb]:
        """The largest probability, over all rows, of a miss by this many units or more beyond the
        miss of the best value."""

    def error(self, confidence: Number) -> int:
        """The number of rows by which the value misses the level at this confidence, beyond the
        miss of the best value of the grid: the smallest whole number that holds for all tables.
        With `Score.MID_RANK` and a level other than 1/2 it may be larger.

        With the interval score the best value misses by 0. With mid-ranks it misses by at most half
        of the rows that equal the quantile. No value misses by more with the interval score.
        """
        return math.ceil(Fraction(smallest_gap(self._chance_to_miss(), confidence), self._parts))

    def _stretches(self, value: Rows) -> Stretches:
        """The grid's values in stretches of equal miss."""
        rows, last = np.sort(value.column()), self.grid.size - 1
        return stretches(rows, lower=0, upper=last, level=self.level, score=self.score)

    @property
    def _parts(self) -> int:
        """The number of units of a miss in one row."""
        return self.score.parts(self.level)

    @property
    def _rate(self) -> Fraction:
        """The rate for one unit of a miss."""
        return 1 / (self.scale * self._parts)
