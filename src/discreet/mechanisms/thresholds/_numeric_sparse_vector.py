"""The sparse vector technique with numeric answers above the threshold."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._fields import Positive, field, frozen
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms.selection._scores import Moves
from discreet.mechanisms.thresholds._sparse_vector import SparseVector, finding
from discreet.noise import Bits, DiscreteLaplaceLaw, half_width


def _is_finding(finding: object) -> SparseVector:
    if isinstance(finding, SparseVector):
        return finding
    raise InvalidArgument(f"finding = {finding!r}: give a SparseVector")


@frozen
class NumericSparseVector:
    """Releases each number that a `SparseVector` finds above the threshold, with fresh discrete
    Laplace noise of ``answer_scale``. For other numbers it answers None.

    Guarantee: the privacy loss of the `SparseVector` and of ``hits`` answers by `DiscreteLaplace`.
    The noisy numbers of the comparisons are never released; Lyu, Su and Li (2017) show that
    releasing them is not private.

    >>> finds = NumericSparseVector.for_epsilon(1, threshold=50, hits=3)
    >>> finds.privacy_loss(Unit("patient_id")).epsilon(), finds.error(0.95)
    (1.0, 18)
    """

    finding: Annotated[SparseVector, _is_finding] = field(named=False)
    _: KW_ONLY
    answer_scale: Positive  # in the units of the numbers

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        threshold: int,
        *,
        hits: int = 1,
        sensitivity: int = 1,
        moves: Moves = Moves.ANYHOW,
    ) -> "NumericSparseVector":
        """The mechanism whose session costs exactly epsilon: half for the comparisons, half for the
        numbers."""
        half = _checks.positive(epsilon=epsilon) / 2
        finding = SparseVector.for_epsilon(
            half, threshold, hits=hits, sensitivity=sensitivity, moves=moves
        )
        moved = finding.hits * finding.sensitivity
        return NumericSparseVector(finding, answer_scale=moved / half)

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        threshold: int,
        *,
        hits: int = 1,
        sensitivity: int = 1,
        moves: Moves = Moves.ANYHOW,
    ) -> "NumericSparseVector":
        """The mechanism with the most noise on the released numbers whose error at this confidence
        is at most ``error``. The comparisons cost as much as the released numbers."""
        scale = DiscreteLaplace.for_error(error, confidence).scale
        moved = _checks.positive_count(hits=hits) * _checks.positive_count(sensitivity=sensitivity)
        finding = SparseVector.for_epsilon(
            moved / scale, threshold, hits=hits, sensitivity=sensitivity, moves=moves
        )
        return NumericSparseVector(finding, answer_scale=scale)

    def privacy_loss(self, unit: Unit) -> PrivacyLoss:
        """The loss of the `SparseVector`, plus one `accounting.DiscreteLaplace` for each hit."""
        term = accounting.DiscreteLaplace(self.answer_scale, self.finding.sensitivity)
        return self.finding.privacy_loss(unit) + self.finding.hits * term

    def check(self, bounded: Bounded[int]) -> None:
        """Raise unless it is one integer, of at most the sensitivity in the privacy loss."""
        self.finding.check(bounded)

    def begin(self, bits: Bits) -> Callable[[int], tuple[int | None, bool]]:
        """A function that answers each number in turn, and says whether another may follow."""
        find, law = finding(self.finding, bits), DiscreteLaplaceLaw(self.answer_scale)

        def answer(value: int) -> tuple[int | None, bool]:
            is_above, goes_on = find(value)
            return (value + law.draw(bits) if is_above else None), goes_on

        return answer

    def error(self, confidence: Number) -> int:
        """The smallest whole q with the noise of a released number in [-q, q] at this
        confidence, by its exact law. For the comparisons see ``finding.error``."""
        law = DiscreteLaplaceLaw(self.answer_scale)
        return half_width(law, _checks.probability(confidence=confidence))
