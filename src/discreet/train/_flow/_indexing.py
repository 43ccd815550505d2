"""How tags follow indexing: by numbers, slices, masks and tensors of indices."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from discreet.train._arguments import tensors_in
from discreet.train._flow._call import Call
from discreet.train._flow._places import beside_constants
from discreet.train._layouts import RowLayout
from discreet.train._tags import (
    OUTSIDE_BATCH,
    PACKING,
    ExampleRows,
    OneExample,
    OutsideBatch,
    Tag,
    Tags,
    UnknownOwners,
    merged,
)

_MASKS = (torch.bool, torch.uint8)


class _ParsedIndex:
    """An index, parsed for a tensor: its entry for each dimension.

    Attributes:
        numbers: by dimension, the index of a single entry; the dimension is removed.
        slices: by dimension, a slice, and the dimension's place in the result if tensors add none.
        tensors: by their first dimension, tensors of indices, and masks.
        new: the number of new dimensions (``None`` in the index).
        rank: the number of dimensions that the tensors give the result.
        start: where these dimensions begin in the result.
        is_odd: whether the index has entries that no rule covers.
    """

    def __init__(self, data: Tensor, index: Any) -> None:  # Any: as Python has it
        parts = list(index) if isinstance(index, tuple) else [index]
        parts = [torch.tensor(one) if _is_list_of_numbers(one) else one for one in parts]
        parts = [torch.as_tensor(one) if isinstance(one, np.ndarray) else one for one in parts]
        taken = sum(_dims_of(one) for one in parts)
        where = next((n for n, one in enumerate(parts) if one is Ellipsis), len(parts))
        parts[where : where + 1] = [slice(None)] * (data.dim() - taken)
        self.numbers: dict[int, int | Tensor] = {}
        self.slices: dict[int, tuple[slice, int]] = {}
        self.tensors: dict[int, Tensor] = {}
        self.is_odd, self.new = False, 0
        dim, after = 0, 0  # `after`: the place in the result, if each tensor kept its dimensions
        among = list[int]()
        for one in parts:
            if one is None:
                after, self.new = after + 1, self.new + 1
            elif isinstance(one, slice):
                self.slices[dim] = one, after
                dim, after = dim + 1, after + 1
            elif isinstance(one, bool):
                self.is_odd = True
            elif _is_number(one):
                self.numbers[dim] = one
                dim += 1
            elif isinstance(one, Tensor) and one.dim():
                self.tensors[dim] = one
                width = _dims_of(one)
                among += range(after, after + width)
                dim, after = dim + width, after + width
            else:
                self.is_odd = True
        shapes = [one.shape if one.dtype != torch.bool else (0,) for one in self.tensors.values()]
        self.rank = max((len(shape) for shape in shapes), default=0)
        is_together = among == [*range(among[0], among[-1] + 1)] if among else True
        self.start = among[0] if among and is_together else 0
        self._among, self._is_together = among, is_together

    def ends(self) -> list[Tensor]:
        """All tensors that are ends or steps of slices."""
        return tensors_in(piece for piece, _ in self.slices.values())

    def single(self) -> list[Tensor]:
        """All tensors that are a single number: entries, and ends of slices."""
        return [*tensors_in(self.numbers.values()), *self.ends()]

    def column(self) -> int | None:
        """The number of a single whole column, as in ``data[:, 0]``."""
        number = self.numbers.get(1)
        is_alone = not (self.is_odd or self.new or self.tensors or len(self.numbers) > 1)
        whole = self.slices.keys() == {0} and self.slices[0][0] == slice(None)
        return number if is_alone and whole and type(number) is int else None

    def after(self, dim: int) -> int:
        """The place in the result of a sliced dimension."""
        place = self.slices[dim][1]
        if not self._among:
            return place
        before = sum(each < place for each in self._among)
        moved = place - before
        return moved + self.rank if not self._is_together or moved >= self.start else moved


def _is_list_of_numbers(one: object) -> bool:
    return isinstance(one, (list, range)) and not tensors_in((one,))


def _is_number(one: object) -> bool:
    if isinstance(one, Tensor):
        return one.dim() == 0 and one.dtype not in _MASKS
    return isinstance(one, int) or hasattr(one, "__index__")


def _dims_of(one: object) -> int:
    """The number of dimensions to which an entry of an index applies."""
    if one is None or one is Ellipsis or isinstance(one, bool):
        return 0
    if isinstance(one, Tensor) and one.dtype in _MASKS:
        return one.dim()
    return 1


def getitem(call: Call) -> Tag | None:
    """`data[index]`."""
    data, index = call.args[:2]
    parsed = _ParsedIndex(data, index)
    if (column := parsed.column()) is not None:
        call.tags.indices.note_column(data, column, call.result)
    return _read(call.tags, data, parsed)


def _read(tags: Tags, data: Tensor, parsed: _ParsedIndex) -> Tag | None:
    tag = tags.of(data)
    if isinstance(tag, UnknownOwners):
        is_number = tag == PACKING and parsed.numbers == {0: 0}  # all sequences reach step 0
        return OUTSIDE_BATCH if is_number else replace(tag, has_places=False)
    if parsed.is_odd:
        return UnknownOwners("an index")
    if isinstance(tag, ExampleRows):
        return _refused(tags, tag, parsed) or _of_rows(tags, tag, parsed)
    if isinstance(tag, OneExample):
        others = (tags.of(one) for one in (*parsed.tensors.values(), *parsed.single()))
        is_own = all(one == tag or not _depends(one) for one in others)
        return tag if is_own else UnknownOwners("an index that depends on other examples")
    return _by_indices(tags, parsed) or tag


def _of_rows(tags: Tags, tag: ExampleRows, parsed: _ParsedIndex) -> Tag:
    """The tag of an index into rows of examples."""
    dim, layout = tag.dim, tag.layout
    if dim in parsed.numbers:
        place = parsed.numbers[dim]
        if isinstance(place, Tensor):
            return UnknownOwners("an index by a tensor")
        where = int(place) % max(1, layout.length) // layout.inner % max(1, layout.order.size)
        return OneExample(layout.order, where)
    if dim in parsed.slices:
        if any(isinstance(tags.of(one), ExampleRows) for one in parsed.tensors.values()):
            return UnknownOwners("an index that depends on examples")
        start, stop, step = parsed.slices[dim][0].indices(layout.length)
        if (start, stop, step) != (0, layout.length, 1):
            layout = tags.sliced(layout, start, max(start, stop), step)
        return ExampleRows(parsed.after(dim), layout)
    first = max(each for each in parsed.tensors if each <= dim)
    return _picked(tags, layout, parsed, first=first, within=dim - first)


def _refused(tags: Tags, rows: ExampleRows, parsed: _ParsedIndex) -> UnknownOwners | None:
    """Unknown owners if the index depends on other examples than each row's, else None.

    Along the dimension of examples, an index may depend on all examples if it is a permutation:
    then each row is still there. Everywhere else it must depend on no example, or on each row's.
    """
    # 1. single entries and ends of slices concern all rows
    if any(_depends(tags.of(one)) for one in parsed.single()):
        return UnknownOwners("an index that depends on examples")
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
        if _depends(tag) and not _is_own(tags, rows, index, first=first, along=along):
            which = "all" if isinstance(tag, UnknownOwners) else "other"
            return UnknownOwners(f"an index that depends on {which} examples")
    return None


def _is_own(
    tags: Tags, rows: ExampleRows, index: Tensor, *, first: int, along: tuple[RowLayout, int] | None
) -> bool:
    """Whether an index, of the dimensions from ``first``, depends on no other example than the
    row's. ``along`` is the layout of the rows that are picked along the dimension of examples, and
    their dimension in the index that picks them, counted from its end."""
    tag = tags.of(index)
    is_along = first <= rows.dim < first + _dims_of(index)
    if isinstance(tag, UnknownOwners):
        return is_along and tags.indices.permutes(index, rows.layout.length)
    if not isinstance(tag, ExampleRows):
        return False
    if not is_along:
        is_mask = index.dtype in _MASKS
        return not is_mask and (tag.layout, tag.dim - index.dim()) == along
    if index.dtype in _MASKS:
        return first + tag.dim == rows.dim and tag.layout == rows.layout
    return tags.indices.has_picked(rows.layout, index)


def _depends(tag: Tag | None) -> bool:
    """Whether an index depends on examples; a place in a loop over all nonzero entries does not."""
    return tag is not None and not isinstance(tag, OutsideBatch) and not _is_place(tag)


def _is_place(tag: Tag | None) -> bool:
    return isinstance(tag, UnknownOwners) and tag.is_place


def _picked(tags: Tags, layout: RowLayout, parsed: _ParsedIndex, *, first: int, within: int) -> Tag:
    """The tag after a tensor of indices, or a mask, picked rows along the dimension of examples."""
    index = parsed.tensors[first]
    if index.dtype in _MASKS:
        if len(parsed.tensors) > 1:
            return UnknownOwners("an index by a mask and others")
        rows = index.nonzero()[:, within]
        order = tags.indices.picked(layout, index, rows, within=within)
        return ExampleRows(parsed.start, RowLayout(order))
    along = tags.indices.counts(index)
    if along is not None and index.shape[along] == layout.length:
        return ExampleRows(parsed.start + along - index.dim() + parsed.rank, layout)
    if index.dim() != 1:
        return UnknownOwners("an index of several dimensions")
    place = parsed.start + parsed.rank - 1
    if (before := tags.indices.undone(layout, index)) is not None:
        return ExampleRows(place, before)
    return ExampleRows(place, RowLayout(tags.indices.picked(layout, index)))


def _by_indices(tags: Tags, parsed: _ParsedIndex) -> Tag | None:
    """The tag of rows of a shared table that are looked up by examples."""
    if any(_depends(tags.of(one)) for one in parsed.ends()):
        return UnknownOwners("a slice that depends on examples")
    several, numbers = (
        [one for one in given if isinstance(one, Tensor) and not _is_place(tags.of(one))]
        for given in (parsed.tensors.values(), parsed.numbers.values())
    )
    if any(one.dtype in _MASKS for one in several):
        if len(several) > 1:
            return UnknownOwners("an index by a mask and others")
        mask, tag = several[0], tags.of(several[0])
        if not isinstance(tag, ExampleRows):
            return tag
        rows = mask.nonzero()[:, tag.dim]
        order = tags.indices.picked(tag.layout, mask, rows, within=tag.dim)
        return ExampleRows(parsed.start, RowLayout(order))
    found = [(tags.of(one), one.dim()) for one in (*several, *numbers)]
    tag = merged([(one, rank) for one, rank in found if one is not None], parsed.rank)
    return tag.at(tag.dim + parsed.start) if isinstance(tag, ExampleRows) else tag


def place_after(data: Tensor, index: Any, dim: int) -> int | None:  # Any: as Python has it
    """The place in `data[index]` of a dimension that the index leaves whole."""
    parsed = _ParsedIndex(data, index)
    is_whole = dim in parsed.slices and parsed.slices[dim][0] == slice(None)
    return parsed.after(dim) if is_whole and not parsed.tensors else None


def setitem(call: Call) -> Tag | None:
    """`data[index] = value`: the data's tag afterwards."""
    tags, (data, index, value) = call.tags, call.args[:3]
    if (
        isinstance(value, Tensor)
        and isinstance(index, Tensor)
        and tags.indices.counts(value) == 0
        and value.shape == index.shape == data.shape
    ):
        tags.indices.note_inverse(data, index)
    return index_put(tags, data, index, value)


