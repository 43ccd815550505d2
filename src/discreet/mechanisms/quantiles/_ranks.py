"""How far each place misses a quantile, in rows, and choosing a place by that.

Of n rows, L lie below a place and E at it. The place is a quantile of level q = a/b if the rank
q n lies in [L, L + E]; it misses it by the distance to that interval, and b times that is the
whole number

    miss = max(0, b L - a n, a n - b (L + E)).

Some place misses nothing, whatever the rows: the one of the row of rank q n, rounded up, or any if
there is no row. So the law does not depend on how many rows there are but through the misses.

How far one row moves misses. A row that comes in at z adds 1 to n, to L above z, to E at z: the
two terms change by b - a and -(b - a), or by -a and a, or at z by -a and -(b - a). So each miss
changes by at most max(a, b - a), and all changes lie in an interval of twice that length; that is
reached. A row that is replaced moves L, or L + E, by at most 1 and leaves n: each miss changes by
at most b, all in an interval of length 2 b, which is reached too. What several rows change adds up.
The exponential mechanism that weighs each place by exp(-rate * miss) has therefore privacy losses
in an interval of the length rate * 2 max(a, b - a) for each row of a unit that comes or goes, and
rate * 2 b for each that is replaced: their ends differ by what the weights' sums differ by alone
(Dong, Durfee and Rogers 2020).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet._exact import ball, precision, upper_fraction
from discreet.mechanisms._rows import Places
from discreet.mechanisms.selection._pieces import choose_piece
from discreet.noise import Bits, UniformLaw

_BITS = 128


@dataclass(frozen=True, slots=True)
class Stretches:
    """The places from ``lower`` to ``upper`` in stretches of the same miss, each as its first
    place, how many there are, and b times the miss."""

    starts: Places
    lengths: Places
    misses: Places


def stretches(rows: Places, *, lower: int, upper: int, level: Fraction) -> Stretches:
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
    misses by as much with at most this probability, whatever the rows.

    One place at least misses nothing. If all the others miss by x, the probability is
    w / (1 + w) with w = (places - 1) exp(-x / scale); if some of them miss by less, or by more,
    it is smaller. Rows at the two ends alone reach that.
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
