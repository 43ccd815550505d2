"""Private keys whose count with discrete Laplace noise reaches a threshold."""

from collections.abc import Mapping
from dataclasses import KW_ONLY

from discreet import _checks, accounting
from discreet._exact import Number
from discreet._fields import Positive, PositiveCount, frozen
from discreet.accounting import PrivacyLoss
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._parts import Key
from discreet.mechanisms.thresholds._keys import keys_part
from discreet.mechanisms.thresholds._noisy_counts import NoisyCounts, threshold_for
from discreet.noise import DiscreteLaplaceLaw


@frozen
class LaplaceThreshold(NoisyCounts):
    """Adds discrete Laplace noise of this ``scale`` to each count, and shows the keys whose noisy
    count is ``threshold`` or more, in order, with that count. Absent keys are never shown.

    Guarantee: epsilon = L1 sensitivity / scale, and a delta: the probability to show a key that
    only one unit has. It covers both relations. The noise is exact; the key and its count use the
    same draw. The running time is not covered. Korolova, Kenthapadi, Mishra and Ntoulas (2009);
    docs/proofs/terms.md.

    >>> from discreet import Unit
    >>> words = Bounded.keys(
    ...     lambda: {"ache": 410, "rash": 1}, per_unit=2, unit=Unit("patient_id"), name="words"
    ... )
    >>> mechanism = LaplaceThreshold.for_epsilon(1, 1e-6, words)
    >>> mechanism, mechanism.error(0.95), mechanism.unseen(0.95)
    (LaplaceThreshold(scale=2, threshold=30), 6, 34)
    >>> from discreet.audit import SeededBits
    >>> mechanism.sample({"ache": 410, "rash": 1}, SeededBits(1))
    {'ache': 406}
    """

    _: KW_ONLY
    scale: Positive  # in the units of the counts
    threshold: PositiveCount

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "LaplaceThreshold":
        """The mechanism whose release of these counts is (epsilon, delta)-DP, with the smallest
        threshold."""
        scale = keys_part(bounded).sensitivity.l1 / _checks.positive(epsilon=epsilon)
        threshold = threshold_for(
            _checks.probability(delta=delta), DiscreteLaplaceLaw(scale), bounded
        )
        return LaplaceThreshold(scale=scale, threshold=threshold)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "LaplaceThreshold":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``,
        and the smallest threshold for this delta."""
        scale = DiscreteLaplace.for_error(error, confidence).scale
        threshold = threshold_for(
            _checks.probability(delta=delta), DiscreteLaplaceLaw(scale), bounded
        )
        return LaplaceThreshold(scale=scale, threshold=threshold)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Threshold` around an `accounting.DiscreteLaplace`; raises unless the
        threshold lies above the largest count of a unit under one key."""
        noise = accounting.DiscreteLaplace(self.scale, keys_part(bounded).sensitivity.l1)
        return self._loss(noise, bounded)

    @property
    def _law(self) -> DiscreteLaplaceLaw:
        return DiscreteLaplaceLaw(self.scale)
