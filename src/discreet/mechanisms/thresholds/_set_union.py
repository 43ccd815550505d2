"""Set union: the keys that many units have, from the private sets of all units."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Annotated, Any, ClassVar, cast

from discreet import _checks
from discreet._exact import Number, decimal_up, shown
from discreet._fields import Positive, frozen
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Threshold
from discreet.accounting._analytic import gaussian_multiplier
from discreet.errors import InvalidArgument
from discreet.mechanisms._accuracy import at_error
from discreet.mechanisms._attempts import attempt
from discreet.mechanisms._bounded import ASSERTED, Bounded, stated, tables_of
from discreet.mechanisms._gaussian import gaussian_term, stddev_for
from discreet.mechanisms._ids import is_missing, plain
from discreet.mechanisms._parts import Key, KeysPart, Part, key_of
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.selection._gaps import smallest_gap
from discreet.mechanisms.thresholds._keys import (
    FOR_KEYS,
    failure_probability,
    least_missing,
    loss_chance,
)
from discreet.mechanisms.thresholds._noisy_counts import shown_counts
from discreet.noise import Bits, RoundedGaussianLaw

_WHOLE = 1 << 20  # steps
_MOST_KEYS = 1 << 24
_BLOCK = 32


@dataclass(frozen=True, slots=True)
class WeightsPart:
    """Weights under keys, in steps of 2^-20: each unit shares a weight of 1 evenly, in L2, among
    its keys, of which at most ``per_unit`` count."""

    gives: ClassVar[str] = "weights under keys"

    name: str
    per_unit: int
    sensitivity: Sensitivity

    def checked(self, result: object) -> dict[Key, int]:
        """The keys and their weights, without those that are 0."""
        return KeysPart(self.name, self.per_unit, self.sensitivity).checked(result)

    def moves(self, one: Mapping[Key, int], other: Mapping[Key, int]) -> list[int]:
        """The differences of weights, other than 0."""
        return KeysPart(self.name, self.per_unit, self.sensitivity).moves(one, other)


def sets_of_keys(
    sets: Callable[[], Mapping[Key, Iterable[Key]]],
    *,
    per_unit: int,
    unit: Unit,
    name: str,
    basis: str = ASSERTED,
) -> Bounded[Mapping[Key, int]]:
    """State the keys that each unit has, under the unit's id, for `SetUnion`.

    If a unit has more than ``per_unit`` different keys, the keys with the smallest hashes count; a
    hash depends on the key and the unit's id. Each of n counted keys gets the weight 1 / sqrt(n),
    rounded down to a multiple of 2^-20, so the squares of a unit's weights add up to at most 1.
    Sets without an id (None, NaN, an empty text) are left out.

    >>> words = sets_of_keys(
    ...     lambda: {1: ["ache", "rash"], 2: ["ache"]}, per_unit=20, unit=Unit("patient_id"),
    ...     name="words",
    ... )
    >>> words.compute()
    {'ache': 1790031, 'rash': 741455}
    """
    each = _checked_per_unit(per_unit)
    if not callable(sets):
        raise InvalidArgument(
            "sets: give a function without arguments, which runs after the charge"
        )
    moved = tables_of(unit)  # weights are not negative, so squares add
    sensitivity = Sensitivity(l0=moved * each, l2_squared=moved * _WHOLE**2, linf=_WHOLE)
    part = WeightsPart(_checks.text(name=name), each, sensitivity)
    joint = Bounded.together(
        lambda: {name: _weights(sets(), each)},  # a part of its own kind
        parts=(cast(Part, part),),
        unit=unit,
        name=name,
        basis=basis,
    )
    return cast(Bounded[Mapping[Key, int]], joint.only(name))


def _checked_per_unit(per_unit: int) -> int:
    each = _checks.positive_count(per_unit=per_unit)
    if each > _MOST_KEYS:
        raise InvalidArgument("per_unit: give at most 2^24")
    return each


@frozen
class SetUnion:
    """Adds up the weights that units give to their keys (`sets_of_keys`), adds rounded Gaussian
    noise to each sum, and shows the keys whose sum is ``threshold`` or more: only the keys, in
    order. Standard deviation and threshold are in units of one unit's whole weight.

    Guarantee: the privacy loss of Gaussian noise for an L2 sensitivity of 1 (the root of 2 for a
    replaced unit), and a delta: the probability to show a key that only one unit has. It covers
    both relations, for sets of at most ``per_unit`` keys. The weights of a unit don't depend on
    other units. The noise is exact. The running time is not covered. Gopi, Gulhane, Kulkarni, Shen,
    Shokouhi and Yekhanin (2020), the weighted Gaussian.

    >>> words = sets_of_keys(
    ...     lambda: {n: ["ache", f"word {n}"] for n in range(60)}, per_unit=20,
    ...     unit=Unit("patient_id"), name="words",
    ... )
    >>> mechanism = SetUnion.for_epsilon(1, 1e-6, words)
    >>> mechanism.privacy_loss(words).delta(1) <= 1e-6
    True
    >>> from discreet.audit import SeededBits
    >>> mechanism.sample(words.compute(), SeededBits(1))
    ('ache',)
    """

    _: KW_ONLY
    stddev: Positive
    threshold: Positive
    per_unit: Annotated[int, _checked_per_unit]

    @staticmethod
    def for_epsilon(
        epsilon: Number, delta: Number, bounded: Bounded[Mapping[Key, int]]
    ) -> "SetUnion":
        """The mechanism whose release of these keys is (epsilon, delta)-DP: half of delta is for
        the noise, nearly half for the keys."""
        part, half = _part(bounded), _checks.probability(delta=delta) / 2
        multiplier = gaussian_multiplier(_checks.positive(epsilon=epsilon), half)
        stddev = stddev_for(multiplier, part.sensitivity.l2_squared // _WHOLE**2)
        threshold = _threshold(stddev, half * FOR_KEYS, part.per_unit)
        return SetUnion(stddev=stddev, threshold=threshold, per_unit=part.per_unit)

    @staticmethod
    def for_error(error: Number, confidence: Number, *, delta: Number, per_unit: int) -> "SetUnion":
        """The mechanism with the most noise whose error at ``confidence`` is at most ``error``,
        and the smallest threshold that shows a unit's own keys with probability at most delta."""
        own, each = _checks.probability(delta=delta), _checked_per_unit(per_unit)

        def make(stddev: Fraction) -> SetUnion:
            threshold = _threshold(stddev, own, each)
            return SetUnion(stddev=stddev, threshold=threshold, per_unit=each)

        least = make(Fraction(1, _WHOLE)).error(confidence)
        if _checks.finite(error=error) < least:
            raise InvalidArgument(f"error = {error}: give {least} or above for this number of keys")
        return at_error(make, error, confidence)

    def privacy_loss(self, bounded: Bounded[Mapping[Key, int]]) -> PrivacyLoss:
        """One `accounting.Threshold` around an `accounting.Gaussian`; raises unless the sets have
        at most ``per_unit`` keys and the threshold lies above one unit's weight."""
        part = _part(bounded)
        if part.per_unit > self.per_unit or self.threshold <= 1:
            raise InvalidArgument(
                f"per_unit = {self.per_unit}, threshold = {shown(self.threshold)}: for "
                f"{bounded.name!r} give per_unit of at least {part.per_unit}, and a "
                "threshold above 1"
            )
        noise = gaussian_term(self.stddev * _WHOLE, part.sensitivity.l2_squared)
        own = _failure(self.stddev, _steps(self.threshold), part.per_unit)
        return PrivacyLoss.of(Threshold(noise, own), unit=bounded.unit)

    def sample(self, value: Mapping[Key, int], bits: Bits) -> tuple[Key, ...]:
        """The keys that are shown, in order."""
        law = RoundedGaussianLaw(self.stddev * _WHOLE)
        return tuple(shown_counts(value, law, _steps(self.threshold), bits))

    def error(self, confidence: Number) -> int:
        """The smallest whole q such that a key of more than q units is shown at this confidence,
        each key by itself, even if all these units have ``per_unit`` keys."""
        chance = loss_chance(RoundedGaussianLaw(self.stddev * _WHOLE), _steps(self.threshold))
        weight = _weight(self.per_unit)
        return smallest_gap(lambda units: chance(units * weight), confidence)


