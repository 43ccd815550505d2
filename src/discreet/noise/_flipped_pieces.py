"""Permute-and-flip over pieces. A piece is several candidates with the same score.

Let ``gap`` be the distance of a candidate's score from the largest score. A visited candidate is
taken with probability p = exp(-rate * gap), and the first one taken is the choice. Give each
candidate an independent visiting time, uniform on [0, 1]; then the order is uniform. No candidate
is taken up to time t with probability S(t), the product of 1 - t p over all candidates. The best
candidate has p = 1, so some candidate is taken by time 1. If the first one is taken at time t, it
is each candidate with probability proportional to p / (1 - t p).

So a draw needs two uniform numbers. The first one, U, gives the time T with S(T) = U. The second
one chooses a piece by inversion: piece by piece, cyclically from the first piece of the largest
score on, the cumulative sums of v(T) = length * p / (1 - T p) are steps.

Float64 decides nearly all draws. Proof of its error bound: let H = -ln S and E = -ln U. The slope V
of H is the sum of all v. V increases, from the total weight W, so H is convex. Newton's method
gives some t with |H(t) - E| <= D. The bound on |T - t| does not depend on how t was found:

- If T > t, then D >= V(t) (T - t), since H is convex.
- If T < t, let y = 1 - t and d = t - T. From t to T no v falls by more than the factor (y + d) / y,
  since 1 - T p = 1 - t p + d p. If d were above y, H would fall by at least y V(t) / 2 over the
  distance y alone. So if D < y V(t) / 2, then d <= y, and D >= d V(t) / 2.

Hence |T - t| <= 2 D / V(t), if this is below y. D has three parts: the width of the interval that
the digits of U leave for E; the distance at which Newton's method stops; and the error of H in
float64. For the last one: relative errors of powers are at most 2^-38 (or the power is less than
e^-600 times the largest weight, which does not matter). -ln(1 - x) has the absolute error 2^-42
from its table for x >= 1/64, and the relative error 2^-38 from six terms of its series for smaller
x. The first two change -ln(1 - x) by at most (2^-38 + 2^-36) x / (1 - x). A sum of n numbers has
the relative rounding error n / 2^53. Together this is below (2^-35 + n / 2^52) t V(t). So
s = 3 D / V, with V in float64, is a proven bound on |T - t|.

If T moves by s <= y / 4, each v changes by a share of at most 2 s / y; the error of its power
changes it by at most 2^-37 / y. With r = (2^-36 + 3 s) / y + n / 2^51, which includes the rounding
of sums, a cumulative share of the whole has an error below 4 r. Pieces with less than 2^-80 of all
weights together are left out; this changes H and the sum of all v by a share of at most 2^-80 / y,
far below the bounds. If the second number lies closer to an edge than 4 r, balls decide, by the
same proof at a higher precision. If the digits do not decide, a further word of both numbers is
drawn. So each piece has exactly its probability. Nearly always two words are drawn, for any scores.
"""

import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
from flint import arb

from discreet._arrays import FloatArray
from discreet._exact import ball, precision
from discreet.noise._bits import Bits
from discreet.noise._pieces import Pieces, Whole, pieces_of
from discreet.noise._quantiles import EXPONENTIAL

_SERIES_BELOW = 1 / 64  # smaller arguments take a power series
_TERMS = 6
_RADIUS = 2.0**-35  # of H in float64, in units of t V(t)
_STEP_RADIUS = 2.0**-36
_ROUNDING = 2.0**-51  # for each number of a sum
_NEAREST = 2.0**-20  # of T to 1, in float64
_NEGLIGIBLE = 2.0**-80  # part of all weights
_NEWTON_TOLERANCE = 2.0**-45  # relative, of the last step
_MOST_STEPS = 100
_SPARE_BITS = 64


