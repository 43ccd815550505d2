"""PyTorch's own recurrent layers: RNN, GRU and LSTM, of any depth and in both directions.

All steps in time are one function of autograd with a backward pass of its own, which returns the
gradients of the gates of all steps. The weights are then linear maps (example, time, feature) of
the inputs, and of the states before each step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords
from discreet.train._calls._precision import unmixed
from discreet.train._forward._capture import Capture, Rule
from discreet.train._rules._cells import gru_cell, lstm_cell, rnn_cell
from discreet.train._rules._elementwise import copied_per_example, examples_first
from discreet.train._rules._linear import outer, summed_in_between
from discreet.train._rules._packed import (
    Cell,
    LayerResult,
    RecurrentState,
    Stack,
    by_steps,
    packed,
    projected,
    stacked,
    states_of,
)


def _hidden_from_modes(
    backward: Function,
) -> Function:  # Any: as PyTorch has it
    """Hide the functions that a backward pass calls from modes of PyTorch."""

    @wraps(backward)
    def within(*args: Any) -> Any:  # Any: as above
        with torch._C.DisableTorchFunction():  # noqa: SLF001  it has no public name
            return backward(*args)

    return within


class _Lstm(torch.autograd.Function):
    """All steps of one layer in one direction; gates in PyTorch's order: in, forget, cell, out."""

    @staticmethod
    def forward(  # noqa: PLR0917  PyTorch passes all by position
        ctx: Any,  # Any: PyTorch's context
        inputs: Tensor,  # (time, example, 4 * hidden), both biases added
        weight: Tensor,  # (4 * hidden, out)
        state: Tensor,  # (example, out)
        cell: Tensor,  # (example, hidden)
    ) -> tuple[Tensor, Tensor]:
        """States after each step (time, example, hidden), and the last cell."""
        time, examples, width = inputs.shape
        hidden = width // 4
        turned = weight.t().contiguous()
        gates = torch.empty_like(inputs)
        states = inputs.new_empty(time + 1, examples, hidden)
        cells = inputs.new_empty(time + 1, examples, hidden)
        warped = inputs.new_empty(time, examples, hidden)
        states[0], cells[0] = state, cell
        for step in range(time):
            gate = torch.addmm(inputs[step], states[step], turned, out=gates[step])
            gate[:, : 2 * hidden].sigmoid_()
            gate[:, 2 * hidden : 3 * hidden].tanh_()
            gate[:, 3 * hidden :].sigmoid_()
            i, f, g, o = gate.chunk(4, 1)
            torch.mul(f, cells[step], out=cells[step + 1])
            cells[step + 1].addcmul_(i, g)
            torch.tanh(cells[step + 1], out=warped[step])
            torch.mul(o, warped[step], out=states[step + 1])
        ctx.save_for_backward(gates, cells, warped, weight)
        return states, cells[time].clone()

    @staticmethod
    @_hidden_from_modes
    def backward(ctx: Any, *gradients: Any) -> Any:  # Any: as PyTorch has it
        """Gradients by hand, from the last step to the first."""
        of_states, of_last = gradients
        gates, cells, warped, weight = ctx.saved_tensors
        time = len(gates)
        found = torch.empty_like(gates)
        i, f, g, o = gates.chunk(4, 2)
        # factors of each gate's gradient, for all steps at once
        of_cell = o * (1 - warped * warped)
        out_by_state = warped * o * (1 - o)
        in_by_cell = g * i * (1 - i)
        forget_by_cell = cells[:-1] * f * (1 - f)
        new_by_cell = i * (1 - g * g)
        state, cell = of_states[time].clone(), of_last.clone()
        for step in range(time - 1, -1, -1):
            cell.addcmul_(state, of_cell[step])
            parts = found[step].chunk(4, 1)
            torch.mul(cell, in_by_cell[step], out=parts[0])
            torch.mul(cell, forget_by_cell[step], out=parts[1])
            torch.mul(cell, new_by_cell[step], out=parts[2])
            torch.mul(state, out_by_state[step], out=parts[3])
            cell.mul_(f[step])
            state = torch.addmm(of_states[step], found[step], weight)
        return found, None, state, cell


