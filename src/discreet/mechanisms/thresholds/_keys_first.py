"""Private keys first, then further sums and quantiles of the released keys.

A threshold on noisy counts decides which keys are released. The other parts get noise for these
keys only. Given released keys that both of two neighbours have, a part is a vector of public length
on both, and no unit moves it by more than the sums of all keys. So each part costs what its noise
costs for that sensitivity, and the parts compose. The threshold's delta is the probability to
release a key that one of the two tables lacks: docs/proofs/terms.md, Threshold.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet import _checks
from discreet._arrays import FloatArray
from discreet._frozen import FrozenMapping
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._discrete_laplace import DiscreteLaplace
from discreet.mechanisms._gaussian import Gaussian
from discreet.mechanisms._parts import Key, KeysPart, Part, RowsPart, key_of
from discreet.mechanisms._rows import Grid, Rows
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.mechanisms.thresholds._gaussian_threshold import GaussianThreshold
from discreet.mechanisms.thresholds._laplace_threshold import LaplaceThreshold
from discreet.noise import Bits

_SEVERAL = (
    2  # groups: the number of released keys is unknown before, and no privacy loss depends on it
)


@dataclass(frozen=True, slots=True)
class SumsPart:
    """Whole numbers under private keys, for all keys that have a deciding count. The sensitivity is
    that of the vector of all keys that both of two neighbours have."""

    gives: ClassVar[str] = "sums under keys"

    name: str
    sensitivity: Sensitivity

    def checked(self, result: object) -> dict[Key, int]:
        """The keys and their numbers."""
        if not isinstance(result, Mapping):
            raise TypeError(f"part {self.name!r}: expected a mapping from keys to numbers")
        return {key: int(number) for key, number in _keyed(result)}

    def moves(self, one: Mapping[Key, int], other: Mapping[Key, int]) -> list[int]:
        """The differences of numbers under common keys, other than 0."""
        return [moved for key in _common(one, other) if (moved := abs(one[key] - other[key]))]


@dataclass(frozen=True, slots=True)
class ValuesPart:
    """Values on a public grid under private keys, for all keys that have a deciding count; one unit
    has at most ``per_unit`` of them in all. The sensitivity is that of their histogram: the number
    of times of each value and key that both of two neighbours have."""

    gives: ClassVar[str] = "values under keys"

    name: str
    grid: Grid
    per_unit: int
    sensitivity: Sensitivity

    def checked(self, result: object) -> dict[Key, FloatArray]:
        """The keys and their values."""
        if not isinstance(result, Mapping):
            raise TypeError(f"part {self.name!r}: expected a mapping from keys to values")
        return {key: np.asarray(values, dtype=np.float64) for key, values in _keyed(result)}

    def moves(self, one: Mapping[Key, FloatArray], other: Mapping[Key, FloatArray]) -> list[int]:
        """The differences between the two histograms under common keys, other than 0."""
        first, second = (
            Counter((key, value) for key in _common(one, other) for value in given[key].tolist())
            for given in (one, other)
        )
        return [moved for pair in first | second if (moved := abs(first[pair] - second[pair]))]

    @property
    def rows(self) -> RowsPart:
        """The part as rows of a key's number and a value, for several keys."""
        columns = (("group", Grid(0, _SEVERAL - 1)), ("value", self.grid))
        return RowsPart(self.name, columns, self.per_unit, self.sensitivity)


OtherMechanism = DiscreteLaplace | Gaussian | QuantileIntervals


