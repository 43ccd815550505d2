"""Follows tensors that depend on no data: those of 0, 1, 2, ..., those that are alike everywhere,
and random ones.

An index that counts keeps each row where it is, and the inverse of a permutation is made of one.
"""

import torch
from torch import Tensor

from discreet.train._calls._arguments import UNREADABLE, tensors_in
from discreet.train._flow._call import Call, FlowRule, name_of
from discreet.train._flow._dims import sort
from discreet.train._flow._indexing import getitem
from discreet.train._flow._omitted import tags_by
from discreet.train._flow._parsed_index import MASKS, place_after
from discreet.train._flow._parts import joined, narrowed, parted, selected, unbound
from discreet.train._flow._picks import inverse_scattered, mask_selected
from discreet.train._flow._random import draws, is_random
from discreet.train._flow._row_numbers import masked_places
from discreet.train._flow._shapes import (
    copied,
    elementwise,
    expanded,
    interleaved,
    of_the_first,
    permuted,
    refit,
    repeated,
)
from discreet.train._flow._table import FLOW
from discreet.train._tags._layouts import ExampleOrder, RowLayout
from discreet.train._tags._tag import ExampleRows


def count_on(call: Call) -> None:
    """Note a result that counts, that is alike everywhere, or that is a permutation; no argument
    depends on data."""
    _note_alike(call)
    _note_alike_rows(call)
    tags, args, rule = call.tags, call.args, FLOW.get(call.function)
    if call.function is torch.arange:
        is_from_0 = len(args) == 1 or (len(args) == 2 and type(args[0]) is int and not args[0])
        if is_from_0 and call.keywords.keys().isdisjoint(("start", "end", "step")):
            tags.indices.note_count(call.result)
    elif call.function is torch.randperm:
        tags.indices.note_permutation(call.result)
    elif rule in (inverse_scattered, sort, copied):
        rule(call)
    elif (
        args and isinstance(args[0], Tensor) and (along := tags.indices.counts(args[0])) is not None
    ):
        given, result = args[0], call.result
        if rule is expanded:
            place: int | None = along - given.dim() + result.dim()
        elif rule is refit:
            place = _refit_place(given, along, result)
        else:
            place = place_after(given, args[1], along) if rule is getitem else None
        if place is not None and result.dim() > place and result.shape[place] == given.shape[along]:
            tags.indices.note_count(result, place)


_FILLS = frozenset(
    """
zeros ones full empty zeros_like ones_like full_like empty_like new_zeros new_ones new_full
new_empty zero_ fill_
""".split()  # noqa: SIM905  a list of lines is longer
)
_KEEPS: frozenset[FlowRule] = frozenset(
    {copied, elementwise, expanded, of_the_first, permuted, refit}
)
_BROADCASTS: frozenset[FlowRule] = frozenset({copied, elementwise, expanded})
_PARTS: frozenset[FlowRule] = frozenset({getitem, narrowed, parted, selected, unbound})


def _note_alike(call: Call) -> None:
    """Note a result whose entries are equal."""
    if is_random(call.function):
        return
    if name_of(call.function) not in _FILLS:
        rule, several = FLOW.get(call.function), tensors_in((call.args, call.keywords))
        if rule in _PARTS:
            if rule is getitem and not _is_of_slices(call.args[1]):
                return
            several = several[:1]
        elif rule is repeated and call.first.numel() == 1:
            several = several[:1]
        elif rule not in _KEEPS or not several:
            return
        if not all(one.numel() == 1 or call.tags.indices.is_alike(one) for one in several):
            return
    for each in tensors_in((call.result,)):
        call.tags.indices.note_alike(each)


def _note_alike_rows(call: Call) -> None:
    """Note the dimensions along which all rows of a result are equal, by how they were made.

    Values may not show it: the same row may be rounded otherwise in another place.
    """
    tags, rule, result = call.tags, FLOW.get(call.function), call.result
    several = tensors_in((call.args, call.keywords))
    if rule is None or not several or draws(call.function, call.args, call.keywords):
        return
    if rule in (refit, permuted):
        _note_blocks_after(call, rule, call.first)
    if isinstance(result, Tensor) and (rule is repeated or rule in _BROADCASTS):
        several = several if rule is elementwise else several[:1]
        every = range(result.dim())
        found = {dim for dim in every if all(_is_alike(call, one, dim) for one in several)}
        tags.indices.note_alike_rows(result, found)
        for dim in {*every} - found:
            _note_alike_blocks(call, rule, several, dim)
        if rule is elementwise and result.requires_grad and not any(map(tags.draws.has, several)):
            for dim in {*every} - found:
                _note_constants(call, several, dim)
    elif not any(map(tags.draws.has, several)):
        if rule in (interleaved, joined) and isinstance(result, Tensor):
            tags.indices.note_alike_rows(result, _repeats(call, several))
        _note_alike_by_rule(call, rule, several)


def _repeats(call: Call, several: list[Tensor]) -> set[int]:
    """The dimensions along which a result has the same row of one tensor again and again."""
    first, result = several[0], call.result
    if FLOW.get(call.function) is joined:
        if any(one is not first for one in several):
            return set()
        given = call.named("tensors dim")
        dim = given.get("dim", given.get("axis", 0)) % result.dim()
        return {dim} if call.function is torch.stack or first.shape[dim] == 1 else set()
    if first.dim() != result.dim():
        return set()
    return {dim for dim, size in enumerate(first.shape) if size == 1}


