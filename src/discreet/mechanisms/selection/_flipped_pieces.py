"""Permute-and-flip over pieces, each of which stands for several candidates of the same score.

A candidate whose score lies ``gap`` below the largest is taken, when it is visited, with
probability p = exp(-rate * gap); the first one taken is the choice. If all are visited at times
of their own, uniform on [0, 1], the order is a uniform one. None is taken up to time t with
probability S(t), the product of all 1 - t p, and one is for certain by time 1, as the best has
p = 1. Given that it happens at time t, it is each candidate with probability proportional to
p / (1 - t p). So two uniform numbers do: S(T) = U tells T, and a second one climbs steps of height
v(T) = length * p / (1 - T p), one for each piece, from the first of the largest score on and round.

How close float64 comes. Let H = -ln S, whose slope V is the sum of all v: it rises from the total
weight W on, so that H is convex. Newton's method finds some t with H(t) near E = -ln U, by
whatever path; how far T is from t is then known. Say |H(t) - E| <= D.

- If T > t, then D >= V(t) (T - t), H being convex.
- If T < t, let y = 1 - t and d = t - T. No v falls by more than a factor (y + d) / y from t to T,
  as 1 - T p = 1 - t p + d p. If d were above y, D would be at least that drop of H which y alone
  makes, y V(t) / 2. So D < y V(t) / 2 tells d <= y, and then D >= d V(t) / 2.

Hence |T - t| <= 2 D / V(t), if that is below y. D is made of how wide U's digits leave E, of what
is left over when Newton's method stops, and of float64's error in H: powers are off by a part in
2^38 at most (what is less than e^-600 of the largest weight does not count), -ln(1 - x) by 2^-42
from its table where x >= 1/64, and by a part in 2^38 from six terms of its series where x is
less; the first two move -ln(1 - x) by at most (2^-38 + 2^-36) x / (1 - x). Sums of n numbers lose
a part n / 2^53. In all that is below (2^-35 + n / 2^52) t V(t). So 3 D / V, V in float64, is a
proven distance: call it s.

A step v moves by at most a part 2 s / y if T moves by s <= y / 4, and by a part 2^-37 / y for the
error of its power; r = (2^-36 + 3 s) / y + n / 2^51 bounds both and the sums' rounding, so that a
share of the whole is off by less than 4 r. Pieces that have less than 2^-80 of all weights between
them are left out, which moves H and the steps' sum by a part 2^-80 / y at most, far less than what
is allowed for. If the second number lies nearer to an edge than that, balls decide, by the same
argument at a precision that grows; where the digits leave it open, a word more of both numbers is
drawn. So each piece has exactly its probability, and nearly always two words are drawn, whatever
the scores.
"""

import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
from flint import arb

from discreet._exact import ball, precision
from discreet.mechanisms.selection._pieces import Pieces, Whole, pieces_of
from discreet.noise import Bits
from discreet.noise._arrays import FloatArray
from discreet.noise._quantiles import EXPONENTIAL

_SMALL = 1 / 64
_TERMS = 6
_RADIUS = 2.0**-35  # of H in float64, in units of t V(t)
_STEP_RADIUS = 2.0**-36
_ROUNDING = 2.0**-51  # for each number of a sum
_NEAREST = 2.0**-20  # of T to 1, in float64
_NEGLIGIBLE = 2.0**-80  # part of all weights
_CLOSE = 2.0**-45
_MOST_STEPS = 100
_SPARE_BITS = 64


def flip_piece(lengths: Whole, scores: Whole, rate: Fraction, bits: Bits) -> int:
    """The place of the piece that has the choice of permute-and-flip in it; each of its candidates
    is then as likely.

    McKenna and Sheldon (2020), Permute-and-flip. Lengths, scores and rate are as for
    `choose_piece`: whole numbers of candidates from 1 up to 2^900, integers, and 0 or above.

    >>> from discreet.audit import SeededBits
    >>> flip_piece([2**40, 3, 2**40], [0, 20, -5], Fraction(1, 2), SeededBits(1))
    0
    """
    pieces = pieces_of(lengths, scores, rate)
    time = place = size = 0
    while True:
        time, place = (n << bits.width | _inverted(bits) for n in (time, place))
        size += bits.width
        for climbed in (_climbed, _climbed_exactly):
            if (found := climbed(pieces, time, place, size)) is not None:
                return found


def _inverted(bits: Bits) -> int:
    """A word, with every bit the other way: words of ones bring the best."""
    return (1 << bits.width) - 1 - bits.word()


def _climbed(pieces: Pieces, time: int, place: int, size: int) -> int | None:
    """The piece, if it is the same for all U in [time, time + 1] / 2^size and all second numbers
    in [place, place + 1] / 2^size, as far as float64 tells."""
    kept = np.flatnonzero(
        (pieces.weights > pieces.weights.sum() * (_NEGLIGIBLE / pieces.weights.size))
        | (pieces.gaps == 0)
    )
    kept = np.roll(kept, -int(np.argmin(pieces.gaps[kept])))
    weights, lengths = pieces.weights[kept], pieces.lengths[kept].astype(np.float64)
    powers = weights / lengths
    with precision(_SPARE_BITS):
        least, most = (float(end) for end in _surprises(time, size))
    t, away = _time(lengths, powers, least, most)
    left = 1 - t
    if not (away < left / 4 and left > _NEAREST):
        return None
    edges = np.cumsum(weights / (1 - t * powers))
    slack = 4 * ((_STEP_RADIUS + 3 * away) / left + kept.size * _ROUNDING) * float(edges[-1])
    low, high = (float(edges[-1]) * ((place + i) / (1 << size)) for i in (0, 1))
    first, last = np.searchsorted(edges[:-1], [low - slack, high + slack], side="right")
    return int(kept[first]) if first == last else None