def index_put(tags: Tags, data: Tensor, index: Any, value: Any) -> Tag | None:  # Any: as given
    """The data's tag after a value was written or added at an index."""
    tag, own = tags.of(data), tags.of(value) if isinstance(value, Tensor) else None
    parsed = _ParsedIndex(data, index)
    if isinstance(tag, UnknownOwners) or isinstance(own, UnknownOwners):
        return tag if isinstance(tag, UnknownOwners) else own
    if parsed.is_odd:
        return UnknownOwners("an index")
    if isinstance(own, OneExample):
        return UnknownOwners("one example's row written to other rows")
    if isinstance(tag, OneExample):
        return _of_one(tags, tag, parsed, own)
    if not isinstance(own, ExampleRows):
        if isinstance(tag, ExampleRows):
            return _overwritten(tags, data, parsed, value)
        return _by_mask(tags, parsed) or tag
    if not isinstance(tag, ExampleRows):
        return _filled(tags, data, parsed, own, value=value)
    expected = _read(tags, data, parsed)
    if isinstance(expected, ExampleRows):
        rank = _rank_after(parsed)
        if own.layout == expected.layout and own.dim - value.dim() == expected.dim - rank:
            return tag
    return UnknownOwners("rows written to those of other examples")


def _overwritten(
    tags: Tags, data: Tensor, parsed: _ParsedIndex, value: Any
) -> Tag | None:  # Any: as given
    """The tag of rows of examples after a value that depends on no example was written."""
    if any(isinstance(tags.of(one), UnknownOwners) for one in parsed.tensors.values()):
        return UnknownOwners("values written in an order of all examples")
    tag = tags.of(data)
    if not isinstance(tag, ExampleRows):
        return tag
    if (refused := _refused(tags, tag, parsed)) is not None:
        return refused
    expected = _read(tags, data, parsed) if isinstance(value, Tensor) and value.dim() else None
    after = beside_constants(tags, expected, tensors_in((value,)), _rank_after(parsed))
    return tag if after is expected or after is None else after