@dataclass(frozen=True, slots=True)
class KeysFirst:
    """Releases the keys of the part ``deciding`` by a threshold, with their noisy counts, then the
    ``others`` for the released keys, each with fresh noise: sums as an array of one number for each
    released key, in order, quantiles as an array of shape (keys, 3).

    Guarantee: the sum of the mechanisms' privacy losses, by adaptive composition. The running time
    is not covered; it grows with the number of keys that have a count.
    """

    deciding: str
    threshold: LaplaceThreshold | GaussianThreshold
    others: Mapping[str, OtherMechanism]

    def __post_init__(self) -> None:
        """Store an immutable copy, so that it can't change between the privacy loss and the
        draw."""
        _checks.text(deciding=self.deciding)
        if not isinstance(self.threshold, LaplaceThreshold | GaussianThreshold):
            raise InvalidArgument("threshold: give a LaplaceThreshold or a GaussianThreshold")
        if not isinstance(self.others, Mapping):
            raise InvalidArgument("others: give a mapping from each part's name to a mechanism")
        held = dict(self.others.items())
        for name, mechanism in held.items():
            if not isinstance(mechanism, OtherMechanism):
                raise InvalidArgument(
                    f"others[{_checks.text(others=name)!r}] is of type {type(mechanism).__name__}: "
                    "give DiscreteLaplace, Gaussian or QuantileIntervals"
                )
        object.__setattr__(self, "others", FrozenMapping(dict(sorted(held.items()))))

    def privacy_loss(self, bounded: Bounded[Mapping[str, Any]]) -> PrivacyLoss:
        """The sum over the parts; raises unless each part has exactly one mechanism."""
        parts = {part.name for part in stated(bounded).parts}
        if not bounded.is_joint or parts != {self.deciding, *self.others}:
            raise InvalidArgument(
                f"KeysFirst has mechanisms for {sorted([self.deciding, *self.others])}, "
                f"{bounded.name!r} has the parts {sorted(parts)}: give one for each"
            )
        found = self.threshold.privacy_loss(bounded.only(self.deciding))
        for name, mechanism in self.others.items():
            found = found + mechanism.privacy_loss(alone(name, bounded))
        return found

    def sample(self, value: Mapping[str, Any], bits: Bits) -> Mapping[str, Any]:
        """The released keys with their counts, then the other parts for these keys."""
        counts = self.threshold.sample(value[self.deciding], bits)
        keys = list(counts)
        drawn = {
            name: _of_keys(mechanism, value[name], keys, bits)
            for name, mechanism in self.others.items()
        }
        return {self.deciding: counts, **drawn}


def _of_keys(
    mechanism: OtherMechanism, value: Mapping[Key, Any], keys: Sequence[Key], bits: Bits
) -> Any:  # Any: an array of integers or floats
    """The part's noisy numbers for these keys."""
    if not isinstance(mechanism, QuantileIntervals):
        sums = np.array([value[key] for key in keys], dtype=object)
        return mechanism.sample(sums, bits) if keys else sums
    if not keys:
        return np.empty((0, 3))
    own = [value[key] for key in keys]
    numbers = np.repeat(np.arange(len(keys)), [len(values) for values in own])
    columns = (("group", Grid(0, len(keys) - 1)), ("value", mechanism.grid))
    rows = Rows.of(np.column_stack([numbers, np.concatenate(own)]), columns, "values", {})
    return replace(mechanism, groups=len(keys)).sample(rows, bits)


def alone(name: str, bounded: Bounded[Any]) -> Bounded[Any]:  # Any: as in `Bounded`
    """The part's sensitivity for noise on a vector of public length; raises for other parts."""
    part = bounded.only(name).part
    if isinstance(part, SumsPart | KeysPart):
        listed: Part | RowsPart = Part(part.name, (1,), part.sensitivity, is_wide=True)
    elif isinstance(part, ValuesPart):
        listed = part.rows
    else:
        raise InvalidArgument(f"part {name!r}: give sums or values under private keys")
    return Bounded.together(
        bounded.compute, parts=(listed,), unit=bounded.unit, name=bounded.name, basis=bounded.basis
    ).only(name)


def _common(one: Mapping[Key, Any], other: Mapping[Key, Any]) -> list[Key]:
    return [key for key in one if key in other]


def _keyed(result: Mapping[Any, Any]) -> list[tuple[Key, Any]]:  # Any: checked here
    given = ((key_of(key), item) for key, item in result.items())
    return [(key, item) for key, item in given if key is not None]
