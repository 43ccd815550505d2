"""Linear maps: of the last dimension, with any number of dimensions in between."""

from functools import cache

from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named
from discreet.train._forward._capture import Capture
from discreet.train._forward._uses import PerExampleGradients
from discreet.train._rules._gradients import (
    CachedSquares,
    DenseGradients,
    RankOne,
    SumOfOuter,
    wide,
)


def linear(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """`torch.nn.functional.linear`: inputs (example, ..., in), weight (out, in)."""
    given = named("input weight bias", args, keywords)
    inputs, weight, bias = given["input"], given["weight"], given.get("bias")
    if capture.is_weight(inputs) or (bias is not None and bias.dim() > 1):
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    capture.refuse_other_rows(inputs, weight, bias, least=2)
    result = capture.call(function, inputs, weight, bias)
    saved, shape = capture.saved(inputs), tuple(weight.shape)
    if inputs.dim() > 2:
        own = (weight, lambda rows: outer(saved(), rows, shape))
        capture.note(result, own, (bias, summed_in_between))
        return result
    squares = cache(lambda rows: CachedSquares(wide(rows)))
    capture.note(
        result,
        (weight, lambda rows: RankOne(wide(saved()), wide(rows), squares(rows), shape)),
        (bias, lambda rows: DenseGradients(wide(rows), squares(rows))),
    )
    return result


def matmul(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Data (example, ..., in) times a weight (in, out) or (in,)."""
    inputs, weight = args
    if capture.is_weight(inputs) or weight.dim() > 2 or inputs.dim() < 2:
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    capture.refuse_other_rows(inputs, weight, least=2)
    result = capture.call(function, inputs, weight)
    saved = capture.saved(inputs)

    def piece(rows: Tensor) -> PerExampleGradients:
        outputs = rows if weight.dim() == 2 else rows.unsqueeze(-1)
        return outer(saved(), outputs, tuple(weight.shape), transposed=True)

    capture.note(result, (weight, piece))
    return result


def addmm(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Data (example, in) times a weight (in, out), plus a bias (out,)."""
    given = named("input mat1 mat2", args, keywords)
    bias, data, weight = given.pop("input"), given.pop("mat1"), given.pop("mat2")
    if given or bias.dim() != 1 or capture.is_weight(data):
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    capture.refuse_other_rows(data, weight, bias, least=2)
    result = capture.call(function, bias, data, weight)
    saved = capture.saved(data)

    def piece(rows: Tensor) -> PerExampleGradients:
        return outer(saved(), rows, tuple(weight.shape), transposed=True)

    capture.note(result, (weight, piece), (bias, summed_in_between))
    return result


def outer(
    inputs: Tensor, outputs: Tensor, shape: tuple[int, ...], *, transposed: bool = False
) -> SumOfOuter:
    """Gradients from inputs (example, ..., in) and output gradients (example, ..., out)."""
    return SumOfOuter(middle(inputs), middle(outputs), shape, transposed)


def middle(rows: Tensor) -> Tensor:
    """Flatten to (example, time, feature), in float32 or better."""
    rows = wide(rows.detach())
    return rows.unsqueeze(1) if rows.dim() == 2 else rows.flatten(1, -2)


def summed_in_between(outputs: Tensor) -> DenseGradients:
    """Gradients of a bias, from output gradients (example, ..., out)."""
    outputs = wide(outputs)
    return DenseGradients(outputs if outputs.dim() == 2 else outputs.flatten(1, -2).sum(1))
