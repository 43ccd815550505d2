"""How tags follow functions that split and join tensors."""

import torch
from torch import Tensor

from discreet.train._flow._call import Call, Follow, Found, of_all, tensors
from discreet.train._tags import (
    ExampleOrder,
    ExampleRows,
    OneExample,
    RowLayout,
    Tag,
    Tags,
    UnknownOwners,
)


def joined(call: Call) -> Found:
    """`torch.cat`, along the dimension of examples or another one."""
    given = call.named("tensors dim")
    parts = [*given["tensors"]]
    dim = given.get("dim", given.get("axis", 0)) % call.result.dim()
    found = [call.tags.of(part) for part in parts]
    if all(isinstance(tag, OneExample) for tag in found):
        return _of_alone(call.tags, found, [part.shape[dim] for part in parts], dim)
    if any(isinstance(tag, ExampleRows) and tag.dim == dim for tag in found):
        layouts = [tag.layout for tag in found if isinstance(tag, ExampleRows) and tag.dim == dim]
        if len(layouts) < len(parts):
            return UnknownOwners("cat of rows of examples and others")
        return ExampleRows(dim, call.tags.joined(layouts))
    return of_all(call.tags, parts, call.result.dim())


def stacked(call: Call) -> Found:
    """`torch.stack`, along a new dimension."""
    given = call.named("tensors dim")
    parts = [*given["tensors"]]
    dim = given.get("dim", given.get("axis", 0)) % call.result.dim()
    found = [call.tags.of(part) for part in parts]
    if all(isinstance(tag, OneExample) for tag in found):
        return _of_alone(call.tags, found, [1] * len(parts), dim)
    tag = of_all(call.tags, parts, call.result.dim() - 1)
    return tag.at(tag.dim + (tag.dim >= dim)) if isinstance(tag, ExampleRows) else tag


def _of_alone(tags: Tags, found: list[Tag | None], sizes: list[int], dim: int) -> Tag:
    """The tag of joined parts that belong to one example each."""
    alone = [tag for tag in found if isinstance(tag, OneExample)]
    if len({*alone}) == 1 and alone[0].order.size > 1:
        return alone[0]
    if any(tag.order.places is None for tag in alone):
        return UnknownOwners("a list of rows that were picked")
    places = [(tag.order.places or ())[tag.place] for tag in alone]
    if all(size == 1 for size in sizes):
        return ExampleRows(dim, tags.in_places(tuple(places)))
    if len({*sizes}) == 1 and tuple(places) == tags.every.places:
        return ExampleRows(dim, RowLayout(tags.every, 1, sizes[0]))
    whose = torch.tensor(places).repeat_interleave(torch.tensor(sizes))
    return ExampleRows(dim, RowLayout(ExampleOrder(len(whose), whose)))


def parted(names: str) -> Follow:
    """The rule of functions that split a tensor along a dimension."""

    def follow_it(call: Call) -> Found:
        given = call.named(names)
        data, dim = given["input"], given.get("dim", given.get("axis", 0)) % given["input"].dim()
        tag = call.tags.of(data)
        if not isinstance(tag, ExampleRows) or tag.dim != dim:
            return tag
        found: list[Tag | None] = []
        start = 0
        for part in tensors((call.result,)):
            stop = start + part.shape[dim]
            found.append(ExampleRows(dim, call.tags.sliced(tag.layout, start, stop)))
            start = stop
        return found

    return follow_it


def unbound(call: Call) -> Found:
    """`unbind`: one tensor for each place of a dimension, which is removed."""
    given = call.named("input dim")
    data, dim = given["input"], given.get("dim", 0) % given["input"].dim()
    return [_selected(call.tags, data, dim, place) for place in range(len(call.result))]


def _selected(tags: Tags, data: Tensor, dim: int, place: int) -> Tag | None:
    tag = tags.of(data)
    if not isinstance(tag, ExampleRows):
        return tag
    if tag.dim == dim:
        layout = tag.layout
        return OneExample(layout.order, place // layout.inner % max(1, layout.order.size))
    return tag.at(tag.dim - (dim < tag.dim))


def selected(call: Call) -> Found:
    """`select`: one place of a dimension, which is removed."""
    given = call.named("input dim index")
    data, dim, place = given["input"], given["dim"] % given["input"].dim(), given["index"]
    tag = call.tags.of(data)
    if isinstance(tag, ExampleRows) and tag.dim == dim and isinstance(place, Tensor):
        return UnknownOwners("select by a tensor")
    return _selected(
        call.tags, data, dim, place % max(1, data.shape[dim]) if isinstance(place, int) else 0
    )


def narrowed(call: Call) -> Found:
    """`narrow`: consecutive places of a dimension."""
    given = call.named("input dim start length")
    data, dim, start = given["input"], given["dim"] % given["input"].dim(), given["start"]
    tag = call.tags.of(data)
    if not isinstance(tag, ExampleRows) or tag.dim != dim:
        return tag
    if isinstance(start, Tensor):
        return UnknownOwners("narrow by a tensor")
    start = start % max(1, data.shape[dim])
    return ExampleRows(dim, call.tags.sliced(tag.layout, start, start + given["length"]))
