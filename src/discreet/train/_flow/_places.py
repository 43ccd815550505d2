"""Constants that differ by place in the batch.

An example's place depends on which others are in the batch: if one leaves, all behind it move. So a
constant that is combined with rows of examples must be the same for each example. Values of a
constant depend on no data, and may be compared. But if rows were picked, even their number depends
on data: then a constant must be known to be the same for all of them, whatever its values. So must
what derives from trained weights: rows of equal values may have different gradients.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from discreet.train._flow._parsed_index import MASKS
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import ExampleRows, Tag, UntrackedRows

BY_PLACE = UntrackedRows(
    "a constant that differs by place in the batch, such as torch.arange(len(x)), a mask of some "
    "rows, or a stack of random numbers that were drawn one by one",
    mend="make it a field of the data, or draw numbers for all examples together, as by "
    "torch.rand(len(x), 8)",
)
ROW_NUMBERS = UntrackedRows("numbers of rows, which differ by place in the batch")


def beside_constants(
    tags: Tags, tag: Tag | None, tensors: Iterable[Tensor], rank: int
) -> Tag | None:
    """The tag of a result of this rank, to which these tensors are broadcast, or `UntrackedRows` if
    one of them is a constant that differs by place."""
    if isinstance(tag, ExampleRows):
        for one in tensors:
            dim = tag.dim - rank + one.dim()
            if dim >= 0 and differs(tags, one, dim, tag.layout):
                return BY_PLACE
    return tag


def differs(tags: Tags, one: Tensor, dim: int, layout: RowLayout) -> bool:
    """Whether a tensor depends on no example and differs, or may, between the examples of rows
    along one of its dimensions. A draw becomes a part of these examples, if it can."""
    if one.shape[dim] == 1 or tags.depends(one):
        return False
    places = layout.order.places
    if places is not None and len(places) < 2:
        return False
    if tags.indices.is_alike(one):
        return False
    if tags.draws.has(one):
        if tags.draws.credit(one, ExampleRows(dim, layout)):
            return False
        return not tags.indices.has_alike_blocks(one, dim, layout)  # the same numbers for all
    if tags.indices.has_alike_blocks(one, dim, layout):
        return False
    if places is None or one.shape[dim] != layout.length:
        return True
    if tags.indices.was_trained(one):  # equal values may have gradients by other factors
        behind = tags.indices.constants_in(one, dim)
        return behind is None or any(_differ(values, own, layout) for values, own in behind)
    return _differ(tags.indices.before(one).detach(), dim, layout)


def picks_unevenly(tags: Tags, layout: RowLayout, index: Tensor, *, within: int = 0) -> bool:
    """Whether an index or a mask, which depends on no example, picks other rows of one example than
    of another. In a mask, the dimension ``within`` has the examples."""
    if index.dtype in MASKS:
        return differs(tags, index, within, layout)
    along = tags.indices.counts(index)
    if along is not None and index.shape[along] == layout.length:
        return False
    if tags.indices.permutes(index, layout.length):
        return False
    if layout.order.places is None or tags.draws.has(index):
        return True
    chosen = index.detach().flatten().long() % max(1, layout.length)
    return _differ(torch.bincount(chosen, minlength=layout.length), 0, layout)


def _differ(values: Tensor, dim: int, layout: RowLayout) -> bool:
    """Whether values differ between examples."""
    blocks = layout.outer, layout.order.size, layout.inner
    by_example = values.reshape(*values.shape[:dim], *blocks, *values.shape[dim + 1 :])
    return not bool((by_example == by_example.narrow(dim + 1, 0, 1)).all())
