"""A quantile of a column, by permute-and-flip over the gaps between its values."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet import _checks, accounting
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import checked_grid, width
from discreet.mechanisms.quantiles._one_quantile import MEDIAN, OneQuantile
from discreet.mechanisms.quantiles._ranks import Score
from discreet.mechanisms.selection._gaps import flip_chance
from discreet.noise import Bits, UniformLaw
from discreet.noise._flipped_pieces import flip_piece


class PermuteAndFlipQuantile(OneQuantile):
    """Visits the values of the column's grid in random order, and takes each with probability
    exp(-rows by which it misses the level / scale); the first value taken is the answer.

    `Quantile` defines the miss of a value. At the same pure epsilon, the answers of `Quantile` are
    never closer on average. Use this mechanism for one release under a pure epsilon. For many
    composed releases, or with a delta, `Quantile` costs less, by its `BoundedRange`.

    Guarantee: an `accounting.ReportNoisyMax`, epsilon-DP with epsilon 2 max(level, 1 - level) /
    scale for each added or removed row of a unit, and 2 / scale for each replaced row. Empty tables
    and tables with a single value are covered. The running time, which reveals the number of
    different values, is not covered.

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
    selection. `discreet.mechanisms.quantiles._ranks` proves how far a row moves misses apart;
    `discreet.noise._flipped_pieces` proves that draws are exact.
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
        """The cheapest mechanism whose error at ``confidence`` is at most ``error`` rows."""
        if _checks.probability(confidence=confidence) <= Fraction(1, checked_grid(grid).size):
            raise InvalidArgument(f"confidence = {confidence}: any scale has it on {grid!r}")
        return at_error(
            lambda scale: PermuteAndFlipQuantile(level, scale=scale, grid=grid, score=score),
            error,
            confidence,
        )

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.ReportNoisyMax` term, for the rows of a unit and its relation.

        A shift of all misses changes no choice. So two misses that move apart by a distance count
        as two moves, each by half of this distance.
        """
        part_on(bounded, self.grid)
        term = accounting.ReportNoisyMax(self.scale, width(bounded, self.level) / 2)
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """One of the grid's values."""
        found = self._stretches(value)
        piece = flip_piece(found.lengths, -found.misses, self._rate, bits)
        inside = UniformLaw(int(found.lengths[piece])).draw(bits)
        return self.grid.value(int(found.starts[piece]) + inside)

    def _chance_to_miss(self) -> Callable[[int], arb]:
        return flip_chance(self._rate, self.grid.size - 1)
