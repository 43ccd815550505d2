"""Private keys whose count with Gaussian noise reaches a threshold."""

from collections.abc import Mapping
from dataclasses import KW_ONLY

from discreet import _checks
from discreet._exact import Number
from discreet._fields import Positive, PositiveCount, frozen
from discreet.accounting import PrivacyLoss
from discreet.accounting._analytic import gaussian_multiplier
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._gaussian import Gaussian, gaussian_term, stddev_for
from discreet.mechanisms._parts import Key
from discreet.mechanisms.thresholds._keys import FOR_KEYS, keys_part
from discreet.mechanisms.thresholds._noisy_counts import NoisyCounts, threshold_for
from discreet.noise import RoundedGaussianLaw


@frozen
class GaussianThreshold(NoisyCounts):
    """Adds rounded Gaussian noise of this ``stddev`` to each count, and shows the keys whose noisy
    count is ``threshold`` or more, in order, with that count. Absent keys are never shown.

    If a unit counts under many keys, it needs less noise than `LaplaceThreshold`: the noise grows
    with the root of the number of keys.

    Guarantee: the privacy loss of `Gaussian` noise for the L2 sensitivity, and a delta: the
    probability to show a key that only one unit has. It covers both relations. The noise is exact;
    the key and its count use the same draw. The running time is not covered. Wilkins, Kifer, Zhang
    and Karrer (2024); docs/proofs/terms.md.

    >>> from discreet import Unit
    >>> words = Bounded.keys(
    ...     lambda: {"ache": 410, "rash": 1}, per_unit=40, unit=Unit("patient_id"), name="words"
    ... )
    >>> mechanism = GaussianThreshold.for_epsilon(1, 1e-6, words)
    >>> mechanism.threshold, mechanism.error(0.95), mechanism.unseen(0.95)
    (156, 54, 200)
    >>> mechanism.privacy_loss(words).delta(1) <= 1e-6
    True
    """

    _: KW_ONLY
    stddev: Positive  # in the units of the counts
    threshold: PositiveCount

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "GaussianThreshold":
        """The mechanism whose release of these counts is (epsilon, delta)-DP: half of delta is for
        the noise, nearly half for the keys."""
        half = _checks.probability(delta=delta) / 2
        multiplier = gaussian_multiplier(_checks.positive(epsilon=epsilon), half)
        stddev = stddev_for(multiplier, keys_part(bounded).sensitivity.l2_squared)
        threshold = threshold_for(half * FOR_KEYS, RoundedGaussianLaw(stddev), bounded)
        return GaussianThreshold(stddev=stddev, threshold=threshold)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "GaussianThreshold":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``,
        and the smallest threshold that shows a unit's own keys with probability at most delta."""
        stddev = Gaussian.for_error(error, confidence).stddev
        threshold = threshold_for(
            _checks.probability(delta=delta), RoundedGaussianLaw(stddev), bounded
        )
        return GaussianThreshold(stddev=stddev, threshold=threshold)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Threshold` around an `accounting.Gaussian`; raises unless the threshold
        lies above the largest count of a unit under one key."""
        noise = gaussian_term(self.stddev, keys_part(bounded).sensitivity.l2_squared)
        return self._loss(noise, bounded)

    @property
    def _law(self) -> RoundedGaussianLaw:
        return RoundedGaussianLaw(self.stddev)
