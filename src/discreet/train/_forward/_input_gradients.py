"""Tags of gradients that losses compute of inputs, as adversarial training does.

The rows of one example get a gradient from the outputs of this example alone, since no other output
depends on them. This holds for outputs whose rows are known, and for the sum of such outputs. The
factors of the outputs must be each example's own, or the same for all.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointError

from discreet.errors import Refused
from discreet.train._calls._arguments import Args, Keywords, named, tensors_in
from discreet.train._flow._places import differs
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import ExampleRows, OneExample, Tag, UntrackedRows

_NAMES = (
    "outputs inputs grad_outputs retain_graph create_graph only_inputs allow_unused "
    "is_grads_batched materialize_grads"
)
_SUM = "SumBackward0"  # over all dimensions
_OF_ALL = UntrackedRows(
    "torch.autograd.grad of a number that is made of all examples, or with grad_outputs of others "
    "(take the gradient of losses.sum(), with one loss for each example)"
)
_ALONE = "train with noise=ExactGaussian(...), which computes each example alone"

Made = Mapping[tuple[object, int], Tag | None]  # tags of results, by their place in the graph


def gradients_of_inputs(
    args: Args, keywords: Keywords, is_weight: Callable[[object], bool], tags: Tags
) -> Any:
    """The result of `torch.autograd.grad` for these arguments; refused for weights, for gradients
    that are differentiated again, and for parts that are computed again in another way."""
    given = named(_NAMES, args, keywords)  # Any: as PyTorch has it
    if any(map(tags.depends, tensors_in((given["outputs"],)))):
        if any(map(is_weight, tensors_in((given["inputs"],)))):
            raise Refused(
                "torch.autograd.grad of weights within the losses adds up all examples; take "
                f"gradients of inputs, or {_ALONE}"
            )
        if given.get("create_graph", False) is not False:
            raise Refused(
                "torch.autograd.grad with create_graph=True, as in gradient penalties and "
                "residuals of differential equations (PINN), gives no gradients of single "
                f"examples; {_ALONE}, or penalize differences, such as "
                "(model(x + step) - model(x)).norm(dim=1)"
            )
    try:
        return torch.autograd.grad(*args, **keywords)
    except CheckpointError as error:
        raise Refused(
            "gradients of inputs were taken through a checkpoint with layers that training "
            "replaces, such as recurrent ones; leave the checkpoint out"
        ) from error


def tag_gradients(  # noqa: PLR0917  # the parts of a call
    tags: Tags, made: Made, args: Args, keywords: Keywords, result: Any
) -> None:
    """Tag the gradients that `torch.autograd.grad` returned for these arguments."""
    given = named(_NAMES, args, keywords)  # Any: as PyTorch has it
    inputs = tensors_in((given["inputs"],))
    found = [*result] if isinstance(result, (tuple, list)) else [result]
    has_own = _have_own_rows(tags, made, given)
    for each, gradient in zip(inputs, found, strict=True):
        if gradient is None:
            continue
        tag = tags.of(each)
        if has_own and _is_of_all(tags, tag) and tag is not None:
            tags.set(gradient, tag)
        else:
            tags.set(gradient, _OF_ALL)


def _have_own_rows(tags: Tags, made: Made, given: Keywords) -> bool:
    """Whether each part of the outputs, and its factor, depends on one example."""
    if given.get("is_grads_batched", False) is not False:
        return False
    outputs = tensors_in((given["outputs"],))
    factors = given.get("grad_outputs")
    several = [factors] if factors is None or isinstance(factors, Tensor) else [*factors]
    if len(several) != len(outputs):
        several = [None] * len(outputs) if factors is None else []
    pairs = zip(outputs, several, strict=False)
    return len(several) == len(outputs) and all(_has_own(tags, made, *each) for each in pairs)


def _has_own(tags: Tags, made: Made, output: Tensor, factor: Tensor | None) -> bool:
    tag = tags.of(output)
    if isinstance(tag, UntrackedRows):
        node = output.grad_fn
        if node is None or node.name() != _SUM or output.dim():
            return False
        tag = made.get(node.next_functions[0])
        return _is_of_all(tags, tag) and (factor is None or not _varies(tags, factor))
    if not _is_of_all(tags, tag):
        return False
    if factor is None or tags.of(factor) == tag:
        return True
    if _varies(tags, factor):
        return False
    return not (isinstance(tag, ExampleRows) and differs(tags, factor, tag.dim, tag.layout))


def _is_of_all(tags: Tags, tag: Tag | None) -> bool:
    """Whether rows belong to the examples of the batch, or to one of them, in public places."""
    return isinstance(tag, (ExampleRows, OneExample)) and (
        (tag.layout.order if isinstance(tag, ExampleRows) else tag.order) is tags.every
    )


def _varies(tags: Tags, factor: Tensor) -> bool:
    return tags.depends(factor) or tags.draws.has(factor)
