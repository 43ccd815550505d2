"""Follows tensors that depend on no data: those of 0, 1, 2, ..., those that are alike everywhere,
and random ones.

An index that counts keeps each row where it is, and the inverse of a permutation is made of one.
"""

import torch
from torch import Tensor

from discreet.train._arguments import Function, tensors_in
from discreet.train._flow._call import Call, FlowRule, name_of
from discreet.train._flow._dims import sorted_out
from discreet.train._flow._indexing import getitem
from discreet.train._flow._parsed_index import place_after
from discreet.train._flow._parts import narrowed, parted, selected, unbound
from discreet.train._flow._picks import inverse_scattered
from discreet.train._flow._shapes import (
    copied,
    elementwise,
    expanded,
    of_the_first,
    permuted,
    refit,
    repeated,
)
from discreet.train._flow._table import FLOW


def count_on(call: Call) -> None:
    """Note a result that counts, that is alike everywhere, or that is a permutation; no argument
    depends on data."""
    _note_alike(call)
    tags, args, rule = call.tags, call.args, FLOW.get(call.function)
    if call.function is torch.arange:
        is_from_0 = len(args) == 1 or (len(args) == 2 and type(args[0]) is int and not args[0])
        if is_from_0 and call.keywords.keys().isdisjoint(("start", "end", "step")):
            tags.indices.note_count(call.result)
    elif rule in (inverse_scattered, sorted_out, copied):
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
_RANDOM = frozenset(
    """
rand randn randint rand_like randn_like randint_like normal normal_ uniform_ exponential_ random_
geometric_ cauchy_ log_normal_ bernoulli bernoulli_ poisson rrelu dropout dropout_ dropout1d
dropout2d dropout3d alpha_dropout alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_
""".split()  # noqa: SIM905  as above
)  # each number by itself, or each channel
_KEEPS: frozenset[FlowRule] = frozenset(
    {copied, elementwise, expanded, of_the_first, permuted, refit}
)
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


def is_random(function: Function) -> bool:
    """Whether the function draws random numbers."""
    return name_of(function) in _RANDOM


def is_draw(call: Call) -> bool:
    """Whether the numbers of a result are drawn independently, with the same law everywhere."""
    several = tensors_in((call.args, call.keywords))
    return is_random(call.function) and all(
        one.numel() == 1 or call.tags.indices.is_alike(one) for one in several
    )


def _is_of_slices(index: object) -> bool:
    """Whether an index takes each entry at most once, by slices and numbers alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(one is None or one is ... or type(one) in (int, slice) for one in parts)


def _refit_place(given: Tensor, along: int, result: Tensor) -> int | None:
    """The dimension that counts after a reshape, if all other dimensions have length 1."""
    if not given.numel() == given.shape[along] == result.numel():
        return None
    return next((dim for dim, size in enumerate(result.shape) if size == result.numel()), None)
