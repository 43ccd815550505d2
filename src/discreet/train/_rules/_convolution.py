"""Convolutions over one, two and three dimensions, and transposed ones.

Padding with other numbers than zeros is a separate call before the convolution, so that only
padding with zeros occurs here.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named, pair
from discreet.train._forward._capture import Capture
from discreet.train._forward._uses import PerExampleGradients
from discreet.train._rules._gradients import (
    KEPT,
    DenseGradients,
    gram_norms,
    masked_rows,
    scaled,
    squared,
    squared_of_outer,
    wide,
)

AT_ONCE = 1 << 20  # entries of unfolded windows: these fit into a processor's cache

_OF_CONVOLUTION = "input weight bias stride padding dilation groups"
_OF_TRANSPOSED = "input weight bias stride padding output_padding groups dilation"
_TRANSPOSED = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)


@dataclass(frozen=True, slots=True)
class WindowProducts:
    """For each example, sums over positions of outer products: output gradients and windows."""

    inputs: Tensor  # (example, in, *space), padded
    outputs: Tensor  # (example, out, *positions)
    shape: tuple[int, ...]  # of the weight: (out, in / groups, *window)
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def squared_norms(self) -> tuple[Tensor, PerExampleGradients]:
        """The cheaper of two ways, some examples at a time."""
        out, window = self._sizes()
        positions = self.outputs[0, 0].numel()
        examples = len(self.inputs)
        if positions == 1 and self.groups == 1:
            return squared_of_outer(self._unfolded(0, examples), self.outputs), self
        if positions * (out + window) < out * window * 0.5:
            return torch.cat([self._ghost(*each) for each in self._chunks()]), self
        size = self.groups * out * window
        if examples * size <= KEPT * (self.inputs.numel() + self.outputs.numel()):
            rows = torch.cat([self._dense(*each) for each in self._chunks()])
            return DenseGradients(rows.view(-1, *self.shape)).squared_norms()
        return torch.cat([squared(self._dense(*each)) for each in self._chunks()]), self

    def rows(self, start: int, stop: int) -> Tensor:
        return self._dense(start, stop).view(stop - start, *self.shape)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """PyTorch's backward pass, with scaled output gradients."""
        zeros = [0] * len(self.stride)
        space = [
            (n - 1) * step + (k - 1) * gap + 1
            for n, step, k, gap in zip(
                self.outputs.shape[2:], self.stride, self.shape[2:], self.dilation, strict=True
            )
        ]
        inputs = self.inputs
        for dimension, n in enumerate(space, 2):
            inputs = inputs.narrow(dimension, 0, n)
        found: Tensor = torch.ops.aten.convolution_backward(
            scaled(self.outputs, factors),
            inputs,
            inputs.new_empty(self.shape),
            None,
            self.stride,
            zeros,
            self.dilation,
            False,
            zeros,
            self.groups,
            [False, True, False],
        )[1]
        return found

    def masked(self, kept: Tensor) -> "WindowProducts":
        inputs, outputs = masked_rows(self.inputs, kept), masked_rows(self.outputs, kept)
        return replace(self, inputs=inputs, outputs=outputs)

    def _sizes(self) -> tuple[int, int]:
        """In one group, the number of output channels, and the entries of a window."""
        return self.shape[0] // self.groups, self.inputs.new_empty(self.shape[1:]).numel()

    def _chunks(self) -> list[tuple[int, int]]:
        positions = self.outputs[0, 0].numel()
        each = positions * self._sizes()[1] * self.groups
        step = max(1, AT_ONCE // max(1, each))
        examples = len(self.inputs)
        return [(n, min(n + step, examples)) for n in range(0, examples, step)]

    def _unfolded(self, start: int, stop: int) -> Tensor:
        """Each group's windows: (example * group, window, position)."""
        inputs = self.inputs[start:stop]
        examples, channels = inputs.shape[:2]
        strides = inputs.stride()
        gaps = [s * gap for s, gap in zip(strides[2:], self.dilation, strict=True)]
        steps = [s * step for s, step in zip(strides[2:], self.stride, strict=True)]
        view = inputs.as_strided(
            (examples, channels, *self.shape[2:], *self.outputs.shape[2:]),
            (*strides[:2], *gaps, *steps),
        )
        return view.reshape(examples * self.groups, self._sizes()[1], -1)

    def _grouped(self, start: int, stop: int) -> Tensor:
        """Each group's output gradients: (example * group, out, position)."""
        outputs = self.outputs[start:stop]
        return outputs.reshape((stop - start) * self.groups, self._sizes()[0], -1)

    def _dense(self, start: int, stop: int) -> Tensor:
        found = self._grouped(start, stop) @ self._unfolded(start, stop).mT
        return found.view(stop - start, -1)

    def _ghost(self, start: int, stop: int) -> Tensor:
        norms = gram_norms(self._unfolded(start, stop).mT, self._grouped(start, stop).mT)
        return norms.view(-1, self.groups).sum(1)


def convolution(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Data (example, in, *space), weight (out, in / groups, *window).

    A transposed convolution, with a weight (in, out / groups, *window), is the backward pass of a
    convolution: inputs and output gradients swap roles.
    """
    is_transposed = function in _TRANSPOSED
    given = named(_OF_TRANSPOSED if is_transposed else _OF_CONVOLUTION, args, keywords)
    data, weight, bias = given["input"], given["weight"], given.get("bias")
    if capture.is_shared(data):
        return capture.otherwise(function, args, keywords)  # type: ignore[no-any-return]
    space = weight.dim() - 2
    capture.refuse_other_rows(data, weight, bias, least=space + 2)
    stride = pair(given.get("stride", 1), space)
    dilation = pair(given.get("dilation", 1), space)
    padding = _padding(given.get("padding", 0), weight.shape[2:], dilation)
    result = capture.call(function, **given)
    saved, shape, groups = capture.saved(data), tuple(weight.shape), given.get("groups", 1)

    def piece(rows: Tensor) -> WindowProducts:
        inputs, outputs = wide(saved()), wide(rows)
        inputs, outputs = (outputs, inputs) if is_transposed else (inputs, outputs)
        padded = _padded(inputs, padding)
        return WindowProducts(padded, outputs.contiguous(), shape, stride, dilation, groups)

    capture.note(result, (weight, piece), (bias, _over_space))
    return result


def _over_space(rows: Tensor) -> DenseGradients:
    return DenseGradients(wide(rows).flatten(2).sum(2))


def _padding(
    given: Any, window: torch.Size, dilation: tuple[int, ...]
) -> list[tuple[int, int]]:  # Any: a word, a number or several
    """The numbers of zeros before and after, for each dimension."""
    if given == "valid":
        return [(0, 0)] * len(window)
    if given == "same":
        whole = [gap * (k - 1) for gap, k in zip(dilation, window, strict=True)]
        return [(n // 2, n - n // 2) for n in whole]
    return [(n, n) for n in pair(given, len(window))]


def _padded(data: Tensor, padding: list[tuple[int, int]]) -> Tensor:
    """The data with zeros around them, contiguous."""
    if not any(map(any, padding)):
        return data.contiguous()
    return F.pad(data, [n for both in reversed(padding) for n in both])
