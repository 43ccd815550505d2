"""The densest interval: a choice among all intervals of one width on a grid."""

from dataclasses import KW_ONLY
from typing import Annotated

import numpy as np

from discreet._arrays import IndexArray
from discreet._exact import Number, shown
from discreet._fields import Positive, field, frozen
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._bounded import Bounded, tables_of
from discreet.mechanisms._columns import column_of, part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.selection._gaps import exponential_chance, smallest_gap
from discreet.noise import Bits
from discreet.noise._pieces import choose_place


def _a_grid_of_two(grid: object) -> Grid:
    if isinstance(grid, Grid) and grid.size >= 2:
        return grid
    raise InvalidArgument(f"grid = {grid!r}: give a Grid of at least two values")


@frozen
class DensestInterval:
    """Chooses an interval of this width that begins on the grid, with probability proportional to
    exp(rate * the number of rows in it); its lower end is the value.

    The exponential mechanism over the whole grid of a column, up to 2^52 places: the score is
    constant on pieces, of which there are about twice as many as rows. An interval that begins at
    x holds the rows from x up to, but not including, x + width.

    Guarantee: the privacy loss lies in an interval of length rate * D, so epsilon is at most this.
    D is the largest number of rows of a unit, or twice this number for a replaced unit: new rows
    only raise scores. The probabilities are exact. The running time, which reveals the number of
    rows, is not covered. McSherry and Talwar (2007).

    >>> from discreet import Unit
    >>> wages = Grid(0, 100, step=0.01)
    >>> rows = Bounded.rows(
    ...     lambda: np.array([5.1, 5.2, 5.3, 90]), columns={"wage": wages}, unit=Unit.ROW,
    ...     name="wages",
    ... )
    >>> mechanism = DensestInterval.for_epsilon(1, rows, width=0.5)
    >>> mechanism, mechanism.error(0.95)
    (DensestInterval(Grid(0, 100, step=0.01), width=0.5, rate=1), 12)
    """

    grid: Annotated[Grid, _a_grid_of_two] = field(named=False)
    _: KW_ONLY
    width: Positive  # a whole number of steps
    rate: Positive

    def __post_init__(self) -> None:
        steps = self.width / self.grid.step
        if steps.denominator != 1 or steps >= self.grid.size:
            raise InvalidArgument(
                f"width = {shown(self.width)}: give a whole number of the grid's steps of "
                f"{shown(self.grid.step)}, fewer than it has values"
            )

    @staticmethod
    def for_epsilon(epsilon: Number, bounded: Bounded[Rows], *, width: Number) -> "DensestInterval":
        """The mechanism for this computation's grid whose choice costs exactly epsilon."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: DensestInterval(grid, width=width, rate=1 / scale), epsilon, bounded
        )

    @staticmethod
    def for_error(
        error: Number, confidence: Number, grid: Grid, *, width: Number
    ) -> "DensestInterval":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        return at_error(
            lambda scale: DensestInterval(grid, width=width, rate=1 / scale), error, confidence
        )

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.BoundedRange`; raises unless the rows have one column on this grid."""
        rows = part_on(bounded, self.grid).per_unit
        apart = BoundedRange(self.rate * rows * tables_of(bounded.unit))
        return PrivacyLoss.of(apart, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """The lower end of the chosen interval, in the units of the column."""
        starts, scores = self._pieces(value.column())
        lengths = np.diff(starts, append=self.grid.size)
        place = choose_place(starts, lengths, scores, rate=self.rate, bits=bits)
        return self.grid.value(place)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with at most q rows fewer in the chosen interval than in the
        densest one at this confidence, whatever the rows."""
        return smallest_gap(exponential_chance(self.rate, self.grid.size - 1), confidence)

    def _pieces(self, places: IndexArray) -> tuple[IndexArray, IndexArray]:
        """The places where the score changes, from 0 on, and the scores there. A row counts in the
        intervals that begin at it or less than a width below it."""
        first = np.maximum(places - (int(self.width / self.grid.step) - 1), 0)
        changes = np.concatenate([[0], first, places + 1])
        by = np.concatenate([[0], np.ones_like(first), np.full_like(places, -1)])
        starts, each = np.unique(changes, return_inverse=True)
        scores = np.zeros(starts.size, np.int64)
        np.add.at(scores, each, by)
        inside = starts < self.grid.size
        return starts[inside], np.cumsum(scores)[inside]
