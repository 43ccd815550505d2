"""How tags follow functions that split and join tensors."""

from dataclasses import replace

import torch

from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import (
    OVER_EXAMPLES,
    Call,
    FlowRule,
    ResultTags,
    of_all,
    of_first,
    sees_places,
)
from discreet.train._tags._layouts import ExampleOrder, RowLayout
from discreet.train._tags._tag import ExampleRows, OneExample, Tag, UntrackedRows


@sees_places
def joined(call: Call) -> ResultTags:
    """`torch.cat` along a dimension, and `torch.stack` along a new one."""
    given = call.named("tensors dim")
    parts, dim = [*given["tensors"]], given.get("dim", given.get("axis", 0))
    rank, is_new = call.result.dim(), call.function is torch.stack
    dim %= rank
    found = [call.tags.of(part) for part in parts]
    # 1. parts that belong to one example each
    alone = [tag for tag in found if isinstance(tag, OneExample)]
    if len(alone) == len(parts):
        return _of_alone(call, alone, [1 if is_new else part.shape[dim] for part in parts], dim)
    # 2. along a new dimension
    if is_new:
        tag = of_all(call.tags, parts, rank - 1)
        return tag.at(tag.dim + (tag.dim >= dim)) if isinstance(tag, ExampleRows) else tag
    # 3. along the dimension of examples, or another one
    layouts = [tag.layout for tag in found if isinstance(tag, ExampleRows) and tag.dim == dim]
    if not layouts:
        return of_all(call.tags, parts, rank)
    if len(layouts) < len(parts):
        return UntrackedRows("cat of rows of examples and others")
    return ExampleRows(dim, call.tags.joined(layouts))


def joined_along(dim: int) -> FlowRule:
    """The rule of functions that join tensors of this many dimensions or more along one of them."""

    @sees_places
    def tag_result(call: Call) -> ResultTags:
        parts = [*call.named("tensors")["tensors"]]
        if any(part.dim() != call.result.dim() for part in parts):
            return UntrackedRows("parts that get a new dimension: use stack")
        return joined(replace(call, function=torch.cat, args=(parts, dim), keywords={}))

    return tag_result


def _of_alone(call: Call, alone: list[OneExample], sizes: list[int], dim: int) -> Tag:
    """The tag of joined parts that belong to one example each."""
    every = call.tags.every
    if len({*alone}) == 1 and (len(alone) > 1 or alone[0].order.size > 1):
        return alone[0]
    if any(tag.order.places is None for tag in alone):
        return UntrackedRows("a list of rows that were picked")
    places = [(tag.order.places or ())[tag.place] for tag in alone]
    if all(size == 1 for size in sizes):
        return ExampleRows(dim, call.tags.in_places(tuple(places)))
    if len({*sizes}) == 1 and tuple(places) == every.places:
        return ExampleRows(dim, RowLayout(every, 1, sizes[0]))
    whose = torch.tensor(places).repeat_interleave(torch.tensor(sizes))
    return ExampleRows(dim, RowLayout(ExampleOrder(len(whose), whose)))


@sees_places
@of_first
def parted(call: Call, rows: ExampleRows) -> ResultTags:
    """Functions that split a tensor along a dimension."""
    given = call.named("input parts dim")
    dim = given.get("dim", given.get("axis", 0)) % call.first.dim()
    if rows.dim != dim:
        return rows
    parts = tensors_in((call.result,))
    if sum(part.shape[dim] for part in parts) != call.first.shape[dim]:
        return UntrackedRows("parts that overlap")
    found: list[Tag | None] = []
    start = 0
    for part in parts:
        stop = start + part.shape[dim]
        found.append(ExampleRows(dim, call.tags.sliced(rows.layout, start, stop)))
        start = stop
    return found


@sees_places
@of_first
def unbound(call: Call, rows: ExampleRows) -> ResultTags:
    """`unbind`: one tensor for each place of a dimension, which is removed."""
    dim = call.named("input dim").get("dim", 0) % call.first.dim()
    return [_at(rows, dim=dim, place=place) for place in range(len(call.result))]


@sees_places
@of_first
def selected(call: Call, rows: ExampleRows) -> ResultTags:
    """`select`: one place of a dimension, which is removed."""
    given = call.named("input dim index")
    dim = given["dim"] % call.first.dim()
    place = int(given["index"]) % max(1, call.first.shape[dim])
    return _at(rows, dim=dim, place=place)


def _at(rows: ExampleRows, *, dim: int, place: int) -> Tag:
    """The tag of one place of a dimension."""
    if rows.dim != dim:
        return rows.at(rows.dim - (dim < rows.dim))
    layout = rows.layout
    return OneExample(layout.order, place // layout.inner % max(1, layout.order.size))


@sees_places
@of_first
def narrowed(call: Call, rows: ExampleRows) -> ResultTags:
    """`narrow`: consecutive places of a dimension."""
    given = call.named("input dim start length")
    dim = given["dim"] % call.first.dim()
    if rows.dim != dim:
        return rows
    start = int(given["start"]) % max(1, call.first.shape[dim])
    return ExampleRows(dim, call.tags.sliced(rows.layout, start, start + given["length"]))


@sees_places
@of_first
def diagonal(call: Call, rows: ExampleRows) -> ResultTags:
    """`diagonal`: two dimensions become one, the last."""
    given = call.named("input offset dim1 dim2")
    rank = call.first.dim()
    both = {given.get("dim1", 0) % rank, given.get("dim2", 1) % rank}
    if rows.dim in both:
        return OVER_EXAMPLES
    return rows.at(rows.dim - sum(dim < rows.dim for dim in both))
