"""Where examples are after indexing: by numbers, slices, masks, and tensors of places."""

from typing import Any

import torch
from torch import Tensor

from discreet.train._flow._call import Call
from discreet.train._tags import Alone, Layout, Lost, Rows, Tag, Tags, merged


class _Reading:
    """An index, read against the dimensions of a tensor."""

    def __init__(self, data: Tensor, index: Any) -> None:  # Any: as Python has it
        parts = list(index) if isinstance(index, tuple) else [index]
        parts = [torch.tensor(one) if isinstance(one, (list, range)) else one for one in parts]
        taken = sum(_dims_of(one) for one in parts)
        where = next((n for n, one in enumerate(parts) if one is Ellipsis), len(parts))
        parts[where : where + 1] = [slice(None)] * (data.dim() - taken)
        self.numbers: dict[int, int | Tensor] = {}  # of a dimension, one place
        self.slices: dict[int, tuple[slice, int]] = {}  # and where the dimension is afterwards
        self.tensors: dict[int, Tensor] = {}  # each by its first dimension
        self.is_odd, self.new = False, 0
        dim, after, among = 0, 0, list[int]()  # `after` as if tensors' dimensions were one each
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
        self.rank = max((len(shape) for shape in shapes), default=0)  # of what tensors give
        is_together = among == [*range(among[0], among[-1] + 1)] if among else True
        self.start = among[0] if among and is_together else 0
        self._among, self._is_together = among, is_together

    def after(self, dim: int) -> int:
        """Where a dimension that is sliced is afterwards."""
        place = self.slices[dim][1]
        if not self._among:
            return place
        before = sum(each < place for each in self._among)
        moved = place - before
        return moved + self.rank if not self._is_together or moved >= self.start else moved


def _is_number(one: object) -> bool:
    if isinstance(one, Tensor):
        return one.dim() == 0 and one.dtype not in (torch.bool, torch.uint8)
    return isinstance(one, int) or hasattr(one, "__index__")


def _dims_of(one: object) -> int:
    """How many dimensions an index takes."""
    if one is None or one is Ellipsis or isinstance(one, bool):
        return 0
    if isinstance(one, Tensor) and one.dtype in (torch.bool, torch.uint8):
        return one.dim()
    return 1


def getitem(call: Call) -> Tag | None:
    """`data[index]`."""
    tags, result = call.tags, call.result
    data, index = call.args[:2]
    reading = _Reading(data, index)
    if (along := tags.counts(data)) is not None and not reading.tensors:
        _count_on(tags, data, reading, along=along, result=result)
    return _read(tags, data, reading)


def _read(tags: Tags, data: Tensor, reading: _Reading) -> Tag | None:
    tag = tags.of(data)
    if isinstance(tag, Lost) or reading.is_odd:
        return tag if tag is None or isinstance(tag, (Lost, Alone)) else Lost("an index")
    if not isinstance(tag, Rows):
        return tag if isinstance(tag, Alone) else _by_indices(tags, reading) or tag
    dim, layout = tag.dim, tag.layout
    if dim in reading.numbers:
        place = reading.numbers[dim]
        if isinstance(place, Tensor):
            return Lost("an index by a tensor")
        where = int(place) % max(1, layout.length) // layout.inner % max(1, layout.group.size)
        return Alone(layout.group, where)
    if dim in reading.slices:
        if any(isinstance(tags.of(one), Rows) for one in reading.tensors.values()):
            return Lost("an index by what examples have")
        piece = reading.slices[dim][0]
        if any(isinstance(one, Tensor) for one in (piece.start, piece.stop, piece.step)):
            piece = slice(*(None if one is None else int(one) for one in _ends(piece)))
        start, stop, step = piece.indices(layout.length)
        if (start, stop, step) != (0, layout.length, 1):
            layout = tags.sliced(layout, start, max(start, stop), step)
        return Rows(reading.after(dim), layout)
    first = max(each for each in reading.tensors if each <= dim)
    return _picked(tags, layout, reading, first=first, within=dim - first)


def _ends(piece: slice) -> tuple[Any, Any, Any]:  # Any: numbers or tensors
    return piece.start, piece.stop, piece.step


def _picked(tags: Tags, layout: Layout, reading: _Reading, *, first: int, within: int) -> Tag:
    """Rows that a tensor picks along the dimension of examples."""
    index = reading.tensors[first]
    if index.dtype in (torch.bool, torch.uint8):
        if len(reading.tensors) > 1:
            return Lost("an index by a mask and others")
        rows = index.nonzero()[:, within]
        return Rows(reading.start, Layout(tags.picked(layout, index, rows)))
    along = tags.counts(index)
    if along is not None and index.shape[along] == layout.length:
        return Rows(reading.start + along - index.dim() + reading.rank, layout)
    if index.dim() != 1:
        return Lost("an index of several dimensions")
    place = reading.start + reading.rank - 1
    if (before := tags.undone(layout, index)) is not None:
        return Rows(place, before)
    return Rows(place, Layout(tags.picked(layout, index)))


