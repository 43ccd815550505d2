"""The base of mechanisms that choose one candidate by its score."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Self

from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._scores import (
    CandidatesField,
    Moves,
    MovesField,
    candidates_as_code,
    public,
)


@frozen
class Choice(ABC):
    """The choice of one public candidate. Its pure epsilon is the rate times the distance by which
    a unit can move two scores apart."""

    candidates: CandidatesField = field(named=False, text=candidates_as_code)
    rate: Positive  # for one unit of score
    _: KW_ONLY
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)

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
        return at_epsilon(lambda scale: cls(candidates, 1 / scale, moves=moves), epsilon, bounded)

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
        names = public(candidates=candidates)
        return at_error(lambda scale: cls(names, 1 / scale, moves=moves), error, confidence)

    @abstractmethod
    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """The price of a choice from this computation's scores."""

    @abstractmethod
    def error(self, confidence: Number) -> int:
        """The distance of the chosen score from the largest score, at this confidence."""
