"""Follows tensors of 0, 1, 2, ..., which depend on no data: results of `torch.arange`, their views.

An index that counts keeps each row where it is, and the inverse of a permutation is made of one.
"""

import torch
from torch import Tensor

from discreet.train._flow._call import Call
from discreet.train._flow._dims import sorted_out
from discreet.train._flow._indexing import getitem, place_after
from discreet.train._flow._picks import inverse_scattered
from discreet.train._flow._shapes import copied, expanded, refit
from discreet.train._flow._table import FLOW


def count_on(call: Call) -> None:
    """Note a result that counts, or that is a permutation; no argument depends on data."""
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


def _refit_place(given: Tensor, along: int, result: Tensor) -> int | None:
    """The dimension that counts after a reshape, if all other dimensions have length 1."""
    if not given.numel() == given.shape[along] == result.numel():
        return None
    return next((dim for dim, size in enumerate(result.shape) if size == result.numel()), None)
