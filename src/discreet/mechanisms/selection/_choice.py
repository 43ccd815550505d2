"""The base of mechanisms that choose one candidate by its score."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY
from fractions import Fraction
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


class Choice(ABC):
    """The choice of one public candidate. Its pure epsilon is the distance by which a unit can move
    two scores apart, over the scale of the noise."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def _of_scale(cls, candidates: Sequence[Key], scale: Fraction, moves: Moves) -> Self:
        """The mechanism with noise of this scale."""

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
        return at_epsilon(lambda scale: cls._of_scale(candidates, scale, moves), epsilon, bounded)

    @classmethod
    def for_error(
        cls,
        error: Number,
        confidence: Number,
        candidates: Sequence[Key],
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> Self:
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        names = public(candidates=candidates)
        return at_error(lambda scale: cls._of_scale(names, scale, moves), error, confidence)

    @abstractmethod
    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """The privacy loss of a choice from this computation's scores."""

    @abstractmethod
    def error(self, confidence: Number) -> int:
        """The distance of the chosen score from the largest score, at this confidence."""


@frozen
class ChoiceByRate(Choice):
    """A choice whose noise has the scale 1 / rate."""

    candidates: CandidatesField = field(named=False, text=candidates_as_code)
    rate: Positive  # for one unit of score
    _: KW_ONLY
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)

    @classmethod
    def _of_scale(cls, candidates: Sequence[Key], scale: Fraction, moves: Moves) -> Self:
        return cls(candidates, 1 / scale, moves=moves)
