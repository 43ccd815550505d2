"""How tags follow functions that mix entries along some dimensions only."""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

from torch import Tensor

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
from discreet.train._flow._places import BY_PLACE, differs
from discreet.train._flow._shapes import elementwise
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import ExampleRows, UntrackedRows, merged


def along(
    names: str, *, default: Any = None, removes: bool = False, of: str = "dim"
) -> FlowRule:  # Any: dimensions
    """The rule of functions that mix entries along given dimensions, and may remove these."""

    @sees_places
    def tag_result(call: Call) -> ResultTags:
        given = call.named(names)
        data = given["input"]
        tag = of_all(call.tags, (call.args, call.keywords), data.dim())
        if not isinstance(tag, ExampleRows):
            return tag
        # 1. the dimensions
        dims = given.get(of, given.get("axis", default))
        dims = None if isinstance(dims, bool) else dims
        if isinstance(dims, Tensor):  # such as `max` of two
            is_other = isinstance(call.result, Tensor) and removes
            return elementwise(call) if is_other else UntrackedRows("a dimension that is a tensor")
        if dims is None:
            return OVER_EXAMPLES
        touched = {n % data.dim() for n in ((dims,) if isinstance(dims, int) else dims)}
        if tag.dim in touched or not touched:
            return OVER_EXAMPLES
        # 2. the place of examples in the result
        if any(each.dim() > data.dim() for each in call.others):
            return UntrackedRows("a function of data by data of more dimensions")
        some = tensors_in((call.result,))
        is_kept = not removes or given.get("keepdim", False)
        if some[0].dim() != data.dim() - (0 if is_kept else len(touched)):
            return UntrackedRows("a function that adds a dimension")
        return tag if is_kept else tag.at(tag.dim - sum(n < tag.dim for n in touched))

    return tag_result


_areas = along("input x dim", default=-1, removes=True)


@sees_places
def areas(call: Call) -> ResultTags:
    """Areas: points in one dimension lie along ``dim``, and so along no row of examples."""
    given = call.named("input x dim")
    values: Tensor = given.get("input", given.get("y"))  # type: ignore[assignment]  # PyTorch has it
    points = given.get("x")
    if (
        isinstance(points, Tensor)
        and points.dim() < values.dim()
        and (call.tags.depends(points) or call.tags.draws.has(points))
    ):
        return UntrackedRows("trapezoid with points of data in fewer dimensions than the values")
    return _areas(call)


@sees_places
def flipped(call: Call) -> ResultTags:
    """`Tensor.flip`, with dimensions as single arguments or in a list."""
    dims = call.keywords.get("dims", call.args[1:])
    if len(dims) == 1 and not isinstance(dims[0], int):
        (dims,) = dims
    return along("input dims", of="dims")(replace(call, args=(call.args[0], dims), keywords={}))


def bilinear(call: Call) -> ResultTags:
    """`F.bilinear`: a form of the last dimensions of two tensors."""
    given = call.named("input1 input2 weight bias")
    some = [given["input1"], given["input2"]]
    if any(call.tags.depends(one) for one in call.others if all(one is not each for each in some)):
        return UntrackedRows("a function of data by data")
    tag = of_all(call.tags, some, call.result.dim())
    is_last = isinstance(tag, ExampleRows) and tag.dim == call.result.dim() - 1
    return OVER_EXAMPLES if is_last else tag


@sees_places
def sort(call: Call) -> ResultTags:
    """`sort` and `argsort`: in one dimension, their indices are a permutation, which picks the
    sorted values."""
    found = along("input dim descending", default=-1)(call)
    if call.first.dim() != 1:
        return found
    indices = call.result if isinstance(call.result, Tensor) else call.result[1]
    call.tags.indices.note_permutation(indices)
    tag = call.tags.of(call.first)
    if isinstance(call.result, Tensor) or not isinstance(tag, ExampleRows):
        return found
    order = call.tags.indices.picked(tag.layout, indices)
    return [ExampleRows(0, RowLayout(order)), UntrackedRows("sort over examples")]


def touching(dims: Callable[[Call], Container[int]]) -> FlowRule:
    """The rule of functions of one tensor that mix entries along these dimensions only."""

    @of_first
    def tag_result(call: Call, rows: ExampleRows) -> ResultTags:
        return OVER_EXAMPLES if rows.dim in dims(call) else rows

    return tag_result


def over_last(number: int) -> FlowRule:
    """The rule of functions of the last ``number`` dimensions; the result may have others there."""
    return touching(lambda call: range(call.first.dim() - number, call.first.dim()))


def by_first(least: int = 1, *, data: int = 1) -> FlowRule:
    """The rule of functions that treat each entry of the first dimension by itself.

    Their first ``data`` arguments depend on examples, and have at least ``least`` dimensions.
    """

    def tag_result(call: Call) -> ResultTags:
        if call.has_data_besides(data - 1):
            return UntrackedRows("a function of data by data")
        tags = (call.tags.of(each) for each in (call.first, *call.others[: data - 1]))
        tag = merged([(each, 0) for each in tags if each is not None], 0)
        if not isinstance(tag, ExampleRows):
            return tag
        if tag.dim > 0 or call.first.dim() < least:
            return OVER_EXAMPLES
        some = (call.first, *call.others[: data - 1])
        return BY_PLACE if any(differs(call.tags, one, 0, tag.layout) for one in some) else tag

    return tag_result


@sees_places
def locally_normalised(call: Call) -> ResultTags:
    """`F.local_response_norm`: its factors are numbers, and tensors might differ by place."""
    return UntrackedRows("a factor that is a tensor") if call.others else by_first(2)(call)


def unfolded(call: Call) -> ResultTags:
    """Windows: of images for `F.unfold`, along a dimension for `Tensor.unfold`."""
    if "dimension" not in call.keywords and len(call.args) < 4:
        return by_first(4)(call)
    return _windows(call)


@of_first
def _windows(call: Call, rows: ExampleRows) -> ResultTags:
    """`Tensor.unfold`: windows along one dimension; the entries of each are the last dimension."""
    dim = call.named("input dimension")["dimension"] % call.first.dim()
    return OVER_EXAMPLES if rows.dim == dim else rows


def normalised_dims(call: Call) -> range:
    """The dimensions of ``normalized_shape``."""
    rank, shape = call.first.dim(), call.named("input normalized_shape")["normalized_shape"]
    return range(rank - (1 if isinstance(shape, int) else len(shape)), rank)


def padded_dims(call: Call) -> set[int]:
    """The dimensions that `F.pad` makes longer, given at both ends from the last one on."""
    last, pad = call.first.dim() - 1, call.named("input pad")["pad"]
    return {last - n for n in range(len(pad) // 2) if any(pad[2 * n : 2 * n + 2])}