def _part(bounded: Bounded[Mapping[Key, int]]) -> WeightsPart:
    part = stated(bounded).part
    if not isinstance(part, WeightsPart):
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: give the keys of each unit, by sets_of_keys"
        )
    return part


def _weights(sets: Mapping[Key, Iterable[Key]], per_unit: int) -> dict[Key, int]:
    """The sums of all units' weights."""
    sums: dict[Key, int] = {}
    for unit, given in sets.items():
        keys: list[Key] = [] if is_missing(unit) else attempt(_keys, given, [])
        if len(keys) > per_unit:
            keys = sorted(keys, key=lambda key: _hash(unit, key))[:per_unit]
        for key in keys:
            sums[key] = sums.get(key, 0) + _weight(len(keys))
    return sums


def _keys(given: Any) -> list[Key]:  # Any: other types raise
    """A unit's keys, each once."""
    return [key for key in dict.fromkeys(map(key_of, given)) if key is not None]


def _hash(unit: Key, key: Key) -> tuple[bytes, str]:
    """The rank of a key among a unit's keys, independent of other units."""
    text = f"{_text(plain(unit))}, {_text(key)}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest(), text


def _text(key: Key) -> str:
    """A different text for each key; in hexadecimal, which has no limit of digits."""
    if isinstance(key, tuple):
        return f"({', '.join(map(_text, key))})"
    return hex(key) if isinstance(key, int) else ascii(key)


def _weight(keys: int) -> int:
    """The weight of a key of a unit with this number of keys: at most 2^20 / sqrt(keys)."""
    return isqrt(_WHOLE**2 // keys)


def _steps(threshold: Fraction) -> int:
    return ceil(threshold * _WHOLE)


def _failure(stddev: Fraction, threshold: int, per_unit: int) -> Fraction:
    """An upper bound on the probability that one of n keys of a single unit is shown, for the worst
    n up to ``per_unit``: n = 1, 2, ..., 31, then blocks of n with the weight of the smallest n."""
    law, worst, fewest = RoundedGaussianLaw(stddev * _WHOLE), Fraction(0), 1
    while fewest <= per_unit:
        most = min(per_unit, fewest * _BLOCK // (_BLOCK - 1))
        worst = max(worst, failure_probability(law, threshold - _weight(fewest), most))
        fewest = most + 1
    return worst


def _threshold(stddev: Fraction, delta: Fraction, per_unit: int) -> Fraction:
    """The smallest threshold with at most this failure probability, to 9 digits."""
    above = least_missing(lambda steps: _failure(stddev, _WHOLE + steps, per_unit), delta=delta)
    return decimal_up(1 + Fraction(above, _WHOLE), digits=9)
