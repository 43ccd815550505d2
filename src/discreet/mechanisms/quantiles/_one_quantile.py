"""One quantile of a column, and how much a scale makes of rows."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from discreet import _checks
from discreet._exact import Number, shown
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import a_grid, a_level, width
from discreet.mechanisms.quantiles._ranks import Score, Stretches, a_score, stretches

MEDIAN = Fraction(1, 2)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class OneQuantile:
    """A value of the column's grid, more likely the fewer rows it misses the level by. Its pure
    epsilon is how far apart a unit can move misses, in rows, over the scale."""

    level: Fraction
    scale: Fraction
    grid: Grid
    score: Score

    def __init__(
        self,
        level: Number = MEDIAN,
        *,
        scale: Number,
        grid: Grid,
        score: Score = Score.INTERVAL,
    ) -> None:
        """Keep all exactly; the scale is in rows."""
        object.__setattr__(self, "level", a_level(level))
        object.__setattr__(self, "scale", _checks.positive(scale=scale))
        object.__setattr__(self, "grid", a_grid(grid))
        object.__setattr__(self, "score", a_score(score))

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
        scale = width(bounded, a_level(level)) / _checks.positive(epsilon=epsilon)
        return cls(level, scale=scale, grid=column_of(bounded)[1], score=score)

    def _stretches(self, value: Rows) -> Stretches:
        """The grid's values by what they miss."""
        rows, last = np.sort(value.column()), self.grid.size - 1
        return stretches(rows, lower=0, upper=last, level=self.level, score=self.score)

    @property
    def _parts(self) -> int:
        """In which part of a row misses are counted."""
        return self.score.parts(self.level)

    @property
    def _rate(self) -> Fraction:
        """The weight of one part of a row."""
        return 1 / (self.scale * self._parts)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        inside = f"{shown(self.level)}, scale={shown(self.scale)}, grid={self.grid!r}"
        score = "" if self.score is Score.INTERVAL else f", score={self.score}"
        return f"{type(self).__name__}({inside}{score})"
