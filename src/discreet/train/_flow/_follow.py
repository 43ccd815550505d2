"""The engine that tags the result of each call by its rule, and answers questions about calls."""

from dataclasses import replace

import torch
from torch import Tensor

from discreet.train._calls._arguments import UNREADABLE, Function, replaced, tensors_in
from discreet.train._flow._call import (
    OVER_EXAMPLES,
    Call,
    FlowRule,
    ResultTags,
    name_of,
)
from discreet.train._flow._groups import NOTES
from discreet.train._flow._indexing import getitem
from discreet.train._flow._omitted import tags_by
from discreet.train._flow._parsed_index import MASKS
from discreet.train._flow._parts import narrowed, parted, selected, unbound
from discreet.train._flow._picks import COMPARISONS, mask_selected, note_mask
from discreet.train._flow._places import BY_PLACE, ROW_NUMBERS, differs
from discreet.train._flow._random import is_random
from discreet.train._flow._row_numbers import follow_numbers, masked_places, where
from discreet.train._flow._shapes import (
    elementwise,
    has_public_shape,
    interleaved,
    is_sized_by_labels,
    one_hot,
    refit,
)
from discreet.train._flow._table import DIM_SECOND, FLOW, FOR_UNTRACKED, TAKES_DIMS, WITH_DIMS
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import ExampleRows, Tag, UntrackedRows

_SETTERS = frozenset({"__setitem__", "__set__"})
_NOTES = {**NOTES, **dict.fromkeys(COMPARISONS, note_mask)}


def follow(call: Call, tensors: list[Tensor]) -> None:
    """Tag the result of a call whose data have tags, from all tensors among its arguments."""
    if isinstance(call.result, Tensor):
        results = [call.result]
    else:
        results = [call.args[0]] if sets_first(call.function) else tensors_in((call.result,))
    if not results:
        return
    rule = FLOW.get(call.function)
    lost = UntrackedRows(name_of(call.function))
    try:
        found = lost if rule is None else _result_tags(call, rule, tensors)
    except UNREADABLE:  # the function took its arguments, but its rule can't read them
        found = lost
    several = found if isinstance(found, list) else [found] * len(results)
    if len(several) != len(results):
        several = [lost] * len(results)
    for each, tag in zip(results, several, strict=True):
        call.tags.set(each, lost if tag is None else tag)
    if (note := _NOTES.get(call.function)) is not None:
        note(call)


def _result_tags(call: Call, rule: FlowRule, tensors: list[Tensor]) -> ResultTags:
    given = map(call.tags.of, tensors)
    lost = next((tag for tag in given if isinstance(tag, UntrackedRows)), None)
    if lost == ROW_NUMBERS and (numbers := follow_numbers(call, rule)) is not None:
        return numbers
    if lost is not None and rule not in FOR_UNTRACKED:
        return _of_places(call, rule, lost)
    if (call.keywords or rule in TAKES_DIMS) and _has_tensor_as_dim(call, rule):
        return UntrackedRows("a dimension that is a tensor")
    found = tags_by(rule, call)
    if found is OVER_EXAMPLES:
        return UntrackedRows(f"{name_of(call.function)} over examples")
    return found


def _has_tensor_as_dim(call: Call, rule: FlowRule) -> bool:
    """Whether a dimension is given as a tensor, whose number may change later."""
    second = call.args[1] if rule in DIM_SECOND and len(call.args) > 1 else None
    given = [call.keywords.get(name, second) for name in ("dim", "axis", "dims")]
    if any(isinstance(one, Tensor) for one in given):
        return True
    others = call.others if rule in WITH_DIMS else []
    is_extreme = name_of(call.function) in ("max", "min") and isinstance(call.result, Tensor)
    return not is_extreme and any(_is_whole_number(one) for one in others)


def _is_whole_number(one: Tensor) -> bool:
    is_number = one.is_floating_point() or one.is_complex() or one.dtype == torch.bool
    return not one.dim() and not is_number


