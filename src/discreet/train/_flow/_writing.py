"""How tags follow values that are written or added at an index."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import Call, ResultTags, sees_places
from discreet.train._flow._indexing import depends, read_at, refused_index
from discreet.train._flow._parsed_index import MASKS, ParsedIndex
from discreet.train._flow._places import (
    BY_PLACE,
    ROW_NUMBERS,
    beside_constants,
    differs,
    picks_unevenly,
)
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import ExampleRows, OneExample, Tag, UntrackedRows


@sees_places
def setitem(call: Call) -> ResultTags:
    """`data[index] = value`: the data's tag afterwards."""
    return _set(call)


def _set(call: Call) -> Tag | None:
    tags, (data, index, value) = call.tags, call.args[:3]
    if (
        isinstance(value, Tensor)
        and isinstance(index, Tensor)
        and tags.indices.counts(value) == 0
        and value.shape == index.shape == data.shape
    ):
        tags.indices.note_inverse(data, index)
    return index_put(tags, data, index, value)


@sees_places
def put(call: Call) -> ResultTags:
    """`index_put`: as an assignment at these indices, to a copy of the data or in place."""
    given = call.named("input indices values accumulate")
    args = given["input"], tuple(given["indices"]), given["values"]
    return _set(replace(call, args=args, keywords={}))


def index_put(tags: Tags, data: Tensor, index: Any, value: Any) -> Tag | None:  # Any: as given
    """The data's tag after a value was written or added at an index."""
    tag, own = tags.of(data), tags.of(value) if isinstance(value, Tensor) else None
    parsed = ParsedIndex(data, index)
    if isinstance(tag, UntrackedRows) or isinstance(own, UntrackedRows):
        return tag if isinstance(tag, UntrackedRows) else own
    if parsed.is_unsupported:
        return UntrackedRows("an index")
    if isinstance(own, OneExample):
        return UntrackedRows("one example's row written to other rows")
    if isinstance(tag, OneExample):
        return _of_one(tags, tag, parsed, own)
    if isinstance(tag, ExampleRows):
        return _into_rows(tags, data, parsed, value)
    if not isinstance(own, ExampleRows):
        return _by_mask(tags, data, parsed, value) or tag
    return _filled(tags, data, parsed, own, value=value)


def _into_rows(
    tags: Tags, data: Tensor, parsed: ParsedIndex, value: Any
) -> Tag | None:  # Any: as given
    """The tag of rows of examples after a value of rows, or of no example, was written."""
    tag, own = tags.of(data), tags.of(value) if isinstance(value, Tensor) else None
    has_own = isinstance(own, ExampleRows)
    if isinstance(tag, ExampleRows) and _leaves_out(tags, tag, parsed, has_own=has_own):
        return BY_PLACE
    if not isinstance(own, ExampleRows):
        return _overwritten(tags, data, parsed, value)
    expected = read_at(tags, data, parsed)
    if isinstance(expected, ExampleRows):
        rank = parsed.rank_after
        if own.layout == expected.layout and own.dim - value.dim() == expected.dim - rank:
            return tag
    return UntrackedRows(
        "rows written to those of other examples",
        mend="to choose between two layers by a mask, compute both for all rows, as in "
        "torch.where(mask[:, None], f(x), g(x))",
    )


def _leaves_out(tags: Tags, rows: ExampleRows, parsed: ParsedIndex, *, has_own: bool) -> bool:
    """Whether an index writes to some examples and not to others, by their places in the batch.

    Slices that get rows of their own examples are parts of a loop over the batch.
    """
    dim, layout = rows.dim, rows.layout
    if layout.order.places is not None and len(layout.order.places) < 2:
        return False
    if dim in parsed.numbers:
        return True
    if dim in parsed.slices:
        piece = parsed.slices[dim][0]
        is_of_numbers = not tensors_in((piece,))
        is_whole = is_of_numbers and piece.indices(layout.length) == (0, layout.length, 1)
        return not (is_whole or has_own)
    first = max(each for each in parsed.tensors if each <= dim)
    index = parsed.tensors[first]
    return not depends(tags.of(index)) and picks_unevenly(tags, layout, index, within=dim - first)


def _overwritten(
    tags: Tags, data: Tensor, parsed: ParsedIndex, value: Any
) -> Tag | None:  # Any: as given
    """The tag of rows of examples after a value that depends on no example was written."""
    tag = tags.of(data)
    if not isinstance(tag, ExampleRows):
        return tag
    several = (tags.of(one) for one in parsed.tensors.values())
    if any(isinstance(one, UntrackedRows) and one != ROW_NUMBERS for one in several):
        return UntrackedRows("values written in an order of all examples")
    if (refused := refused_index(tags, tag, parsed)) is not None:
        return refused
    if not isinstance(value, Tensor) or not value.dim() or tags.indices.is_alike(value):
        return tag
    expected = read_at(tags, data, parsed)
    if isinstance(expected, UntrackedRows):
        return expected  # it is not known to which example a value is written
    after = beside_constants(tags, expected, [value], parsed.rank_after)
    return tag if after is expected or after is None else after


def _of_one(tags: Tags, tag: OneExample, parsed: ParsedIndex, own: Tag | None) -> Tag:
    """The tag of one example's data after a value that belongs to no single other was written."""
    indices = (tags.of(one) for one in (*parsed.tensors.values(), *parsed.scalars()))
    is_own = all(one == tag or not depends(one) for one in indices)
    if is_own and not isinstance(own, ExampleRows):
        return tag
    return UntrackedRows("rows of examples written to one example's")


