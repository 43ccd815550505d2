"""Numbers of rows, as `nonzero` returns them: they are indices, and not values of examples.

A row's number is the number of rows before it, so it differs by place in the batch. Therefore the
numbers are untracked. As an index into the dimension that they count, they pick each example's own
rows. All other columns of a table of places belong to each example.
"""

import torch
from torch import Tensor

from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import Call, FlowRule, ResultTags, sees_places
from discreet.train._flow._indexing import getitem
from discreet.train._flow._parts import selected, unbound
from discreet.train._flow._places import ROW_NUMBERS
from discreet.train._flow._shapes import elementwise, refit
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import ExampleRows, Tag

_REMAINDERS = frozenset(
    {torch.remainder, torch.fmod, Tensor.remainder, Tensor.fmod, Tensor.__mod__}
)


@sees_places
def masked_places(call: Call) -> ResultTags:
    """`nonzero`, and `torch.where` with a condition only: the indices of nonzero entries."""
    given = call.named("input")
    mask: Tensor = given["condition"] if "condition" in given else given["input"]
    tag, indices = call.tags.of(mask), call.tags.indices
    if not isinstance(tag, ExampleRows):
        return tag
    is_table = isinstance(call.result, Tensor)
    rows = call.result[:, tag.dim] if is_table else call.result[tag.dim]
    order = indices.picked(tag.layout, mask, rows, within=tag.dim)
    if is_table:
        indices.note_places(call.result, tag.dim, tag.layout, order)
        return ROW_NUMBERS
    indices.note_picked(tag.layout, rows, order)
    own = ExampleRows(0, RowLayout(order))
    return [ROW_NUMBERS if each is rows else own for each in call.result]


@sees_places
def where(call: Call) -> ResultTags:
    """`torch.where`: with a condition only, it returns indices."""
    if isinstance(call.result, Tensor):
        return elementwise(call)
    return masked_places(call)


def follow_numbers(call: Call, rule: FlowRule) -> ResultTags:
    """The tags of columns of a table of places, or of places within examples; None if lost."""
    if call.function in _REMAINDERS:
        return _within(call)
    table = call.first
    known = call.tags.indices.places_of(table) if isinstance(table, Tensor) else None
    if known is None or call.others:
        return None
    if rule is refit:
        is_column = table.shape[1] == call.result.dim() == 1
        return _of_column(call, call.result, [0]) if is_column else None
    if rule not in (getitem, selected, unbound):
        return None
    # two rows show which columns a call takes, and whether it leaves rows where they are
    width = table.shape[1]
    numbers = torch.arange(2 * width).view(2, width)
    results = tensors_in((call.result,))
    taken = tensors_in((call.function(numbers, *call.args[1:], **call.keywords),))
    if len(taken) != len(results):
        return None
    found: list[Tag | None] = []
    for each, part in zip(results, taken, strict=True):
        if not part.dim() or len(part) != 2 or not bool((part[1] - part[0] == width).all()):
            return None
        found.append(_of_column(call, each, part[0].flatten().tolist()))
    return found if len(found) > 1 else found[0]


def _of_column(call: Call, column: Tensor, numbers: list[int]) -> Tag | None:
    """The tag of columns with these numbers; the one that counts rows picks them."""
    known = call.tags.indices.places_of(call.first)
    if known is None or len(column) != known.order.size:
        return None
    if known.dim not in numbers:
        return ExampleRows(0, RowLayout(known.order))
    if column.dim() == 1:
        call.tags.indices.note_picked(known.layout, column, known.order)
    return ROW_NUMBERS


def _within(call: Call) -> ResultTags:
    """Remainders by a divisor of each example's number of rows are places within the example."""
    divisor = call.args[1] if len(call.args) == 2 else None
    for layout, order in call.tags.indices.picks_of(call.first):
        if type(divisor) is int and divisor > 0 and layout.inner % divisor == 0:
            return ExampleRows(0, RowLayout(order))
    return None
