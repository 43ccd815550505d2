"""The base of mechanisms for one quantile of a column."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Annotated, Self

import numpy as np

from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.quantiles._column import GridField, Level
from discreet.mechanisms.quantiles._ranks import Score, Stretches, a_score, stretches

MEDIAN = Fraction(1, 2)


@frozen
class OneQuantile(ABC):
    """A value of the column's grid, more likely if it misses the level by fewer rows. Its pure
    epsilon is how far a unit can move misses apart, in rows, over the scale."""

    level: Level = field(default=MEDIAN, named=False)
    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField
    score: Annotated[Score, a_score] = field(default=Score.INTERVAL, brief=True)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        bounded: Bounded[Rows],
        *,
        level: Number = MEDIAN,
        score: Score = Score.INTERVAL,
    ) -> Self:
        """The mechanism whose release of this computation costs exactly epsilon."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: cls(level, scale=scale, grid=grid, score=score), epsilon, bounded
        )

    @abstractmethod
    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """The price of a value for this computation."""

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
