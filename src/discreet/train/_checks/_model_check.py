"""Checks a model and its losses on made-up or public examples, before real ones of their shapes.

`ModelCheck` chooses how many examples are compared, by the memory that there is; the comparisons
themselves are in `_checking` and `_comparison`.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import ceil, sqrt
from typing import TypeGuard

import numpy as np
from torch import Tensor, nn

from discreet.errors import DiscreetError, InvalidArgument, Refused
from discreet.train._batches import _data as data
from discreet.train._batches._collated import Collated, Microbatch
from discreet.train._batches._data import Data
from discreet.train._batches._units import Units
from discreet.train._checks._checking import (
    check_among_many,
    check_padding,
    check_shared_draws,
    compare,
)
from discreet.train._checks._loss_identity import identity_of
from discreet.train._checks._made_up import Values, copies_of_first, in_shape, other_form, shapes
from discreet.train._checks._memory import room
from discreet.train._checks._microbatch import MicrobatchSize, unless_memory_runs_out
from discreet.train._clipped_sums._clipping import Clipping
from discreet.train._plans._plan import TrainingPlan
from discreet.train._plans._sampling import SizeDeclaration
from discreet.train._randomness._secret_draws import RefuseGenerators

Losses = Callable[[Microbatch], Tensor]
OfSize = Callable[[int], Microbatch]  # as many examples

MADE_UP = 5  # examples
_FEW = 2  # of each new length


@dataclass(frozen=True, slots=True, repr=False)
class PaddedLengths:
    """The lengths to which a microbatch's fields are padded."""

    of_fields: tuple[int, ...]

    def is_like(self, other: object) -> "TypeGuard[PaddedLengths]":
        """Whether the other has lengths of as many fields, at least one."""
        own = self.of_fields
        return isinstance(other, PaddedLengths) and 0 < len(own) == len(other.of_fields)

    def distance(self, other: "PaddedLengths") -> int:
        """How far apart the lengths of both are, in all."""
        pairs = zip(self.of_fields, other.of_fields, strict=True)
        return sum(abs(own - others) for own, others in pairs)


@dataclass(frozen=True, slots=True, repr=False)
class Public:
    """Public examples in the form of the data: two or more."""

    data: Data
    values: Values
    are_read_alike: bool = False  # by the same code as the data

    def microbatch_of(self, size: int) -> Microbatch:
        """As many of them, repeated if needed."""
        try:
            with RefuseGenerators() if self.are_read_alike else nullcontext():
                return data.microbatch_of(self.data, np.arange(size) % data.length(self.data))
        except DiscreetError:
            raise
        except Exception as error:
            raise Refused(
                f"{self.values.value} can't be collated: {error!r}; {self.values.advice}"
            ) from error

    def in_shape_of(self, microbatch: Microbatch) -> OfSize | None:
        """The same examples in the shapes of another microbatch, or None if its fields differ."""
        if in_shape(self.microbatch_of(1), copies_of_first(microbatch, 1)) is None:
            return None
        return lambda size: in_shape(self.microbatch_of(size), copies_of_first(microbatch, size))

    @contextmanager
    def naming_forms(self, microbatch: Microbatch) -> Iterator[None]:
        """Begin each refusal with the difference between the forms of data and public examples."""
        try:
            yield
        except (Refused, InvalidArgument) as error:
            difference = other_form(copies_of_first(microbatch, 1), self.microbatch_of(1))
            if difference is None:
                raise
            raise type(error)(f"{difference}: {error}") from error


