"""The best candidate of each public group."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY

import numpy as np

from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.mechanisms._accuracy import at_epsilon, at_error
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._gaps import exponential_chance, smallest_gap
from discreet.mechanisms.selection._scores import (
    CandidatesField,
    Moves,
    MovesField,
    candidates_as_code,
    score_range,
)
from discreet.noise import Bits
from discreet.noise._pieces import choose_piece


@frozen
class BestOfEachGroup:
    """Chooses one candidate in each group: an `ExponentialMechanism` of this rate for each.

    The computation gives integers of shape (groups, candidates); groups and candidates are public,
    and the value is a mapping from each group to its candidate.

    Guarantee: the privacy loss of an `ExponentialMechanism` for each group that a unit changes. A
    unit changes at most l0 scores. Two of them in one group move apart by at most twice the
    L-infinity sensitivity; two in different groups together cost as much. So a unit pays for at
    most l0 / 2 choices, rounded up; with `Moves.TOGETHER` for l0 choices, each at half the privacy
    loss. The scores of a group move apart by at most the sum of their changes, so all groups
    together by at most the L1 sensitivity: a single choice at this distance is charged where it
    costs less. The guarantee covers both relations, as the sensitivity does. The running time is
    not covered.

    >>> from discreet import Unit
    >>> jobs = Bounded(
    ...     lambda: np.array([[50, 4, 3], [2, 9, 60]]), sensitivity=1, unit=Unit("person_id"),
    ...     name="people by year and job", shape=(2, 3),
    ... )
    >>> names = {"groups": [1980, 1987], "candidates": ["crafts", "sales", "service"]}
    >>> mechanism = BestOfEachGroup.for_epsilon(1, jobs, **names)
    >>> mechanism.privacy_loss(jobs), mechanism.error(0.95)
    ((1 * accounting.BoundedRange(eta=1)).for_unit(Unit('person_id')), 3)
    """

    _: KW_ONLY
    groups: CandidatesField = field(text=candidates_as_code)
    candidates: CandidatesField = field(text=candidates_as_code)
    rate: Positive  # for one unit of score
    moves: MovesField = field(default=Moves.ANYHOW, brief=True)

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        bounded: Bounded[IntegerArray],
        *,
        groups: Sequence[Key],
        candidates: Sequence[Key],
        moves: Moves = Moves.ANYHOW,
    ) -> "BestOfEachGroup":
        """The mechanism whose choices from this computation's scores cost exactly this pure
        epsilon."""
        return at_epsilon(
            lambda scale: BestOfEachGroup(
                groups=groups, candidates=candidates, rate=1 / scale, moves=moves
            ),
            epsilon,
            bounded,
        )

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        *,
        groups: Sequence[Key],
        candidates: Sequence[Key],
        moves: Moves = Moves.ANYHOW,
    ) -> "BestOfEachGroup":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``."""
        return at_error(
            lambda scale: BestOfEachGroup(
                groups=groups, candidates=candidates, rate=1 / scale, moves=moves
            ),
            error,
            confidence,
        )

    def privacy_loss(self, bounded: Bounded[IntegerArray]) -> PrivacyLoss:
        """One `accounting.BoundedRange` for each choice that a unit pays for, or one for all of
        them; raises unless there is a score for each candidate of each group."""
        shape = len(self.groups), len(self.candidates)
        apart, touched = score_range(bounded, shape, self.moves), self._touched(bounded)
        in_all = max(bounded.part.sensitivity.l1, 1)
        if in_all < apart * touched:
            apart, touched = in_all, 1
        return PrivacyLoss.of(BoundedRange(self.rate * apart), unit=bounded.unit) * touched

    def sample(self, value: IntegerArray, bits: Bits) -> Mapping[Key, Key]:
        """The chosen candidate of each group."""
        each = np.ones(len(self.candidates), np.int64)
        return {
            group: self.candidates[choose_piece(each, scores, self.rate, bits)]
            for group, scores in zip(self.groups, value, strict=True)
        }

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the score of a group's choice at most q below that group's
        largest one at this confidence, each group by itself; as `ExponentialMechanism.error`."""
        return smallest_gap(exponential_chance(self.rate, len(self.candidates) - 1), confidence)

    def _touched(self, bounded: Bounded[IntegerArray]) -> int:
        """The number of choices that a unit pays for. The losses of independent choices add up, and
        so do the lengths of their intervals: two groups with one changed score each have together
        the full length."""
        changed = bounded.part.sensitivity.l0
        intervals = changed if self.moves is Moves.TOGETHER else -(-changed // 2)
        return max(1, min(intervals, len(self.groups)))
