"""Numbers of rows, as `nonzero` gives them: they may pick rows, and say nothing else.

Row i's number is its place in the batch. So numbers of rows are used as an index along the
dimension of examples only, or written nowhere but there; as values they differ by place.
"""

from typing import Any

import torch
from torch import Tensor

from discreet.train._arguments import tensors_in
from discreet.train._flow._call import Call, FlowRule, name_of
from discreet.train._flow._indexing import getitem
from discreet.train._flow._parsed_index import ParsedIndex
from discreet.train._flow._parts import narrowed, parted, selected, unbound
from discreet.train._flow._picks import chosen, divided, index_added
from discreet.train._flow._shapes import copied, expanded, permuted, refit
from discreet.train._flow._writing import setitem
from discreet.train._tag import ExampleRows

_KEEPS: frozenset[FlowRule] = frozenset(
    {copied, divided, expanded, narrowed, parted, permuted, refit, selected, unbound}
)
_OF_SHAPES = frozenset({torch.zeros_like, torch.ones_like, torch.full_like, torch.empty_like})
_TYPES = frozenset({Tensor.int, Tensor.long})
_REMAINDERS = frozenset({"remainder", "__mod__"})


def uses_as_values(call: Call, rule: FlowRule, tensors: list[Tensor]) -> bool:
    """Whether a call uses numbers of rows in another way than to pick rows."""
    has = call.tags.indices.has_row_numbers
    if not any(map(has, tensors)):
        return False
    if rule in _KEEPS or call.function in _OF_SHAPES or call.function in _TYPES:
        return False
    if name_of(call.function) in _REMAINDERS:
        return not _is_within_example(call)
    if rule is getitem:
        return _picks_elsewhere(call, call.first, call.args[1])
    if rule in (chosen, index_added):
        given = call.named("input dim index source")
        dim, source = given["dim"] % given["input"].dim(), given.get("source")
        index = (*[slice(None)] * dim, given["index"])
        is_elsewhere = _picks_elsewhere if rule is chosen else _writes_elsewhere
        return _has(call, source) or is_elsewhere(call, given["input"], index)
    if rule is setitem:
        return _has(call, call.args[2]) or _writes_elsewhere(call, call.args[0], call.args[1])
    return True


def keep_row_numbers(call: Call, rule: FlowRule) -> None:
    """Note parts and views of numbers of rows, too."""
    is_kept = rule in _KEEPS or rule is getitem or call.function in _TYPES
    if is_kept and _has(call, call.first):
        for each in tensors_in((call.result,)):
            call.tags.indices.note_row_numbers(each)


def _has(call: Call, value: Any) -> bool:  # Any: a tensor or a number
    return isinstance(value, Tensor) and call.tags.indices.has_row_numbers(value)


def _is_within_example(call: Call) -> bool:
    """Whether a remainder is a place within an example, such as a step in time."""
    given, by = call.args[0], call.args[1] if len(call.args) > 1 else None
    tag = call.tags.of(given)
    if type(by) is not int or by <= 0 or not isinstance(tag, ExampleRows):
        return False
    before = tag.layout.order.layout
    return before is not None and before.inner % by == 0


def _numbered(call: Call, data: Tensor, index: Any) -> list[int]:  # Any: as Python has it
    """The dimensions that an index picks from by numbers of rows."""
    parsed = ParsedIndex(data, index)
    entries = (*parsed.tensors.items(), *parsed.numbers.items())
    return [dim for dim, one in entries if _has(call, one)]


def _picks_elsewhere(call: Call, data: Tensor, index: Any) -> bool:  # Any: as above
    tag = call.tags.of(data)
    rows = {tag.dim} if isinstance(tag, ExampleRows) else set[int]()
    return not {*_numbered(call, data, index)} <= rows


def _writes_elsewhere(call: Call, data: Tensor, index: Any) -> bool:  # Any: as above
    """Into rows of examples, or into a constant, along one dimension."""
    tag, found = call.tags.of(data), _numbered(call, data, index)
    return len(found) > 1 or (isinstance(tag, ExampleRows) and found not in ([], [tag.dim]))
