"""How tags follow parts of tensors, and what is joined of some."""

import torch
from torch import Tensor

from discreet.train._flow._call import Call, Follow, Found, of_all, tensors
from discreet.train._tags import Alone, Group, Layout, Lost, Rows, Tag, Tags


def joined(call: Call) -> Found:
    """`torch.cat`: along another dimension, or of all rows one after the other."""
    given = call.named("tensors dim")
    parts = [*given["tensors"]]
    dim = given.get("dim", given.get("axis", 0)) % call.result.dim()
    found = [call.tags.of(part) for part in parts]
    if all(isinstance(tag, Alone) for tag in found):
        return _of_alone(call.tags, found, [part.shape[dim] for part in parts], dim)
    if any(isinstance(tag, Rows) and tag.dim == dim for tag in found):
        layouts = [tag.layout for tag in found if isinstance(tag, Rows) and tag.dim == dim]
        if len(layouts) < len(parts):
            return Lost("cat of rows of examples and others")
        return Rows(dim, call.tags.joined(layouts))
    return of_all(call.tags, parts, call.result.dim())


def stacked(call: Call) -> Found:
    """`torch.stack`: one more dimension."""
    given = call.named("tensors dim")
    parts = [*given["tensors"]]
    dim = given.get("dim", given.get("axis", 0)) % call.result.dim()
    found = [call.tags.of(part) for part in parts]
    if all(isinstance(tag, Alone) for tag in found):
        return _of_alone(call.tags, found, [1] * len(parts), dim)
    tag = of_all(call.tags, parts, call.result.dim() - 1)
    return tag.at(tag.dim + (tag.dim >= dim)) if isinstance(tag, Rows) else tag


def _of_alone(tags: Tags, found: list[Tag | None], sizes: list[int], dim: int) -> Tag:
    """Of parts that are one example's each, one after the other."""
    alone = [tag for tag in found if isinstance(tag, Alone)]
    if len({*alone}) == 1 and alone[0].group.size > 1:
        return alone[0]
    if any(tag.group.places is None for tag in alone):
        return Lost("a list of rows that were picked")
    places = [(tag.group.places or ())[tag.place] for tag in alone]
    if all(size == 1 for size in sizes):
        return Rows(dim, tags.in_places(tuple(places)))
    if len({*sizes}) == 1 and tuple(places) == tags.every.places:
        return Rows(dim, Layout(tags.every, 1, sizes[0]))
    whose = torch.tensor(places).repeat_interleave(torch.tensor(sizes))
    return Rows(dim, Layout(Group(len(whose), whose)))


def parted(names: str) -> Follow:
    """Parts along a dimension."""

    def follow_it(call: Call) -> Found:
        given = call.named(names)
        data, dim = given["input"], given.get("dim", given.get("axis", 0)) % given["input"].dim()
        tag = call.tags.of(data)
        if not isinstance(tag, Rows) or tag.dim != dim:
            return tag
        found: list[Tag | None] = []
        start = 0
        for part in tensors((call.result,)):
            stop = start + part.shape[dim]
            found.append(Rows(dim, call.tags.sliced(tag.layout, start, stop)))
            start = stop
        return found

    return follow_it


def unbound(call: Call) -> Found:
    """Without a dimension, one tensor for each of its places."""
    given = call.named("input dim")
    data, dim = given["input"], given.get("dim", 0) % given["input"].dim()
    return [_selected(call.tags, data, dim, place) for place in range(len(call.result))]


def _selected(tags: Tags, data: Tensor, dim: int, place: int) -> Tag | None:
    tag = tags.of(data)
    if not isinstance(tag, Rows):
        return tag
    if tag.dim == dim:
        layout = tag.layout
        return Alone(layout.group, place // layout.inner % max(1, layout.group.size))
    return tag.at(tag.dim - (dim < tag.dim))


def selected(call: Call) -> Found:
    """`select`: one place of a dimension."""
    given = call.named("input dim index")
    data, dim, place = given["input"], given["dim"] % given["input"].dim(), given["index"]
    tag = call.tags.of(data)
    if isinstance(tag, Rows) and tag.dim == dim and isinstance(place, Tensor):
        return Lost("select by a tensor")
    return _selected(
        call.tags, data, dim, place % max(1, data.shape[dim]) if isinstance(place, int) else 0
    )


def narrowed(call: Call) -> Found:
    """`narrow`: some places of a dimension."""
    given = call.named("input dim start length")
    data, dim, start = given["input"], given["dim"] % given["input"].dim(), given["start"]
    tag = call.tags.of(data)
    if not isinstance(tag, Rows) or tag.dim != dim:
        return tag
    if isinstance(start, Tensor):
        return Lost("narrow by a tensor")
    start = start % max(1, data.shape[dim])
    return Rows(dim, call.tags.sliced(tag.layout, start, start + given["length"]))