class _Gru(torch.autograd.Function):
    """All steps of a GRU; gates in PyTorch's order: reset, update, new."""

    @staticmethod
    def forward(  # noqa: PLR0917  PyTorch passes all by position
        ctx: Any,  # Any: PyTorch's context
        inputs: Tensor,  # (time, example, 3 * hidden), the inputs' bias added
        _: Tensor,  # zeros, (time, example, 3 * hidden): their gradient is that of the states' part
        weight: Tensor,  # (3 * hidden, hidden)
        bias: Tensor,  # (3 * hidden,)
        state: Tensor,  # (example, hidden)
    ) -> Tensor:
        """States after each step: (time, example, hidden)."""
        time, examples, width = inputs.shape
        hidden = width // 3
        gates = torch.empty_like(inputs)
        before = inputs.new_empty(time, examples, hidden)  # the new gate's part from the state
        states = inputs.new_empty(time + 1, examples, hidden)
        states[0] = state
        turned = weight.t().contiguous()
        for step in range(time):
            given = torch.addmm(bias, states[step], turned)
            first_two = gates[step, :, : 2 * hidden]  # reset and update
            torch.add(
                inputs[step, :, : 2 * hidden], given[:, : 2 * hidden], out=first_two
            ).sigmoid_()
            before[step] = given[:, 2 * hidden :]
            r, z, n = gates[step].chunk(3, 1)
            torch.addcmul(inputs[step, :, 2 * hidden :], r, before[step], out=n).tanh_()
            torch.lerp(n, states[step], z, out=states[step + 1])
        ctx.save_for_backward(gates, before, states, weight)
        return states

    @staticmethod
    @_hidden_from_modes
    def backward(ctx: Any, *gradients: Any) -> Any:  # Any: as PyTorch has it
        (of_states,) = gradients
        gates, before, states, weight = ctx.saved_tensors
        time, _, width = gates.shape
        hidden = width // 3
        found, extra = torch.empty_like(gates), torch.empty_like(gates)
        r, z, n = gates.chunk(3, 2)
        new_by_state = (1 - z) * (1 - n * n)
        update_by_state = (states[:-1] - n) * z * (1 - z)
        reset_by_new = before * r * (1 - r)
        state = of_states[time].clone()
        for step in range(time - 1, -1, -1):
            parts = found[step].chunk(3, 1)
            torch.mul(state, new_by_state[step], out=parts[2])
            torch.mul(state, update_by_state[step], out=parts[1])
            torch.mul(parts[2], reset_by_new[step], out=parts[0])
            extra[step] = found[step]
            extra[step, :, 2 * hidden :].mul_(r[step])
            state = torch.addmm(torch.addcmul(of_states[step], state, z[step]), extra[step], weight)
        return found, extra, None, None, state


class _Plain(torch.autograd.Function):
    """All steps of a recurrent layer without gates: tanh or ReLU."""

    @staticmethod
    def forward(  # noqa: PLR0917  PyTorch passes all by position
        ctx: Any,  # Any: PyTorch's context
        inputs: Tensor,  # (time, example, hidden), both biases added
        weight: Tensor,  # (hidden, hidden)
        state: Tensor,  # (example, hidden)
        rectified: bool,  # noqa: FBT001
    ) -> Tensor:
        """States after each step: (time, example, hidden)."""
        time, examples, hidden = inputs.shape
        states = inputs.new_empty(time + 1, examples, hidden)
        states[0] = state
        turned = weight.t().contiguous()
        for step in range(time):
            torch.addmm(inputs[step], states[step], turned, out=states[step + 1])
            states[step + 1].relu_() if rectified else states[step + 1].tanh_()
        ctx.rectified = rectified
        ctx.save_for_backward(states, weight)
        return states

    @staticmethod
    @_hidden_from_modes
    def backward(ctx: Any, *gradients: Any) -> Any:  # Any: as PyTorch has it
        (of_states,) = gradients
        states, weight = ctx.saved_tensors
        slope = (states > 0).to(states.dtype) if ctx.rectified else 1 - states * states
        found = torch.empty_like(states[1:])
        state = of_states[-1]
        for step in range(len(found) - 1, -1, -1):
            torch.mul(state, slope[step + 1], out=found[step])
            state = torch.addmm(of_states[step], found[step], weight)
        return found, None, state, None


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's weights in one direction."""

    of_inputs: Tensor  # (gates, in)
    of_states: Tensor  # (gates, hidden)
    biases: tuple[Tensor, Tensor] | None


@dataclass(frozen=True, slots=True)
class _LayerSteps:
    """All steps in time of one layer in one direction."""

    target: Tensor  # its gradient is that of the states' part of the gates
    states: Tensor  # (time + 1, example, hidden), from the initial one on
    last: RecurrentState


