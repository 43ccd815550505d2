"""Ways to draw batches, each with its privacy loss, so that the two can't differ.

A sampling prices steps from a plan's public facts (`SamplingSize`). To draw batches it also gets
the data's true size and secure bits. The steps of one round share their draws, such as the batches
of a shuffled epoch; most samplings have rounds of one step.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import ClassVar, Protocol

import numpy as np

from discreet import _checks
from discreet._arrays import IndexArray
from discreet._unit import Change
from discreet.accounting import (
    PoissonSampled,
    PrivacyLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Shuffled,
    Term,
    TruncatedPoisson,
)
from discreet.errors import InvalidArgument
from discreet.noise import Bits, UniformLaw, permutation, poisson_mask, sample_without_replacement


@dataclass(frozen=True, slots=True)
class SamplingSize:
    """Public sizes: the declared number of records, and the expected size of a batch."""

    records: int
    batch: int

    def __post_init__(self) -> None:
        records = _checks.positive_count(records=self.records)
        batch = _checks.positive_count(batch=self.batch)
        if batch > records:
            raise InvalidArgument(f"batch = {batch}: give at most the records, {records}")

    @property
    def rate(self) -> Fraction:
        """The exact sampling rate, batch / records."""
        return Fraction(self.batch, self.records)

    @property
    def batches(self) -> int:
        """The number of batches that all records fill; the last one may be smaller."""
        return -(-self.records // self.batch)


class SizeDeclaration(Enum):
    """How the declared number of records relates to the true one."""

    ABOUT = "about as many as the data have"
    MOST = "at least as many as the data have"
    EXACT = "exactly as many as the data have"


class Sampling(Protocol):
    """A way to draw batches, with its privacy loss."""

    @property
    def change(self) -> Change:
        """The neighbouring data for which its privacy loss holds."""
        ...

    @property
    def declared(self) -> SizeDeclaration:
        """The declaration of the number of records that its privacy loss needs."""
        ...

    def round_steps(self, size: SamplingSize) -> int:
        """The number of steps in a round, which share their draws."""
        ...

    def epoch_steps(self, epochs: Fraction, size: SamplingSize) -> int:
        """The number of steps in this many epochs, rounded up."""
        ...

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        ...

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        ...

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        ...


class _Fresh:
    """Each step has draws of its own."""

    __slots__ = ()

    def round_steps(self, _size: SamplingSize) -> int:
        return 1

    def epoch_steps(self, epochs: Fraction, size: SamplingSize) -> int:
        return ceil(epochs * size.records / size.batch)


class _InEpochs:
    """The batches of an epoch share their draws."""

    __slots__ = ()

    def round_steps(self, size: SamplingSize) -> int:
        return size.batches

    def epoch_steps(self, epochs: Fraction, size: SamplingSize) -> int:
        return ceil(epochs * size.batches)


@dataclass(frozen=True, slots=True)
class PoissonSampling(_Fresh):
    """Each example is in a step's batch independently, with the exact probability batch / records.

    The data may have another size than declared; it shows nowhere.

    >>> from discreet.accounting import Gaussian
    >>> PoissonSampling().privacy_loss(Gaussian(2), SamplingSize(records=930, batch=10), steps=5)
    5 * accounting.PoissonSampled(privacy_loss=accounting.Gaussian(multiplier=2), rate=1/93)
    """

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[SizeDeclaration] = SizeDeclaration.ABOUT

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        return steps * PoissonSampled(step, size.rate)

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        return [_sampled(size, count, bits)]

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        return f"each with probability {size.batch} / {size.records}, independently"


@dataclass(frozen=True, slots=True)
class TruncatedPoissonSampling(_Fresh):
    """`PoissonSampling` with at most ``most`` examples in a batch: of more, a uniform subset.

    The data must have at most the declared number of records.
    """

    most: int

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[SizeDeclaration] = SizeDeclaration.MOST

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _checks.positive_count(most=self.most))

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        return steps * TruncatedPoisson(step, size.rate, most=self.most, records=size.records)

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        places = _sampled(size, count, bits)
        if places.size > self.most:
            places = places[np.sort(sample_without_replacement(places.size, self.most, bits))]
        return [places]

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        return (
            f"each with probability {size.batch} / {size.records}, independently, then a uniform "
            f"subset of {self.most} if there are more; the data have at most {size.records}"
        )


@dataclass(frozen=True, slots=True)
class WithoutReplacement(_Fresh):
    """Exactly ``batch`` examples in each step, drawn uniformly without replacement.

    The data must have exactly the declared number of records. Neighbours replace a unit.
    """

    change: ClassVar[Change] = Change.REPLACE
    declared: ClassVar[SizeDeclaration] = SizeDeclaration.EXACT

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        return steps * SampledWithoutReplacement(step, size.batch, size.records)

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        return [np.sort(sample_without_replacement(count, size.batch, bits))]

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        return f"exactly {size.batch} of exactly {size.records}, drawn uniformly"


@dataclass(frozen=True, slots=True)
class ShuffledBatches(_InEpochs):
    """All examples in each epoch, in a new random order, cut into batches.

    The privacy loss gains nothing from the order: an epoch costs as much as if the batch of each
    unit were public. The data must have exactly the declared number of records. Neighbours replace
    a unit.
    """

    change: ClassVar[Change] = Change.REPLACE
    declared: ClassVar[SizeDeclaration] = SizeDeclaration.EXACT

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        return -(-steps // size.batches) * Shuffled(step)

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        order = permutation(count, bits)
        return [np.sort(order[first : first + size.batch]) for first in range(0, count, size.batch)]

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        return (
            f"exactly {size.records} in a new order each epoch, in batches of {size.batch}; the "
            "random order is taken to gain no privacy"
        )


@dataclass(frozen=True, slots=True)
class AllocatedBatches(_InEpochs):
    """Each example is in one batch of each epoch, drawn uniformly and independently ("balls and
    bins").

    The data may have another size than declared; it shows nowhere.
    """

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[SizeDeclaration] = SizeDeclaration.ABOUT

    def privacy_loss(self, step: Term | PrivacyLoss, size: SamplingSize, steps: int) -> PrivacyLoss:
        """The privacy loss of ``steps`` steps; ``step`` is that of one for a unit in its batch."""
        return -(-steps // size.batches) * RandomAllocation(step, size.batches)

    def round(self, size: SamplingSize, count: int, bits: Bits) -> list[IndexArray]:
        """Draw the batches of a round: places among ``count`` examples, in order."""
        if size.batches == 1:
            return [np.arange(count, dtype=np.int64)]
        batch = UniformLaw(size.batches).draws(bits, count)
        return [np.flatnonzero(batch == number) for number in range(size.batches)]

    def explain(self, size: SamplingSize) -> str:
        """The law of batches, and its assumptions, in words."""
        return f"each in one of {size.batches} batches of an epoch, drawn independently"


def _sampled(size: SamplingSize, count: int, bits: Bits) -> IndexArray:
    return np.flatnonzero(poisson_mask(size.rate, count, bits))