def _time(
    lengths: FloatArray, powers: FloatArray, least: float, most: float
) -> tuple[float, float]:
    """Some t, and how far it may be from any T with H(T) between these."""
    wanted = least if most == math.inf else (least + most) / 2
    highest = wanted / float((lengths * powers).sum())
    highest = min(highest, -math.expm1(-wanted / float(lengths[powers == 1].sum())))
    highest = min(highest, 1 - _NEAREST / 2)
    taken, t = _Taken.of(lengths, powers, highest), highest
    for _ in range(_MOST_STEPS):
        height, slope = taken.at(t)
        step = (height - wanted) / slope
        if not abs(step) > _CLOSE * t:
            break
        t = min(max(t - step, t / 2), highest)
    height, slope = taken.at(t)
    error = (_RADIUS + powers.size * _ROUNDING) * t * slope
    return t, 3 * (max(height - least, most - height) + error) / slope


@dataclass(frozen=True, slots=True)
class _Taken:
    """H and V in float64: candidates by themselves that have t p >= 1/64 at the largest t, which
    are some thousand pieces at most, as W t is at most E there; and sums of the others' powers."""

    lengths: FloatArray
    powers: FloatArray
    sums: tuple[float, ...]

    @staticmethod
    def of(lengths: FloatArray, powers: FloatArray, highest: float) -> "_Taken":
        is_large = powers * highest >= _SMALL
        small, sums = powers[~is_large], []
        terms = lengths[~is_large]
        for _ in range(_TERMS):
            terms *= small
            sums.append(float(terms.sum()))
        return _Taken(lengths[is_large], powers[is_large], tuple(sums))

    def at(self, t: float) -> tuple[float, float]:
        """H(t) and V(t)."""
        x = t * self.powers
        height = float((self.lengths * _minus_log(x)).sum())
        slope = float((self.lengths * self.powers / (1 - x)).sum())
        for k, each in enumerate(self.sums):
            height += each * t ** (k + 1) / (k + 1)
            slope += each * t**k
        return height, slope


def _minus_log(x: FloatArray) -> FloatArray:
    """-ln(1 - x)."""
    series = np.full_like(x, 1 / _TERMS)
    for k in range(_TERMS - 1, 0, -1):
        series *= x
        series += 1 / k
    series *= x
    return np.where(x < _SMALL, series, EXPONENTIAL.many(1 - x))


def _surprises(time: int, size: int) -> tuple[arb, arb]:
    """-ln U for both ends of U's interval, the smaller one first."""
    ends = (ball(Fraction(time + i, 1 << size)) for i in (1, 0))
    least, most = (-end.log() if end > 0 else arb("inf") for end in ends)
    return least, most


def _climbed_exactly(pieces: Pieces, time: int, place: int, size: int) -> int | None:
    """The same by balls."""
    number, start = pieces.gaps.size, int(np.argmin(pieces.gaps))
    gaps, lengths = (np.roll(each, -start).tolist() for each in (pieces.gaps, pieces.lengths))
    with precision(2 * size + _SPARE_BITS + number.bit_length()):
        powers = {gap: ball(-gap * pieces.rate).exp() for gap in set(gaps)}
        many = dict.fromkeys(powers, 0)
        for gap, length in zip(gaps, lengths, strict=True):
            many[gap] += length
        taken = [(many[gap], power) for gap, power in powers.items()]
        longest, shortest = (_left(taken, many[0], e, size) for e in _surprises(time, size))
        low, high = (
            list(itertools.accumulate(map(mul, lengths, map(steps.__getitem__, gaps))))
            for steps in (
                {gap: _step(power, left) for gap, power in powers.items()}
                for left in (shortest.lower(), longest.upper())
            )
        )
        ends = [(a, b, a + high[-1] - b, b + low[-1] - a) for a, b in zip(low, high, strict=True)]
        from_, to = (ball(Fraction(place + i, 1 << size)) for i in (0, 1))
        # An edge a / (a + b) of the whole lies between the two with these pairs of ends.
        first = bisect_left(ends[:-1], True, key=lambda e: not e[1] <= from_ * e[3])
        last = bisect_left(ends[:-1], True, key=lambda e: bool(e[0] >= to * e[2]))
    return (start + first) % number if first == last else None


def _left(taken: list[tuple[int, arb]], tops: int, wanted: arb, size: int) -> arb:
    """1 - T where H(T) is as wanted: by Newton's method in balls, and the proof above."""
    if not wanted.is_finite():
        return arb(0)
    weight = sum((many * power for many, power in taken), arb(0))
    bounds = wanted / weight, -(-wanted / tops).expm1()
    t = min(bounds).mid()
    while True:
        height = -sum((many * (-t * power).log1p() for many, power in taken), arb(0))
        slope = sum((many * power / (1 - t * power) for many, power in taken), arb(0))
        off, left = height - wanted, 1 - t
        away = (2 * abs(off) / slope).upper()
        if away <= left * ball(Fraction(1, 2 << size)):
            return left + arb(0, away)
        t = (t - off / slope).mid()


def _step(power: arb, left: arb) -> arb:
    """(1 - T) p / (1 - T p), for 1 - T: it rises with that, and is 1 for the best."""
    if power == 1:
        return arb(1)
    return power * left / (1 - power + power * left)
