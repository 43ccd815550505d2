"""How tags follow rows that data choose, and rows that are put back."""

from dataclasses import replace

from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, Found, of_all
from discreet.train._flow._indexing import getitem, index_put
from discreet.train._flow._shapes import elementwise
from discreet.train._tags import Layout, Lost, Rows


def masked_places(call: Call) -> Found:
    """`nonzero`, and `torch.where` of a condition alone: for each place found, where it is."""
    given = call.named("input")
    mask: Tensor = given["condition"] if "condition" in given else given["input"]
    tag = call.tags.of(mask)
    if not isinstance(tag, Rows):
        return tag
    if isinstance(call.result, Tensor):
        rows = call.result[:, tag.dim]
        return Rows(0, Layout(call.tags.picked(tag.layout, mask, rows)))
    rows = call.result[tag.dim]
    group = call.tags.picked(tag.layout, mask, rows)
    call.tags.note_picked(tag.layout, rows, group)
    return Rows(0, Layout(group))


def where(call: Call) -> Found:
    """With one argument it tells places."""
    if isinstance(call.result, Tensor):
        return elementwise(call)
    return masked_places(call)


def mask_selected(call: Call) -> Found:
    """`masked_select`: as by an index."""
    given = call.named("input mask")
    data, mask = given["input"], given["mask"]
    if data.shape != mask.shape:
        return Lost("masked_select of another shape")
    return getitem(replace(call, args=(data, mask), keywords={}))


def chosen(call: Call) -> Found:
    """`index_select`: rows of a dimension."""
    given = call.named("input dim index")
    data, dim, index = given["input"], given["dim"] % given["input"].dim(), given["index"]
    where_to = (*[slice(None)] * dim, index)
    return getitem(replace(call, args=(data, where_to), keywords={}))


def gathered(call: Call) -> Found:
    """`gather`: along one dimension, place by place along all others."""
    given = call.named("input dim index")
    data, index = given["input"], given.get("index", given.get("indices"))
    dim = given.get("dim")
    if dim is None:
        return OVER_EXAMPLES
    if data.dim() == 1:
        return getitem(replace(call, args=(data, index), keywords={}))
    tag = of_all(call.tags, (data, index), call.result.dim())
    if isinstance(tag, Rows) and tag.dim == dim % data.dim():
        return OVER_EXAMPLES
    return tag


def scattered(call: Call) -> Found:
    """`scatter` and its like: the other way round."""
    given = call.named("input dim index src")
    some = (given["input"], given["index"], given.get("src", given.get("value")))
    tag = of_all(call.tags, some, call.result.dim())
    if isinstance(tag, Rows) and tag.dim == given["dim"] % call.result.dim():
        return OVER_EXAMPLES
    return tag


def inverse_scattered(call: Call) -> Found:
    """As above; 0, 1, 2, ... scattered by a permutation is its inverse."""
    given = call.named("input dim index src")
    source, index = given.get("src"), given["index"]
    if isinstance(source, Tensor) and call.tags.counts(source) == 0 and source.shape == index.shape:
        call.tags.note_inverse(call.result, index)
        return Lost("an order of examples")
    return scattered(call)


def index_added(call: Call) -> Found:
    """`index_add` and `index_copy`: rows put back to where an index has them from."""
    given = call.named("input dim index source")
    data, index, source = given["input"], given["index"], given["source"]
    dim = given["dim"] % data.dim()
    return index_put(call.tags, data, (*[slice(None)] * dim, index), source)


def divided(call: Call) -> Found:
    """By whole numbers: an index may be of coarser rows then."""
    if (
        len(call.args) == 2
        and type(call.args[1]) is int
        and call.args[1] > 0
        and call.args[0].dim() == 1
    ):
        call.tags.note_divided(call.result, call.args[0], call.args[1])
    return elementwise(call)
