"""Looks at a model and its losses, on made-up examples, before real ones of the same shapes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor, nn

from discreet.train import units
from discreet.train.checking import check, check_padding, repeated, shapes
from discreet.train.clipping import Clipping
from discreet.train.memory import room
from discreet.train.physical import Physical, unless_memory_runs_out
from discreet.train.units import Collated, Data, Part

Losses = Callable[[Part], Tensor]

MADE_UP = 5  # examples


@dataclass(frozen=True, slots=True, repr=False)
class Looks:
    """Refuse a model or loss that mixes examples, by `check` on as many as fit into memory; what
    has no room for two is computed one by one."""

    model: nn.Module
    losses: Losses
    clipping: Clipping
    data: Data
    physical: Physical
    by_person: bool
    hides_shapes: bool = False  # in errors, of items that are private

    def first(self) -> None:
        """With the shapes of the first item."""
        self._look(lambda size: units.taken(self.data, np.zeros(size, np.int64)))

    def is_due(self, part: Part) -> bool:
        """Whether the part's shapes are others than all that were looked at."""
        return shapes(part) not in self.physical.shapes

    def again(self, part: Part) -> None:
        """With the part's shapes; of its numbers none is used."""
        self._look(partial(repeated, part))

    def _look(self, like: Callable[[int], Part]) -> None:
        size = MADE_UP
        while size > 1 and not unless_memory_runs_out(partial(self._is_checked, like, size), size):
            size = (size + 1) // 2
        if size == 1:
            self.physical.size = 1
        elif not self.physical.is_chosen:
            part = like(size)
            fits = room(self.model, lambda: self.losses(part), size)
            self.physical.size = min(self.physical.size, fits or self.physical.size)
        self.physical.shapes.add(shapes(like(1)))

    def _is_checked(self, like: Callable[[int], Part], size: int) -> bool:
        part = like(size)
        check(
            self.model,
            self.losses,
            part,
            self.clipping,
            by_person=self.by_person,
            hides_shapes=self.hides_shapes,
        )
        if isinstance(self.data, Collated) and self.data.pads:
            check_padding(self.model, self.losses, part, self.data.filled_up)
        return True
