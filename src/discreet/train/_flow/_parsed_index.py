"""Indices of tensors, as Python writes them: numbers, slices, masks and tensors of indices."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from discreet.train._calls._arguments import tensors_in

MASKS = (torch.bool, torch.uint8)


class ParsedIndex:
    """An index, parsed for a tensor: its entry for each dimension.

    Attributes:
        numbers: by dimension, the index of a single entry; the dimension is removed.
        slices: by dimension, a slice, and the index of this dimension in the result, before tensors
            add theirs.
        tensors: by their first dimension, tensors of indices, and masks.
        new: the number of new dimensions (``None`` in the index).
        rank: the number of dimensions that the tensors give the result.
        start: where these dimensions begin in the result.
        is_unsupported: whether the index has entries that no rule covers.
    """

    def __init__(self, data: Tensor, index: Any) -> None:  # Any: as Python has it
        # 1. one entry for each dimension
        parts = list(index) if isinstance(index, tuple) else [index]
        parts = [torch.tensor(one) if _is_list_of_numbers(one) else one for one in parts]
        parts = [torch.as_tensor(one) if isinstance(one, np.ndarray) else one for one in parts]
        taken = sum(dims_of(one) for one in parts)
        where = next((n for n, one in enumerate(parts) if one is Ellipsis), len(parts))
        parts[where : where + 1] = [slice(None)] * (data.dim() - taken)
        # 2. the entries by kind
        self.numbers: dict[int, int | Tensor] = {}
        self.slices: dict[int, tuple[slice, int]] = {}
        self.tensors: dict[int, Tensor] = {}
        self.is_unsupported, self.new = False, 0
        dim, after = 0, 0  # `after`: the next dimension of the result, if tensors kept theirs
        among = list[int]()
        for one in parts:
            if one is None:
                after, self.new = after + 1, self.new + 1
            elif isinstance(one, slice):
                self.slices[dim] = one, after
                dim, after = dim + 1, after + 1
            elif isinstance(one, bool):
                self.is_unsupported = True
            elif _is_number(one):
                self.numbers[dim] = one
                dim += 1
            elif isinstance(one, Tensor) and one.dim():
                self.tensors[dim] = one
                width = dims_of(one)
                among += range(after, after + width)
                dim, after = dim + width, after + width
            else:
                self.is_unsupported = True
        # 3. where the dimensions of tensors stand in the result
        shapes = [one.shape if one.dtype != torch.bool else (0,) for one in self.tensors.values()]
        self.rank = max((len(shape) for shape in shapes), default=0)
        is_together = among == [*range(among[0], among[-1] + 1)] if among else True
        self.start = among[0] if among and is_together else 0
        self._among, self._is_together = among, is_together

    def tensors_in_slices(self) -> list[Tensor]:
        """All tensors that are ends or steps of slices."""
        return tensors_in(piece for piece, _ in self.slices.values())

    def scalars(self) -> list[Tensor]:
        """All tensors that are a single number: entries, and ends of slices."""
        return [*tensors_in(self.numbers.values()), *self.tensors_in_slices()]

    @property
    def rank_after(self) -> int:
        """The number of dimensions of the result."""
        return len(self.slices) + self.rank + self.new

    def after(self, dim: int) -> int:
        """The place in the result of a sliced dimension."""
        place = self.slices[dim][1]
        if not self._among:
            return place
        before = sum(each < place for each in self._among)
        moved = place - before
        return moved + self.rank if not self._is_together or moved >= self.start else moved


def _is_list_of_numbers(one: object) -> bool:
    return isinstance(one, (list, range)) and not tensors_in((one,))


def _is_number(one: object) -> bool:
    if isinstance(one, Tensor):
        return one.dim() == 0 and one.dtype not in MASKS
    return isinstance(one, int) or hasattr(one, "__index__")


def dims_of(one: object) -> int:
    """The number of dimensions to which an entry of an index applies."""
    if one is None or one is Ellipsis or isinstance(one, bool):
        return 0
    if isinstance(one, Tensor) and one.dtype in MASKS:
        return one.dim()
    return 1


def place_after(data: Tensor, index: Any, dim: int) -> int | None:  # Any: as Python has it
    """The place in `data[index]` of a dimension that the index leaves whole."""
    parsed = ParsedIndex(data, index)
    is_whole = dim in parsed.slices and parsed.slices[dim][0] == slice(None)
    return parsed.after(dim) if is_whole and not parsed.tensors else None
