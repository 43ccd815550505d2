"""Recurrent layers step by step, for packed sequences and projected states.

This is slower than the layers in `_recurrent`. A sequence that has ended keeps its state. Packing
sorts examples by length, so that rows must be put back in the examples' order.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from discreet.train._calls._arguments import Args, Keywords
from discreet.train._forward._arranged import having
from discreet.train._forward._capture import Capture
from discreet.train._rules._linear import linear
from discreet.train._tags._tag import ExampleRows

RecurrentState = tuple[Tensor, ...]  # each (example, hidden)
LayerResult = tuple[Tensor, RecurrentState]  # (example, time, hidden), and the last state
Cell = Callable[
    [Capture, Tensor, RecurrentState, list[Tensor]], RecurrentState
]  # data (example, in), and weights


@contextmanager
def packing(capture: Capture, model: nn.Module) -> Iterator[None]:
    """Within, recurrent layers record their packed sequences, which know the order of examples."""

    def note(_: nn.Module, args: Args, keywords: Keywords) -> None:
        for each in (*args, *keywords.values()):
            if isinstance(each, PackedSequence):
                capture.packed[id(each.data)] = each

    layers = (each for each in model.modules() if isinstance(each, nn.RNNBase))
    hooks = [each.register_forward_pre_hook(note, with_kwargs=True) for each in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def packed(capture: Capture, cell: Cell, args: Args) -> LayerResult:
    """All layers: packed rows, and last states (layer, example, hidden) in the order of packing."""
    order = _order(capture, args[0], args[3])
    with having(capture, ExampleRows(0, capture.tags.plain)):
        return _in_order(capture, cell, args, order)


def _in_order(capture: Capture, cell: Cell, args: Args, order: Tensor) -> LayerResult:
    """The same, with examples in the order of the batch meanwhile."""
    rows, sizes, given, flat, *stack = args
    # 1. unpack to (example, time, feature), in the order of the batch
    back = order.argsort()
    data, lengths = torch._pad_packed_sequence(rows, sizes, True, 0.0, len(sizes))  # noqa: SLF001
    data, lengths = data[back], lengths[back.to(lengths.device)]
    capture.refuse_other_rows(data, *flat)
    goes_on = torch.arange(len(sizes), device=data.device) < lengths.to(data.device)[:, None]
    starts = [each[:, back].to(flat[0].dtype) for each in states_of(given)]

    def run(
        weights: list[Tensor], data: Tensor, state: RecurrentState, *, backwards: bool
    ) -> LayerResult:
        return by_steps(capture, cell, weights, data, state, goes_on=goes_on, backwards=backwards)

    data, lasts = stacked(Stack(flat, *stack), data, starts, run)
    # 2. pack again
    sorted_lengths = lengths[order.to(lengths.device)]
    rows = torch._pack_padded_sequence(data[order], sorted_lengths, True)[0]  # noqa: SLF001
    return rows, tuple(each[:, order] for each in lasts)


class Direction(Protocol):
    """One layer in one direction."""

    def __call__(
        self, weights: list[Tensor], data: Tensor, state: RecurrentState, *, backwards: bool
    ) -> LayerResult:
        """States after each step (example, time, hidden), and the last state."""
        ...


@dataclass(frozen=True, slots=True)
class Stack:
    """The layers of a recurrent module, with its arguments in PyTorch's order."""

    flat: list[Tensor]  # weights, layer by layer
    has_biases: bool
    layers: int
    dropout: float
    is_training: bool
    goes_both_ways: bool

    def weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction: of inputs and states, then both biases and the
        projection, if there are any."""
        each = len(self.flat) // (self.layers * (2 if self.goes_both_ways else 1))
        assert each - (4 if self.has_biases else 2) in (0, 1)
        return [list(self.flat[n : n + each]) for n in range(0, len(self.flat), each)]


def stacked(stack: Stack, data: Tensor, starts: list[Tensor], run: Direction) -> LayerResult:
    """All layers of data (example, time, feature), and last states (layer, example, hidden)."""
    several, lasts = stack.weights(), list[RecurrentState]()
    directions = 2 if stack.goes_both_ways else 1
    for layer in range(stack.layers):
        results = []
        for way in range(directions):
            place = layer * directions + way
            state = tuple(start[place] for start in starts)
            found, last = run(several[place], data, state, backwards=bool(way))
            results.append(found)
            lasts.append(last)
        data = torch.cat(results, 2) if stack.goes_both_ways else results[0]
        if stack.dropout and stack.is_training and layer < stack.layers - 1:
            data = F.dropout(data, stack.dropout)
    return data, tuple(torch.stack(each) for each in zip(*lasts, strict=True))


def states_of(given: Any) -> Sequence[Tensor]:  # Any: one tensor or several
    """The initial states, several for LSTMs."""
    return given if isinstance(given, (list, tuple)) else (given,)


def by_steps(  # noqa: PLR0917  # what a layer in one direction is made of
    capture: Capture,
    cell: Cell,
    weights: list[Tensor],
    data: Tensor,
    state: RecurrentState,
    *,
    goes_on: Tensor | None = None,
    backwards: bool = False,
) -> LayerResult:
    """States after each step (example, time, hidden), and the last state.

    An example keeps its state at steps where ``goes_on`` (example, time) is false.
    """
    found: dict[int, Tensor] = {}
    steps = range(data.shape[1])
    for step in reversed(steps) if backwards else steps:
        after = cell(capture, data[:, step], state, weights)
        if goes_on is not None:
            mask = goes_on[:, step, None]
            pairs = zip(after, state, strict=True)
            after = tuple(torch.where(mask, new, old) for new, old in pairs)
        state = after
        found[step] = state[0]
    return torch.stack([found[step] for step in steps], 1), state


def projected(capture: Capture, state: Tensor, weights: list[Tensor], plain: int) -> Tensor:
    """The state, multiplied by the projection if there is a weight after the plain ones."""
    if len(weights) == plain:
        return state
    return linear(capture, F.linear, (state, weights[plain]), {})


def _order(capture: Capture, rows: Tensor, flat: list[Tensor]) -> Tensor:
    """The examples in the order of packing; refused if it is not known or some are missing."""
    found, layout = capture.packed.get(id(rows)), capture.layout
    before = None if layout is None else layout.order.layout
    order = None if found is None else found.sorted_indices
    if before is not None and order is not None and before.inner == before.outer == 1:
        before = capture.tags.indices.put_back(before.order, order)
    if found is None or before is None or not before.is_plain:
        raise capture.refused(
            *flat,
            why="gets rows whose examples are not known",
            mend="call the layer itself, with a PackedSequence of all examples",
        )
    if order is None:
        return torch.arange(int(found.batch_sizes[0]), device=rows.device)
    return order