def lstm(
    capture: Capture, _function: Function, args: Args, _keywords: Keywords
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.lstm`, as `torch.nn.LSTM` calls it."""

    def run(layer: _Layer, inputs: Tensor, state: RecurrentState) -> _LayerSteps:
        pre = _pre(capture, layer, inputs, with_both=True)
        states, cell = _applied(_Lstm, pre.transpose(0, 1), layer.of_states.detach(), *state)
        return _LayerSteps(pre, states, (states[-1], cell))

    def cell(
        capture: Capture, data: Tensor, state: RecurrentState, weights: list[Tensor]
    ) -> RecurrentState:
        plain = 4 if _has_biases(args) else 2
        now, kept = lstm_cell(capture, torch.lstm_cell, (data, state, *weights[:plain]), {})
        return projected(capture, now, weights, plain), kept

    results, (last, cells) = _layers(capture, args, run, cell)
    return results, last, cells


def gru(
    capture: Capture, _function: Function, args: Args, _keywords: Keywords
) -> tuple[Tensor, Tensor]:
    """`torch.gru`, as `torch.nn.GRU` calls it."""

    def run(layer: _Layer, inputs: Tensor, state: RecurrentState) -> _LayerSteps:
        pre = _pre(capture, layer, inputs, with_both=False)
        extra = pre.new_zeros(()).expand(pre.shape).requires_grad_()
        bias = layer.biases[1].detach() if layer.biases else pre.new_zeros(pre.shape[2])
        states = _applied(
            _Gru, pre.transpose(0, 1), extra.transpose(0, 1), layer.of_states.detach(), bias, *state
        )
        return _LayerSteps(extra, states, (states[-1],))

    results, (last,) = _layers(capture, args, run, _of_one_state(gru_cell, torch.gru_cell))
    return results, last


def rnn(
    capture: Capture, function: Function, args: Args, _keywords: Keywords
) -> tuple[Tensor, Tensor]:
    """`torch.rnn_tanh` and `torch.rnn_relu`, as `torch.nn.RNN` calls them."""

    def run(layer: _Layer, inputs: Tensor, state: RecurrentState) -> _LayerSteps:
        pre = _pre(capture, layer, inputs, with_both=True)
        of_states = layer.of_states.detach()
        states = _applied(_Plain, pre.transpose(0, 1), of_states, *state, is_rectified)
        return _LayerSteps(pre, states, (states[-1],))

    is_rectified = function is torch.rnn_relu
    of_cell = torch.rnn_relu_cell if is_rectified else torch.rnn_tanh_cell
    results, (last,) = _layers(capture, args, run, _of_one_state(rnn_cell, of_cell))
    return results, last


def _of_one_state(rule: Rule, cell: Function) -> Cell:
    """One step in time, by the rule of a cell that has one state."""
    return lambda capture, data, state, weights: (
        rule(capture, cell, (data, *state, *weights), {}),
    )


def _applied(
    steps: type[torch.autograd.Function], inputs: Tensor, *given: object
) -> Any:  # Any: its results
    with unmixed(inputs.device):
        return steps.apply(inputs, *given)  # type: ignore[no-untyped-call]


def _pre(capture: Capture, layer: _Layer, inputs: Tensor, *, with_both: bool) -> Tensor:
    """The gates' parts from the inputs, (example, time, gates); records uses of their weights."""
    bias = None
    if layer.biases:
        first, second = layer.biases
        bias = first.detach() + second.detach() if with_both else first.detach()
    pre = F.linear(inputs, capture.stand_in(layer.of_inputs), bias).to(layer.of_inputs.dtype)
    if not pre.requires_grad:
        pre = pre.detach().requires_grad_()
    saved, shape = capture.saved(inputs), tuple(layer.of_inputs.shape)
    own = (layer.of_inputs, lambda rows: outer(saved(), rows, shape))
    biases = [(bias, summed_in_between) for bias in (layer.biases or ())[:1]]
    capture.note(pre, own, *biases)
    return pre


def _layers(
    capture: Capture,
    args: Args,
    run: Callable[[_Layer, Tensor, RecurrentState], _LayerSteps],
    cell: Cell,
) -> LayerResult:
    """All layers; results (example, time, ...) or time first, and last states."""
    if _are_packed(args):
        return packed(capture, cell, args)
    data, given, flat, *rest, batch_first = args
    data = (
        copied_per_example(capture, data, 3)
        if batch_first
        else examples_first(capture, data, *flat)
    )
    capture.refuse_other_rows(data, *flat, least=3)
    starts = [_start(capture, each).to(flat[0].dtype) for each in states_of(given)]

    def direction(
        weights: list[Tensor], data: Tensor, state: RecurrentState, *, backwards: bool
    ) -> LayerResult:
        if len(weights) % 2 == 1:  # the last one is a projection
            return by_steps(capture, cell, weights, data, state, backwards=backwards)
        layer, inputs = _layer(weights), data.flip(1) if backwards else data
        steps = run(layer, inputs, state)
        _note_states(capture, layer, steps)
        after = steps.states[1:].transpose(0, 1)
        return (after.flip(1) if backwards else after), steps.last

    data, last_states = stacked(Stack(flat, *rest), data, starts, direction)
    return (data if batch_first else data.transpose(0, 1)), last_states


def _note_states(capture: Capture, layer: _Layer, steps: _LayerSteps) -> None:
    """Record the uses of the states' weights."""
    before, shape = steps.states.detach()[:-1].transpose(0, 1), tuple(layer.of_states.shape)
    own = (layer.of_states, lambda rows: outer(before, rows, shape))
    biases = [(bias, summed_in_between) for bias in (layer.biases or ())[1:]]
    capture.note(steps.target, own, *biases)


def _layer(weights: list[Tensor]) -> _Layer:
    of_inputs, of_states, *biases = weights
    return _Layer(of_inputs, of_states, (biases[0], biases[1]) if biases else None)


def _are_packed(args: Args) -> bool:
    """Whether the second argument is the batch sizes of packed data."""
    return isinstance(args[3], (list, tuple))


def _has_biases(args: Args) -> bool:
    return bool(args[4] if _are_packed(args) else args[3])


def _start(capture: Capture, state: Tensor) -> Tensor:
    """Initial states (layer, example, hidden) with examples first; learned ones are copied."""
    return examples_first(capture, state).transpose(0, 1)
