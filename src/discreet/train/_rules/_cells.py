"""PyTorch's recurrent cells, one step at a time."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords
from discreet.train._forward._capture import Capture
from discreet.train._rules._elementwise import copied_per_example
from discreet.train._rules._linear import linear


def lstm_cell(
    capture: Capture, _function: Function, args: Args, _keywords: Keywords
) -> tuple[Tensor, Tensor]:
    data, (state, cell), *weights = args
    given, (before, _) = _gates(capture, data, state, weights)
    i, f, g, o = (given + before).chunk(4, 1)
    cell = copied_per_example(capture, cell, 2)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def gru_cell(capture: Capture, _function: Function, args: Args, _keywords: Keywords) -> Tensor:
    data, state, *weights = args
    given, (before, state) = _gates(capture, data, state, weights)
    (r, z, n), (r_state, z_state, n_state) = given.chunk(3, 1), before.chunk(3, 1)
    new = torch.tanh(n + torch.sigmoid(r + r_state) * n_state)
    return new + torch.sigmoid(z + z_state) * (state - new)


def rnn_cell(capture: Capture, function: Function, args: Args, _keywords: Keywords) -> Tensor:
    data, state, *weights = args
    given, (before, _) = _gates(capture, data, state, weights)
    return (torch.relu if function is torch.rnn_relu_cell else torch.tanh)(given + before)


def _gates(
    capture: Capture, data: Tensor, state: Tensor, weights: list[Any]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The gates' parts from the data and from the state, either of which may be learned, and the
    state."""
    of_data, of_state, *biases = (*weights, None, None)
    state, data = copied_per_example(capture, state, 2), copied_per_example(capture, data, 2)
    given = linear(capture, F.linear, (data, of_data, biases[0]), {})
    return given, (linear(capture, F.linear, (state, of_state, biases[1]), {}), state)
