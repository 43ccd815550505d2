"""How tags follow functions of each entry, and changes of shape."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, Follow, Found, of_all, tensors
from discreet.train._tags import (
    OUTSIDE_BATCH,
    ExampleRows,
    RowLayout,
    Tags,
    UnknownOwners,
    refitted,
)


def elementwise(call: Call) -> Found:
    """Functions of each entry, with all arguments broadcast."""
    some = tensors((call.result,))
    return of_all(call.tags, (call.args, call.keywords), some[0].dim())


def of_the_first(call: Call) -> Found:
    """Functions of the first argument; the others do not depend on data, or only give types."""
    return call.tags.of(call.first) or OUTSIDE_BATCH


def copied(call: Call) -> Found:
    """The same entries, perhaps elsewhere or of another type."""
    call.tags.note_copy(call.first, call.result)
    return call.tags.of(call.first) or OUTSIDE_BATCH


def of_the_first_alone(call: Call) -> Found:
    """Functions of the first argument; no other argument may depend on data."""
    if call.has_data_besides():
        return UnknownOwners("a function of data by data")
    return of_the_first(call)


def broadcast(call: Call) -> Found:
    """`broadcast_tensors`: each argument expanded to the shape of all."""
    found = []
    for given, result in zip(tensors(call.args), call.result, strict=True):
        tag = call.tags.of(given) or OUTSIDE_BATCH
        if isinstance(tag, ExampleRows):
            tag = tag.at(tag.dim - given.dim() + result.dim())
        found.append(tag)
    return [*found]


def of_numbers(call: Call) -> Found:
    """`new_tensor`: the first argument gives only its type."""
    if call.has_data_besides():
        return UnknownOwners("a new tensor of data")
    return OUTSIDE_BATCH


def refit(call: Call) -> Found:
    """Views and reshapes: the same entries in the same order."""
    given = call.first
    tag = call.tags.of(given)
    if (along := call.tags.counts(given)) is not None:
        _count_on(call.tags, given, along, call.result)
    if not isinstance(tag, ExampleRows):
        return tag
    if given.numel() != call.result.numel():
        return UnknownOwners("a view of another type")
    return refitted(tag, given.shape, call.result.shape) or UnknownOwners(
        "a reshape that splits examples"
    )


def _count_on(tags: Tags, given: Tensor, along: int, result: Tensor) -> None:
    """Note that a reshaped tensor still counts, if all other dimensions have length 1."""
    if given.numel() == given.shape[along] == result.numel():
        dims = [dim for dim, size in enumerate(result.shape) if size == result.numel()]
        if dims:
            tags.note_count(result, dims[0])


def expanded(call: Call) -> Found:
    """`expand`: broadcast to a shape of as many or more dimensions."""
    given = call.args[0]
    tag = call.tags.of(given)
    if not isinstance(tag, ExampleRows):
        return tag
    dim = tag.dim - given.dim() + call.result.dim()
    layout = tag.layout
    if layout.length == 1 != call.result.shape[dim]:
        layout = RowLayout(layout.order, layout.outer, call.result.shape[dim])
    return ExampleRows(dim, layout)


def permuted(function: Any) -> Follow:  # Any: a function of PyTorch's
    """The rule of a function that permutes dimensions; a call without data shows their order."""

    @cache
    def order(
        rank: int, rest: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]
    ) -> tuple[int, ...]:
        probe = torch.empty([*range(2, rank + 2)], device="meta")
        return tuple(n - 2 for n in function(probe, *rest, **dict(keywords)).shape)

    def follow_it(call: Call) -> Found:
        given, rest = (call.args[0], call.args[1:]) if call.args else (call.keywords["input"], ())
        tag = call.tags.of(given)
        if not isinstance(tag, ExampleRows):
            return tag
        hashed = tuple(tuple(one) if isinstance(one, list) else one for one in rest)
        named_ones = tuple((k, v) for k, v in call.keywords.items() if k != "input")
        return tag.at(order(given.dim(), hashed, named_ones).index(tag.dim))

    return follow_it


def repeated(call: Call) -> Found:
    """`repeat` and `tile`: the whole tensor several times."""
    data = call.args[0]
    tag = call.tags.of(data)
    if not isinstance(tag, ExampleRows):
        return tag
    dim = tag.dim - data.dim() + call.result.dim()
    times = call.result.shape[dim] // data.shape[tag.dim] if data.shape[tag.dim] else 1
    layout = tag.layout
    return ExampleRows(dim, RowLayout(layout.order, layout.outer * times, layout.inner))


def interleaved(call: Call) -> Found:
    """`repeat_interleave`: each entry several times in a row."""
    given = call.named("input repeats dim")
    data, times, dim = given["input"], given["repeats"], given.get("dim")
    tag = call.tags.of(data)
    if not isinstance(tag, ExampleRows):
        return tag
    if dim is None and data.dim() > 1:
        return OVER_EXAMPLES
    dim = 0 if dim is None else dim % data.dim()
    if dim != tag.dim:
        depends = isinstance(times, Tensor) and call.tags.of(times) is not None
        return UnknownOwners("repeats that depend on examples") if depends else tag
    if isinstance(times, Tensor):
        if (own := call.tags.of(times)) is not None and own != ExampleRows(0, tag.layout):
            return UnknownOwners("repeats that depend on other examples")
        rows = torch.arange(data.shape[dim], device=times.device).repeat_interleave(times)
        return ExampleRows(dim, RowLayout(call.tags.picked(tag.layout, times, rows)))
    return ExampleRows(dim, RowLayout(tag.layout.order, tag.layout.outer, tag.layout.inner * times))