@dataclass(frozen=True, slots=True, repr=False)
class ModelCheck:
    """Refuses a model or a loss that mixes examples.

    It compares a few examples, then as many as a batch has, if memory has room for them. A model
    for which memory has no room for two examples gets microbatches of one. Values come from
    ``like``, if it is given; otherwise they are made up.
    """

    model: nn.Module
    losses: Losses
    clipping: Clipping
    data: Data
    size: MicrobatchSize
    by_unit: bool
    rows: int = MADE_UP  # of a large batch, about
    most_rows: int = 0  # no batch has more
    whole: int = 0  # rows of each batch, if that is public
    like: Public | None = None
    hides_shapes: bool = False  # no error states the shapes of private items
    compared: set[Hashable] = field(init=False)  # shapes in which these losses were compared

    def __post_init__(self) -> None:
        """Find the shapes of earlier comparisons of the same losses."""
        compared = self.size.compared(identity_of(self.model, self.losses))
        object.__setattr__(self, "compared", compared)

    def first(self) -> None:
        """Check in the shapes of the public examples, or of the first item."""
        if self.like is None:
            self._check(partial(data.of_one, self.data))
        else:
            self._check(self.like.microbatch_of, self.like.values)

    def is_due(self, microbatch: Microbatch) -> bool:
        """Whether these losses were never compared in the microbatch's shapes and lengths."""
        return not {shapes(microbatch), self._lengths(microbatch)} <= self.compared

    def again(self, microbatch: Microbatch) -> None:
        """Check in the microbatch's shapes; its numbers are not used."""
        with self._naming_forms(microbatch):
            self._check(*self._in_shape_of(microbatch))

    def due(self, microbatch: Microbatch) -> None:
        """Check in the microbatch's shapes, or its padded lengths alone if only they are new."""
        if shapes(microbatch) in self.compared:
            self._check_lengths(*self._in_shape_of(microbatch))
        else:
            self.again(microbatch)

    def _in_shape_of(self, microbatch: Microbatch) -> tuple[OfSize, Values]:
        fitted = None if self.like is None else self.like.in_shape_of(microbatch)
        if self.like is None or fitted is None:
            made = Values.MADE_UP if self.like is None else Values.OF_DATA
            return partial(copies_of_first, microbatch), made
        return fitted, self.like.values

    def _naming_forms(self, microbatch: Microbatch) -> AbstractContextManager[None]:
        return nullcontext() if self.like is None else self.like.naming_forms(microbatch)

    def _lengths(self, microbatch: Microbatch) -> "PaddedLengths":
        given = self.data
        return PaddedLengths(given.lengths(microbatch) if isinstance(given, Collated) else ())

    def _check_lengths(self, examples: OfSize, values: Values) -> None:
        """Pad the same examples to these lengths, and to the nearest ones compared before."""
        lengths = self._lengths(examples(1))
        others = [one for one in self.compared if lengths.is_like(one)]
        if others:
            few = min(_FEW, self.size.rows)
            pads = partial(self._padded, min(others, key=lengths.distance).of_fields)
            while (
                unless_memory_runs_out(
                    partial(self._compare_padding, examples(few), values, pads), few
                )
                is None
            ):
                few = (few + 1) // 2
        self.compared.add(lengths)

    def _check(self, examples: OfSize, values: Values = Values.MADE_UP) -> None:
        # 1. a few examples, fewer if memory runs out
        few = MADE_UP
        compared = partial(self._compare, examples, values)
        while few > 1 and not unless_memory_runs_out(partial(compared, few), few):
            few = (few + 1) // 2
        # 2. the size of microbatches that fits into memory
        if few == 1:
            self.size.rows = 1
        elif not self.size.is_chosen:
            microbatch = examples(few)
            fits = room(self.model, lambda: self.losses(microbatch), few)
            self.size.rows = min(self.size.rows, fits or self.size.rows)
        # 3. as many as a microbatch has
        among_many = partial(self._compare_among_many, examples, values)
        while (many := min(self.size.rows, self.rows)) > few:
            if unless_memory_runs_out(partial(among_many, many), many):
                break
            self.size.rows = (many + 1) // 2
        # 4. as many as are left for the last microbatch
        rest = self.whole % self.size.rows
        if rest and self.whole > rest:
            self._draw_in_common(examples, values, rest)
        # 5. random numbers that all share: each batch must be one microbatch, also later on
        if self._draw_in_common(examples, values, few):
            self.size.least = self.most_rows
            self.size.shrink(self.size.rows)
        self.compared.add(shapes(examples(1)))
        self._check_lengths(examples, values)

    def _compare(self, examples: OfSize, values: Values, size: int) -> bool:
        """Return True: None means that memory ran out."""
        microbatch = examples(size)
        compare(
            self.model,
            self.losses,
            microbatch,
            self.clipping,
            by_unit=self.by_unit,
            hides_shapes=self.hides_shapes,
            values=values,
        )
        lengths = self._lengths(microbatch).of_fields
        if lengths:
            halves = partial(self._padded, [(one + 1) // 2 for one in lengths])
            self._compare_padding(microbatch, values, halves)
        return True

    def _padded(
        self, others: Sequence[int], microbatch: Microbatch
    ) -> tuple[Microbatch, Microbatch]:
        """The same examples padded to the microbatch's own lengths, and to others."""
        assert isinstance(self.data, Collated)
        own = self.data.lengths(microbatch)
        ends = [min(both) for both in zip(own, others, strict=True)]
        return (
            self.data.ended(microbatch, ends, own),
            self.data.ended(microbatch, ends, others),
        )

    def _compare_padding(
        self,
        microbatch: Microbatch,
        values: Values,
        padded: Callable[[Microbatch], tuple[Microbatch, Microbatch]],
    ) -> bool:
        """Return True: None means that memory ran out."""
        check_padding(
            self.model,
            self.losses,
            microbatch,
            padded,
            hides_shapes=self.hides_shapes,
            values=values,
        )
        return True

    def _compare_among_many(self, examples: OfSize, values: Values, size: int) -> bool:
        """Return True: None means that memory ran out."""
        check_among_many(
            self.model,
            self.losses,
            examples(size),
            self.clipping,
            hides_shapes=self.hides_shapes,
            values=values,
        )
        self._draw_in_common(examples, values, size)
        return True

    def _draw_in_common(self, examples: OfSize, values: Values, size: int) -> bool:
        """Compute with real random numbers; whether examples share some of them."""
        return check_shared_draws(
            self.model,
            self.losses,
            examples(size),
            self.clipping,
            hides_shapes=self.hides_shapes,
            values=values,
        )


def public_rows_of_a_batch(plan: TrainingPlan, given: Units | None) -> int:
    """The rows of each batch, or about as many; 0 if their number is random."""
    size = plan.phases[0].size
    is_public = plan.sampling.declared is SizeDeclaration.EXACT or size.batch == size.records
    return size.batch if is_public and given is None else 0


def most_rows_of_a_batch(plan: TrainingPlan, given: Units | None) -> int:
    """The rows that a batch may have at most."""
    return max(p.size.records for p in plan.phases) * (1 if given is None else given.most)


def rows_of_a_batch(plan: TrainingPlan, given: Units | None) -> int:
    """Rows of the largest batch, about: its mean and six standard deviations, or all."""
    batch = max(phase.size.batch for phase in plan.phases)
    of_units = min(batch + ceil(6 * sqrt(batch)), max(p.size.records for p in plan.phases))
    return of_units * (1 if given is None else given.most)