def flip_piece(lengths: Whole, scores: Whole, rate: Fraction, bits: Bits) -> int:
    """The place of the piece that contains the choice of permute-and-flip. All candidates of this
    piece are then equally likely.

    Lengths, scores and rate are as for `choose_piece`. McKenna and Sheldon (2020),
    Permute-and-flip.

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
    """A word with inverted bits, so that words of ones give the best piece."""
    return (1 << bits.width) - 1 - bits.word()


def _climbed(pieces: Pieces, time: int, place: int, size: int) -> int | None:
    """The piece, if float64 proves that it is the same for all U in [time, time + 1] / 2^size and
    all second numbers in [place, place + 1] / 2^size."""
    # 1. leave out negligible pieces, and begin with the best one
    used = np.flatnonzero(
        (pieces.weights > pieces.weights.sum() * (_NEGLIGIBLE / pieces.weights.size))
        | (pieces.gaps == 0)
    )
    used = np.roll(used, -int(np.argmin(pieces.gaps[used])))
    weights, lengths = pieces.weights[used], pieces.lengths[used].astype(np.float64)
    powers = weights / lengths
    # 2. the time T
    with precision(_SPARE_BITS):
        least, most = (float(end) for end in _surprises(time, size))
    t, away = _time(lengths, powers, least, most)
    left = 1 - t
    if not (away < left / 4 and left > _NEAREST):
        return None
    # 3. the step of the second number
    edges = np.cumsum(weights / (1 - t * powers))
    slack = 4 * ((_STEP_RADIUS + 3 * away) / left + used.size * _ROUNDING) * float(edges[-1])
    low, high = (float(edges[-1]) * ((place + i) / (1 << size)) for i in (0, 1))
    first, last = np.searchsorted(edges[:-1], [low - slack, high + slack], side="right")
    return int(used[first]) if first == last else None


def _time(
    lengths: FloatArray, powers: FloatArray, least: float, most: float
) -> tuple[float, float]:
    """Some t, and a bound on its distance from any T with H(T) between ``least`` and ``most``."""
    wanted = least if most == math.inf else (least + most) / 2
    highest = wanted / float((lengths * powers).sum())
    highest = min(highest, -math.expm1(-wanted / float(lengths[powers == 1].sum())))
    highest = min(highest, 1 - _NEAREST / 2)
    taken, t = _LogSurvival.of(lengths, powers, highest), highest
    for _ in range(_MOST_STEPS):
        height, slope = taken.at(t)
        step = (height - wanted) / slope
        if not abs(step) > _NEWTON_TOLERANCE * t:
            break
        t = min(max(t - step, t / 2), highest)
    height, slope = taken.at(t)
    error = (_RADIUS + powers.size * _ROUNDING) * t * slope
    return t, 3 * (max(height - least, most - height) + error) / slope


@dataclass(frozen=True, slots=True)
class _LogSurvival:
    """H and V in float64.

    Pieces with t p >= 1/64 at the largest t are computed one by one; there are at most some
    thousand of them, since W t <= E. For the others, sums of powers are stored.
    """

    lengths: FloatArray
    powers: FloatArray
    sums: tuple[float, ...]

    @staticmethod
    def of(lengths: FloatArray, powers: FloatArray, highest: float) -> "_LogSurvival":
        is_large = powers * highest >= _SERIES_BELOW
        small, sums = powers[~is_large], []
        terms = lengths[~is_large]
        for _ in range(_TERMS):
            terms *= small
            sums.append(float(terms.sum()))
        return _LogSurvival(lengths[is_large], powers[is_large], tuple(sums))

    def at(self, t: float) -> tuple[float, float]:
        """Return H(t) and V(t)."""
        x = t * self.powers
        height = float((self.lengths * _minus_log(x)).sum())
        slope = float((self.lengths * self.powers / (1 - x)).sum())
        for k, each in enumerate(self.sums):
            height += each * t ** (k + 1) / (k + 1)
            slope += each * t**k
        return height, slope


def _minus_log(x: FloatArray) -> FloatArray:
    series = np.full_like(x, 1 / _TERMS)
    for k in range(_TERMS - 1, 0, -1):
        series *= x
        series += 1 / k
    series *= x
    return np.where(x < _SERIES_BELOW, series, EXPONENTIAL.many(1 - x))


def _surprises(time: int, size: int) -> tuple[arb, arb]:
    """The values of -ln U at both ends of U's interval, the smaller one first."""
    ends = (ball(Fraction(time + i, 1 << size)) for i in (1, 0))
    least, most = (-end.log() if end > 0 else arb("inf") for end in ends)
    return least, most


def _climbed_exactly(pieces: Pieces, time: int, place: int, size: int) -> int | None:
    """`_climbed`, by balls."""
    # 1. the power of each gap, and the number of candidates with it
    number, start = pieces.gaps.size, int(np.argmin(pieces.gaps))
    gaps, lengths = (np.roll(each, -start).tolist() for each in (pieces.gaps, pieces.lengths))
    with precision(2 * size + _SPARE_BITS + number.bit_length()):
        powers = {gap: ball(-gap * pieces.rate).exp() for gap in set(gaps)}
        many = dict.fromkeys(powers, 0)
        for gap, length in zip(gaps, lengths, strict=True):
            many[gap] += length
        # 2. bounds on the time T, and on the steps at this time
        taken = [(many[gap], power) for gap, power in powers.items()]
        longest, shortest = (_left(taken, many[0], e, size) for e in _surprises(time, size))
        low, high = (
            list(itertools.accumulate(map(mul, lengths, map(steps.__getitem__, gaps))))
            for steps in (
                {gap: _step(power, left) for gap, power in powers.items()}
                for left in (shortest.lower(), longest.upper())
            )
        )
        # 3. the first and the last step that the second number may be on
        ends = [(a, b, a + high[-1] - b, b + low[-1] - a) for a, b in zip(low, high, strict=True)]
        from_, to = (ball(Fraction(place + i, 1 << size)) for i in (0, 1))
        # the edge a / (a + b) lies between the two quotients of these ends
        first = bisect_left(ends[:-1], True, key=lambda e: not e[1] <= from_ * e[3])
        last = bisect_left(ends[:-1], True, key=lambda e: bool(e[0] >= to * e[2]))
    return (start + first) % number if first == last else None


def _left(taken: list[tuple[int, arb]], tops: int, wanted: arb, size: int) -> arb:
    """A ball around 1 - T with H(T) = ``wanted``: Newton's method, with the error bound above."""
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
    """(1 - T) p / (1 - T p) as a function of 1 - T; it increases, and is 1 for the best score."""
    if power == 1:
        return arb(1)
    return power * left / (1 - power + power * left)
