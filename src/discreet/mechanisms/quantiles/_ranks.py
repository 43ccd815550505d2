"""How far each place misses a quantile, in rows, and choosing a place by that.

Of n rows, L lie below a place and E at it. There are two ways to score a place for the level
q = a/b, of whose n rows q n are to lie below (`Score`):

- by the interval [L, L + E] of its ranks: the miss is the distance of q n to it, and b times that
  is the whole number max(0, b L - a n, a n - b (L + E)). Some place misses nothing, whatever the
  rows: the one of the row of rank q n, rounded up, or any if there is no row;
- by its mid-rank L + E/2, which counts equal rows by halves: the miss is the distance of q n to it,
  and 2 b times that is the whole number |2 b L + b E - 2 a n|, which is even if b is.

The law does not depend on how many rows there are but through the misses. One row moves them alike
for both scores (`docs/proofs/mechanisms.md`): a row that comes or goes moves each miss by at most
max(q, 1 - q), one that is replaced by at most 1, so that all changes lie in an interval of twice
that length. What several rows change adds up. The exponential mechanism that weighs each place by
exp(-miss / scale) has therefore privacy losses in an interval of the length 2 max(q, 1 - q) / scale
for each row of a unit that comes or goes, and 2 / scale for each that is replaced: their ends
differ by what the weights' sums differ by alone (Dong, Durfee and Rogers 2020).
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from discreet._exact import ball, precision, upper_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms.selection._pieces import choose_piece
from discreet.noise import Bits, UniformLaw
from discreet.noise._arrays import IndexArray

_BITS = 128


class Score(Enum):
    """How a value's distance from a quantile is counted, in rows.

    Both cost the same. With `INTERVAL`, a value that many rows share misses nothing as long as the
    quantile is one of these rows: best where there are gaps between the values; the error is
    known beforehand for all data. With `MID_RANK`, half of the rows that share a value set it apart
    from its neighbours: best where values lie dense and each is shared by several rows.
    """

    INTERVAL = "interval"
    MID_RANK = "mid-rank"

    def parts(self, level: Fraction) -> int:
        """In which part of a row misses of this level are whole numbers."""
        return math.lcm(level.denominator, 2 if self is Score.MID_RANK else 1)


def a_score(score: Score) -> Score:
    """The score, if it is one."""
    if not isinstance(score, Score):
        raise InvalidArgument(f"score = {score!r}: give Score.INTERVAL or Score.MID_RANK")
    return score


@dataclass(frozen=True, slots=True)
class Stretches:
    """The places from ``lower`` to ``upper`` in stretches of the same miss, each as its first
    place, how many there are, and the miss in parts of a row (`Score.parts`)."""

    starts: IndexArray
    lengths: IndexArray
    misses: IndexArray


def stretches(
    rows: IndexArray, *, lower: int, upper: int, level: Fraction, score: Score = Score.INTERVAL
) -> Stretches:
    """Those of sorted rows, all of which lie between these places."""
    is_first = np.ones(rows.size, dtype=bool)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    points = rows[first]
    starts = np.empty(2 * first.size + 1, np.int64)  # gap, point, gap, ..., point, gap
    starts[0], starts[1::2], starts[2::2] = lower, points, points + 1
    lengths = np.diff(starts, append=upper + 1)
    ends = np.append(first, rows.size)  # how many rows lie below each gap
    beyond = level.denominator * ends - level.numerator * rows.size
    misses = np.empty_like(starts)
    if score is Score.MID_RANK:  # a gap has no rows, so that its mid-rank is its only rank
        parts = score.parts(level) // level.denominator
        np.abs(parts * beyond, out=misses[0::2])
        np.abs(parts * (beyond[:-1] + beyond[1:]) // 2, out=misses[1::2])
    else:
        np.abs(beyond, out=misses[0::2])
        np.maximum(np.maximum(beyond[:-1], -beyond[1:]), 0, out=misses[1::2])
    kept = np.flatnonzero(lengths)
    return Stretches(starts[kept], lengths[kept], misses[kept])


def choose(found: Stretches, rate: Fraction, bits: Bits) -> int:
    """A place, with probability proportional to exp(-rate * its miss): two draws, always."""
    piece = choose_piece(found.lengths, -found.misses, rate, bits)
    return int(found.starts[piece]) + UniformLaw(int(found.lengths[piece])).draw(bits)


def most_missed(scale: Fraction, places: int, failure: Fraction) -> Fraction:
    """So many rows that a place drawn with probability proportional to exp(-rows missed / scale)
    misses by as much more than the best place with at most this probability, whatever the rows.

    If all places but the best miss by x more, the probability is w / (1 + w) with
    w = (places - 1) exp(-x / scale); if some of them miss by less, or by more, it is smaller. With
    the interval score the best place misses nothing, and rows at the two ends alone reach that;
    with mid-ranks, rows at a single place reach it for the median.
    """
    with precision(_BITS):
        log = (ball(places - 1) * ball((1 - failure) / failure)).log()
        return max(Fraction(0), scale * upper_fraction(log)) if places > 1 else Fraction(0)


def most_missed_apart(scale: Fraction, places: int, failure: Fraction) -> int:
    """The same where no two rows are at the same place.

    If some place misses by x rows, as many rows lie between it and the quantile, each at a place
    that misses by at most 0, 1, 2, ... rows. These weigh (1 - u) / (1 - exp(-1 / scale)) together
    with u = exp(-x / scale), and all places that miss by x or more at most ``places`` times u.
    """
    with precision(_BITS):
        apart = -ball(-1 / scale).expm1()
        worst = (ball(places * (1 - failure) / failure) * apart).log1p()
        return math.ceil(scale * upper_fraction(worst))
