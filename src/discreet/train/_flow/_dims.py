"""How tags follow functions that act along some dimensions only."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, Follow, Found, of_all, tensors
from discreet.train._flow._shapes import elementwise
from discreet.train._tags import ExampleRows, Tag, UnknownOwners, merged


def along(
    names: str, *, default: Any = None, removes: bool = False, of: str = "dim"
) -> Follow:  # Any: dimensions
    """The rule of functions that mix entries along some dimensions, and may remove these."""

    def follow_it(call: Call) -> Found:
        given = call.named(names)
        data = given["input"]
        tag = of_all(call.tags, (call.args, call.keywords), data.dim())
        if not isinstance(tag, ExampleRows):
            return tag
        dims = given.get(of, given.get("axis", default))
        dims = None if isinstance(dims, bool) else dims
        if isinstance(dims, Tensor):  # such as `max` of two
            return elementwise(call)
        if dims is None:
            return OVER_EXAMPLES
        touched = {n % data.dim() for n in ((dims,) if isinstance(dims, int) else dims)}
        if tag.dim in touched or (not touched and removes):
            return OVER_EXAMPLES
        if any(each.dim() > data.dim() for each in call.others):
            return UnknownOwners("a function of data by data of more dimensions")
        some = tensors((call.result,))
        is_kept = not removes or given.get("keepdim", False)
        if some[0].dim() != data.dim() - (0 if is_kept else len(touched)):
            return UnknownOwners("a function that adds a dimension")
        return tag if is_kept else tag.at(tag.dim - sum(n < tag.dim for n in touched))

    return follow_it


def flipped(call: Call) -> Found:
    """`Tensor.flip`, with dimensions as single arguments or in a list."""
    dims = call.args[1:] if len(call.args) > 2 else call.args[1:2][0] if call.args[1:] else None
    dims = call.keywords.get("dims") if dims is None else dims
    return along("input dims", of="dims")(replace(call, args=(call.args[0], dims), keywords={}))


def sorted_out(call: Call) -> Found:
    """`sort` and `argsort`: in one dimension, their indices are a permutation."""
    if call.first.dim() == 1:
        indices = call.result if isinstance(call.result, Tensor) else call.result[1]
        call.tags.note_permutation(indices)
    return along("input dim descending", default=-1)(call)


def over_last(number: int) -> Follow:
    """The rule of functions of the last ``number`` dimensions; the result may have others there."""

    def follow_it(call: Call) -> Found:
        if call.has_data_besides():
            return UnknownOwners("a function of data by data")
        data = call.first
        return before_the_last(call.tags.of(data), data.dim(), number)

    return follow_it


def before_the_last(tag: Tag | None, rank: int, number: int) -> Tag | None:
    """The tag of a function of the last ``number`` dimensions."""
    return OVER_EXAMPLES if isinstance(tag, ExampleRows) and tag.dim >= rank - number else tag


def normalised(call: Call) -> Found:
    """Layer norms over the dimensions of ``normalized_shape``."""
    if call.has_data_besides():
        return UnknownOwners("a function of data by data")
    given = call.named("input normalized_shape")
    shape = given["normalized_shape"]
    number = 1 if isinstance(shape, int) else len(shape)
    return before_the_last(call.tags.of(given["input"]), given["input"].dim(), number)


def by_first(least: int = 1, *, data: int = 1) -> Follow:
    """The rule of functions that treat each entry of the first dimension by itself.

    Their first ``data`` arguments depend on examples, and have at least ``least`` dimensions.
    """

    def follow_it(call: Call) -> Found:
        if call.has_data_besides(data - 1):
            return UnknownOwners("a function of data by data")
        tags = (call.tags.of(each) for each in (call.first, *call.others[: data - 1]))
        tag = merged([(each, 0) for each in tags if each is not None], 0)
        is_over = isinstance(tag, ExampleRows) and (tag.dim > 0 or call.first.dim() < least)
        return OVER_EXAMPLES if is_over else tag

    return follow_it


def unfolded(call: Call) -> Found:
    """Windows: of images for `F.unfold`, along a dimension for `Tensor.unfold`."""
    names = "input dimension size step"
    if "dimension" not in call.keywords and len(call.args) < 4:
        return by_first(4)(call)
    return along(names, of="dimension")(call)


def padded(call: Call) -> Found:
    """Padding at both ends of the last dimensions."""
    given = call.named("input pad")
    data, number = given["input"], len(given["pad"]) // 2
    tag = call.tags.of(data)
    touched = [n for n in range(number) if any(given["pad"][2 * n : 2 * n + 2])]
    if isinstance(tag, ExampleRows) and data.dim() - 1 - tag.dim in touched:
        return OVER_EXAMPLES
    return tag
