"""One candidate of many by its score, exactly.

Candidates of the same score are equally likely. So first a score is chosen, by `_pieces` or
`_flipped_pieces`, then one of the candidates that have it. The second draw is made even where there
is one: otherwise the number of words would tell whether scores tie.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.noise._bits import Bits
from discreet.noise._flipped_pieces import flip_piece
from discreet.noise._pieces import Whole, choose_piece
from discreet.noise._uniform import UniformLaw

Scores = Sequence[Number] | npt.NDArray[Any]  # Any: integers of any kind

_FEW_SCORES = 4  # possible scores for each candidate; beyond it, scores are not counted
_CHUNK = 1 << 15


def exponential_choice(scores: Scores, rate: Number, bits: Bits) -> int:
    """The index i of one of the scores, with probability proportional to exp(rate * scores[i]).

    The exponential mechanism of McSherry and Talwar (2007), at rate epsilon / (2 sensitivity).
    Scores are integers or rationals, at their exact value. An array of integers is fastest. The
    running time depends slightly on the scores, for example on how many are close together.

    >>> from discreet.audit import SeededBits
    >>> exponential_choice([5, 4, 3, 2], 0.5, SeededBits(4))
    0
    """
    return _chosen(choose_piece, scores, rate, bits)


def permute_and_flip(scores: Scores, rate: Number, bits: Bits) -> int:
    """The index that permute-and-flip chooses: it visits candidates in random order, and takes each
    with probability exp(rate * (its score - the largest)).

    McKenna and Sheldon (2020). Scores are as for `exponential_choice`.

    >>> from discreet.audit import SeededBits
    >>> permute_and_flip([5, 4, 3, 2], 0.5, SeededBits(4))
    0
    """
    return _chosen(flip_piece, scores, rate, bits)


def _chosen(
    choose: Callable[[Whole, Whole, Fraction, Bits], int], scores: Scores, rate: Number, bits: Bits
) -> int:
    whole, each = _in_integers(scores, _checks.not_negative(rate=rate))
    top, low = whole.max(), whole.min()
    span = int(top) - int(low)
    if span >= _FEW_SCORES * whole.size:
        place = choose(np.ones(whole.size, np.int64), whole, each, bits)
        return place + UniformLaw(1).draw(bits)
    # 1. the number of candidates with each score
    parts = np.array_split(whole, max(1, whole.size // max(_CHUNK, span)))  # small ones, for speed
    counts = np.zeros(span + 1, np.int64)
    for part in parts:
        counts += np.bincount((top - part).astype(np.int64, copy=False), minlength=span + 1)
    # 2. a score, and a candidate that has it
    taken = np.flatnonzero(counts)
    gap = taken[choose(counts[taken], -taken, each, bits)]
    score, equal = int(top) - int(gap), int(counts[gap])
    rank, before = UniformLaw(equal).draw(bits), 0
    for part in parts:
        places = np.flatnonzero(part == score)
        if rank < places.size:
            break
        rank -= places.size
        before += part.size
    return before + int(places[rank])


def _in_integers(scores: Scores, rate: Fraction) -> tuple[npt.NDArray[Any], Fraction]:  # Any: same
    """Integers in proportion to the scores, and the rate for them."""
    if isinstance(scores, np.ndarray) and (scores.ndim != 1 or scores.dtype.kind not in "iuO"):
        raise InvalidArgument(
            f"scores: {scores.ndim} dimensions of {scores.dtype}; give integers in an array of one"
            " dimension, or a list of numbers"
        )
    if not len(scores):
        raise InvalidArgument("scores: give at least one")
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        return scores.astype(f"{scores.dtype.kind}8", copy=False), rate
    exact = [
        Fraction(score) if type(score) is int else _checks.finite(**{f"scores[{i}]": score})
        for i, score in enumerate(scores)  # integers of any size are allowed
    ]
    common = math.lcm(*(score.denominator for score in exact))
    whole = [score.numerator * (common // score.denominator) for score in exact]
    return np.array(whole, dtype=object), rate / common
