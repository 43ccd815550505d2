"""How tags follow functions of each entry, and changes of shape."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, tensors_in
from discreet.train._flow._call import (
    OVER_EXAMPLES,
    Call,
    ResultTags,
    of_all,
    of_first,
    sees_places,
)
from discreet.train._flow._places import BY_PLACE, differs
from discreet.train._tags._indices import NO_INDEX
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    ExampleRows,
    Tag,
    UntrackedRows,
    refitted,
)


@sees_places
def elementwise(call: Call) -> ResultTags:
    """Functions of each entry, with all arguments broadcast."""
    first = call.result if isinstance(call.result, Tensor) else tensors_in((call.result,))[0]
    return of_all(call.tags, (call.args, call.keywords), first.dim())


def of_the_first(call: Call) -> ResultTags:
    """Functions of each entry of the first argument; others must not depend on data."""
    if not isinstance(call.first, Tensor) or call.has_data_besides():
        return UntrackedRows("a function of data by data")
    return call.tags.of(call.first) or OUTSIDE_BATCH


def is_in(call: Call) -> ResultTags:
    """`isin`: if the values are assumed to be unique, equal values of two examples count as in."""
    if call.keywords.get("assume_unique", False) is not False:
        return UntrackedRows("isin with assume_unique, which compares examples")
    return of_the_first(call)


@sees_places
def copied(call: Call) -> ResultTags:
    """The same entries, perhaps elsewhere or of another type."""
    call.tags.indices.note_copy(call.first, call.result)
    return call.tags.of(call.first) or OUTSIDE_BATCH


@sees_places
def broadcast(call: Call) -> ResultTags:
    """`broadcast_tensors`: each argument expanded to the shape of all."""
    some = tensors_in(call.args)
    if not all(has_public_shape(call.tags.of(one)) for one in some):
        return [of_all(call.tags, some, result.dim()) for result in call.result]
    pairs = zip(some, call.result, strict=True)
    return [of_all(call.tags, (one,), result.dim()) or OUTSIDE_BATCH for one, result in pairs]


@sees_places
def one_hot(call: Call) -> ResultTags:
    """`F.one_hot`: without a number of classes, the largest label of all examples sets it."""
    if is_sized_by_labels(call):
        return UntrackedRows("one_hot without num_classes")
    given = call.named("tensor num_classes")
    data = given.get("tensor", given.get("input"))
    return call.tags.of(data) or OUTSIDE_BATCH if isinstance(data, Tensor) else None


def is_sized_by_labels(call: Call) -> bool:
    """Whether `F.one_hot` has no number of classes that is the same for all data."""
    number = call.named("tensor num_classes").get("num_classes", -1)
    return isinstance(number, Tensor) or number == -1


def has_public_shape(tag: Tag | None) -> bool:
    """Whether the number of rows depends on no values of examples."""
    if isinstance(tag, ExampleRows):
        return tag.layout.order.places is not None
    return not isinstance(tag, UntrackedRows)


@sees_places
def of_numbers(call: Call) -> ResultTags:
    """`new_tensor`: the first argument gives only its type."""
    return UntrackedRows("a new tensor of data") if call.has_data_besides() else OUTSIDE_BATCH


@sees_places
@of_first
def refit(call: Call, rows: ExampleRows) -> ResultTags:
    """Views and reshapes: the same entries in the same order."""
    if call.first.numel() != call.result.numel():
        return UntrackedRows("a view of another type")
    found = refitted(rows, call.first.shape, call.result.shape)
    return found or UntrackedRows("a reshape that splits examples")


@sees_places
def expanded(call: Call) -> ResultTags:
    """`expand`, `expand_as`: broadcast to a shape, which may depend on examples."""
    if all(has_public_shape(call.tags.of(one)) for one in call.others):
        return _expanded(call)
    return elementwise(call)


@of_first
def _expanded(call: Call, rows: ExampleRows) -> ResultTags:
    dim, layout = rows.dim - call.first.dim() + call.result.dim(), rows.layout
    if layout.length == 1 != call.result.shape[dim]:
        layout = RowLayout(layout.order, layout.outer, call.result.shape[dim])
    return ExampleRows(dim, layout)


@sees_places
@of_first
def permuted(call: Call, rows: ExampleRows) -> ResultTags:
    """Functions that permute dimensions; a call without data shows their order."""
    rest = tuple(map(_plain, call.args[1:]))
    named_ones = tuple((key, _plain(one)) for key, one in call.keywords.items() if key != "input")
    return rows.at(_order(call.function, call.first.dim(), rest, named_ones).index(rows.dim))


def _plain(dims: Any) -> Any:  # Any: a dimension, or several
    """Dimensions as numbers of Python's, which never change."""
    if isinstance(dims, Tensor):
        return int(dims)
    return tuple(map(_plain, dims)) if isinstance(dims, (list, tuple)) else dims


@cache
def _order(
    function: Function,
    rank: int,
    rest: Args,
    keywords: tuple[tuple[str, Any], ...],
) -> tuple[int, ...]:
    probe = torch.empty([*range(2, rank + 2)], device="meta")
    return tuple(n - 2 for n in function(probe, *rest, **dict(keywords)).shape)


@sees_places
@of_first
def repeated(call: Call, rows: ExampleRows) -> ResultTags:
    """`repeat` and `tile`: the whole tensor several times."""
    dim, layout = rows.dim - call.first.dim() + call.result.dim(), rows.layout
    length = call.first.shape[rows.dim]
    times = call.result.shape[dim] // length if length else 1
    return ExampleRows(dim, RowLayout(layout.order, layout.outer * times, layout.inner))


@sees_places
def interleaved(call: Call) -> ResultTags:
    """`repeat_interleave`: each entry several times in a row."""
    given = call.named("input repeats dim")
    data, times, dim = given["input"], given.get("repeats"), given.get("dim")
    if times is None:
        return UntrackedRows("repeats that depend on examples")
    tag = call.tags.of(data)
    if not isinstance(tag, ExampleRows):
        is_own = not isinstance(times, Tensor) or call.tags.of(times) in (None, tag)
        return tag if is_own else UntrackedRows("repeats that depend on other examples")
    if isinstance(dim, Tensor) or (dim is None and data.dim() > 1):
        return OVER_EXAMPLES
    dim = 0 if dim is None else dim % data.dim()
    if dim != tag.dim:
        depends = isinstance(times, Tensor) and call.tags.of(times) is not None
        return UntrackedRows("repeats that depend on examples") if depends else tag
    if isinstance(times, Tensor):
        if times.dim() and differs(call.tags, times, 0, tag.layout):
            return BY_PLACE
        if (own := call.tags.of(times)) is not None and own != ExampleRows(0, tag.layout):
            return UntrackedRows("repeats that depend on other examples")
        rows = torch.arange(data.shape[dim], device=times.device).repeat_interleave(times)
        order = call.tags.indices.picked(tag.layout, times, rows, within=NO_INDEX)
        return ExampleRows(dim, RowLayout(order))
    return ExampleRows(dim, RowLayout(tag.layout.order, tag.layout.outer, tag.layout.inner * times))