def _by_indices(tags: Tags, reading: _Reading) -> Tag | None:
    """Of a table that is the same for all data, rows for each place that examples name."""
    several = [*reading.tensors.values()]
    if any(one.dtype in (torch.bool, torch.uint8) for one in several):
        if len(several) > 1:
            return Lost("an index by a mask and others")
        tag = tags.of(several[0])
        if not isinstance(tag, Rows):
            return tag
        rows = several[0].nonzero()[:, tag.dim]
        return Rows(reading.start, Layout(tags.picked(tag.layout, several[0], rows)))
    numbers = [one for one in reading.numbers.values() if isinstance(one, Tensor)]
    found = [(tags.of(one), one.dim()) for one in (*several, *numbers)]
    tag = merged([(one, rank) for one, rank in found if one is not None], reading.rank)
    return tag.at(tag.dim + reading.start) if isinstance(tag, Rows) else tag


def _count_on(tags: Tags, data: Tensor, reading: _Reading, *, along: int, result: Tensor) -> None:
    """A tensor that counts does so still if it got dimensions of length 1."""
    if along in reading.slices and reading.slices[along][0] == slice(None):
        dim = reading.after(along)
        if dim < result.dim() and result.shape[dim] == data.shape[along]:
            tags.note_count(result, dim)


def setitem(call: Call) -> Tag | None:
    """`data[index] = value`: the tag of the data afterwards."""
    tags, (data, index, value) = call.tags, call.args[:3]
    if isinstance(value, Tensor) and isinstance(index, Tensor) and tags.counts(value) == 0:
        tags.note_inverse(data, index)
    return index_put(tags, data, index, value)


def index_put(tags: Tags, data: Tensor, index: Any, value: Any) -> Tag | None:  # Any: as given
    """Of data into which a value is put, or to which it is added."""
    tag, own = tags.of(data), tags.of(value) if isinstance(value, Tensor) else None
    reading = _Reading(data, index)
    if isinstance(tag, Lost) or isinstance(own, Lost):
        return tag if isinstance(tag, Lost) else own
    if not isinstance(tag, Rows):
        if isinstance(own, Alone):
            return Lost("a row put into others'")
        if not isinstance(own, Rows):
            return _by_mask(tags, reading) or tag
        return _filled(tags, data, reading, own, value=value)
    if own is None or not isinstance(own, Rows):
        return Lost("a row put into others'") if isinstance(own, Alone) else tag
    expected = _read(tags, data, reading)
    if isinstance(expected, Rows):
        rank = _rank_after(reading)
        if own.layout == expected.layout and own.dim - value.dim() == expected.dim - rank:
            return tag
    return Lost("rows put where those of other examples are")


def _by_mask(tags: Tags, reading: _Reading) -> Tag | None:
    """Numbers put where a mask or places of examples say."""
    for one in reading.tensors.values():
        tag = tags.of(one)
        if isinstance(tag, Rows):
            if len(reading.tensors) == 1 and one.dtype == torch.bool:
                return tag.at(tag.dim + next(iter(reading.tensors)))
            return Lost("an index by what examples have")
        if tag is not None:
            return tag
    return None


def _filled(tags: Tags, data: Tensor, reading: _Reading, own: Rows, *, value: Tensor) -> Tag:
    """Data that were the same for all, into which rows of examples are put."""
    rank = _rank_after(reading)
    place = own.dim - value.dim() + rank
    for dim, (piece, _) in reading.slices.items():
        if reading.after(dim) == place and piece == slice(None):
            return own.at(dim)
    for first, index in reading.tensors.items():
        if index.dtype != torch.bool and index.dim() == 1 == reading.rank:
            layout = tags.put_back(own.layout.group, index)
            if layout is None or not own.layout.outer == own.layout.inner == 1:
                continue
            if data.shape[first] == layout.length and place == reading.start:
                return Rows(first, layout)
        if index.dtype == torch.bool and isinstance(of_mask := tags.of(index), Rows):
            layout = tags.put_back(own.layout.group, index)
            if layout == of_mask.layout and place == reading.start:
                return of_mask.at(of_mask.dim + first)
    return Lost("rows put where nobody knows whose they are")


def _rank_after(reading: _Reading) -> int:
    """Of what the index gives."""
    return len(reading.slices) + reading.rank + reading.new