def _of_one(tags: Tags, tag: OneExample, parsed: _ParsedIndex, own: Tag | None) -> Tag:
    """The tag of one example's data after a value that belongs to no single other was written."""
    indices = (tags.of(one) for one in (*parsed.tensors.values(), *parsed.single()))
    is_own = all(one == tag or not _depends(one) for one in indices)
    if is_own and not isinstance(own, ExampleRows):
        return tag
    return UnknownOwners("rows of examples written to one example's")


def _by_mask(tags: Tags, parsed: _ParsedIndex) -> Tag | None:
    """The tag after values were written where a mask or indices of examples point."""
    if any(_depends(tags.of(one)) for one in parsed.single()):
        return UnknownOwners("an index that depends on examples")
    found: Tag | None = None
    for one in parsed.tensors.values():
        tag = tags.of(one)
        if isinstance(tag, ExampleRows):
            if len(parsed.tensors) == 1 and one.dtype == torch.bool:
                return tag.at(tag.dim + next(iter(parsed.tensors)))
            return UnknownOwners("an index that depends on examples")
        found = tag if _depends(tag) else found or tag
    return found


def _filled(
    tags: Tags, data: Tensor, parsed: _ParsedIndex, own: ExampleRows, *, value: Tensor
) -> Tag:
    """The tag of data that did not depend on examples, after rows of examples were written."""
    rank = _rank_after(parsed)
    place = own.dim - value.dim() + rank
    if any(_depends(tags.of(one)) for one in parsed.single()):
        return UnknownOwners("an index that depends on examples")
    depending = [one for one in parsed.tensors.values() if _depends(tags.of(one))]
    for dim, (piece, _) in parsed.slices.items():
        if parsed.after(dim) == place and piece == slice(None) and not depending:
            return own.at(dim)
    if place == parsed.start and parsed.rank == 1:
        for first, index in parsed.tensors.items():
            others = [one for one in depending if one is not index]
            found = _put_back(tags, index, own, length=data.shape[first])
            if found is not None and _are_of(tags, others, own):
                return found.at(found.dim + first)
    return UnknownOwners("rows written to unknown places")


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
    is_plain = index.dim() == 1 and own.layout.outer == own.layout.inner == 1
    layout = tags.indices.put_back(order, index) if is_plain else None
    return ExampleRows(0, layout) if layout is not None and layout.length == length else None


def _are_of(tags: Tags, indices: list[Tensor], own: ExampleRows) -> bool:
    """Whether each entry of these indices depends only on the example of its own row."""
    return all(tags.of(one) == ExampleRows(0, own.layout) and one.dim() == 1 for one in indices)


def _rank_after(parsed: _ParsedIndex) -> int:
    return len(parsed.slices) + parsed.rank + parsed.new
