"""Report noisy max with discrete Laplace noise."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Self

import numpy as np

from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._choice import Choice
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.selection._races import race_chance
from discreet.mechanisms.selection._scores import (
    CandidatesField,
    Moves,
    MovesField,
    candidates_as_code,
    noisy_max,
    score_range,
    with_laplace,
)
from discreet.noise import Bits


@frozen
class NoisyMax(Choice):
    """Chooses the candidate with the largest score after discrete Laplace noise of this ``scale``
    on each; of equal ones the first.

    The computation gives one integer for each candidate, in their order; the candidates are public.
    With Gumbel noise this is `ExponentialMechanism`, with exponential noise `PermuteAndFlip`. At
    the same privacy loss both choose better, and the first one composes better.

    Guarantee: epsilon-DP with epsilon = D / scale. D is the distance by which a unit can move two
    scores apart, as in `ExponentialMechanism`. Proof: for any noise of the others, a candidate wins
    if its own noise reaches some whole number, and a unit moves this number by at most D. Only the
    winner is released, not its noisy score. The guarantee covers both relations, as the sensitivity
    does. The noise is exact. The running time is not covered. Dwork and Roth (2014), Claim 3.9.

    >>> from discreet import Unit
    >>> votes = Bounded(
    ...     lambda: np.array([5, 4, 3]), sensitivity=1, unit=Unit("id"), name="votes", shape=(3,)
    ... )
    >>> mechanism = NoisyMax.for_epsilon(1, votes, ["red", "blue", "green"])
    >>> mechanism, mechanism.error(0.95)
    (NoisyMax(('red', 'blue', 'green'), scale=1), 4)
    """

    candidates: CandidatesField = field(named=False, text=candidates_as_code)
    scale: Positive  # in the units of the scores
    _: KW_ONLY
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)

    @classmethod
    def _of_scale(cls, candidates: Sequence[Key], scale: Fraction, moves: Moves) -> Self:
        return cls(candidates, scale, moves=moves)

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.ReportNoisyMax`; raises unless there is a score for each candidate."""
        apart = score_range(bounded, (len(self.candidates),), self.moves)
        return PrivacyLoss.of(noisy_max(self.scale, apart, self.moves), unit=bounded.unit)

    def sample(self, value: IntegerArray, bits: Bits) -> Key:
        """The chosen candidate; of 100 000, in a few milliseconds."""
        noisy = with_laplace(value, self.scale, bits)
        return self.candidates[int(np.argmax(noisy))]

    def error(self, confidence: Number) -> int:
        """The smallest whole q, up to some thousandths, with the chosen score at most q below the
        largest one at this confidence, for any scores. It is attained if the last candidate is the
        best and all others have equal scores."""
        others = len(self.candidates) - 1
        return smallest_gap(
            race_chance(self.scale, self.scale, confidence, under=others), confidence
        )
