"""Which example each row belongs to: orders of examples, and layouts of rows."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExampleOrder:
    """An order of examples. Two orders count as the same only if they are one object.

    Attributes:
        size: the number of places.
        examples: the example of each place, (place,), or None if place i is example i.
        places: the places in the batch, if they depend on no data.
        layout: the layout from which rows were picked, if they were picked.
    """

    size: int
    examples: Tensor | None = None
    places: tuple[int, ...] | None = None
    layout: "RowLayout | None" = None

    def example_of_row(self, device: torch.device) -> Tensor:
        """The example of each place: (place,)."""
        if self.examples is None:
            return torch.arange(self.size, device=device)
        return self.examples.to(device)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The rows of one dimension: all places of an order, each repeated ``inner`` times in a row,
    and the whole repeated ``outer`` times."""

    order: ExampleOrder
    outer: int = 1
    inner: int = 1

    @property
    def length(self) -> int:
        return self.outer * self.order.size * self.inner

    @property
    def is_plain(self) -> bool:
        """Whether row i is example i."""
        return self.order.examples is None and self.outer == self.inner == 1

    def example_of_row(self, device: torch.device) -> Tensor:
        """The example of each row: (row,)."""
        each = self.order.example_of_row(device)
        return each.repeat_interleave(self.inner).repeat(self.outer)
