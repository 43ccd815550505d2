"""The exponential mechanism over pieces; a piece is several candidates with the same score.

One uniform U decides by inversion: the cumulative weights, cyclically from the largest score on,
are steps. Float64 finds the step, with a proven error bound. Too near an edge, balls decide, and
more digits of U where these leave it open. So each piece has exactly its probability. Nearly always
one word is drawn, for any scores.
"""

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from discreet._arrays import FloatArray
from discreet._exact import ball, precision
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._uniform import UniformLaw

Whole = Sequence[int] | npt.NDArray[Any]  # Any: integers of any kind
_Array = npt.NDArray[Any]  # Any: int64, or object for Python's integers

_SHIFT = 6
_CELLS = 1 << _SHIFT  # of a factor 2
_TERMS = 5
_REMOTE = 50  # if e^-50 bounds all weights that are left, they are computed anew
_FARTHEST = 700  # e^-700 replaces smaller numbers
_RADIUS = 2.0**-38  # relative error of a weight in float64
_ROUNDING = 2.0**-51  # of each sum, and more
_LONGEST = 1 << 900
_MODEST = Fraction(1, 10**15), Fraction(10**15)
_INT64_MAX = (1 << 63) - 1
_SPARE_BITS = 64


def choose_piece(lengths: Whole, scores: Whole, rate: Fraction, bits: Bits) -> int:
    """The place i of one of the pieces, with probability proportional to
    lengths[i] * exp(rate * scores[i]).

    The exponential mechanism of McSherry and Talwar (2007), where all candidates of a piece have
    the same integer score. A piece has 1 up to 2^900 candidates; draw one of them uniformly
    afterwards. The rate is at least 0.

    >>> from discreet.audit import SeededBits
    >>> choose_piece([2**40, 3, 2**40], [0, 20, -5], Fraction(1, 2), SeededBits(1))
    0
    """
    return pieces_of(lengths, scores, rate).choose(bits)