def _note_alike_blocks(call: Call, rule: FlowRule, several: list[Tensor], dim: int) -> None:
    """Note blocks of equal rows, which a call repeats, or which all its arguments have."""
    indices, result = call.tags.indices, call.result
    back = dim - result.dim()
    if rule is repeated:
        size = several[0].shape[back]
        whole = ExampleOrder(result.shape[dim] // size if size else 0)
        candidates = [RowLayout(whole, inner=size)]
    else:
        candidates = [
            layout
            for one in several
            if one.dim() + back >= 0 and one.shape[back] == result.shape[dim]
            for layout in indices.alike_blocks(one, one.dim() + back)
        ]
    for layout in candidates:
        if rule is repeated or all(_has_blocks(call, one, dim, layout) for one in several):
            indices.note_alike_blocks(result, dim, layout)


def _note_blocks_after(call: Call, rule: FlowRule, first: Tensor) -> None:
    """Note blocks of equal rows after a change of shape: where rows of examples would be."""
    for dim in (dim for dim, length in enumerate(first.shape) if length > 1):
        for layout in call.tags.indices.alike_blocks(first, dim):
            with call.tags.supposing({first: ExampleRows(dim, layout)}):
                try:
                    found = rule(call)
                except UNREADABLE:
                    return
            if isinstance(found, ExampleRows):
                call.tags.indices.note_alike_blocks(call.result, found.dim, found.layout)


def _has_blocks(call: Call, one: Tensor, dim: int, layout: RowLayout) -> bool:
    """Whether a tensor has these blocks along the dimension ``dim`` of the result."""
    own = dim - call.result.dim() + one.dim()
    return _is_alike(call, one, dim) or call.tags.indices.has_alike_blocks(one, own, layout)


def _note_constants(call: Call, several: list[Tensor], dim: int) -> None:
    """Note a result that derives from equal rows of weights and from constants."""
    back, result = dim - call.result.dim(), call.result
    others = [one for one in several if not _is_alike(call, one, dim)]
    if result.shape[dim] > 1 and not any(one.requires_grad or one is result for one in others):
        pairs = [(one, back + one.dim()) for one in others]
        call.tags.indices.note_constants_in(result, dim, pairs)


def _is_alike(call: Call, one: Tensor, dim: int) -> bool:
    """Whether a tensor has equal rows along the dimension ``dim`` of the result."""
    own = dim - call.result.dim() + one.dim()
    return own < 0 or one.shape[own] == 1 or call.tags.indices.has_alike_rows(one, own)


def _note_alike_by_rule(call: Call, rule: FlowRule, several: list[Tensor]) -> None:
    """Take equal rows for those of examples, and see where a rule has them in the result."""
    if rule in (mask_selected, masked_places):  # they take other entries of each row
        return
    for each in several:
        for dim, length in enumerate(each.shape):
            if length > 1 and call.tags.indices.has_alike_rows(each, dim):
                _note_alike_by_rows(call, rule, several, each, dim)


def _note_alike_by_rows(  # noqa: PLR0917  # what a call is made of
    call: Call, rule: FlowRule, several: list[Tensor], first: Tensor, dim: int
) -> None:
    """The same for equal rows of one argument along one dimension."""
    tags = call.tags
    if rule is getitem and (
        _has_mask_over(call.args[1], dim) if first is call.args[0] else first.dtype in MASKS
    ):
        return
    rows = ExampleRows(dim, RowLayout(ExampleOrder(first.shape[dim])))
    alike = [
        one for one in several if one.shape == first.shape and tags.indices.has_alike_rows(one, dim)
    ]
    with tags.supposing(dict.fromkeys(alike, rows)):
        try:
            tag = tags_by(rule, call)
        except UNREADABLE:
            return
    results = tensors_in((call.result,))
    found = tag if isinstance(tag, list) else [tag] * len(results)
    for each, own in zip(results, found, strict=False):
        # after a reshape or a join, blocks may be equal where rows are not
        if isinstance(own, ExampleRows) and own.layout == rows.layout and own.dim < each.dim():
            tags.indices.note_alike_rows(each, {own.dim})


def _has_mask_over(index: object, dim: int) -> bool:
    """Whether a mask of several dimensions covers this one: it takes other entries of each row."""
    place = 0
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Tensor) and part.dtype in MASKS:
            if part.dim() > 1 and place <= dim < place + part.dim():
                return True
            place += part.dim()
        elif isinstance(part, list) or part is ...:
            return True  # it may hold a mask, or move one
        else:
            place += part is not None
    return False


def _is_of_slices(index: object) -> bool:
    """Whether an index takes each entry at most once, by slices and numbers alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(one is None or one is ... or type(one) in (int, slice) for one in parts)


def _refit_place(given: Tensor, along: int, result: Tensor) -> int | None:
    """The dimension that counts after a reshape, if all other dimensions have length 1."""
    if not given.numel() == given.shape[along] == result.numel():
        return None
    return next((dim for dim, size in enumerate(result.shape) if size == result.numel()), None)
