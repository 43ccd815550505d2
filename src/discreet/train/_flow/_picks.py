"""How tags follow rows that are selected by data, and rows that are put back."""

from dataclasses import replace

import torch
from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, ResultTags, name_of, of_all, sees_places
from discreet.train._flow._indexing import getitem
from discreet.train._flow._places import BY_PLACE, ROW_NUMBERS
from discreet.train._flow._shapes import elementwise
from discreet.train._flow._writing import index_put
from discreet.train._tags._tag import ExampleRows, UntrackedRows

_SCATTERED = "input dim index src"
_COMPARISONS = "eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__"
COMPARISONS = frozenset(
    getattr(owner, name)
    for owner in (torch, Tensor)
    for name in _COMPARISONS.split()
    if hasattr(owner, name)
)


def note_mask(call: Call) -> None:
    """Note a mask that compares a tensor with another one or a number, as `keys == 2`.

    If it is computed twice, both pick the same rows.
    """
    is_plain = len(call.args) == 2 and not call.keywords
    if is_plain and all(isinstance(one, (Tensor, int, float)) for one in call.args):
        call.tags.indices.note_mask(call.result, name_of(call.function).strip("_"), call.args)


@sees_places
def mask_selected(call: Call) -> ResultTags:
    """`masked_select`: as an index by a mask."""
    given = call.named("input mask")
    data, mask = given["input"], given["mask"]
    if data.shape != mask.shape:
        return UntrackedRows("masked_select of another shape")
    return getitem(replace(call, args=(data, mask), keywords={}))


@sees_places
def chosen(call: Call) -> ResultTags:
    """`index_select`: rows of a dimension."""
    given = call.named("input dim index")
    data, dim, index = given["input"], given["dim"] % given["input"].dim(), given["index"]
    where_to = (*[slice(None)] * dim, index)
    return getitem(replace(call, args=(data, where_to), keywords={}))


@sees_places
def gathered(call: Call) -> ResultTags:
    """`gather`: an index for each entry, along one dimension."""
    given = call.named("input dim index")
    data, index = given["input"], given.get("index", given.get("indices"))
    dim = given.get("dim")
    if dim is None:
        return OVER_EXAMPLES
    if data.dim() == 1:
        return getitem(replace(call, args=(data, index), keywords={}))
    own = call.tags.of(index) if isinstance(index, Tensor) else None
    if isinstance(own, ExampleRows) and own.dim == dim % data.dim() and not _varies(call, data):
        return own  # each row takes its entries from anywhere in a table of all
    return _entry_by_entry(call, (data, index), dim)


def _varies(call: Call, table: Tensor) -> bool:
    """Whether a tensor depends on examples, or on random numbers."""
    return call.tags.depends(table) or call.tags.draws.has(table)


@sees_places
def taken_along(call: Call) -> ResultTags:
    """`take_along_dim`: as `gather`, with other names."""
    given = call.named("input indices dim")
    dim = given.get("dim")
    if isinstance(dim, Tensor):
        return UntrackedRows("a dimension that is a tensor")
    return gathered(replace(call, args=(given["input"], dim, given["indices"]), keywords={}))


@sees_places
def scattered(call: Call) -> ResultTags:
    """`scatter` and the like: the reverse of `gather`."""
    given = call.named("input dim index src")
    some = (given["input"], given["index"], given.get("src", given.get("value")))
    return _named(call, _entry_by_entry(call, some, given["dim"]))


def _entry_by_entry(call: Call, some: tuple[object, ...], dim: int) -> ResultTags:
    """The tag of a result whose entries come from other places along a dimension."""
    tag = of_all(call.tags, some, call.result.dim())
    if not isinstance(tag, ExampleRows):
        return tag
    if tag.dim == dim % call.result.dim():
        return OVER_EXAMPLES
    index = some[1]  # it is not broadcast: rows behind its last one are left out
    is_whole = isinstance(index, Tensor) and index.shape[tag.dim] == call.result.shape[tag.dim]
    return tag if is_whole else BY_PLACE


@sees_places
def inverse_scattered(call: Call) -> ResultTags:
    """`scatter_`: if 0, 1, 2, ... is scattered by a permutation, the result is its inverse."""
    given = call.named(_SCATTERED)
    source, index = given.get("src"), given["index"]
    if (
        isinstance(source, Tensor)
        and call.tags.indices.counts(source) == 0
        and source.shape == index.shape == call.result.shape
        and len(call.args) <= len(_SCATTERED.split())
        and "reduce" not in call.keywords
    ):
        call.tags.indices.note_inverse(call.result, index)
        return UntrackedRows("an order of examples")
    return scattered(call)


@sees_places
def index_added(call: Call) -> ResultTags:
    """`index_add` and `index_copy`: rows put back to the places from which an index picked them."""
    given = call.named("input dim index source")
    data, index, source = given["input"], given["index"], given["source"]
    dim = given["dim"] % data.dim()
    tag = index_put(call.tags, data, (*[slice(None)] * dim, index), source)
    of_index = call.tags.of(index)
    is_lost = any(isinstance(call.tags.of(one), UntrackedRows) for one in (data, source)) or (
        isinstance(of_index, UntrackedRows) and of_index != ROW_NUMBERS
    )
    return tag if is_lost else _named(call, tag)


def _named(call: Call, tag: ResultTags) -> ResultTags:
    """The tag; if this call lost the rows, with the usual cause: graphs of all examples in one."""
    if not isinstance(tag, UntrackedRows):
        return tag
    name = name_of(call.function).rstrip("_")
    return UntrackedRows(
        f"{name} over rows of several examples (keep examples in a dimension of their own, such "
        f"as {name}(1, ...) of (example, node, feature))"
    )


@sees_places
def divided(call: Call) -> ResultTags:
    """`floor_divide`: an index divided by an integer may be an index of coarser rows."""
    if (
        len(call.args) == 2
        and type(call.args[1]) is int
        and call.args[1] > 0
        and call.args[0].dim() == 1
    ):
        call.tags.indices.note_divided(call.result, call.args[0], call.args[1])
    return elementwise(call)
