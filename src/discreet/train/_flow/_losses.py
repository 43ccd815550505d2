"""How tags follow losses."""

from torch import Tensor

from discreet.train._flow._call import (
    OVER_EXAMPLES,
    Call,
    FlowRule,
    ResultTags,
    of_all,
    sees_places,
)
from discreet.train._flow._places import BY_PLACE, differs
from discreet.train._flow._shapes import elementwise
from discreet.train._tags._tag import ExampleRows, OneExample, UntrackedRows, merged


def losses(names: str) -> FlowRule:
    """The rule of losses: without reduction, one for each entry."""

    @sees_places
    def tag_result(call: Call) -> ResultTags:
        given = call.named(names)
        reduction = given.get("reduction", "mean")
        if reduction != "none":
            tag = of_all(call.tags, (call.args, call.keywords), 0)
            return tag if isinstance(tag, OneExample) else OVER_EXAMPLES
        return elementwise(call)

    return tag_result


@sees_places
def cross_entropy(call: Call) -> ResultTags:
    """`F.cross_entropy`: logits (example, class, ...), labels (example, ...) or of that shape."""
    given = call.named(
        "input target weight size_average ignore_index reduce reduction label_smoothing"
    )
    data, target = given["input"], given["target"]
    if isinstance(weight := given.get("weight"), Tensor) and call.tags.of(weight) is not None:
        return UntrackedRows("class weights that depend on data")
    tag = merged(((t, 0) for t in map(call.tags.of, (data, target)) if t is not None), 0)
    if not isinstance(tag, ExampleRows):
        return tag
    if given.get("reduction", "mean") != "none" or tag.dim or data.dim() < 2:
        return OVER_EXAMPLES
    if any(differs(call.tags, one, 0, tag.layout) for one in (data, target)):
        return BY_PLACE
    return tag


def losses_of_rows(names: str, *, data: int) -> FlowRule:
    """The rule of losses that are one number for each row: the first ``data`` arguments have
    examples in their first dimension, all others are the same for each."""

    @sees_places
    def tag_result(call: Call) -> ResultTags:
        given = call.named(names)
        order = names.split()
        several, others = (
            [given[name] for name in part if isinstance(given.get(name), Tensor)]
            for part in (order[:data], order[data:])
        )
        tag = merged(((t, 0) for t in map(call.tags.of, several) if t is not None), 0)
        if not isinstance(tag, ExampleRows):
            return tag
        if given.get("reduction", "mean") != "none" or tag.dim or call.result.dim() != 1:
            return OVER_EXAMPLES
        if any(one.dim() > 1 or call.tags.depends(one) for one in others):
            return UntrackedRows("a loss with weights of examples")
        if any(one.dim() and differs(call.tags, one, 0, tag.layout) for one in several):
            return BY_PLACE
        return tag

    return tag_result


@sees_places
def gaussian_nll(call: Call) -> ResultTags:
    """`F.gaussian_nll_loss`: a variance for each entry, or one for all entries of a row."""
    given = call.named("input target var full eps reduction")
    data, var = given["input"], given["var"]
    has_variances = not isinstance(var, Tensor) or var.dim() == data.dim()
    if given.get("reduction", "mean") != "none" or not has_variances:
        return OVER_EXAMPLES
    return elementwise(call)


@sees_places
def ctc_loss(call: Call) -> ResultTags:
    """`F.ctc_loss`: log-probabilities (time, example, class), labels (example, time), lengths."""
    given = call.named(
        "log_probs targets input_lengths target_lengths blank reduction zero_infinity"
    )
    logs, labels = given["log_probs"], given["targets"]
    tag = call.tags.of(logs)
    if not isinstance(tag, ExampleRows):
        return tag or UntrackedRows("a loss of constants")
    has_rows = tag.dim == 1 and logs.dim() == 3 and labels.dim() == 2
    if given.get("reduction", "mean") != "none" or not has_rows:
        return OVER_EXAMPLES
    lengths = [given["input_lengths"], given["target_lengths"]]
    if any(not isinstance(one, Tensor) and len({*map(int, one)}) > 1 for one in lengths):
        return BY_PLACE
    own = tag.at(0)
    for one in (labels, *(each for each in lengths if isinstance(each, Tensor))):
        if call.tags.depends(one):
            if call.tags.of(one) != own:
                return UntrackedRows("a loss with labels or lengths of other examples")
        elif differs(call.tags, one, 0, tag.layout):
            return BY_PLACE
    return own
