"""The miss of a place: its distance from a quantile, in rows; and the choice of a place by it.

Of n rows, L lie below a place and E at it. For the level q = a/b, the target rank is q n. There are
two ways to count the miss (`Score`):

- By the interval [L, L + E] of the place's ranks: the miss is the distance of q n from it. Times b,
  it is the integer max(0, b L - a n, a n - b (L + E)). For any rows some place has the miss 0: the
  place of the row of rank q n, rounded up. Without rows, every place has the miss 0.
- By the mid-rank L + E/2, which counts equal rows by halves: the miss is the distance of q n from
  it. Times 2 b, it is the integer |2 b L + b E - 2 a n|, which is even if b is even.

The number of rows affects the law only through the misses. For both kinds of misses, an added or
removed row moves each miss by at most max(q, 1 - q), and a replaced row by at most 1
(`docs/proofs/mechanisms.md`). So the changes of all misses lie in an interval of twice that length.
The changes of several rows add up. Hence the exponential mechanism with the weights
exp(-miss / scale) has privacy losses in an interval of length 2 max(q, 1 - q) / scale for each
added or removed row of a unit, and 2 / scale for each replaced row. The normalizing constant shifts
the interval and does not lengthen it (Dong, Durfee and Rogers 2020).
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from discreet._arrays import IndexArray
from discreet._exact import ball, precision, upper_fraction
from discreet.errors import InvalidArgument
from discreet.noise import Bits
from discreet.noise._pieces import choose_place

_BITS = 128


class Score(Enum):
    """The way to count a value's distance from a quantile, in rows. Both cost the same.

    With `INTERVAL`, a value shared by many rows misses by 0 if the quantile is one of these rows.
    It is best if there are gaps between values, and its error is known beforehand for all data.
    With `MID_RANK`, half of the rows that share a value separate it from its neighbours. It is best
    if values are dense and each is shared by several rows.
    """

    INTERVAL = "interval"
    MID_RANK = "mid-rank"

    def parts(self, level: Fraction) -> int:
        """The number of units in one row, with which misses of this level are integers."""
        return math.lcm(level.denominator, 2 if self is Score.MID_RANK else 1)


def checked_score(score: Score) -> Score:
    """The argument, if it is a `Score`."""
    if not isinstance(score, Score):
        raise InvalidArgument(f"score = {score!r}: give Score.INTERVAL or Score.MID_RANK")
    return score


@dataclass(frozen=True, slots=True)
class Stretches:
    """The places from ``lower`` to ``upper`` in stretches of equal miss: the first place of each,
    its length, and the miss in units of `Score.parts`."""

    starts: IndexArray
    lengths: IndexArray
    misses: IndexArray


def stretches(
    rows: IndexArray,
    *,
    lower: int,
    upper: int,
    level: Fraction,
    score: Score = Score.INTERVAL,
) -> Stretches:
    """The stretches for sorted rows between these places."""
    # 1. starts and lengths: the place of each value, and the gaps between them
    is_first = np.ones(rows.size, dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    points = rows[first]
    starts = np.empty(2 * first.size + 1, np.int64)  # gap, point, gap, ..., point, gap
    starts[0], starts[1::2], starts[2::2] = lower, points, points + 1
    lengths = np.diff(starts, append=upper + 1)
    # 2. misses
    ends = np.append(first, rows.size)  # the number of rows below each gap
    beyond = level.denominator * ends - level.numerator * rows.size
    misses = np.empty_like(starts)
    if score is Score.MID_RANK:  # a gap has no rows, so its mid-rank is its only rank
        parts = score.parts(level) // level.denominator
        np.abs(parts * beyond, out=misses[0::2])
        np.abs(parts * (beyond[:-1] + beyond[1:]) // 2, out=misses[1::2])
    else:
        np.abs(beyond, out=misses[0::2])
        np.maximum(np.maximum(beyond[:-1], -beyond[1:]), 0, out=misses[1::2])
    # 3. without empty gaps
    filled = np.flatnonzero(lengths)
    return Stretches(starts[filled], lengths[filled], misses[filled])


def choose(found: Stretches, rate: Fraction, bits: Bits) -> int:
    """A place, with probability proportional to exp(-rate * miss)."""
    return choose_place(found.starts, found.lengths, -found.misses, rate=rate, bits=bits)


def most_missed(scale: Fraction, places: int, failure: Fraction) -> Fraction:
    """A number x of rows: a place drawn with probability proportional to exp(-miss / scale) misses
    by x more than the best place with at most the probability ``failure``, for any rows.

    If all places except the best miss by x more, the probability is w / (1 + w) with
    w = (places - 1) exp(-x / scale). If some of them miss by less or by more, it is smaller. With
    the interval score the best miss is 0, and rows at the two ends of the grid attain the bound.
    With mid-ranks, rows at a single place attain it for the median.
    """
    with precision(_BITS):
        log = (ball(places - 1) * ball((1 - failure) / failure)).log()
        return max(Fraction(0), scale * upper_fraction(log)) if places > 1 else Fraction(0)


def most_missed_apart(scale: Fraction, places: int, failure: Fraction) -> int:
    """`most_missed`, for rows at different places.

    If a place misses by x rows, x rows lie between it and the quantile. Their places miss by at
    most 0, 1, 2, ... rows, so the weights of these places add up to at least (1 - u) /
    (1 - exp(-1 / scale)) with u = exp(-x / scale). The weights of all places that miss by x or more
    add up to at most ``places`` times u.
    """
    with precision(_BITS):
        apart = -ball(-1 / scale).expm1()
        worst = (ball(places * (1 - failure) / failure) * apart).log1p()
        return math.ceil(scale * upper_fraction(worst))
