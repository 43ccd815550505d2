"""A median with noise scaled to the smooth sensitivity of the data."""

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from discreet import _checks, accounting
from discreet._arrays import IndexArray
from discreet._bisection import edge
from discreet._exact import Number, ball, decimal_up, precision, shown, upper_fraction
from discreet._fields import Positive, PositiveCount, Probability, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of, part_on
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms.quantiles._column import GridField, checked_grid
from discreet.noise import Bits, DiscreteLaplaceLaw, half_width
from discreet.noise._affine_quantile import AffineQuantile, Signed
from discreet.noise._quantiles import EXPONENTIAL

_BITS = 128
_SUBSTEPS = 1 << 8  # s(0), s(1), ... are whole numbers of 1/256 of the grid's step
_MOST_M = 10**4  # s(0), s(1), ... are some tens of numbers for each 1 of m
_STRONGEST = 10**6  # the largest epsilon that the search tries
_CLOSE_DIGITS = 6
_DIGITS = 9
_MOST_ROWS = 1 << 40  # more rows than any table has


@frozen
class SmoothMedian:
    """Adds discrete Laplace noise to the median (the lower one of two), of the scale 2 s / epsilon
    with s a smooth bound on the local sensitivity of the median.

    Guarantee: (epsilon, delta)-DP if a unit changes at most ``moved`` rows; a replaced row counts
    twice. Proof, with m = max(1, ln(2 / delta)) * 2 / epsilon rounded up:

    1. After the changes of k units the median of n rows lies between the rows of rank
       (n - k moved) / 2 and (n + k moved) / 2, rounded up (the ends of the grid if there are none).
       Let B(k) be the distance of the two for k + 1 units. It bounds the distance of the medians,
       and B(k) of a neighbour is at most B(k + 1).
    2. s is one of the numbers s(0), s(1), ... that are fixed beforehand, each at most 1 + 1/m
       times the one before it: s(j) for the smallest j with s(j + k) >= B(k) for all k. The j of a
       neighbour differs by at most one, and the two medians are at most s apart, for both s.
    3. If the neighbour's s is the same or the next one, the probabilities of each outcome differ by
       a factor of at most (1 + 1/m) e^(epsilon / 2), and m >= 2 / epsilon. If it is the one before,
       the factor is at most e^(epsilon / 2) times e^(|noise| (1/m) / scale). This is at most
       e^epsilon unless |noise| > scale * m epsilon / 2, which has a probability below
       2 e^(-m epsilon / 2), at most delta.

    All of it is computed in integers. The time of a draw may depend a little on the scale, which is
    private; this is not covered. The error depends on the density of the values, an argument of
    `error`. `Quantile` has no such dependence and no delta, and its error is mostly smaller.

    >>> from discreet import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> print(SmoothMedian.for_epsilon(1, 1e-6, ages).privacy_loss(ages))
    accounting.Approximate(epsilon=1, delta=1e-06)

    Nissim, Raskhodnikova and Smith (2007), Smooth sensitivity and sampling in private data
    analysis, whose real noise and real bound become whole numbers here.
    """

    _: KW_ONLY
    epsilon: Positive
    delta: Probability
    grid: GridField
    moved: PositiveCount = 1

    def __post_init__(self) -> None:
        if self._m > _MOST_M:
            raise InvalidArgument(
                f"epsilon = {shown(self.epsilon)}: too small for this median; take Quantile, or "
                "give a larger epsilon"
            )

    @staticmethod
    def for_epsilon(epsilon: Number, delta: Number, bounded: Bounded[Rows]) -> "SmoothMedian":
        """The mechanism whose release of this computation costs exactly (epsilon, delta)."""
        part, grid = column_of(bounded)
        return SmoothMedian(epsilon=epsilon, delta=delta, grid=grid, moved=part.sensitivity.l1)

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        *,
        delta: Number,
        grid: Grid,
        apart: Number | None = None,
        moved: int = 1,
    ) -> "SmoothMedian":
        """The mechanism with the smallest epsilon, to some digits, whose `error` at this confidence
        is at most ``error``, for data with values at most ``apart`` from each other."""
        wanted = _checks.not_negative(error=error)
        if wanted >= checked_grid(grid).upper - grid.lower:
            raise InvalidArgument(
                f"error = {error}: every value of the grid is within it; give a smaller one"
            )

        def make(scale: Fraction) -> SmoothMedian:
            epsilon = decimal_up(1 / scale, _DIGITS)
            return SmoothMedian(epsilon=epsilon, delta=delta, grid=grid, moved=moved)

        def fits(scale: Fraction) -> bool:
            return make(scale).error(confidence, apart=apart) <= wanted

        low = Fraction(1, _STRONGEST)
        if not fits(low):
            raise InvalidArgument(
                f"error = {error}: epsilon {_STRONGEST} has a larger error; allow a larger one"
            )
        high = _MOST_M / (2 * _log_failure(_checks.probability(delta=delta)))
        return make(edge(fits, low, high, _CLOSE_DIGITS))

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.Approximate` term; raises if a unit changes more rows than ``moved``."""
        changed = part_on(bounded, self.grid).sensitivity.l1
        if changed > self.moved:
            raise InvalidArgument(
                f"moved = {self.moved}: a unit of {bounded.name!r} changes {changed} rows"
            )
        return PrivacyLoss.of(accounting.Approximate(self.epsilon, self.delta), unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """One of the grid's values; noise beyond the grid becomes its end."""
        rows, last = np.sort(value.column()), self.grid.size - 1
        median = _ranked(rows, np.array([-(-rows.size // 2)]), last)
        noise = _UncachedLaw(DiscreteLaplaceLaw(self._scale(rows))).draw(bits)
        return self.grid.value(min(max(int(median[0]) + noise, 0), last))

    def error(self, confidence: Number, *, apart: Number | None = None) -> Fraction:
        """An upper bound, at this confidence, on the distance from the median, in units of values.

        It holds if neighbours among the sorted values are at most ``apart`` from each other, and
        the first and the last value from the grid's ends. It is exact for values that are exactly
        so far apart. Without ``apart`` it holds for any values.
        """
        last = self.grid.size - 1
        step = last if apart is None else int(_checks.not_negative(apart=apart) / self.grid.step)
        s = self._s()
        b = np.minimum(self._ranks(len(s)).astype(np.float64) * min(step, last), last)
        noise = half_width(
            DiscreteLaplaceLaw(self._scale_for(s, np.ceil(b).astype(np.int64))),
            _checks.probability(confidence=confidence),
        )
        return min(noise, last) * self.grid.step

    def _scale(self, rows: IndexArray) -> Fraction:
        """The noise's scale, 2 s / epsilon, for these sorted rows."""
        s, last = self._s(), self.grid.size - 1
        ranks = self._ranks(len(s))
        high = _ranked(rows, -((-rows.size - ranks) // 2), last)
        low = _ranked(rows, -((ranks - rows.size) // 2), last)
        return self._scale_for(s, high - low)

    def _ranks(self, count: int) -> IndexArray:
        """For B(0), B(1), ...: the differences of the two ranks."""
        return min(self.moved, _MOST_ROWS) * np.arange(1, count + 1)

    def _scale_for(self, s: list[int], b: IndexArray) -> Fraction:
        """The noise's scale for these B(0), B(1), ..."""
        first = np.searchsorted(np.array(s), b * _SUBSTEPS)
        j = max(0, int((first - np.arange(len(s))).max()))
        return Fraction(2 * s[j], _SUBSTEPS) / self.epsilon

    def _s(self) -> list[int]:
        """s(0), s(1), ... up to the grid's width, in substeps."""
        m, width = self._m, (self.grid.size - 1) * _SUBSTEPS
        s = [max(_SUBSTEPS, m)]
        while s[-1] < width:
            s.append(s[-1] + s[-1] // m)
        return s

    @property
    def _m(self) -> int:
        """The number m of the proof."""
        return math.ceil(_log_failure(self.delta) * 2 / self.epsilon)


@dataclass(frozen=True, slots=True)
class _UncachedLaw(Signed):
    """A law with a private scale. It draws by balls only, so no cache stores it."""

    law: DiscreteLaplaceLaw

    def inverse(self, uniform: arb) -> arb:
        """The quantile function of the law."""
        return self.law.inverse(uniform)

    def affine_quantile(self) -> AffineQuantile:
        """A quantile that decides nothing."""
        return AffineQuantile(EXPONENTIAL, math.inf)


def _log_failure(delta: Fraction) -> Fraction:
    """max(1, ln(2 / delta)), rounded up."""
    with precision(_BITS):
        return max(Fraction(1), upper_fraction((2 / ball(delta)).log()))


def _ranked(
    rows: IndexArray, ranks: Any, last: int
) -> IndexArray:  # Any: whole numbers of any size
    """The places of these ranks, counted from 1; ranks beyond the rows give the grid's ends."""
    padded = np.concatenate(([0], rows, [last]))
    return np.asarray(padded[np.clip(ranks, 0, rows.size + 1).astype(np.int64)])
