"""A median with noise as large as this very data asks for: smooth sensitivity."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from discreet import accounting, checks
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.exact import Number, ball, precision, shown, upper_fraction
from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.columns import column_of, part_on
from discreet.mechanisms.quantiles.column import a_grid
from discreet.mechanisms.rows import Grid, Places, Rows
from discreet.noise import Bits, DiscreteLaplaceLaw
from discreet.noise.quantiles import EXPONENTIAL
from discreet.noise.stretched import Signed, Stretch

_BITS = 128
_UNIT = 1 << 8
_MOST_PATIENCE = 10**4  # the ladder of bounds has some tens of steps for each
_ALL = 1 << 40  # more rows than any table has


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SmoothMedian:
    """Adds discrete Laplace noise to the median (the lower one of two), of the scale 2 s / epsilon
    with s a smooth bound on how far the median can move in data like these.

    Guarantee: (epsilon, delta)-DP if a unit changes at most ``moved`` rows, one that is replaced
    counting twice. Proof, with m = max(1, ln(2 / delta)) * 2 / epsilon rounded up:

    1. After k such changes the median of n rows lies between those of rank (n - k moved) / 2 and
       (n + k moved) / 2, rounded up (ends of the grid where there is none). So they are B(k) apart
       at most if B(k) is taken for k + 1 changes, and B(k) of a neighbour is at most B(k + 1).
    2. s is one of the numbers s(0), s(1), ... that are fixed beforehand, each at most 1 + 1/m
       times the one before it: the one of the least number j such that s(j + k) >= B(k) for all k.
       For a neighbour j is at most one less or more, and both medians lie within both their s.
    3. If the neighbour's s is the same or the next, the chances of each outcome differ by at most
       (1 + 1/m) e^(epsilon / 2), and m >= 2 / epsilon. If it is the one before, they differ by at
       most e^(epsilon / 2) times e^(|noise| (1/m) / scale), which is e^epsilon at most unless
       |noise| > scale * m epsilon / 2: that has a probability below 2 e^(-m epsilon / 2), at most
       delta.

    All of it is computed in whole numbers. How long a draw takes may depend a little on the scale,
    which is private; that is not covered. There is no forecast of the error: it depends on how
    densely values lie about the median. `Quantile` has one, costs no delta and is mostly nearer.

    >>> from discreet.unit import Unit
    >>> ages = Bounded.rows(
    ...     lambda: np.arange(90), columns={"age": Grid(0, 120)}, unit=Unit.ROW, name="ages"
    ... )
    >>> SmoothMedian.for_epsilon(1, 1e-6, ages).privacy_loss(ages)
    accounting.Approximate(epsilon=1, delta=1e-06)

    Nissim, Raskhodnikova and Smith (2007), Smooth sensitivity and sampling in private data
    analysis, whose real noise and real bound become whole numbers here.
    """

    epsilon: Fraction
    delta: Fraction
    grid: Grid
    moved: int

    def __init__(self, *, epsilon: Number, delta: Number, grid: Grid, moved: int = 1) -> None:
        """Keep all exactly."""
        object.__setattr__(self, "epsilon", checks.positive(epsilon=epsilon))
        object.__setattr__(self, "delta", checks.probability(delta=delta))
        object.__setattr__(self, "grid", a_grid(grid))
        object.__setattr__(self, "moved", checks.positive_count(moved=moved))
        if self._patience > _MOST_PATIENCE:
            raise InvalidArgument(
                f"epsilon = {epsilon}: this median is of no use there; take Quantile"
            )

    @staticmethod
    def for_epsilon(epsilon: Number, delta: Number, bounded: Bounded[Rows]) -> "SmoothMedian":
        """The mechanism whose release of this computation costs exactly that."""
        part, grid = column_of(bounded)
        return SmoothMedian(epsilon=epsilon, delta=delta, grid=grid, moved=part.sensitivity.l1)

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """One `accounting.Approximate` term; raises if a unit changes more rows than ``moved``."""
        changed = part_on(bounded, self.grid).sensitivity.l1
        if changed > self.moved:
            raise InvalidArgument(
                f"moved = {self.moved}: a unit of {bounded.name!r} changes {changed} rows"
            )
        return PrivacyLoss.of(accounting.Approximate(self.epsilon, self.delta), unit=bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> float:
        """One of the grid's values; noise that leads off the grid ends at its end."""
        rows, last = np.sort(value.column()), self.grid.size - 1
        median = _ranked(rows, np.array([-(-rows.size // 2)]), last)
        noise = _Unremembered(DiscreteLaplaceLaw(self._scale(rows))).draw(bits)
        return self.grid.value(min(max(int(median[0]) + noise, 0), last))

    def _scale(self, rows: Places) -> Fraction:
        """The noise's scale, 2 s / epsilon, for these sorted rows."""
        bounds = self._bounds()
        far = min(self.moved, _ALL) * np.arange(1, len(bounds) + 1)
        last = self.grid.size - 1
        high = _ranked(rows, -((-rows.size - far) // 2), last)
        low = _ranked(rows, -((far - rows.size) // 2), last)
        reached = np.searchsorted(np.array(bounds), (high - low) * _UNIT)
        steps = max(0, int((reached - np.arange(len(bounds))).max()))
        return Fraction(2 * bounds[steps], _UNIT) / self.epsilon

    def _bounds(self) -> list[int]:
        """s(0), s(1), ... up to the grid's width, in parts of a unit."""
        growth, width = self._patience, (self.grid.size - 1) * _UNIT
        bounds = [max(_UNIT, growth)]
        while bounds[-1] < width:
            bounds.append(bounds[-1] + bounds[-1] // growth)
        return bounds

    @property
    def _patience(self) -> int:
        """m."""
        with precision(_BITS):
            surprise = upper_fraction((2 / ball(self.delta)).log())
        return math.ceil(max(Fraction(1), surprise) * 2 / self.epsilon)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        facts = f"epsilon={shown(self.epsilon)}, delta={shown(self.delta)}"
        return f"SmoothMedian({facts}, grid={self.grid!r}, moved={self.moved})"


@dataclass(frozen=True, slots=True)
class _Unremembered(Signed):
    """A law whose scale is private, and stays out of the table of laws in use: by balls alone."""

    law: DiscreteLaplaceLaw

    def inverse(self, uniform: arb) -> arb:
        """The law's own."""
        return self.law.inverse(uniform)

    def stretch(self) -> Stretch:
        """One that decides nothing."""
        return Stretch(EXPONENTIAL, math.inf)


def _ranked(rows: Places, ranks: Any, last: int) -> Places:  # Any: whole numbers of any size
    """The places of these ranks, counted from 1; the grid's ends where there is none."""
    padded = np.concatenate(([0], rows, [last]))
    return np.asarray(padded[np.clip(ranks, 0, rows.size + 1).astype(np.int64)])
