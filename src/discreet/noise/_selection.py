"""Choosing one of many by their scores: the largest noisy score, exactly.

Each candidate has a key: the rate times its score, plus independent noise. The noise is a function
of a uniform U whose digits are drawn lazily. The first digits rule out most candidates. For the
others more digits are drawn, until one key is proven to be above all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from discreet import _checks
from discreet._exact import Number, ball, precision
from discreet.errors import InvalidArgument
from discreet.noise._arrays import FloatArray
from discreet.noise._bits import Bits
from discreet.noise._inversion import digits
from discreet.noise._quantiles import EXPONENTIAL
from discreet.noise._uniform import UniformLaw

Scores = Sequence[Number] | npt.NDArray[Any]  # Any: integers of any kind
_ScoreArray = npt.NDArray[Any]  # Any: int64 or uint64

_DIGIT = 16
_CHUNK = 1 << 15
_SPARE_BITS = 64
_NARROW = 1 / 16
_ERROR = 2.0**-24  # of the table of noise
_SLACK = 2.0**-20  # absolute error of two keys in float64, rounded up
_ROUNDING = 2.0**-40  # relative error of two keys in float64, rounded up
_FARTHEST = 10**280  # gaps above it count as this one in float64
_LOWEST = -1e270
_INT64_MAX = (1 << 63) - 1


def exponential_choice(scores: Scores, rate: Number, bits: Bits) -> int:
    """The index i of one of the scores, with probability proportional to exp(rate * scores[i]).

    The exponential mechanism of McSherry and Talwar (2007), at rate epsilon / (2 sensitivity); its
    noise is Gumbel's. Scores are integers or rationals, at their exact value. An array of integers
    is fastest. The running time depends a little on the scores: the closer many of them are to the
    largest, the more digits are drawn.

    >>> from discreet.audit import SeededBits
    >>> exponential_choice([5, 4, 3, 2], 0.5, SeededBits(4))
    1
    """
    return _largest(_GUMBEL, scores, rate, bits)


def permute_and_flip(scores: Scores, rate: Number, bits: Bits) -> int:
    """The index that permute-and-flip chooses: it visits candidates in random order, and takes each
    with probability exp(rate * (its score - the largest)).

    McKenna and Sheldon (2020). The largest score with exponential noise has the same law (Ding et
    al., 2021), and is how this draws. Scores are as for `exponential_choice`.

    >>> from discreet.audit import SeededBits
    >>> permute_and_flip([5, 4, 3, 2], 0.5, SeededBits(4))
    2
    """
    return _largest(_EXPONENTIAL, scores, rate, bits)


@dataclass(frozen=True, slots=True)
class _KeyNoise:
    """The noise as a function of U: Gumbel's -ln(-ln U), which rises, or -ln U, which falls."""

    is_gumbel: bool

    @property
    def turned(self) -> int:
        """The number that is added to a word's first digit. Gumbel noise is infinite at both ends
        of U; so a word of ones is moved to one half."""
        return int(self.is_gumbel)

    def at(self, numerator: int, size: int) -> arb:
        """The noise for U = numerator / 2^size."""
        if numerator == 0:
            return arb("-inf") if self.is_gumbel else arb("inf")
        if numerator == 1 << size:
            return arb("inf") if self.is_gumbel else arb(0)
        exponential = -ball(Fraction(numerator, 1 << size)).log()
        return -exponential.log() if self.is_gumbel else exponential

    def cells(self, size: int) -> FloatArray:
        """For j = 0, 1, ..., 2^size a float within 2^-24 of the noise for U = j / 2^size."""
        exponential = np.full((1 << size) + 1, np.inf)
        exponential[1:-1] = EXPONENTIAL.many(np.arange(1, 1 << size) / np.float64(1 << size))
        exponential[-1] = 0
        if not self.is_gumbel:
            return exponential
        gumbel = np.full_like(exponential, np.inf)
        gumbel[0] = -np.inf
        gumbel[1:-1] = EXPONENTIAL.many(exponential[1:-1] / 16) - np.log(16)
        return gumbel


_GUMBEL = _KeyNoise(is_gumbel=True)
_EXPONENTIAL = _KeyNoise(is_gumbel=False)


@dataclass(frozen=True, slots=True)
class _NoiseCells:
    """Bounds on the noise, by the leading digits of U: from ``lower`` to ``upper``.

    They lie at most `_NARROW` apart, except in ``wide`` cells that follow each other from
    ``first_wide`` on, cyclically.
    """

    lower: FloatArray
    upper: FloatArray
    first_wide: int
    wide: int


@lru_cache(maxsize=4)
def _cells(noise: _KeyNoise, size: int) -> _NoiseCells:
    ends = noise.cells(size)
    lower, upper = np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])
    is_wide = upper - lower > _NARROW
    first_wide = int(np.argmax(is_wide & ~np.roll(is_wide, 1)))
    return _NoiseCells(lower - _ERROR, upper + _ERROR, first_wide, int(is_wide.sum()))


class _Gaps(Protocol):
    """The distance of each key from the key of the largest score, without noise."""

    def __len__(self) -> int: ...

    def near(self, start: int, stop: int) -> FloatArray:
        """A slice of the gaps in float64, with relative error 2^-50; larger gaps count as 10^280
        or more."""
        ...

    def exact(self, place: int) -> Fraction:
        """The exact gap of one candidate."""
        ...


