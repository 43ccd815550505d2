"""Looks at a model and its losses, on made-up examples, before real ones of the same shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor, nn

from discreet.train import _units
from discreet.train._checking import check, check_among_many, check_padding
from discreet.train._clipping import Clipping
from discreet.train._made_up import in_shape, repeated, shapes
from discreet.train._memory import room
from discreet.train._physical import Physical, unless_memory_runs_out
from discreet.train._units import Collated, Data, Part

Losses = Callable[[Part], Tensor]

MADE_UP = 5  # examples


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
    like: Data | None = None
    hides_shapes: bool = False  # in errors, of items that are private

    def first(self) -> None:
        """With the shapes of the first item, or with public examples."""
        if self.like is None:
            self._look(lambda size: _units.taken(self.data, np.zeros(size, np.int64)))
        else:
            self._look(self._public, uses_values=True)

    def is_due(self, part: Part) -> bool:
        """Whether the part's shapes are others than all that were looked at."""
        return shapes(part) not in self.physical.shapes

    def again(self, part: Part) -> None:
        """With the part's shapes; of its numbers none is used."""
        if self.like is None or in_shape(self._public(1), repeated(part, 1)) is None:
            self._look(partial(repeated, part))
        else:
            self._look(partial(self._in_shape, part), uses_values=True)

    def _public(self, size: int) -> Part:
        assert self.like is not None
        return _units.taken(self.like, np.arange(size) % _units.length(self.like))

    def _in_shape(self, part: Part, size: int) -> Part:
        return in_shape(self._public(size), repeated(part, size))

    def _look(self, like: Callable[[int], Part], *, uses_values: bool = False) -> None:
        size = MADE_UP
        alone = partial(self._is_checked, like, uses_values)
        while size > 1 and not unless_memory_runs_out(partial(alone, size), size):
            size = (size + 1) // 2
        if size == 1:
            self.physical.size = 1
        elif not self.physical.is_chosen:
            part = like(size)
            fits = room(self.model, lambda: self.losses(part), size)
            self.physical.size = min(self.physical.size, fits or self.physical.size)
        self._look_at_many(partial(self._is_checked_among_many, like, uses_values), size)
        self.physical.shapes.add(shapes(like(1)))

    def _look_at_many(self, looked: Callable[[int], bool], least: int) -> None:
        """At as many examples as are computed together; parts become smaller as in a step."""
        while (size := min(self.physical.size, self.rows)) > least:
            if unless_memory_runs_out(partial(looked, size), size):
                return
            self.physical.size = (size + 1) // 2

    def _is_checked(self, like: Callable[[int], Part], uses_values: bool, size: int) -> bool:  # noqa: FBT001  # for partial
        part = like(size)
        check(
            self.model,
            self.losses,
            part,
            self.clipping,
            by_person=self.by_person,
            hides_shapes=self.hides_shapes,
            uses_values=uses_values,
        )
        if isinstance(self.data, Collated) and self.data.pads:
            check_padding(
                self.model, self.losses, part, self.data.filled_up, uses_values=uses_values
            )
        return True

    def _is_checked_among_many(
        self,
        like: Callable[[int], Part],
        uses_values: bool,  # noqa: FBT001  # for partial
        size: int,
    ) -> bool:
        check_among_many(
            self.model,
            self.losses,
            like(size),
            self.clipping,
            hides_shapes=self.hides_shapes,
            uses_values=uses_values,
        )
        return True
