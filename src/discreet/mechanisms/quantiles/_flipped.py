"""A quantile of a column, by permute-and-flip over the gaps between its values."""

import math
from fractions import Fraction

from discreet import _checks, accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import a_grid, width
from discreet.mechanisms.quantiles._one_quantile import MEDIAN, OneQuantile
from discreet.mechanisms.quantiles._ranks import Score
from discreet.mechanisms.selection._flipped_pieces import flip_piece
from discreet.mechanisms.selection._gaps import flip_chance, smallest_gap
from discreet.noise import Bits, UniformLaw


class PermuteAndFlipQuantile(OneQuantile):
    """Visits the values of the column's grid in random order, and takes each with probability
    exp(-rows by which it misses the level / scale); the first one taken is the answer.

    What a value misses is said at `Quantile`, whose answers are never closer on average at the same
    pure epsilon. Take this for one release under a pure epsilon. Of many releases that are
    composed, or priced by a delta, those of `Quantile` cost less, by its `BoundedRange`.

    Guarantee: epsilon-DP with epsilon = 2 max(level, 1 - level) / scale for each row of a unit that
    comes or goes, 2 / scale for each that is replaced: a `accounting.ReportNoisyMax`. An empty
    table and one with a single value are like any other. The running time, which shows how many
    different values there are, is not covered.

    >>> import numpy as np
    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.array([31, 44, 58]), columns={"age": Grid(0, 120)},
    ...     unit=Unit.ROW, name="ages",
    ... )
    >>> median = PermuteAndFlipQuantile.for_epsilon(0.5, ages)
    >>> median
    PermuteAndFlipQuantile(0.5, scale=2, grid=Grid(0, 120))
    >>> median.error(0.95), median.privacy_loss(ages).epsilon()
    (14, 0.5)

    McKenna and Sheldon (2020), Permute-and-flip: a new mechanism for differentially private
    selection; `discreet.mechanisms.quantiles._ranks` proves how far apart a row moves misses, and
    `discreet.mechanisms.selection._flipped_pieces` that draws are exact.
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
    ) -> "PermuteAndFlipQuantile":
        """The mechanism that costs least of those whose error at this confidence is at most this
        many rows."""
        if _checks.probability(confidence=confidence) <= Fraction(1, a_grid(grid).size):
            raise InvalidArgument(f"confidence = {confidence}: any scale has it on {grid!r}")
        return at_error(
            lambda scale: PermuteAndFlipQuantile(level, scale=scale, grid=grid, score=score),
            error,
            confidence,
        )

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.ReportNoisyMax` term, by the rows of a unit and how units change. Taking
        the same number off all misses changes no choice, so that misses which move apart by so
        many rows may as well move by half of that each."""
        part_on(bounded, self.grid)
        term = accounting.ReportNoisyMax(self.scale, width(bounded, self.level) / 2)
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """One of the grid's values."""
        found = self._stretches(value)
        piece = flip_piece(found.lengths, -found.misses, self._rate, bits)
        inside = UniformLaw(int(found.lengths[piece])).draw(bits)
        return self.grid.value(int(found.starts[piece]) + inside)

    def error(self, confidence: Number) -> int:
        """So many rows at most by which the value misses the level at this confidence, beyond what
        the best value of the grid misses: the least whole number that holds for all tables; with
        `Score.MID_RANK` and another level than 1/2, perhaps more than the least.

        With the interval score the best value misses nothing. With mid-ranks it misses at most half
        of the rows that are equal to the quantile. No value misses more by intervals.
        """
        chance = flip_chance(self._rate, self.grid.size - 1)
        return math.ceil(Fraction(smallest_gap(chance, confidence), self._parts))
