"""Counts under private keys, shown where they reach a threshold with their noise: Gaussian."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting, checks
from discreet.accounting import PrivacyLoss
from discreet.accounting.analytic import gaussian_multiplier
from discreet.exact import Number, decimal_down, decimal_up, root_down, shown
from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.parts import Key
from discreet.mechanisms.selection.gaps import smallest_gap
from discreet.mechanisms.thresholds.keys import keys_part, loss_chance
from discreet.mechanisms.thresholds.laplace_threshold import (
    shown_counts,
    threshold_for,
    threshold_loss,
)
from discreet.noise import Bits, RoundedGaussianLaw, half_width

FOR_KEYS = Fraction(999, 1000)  # of a half: what is left is for the accountant's grid
_SPARE = 1 + Fraction(1, 10**10)  # more than what rounding a multiplier down can take away


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GaussianThreshold:
    """Adds round(Z) to each count, Z being normal with this ``stddev``, and shows the keys whose
    noisy count is ``threshold`` or more, in order, with that count; absent keys never.

    For units with part in many keys it needs less noise than `LaplaceThreshold`: it grows with the
    root of their number.

    Guarantee: that of `Gaussian` noise for the L2 sensitivity, apart from delta: the probability
    that a key is shown which a single unit has, any of those that it may have. It holds when a
    unit comes, goes or is replaced. The noise is exact; key and count come from one draw. The
    running time is not covered. Wilkins, Kifer, Zhang and Karrer (2024); docs/proofs/terms.md.

    >>> from discreet.unit import Unit
    >>> words = Bounded.keys(
    ...     lambda: {"ache": 410, "rash": 1}, per_unit=40, unit=Unit("patient_id"), name="words"
    ... )
    >>> mechanism = GaussianThreshold.for_epsilon(1, 1e-6, words)
    >>> mechanism.threshold, mechanism.error(0.95), mechanism.unseen(0.95)
    (156, 54, 200)
    >>> mechanism.privacy_loss(words).delta(1) <= 1e-6
    True
    """

    stddev: Fraction
    threshold: int

    def __init__(self, *, stddev: Number, threshold: int) -> None:
        """Keep the standard deviation at its exact value; it is in the units of the counts."""
        object.__setattr__(self, "stddev", checks.positive(stddev=stddev))
        object.__setattr__(self, "threshold", checks.positive_count(threshold=threshold))

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "GaussianThreshold":
        """The mechanism whose release of these counts is (epsilon, delta)-DP, half of delta being
        for the noise and nearly half for the keys."""
        half = checks.probability(delta=delta) / 2
        multiplier = gaussian_multiplier(checks.positive(epsilon=epsilon), half)
        stddev = stddev_for(multiplier, keys_part(bounded).sensitivity.l2_squared)
        threshold = threshold_for(half * FOR_KEYS, RoundedGaussianLaw(stddev), bounded)
        return GaussianThreshold(stddev=stddev, threshold=threshold)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "GaussianThreshold":
        """The mechanism with the most noise whose error at this confidence is at most this, and
        the smallest threshold with which a unit's own keys are shown with this delta at most."""
        stddev = Gaussian.for_error(error, confidence).stddev
        threshold = threshold_for(
            checks.probability(delta=delta), RoundedGaussianLaw(stddev), bounded
        )
        return GaussianThreshold(stddev=stddev, threshold=threshold)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Threshold` around an `accounting.Gaussian`; raises unless the threshold
        lies above what a unit can have under one key."""
        noise = gaussian_term(self.stddev, keys_part(bounded).sensitivity.l2_squared)
        return threshold_loss(noise, RoundedGaussianLaw(self.stddev), self.threshold, bounded)

    def sample(self, value: Mapping[Key, int], bits: Bits) -> Mapping[Key, int]:
        """The keys that are shown, in order, with their noisy counts."""
        return shown_counts(value, RoundedGaussianLaw(self.stddev), self.threshold, bits)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with a count's noise in [-q, q] at this confidence, by its exact
        law, before it is known whether it is shown."""
        law = RoundedGaussianLaw(self.stddev)
        return half_width(law, checks.probability(confidence=confidence))

    def unseen(self, confidence: Number) -> int:
        """The smallest whole q such that any key with a count above q is shown at this confidence,
        each key by itself."""
        law = RoundedGaussianLaw(self.stddev)
        return smallest_gap(loss_chance(law, self.threshold), confidence)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return f"GaussianThreshold(stddev={shown(self.stddev)}, threshold={self.threshold})"


def stddev_for(multiplier: Fraction, l2_squared: int) -> Fraction:
    """A standard deviation of at least so many times the L2 sensitivity, and little more."""
    return decimal_up(root_down(multiplier**2 * l2_squared) * _SPARE, digits=9)


def gaussian_term(stddev: Fraction, l2_squared: int) -> accounting.Gaussian:
    """What noise of this standard deviation costs, the multiplier rounded down to 12 digits."""
    return accounting.Gaussian(decimal_down(root_down(stddev**2 / l2_squared), digits=12))
