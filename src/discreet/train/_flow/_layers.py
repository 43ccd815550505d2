"""How tags follow layers whose examples are not in the first dimension."""

import sys
from inspect import signature

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.nn.utils.rnn import pad_packed_sequence

from discreet.errors import Refused
from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import OVER_EXAMPLES, Call, ResultTags, of_all, sees_places
from discreet.train._flow._places import BY_PLACE, beside_constants, differs
from discreet.train._tags._indices import NO_INDEX
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    PACKING,
    ExampleRows,
    Tag,
    UntrackedRows,
)


@sees_places
def recurrent(call: Call) -> ResultTags:
    """PyTorch's recurrent layers: they return results and last states (layer, example, hidden)."""
    is_packed = isinstance(call.args[3], (list, tuple))
    weights = call.args[3 if is_packed else 2]
    if any(map(call.tags.depends, tensors_in((weights,)))):
        return UntrackedRows("a recurrent layer with weights of data")
    if any(one.dim() > 1 for one in _biases(call, tensors_in((weights,)), is_packed=is_packed)):
        return BY_PLACE
    if is_packed:
        return _recurrent_packed(call)
    data, second = call.args[:2]
    tag = call.tags.of(data)
    if isinstance(tag, UntrackedRows):
        return tag
    place = 0 if call.args[8] else 1
    if isinstance(tag, ExampleRows) and tag.dim != place:
        return OVER_EXAMPLES
    own = tag.at(1) if isinstance(tag, ExampleRows) else tag
    states = of_all(call.tags, second, 3) or own
    if own is None and isinstance(states, ExampleRows):  # one input for all examples
        tag, own = states.at(place), states
        if differs(call.tags, data, place, states.layout):
            return BY_PLACE
    if beside_constants(call.tags, own, tensors_in((second,)), 3) is BY_PLACE:
        return BY_PLACE
    if states != own:
        return UntrackedRows("a recurrent layer with states of other rows")
    return [tag, *[states] * (len(call.result) - 1)]


def _biases(call: Call, weights: list[Tensor], *, is_packed: bool) -> list[Tensor]:
    """The biases among the weights of a recurrent layer: of each direction the third and fourth."""
    has_biases, layers, is_double = (call.args[n + is_packed] for n in (3, 4, 7))
    number = len(weights) // (int(layers) * (2 if is_double else 1))
    return [one for n, one in enumerate(weights) if has_biases and n % number in (2, 3)]


def _recurrent_packed(call: Call) -> ResultTags:
    """The same for packed sequences."""
    tag, given = call.tags.of(call.args[0]), tensors_in((call.args[2],))
    states = tag
    if isinstance(tag, ExampleRows):
        layout = call.tags.indices.put_back(tag.layout.order, call.args[1], within=NO_INDEX)
        if layout is None:
            return UntrackedRows("a recurrent layer of a packed sequence that was made by hand")
        states = ExampleRows(1, layout)
    if any(call.tags.depends(one) and call.tags.of(one) != states for one in given):
        return UntrackedRows("a recurrent layer with states of other rows")
    if beside_constants(call.tags, states, given, 3) is BY_PLACE:
        return BY_PLACE
    return [tag, *[states] * (len(call.result) - 1)]


def attention_forward(call: Call) -> ResultTags:
    """`F.multi_head_attention_forward`, with queries (time, example, feature)."""
    given = call.named(" ".join(signature(F.multi_head_attention_forward).parameters))
    query, several = given["query"], [given.pop(name) for name in ("query", "key", "value")]
    masks = {name: given.pop(name, None) for name in ("key_padding_mask", "attn_mask")}
    if any(map(call.tags.depends, tensors_in(given.values()))):
        return UntrackedRows("attention with weights of data")
    tag = call.tags.of(query) or of_all(call.tags, several[1:], query.dim())
    if any(one is not None and one != tag for one in map(call.tags.of, several)):
        return UntrackedRows("attention to rows of other examples")
    if not isinstance(tag, ExampleRows):
        own = (mask is None or call.tags.of(mask) in (None, tag) for mask in masks.values())
        return tag if all(own) else UntrackedRows("attention by a mask of other examples")
    if given.get("static_k") is not None or given.get("static_v") is not None:
        return UntrackedRows("attention to static keys")
    if tag.dim != query.dim() - 2 or query.dim() < 3:
        return OVER_EXAMPLES
    if beside_constants(call.tags, tag, several, 3) is BY_PLACE:
        return BY_PLACE
    if (refused := _refused_masks(call, masks, given["num_heads"], tag)) is not None:
        return refused
    both: list[Tag | None] = [tag, tag.at(0)]
    return both[: len(tensors_in((call.result,)))]


