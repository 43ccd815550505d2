"""Layers that normalise, then scale and shift, each example by itself."""

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named
from discreet.train._forward._capture import Capture
from discreet.train._rules._elementwise import copied_per_example
from discreet.train._rules._gradients import DenseGradients, wide


def over_last(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Layer and RMS norms: data (example, ..., *normalised), weight and bias (*normalised,)."""
    bias_name = "" if function is F.rms_norm else "bias"
    given = named(f"input normalized_shape weight {bias_name} eps", args, keywords)
    data, shape = given["input"], tuple(given["normalized_shape"])
    weight, bias = given.get("weight"), given.get("bias")
    if capture.is_shared(data):
        return capture.otherwise(function, (), given)  # type: ignore[no-any-return]
    capture.refuse_other_rows(data, weight, bias, least=1 + len(shape))
    result = capture.call(function, **given)
    saved = capture.saved(data)

    def scale(rows: Tensor) -> DenseGradients:
        plain = {key: value for key, value in given.items() if key not in ("weight", "bias")}
        product = function(**plain | {"input": wide(saved())}).mul_(wide(rows))
        return _summed(product, shape)

    capture.note(result, (weight, scale), (bias, lambda rows: _summed(wide(rows), shape)))
    return result


def _summed(rows: Tensor, shape: tuple[int, ...]) -> DenseGradients:
    """Over all dimensions between the first and the normalised ones."""
    between = rows.dim() - 1 - len(shape)
    return DenseGradients(rows.flatten(1, between).sum(1) if between else rows)


def group_norm(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Data (example, channel, ...), weight and bias (channel,).

    The examples become further channels of a single one, each with its own copy of weight and
    bias: PyTorch's kernel sums gradients over space only, and so by example.
    """
    given = named("input num_groups weight bias eps", args, keywords)
    data, groups = given["input"], given["num_groups"]
    weight, bias = given.get("weight"), given.get("bias")
    if capture.is_shared(data):
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    capture.refuse_other_rows(data, weight, bias, least=2)
    examples, channels = data.shape[:2]
    found = F.group_norm(
        data.reshape(1, examples * channels, *data.shape[2:]),
        examples * groups,
        _for_each(capture, weight, examples),
        _for_each(capture, bias, examples),
        given.get("eps", 1e-5),
    )
    return found.reshape(data.shape)


def _for_each(capture: Capture, weight: Tensor | None, examples: int) -> Tensor | None:
    if weight is None:
        return None
    if capture.is_weight(weight):
        own: Tensor = copied_per_example(capture, weight, 2)
        return own.reshape(-1)
    return weight.repeat(examples)


def instance_norm(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """A group norm with a group for each channel."""
    given = named(
        "input running_mean running_var weight bias use_input_stats momentum eps", args, keywords
    )
    running = given.get("running_mean")
    weight, bias = given.get("weight"), given.get("bias")
    if not given.get("use_input_stats", True):
        return _by_channel(capture, function, given)
    if running is not None:
        raise capture.refused(
            running,
            weight,
            why="keeps running statistics of private data, which would be published without noise",
            mend="use track_running_stats=False, or discreet.train.repair(model)",
        )
    if not any(capture.is_weight(each) for each in (weight, bias)):
        return function(*args, **keywords)  # type: ignore[no-any-return]
    plain = {
        "input": given["input"],
        "num_groups": given["input"].shape[1],
        "weight": weight,
        "bias": bias,
        "eps": given.get("eps", 1e-5),
    }
    return group_norm(capture, F.group_norm, (), plain)


def batch_norm(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Batch norm with fixed statistics; refused if it normalises by the batch."""
    given = named(
        "input running_mean running_var weight bias training momentum eps", args, keywords
    )
    if given.get("training", False) or given["running_mean"] is None:
        raise capture.refused(
            given["running_mean"],
            given.get("weight"),
            why="normalises each example by the others of its batch",
            mend="use GroupNorm instead, as discreet.train.repair(model) does, or call .eval() "
            "on this layer",
        )
    if not any(capture.is_weight(given.get(each)) for each in ("weight", "bias")):
        return function(*args, **keywords)  # type: ignore[no-any-return]
    return _by_channel(capture, function, given)


def _by_channel(capture: Capture, function: Function, given: Keywords) -> Tensor:
    """Normalise by fixed statistics, then scale and shift by each example's own copies."""
    weight, bias, data = given.get("weight"), given.get("bias"), given["input"]
    result: Tensor = function(**given | {"weight": None, "bias": None})
    shape = (-1, data.shape[1], *(1,) * (data.dim() - 2))
    if weight is not None:
        result = result * copied_per_example(capture, weight, 2).reshape(shape)
    if bias is not None:
        result = result + copied_per_example(capture, bias, 2).reshape(shape)
    return result


def prelu(capture: Capture, _: Function, args: Args, keywords: Keywords) -> Tensor:
    """Data (example, channel, ...), weight (channel,) or (1,)."""
    given = named("input weight", args, keywords)
    data, weight = given["input"], given["weight"]
    capture.refuse_other_rows(data, weight)
    shape = (capture.rows, -1, *(1,) * (data.dim() - 2)) if data.dim() > 1 else (-1,)
    own = copied_per_example(capture, weight, 2).reshape(shape)
    return torch.where(data > 0, data, own * data)
