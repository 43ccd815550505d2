"""How tags follow indexing: by numbers, slices, masks and tensors of indices."""

from dataclasses import replace

from torch import Tensor

from discreet.train._flow._call import Call, sees_places
from discreet.train._flow._parsed_index import MASKS, ParsedIndex, dims_of
from discreet.train._flow._places import BY_PLACE, ROW_NUMBERS, beside_constants, differs
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    PACKING,
    ExampleRows,
    OneExample,
    OutsideBatch,
    Tag,
    UntrackedRows,
    merged,
)


@sees_places
def getitem(call: Call) -> Tag | None:
    """`data[index]`."""
    data, index = call.args[:2]
    return read_at(call.tags, data, ParsedIndex(data, index))


def read_at(tags: Tags, data: Tensor, parsed: ParsedIndex) -> Tag | None:
    tag = tags.of(data)
    if isinstance(tag, UntrackedRows):
        is_number = tag == PACKING and parsed.numbers == {0: 0}  # all sequences reach step 0
        return OUTSIDE_BATCH if is_number else replace(tag, has_places=False)
    if parsed.is_unsupported:
        return UntrackedRows("an index")
    if isinstance(tag, ExampleRows):
        return refused_index(tags, tag, parsed) or _of_rows(tags, tag, parsed)
    if isinstance(tag, OneExample):
        others = (tags.of(one) for one in (*parsed.tensors.values(), *parsed.scalars()))
        is_own = all(one == tag or not depends(one) for one in others)
        return tag if is_own else UntrackedRows("an index that depends on other examples")
    return _by_indices(tags, data, parsed) or tag


def _of_rows(tags: Tags, tag: ExampleRows, parsed: ParsedIndex) -> Tag:
    """The tag of an index into rows of examples."""
    dim, layout = tag.dim, tag.layout
    if dim in parsed.numbers:
        place = parsed.numbers[dim]
        if isinstance(place, Tensor):
            return UntrackedRows("an index by a tensor")
        where = int(place) % max(1, layout.length) // layout.inner % max(1, layout.order.size)
        return OneExample(layout.order, where)
    if dim in parsed.slices:
        if any(isinstance(tags.of(one), ExampleRows) for one in parsed.tensors.values()):
            return UntrackedRows("an index that depends on examples")
        start, stop, step = parsed.slices[dim][0].indices(layout.length)
        if (start, stop, step) != (0, layout.length, 1):
            layout = tags.sliced(layout, start, max(start, stop), step)
        return ExampleRows(parsed.after(dim), layout)
    first = max(each for each in parsed.tensors if each <= dim)
    return _picked(tags, layout, parsed, first=first, within=dim - first)


def refused_index(tags: Tags, rows: ExampleRows, parsed: ParsedIndex) -> UntrackedRows | None:
    """`UntrackedRows` if the index depends on other examples than each row's, else None.

    Along the dimension of examples, an index may depend on all examples if it is a permutation:
    then no row is lost. Everywhere else it must depend on no example, or on each row's.
    """
    # 1. single entries and ends of slices concern all rows
    if any(depends(tags.of(one)) for one in parsed.scalars()):
        return UntrackedRows("an index that depends on examples")
    # 2. the layout of the rows that are picked along the dimension of examples
    picking = parsed.tensors.get(rows.dim)
    along = None
    if picking is not None and (counted := tags.indices.counts(picking)) is not None:
        along = rows.layout, counted - picking.dim()
    elif picking is not None and tags.indices.has_picked(rows.layout, picking):
        along = RowLayout(tags.indices.picked(rows.layout, picking)), -1
    # 3. tensors of indices, each entry of which concerns its own row
    for first, index in parsed.tensors.items():
        tag = tags.of(index)
        if depends(tag) and not _is_own(tags, rows, index, first=first, along=along):
            which = "all" if isinstance(tag, UntrackedRows) else "other"
            return UntrackedRows(f"an index that depends on {which} examples")
    # 4. others are the same for each row, or draws of its own
    if picking is not None and along is None and picking.dim() == 1 and picking.dtype not in MASKS:
        along = RowLayout(tags.indices.picked(rows.layout, picking)), -1
    if any(
        not depends(tags.of(index)) and _is_by_place(tags, rows, index, first=first, along=along)
        for first, index in parsed.tensors.items()
    ):
        return BY_PLACE
    return None