def _refused_masks(
    call: Call, masks: dict[str, Tensor | None], heads: int, rows: ExampleRows
) -> UntrackedRows | None:
    """`UntrackedRows` if a mask of attention hides rows by other examples, or by place."""
    layout = rows.layout
    by_head = RowLayout(layout.order, layout.outer, layout.inner * heads)
    for name, own in (("key_padding_mask", layout), ("attn_mask", by_head)):
        mask = masks[name]
        if mask is None:
            continue
        if call.tags.depends(mask) and call.tags.of(mask) != ExampleRows(0, own):
            return UntrackedRows("attention by a mask of other examples")
        has_rows = name == "key_padding_mask" or mask.dim() == 3
        if has_rows and differs(call.tags, mask, 0, own):
            return BY_PLACE
    return None


@sees_places
def packed_up(call: Call) -> ResultTags:
    """`_pack_padded_sequence`: for each step in time, the rows of all examples that reach it."""
    given = call.named("input lengths batch_first")
    tag = call.tags.of(given["input"])
    if not isinstance(tag, ExampleRows):
        return [tag, OUTSIDE_BATCH]
    if tag.dim != (0 if given["batch_first"] else 1):
        return [OVER_EXAMPLES, OUTSIDE_BATCH]
    lengths: Tensor = given["lengths"]  # sorted, so that places don't show whose they are
    depends = call.tags.depends(lengths)
    if not depends and bool((lengths != lengths[:1]).any()):
        return [BY_PLACE, OUTSIDE_BATCH]
    if depends and call.tags.of(lengths) != ExampleRows(0, tag.layout):
        return [UntrackedRows("packing by lengths of other examples"), PACKING]
    rows = torch.cat([torch.arange(int(size)) for size in call.result[1]])
    order = call.tags.indices.picked(tag.layout, call.result[1], rows, within=NO_INDEX)
    return [
        ExampleRows(0, RowLayout(order)),
        PACKING if depends else OUTSIDE_BATCH,
    ]


@sees_places
def padded_up(call: Call) -> ResultTags:
    """`_pad_packed_sequence`: each example's steps are next to one another again."""
    given = call.named("data batch_sizes batch_first")
    tag = call.tags.of(given["data"])
    sizes = call.tags.of(given["batch_sizes"])
    lost = sizes if isinstance(sizes, UntrackedRows) else OUTSIDE_BATCH
    if isinstance(sizes, UntrackedRows) and not _has_total_length():
        raise Refused(
            "pad_packed_sequence pads to the longest sequence of the batch; give it total_length, "
            "such as the number of steps of the data"
        )
    if not isinstance(tag, ExampleRows) or tag.layout.order.layout is None:
        return [tag or lost, lost]
    layout = call.tags.indices.put_back(tag.layout.order, given["batch_sizes"], within=NO_INDEX)
    if layout is None:
        return UntrackedRows("a packed sequence of other rows")
    lengths = ExampleRows(0, layout) if lost is sizes else OUTSIDE_BATCH
    return [ExampleRows(0 if given["batch_first"] else 1, layout), lengths]


def _has_total_length() -> bool:
    """Whether `pad_packed_sequence`, which calls PyTorch's own function, was given a length."""
    frame = sys._getframe(1)  # noqa: SLF001  has no public name
    while frame.f_back is not None and frame.f_code is not pad_packed_sequence.__code__:
        frame = frame.f_back
    return frame.f_locals.get("total_length") is not None


def bagged(call: Call) -> ResultTags:
    """`F.embedding_bag`: one bag for each example."""
    given = call.named(
        "input weight offsets max_norm norm_type scale_grad_by_freq mode sparse per_sample_weights"
    )
    tag, weights = call.tags.of(given["input"]), given.get("per_sample_weights")
    if given["input"].dim() == 1 and isinstance(tag, ExampleRows):
        own = None if weights is None else call.tags.of(weights)
        if call.tags.of(given["weight"]) is not None or own not in (None, tag):
            return UntrackedRows("embedding_bag with weights that depend on other examples")
        if weights is not None and differs(call.tags, weights, 0, tag.layout):
            return BY_PLACE
        return _in_bags(call, tag, given["offsets"])
    if any(call.tags.of(one) is not None for one in call.others if one is not weights):
        return UntrackedRows("a function of data by data")
    found = of_all(call.tags, (given["input"], weights), 2)
    return OVER_EXAMPLES if isinstance(found, ExampleRows) and found.dim else found


def _in_bags(call: Call, rows: ExampleRows, starts: Tensor) -> Tag:
    """The tag of bags of rows; if their starts depend on data, the layer's rule makes its own."""
    number, layout = call.tags.every.size, rows.layout
    if len(call.result) != number:
        return OVER_EXAMPLES
    if call.tags.depends(starts):
        return ExampleRows(0, call.tags.plain)
    if layout.order.places is None:
        return UntrackedRows("embedding_bag with the same offsets whatever rows data picked")
    examples = layout.example_of_row(call.result.device)
    ends = torch.cat([starts[1:number], torch.full_like(starts[:1], len(examples))])
    bags = torch.arange(number, device=ends.device)
    sizes = (ends - starts[:number]).clamp(min=0)
    is_own = torch.equal(bags.repeat_interleave(sizes), examples)
    return ExampleRows(0, call.tags.plain) if is_own else OVER_EXAMPLES
