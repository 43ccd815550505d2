"""How tags follow data through PyTorch's functions: one rule for each function.

A rule takes a `Call`: the function's arguments with their tags, and its result. It returns the tag
of the result, or one tag for each of its tensors if they differ. After a function without a rule,
owners are unknown. Read `_table` for the functions and their rules, then the files by kind of
function: `_shapes`, `_dims`, `_products`, `_parts`, `_indexing`, `_picks` and `_layers`.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from discreet.train._arguments import Args, Keywords
from discreet.train._flow._call import OVER_EXAMPLES, Call, Found, tensors
from discreet.train._flow._dims import sorted_out
from discreet.train._flow._indexing import getitem
from discreet.train._flow._parts import unbound
from discreet.train._flow._picks import inverse_scattered, masked_places, where
from discreet.train._flow._shapes import copied, expanded, refit
from discreet.train._flow._table import FLOW, FOR_UNKNOWN_OWNERS
from discreet.train._tags import ExampleRows, Tag, Tags, UnknownOwners

__all__ = ["count_on", "follow", "is_known", "shared_now", "tensors"]


def follow(  # noqa: PLR0917  # what a call is made of
    tags: Tags,
    function: Any,  # Any: a function of PyTorch's, and what it takes and gives
    args: Args,
    keywords: Keywords,
    result: Any,
) -> None:
    """Tag the result of a call whose data have tags."""
    results = tensors((result,))
    name = getattr(function, "__name__", "")
    if name in ("__setitem__", "__set__"):
        results = [args[0]]
    if not results:
        return
    rule = FLOW.get(function)
    found: Found = UnknownOwners(name_of(function))
    if rule is not None:
        given = [tags.of(each) for each in tensors((args, keywords))]
        lost = next((tag for tag in given if isinstance(tag, UnknownOwners)), None)
        found = (
            rule(Call(tags, args, keywords, result))
            if lost is None or rule in FOR_UNKNOWN_OWNERS
            else _places(rule, lost, result)
        )
        if isinstance(found, UnknownOwners) and found is OVER_EXAMPLES:
            found = UnknownOwners(f"{name_of(function)} over examples")
    several = found if isinstance(found, list) else [found] * len(results)
    for each, tag in zip(results, several, strict=True):
        tags.set(each, UnknownOwners(name_of(function)) if tag is None else tag)


def _places(rule: Any, lost: UnknownOwners, result: Any) -> UnknownOwners:  # Any: as above
    """The tag of a function of data with unknown owners: it may return places, or one of them."""
    if rule is masked_places or (rule is where and not isinstance(result, Tensor)):
        return replace(lost, has_places=True, is_place=False)
    if rule is unbound and lost.has_places:
        return replace(lost, has_places=False, is_place=True)
    is_one = rule in (refit, unbound) and sum(each.numel() for each in tensors((result,))) == 1
    return lost if lost.is_place and is_one else UnknownOwners(lost.by)


def is_known(function: Any) -> bool:  # Any: as above
    """Whether the function has a rule."""
    return function in FLOW


def count_on(  # noqa: PLR0917  # as above
    tags: Tags,
    function: Any,  # Any: as above
    args: Args,
    keywords: Keywords,
    result: Any,
) -> None:
    """Note tensors that count 0, 1, 2, ...: results of `torch.arange`, and views of them."""
    if function is torch.arange:
        if len(args) == 1 or (len(args) == 2 and args[0] == 0):
            tags.note_count(result)
        return
    rule = FLOW.get(function)
    if rule in (inverse_scattered, sorted_out, copied):
        rule(Call(tags, args, keywords, result))
    elif args and isinstance(args[0], Tensor) and (dim := tags.counts(args[0])) is not None:
        if rule is expanded:
            place = dim - args[0].dim() + result.dim()
            if result.shape[place] == args[0].shape[dim]:  # a single 0 may be repeated
                tags.note_count(result, place)
        elif rule in (refit, getitem):
            rule(Call(tags, args, keywords, result))


def shared_now(tags: Tags, tensor: Tensor, other: Tensor) -> None:
    """Tag a tensor that shares memory with one that did not depend on data, and now does."""
    now = tags.of(tensor)
    if now is not None:
        tags.set(other, _alike(now, tensor, other))


def _alike(tag: Tag, tensor: Tensor, other: Tensor) -> Tag:
    """The tag of another view of the same memory: examples lie along the dimension with the same
    length and stride."""
    if not isinstance(tag, ExampleRows):
        return tag
    length, stride = tensor.shape[tag.dim], tensor.stride(tag.dim)
    for dim in range(other.dim()):
        if (other.shape[dim], other.stride(dim)) == (length, stride):
            return tag.at(dim)
    return UnknownOwners("a change of memory in place")


def name_of(function: Any) -> str:  # Any: a function of PyTorch's
    """The function's name; for a getter or setter, the name of the attribute."""
    name = getattr(function, "__name__", "a function")
    if name in ("__get__", "__set__"):
        return getattr(getattr(function, "__self__", None), "__name__", name)
    return str(name)