@dataclass(frozen=True, slots=True)
class _ArrayGaps:
    """Gaps of an array of integers whose differences fit into int64."""

    scores: _ScoreArray
    top: int
    unit: Fraction

    def __len__(self) -> int:
        return self.scores.size

    def near(self, start: int, stop: int) -> FloatArray:
        gaps = self.scores.dtype.type(self.top) - self.scores[start:stop]
        near: FloatArray = gaps.view(np.int64).astype(np.float64)
        near *= _float(self.unit)
        return near

    def exact(self, place: int) -> Fraction:
        return (self.top - int(self.scores[place])) * self.unit


@dataclass(frozen=True, slots=True)
class _ListGaps:
    """Gaps of any rational scores."""

    gaps: list[Fraction]

    def __len__(self) -> int:
        return len(self.gaps)

    def near(self, start: int, stop: int) -> FloatArray:
        return np.array([_float(gap) for gap in self.gaps[start:stop]])

    def exact(self, place: int) -> Fraction:
        return self.gaps[place]


def _gaps(scores: Scores, rate: Number) -> _Gaps:
    # 1. checks
    unit = _checks.not_negative(rate=rate)
    if isinstance(scores, np.ndarray) and (scores.ndim != 1 or scores.dtype.kind not in "iuO"):
        raise InvalidArgument(
            f"scores: {scores.ndim} dimensions of {scores.dtype}; give integers in an array of one"
            " dimension, or a list of numbers"
        )
    if not len(scores):
        raise InvalidArgument("scores: give at least one")
    # 2. integers whose differences fit into int64 stay an array
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        whole: _ScoreArray = scores.astype(f"{scores.dtype.kind}8", copy=False)
        top = int(whole.max())
        if top - int(whole.min()) <= _INT64_MAX:
            return _ArrayGaps(whole, top, unit)
        scores = whole.tolist()
    # 3. all others become a list of fractions
    exact = [
        Fraction(score) if type(score) is int else _checks.finite(**{f"scores[{i}]": score})
        for i, score in enumerate(scores)  # integers of any size are allowed
    ]
    top_one = max(exact)
    return _ListGaps([(top_one - score) * unit for score in exact])


def _largest(noise: _KeyNoise, scores: Scores, rate: Number, bits: Bits) -> int:
    """The index of the largest key."""
    gaps, size = _gaps(scores, rate), min(_DIGIT, bits.width)
    contenders = _contenders(gaps, noise, size, bits)
    while len(contenders) > 1:
        contenders = _ahead(noise, gaps, contenders, size)
        if _are_alike(gaps, contenders):
            break
        contenders = {i: n << bits.width | bits.word() for i, n in contenders.items()}
        size += bits.width
    left = list(contenders)
    return left[UniformLaw(len(left)).draw(bits) if len(left) > 1 else 0]


def _are_alike(gaps: _Gaps, contenders: dict[int, int]) -> bool:
    """Whether all contenders have the same digits and score, and so the same chance to win."""
    return len({(numerator, gaps.exact(place)) for place, numerator in contenders.items()}) == 1


def _contenders(gaps: _Gaps, noise: _KeyNoise, size: int, bits: Bits) -> dict[int, int]:
    """The indices of the keys that may be the largest, each with its first digits of U."""
    best, found, cells = -np.inf, [], _cells(noise, size)
    # 1. chunk by chunk: leave out keys that lie below the best lower bound up to now
    for start in range(0, len(gaps), _CHUNK):
        near = gaps.near(start, start + _CHUNK)
        begun = digits(bits, near.size, size)
        begun ^= begun.dtype.type(noise.turned << size - 1)
        keys = cells.lower.take(begun, mode="clip")
        keys -= near
        best = max(best, keys.max())
        may_win = keys >= _bar(best) - _NARROW
        kind = begun.dtype.type
        may_win |= begun - kind(cells.first_wide) & kind((1 << size) - 1) < cells.wide
        left = np.flatnonzero(may_win)
        found.append((start + left, begun[left], near[left]))
    # 2. again, with the best lower bound of all chunks
    places, begun, near = (np.concatenate(parts) for parts in zip(*found, strict=True))
    left = np.flatnonzero(cells.upper.take(begun) - near >= _bar(best))
    return dict(zip(places[left].tolist(), begun[left].tolist(), strict=True))


def _bar(best: float) -> float:
    """A bound: if some key is at least ``best``, no float below the bound belongs to the largest
    key. Minus infinity if ``best`` is below `_LOWEST`."""
    return best - _SLACK - abs(best) * _ROUNDING if best > _LOWEST else -np.inf


def _ahead(noise: _KeyNoise, gaps: _Gaps, contenders: dict[int, int], size: int) -> dict[int, int]:
    """The contenders, without those that certainly lie below another one."""
    with precision(size + _SPARE_BITS):
        bounds = {}
        for place, numerator in contenders.items():
            ends = noise.at(numerator, size), noise.at(numerator + 1, size)
            gap = ball(gaps.exact(place))
            low, high = ends if noise.is_gumbel else ends[::-1]
            bounds[place] = (low - gap).lower(), (high - gap).upper()
        best = max(low for low, _ in bounds.values())
        return {place: n for place, n in contenders.items() if not bounds[place][1] < best}


def _float(gap: Fraction) -> float:
    return float(gap) if gap < _FARTHEST else float(_FARTHEST)
