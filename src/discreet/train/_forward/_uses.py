"""Uses of weights in a forward pass, and the compact form of each example's gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from discreet.train._tags._layouts import RowLayout

KEEP_FIRST = (
    "keep examples in the first dimension, such as (examples, time, features), or set "
    "batch_first=True"
)


class PerExampleGradients(Protocol):
    """For each example, one weight's gradient from one use of it, in a compact form.

    Elsewhere this is called a piece: a weight's gradient is the sum of the pieces of its uses.
    """

    def squared_norms(self) -> tuple[Tensor, "PerExampleGradients"]:
        """Upper bounds of the squared L2 norms, round-off included, (example,), and a piece.

        The piece has the same gradients. If the norms needed dense gradients and these are small,
        it holds the dense gradients in place of the data.
        """
        ...

    def rows(self, start: int, stop: int) -> Tensor:
        """Dense gradients of the examples from ``start`` to ``stop``: (example, *weight)."""
        ...

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """The sum over examples of gradients times factors: (*weight)."""
        ...

    def masked(self, kept: Tensor) -> "PerExampleGradients":
        """The same gradients, with zeros outside the mask, even in place of NaN."""
        ...


@dataclass(frozen=True, slots=True)
class Use:
    """One use of weights.

    Attributes:
        target: a result of the forward pass.
        shape: the shape to which the target's gradient is reshaped.
        makes: for each weight, a function that makes its piece from the target's gradient.
        layout: the layout of the pieces' rows, or None if row i is example i.
    """

    target: Tensor | GradientEdge
    shape: torch.Size
    makes: tuple[tuple[Tensor, Callable[[Tensor], PerExampleGradients]], ...]
    layout: RowLayout | None = None
