"""Each row is multiplied by one of several matrices, as in mixtures of experts."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named
from discreet.train._forward._capture import Capture
from discreet.train._forward._uses import PerExampleGradients
from discreet.train._rules._gradients import SumOfOuter, wide


@dataclass(frozen=True, slots=True)
class GroupedProducts:
    """For each row, the outer product of its input and output gradient, in its group's matrix.

    Rows were sorted by group, so that they always have a layout, by which they become the gradients
    of examples before anything else is asked of them.
    """

    inputs: Tensor  # (row, in)
    outputs: Tensor  # (row, out)
    ends: tuple[int, ...]  # where each group's rows end
    shape: tuple[int, ...]  # of the weight: (group, in, out)

    def bounds(self) -> list[tuple[int, int]]:
        return [*zip((0, *self.ends[:-1]), self.ends, strict=True)]

    def of_each(self) -> list[SumOfOuter]:
        """The rows of each group, as sums over one step in time."""
        return [
            SumOfOuter(
                self.inputs[a:b, None], self.outputs[a:b, None], self.shape[1:], transposed=True
            )
            for a, b in self.bounds()
        ]


@dataclass(frozen=True, slots=True)
class StackedGradients:
    """Gradients of a weight (group, in, out), one piece for each matrix."""

    pieces: tuple[PerExampleGradients, ...]

    def squared_norms(self) -> tuple[Tensor, "StackedGradients"]:
        both = [piece.squared_norms() for piece in self.pieces]
        norms = torch.stack([norms for norms, _ in both]).sum(0)
        return norms, StackedGradients(tuple(piece for _, piece in both))

    def rows(self, start: int, stop: int) -> Tensor:
        return torch.stack([piece.rows(start, stop) for piece in self.pieces], 1)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        return torch.stack([piece.weighted_sum(factors) for piece in self.pieces])

    def masked(self, kept: Tensor) -> "StackedGradients":
        return StackedGradients(tuple(piece.masked(kept) for piece in self.pieces))


def grouped(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Any:
    """`F.grouped_mm`: rows (row, in), group after group, weight (group, in, out), and the ends of
    groups.

    Each row is multiplied by the matrix of its own key. If that is no group's number, its result is
    0, where PyTorch leaves memory as it is. The tag of other groups is lost.
    """
    given = named("input mat2 offs", args, keywords)
    data, weight, ends = given["input"], given["mat2"], given.get("offs")
    if weight.dim() != 3 or data.dim() != 2 or ends is None:
        return capture.otherwise(function, args, keywords)
    keys = capture.tags.keys_of_groups(data, ends)
    if keys is None:
        return capture.call(function, **given)
    # 1. the ends of groups, counted anew from the rows' own keys
    first, last = ((keys < least).sum() for least in (0, len(weight)))
    used = slice(int(first), int(last))
    counts = torch.bincount(keys[used], minlength=len(weight))
    ends = counts.cumsum(0, dtype=torch.int32)
    # 2. the products, and zeros for rows in no group
    result = capture.call(function, **given | {"input": data[used], "offs": ends})
    saved, shape = capture.saved(data), tuple(weight.shape)
    around = 0, 0, used.start, len(keys) - used.stop

    def piece(rows: Tensor) -> Any:  # Any: no gradients of examples yet
        outputs = F.pad(wide(rows), around)
        places = tuple(int(end) + used.start for end in ends)
        return GroupedProducts(wide(saved()), outputs, places, shape)

    capture.note(result, (weight, piece))
    return F.pad(result, around) if any(around) else result
