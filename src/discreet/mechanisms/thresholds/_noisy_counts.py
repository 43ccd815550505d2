"""The base of mechanisms that show private keys whose noisy count reaches a threshold."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction

from discreet import _checks
from discreet._exact import Number
from discreet.accounting import PrivacyLoss, Term, Threshold
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded
from discreet.mechanisms._parts import Key
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.thresholds._keys import (
    failure_probability,
    in_order,
    keys_part,
    least_missing,
    loss_chance,
)
from discreet.noise import Bits, Law, NoiseLaw, half_width


class NoisyCounts(ABC):
    """Adds an independent draw of one law to each count, and shows the keys whose noisy count is
    the ``threshold`` or more, with that count."""

    __slots__ = ()

    threshold: int

    @property
    @abstractmethod
    def _law(self) -> NoiseLaw: ...

    def sample(self, value: Mapping[Key, int], bits: Bits) -> Mapping[Key, int]:
        """The keys that are shown, in order, with their noisy counts."""
        return shown_counts(value, self._law, self.threshold, bits)

    def error(self, confidence: Number) -> int:
        """The smallest whole q with a count's noise in [-q, q] at this confidence, by its exact
        law; not conditional on the key being shown."""
        return half_width(self._law, _checks.probability(confidence=confidence))

    def unseen(self, confidence: Number) -> int:
        """The smallest whole q such that a key with a count above q is shown at this confidence,
        each key by itself."""
        return smallest_gap(loss_chance(self._law, self.threshold), confidence)

    def _loss(self, noise: Term, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """The privacy loss of noise on all keys of a unit, plus the probability that one of its own
        keys is shown."""
        part = keys_part(bounded)
        most = part.sensitivity.linf
        if self.threshold <= most:
            raise InvalidArgument(
                f"threshold = {self.threshold}: give more than {most}, which a single unit can have"
            )
        own = failure_probability(self._law, self.threshold - most, part.per_unit)
        return PrivacyLoss.of(Threshold(noise, own), unit=bounded.unit)


def shown_counts(value: Mapping[Key, int], law: Law, threshold: int, bits: Bits) -> dict[Key, int]:
    """The keys, in order, whose noisy count is the threshold or more, with that count."""
    keys = in_order(value)
    noise = law.draws(bits, len(keys)).tolist()
    noisy = ((key, value[key] + own) for key, own in zip(keys, noise, strict=True))
    return {key: count for key, count in noisy if count >= threshold}


def threshold_for(delta: Fraction, law: NoiseLaw, bounded: Bounded[Mapping[Key, int]]) -> int:
    """The smallest threshold that shows a unit's own keys with at most this probability."""
    part = keys_part(bounded)
    found = least_missing(
        lambda missing: failure_probability(law, missing, part.per_unit), delta=delta
    )
    return part.sensitivity.linf + found
