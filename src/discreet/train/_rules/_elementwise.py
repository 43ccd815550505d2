"""Weights that broadcast over examples.

Each example gets its own copy of the weight (without memory of its own: a stride of 0), so that
PyTorch itself computes each example's gradient, and computes it once.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from discreet.train._capture import Args, Capture, Keywords, changes_its_first
from discreet.train._rules._arguments import named
from discreet.train._rules._gradients import Aligned, Written, wide


def elementwise(
    capture: Capture, function: Callable[..., Any], args: Args, keywords: Keywords
) -> Any:  # Any: what the function returns
    """Functions that broadcast their arguments: data (example, ...), weights of no more rank."""
    if changes_its_first(function) and capture.is_weight(args[0]):
        raise capture.refused_change(function, args[0])
    rank = max(each.dim() for each in tensors(args))
    only_data(capture, tensors(args), rank)
    return function(*(own_copy(capture, each, rank) for each in args), **keywords)


def joined(
    capture: Capture, function: Callable[..., Any], args: Args, keywords: Keywords
) -> Any:  # Any: as above
    """`torch.cat` and `torch.stack` along a dimension that is not that of examples."""
    given = named("tensors dim", args, keywords)
    along, rank = given.get("dim", given.get("axis", 0)), given["tensors"][0].dim()
    only_data(capture, given["tensors"], rank)
    if along % (rank + 1 if function is torch.stack else rank) == 0:
        raise capture.refused(
            *weights_among(capture, given["tensors"]),
            why="is joined to data along the dimension of examples",
            mend="keep examples in the first dimension and join along another",
        )
    return function([own_copy(capture, each, rank) for each in given["tensors"]], dim=along)


def own_copy(capture: Capture, value: Any, rank: int) -> Any:  # Any: any argument
    """Of a weight, a copy for each example, of this rank: (example, 1, ..., *weight)."""
    if not isinstance(value, Tensor) or not capture.is_weight(value):
        return value
    shape, own = value.shape, value.detach()
    if value.dim() == rank and value.shape[0] == capture.examples:
        own = own.requires_grad_()
        capture.note_own(value, own, lambda rows: Aligned(wide(rows)))
        return own
    if value.dim() == rank:
        own = own.expand(capture.examples, *shape[1:])
    else:
        own = own.expand(capture.examples, *(1,) * (rank - 1 - value.dim()), *shape)
    own = own.requires_grad_()
    capture.note_own(value, own, lambda rows: Written(wide(rows).reshape(-1, *shape)))
    return own


def own_second(capture: Capture, value: Tensor, *near: object) -> Tensor:
    """Data with examples in its second dimension, with them in the first; of a weight that has
    them there (what is learned, for all examples), each example's own copy."""
    turned = value.transpose(0, 1)
    if not capture.is_weight(value):
        return turned
    if turned.shape[0] not in (1, capture.examples):
        capture.by_example(turned, *near)
    capture.weights[id(turned)] = turned
    own: Tensor = own_copy(capture, turned, turned.dim())
    return own


def only_data(capture: Capture, values: Iterable[Tensor], rank: int) -> None:
    """Refuse data that is not by example, of this rank."""
    values = [*values]
    weights = weights_among(capture, values)
    for each in values:
        if not capture.is_shared(each):
            if each.dim() < rank:
                raise capture.refused(
                    *weights,
                    why=f"meets data of only {each.dim()} dimensions",
                    mend="keep examples in the first dimension; register constants as buffers",
                )
            capture.by_example(each, *weights)


def weights_among(capture: Capture, values: Iterable[Tensor]) -> list[Tensor]:
    """Those that are weights."""
    return [each for each in values if capture.is_weight(each)]


def tensors(values: Iterable[object]) -> Iterator[Tensor]:
    """Those that are tensors."""
    return (each for each in values if isinstance(each, Tensor))
