"""How rows that were sorted by group are followed: `grouped_mm` multiplies each group by a matrix.

The ends of groups depend on all examples. So they must be the counts of the very keys by which the
rows were sorted: then each row's matrix is that of its own key.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from discreet.train._calls._arguments import Function
from discreet.train._flow._call import OVER_EXAMPLES, Call, ResultTags
from discreet.train._flow._places import BY_PLACE
from discreet.train._tags._indices import GroupsOf, GroupStage
from discreet.train._tags._tag import ExampleRows, UntrackedRows

_COPIES = (Tensor.float, Tensor.double, Tensor.int, Tensor.long, Tensor.to)
_WHOLE = (torch.int32, torch.int64)


def grouped(call: Call) -> ResultTags:
    """`F.grouped_mm`: each row is multiplied by one of several matrices."""
    given = call.named("input mat2 offs")
    data, ends, tag = given["input"], given.get("offs"), call.tags.of(given["input"])
    if isinstance(ends, Tensor) and not call.tags.depends(ends):
        return BY_PLACE
    if call.tags.of(given["mat2"]) is not None:
        return UntrackedRows("grouped_mm of data by data")
    if not isinstance(tag, ExampleRows):
        return tag
    if tag.dim == data.dim() - 1:
        return OVER_EXAMPLES
    if isinstance(ends, Tensor) and call.tags.keys_of_groups(data, ends) is None:
        return UntrackedRows(
            "grouped_mm with groups that are not known (sort the rows by a key, and count the same "
            "key by torch.histc or torch.bincount)"
        )
    return tag


def _copied(call: Call) -> None:
    indices = call.tags.indices
    known = indices.groups_of(call.args[0])
    if known is not None and call.result.shape == call.args[0].shape:
        indices.note_groups(call.result, known)


def _sorted(call: Call) -> None:
    """Sorted keys have the same counts, and their order sorts rows by key."""
    given = call.named("input dim descending")
    keys = given["input"]
    if keys.dim() == 1 and keys.dtype in _WHOLE and not given.get("descending", False):
        values, order = (None, call.result) if isinstance(call.result, Tensor) else call.result
        call.tags.indices.note_sorting(order, keys)
        if values is not None:
            found = call.tags.indices.groups_of(keys)
            call.tags.indices.note_groups(values, found or GroupsOf.entries(keys))


def _binned(call: Call) -> None:
    """`histc` with one bin for each group."""
    given = call.named("input bins min max")
    bins = given.get("bins", 100)
    if (given.get("min", 0), given.get("max", 0)) == (0, bins - 1) and bins > 1:
        _note(call, given["input"], GroupStage.ENTRIES, GroupStage.COUNTS)


def _counted(call: Call) -> None:
    """`bincount` without weights."""
    if call.named("input weights").get("weights") is None:
        _note(call, call.first, GroupStage.ENTRIES, GroupStage.COUNTS)


def _summed_up(call: Call) -> None:
    _note(call, call.first, GroupStage.COUNTS, GroupStage.ENDS)


def _note(call: Call, given: Tensor, stage: GroupStage, after: GroupStage) -> None:
    """Note that a result is the next stage of the keys' counts."""
    indices = call.tags.indices
    known = indices.groups_of(given)
    if known is None and stage is GroupStage.ENTRIES and given.dtype in _WHOLE:
        known = GroupsOf.entries(given)
    if known is not None and known.stage is stage:
        indices.note_groups(call.result, known.at(after))


NOTES: dict[Function, Callable[[Call], None]] = {
    **dict.fromkeys(_COPIES, _copied),
    **dict.fromkeys((torch.sort, Tensor.sort, torch.argsort, Tensor.argsort), _sorted),
    **dict.fromkeys((torch.histc, Tensor.histc), _binned),
    **dict.fromkeys((torch.bincount, Tensor.bincount), _counted),
    **dict.fromkeys((torch.cumsum, Tensor.cumsum), _summed_up),
}
