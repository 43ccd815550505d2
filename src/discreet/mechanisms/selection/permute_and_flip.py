"""Permute-and-flip: never farther below the best than the exponential mechanism, on average."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet import checks, noise
from discreet.accounting import PrivacyLoss, ReportNoisyMax
from discreet.exact import Number
from discreet.mechanisms.accuracy import most_noise
from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.fixed_point import IntegerArray
from discreet.mechanisms.parts import Key
from discreet.mechanisms.selection.gaps import flip_chance, smallest_gap
from discreet.mechanisms.selection.scores import (
    Candidates,
    Moves,
    checked,
    public,
    spread,
    written,
)
from discreet.noise import Bits


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PermuteAndFlip:
    """Visits the candidates in random order, and takes each with probability
    exp(rate * (its score - the largest)); the first one taken is the choice.

    It is the largest of the scores with exponential noise of scale 1 / rate on each, and so drawn
    (Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang 2021). The computation gives one integer
    for each candidate, in their order; the candidates are public.

    Guarantee: epsilon-DP with epsilon = rate * D, D being how much further a unit can move one
    score than another, as in `ExponentialMechanism`; the interval of that one's privacy loss is
    not had here, so that several choices together cost more. It holds when a unit comes, goes or
    is replaced, as the sensitivity does. The running time, which depends a little on how many
    scores are close to the largest, is not covered. McKenna and Sheldon (2020).

    >>> import numpy as np
    >>> from discreet.unit import Unit
    >>> votes = Bounded(
    ...     lambda: np.array([5, 4, 3]), sensitivity=1, unit=Unit("id"), name="votes", shape=(3,)
    ... )
    >>> mechanism = PermuteAndFlip.for_epsilon(1, votes, ["red", "blue", "green"])
    >>> mechanism, mechanism.error(0.95)
    (PermuteAndFlip(('red', 'blue', 'green'), rate=1), 2)
    """

    candidates: Candidates
    rate: Fraction
    moves: Moves

    def __init__(
        self, candidates: Sequence[Key], rate: Number, *, moves: Moves = Moves.ANYHOW
    ) -> None:
        """Keep the rate at its exact value; it is in units of 1 / score."""
        object.__setattr__(self, "candidates", public(candidates))
        object.__setattr__(self, "rate", checks.positive(rate=rate))
        object.__setattr__(self, "moves", checked(moves))

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        candidates: Sequence[Key],
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> "PermuteAndFlip":
        """The mechanism whose choice from this computation's scores costs exactly epsilon."""
        names = public(candidates)
        apart = spread(bounded, (len(names),), checked(moves))
        return PermuteAndFlip(names, checks.positive(epsilon=epsilon) / apart, moves=moves)

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        candidates: Sequence[Key],
        *,
        moves: Moves = Moves.ANYHOW,
    ) -> "PermuteAndFlip":
        """The mechanism with the most noise whose error at this confidence is at most this."""
        names = public(candidates)
        scale = most_noise(
            lambda scale: PermuteAndFlip(names, 1 / scale).error(confidence), error, confidence
        )
        return PermuteAndFlip(names, 1 / scale, moves=moves)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.ReportNoisyMax`; raises unless there is a score for each candidate."""
        apart = spread(bounded, (len(self.candidates),), self.moves)
        return PrivacyLoss.of(noisy_max(1 / self.rate, apart, self.moves), unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> Key:
        """The chosen candidate; of 100 000, in some milliseconds."""
        return self.candidates[noise.permute_and_flip(value, self.rate, bits)]

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the chosen candidate's score at most q below the largest one
        at this confidence, whatever the scores: if all but the best are equal and fall behind by
        q + 1, no smaller one will do."""
        return smallest_gap(flip_chance(self.rate, len(self.candidates) - 1), confidence)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return written("PermuteAndFlip", self.candidates, {"rate": self.rate}, self.moves)


def noisy_max(scale: Fraction, apart: int, moves: Moves) -> ReportNoisyMax:
    """The term for the largest noisy score. Taking the same number off all scores changes no
    choice, so that scores that move at most so far apart may as well move by half of that each."""
    if moves is Moves.TOGETHER:
        return ReportNoisyMax(scale, apart, monotone=True)
    return ReportNoisyMax(scale, Fraction(apart, 2))
