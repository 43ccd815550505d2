"""Which examples each step sees, and what that costs: one object, so that the two can't differ.

A sampling is asked for a plan's public facts only (`Size`) to price a step, and for these, the
data's true size and secure bits to draw its batches. Batches come in rounds: the steps of one
round share their draws, such as the batches of a shuffled epoch; most have rounds of one step.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet import _checks
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

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Size:
    """What is public about the sizes: how many records are declared, and how many of them a batch
    is to have."""

    records: int
    batch: int

    def __post_init__(self) -> None:
        """Refuse batches that are larger than all records."""
        records = _checks.positive_count(records=self.records)
        batch = _checks.positive_count(batch=self.batch)
        if batch > records:
            raise InvalidArgument(f"batch = {batch}: give at most the records, {records}")

    @property
    def rate(self) -> Fraction:
        """The share of the records that a batch is to have, exactly."""
        return Fraction(self.batch, self.records)

    @property
    def batches(self) -> int:
        """How many batches all records fill, the last one perhaps not wholly."""
        return -(-self.records // self.batch)


class Declared(Enum):
    """What a declared number of records says of the true one."""

    ABOUT = "about as many as the data have"
    MOST = "at least as many as the data have"
    EXACT = "exactly as many as the data have"


class Sampling(Protocol):
    """A way to choose batches, with its price."""

    @property
    def change(self) -> Change:
        """How neighbouring data differ, for its price to hold."""
        ...

    @property
    def declared(self) -> Declared:
        """How the declared number of records relates to the true one, for its price to hold."""
        ...

    def round_steps(self, size: Size) -> int:
        """How many steps share their draws."""
        ...

    def epoch_steps(self, epochs: Fraction, size: Size) -> int:
        """In how many steps so many epochs are made."""
        ...

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """What so many steps cost, each of which costs ``step`` who is in its batch."""
        ...

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """The batches of a round, drawn anew: places among ``count`` examples, in order."""
        ...

    def explain(self, size: Size) -> str:
        """What is drawn, and what is assumed."""
        ...


class _Fresh:
    """Each step has draws of its own."""

    __slots__ = ()

    def round_steps(self, _size: Size) -> int:
        """One."""
        return 1

    def epoch_steps(self, epochs: Fraction, size: Size) -> int:
        """As many as it takes for batches to have that often as many examples as there are
        records, on average; an exact quotient, rounded up."""
        return ceil(epochs * size.records / size.batch)


class _InEpochs:
    """The batches of an epoch share their draws."""

    __slots__ = ()

    def round_steps(self, size: Size) -> int:
        """As many as batches are filled."""
        return size.batches

    def epoch_steps(self, epochs: Fraction, size: Size) -> int:
        """That many times a whole epoch's, rounded up."""
        return ceil(epochs * size.batches)


@dataclass(frozen=True, slots=True)
class PoissonSampling(_Fresh):
    """Each example is in a step's batch by itself, with the exact probability batch / records.

    The data may have another size than is declared, and that shows nowhere.

    >>> from discreet.accounting import Gaussian
    >>> PoissonSampling().privacy_loss(Gaussian(2), Size(records=930, batch=10), steps=5)
    5 * accounting.PoissonSampled(privacy_loss=accounting.Gaussian(multiplier=2), rate=1/93)
    """

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[Declared] = Declared.ABOUT

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """Poisson samples of this rate, one for each step."""
        return steps * PoissonSampled(step, size.rate)

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """One batch, of any size from 0 on."""
        return [_sampled(size, count, bits)]

    def explain(self, size: Size) -> str:
        """The rate."""
        return f"each with probability {size.batch} / {size.records}, independently"


@dataclass(frozen=True, slots=True)
class TruncatedPoissonSampling(_Fresh):
    """As `PoissonSampling`, but of more than ``most`` examples only so many stay, any of them
    being as likely: a batch that always fits.

    Its price counts on the data having at most as many records as are declared.
    """

    most: int

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[Declared] = Declared.MOST

    def __post_init__(self) -> None:
        """Refuse a batch that never has anything."""
        object.__setattr__(self, "most", _checks.positive_count(most=self.most))

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """Truncated Poisson samples of this rate, one for each step."""
        return steps * TruncatedPoisson(step, size.rate, most=self.most, records=size.records)

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """One batch, of at most ``most``."""
        places = _sampled(size, count, bits)
        if places.size > self.most:
            places = places[np.sort(sample_without_replacement(places.size, self.most, bits))]
        return [places]

    def explain(self, size: Size) -> str:
        """The rate, the cut, and what is counted on."""
        return (
            f"each with probability {size.batch} / {size.records}, independently, and of more than "
            f"{self.most} any {self.most} of them; the data have at most {size.records}"
        )


@dataclass(frozen=True, slots=True)
class WithoutReplacement(_Fresh):
    """Exactly ``batch`` examples in each step, all such sets being as likely.

    The data must have exactly the declared number of records. Neighbours replace a unit.
    """

    change: ClassVar[Change] = Change.REPLACE
    declared: ClassVar[Declared] = Declared.EXACT

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """Samples of this size, one for each step."""
        return steps * SampledWithoutReplacement(step, size.batch, size.records)

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """One batch of exactly that size."""
        return [np.sort(sample_without_replacement(count, size.batch, bits))]

    def explain(self, size: Size) -> str:
        """The two sizes."""
        return f"exactly {size.batch} of exactly {size.records}, all such sets being as likely"


@dataclass(frozen=True, slots=True)
class ShuffledBatches(_InEpochs):
    """Each epoch all examples in a new random order, cut into batches.

    The order is not counted on: an epoch costs as much as if it were told in which batch a unit
    is. The data must have exactly the declared number of records. Neighbours replace a unit.
    """

    change: ClassVar[Change] = Change.REPLACE
    declared: ClassVar[Declared] = Declared.EXACT

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """One step's for each epoch that is begun."""
        return -(-steps // size.batches) * Shuffled(step)

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """All examples; the last batch has what is left."""
        order = permutation(count, bits)
        return [np.sort(order[first : first + size.batch]) for first in range(0, count, size.batch)]

    def explain(self, size: Size) -> str:
        """The sizes, and that the order counts for nothing."""
        return (
            f"exactly {size.records} in a new order each epoch, in batches of {size.batch}; no "
            "gain from the order is counted on"
        )


@dataclass(frozen=True, slots=True)
class AllocatedBatches(_InEpochs):
    """Each epoch every example is in exactly one batch, drawn for it by itself, all batches of
    the epoch being as likely ("balls and bins").

    The data may have another size than is declared, and that shows nowhere.
    """

    change: ClassVar[Change] = Change.ADD_REMOVE
    declared: ClassVar[Declared] = Declared.ABOUT

    def privacy_loss(self, step: Term | PrivacyLoss, size: Size, steps: int) -> PrivacyLoss:
        """A random allocation for each epoch that is begun."""
        return -(-steps // size.batches) * RandomAllocation(step, size.batches)

    def round(self, size: Size, count: int, bits: Bits) -> list[Places]:
        """All examples, in batches of random sizes."""
        if size.batches == 1:
            return [np.arange(count, dtype=np.int64)]
        batch = UniformLaw(size.batches).draws(bits, count)
        return [np.flatnonzero(batch == number) for number in range(size.batches)]

    def explain(self, size: Size) -> str:
        """The number of batches."""
        return f"each epoch each in one of {size.batches} batches, drawn by itself"


def _sampled(size: Size, count: int, bits: Bits) -> Places:
    return np.flatnonzero(poisson_mask(size.rate, count, bits))
