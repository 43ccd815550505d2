"""Weights that broadcast over examples.

Each example gets its own copy of the weight, with a stride of 0 and so without more memory.
PyTorch's backward pass then computes each example's gradient.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named, tensors_in
from discreet.train._calls._in_place import changes_its_first
from discreet.train._forward._capture import Capture
from discreet.train._rules._gradients import DenseGradients, RowAligned, wide


def elementwise(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> Any:  # Any: what the function returns
    """Functions that broadcast their arguments, with data (example, ...)."""
    if changes_its_first(function) and capture.is_weight(args[0]):
        raise capture.refused_change(function, args[0])
    rank = max(each.dim() for each in tensors_in(args))
    return function(
        *(copied_per_example(capture, each, rank, capture.dim) for each in args), **keywords
    )


def joined(
    capture: Capture, function: Function, args: Args, keywords: Keywords
) -> Any:  # Any: as above
    """`torch.cat` and `torch.stack` along a dimension that is not that of examples."""
    given = named("tensors dim", args, keywords)
    along, rank = given.get("dim", given.get("axis", 0)), given["tensors"][0].dim()
    if function is not torch.stack and along % rank == capture.dim % rank:
        raise capture.refused(
            *weights_among(capture, given["tensors"]),
            why="is joined to data along the dimension of examples",
            mend="keep examples in the first dimension and join along another",
        )
    several = [copied_per_example(capture, each, rank, capture.dim) for each in given["tensors"]]
    return function(several, dim=along)


def copied_per_example(
    capture: Capture,
    value: Any,  # Any: any argument
    rank: int,
    dim: int = 0,
) -> Any:
    """A copy of a weight for each row; any other value as it is.

    The result broadcasts to data of this rank with rows in dimension ``dim``: there its length is
    the number of rows. If the weight itself has a row for each example there, it is not copied.
    """
    if not isinstance(value, Tensor) or not capture.is_weight(value):
        return value
    dim, shape = dim % rank if rank else 0, value.shape
    full = (*(1,) * (rank - value.dim()), *shape)
    if full[dim] == 1:
        whole = (*full[:dim], capture.rows, *full[dim + 1 :])
        own = value.detach().reshape(full).expand(whole).requires_grad_()
        capture.note_own(
            value, own, lambda rows: DenseGradients(wide(rows).movedim(dim, 0).reshape(-1, *shape))
        )
        return own
    if full[dim] != capture.rows:
        capture.refuse_other_rows(value, value)
    return rows_per_example(capture, value, dim - rank + value.dim())


def rows_per_example(capture: Capture, value: Tensor, place: int) -> Tensor:
    """A copy of a weight that has a row for each row of data in dimension ``place``."""
    own = value.detach().requires_grad_()
    if place:
        value = value.movedim(place, 0)
        capture.weights[id(value)] = value
    capture.note_own(value, own, lambda rows: RowAligned(wide(rows).movedim(place, 0)))
    return own


def examples_first(capture: Capture, value: Tensor, *near: object) -> Tensor:
    """Data with examples in the second dimension, transposed to have them first.

    A weight with length 1 in that dimension, such as a learned state, is copied for each example.
    """
    turned = value.transpose(0, 1)
    if not capture.is_weight(value):
        return turned
    if turned.shape[0] not in (1, capture.rows):
        capture.refuse_other_rows(turned, *near)
    capture.weights[id(turned)] = turned
    own: Tensor = copied_per_example(capture, turned, turned.dim())
    return own


def weights_among(capture: Capture, values: Iterable[Tensor]) -> list[Tensor]:
    return [each for each in values if capture.is_weight(each)]
