"""Scores of public candidates, and the distance by which a unit can move them apart."""

import hashlib
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from math import isqrt
from typing import Annotated, Any

import numpy as np

from discreet._fields import Converted
from discreet._unit import Change, Unit
from discreet.accounting import ReportNoisyMax
from discreet.errors import InvalidArgument, Refused
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key, Part
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.noise import Bits, DiscreteLaplaceLaw

Candidates = tuple[Key, ...] | range

_MOST_SHOWN = 50
_HALF_INT64 = 1 << 62


class Moves(Enum):
    """How a unit that comes or goes moves the scores; the caller asserts it.

    If no score falls when a unit comes, as for counts and sums of nonnegative numbers, two scores
    move apart by at most the move of one of them, and not by twice as much. This fails for a
    replaced unit: its old rows lower some scores, and its new rows raise others.
    """

    ANYHOW = "anyhow"
    TOGETHER = "together"


def public(**named: Sequence[Key]) -> Candidates:
    """The named candidates, if they are at least two different texts, integers or tuples of these;
    a range stays one."""
    ((name, candidates),) = named.items()
    if not isinstance(candidates, Sequence):  # a set has no order
        raise InvalidArgument(f"{name}: give a list of texts, integers or tuples of these")
    is_range = isinstance(candidates, range)
    names: Candidates = candidates if isinstance(candidates, range) else tuple(candidates)
    if isinstance(candidates, str) or not (is_range or all(map(_is_name, names))):
        raise InvalidArgument(f"{name}: give a list of texts, integers or tuples of these")
    if len(names) < 2 or not (is_range or len(set(names)) == len(names)):
        raise InvalidArgument(f"{name}: give at least two, each of them once")
    return names


def checked(moves: Moves) -> Moves:
    """The argument, if it is one of `Moves`."""
    if not isinstance(moves, Moves):
        raise InvalidArgument(f"moves = {moves!r}: give Moves.ANYHOW or Moves.TOGETHER")
    return moves


CandidatesField = Annotated[Converted[Candidates, Sequence[Key]], public]
MovesField = Annotated[Moves, checked]


def scores_part(bounded: Bounded[Any], shape: tuple[int, ...]) -> Part:  # Any: checked here
    """The computation's only part; raises unless it gives integers of this shape."""
    part = stated(bounded).part
    if not isinstance(part, Part) or part.shape != shape:
        has = f"shape {part.shape}" if isinstance(part, Part) else part.gives
        raise InvalidArgument(
            f"{bounded.name!r} gives {has}: give an integer score for each candidate, shape {shape}"
        )
    return part


def score_range(
    bounded: Bounded[Any], shape: tuple[int, ...], moves: Moves
) -> int:  # Any: checked here
    """The distance by which a unit can move two scores apart, at least 1.

    Raises unless the computation gives integers of this shape, and for `Moves.TOGETHER` with a
    replaced unit.
    """
    return moved_apart(scores_part(bounded, shape).sensitivity, bounded.unit, moves)


def moved_apart(sensitivity: Sensitivity, unit: Unit, moves: Moves) -> int:
    """The largest difference of two entries of a vector within these norms, at least 1. With
    `Moves.TOGETHER` all entries have the same sign."""
    if moves is Moves.TOGETHER:
        if unit.change is not Change.ADD_REMOVE:
            raise Refused(
                f"moves = {moves}: scores rise or fall together when a unit comes or goes; for "
                f"{unit} some may rise while others fall, use Moves.ANYHOW"
            )
        return max(sensitivity.linf, 1)
    apart = min(2 * sensitivity.linf, sensitivity.l1, isqrt(2 * sensitivity.l2_squared))
    return max(apart, 1)


def noisy_max(scale: Fraction, apart: int, moves: Moves) -> ReportNoisyMax:
    """The term for the largest noisy score. A shift of all scores changes no choice, so scores that
    move apart by a distance count as moving by half of it each, up or down."""
    if moves is Moves.TOGETHER:
        return ReportNoisyMax(scale, apart, monotone=True)
    return ReportNoisyMax(scale, Fraction(apart, 2))


def with_laplace(value: IntegerArray, scale: Fraction, bits: Bits) -> IntegerArray:
    """The scores with discrete Laplace noise: int64, or Python integers if a sum could exceed
    int64."""
    noise = DiscreteLaplaceLaw(scale).draws(bits, value.shape)
    if not (_is_small(value) and _is_small(noise)):
        value, noise = value.astype(object), noise.astype(object)
    return np.asarray(value + noise)


def candidates_as_code(candidates: Candidates) -> str:
    """Candidates as code; more than 50 of them as a hash."""
    text = repr(candidates)
    if isinstance(candidates, range) or len(candidates) <= _MOST_SHOWN:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"<{len(candidates)} candidates, SHA-256 {digest}...>"


def _is_name(candidate: object) -> bool:
    if type(candidate) is tuple:
        return all(type(piece) in (str, int) for piece in candidate)
    return type(candidate) in (str, int)


def _is_small(numbers: IntegerArray) -> bool:
    """Whether two such numbers add up within int64."""
    if numbers.dtype == object:
        return False
    return bool(numbers.min() >= -_HALF_INT64 and numbers.max() < _HALF_INT64)