def _by_mask(
    tags: Tags, data: Tensor, parsed: ParsedIndex, value: Any
) -> Tag | None:  # Any: as given
    """The tag after values were written where a mask or indices of examples point."""
    if any(depends(tags.of(one)) for one in parsed.scalars()):
        return UntrackedRows("an index that depends on examples")
    found = _at_counted_rows(tags, data, parsed, value)
    if found is not None:
        return found
    for one in parsed.tensors.values():
        tag = tags.of(one)
        if isinstance(tag, ExampleRows):
            if len(parsed.tensors) == 1 and one.dtype == torch.bool:
                picked = read_at(tags, data, parsed)
                given = tensors_in((value,))
                if beside_constants(tags, picked, given, parsed.rank_after) is BY_PLACE:
                    return BY_PLACE
                return _tag_of_rows(tags, data, tag.at(tag.dim + next(iter(parsed.tensors))))
            return UntrackedRows("an index that depends on examples")
        found = tag if depends(tag) else found or tag
    return found


def _at_counted_rows(
    tags: Tags, data: Tensor, parsed: ParsedIndex, value: Any
) -> Tag | None:  # Any: as given
    """The tag after values of no example were written into each row, at entries that depend on the
    row's own example, as by `data[torch.arange(n), labels] = 1`; None for other indices."""
    several = parsed.tensors.items()
    depending = [one for _, one in several if depends(tags.of(one))]
    own = tags.of(depending[0]) if depending else None
    if not isinstance(own, ExampleRows) or not _are_of(tags, depending, own):
        return None
    length = own.layout.length
    constant = [(first, one) for first, one in several if not depends(tags.of(one))]
    counting = [
        first
        for first, one in constant
        if one.dim() == 1 and tags.indices.counts(one) == 0 and len(one) == length
    ]
    if len(counting) != 1 or data.shape[counting[0]] != length:
        return None
    others = [one for first, one in constant if first != counting[0]]
    rows = ExampleRows(parsed.start, own.layout)
    is_plain = all(one.dim() == 1 and one.dtype not in MASKS for one in others)
    if not is_plain or any(differs(tags, one, 0, own.layout) for one in others):
        return BY_PLACE
    if beside_constants(tags, rows, tensors_in((value,)), parsed.rank_after) is BY_PLACE:
        return BY_PLACE
    return _tag_of_rows(tags, data, rows.at(counting[0]))


def _filled(
    tags: Tags, data: Tensor, parsed: ParsedIndex, own: ExampleRows, *, value: Tensor
) -> Tag:
    """The tag of data that did not depend on examples, after rows of examples were written."""
    rank = parsed.rank_after
    place = own.dim - value.dim() + rank
    if any(depends(tags.of(one)) for one in parsed.scalars()):
        return UntrackedRows("an index that depends on examples")
    depending = [one for one in parsed.tensors.values() if depends(tags.of(one))]
    for dim, (piece, _) in parsed.slices.items():
        if parsed.after(dim) == place and piece == slice(None) and not depending:
            return _tag_of_rows(tags, data, own.at(dim))
    if place == parsed.start and parsed.rank == 1:
        for first, index in parsed.tensors.items():
            others = [one for one in depending if one is not index]
            found = _put_back(tags, index, own, length=data.shape[first])
            constant = [one for one in parsed.tensors.values() if not depends(tags.of(one))]
            if found is None or not _are_of(tags, others, own):
                continue
            if not depends(tags.of(index)) and picks_unevenly(tags, found.layout, index):
                return BY_PLACE
            if any(
                differs(tags, one, one.dim() - 1, own.layout)
                for one in constant
                if one is not index
            ):
                return BY_PLACE
            return _tag_of_rows(tags, data, found.at(found.dim + first))
    return UntrackedRows("rows written to unknown places")


def _tag_of_rows(tags: Tags, data: Tensor, rows: ExampleRows) -> Tag:
    """The tag of rows of examples that were written into data, if the rest is the same for each."""
    return BY_PLACE if differs(tags, data, rows.dim, rows.layout) else rows


def _put_back(tags: Tags, index: Tensor, own: ExampleRows, *, length: int) -> ExampleRows | None:
    """Where rows are after they were written to the places from which an index picked them.

    The dimension is counted from that of the index; there, the data have this length.
    """
    order = own.layout.order
    if index.dtype == torch.bool:
        of_mask = tags.of(index)
        if isinstance(of_mask, ExampleRows):
            layout = tags.indices.put_back(order, index, within=of_mask.dim)
            return of_mask if layout == of_mask.layout else None
        return None
    if tags.indices.counts(index) == 0 and index.dim() == 1 and own.layout.length == length:
        return own.at(0)
    is_plain = index.dim() == 1 and own.layout.outer == own.layout.inner == 1
    layout = tags.indices.put_back(order, index) if is_plain else None
    return ExampleRows(0, layout) if layout is not None and layout.length == length else None


def _are_of(tags: Tags, indices: list[Tensor], own: ExampleRows) -> bool:
    """Whether each entry of these indices depends only on the example of its own row."""
    return all(tags.of(one) == ExampleRows(0, own.layout) and one.dim() == 1 for one in indices)