def _is_own(
    tags: Tags, rows: ExampleRows, index: Tensor, *, first: int, along: tuple[RowLayout, int] | None
) -> bool:
    """Whether an index, of the dimensions from ``first``, depends on no other example than the
    row's. ``along`` is the layout of the rows that are picked along the dimension of examples, and
    their dimension in the index that picks them, counted from its end."""
    tag = tags.of(index)
    is_along = first <= rows.dim < first + dims_of(index)
    if isinstance(tag, UntrackedRows):
        return is_along and (
            tags.indices.permutes(index, rows.layout.length)
            or (tag == ROW_NUMBERS and tags.indices.has_picked(rows.layout, index))
        )
    if not isinstance(tag, ExampleRows):
        return False
    if not is_along:
        is_mask = index.dtype in MASKS
        return not is_mask and (tag.layout, tag.dim - index.dim()) == along
    if index.dtype in MASKS:
        return first + tag.dim == rows.dim and tag.layout == rows.layout
    return tags.indices.has_picked(rows.layout, index)


def _is_by_place(
    tags: Tags, rows: ExampleRows, index: Tensor, *, first: int, along: tuple[RowLayout, int] | None
) -> bool:
    """Whether an index that depends on no example differs between rows; as `_is_own`.

    Along the dimension of examples, constants may pick any rows. Draws may permute them, or mask
    each by a number of its own.
    """
    if first <= rows.dim < first + dims_of(index):
        if not tags.draws.has(index):
            return False
        if index.dtype in MASKS:
            return differs(tags, index, rows.dim - first, rows.layout)
        return not tags.indices.permutes(index, rows.layout.length)
    if along is None or index.dtype in MASKS:
        return False
    layout, back = along
    return index.dim() + back >= 0 and differs(tags, index, index.dim() + back, layout)


def depends(tag: Tag | None) -> bool:
    """Whether an index depends on examples; a place in a loop over all nonzero entries does not."""
    return tag is not None and not isinstance(tag, OutsideBatch) and not is_place(tag)


def is_place(tag: Tag | None) -> bool:
    return isinstance(tag, UntrackedRows) and tag.is_place


def _picked(tags: Tags, layout: RowLayout, parsed: ParsedIndex, *, first: int, within: int) -> Tag:
    """The tag after a tensor of indices, or a mask, picked rows along the dimension of examples."""
    index = parsed.tensors[first]
    if index.dtype in MASKS:
        if len(parsed.tensors) > 1:
            return UntrackedRows("an index by a mask and others")
        rows = index.nonzero()[:, within]
        order = tags.indices.picked(layout, index, rows, within=within)
        return ExampleRows(parsed.start, RowLayout(order))
    along = tags.indices.counts(index)
    if along is not None and index.shape[along] == layout.length:
        return ExampleRows(parsed.start + along - index.dim() + parsed.rank, layout)
    if index.dim() != 1:
        return UntrackedRows("an index of several dimensions")
    place = parsed.start + parsed.rank - 1
    if (before := tags.indices.undone(layout, index)) is not None:
        return ExampleRows(place, before)
    return ExampleRows(place, RowLayout(tags.indices.picked(layout, index)))


def _by_indices(tags: Tags, data: Tensor, parsed: ParsedIndex) -> Tag | None:
    """The tag of rows of a shared table that are looked up by examples."""
    if any(depends(tags.of(one)) for one in parsed.tensors_in_slices()):
        return UntrackedRows("a slice that depends on examples")
    several, numbers = (
        [one for one in given if isinstance(one, Tensor) and not is_place(tags.of(one))]
        for given in (parsed.tensors.values(), parsed.numbers.values())
    )
    if any(one.dtype in MASKS for one in several):
        if len(several) > 1:
            return UntrackedRows("an index by a mask and others")
        mask, tag = several[0], tags.of(several[0])
        if not isinstance(tag, ExampleRows):
            return tag
        if differs(tags, data, next(iter(parsed.tensors)) + tag.dim, tag.layout):
            return BY_PLACE
        rows = mask.nonzero()[:, tag.dim]
        order = tags.indices.picked(tag.layout, mask, rows, within=tag.dim)
        return ExampleRows(parsed.start, RowLayout(order))
    found = [(tags.of(one), one.dim()) for one in (*several, *numbers)]
    tag = merged([(one, rank) for one, rank in found if one is not None], parsed.rank)
    tag = beside_constants(tags, tag, several, parsed.rank)
    return tag.at(tag.dim + parsed.start) if isinstance(tag, ExampleRows) else tag
