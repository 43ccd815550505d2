"""Counts under private keys, shown where they reach a threshold with their noise: Laplace."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting, checks
from discreet.accounting import PrivacyLoss, Term, Threshold
from discreet.errors import InvalidArgument
from discreet.exact import Number, shown
from discreet.mechanisms.bounded import Bounded
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.parts import Key
from discreet.mechanisms.selection.gaps import smallest_gap
from discreet.mechanisms.thresholds.keys import (
    in_order,
    keys_of_one,
    keys_part,
    leak,
    loss_chance,
    smallest,
)
from discreet.noise import Bits, DiscreteLaplaceLaw, Law, NoiseLaw, half_width


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LaplaceThreshold:
    """Adds discrete Laplace noise of this ``scale`` to each count, and shows the keys whose noisy
    count is ``threshold`` or more, in order, with that count; absent keys never.

    Guarantee: epsilon = L1 sensitivity / scale, apart from delta: the probability that a key is
    shown which a single unit has, any of those that it may have. It holds when a unit comes, goes
    or is replaced. The noise is exact; key and count come from one draw. The running time is not
    covered. Korolova, Kenthapadi, Mishra and Ntoulas (2009); docs/proofs/terms.md.

    >>> from discreet.unit import Unit
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

    scale: Fraction
    threshold: int

    def __init__(self, *, scale: Number, threshold: int) -> None:
        """Keep the scale at its exact value; it is in the units of the counts."""
        object.__setattr__(self, "scale", checks.positive(scale=scale))
        object.__setattr__(self, "threshold", checks.positive_count(threshold=threshold))

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "LaplaceThreshold":
        """The mechanism whose release of these counts is (epsilon, delta)-DP, with the smallest
        threshold."""
        scale = keys_part(bounded).sensitivity.l1 / checks.positive(epsilon=epsilon)
        threshold = threshold_for(
            checks.probability(delta=delta), DiscreteLaplaceLaw(scale), bounded
        )
        return LaplaceThreshold(scale=scale, threshold=threshold)

    @staticmethod
    def for_error(
        error: Number, confidence: Number, *, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "LaplaceThreshold":
        """The mechanism with the most noise whose error at this confidence is at most this, and
        the smallest threshold for this delta."""
        scale = DiscreteLaplace.for_error(error, confidence).scale
        threshold = threshold_for(
            checks.probability(delta=delta), DiscreteLaplaceLaw(scale), bounded
        )
        return LaplaceThreshold(scale=scale, threshold=threshold)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Threshold` around an `accounting.DiscreteLaplace`; raises unless the
        threshold lies above what a unit can have under one key."""
        noise = accounting.DiscreteLaplace(self.scale, keys_part(bounded).sensitivity.l1)
        return threshold_loss(noise, DiscreteLaplaceLaw(self.scale), self.threshold, bounded)

    def sample(self, value: Mapping[Key, int], bits: Bits) -> Mapping[Key, int]:
        """The keys that are shown, in order, with their noisy counts."""
        return shown_counts(value, DiscreteLaplaceLaw(self.scale), self.threshold, bits)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with a count's noise in [-q, q] at this confidence, by its exact
        law, before it is known whether it is shown."""
        law = DiscreteLaplaceLaw(self.scale)
        return half_width(law, checks.probability(confidence=confidence))

    def unseen(self, confidence: Number) -> int:
        """The smallest whole q such that any key with a count above q is shown at this confidence,
        each key by itself."""
        return smallest_gap(loss_chance(DiscreteLaplaceLaw(self.scale), self.threshold), confidence)

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return f"LaplaceThreshold(scale={shown(self.scale)}, threshold={self.threshold})"


def shown_counts(value: Mapping[Key, int], law: Law, threshold: int, bits: Bits) -> dict[Key, int]:
    """The keys in order whose count with its noise is the threshold or more."""
    keys = in_order(value)
    noise = law.draws(bits, len(keys)).tolist()
    noisy = ((key, value[key] + own) for key, own in zip(keys, noise, strict=True))
    return {key: count for key, count in noisy if count >= threshold}


def threshold_loss(
    noise: Term, law: NoiseLaw, threshold: int, bounded: Bounded[Mapping[Key, int]]
) -> PrivacyLoss:
    """What the noise costs on all keys that a unit touches, and the leak of its own ones."""
    most = keys_part(bounded).sensitivity.linf
    if threshold <= most:
        raise InvalidArgument(
            f"threshold = {threshold}: give more than {most}, which a single unit can have"
        )
    own = leak(law, threshold - most, keys_of_one(bounded))
    return PrivacyLoss.of(Threshold(noise, own), unit=bounded.unit)


def threshold_for(delta: Fraction, law: NoiseLaw, bounded: Bounded[Mapping[Key, int]]) -> int:
    """The smallest threshold that shows a unit's own keys with at most this probability."""
    most, keys = keys_part(bounded).sensitivity.linf, keys_of_one(bounded)
    return most + smallest(lambda missing: leak(law, missing, keys) <= delta)
