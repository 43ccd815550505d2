"""A choice of one candidate by its score, and how much a rate makes of scores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from discreet import _checks
from discreet._exact import Number
from discreet.mechanisms._accuracy import most_noise
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._scores import (
    Candidates,
    Moves,
    checked,
    public,
    spread,
    written,
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Choice(ABC):
    """One of public candidates. Its pure epsilon is the rate times how much further a unit can
    move one score than another."""

    candidates: Candidates
    rate: Fraction
    moves: Moves

    def __init__(
        self, candidates: Sequence[Key], rate: Number, *, moves: Moves = Moves.ANYHOW
    ) -> None:
        """Keep the rate at its exact value; it is in units of 1 / score."""
        object.__setattr__(self, "candidates", public(candidates))
        object.__setattr__(self, "rate", _checks.positive(rate=rate))
        object.__setattr__(self, "moves", checked(moves))

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        candidates: Sequence[Key],
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> Self:
        """The mechanism whose choice from this computation's scores costs exactly epsilon."""
        names = public(candidates)
        apart = spread(bounded, (len(names),), checked(moves))
        return cls(names, _checks.positive(epsilon=epsilon) / apart, moves=moves)

    @classmethod
    def for_error(
        cls,
        error: Number,
        confidence: Number,
        candidates: Sequence[Key],
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> Self:
        """The mechanism with the most noise whose error at this confidence is at most this."""
        names = public(candidates)
        scale = most_noise(lambda scale: cls(names, 1 / scale).error(confidence), error, confidence)
        return cls(names, 1 / scale, moves=moves)

    @abstractmethod
    def error(self, confidence: Number) -> int:
        """How far below the largest score the chosen one may be at this confidence."""

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return written(type(self).__name__, self.candidates, {"rate": self.rate}, self.moves)
