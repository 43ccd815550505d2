"""Looks at a model and its losses, on made-up examples, before real ones of the same shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt

import numpy as np
from torch import Tensor, nn

from discreet.errors import DiscreetError, Refused
from discreet.train import _units
from discreet.train._checking import check_among_many, check_padding, compare
from discreet.train._clipping import Clipping
from discreet.train._made_up import Values, in_shape, repeated, shapes
from discreet.train._memory import room
from discreet.train._physical import Physical, unless_memory_runs_out
from discreet.train._plan import TrainingPlan
from discreet.train._units import Collated, Data, Part, Persons

Losses = Callable[[Part], Tensor]

MADE_UP = 5  # examples


@dataclass(frozen=True, slots=True, repr=False)
class Public:
    """Public examples in the form of the data: two or more."""

    data: Data
    values: Values

    def taken(self, size: int) -> Part:
        """As many of them, again and again."""
        try:
            return _units.taken(self.data, np.arange(size) % _units.length(self.data))
        except DiscreetError:
            raise
        except Exception as error:
            raise Refused(
                f"{self.values.value} can't be collated: {error!r}; {self.values.advice}"
            ) from error

    def in_shape_of(self, part: Part) -> Callable[[int], Part] | None:
        """The same in the shapes of another part, or nothing if its fields are others."""
        if in_shape(self.taken(1), repeated(part, 1)) is None:
            return None
        return lambda size: in_shape(self.taken(size), repeated(part, size))


@dataclass(frozen=True, slots=True, repr=False)
class Looks:
    """Refuse a model or loss that mixes examples, by `check` on a few of them, and then on as many
    as a batch has and memory has room for; what has no room for two is computed one by one.

    The values are those of ``like``, public examples, if it is given; made up otherwise.
    """

    model: nn.Module
    losses: Losses
    clipping: Clipping
    data: Data
    physical: Physical
    by_person: bool
    rows: int = MADE_UP  # about as many as a batch has
    like: Public | None = None
    hides_shapes: bool = False  # in errors, of items that are private

    def first(self) -> None:
        """With the shapes of the first item, or with public examples."""
        if self.like is None:
            self._look(partial(_units.of_one, self.data))
        else:
            self._look(self.like.taken, self.like.values)

    def is_due(self, part: Part) -> bool:
        """Whether the part's shapes are others than all that were looked at."""
        return shapes(part) not in self.physical.shapes

    def again(self, part: Part) -> None:
        """With the part's shapes; of its numbers none is used."""
        fitted = None if self.like is None else self.like.in_shape_of(part)
        if self.like is None or fitted is None:
            self._look(partial(repeated, part))
        else:
            self._look(fitted, self.like.values)

    def _look(self, like: Callable[[int], Part], values: Values = Values.MADE_UP) -> None:
        size = MADE_UP
        alone = partial(self._is_checked, like, values)
        while size > 1 and not unless_memory_runs_out(partial(alone, size), size):
            size = (size + 1) // 2
        if size == 1:
            self.physical.size = 1
        elif not self.physical.is_chosen:
            part = like(size)
            fits = room(self.model, lambda: self.losses(part), size)
            self.physical.size = min(self.physical.size, fits or self.physical.size)
        self._look_at_many(partial(self._is_checked_among_many, like, values), size)
        self.physical.shapes.add(shapes(like(1)))

    def _look_at_many(self, looked: Callable[[int], bool], least: int) -> None:
        """At as many examples as are computed together; parts become smaller as in a step."""
        while (size := min(self.physical.size, self.rows)) > least:
            if unless_memory_runs_out(partial(looked, size), size):
                return
            self.physical.size = (size + 1) // 2

    def _is_checked(self, like: Callable[[int], Part], values: Values, size: int) -> bool:
        part = like(size)
        compare(
            self.model,
            self.losses,
            part,
            self.clipping,
            by_person=self.by_person,
            hides_shapes=self.hides_shapes,
            values=values,
        )
        if isinstance(self.data, Collated) and self.data.pads:
            check_padding(
                self.model,
                self.losses,
                part,
                self.data.filled_up,
                hides_shapes=self.hides_shapes,
                values=values,
            )
        return True

    def _is_checked_among_many(
        self, like: Callable[[int], Part], values: Values, size: int
    ) -> bool:
        check_among_many(
            self.model,
            self.losses,
            like(size),
            self.clipping,
            hides_shapes=self.hides_shapes,
            values=values,
        )
        return True


def rows_of_a_batch(plan: TrainingPlan, persons: Persons | None) -> int:
    """About how many rows the largest batch has: its mean, and six standard deviations at most."""
    batch = max(phase.size.batch for phase in plan.phases)
    units_in_it = min(batch + ceil(6 * sqrt(batch)), max(p.size.records for p in plan.phases))
    return units_in_it * (1 if persons is None else persons.most)
