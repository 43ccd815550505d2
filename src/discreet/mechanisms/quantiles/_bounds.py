"""Approximate bounds: between which powers of two a column's values lie."""

from dataclasses import KW_ONLY
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet import _checks, accounting
from discreet._arrays import IndexArray
from discreet._exact import Number
from discreet._fields import Positive, Probability, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._additive import with_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of, part_on
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import GridField
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.thresholds._keys import (
    check_failure_probability,
    failure_probability,
    least_missing,
    loss_chance,
)
from discreet.noise import Bits, DiscreteLaplaceLaw

RARELY = Fraction(1, 1000)

Ends = tuple[float, float]


@frozen
class ApproximateBounds:
    """Releases the least and the largest value of the bins that seem to hold rows, or `None` if no
    bin does. `None` means that there are too few rows for this epsilon.

    The column's grid may be very wide. The bins double in width away from 0: one bin for 0, and on
    either side bins of 1 step, of 2 to 3 steps, of 4 to 7 steps, and so on. If 0 is not on the
    grid, they start from the end nearest to 0. A bin counts if its number of rows, with discrete
    Laplace noise of this scale, reaches the `threshold`. This is the smallest number that noise
    alone reaches in any bin with probability at most ``false_bin``.

    Guarantee: epsilon-DP with epsilon = L1 sensitivity of the histogram / scale. A later release on
    the narrower grid has its own privacy loss.

    >>> from discreet import Unit
    >>> incomes = Bounded.rows(
    ...     lambda: np.linspace(900, 3000, 500), columns={"income": Grid(-(2**40), 2**40)},
    ...     unit=Unit.ROW, name="incomes",
    ... )
    >>> search = ApproximateBounds.for_epsilon(0.5, incomes)
    >>> search.threshold, search.error(0.95), search.privacy_loss(incomes).epsilon()
    (22, 27, 0.5)
    >>> search.narrowed((512.0, 4095.0))
    Grid(512, 4095)

    As described by Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo and Gipson (2020),
    Differentially private SQL with bounded user contribution.
    """

    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField
    false_bin: Probability = field(default=RARELY)

    def __post_init__(self) -> None:
        check_failure_probability(false_bin=self.false_bin)

    @staticmethod
    def for_epsilon(
        epsilon: Number, bounded: Bounded[Rows], *, false_bin: Number = RARELY
    ) -> "ApproximateBounds":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: ApproximateBounds(scale=scale, grid=grid, false_bin=false_bin),
            epsilon,
            bounded,
        )

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, grid: Grid, false_bin: Number = RARELY
    ) -> "ApproximateBounds":
        """The mechanism with the most noise whose error at ``confidence`` is at most
        ``error`` rows."""
        if _checks.not_negative(error=error) < 1:
            raise InvalidArgument(f"error = {error}: give 1 row or more")
        return at_error(
            lambda scale: ApproximateBounds(scale=scale, grid=grid, false_bin=false_bin),
            error,
            confidence,
        )

    @property
    def threshold(self) -> int:
        """The noisy number of rows at which a bin counts."""
        return _threshold(self.law, self._bins.size, self.false_bin)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.DiscreteLaplace` term of this scale and the histogram's sensitivity."""
        part = part_on(bounded, self.grid)
        term = accounting.DiscreteLaplace(self.scale, part.sensitivity.l1)
        return PrivacyLoss.of(term, unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> Ends | None:
        """The two ends, in the column's unit, both on its grid."""
        noisy = with_noise(self.counts(value), self.law, bits)
        counting = np.flatnonzero(noisy >= self.threshold)
        return self.ends(int(counting[0]), int(counting[-1])) if counting.size else None

    def counts(self, value: Rows) -> IntegerArray:
        """The number of rows in each bin, without noise."""
        bins, steps = self._bins, value.column() - self._origin
        size = np.frexp(np.abs(steps).astype(np.float64))[1]  # of the number in bits: below 2^53
        counts = np.bincount(np.sign(steps) * size - bins[0], minlength=bins.size)
        return counts.astype(np.int64)

    def ends(self, low: int, high: int) -> Ends:
        """The outer ends of two bins, by their places."""
        return self._end(-int(self._bins[low]), -1), self._end(int(self._bins[high]), 1)

    @property
    def zero(self) -> int:
        """The place of the bin of 0, or of the number nearest to it."""
        return int(-self._bins[0])

    def narrowed(self, found: Ends | None) -> Grid:
        """The grid between these ends, with the same step; raises if there are none."""
        if found is None:
            raise InvalidArgument("found = None: no bin held enough rows; spend more on the search")
        lower, upper = (self.grid.exact(int(p)) for p in self.grid.places(np.array(found)))
        return Grid(lower, upper, self.grid.step)

    def error(self, confidence: Number) -> int:
        """The smallest number of rows for which a bin counts at this confidence (at least 1/2).
        A bin beyond the released ends may hold fewer rows."""
        sure = max(_checks.probability(confidence=confidence), Fraction(1, 2))
        return smallest_gap(loss_chance(self.law, self.threshold), sure) + 1

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on each bin's count."""
        return DiscreteLaplaceLaw(self.scale)

    @property
    def _origin(self) -> int:
        """The place of 0, or the place nearest to it."""
        return min(max(round(-self.grid.lower / self.grid.step), 0), self.grid.size - 1)

    @property
    def _bins(self) -> IndexArray:
        """The bins: bit lengths of the distance from 0 in steps, with a sign."""
        below, above = self._origin, self.grid.size - 1 - self._origin
        return np.arange(-below.bit_length(), above.bit_length() + 1)

    def _end(self, size: int, sign: int) -> float:
        """The end of a bin that is farther from the origin in this direction."""
        steps = (1 << size) - 1 if size >= 0 else -(1 << -size - 1)
        place = min(max(self._origin + sign * steps, 0), self.grid.size - 1)
        return self.grid.value(place)


@lru_cache(maxsize=64)  # each draw compares with it
def _threshold(law: DiscreteLaplaceLaw, bins: int, false_bin: Fraction) -> int:
    """The smallest number that noise reaches in any of these empty bins with this probability or
    less."""
    return least_missing(lambda count: failure_probability(law, count, bins), false_bin=false_bin)