def _of_places(call: Call, rule: FlowRule, lost: UntrackedRows) -> UntrackedRows:
    """The tag of a function of untracked data: it may return places, or one of them."""
    result = call.result
    if rule is masked_places or (rule is where and not isinstance(result, Tensor)):
        return replace(lost, has_places=True, is_place=False)
    if rule is unbound and lost.has_places and call.named("input dim").get("dim", 0) == 0:
        return replace(lost, has_places=False, is_place=True)
    is_alone = rule in (refit, unbound) or (rule is elementwise and not call.others)
    is_one = is_alone and sum(each.numel() for each in tensors_in((result,))) == 1
    return lost if lost.is_place and is_one else replace(lost, has_places=False, is_place=False)


def is_known(function: Function) -> bool:
    """Whether this function of PyTorch's has a rule."""
    return function in FLOW


def has_public_shapes(tags: Tags, tensors: list[Tensor]) -> bool:
    """Whether no shape of these tensors depends on values of examples."""
    return all(has_public_shape(tags.of(one)) for one in tensors)


def has_own_draws(tags: Tags, losses: Tensor) -> bool:
    """Whether draws from which losses derive are rows of single examples, or the same for all."""
    return not differs(tags, losses, 0, tags.plain)


def gives_sizes(call: Call) -> bool:
    """Whether values may decide the size of a result, as of the places of nonzero entries."""
    rule, result = FLOW.get(call.function), call.result
    if is_random(call.function):
        return False
    if rule is getitem:
        return any(one.dtype in MASKS for one in call.others)
    if rule is where:
        return not isinstance(result, Tensor)
    if rule is interleaved:
        return bool(call.others)
    if rule is one_hot:
        return is_sized_by_labels(call)
    return rule in (masked_places, mask_selected) or (rule is None and bool(tensors_in((result,))))


def parts_of(call: Call) -> list[str] | None:
    """The names of the parts of its first argument that a call returns, if it returns some."""
    rule, result = FLOW.get(call.function), call.result
    how = repr(replaced(call.args[1:], id))  # type: ignore[arg-type]  # numbers for tensors
    if rule in (unbound, parted):
        return [f"{number} of {how}" for number in range(len(result))]
    if rule in (getitem, selected, narrowed) and isinstance(result, Tensor):
        return [how]
    return None


def sets_first(function: Function) -> bool:
    """Whether a function changes its first argument, and returns nothing."""
    return getattr(function, "__name__", "") in _SETTERS


def shared_now(tags: Tags, tensor: Tensor, other: Tensor) -> None:
    """Tag ``other``, which shares the memory of ``tensor``, after data changed it in place."""
    now = tags.of(tensor)
    if now is None:
        return
    tag = _in_same_memory(now, tensor, other)
    if isinstance(tag, ExampleRows) and differs(tags, other, tag.dim, tag.layout):
        tag = BY_PLACE  # what the change left as it was
    tags.set(other, tag)


def _in_same_memory(tag: Tag, tensor: Tensor, other: Tensor) -> Tag:
    """The tag of another view of the same memory: examples lie along the dimension with the same
    length and stride."""
    if not isinstance(tag, ExampleRows):
        return tag
    if tensor.element_size() != other.element_size():  # strides count other entries
        return UntrackedRows("a change of memory in place")
    length, stride = tensor.shape[tag.dim], tensor.stride(tag.dim)
    for dim in range(other.dim()):
        if (other.shape[dim], other.stride(dim)) == (length, stride):
            outer = {*_outer_strides(tensor, tag.dim), *_outer_strides(other, dim)}
            first = _first_block(tensor, tag.dim, outer)
            if first is not None and first == _first_block(other, dim, outer):
                return tag.at(dim)
    return UntrackedRows("a change of memory in place")


def _outer_strides(tensor: Tensor, dim: int) -> list[int]:
    """The strides that step over all rows along a dimension."""
    rows = tensor.shape[dim] * tensor.stride(dim)
    return [step for step in tensor.stride() if step >= rows > 0]


def _first_block(tensor: Tensor, dim: int, outer: set[int]) -> int | None:
    """The place in memory of row 0, counted in rows; None if rows overlap."""
    step, start = tensor.stride(dim), tensor.storage_offset()
    for one in sorted(outer, reverse=True):
        start %= one
    others = [n for n in range(tensor.dim()) if n != dim and tensor.stride(n) not in outer]
    width = sum((tensor.shape[n] - 1) * tensor.stride(n) for n in others)
    return None if step == 0 or start % step + width >= step else start // step
