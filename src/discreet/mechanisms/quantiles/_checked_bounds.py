"""Bounds that were checked: they hold a stated share of a column's values, or there are none.

noisy bins  ->  the bins that hold rows  ->  three ranges, each in the next
noisy counts of what each range adds  ->  the first range that surely holds enough
"""

import math
from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np
import scipy

from discreet import accounting
from discreet._exact import Number, shown
from discreet._fields import Positive, Probability, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_epsilon
from discreet.mechanisms._additive import with_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._columns import column_of, part_on
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._rows import Rows
from discreet.mechanisms.quantiles._bounds import RARELY, ApproximateBounds, Ends
from discreet.mechanisms.quantiles._column import GridField
from discreet.noise import Bits

_RANGES = 3
_NEIGHBOUR = 2  # scales of noise at which a bin beside one that counts does, too
_BINS_NEAR_0 = 2  # bins from 0 up to which a range that leaves 0 out may be much narrower
_LEAST_SHARE, _LEAST_RISK = Fraction(51, 100), Fraction(1, 10**200)
_FARTHEST = 700.0  # where a tail is below 1e-297
_SAFE = 1 + 1e-9


@frozen
class CheckedBounds:
    """Releases two ends between which at least this ``share`` of the values lies, or `None`.

    At this ``confidence`` the ends hold the share. `None` means that no range could be shown to
    hold it, because there are too few rows for this epsilon.

    The bins are those of `ApproximateBounds`. Noise of this scale is drawn twice. First the noisy
    bins propose three ranges, each inside of the next: from the least to the largest bin that
    counts; the same up to 0, or with a further bin on each side; with one more bin. Then the rows
    that each range adds, and those outside of all, are counted with fresh noise. The first range
    that passes is released.

    Guarantee: epsilon-DP with epsilon = 2 * L1 sensitivity of the histogram / scale. The ranges are
    a function of the first noisy histogram. The second is a histogram, too, for any ranges.

    Proof of the confidence: see docs/proofs/mechanisms.md, Checked bounds.

    >>> from discreet import Unit
    >>> from discreet.mechanisms import Grid
    >>> incomes = Bounded.rows(
    ...     lambda: np.linspace(900, 3000, 500), columns={"income": Grid(-(2**40), 2**40)},
    ...     unit=Unit.ROW, name="incomes",
    ... )
    >>> search = CheckedBounds.for_epsilon(1, incomes)
    >>> search.privacy_loss(incomes).epsilon(), search.enough_rows
    (1.0, 128)
    """

    _: KW_ONLY
    scale: Positive  # in rows
    grid: GridField
    share: Probability = field(default=Fraction(9, 10))
    confidence: Probability = field(default=Fraction(19, 20))
    false_bin: Probability = field(default=RARELY)

    def __post_init__(self) -> None:
        if self.share < _LEAST_SHARE:
            raise InvalidArgument(f"share = {shown(self.share)}: give 0.51 or more")
        if 1 - self.confidence < _LEAST_RISK:
            raise InvalidArgument("confidence: give at most 1 - 1e-200")
        self._search  # noqa: B018  # it checks the probability

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[Rows],
        *,
        share: Number = Fraction(9, 10),
        confidence: Number = Fraction(19, 20),
        false_bin: Number = RARELY,
    ) -> "CheckedBounds":
        """The mechanism whose release of ``bounded`` costs exactly ``epsilon``."""
        _, grid = column_of(bounded)
        return at_epsilon(
            lambda scale: CheckedBounds(
                scale=scale, grid=grid, share=share, confidence=confidence, false_bin=false_bin
            ),
            epsilon,
            bounded,
        )

    def privacy_loss(self, bounded: Bounded[Rows]) -> PrivacyLoss:
        """Two `accounting.DiscreteLaplace` terms of this scale and the histogram's sensitivity."""
        part = part_on(bounded, self.grid)
        term = accounting.DiscreteLaplace(self.scale, part.sensitivity.l1)
        return PrivacyLoss(((term, 2),), bounded.unit)

    def sample(self, value: Rows, bits: Bits) -> Ends | None:
        """The two ends, in the column's unit, both on its grid."""
        search = self._search
        counts = search.counts(value)
        # 1. propose ranges of bins
        noisy = with_noise(counts, search.law, bits)
        ranges = self._ranges(noisy)
        # 2. count what each adds, and what is outside of all
        held = [0, *(int(counts[low : high + 1].sum()) for low, high in ranges), int(counts.sum())]
        added = with_noise(np.diff(np.array(held, dtype=np.int64)), search.law, bits)
        if noisy.max() < search.threshold:
            return None
        for number, (low, high) in enumerate(ranges):
            if self._is_enough(added, number):
                return search.ends(low, high)
        return None

    @property
    def enough_rows(self) -> int:
        """The number of rows in a single bin for which bounds are released with a probability of
        about a half or more."""
        return max(self._search.threshold, math.ceil(self._reach(0) / (1 - self.share)))

    @property
    def _search(self) -> ApproximateBounds:
        return ApproximateBounds(scale=self.scale, grid=self.grid, false_bin=self.false_bin)

    def _ranges(self, noisy: IntegerArray) -> list[tuple[int, int]]:
        """Three ranges of bins, each inside of the next."""
        zero, last = self._search.zero, noisy.size - 1
        # 1. the bins that count, and neighbours that hold some rows as well
        counting = np.flatnonzero(noisy >= self._search.threshold)
        low, high = (int(counting[0]), int(counting[-1])) if counting.size else (zero, zero)
        some = noisy >= math.ceil(_NEIGHBOUR * self.scale)
        while low > 0 and some[low - 1]:
            low -= 1
        while high < last and some[high + 1]:
            high += 1
        # 2. up to 0 where that makes the range a seventh wider at most, or wider by one step
        if high - low >= _BINS_NEAR_0 or 1 in (abs(low - zero), abs(high - zero)):
            low, high = min(low, zero), max(high, zero)
        # 3. two wider ranges: up to 0, or by a bin on each side that has other numbers than 0
        ranges = [(low, high)]
        while len(ranges) < _RANGES:
            if not low <= zero <= high:
                low, high = min(low, zero), max(high, zero)
            elif low == high:
                low, high = max(low - 1, 0), min(high + 1, last)
            else:
                low, high = max(low - (low < zero), 0), min(high + (high > zero), last)
            ranges.append((low, high))
        return ranges

    def _is_enough(self, added: IntegerArray, number: int) -> bool:
        """Whether the range of this number surely holds the share."""
        inside, outside = int(added[: number + 1].sum()), int(added[number + 1 :].sum())
        return (1 - self.share) * inside - self.share * outside >= self._reach(number)

    def _reach(self, number: int) -> Fraction:
        """A number that ``(1 - share) * noise inside - share * noise outside`` exceeds with at most
        this range's part of the risk."""
        inside, outside = number + 1, _RANGES - number
        ratio = float((1 - self.share) / self.share)
        risk = float(1 - self.confidence) / _RANGES * (1 - ratio**2) ** inside / _SAFE
        reached = scipy.optimize.brentq(lambda at: _tail(at, outside) - risk, 0.0, _FARTHEST)
        rounding = (1 - self.share) * inside + self.share * outside
        return self.share * self.scale * Fraction(reached * _SAFE) + rounding


def _tail(at: float, count: int) -> float:
    """The probability that the sum of one, two or three Laplace variables of scale 1 exceeds a
    number from 0 on."""
    factor = {1: 1 / 2, 2: (2 + at) / 4, 3: (8 + 5 * at + at**2) / 16}[count]
    return factor * math.exp(-at)