def choose_place(
    starts: Whole, lengths: Whole, scores: Whole, *, rate: Fraction, bits: Bits
) -> int:
    """A place of the pieces that begin at ``starts``, with probability proportional to
    exp(rate * score). It always takes two draws."""
    piece = choose_piece(lengths, scores, rate, bits)
    return int(starts[piece]) + UniformLaw(int(lengths[piece])).draw(bits)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces, with their lengths, the distances of their scores below some number, and weights.

    A weight has a relative error of at most 2^-39, or an absolute one below e^-600 times the
    largest weight.
    """

    lengths: _Array
    gaps: _Array
    rate: Fraction
    weights: FloatArray

    def choose(self, bits: Bits) -> int:
        """The place of one piece, as in `choose_piece`."""
        start = int(np.argmin(self.gaps))
        edges = np.cumsum(np.concatenate([self.weights[start:], self.weights[:start]]))
        first, last, numerator, size = 0, edges.size, 0, 0
        while first < last:
            numerator = numerator << bits.width | ((1 << bits.width) - 1 - bits.word())
            size += bits.width
            first, last = _climbed(edges, numerator, size)
            if first < last:
                first, last = self._climbed_exactly(start, numerator, size)
        return (start + first) % edges.size

    def without(self, place: int) -> "Pieces":
        """The pieces without this one, in the same order."""
        lengths, gaps = np.delete(self.lengths, place), np.delete(self.gaps, place)
        if gaps.min() * self.rate < _REMOTE and lengths.max() <= _INT64_MAX:
            return Pieces(lengths, gaps, self.rate, np.delete(self.weights, place))
        return pieces_of(lengths, -gaps, self.rate)

    def _climbed_exactly(self, start: int, numerator: int, size: int) -> tuple[int, int]:
        """The first and the last step that U may be on, counted cyclically from ``start``."""
        with precision(size + _SPARE_BITS + self.gaps.size.bit_length()):
            powers = cache(lambda gap: ball(-gap * self.rate).exp())
            pairs = zip(self.lengths.tolist(), self.gaps.tolist(), strict=True)
            weights = [length * powers(gap) for length, gap in pairs]
            edges = list(itertools.accumulate(weights[start:] + weights[:start]))
            total = edges.pop()
            low, high = (total * ball(Fraction(numerator + i, 1 << size)) for i in (0, 1))
            first = bisect_left(edges, True, key=lambda edge: not edge <= low)  # surely reached
            return first, bisect_left(edges, True, key=lambda edge: bool(edge >= high))


def pieces_of(lengths: Whole, scores: Whole, rate: Fraction) -> Pieces:
    """The pieces with these lengths and scores, all integers."""
    many, heights = _whole(lengths), _whole(scores)
    if many.ndim != 1 or many.shape != heights.shape or not many.size:
        raise InvalidArgument("lengths, scores: give equally many of both, at least one")
    if not (many.min() >= 1 and many.max() <= _LONGEST):
        raise InvalidArgument("lengths: give whole numbers from 1 up to 2^900")
    if rate < 0:
        raise InvalidArgument(f"rate = {rate}: give 0 or above")
    top = int(heights.max())
    if top - int(heights.min()) > _INT64_MAX:
        heights = heights.astype(object)
    gaps = top - heights
    return Pieces(many, gaps, rate, _powers(gaps, rate) * many.astype(np.float64))


def _powers(gaps: _Array, rate: Fraction) -> FloatArray:
    """The powers e^(-rate * gap), with relative error 2^-39; e^-700 for smaller ones."""
    if gaps.dtype == object or not _MODEST[0] < rate < _MODEST[1]:
        return e_to_minus(np.array([float(min(gap * rate, _FARTHEST)) for gap in gaps.tolist()]))
    far = int(_FARTHEST / rate) + 1
    if far < gaps.size:
        return e_to_minus(np.arange(far + 1) * float(rate)).take(np.minimum(gaps, far))
    return e_to_minus(gaps * float(rate))


def e_to_minus(x: npt.NDArray[Any]) -> FloatArray:
    """The powers e^-x for floats x >= 0, with relative error 2^-40; e^-700 for x above 700."""
    near = np.minimum(x, _FARTHEST)
    cells = np.rint(near * (_CELLS / np.log(2)))
    near -= cells * (np.log(2) / _CELLS)  # e^-x = 2^(-cells / 64) e^-near, |near| < 0.0055
    value: FloatArray = np.full_like(near, (-1) ** _TERMS / factorial(_TERMS))
    for n in range(_TERMS - 1, -1, -1):  # Taylor's sum, by Horner's rule
        value *= near
        value += (-1) ** n / factorial(n)
    whole = cells.astype(np.int64)
    value *= _table().take(whole & (_CELLS - 1))
    return np.asarray(np.ldexp(value, -(whole >> _SHIFT)))


@cache
def _table() -> FloatArray:
    """The powers 2^(-j / 64)."""
    with precision(_SPARE_BITS):
        return np.array([float(arb(2) ** ball(Fraction(-j, _CELLS))) for j in range(_CELLS)])


def _climbed(edges: FloatArray, numerator: int, size: int) -> tuple[int, int]:
    """The first and the last step that U in [numerator, numerator + 1] / 2^size may be on."""
    total = float(edges[-1])
    slack = total * 4 * (_RADIUS + edges.size * _ROUNDING)
    low, high = (total * ((numerator + i) / (1 << size)) for i in (0, 1))
    first, last = np.searchsorted(edges[:-1], [low - slack, high + slack], side="right")
    return int(first), int(last)


def _whole(numbers: Whole) -> _Array:
    """The numbers as int64, or as Python integers if one of them does not fit."""
    array = np.asarray(numbers)
    if array.dtype.kind not in "iuO":
        raise InvalidArgument(f"lengths, scores: {array.dtype}; give integers")
    return array.astype(np.int64 if array.dtype.kind == "i" else object)
