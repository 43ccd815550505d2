"""How tags follow functions of each place, and of shapes."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, Follow, Found, of_all, tensors
from discreet.train._tags import Layout, Lost, Rows, Tags, refitted


def elementwise(call: Call) -> Found:
    """Of each place by itself, all tensors being broadcast."""
    some = tensors((call.result,))
    return of_all(call.tags, (call.args, call.keywords), some[0].dim())


def of_the_first(call: Call) -> Found:
    """Of what is given first; what else is given is the same for all, or tells types only."""
    return call.tags.of(call.first)


def of_the_first_alone(call: Call) -> Found:
    """Of what is given first; all else must be the same for all data."""
    if call.has_data_besides():
        return Lost("a function of data by data")
    return of_the_first(call)


def refit(call: Call) -> Found:
    """The same numbers in the same order."""
    given = call.first
    tag = call.tags.of(given)
    if (along := call.tags.counts(given)) is not None:
        _count_on(call.tags, given, along, call.result)
    if not isinstance(tag, Rows):
        return tag
    if given.numel() != call.result.numel():
        return Lost("a view of another type")
    return refitted(tag, given.shape, call.result.shape) or Lost("a reshape that parts examples")


def _count_on(tags: Tags, given: Tensor, along: int, result: Tensor) -> None:
    """A tensor that counts along one dimension, all others being of length 1."""
    if given.numel() == given.shape[along] == result.numel():
        dims = [dim for dim, size in enumerate(result.shape) if size == result.numel()]
        if dims:
            tags.note_count(result, dims[0])


def expanded(call: Call) -> Found:
    """Broadcast to a shape of as many or more dimensions."""
    given = call.args[0]
    tag = call.tags.of(given)
    if not isinstance(tag, Rows):
        return tag
    dim = tag.dim - given.dim() + call.result.dim()
    layout = tag.layout
    if layout.length == 1 != call.result.shape[dim]:
        layout = Layout(layout.group, layout.outer, call.result.shape[dim])
    return Rows(dim, layout)


def permuted(function: Any) -> Follow:  # Any: a function of PyTorch's
    """Dimensions in another order, which the function itself shows."""

    @cache
    def order(
        rank: int, rest: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]
    ) -> tuple[int, ...]:
        probe = torch.empty([*range(2, rank + 2)], device="meta")
        return tuple(n - 2 for n in function(probe, *rest, **dict(keywords)).shape)

    def follow_it(call: Call) -> Found:
        given, rest = (call.args[0], call.args[1:]) if call.args else (call.keywords["input"], ())
        tag = call.tags.of(given)
        if not isinstance(tag, Rows):
            return tag
        hashed = tuple(tuple(one) if isinstance(one, list) else one for one in rest)
        named_ones = tuple((k, v) for k, v in call.keywords.items() if k != "input")
        return tag.at(order(given.dim(), hashed, named_ones).index(tag.dim))

    return follow_it


def repeated(call: Call) -> Found:
    """`repeat` and `tile`: all of a tensor several times."""
    data = call.args[0]
    tag = call.tags.of(data)
    if not isinstance(tag, Rows):
        return tag
    dim = tag.dim - data.dim() + call.result.dim()
    times = call.result.shape[dim] // data.shape[tag.dim] if data.shape[tag.dim] else 1
    layout = tag.layout
    return Rows(dim, Layout(layout.group, layout.outer * times, layout.inner))


def interleaved(call: Call) -> Found:
    """`repeat_interleave`: each place several times."""
    given = call.named("input repeats dim")
    data, times, dim = given["input"], given["repeats"], given.get("dim")
    tag = call.tags.of(data)
    if not isinstance(tag, Rows):
        return tag
    if dim is None and data.dim() > 1:
        return OVER_EXAMPLES
    dim = 0 if dim is None else dim % data.dim()
    if dim != tag.dim:
        return tag
    if isinstance(times, Tensor):
        rows = torch.arange(data.shape[dim], device=times.device).repeat_interleave(times)
        return Rows(dim, Layout(call.tags.picked(tag.layout, times, rows)))
    return Rows(dim, Layout(tag.layout.group, tag.layout.outer, tag.layout.inner * times))
