"""How tags follow layers with examples elsewhere than first, and losses."""

import torch
from torch import Tensor

from discreet.train._flow._call import OVER_EXAMPLES, Call, Follow, Found, of_all, tensors
from discreet.train._flow._dims import by_first
from discreet.train._flow._shapes import elementwise
from discreet.train._tags import OUTSIDE, Alone, Layout, Lost, Rows, Tag, merged


def recurrent(call: Call) -> Found:
    """PyTorch's recurrent layers: results, and last states (layer, example, hidden)."""
    data, second = call.args[:2]
    tag = call.tags.of(data)
    if isinstance(call.args[3], (list, tuple)):  # packed
        if not isinstance(tag, Rows) or tag.layout.group.layout is None:
            return tag
        states: Tag | None = Rows(1, tag.layout.group.layout)
    else:
        if isinstance(tag, Rows) and tag.dim != (0 if call.args[8] else 1):
            return OVER_EXAMPLES
        own = tag.at(1) if isinstance(tag, Rows) else tag
        states = of_all(call.tags, second, 3) or own
        if states != own:
            return Lost("a recurrent layer with states of other rows")
    return [tag, *[states] * (len(call.result) - 1)]


def attention_forward(call: Call) -> Found:
    """`F.multi_head_attention_forward`: queries (time, example, feature)."""
    query = call.args[0] if call.args else call.keywords["query"]
    tag = call.tags.of(query) or of_all(call.tags, call.args[1:3], query.dim())
    several = [call.tags.of(one) for one in tensors((call.args[:3],))]
    if isinstance(tag, Rows):
        if tag.dim != query.dim() - 2 or query.dim() < 3:
            return OVER_EXAMPLES
        if any(one is not None and one != tag for one in several):
            return Lost("attention to rows of other examples")
        both: list[Tag | None] = [tag, tag.at(0)]
        return both[: len(tensors((call.result,)))]
    return tag


def packed_up(call: Call) -> Found:
    """`_pack_padded_sequence`: step by step, the rows of all examples that go on."""
    given = call.named("input lengths batch_first")
    tag = call.tags.of(given["input"])
    if not isinstance(tag, Rows):
        return [tag, OUTSIDE]
    if tag.dim != (0 if given["batch_first"] else 1):
        return [OVER_EXAMPLES, OUTSIDE]
    rows = torch.cat([torch.arange(int(size)) for size in call.result[1]])
    return [Rows(0, Layout(call.tags.picked(tag.layout, call.result[1], rows))), OUTSIDE]


def padded_up(call: Call) -> Found:
    """`_pad_packed_sequence`: each example's steps side by side again."""
    given = call.named("data batch_sizes batch_first")
    tag = call.tags.of(given["data"])
    if not isinstance(tag, Rows) or tag.layout.group.layout is None:
        return [tag, OUTSIDE]
    return [Rows(0 if given["batch_first"] else 1, tag.layout.group.layout), OUTSIDE]


def bagged(call: Call) -> Found:
    """`F.embedding_bag`: places of one example each, or bags of which its rule knows whose they
    are."""
    given = call.named("input weight offsets")
    tag = call.tags.of(given["input"])
    if given["input"].dim() == 1 and isinstance(tag, Rows):
        return (
            Rows(0, call.tags.plain) if len(call.result) == call.tags.every.size else OVER_EXAMPLES
        )
    return by_first(2)(call)


def losses(names: str) -> Follow:
    """Losses of each place, if they are not reduced."""

    def follow_it(call: Call) -> Found:
        given = call.named(names)
        reduction = given.get("reduction", "mean")
        if reduction != "none":
            tag = of_all(call.tags, (call.args, call.keywords), 0)
            return tag if isinstance(tag, Alone) else OVER_EXAMPLES
        return elementwise(call)

    return follow_it


def cross_entropy(call: Call) -> Found:
    """Of logits (example, class, ...), and labels without classes or in their shape."""
    given = call.named(
        "input target weight size_average ignore_index reduce reduction label_smoothing"
    )
    data, target = given["input"], given["target"]
    if isinstance(weight := given.get("weight"), Tensor) and call.tags.of(weight) is not None:
        return Lost("weights of classes that are data")
    tag = merged(((t, 0) for t in map(call.tags.of, (data, target)) if t is not None), 0)
    if not isinstance(tag, Rows):
        return tag
    if given.get("reduction", "mean") != "none" or tag.dim or data.dim() < 2:
        return OVER_EXAMPLES
    return tag
