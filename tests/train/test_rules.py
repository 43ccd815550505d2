"""Every layer gives what a plain loop over examples gives.

A new rule needs an entry in `CASES`; `test_each_function_with_a_rule_has_a_case` fails without it.
"""

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.overrides import TorchFunctionMode

from discreet.errors import Refused
from discreet.train import L1, Automatic, Flat, PerGroup, PerLayer, check
from discreet.train._calls._arguments import Args, Function, Keywords
from discreet.train._clipped_sums import _engine
from discreet.train._forward._capture import Capture, Rule
from discreet.train._rules import RULES
from tests.train.kit import EXACT, SINGLE, Case, Make, agrees, double, places


class Bare(nn.Module):
    """Parameters used by functions, alone, shared, sliced and together."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.shift = nn.Parameter(torch.randn(4))
        self.first = nn.Parameter(torch.randn(1, 1, 4))
        self.unused = nn.Parameter(torch.ones(2))
        self.inner = nn.Linear(4, 4)
        self.positions = nn.Embedding(6, 4)

    def forward(self, data: Tensor) -> Tensor:
        data = torch.cat([self.first.expand(data.shape[0], -1, -1), data], 1)
        data = data + self.positions(torch.arange(data.shape[1], device=data.device))
        data = self.inner(data) @ self.inner.weight + self.shift * self.inner(data)
        data = data + torch.einsum("btd,de->bte", data, self.weight.t()) * self.weight.norm()
        short = F.linear(torch.tanh(data), self.weight[:2])
        return short.mean(1, keepdim=True) + data[..., :2] - 2 * self.shift[1:3]


class Turned(nn.Module):
    """Data times weights that have inputs first: as they are, and by rows, biased, in one table."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(width, 3)), nn.Parameter(torch.randn(3))
        self.next = nn.Parameter(torch.randn(3, 3))

    def by_rows(self, data: Tensor) -> Tensor:
        return data.view(-1, data.shape[-1])

    def forward(self, data: Tensor) -> Tensor:
        table = torch.addmm(self.bias, self.by_rows(data @ self.weight), self.next)
        return table.view(*data.shape[:-1], 3)


class Mixed(Turned):
    """Its rows go time by time."""

    def by_rows(self, data: Tensor) -> Tensor:
        return data.transpose(0, 1).contiguous().view(-1, data.shape[-1])


class Low(nn.Module):
    """A frozen layer with an adapter of low rank beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(6, 5).requires_grad_(False)
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 5, bias=False)

    def forward(self, data: Tensor) -> Tensor:
        result: Tensor = self.frozen(data) + 0.5 * self.up(self.down(data))
        return result


class Reused(nn.Module):
    """One layer called several times, and a table that is also the last layer's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(9, 5), nn.Linear(5, 5)
        self.last = nn.Linear(5, 9, bias=False)
        self.last.weight = self.table.weight

    def forward(self, data: Tensor) -> Tensor:
        data = self.table(data)
        for _ in range(3):
            data = torch.tanh(self.inner(data))
        result: Tensor = self.last(data)
        return result


def frozen(model: nn.Module, name: str) -> nn.Module:
    model.get_parameter(name).requires_grad_(False)
    return model


def only(model: nn.Module, part: str) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(part in name)
    return model


def iterated(layer: nn.Linear) -> nn.Module:
    """Its spectral norm goes on with each call, and moves no further."""
    return parametrizations.spectral_norm(layer.double(), n_power_iterations=500)


class Last(nn.Module):
    """The results and the last states of a recurrent layer, whose first states may be
    learned."""

    def __init__(self, inner: nn.RNNBase, learned: int = 0) -> None:
        super().__init__()
        self.inner, self.first = inner, nn.Embedding(7, inner.input_size)
        self.starts = nn.ParameterList(nn.Parameter(torch.randn(1, 1, 5)) for _ in range(learned))

    def forward(self, data: Tensor) -> Tensor:
        data, examples = self.first(data), data.shape[0]
        if not self.inner.batch_first:
            data = data.transpose(0, 1)
        starts = tuple(each.expand(-1, examples, -1).contiguous() for each in self.starts)
        start = None if not starts else starts[0] if len(starts) == 1 else starts
        result, last = self.inner(data, start)
        result = result if self.inner.batch_first else result.transpose(0, 1)
        lasts = last if isinstance(last, tuple) else (last,)
        return torch.cat(
            [result.flatten(1), *(each.transpose(0, 1).flatten(1) for each in lasts)], 1
        )


def recurrent(inner: nn.RNNBase, learned: int = 0) -> Case:
    return places(Last(inner, learned), 7, 4, 6)


class Packed(nn.Module):
    """A recurrent layer of sequences of different lengths, and a linear one around it."""

    def __init__(self, inner: nn.RNNBase, *, is_sorted: bool = False) -> None:
        super().__init__()
        self.first, self.inner, self.is_sorted = nn.Linear(3, 3), inner, is_sorted

    def forward(self, data: Tensor) -> Tensor:
        lengths = (data[:, :, 0] > 0).sum(1).clamp(min=1)
        lengths = torch.full_like(lengths, 4) if self.is_sorted else lengths
        given = pack_padded_sequence(
            self.first(data), lengths.cpu(), batch_first=True, enforce_sorted=self.is_sorted
        )
        given = given._replace(data=torch.tanh(given.data))
        result, last = self.inner(given)
        result = pad_packed_sequence(result, batch_first=True, total_length=4)[0]
        lasts = last if isinstance(last, tuple) else (last,)
        return torch.cat(
            [result.flatten(1), *(each.transpose(0, 1).flatten(1) for each in lasts)], 1
        )


def packed(inner: nn.RNNBase, *, is_sorted: bool = False) -> Case:
    return double(Packed(inner, is_sorted=is_sorted), 7, 4, 3)


class Bags(nn.Module):
    """Bags of different sizes, one after the other."""

    def __init__(self, mode: str, **options: Any) -> None:
        super().__init__()
        self.inner = nn.EmbeddingBag(10, 3, mode=mode, padding_idx=1, **options)

    def forward(self, data: Tensor) -> Tensor:
        sizes = (data > 4).sum(1)
        places = torch.cat([row[:size] for row, size in zip(data, sizes, strict=True)])
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        starts = ends if self.inner.include_last_offset else ends[:-1]
        weights = torch.sin(places.double()) if self.inner.mode == "sum" else None
        found: Tensor = self.inner(places, starts, weights)
        return found


class WeightedBags(nn.Module):
    """Bags in which each place has a weight."""

    def __init__(self, weights: Callable[["WeightedBags", Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.of = nn.EmbeddingBag(10, 3, mode="sum"), nn.Embedding(10, 1)
        self.by_time, self.weights = nn.Parameter(torch.randn(6)), weights

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.inner(data, per_sample_weights=self.weights(self, data))
        return found


class ConstantBags(WeightedBags):
    """Bags of the same places for each example."""

    def forward(self, data: Tensor) -> Tensor:
        places = torch.arange(data.shape[1], device=data.device).expand_as(data)
        found: Tensor = self.inner(places, per_sample_weights=self.weights(self, data))
        return found


class Cells(nn.Module):
    """A cell called at each place, from a learned state."""

    def __init__(self, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.cell, self.start = cell, nn.Parameter(torch.randn(1, 5))

    def forward(self, data: Tensor) -> Tensor:
        state: Any = self.start.expand(data.shape[0], -1)
        state = (state, state) if isinstance(self.cell, nn.LSTMCell) else state
        for place in range(data.shape[1]):
            state = self.cell(data[:, place], state)
        last: Tensor = state[0] if isinstance(state, tuple) else state
        return last


class Decoder(nn.Module):
    """Starts with one token for all examples, and goes on with those of each."""

    def __init__(self, inner: nn.RNNCellBase | nn.RNNBase) -> None:
        super().__init__()
        self.inner, self.table = inner, nn.Embedding(4, 3)
        self.first = nn.Linear(3, 5)

    def forward(self, data: Tensor) -> Tensor:
        state: Any = torch.tanh(self.first(data[:, 0]))
        tokens = torch.ones(len(data), dtype=torch.long, device=data.device)
        found = []
        for _ in range(2):
            given = self.table(tokens)
            if isinstance(self.inner, nn.RNNBase):
                given = given[:, None] if self.inner.batch_first else given[None]
                result, state = self.inner(given, state if state.dim() == 3 else state[None])
                result = result.squeeze(1 if self.inner.batch_first else 0)
            else:
                is_pair = isinstance(self.inner, nn.LSTMCell) and not isinstance(state, tuple)
                state = self.inner(given, (state, state) if is_pair else state)
                result = state[0] if isinstance(state, tuple) else state
            found.append(result)
            tokens = (data[:, 1, 0] > 0).long()
        return torch.cat(found, 1)


class Attention(nn.Module):
    """Of itself, of something else by learned queries, masked or not."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.kind, batch_first = kind, options.pop("batch_first", True)
        self.inner = nn.MultiheadAttention(6, 2, batch_first=batch_first, **options)
        self.queries = nn.Parameter(torch.randn(1, 3, 6))
        self.register_buffer("mask", torch.ones(5, 5, dtype=torch.bool).triu(1))

    def forward(self, data: Tensor) -> Tensor:
        if self.kind == "learned":
            queries = self.queries.expand(len(data), -1, -1)
            found: Tensor = self.inner(queries, data, data, need_weights=False)[0]
            return found
        more: Any = {}
        if self.kind == "masked":
            padding = data[:, :, 0] > 1
            padding[:, 0] = False
            more = {"attn_mask": self.mask, "key_padding_mask": padding}
        if self.inner.batch_first:
            result, weights = self.inner(data, data, data * 2, **more)
            return torch.cat([result, weights], 2)
        turned = data.transpose(0, 1)
        found = self.inner(turned, turned, turned, **more)[0]
        return found.transpose(0, 1)


def attending(kind: str, **options: Any) -> Case:
    return double(Attention(kind, **options), 4, 5, 6)


class Called(nn.Module):
    """A function of data (example, 3) that are above 0, and of a weight."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], *shape: int) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.rand(shape) + 0.5)

    def forward(self, data: Tensor) -> Tensor:
        return self.function(data.exp(), self.weight)


def calling(function: Callable[[Tensor, Tensor], Tensor], *shape: int) -> Make:
    return lambda: double(Called(function, *shape), 5, 3)


def by_square(function: Function) -> Make:
    return calling(function, 3, 3)


def by_row(function: Function) -> Make:
    return calling(lambda data, weight: function(data * 1, weight), 3)  # some change a copy


def by_batch(product: Callable[[Tensor, Tensor], Tensor]) -> Make:
    """A product of matrices, one for each example."""
    return calling(
        lambda data, weight: product(data[:, None], weight.expand(len(data), -1, -1)), 3, 3
    )


def by_group(function: Function) -> Make:
    """Rows in the order of their groups: those with a 0, of all examples, then those with a 1."""

    def called(data: Tensor, weight: Tensor) -> Tensor:
        is_second = (data[:, 0] > 1).int()
        order = torch.argsort(is_second, stable=True)
        ends = torch.bincount(is_second, minlength=2).cumsum(0).int()
        products = function(data.float()[order], weight.float(), offs=ends)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        return torch.as_tensor(products)[back]

    return lambda: double(Called(called, 2, 4, 4), 5, 4)


_ROW_WISE: tuple[Function, ...] = (
    *(torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__),
    *(torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__, Tensor.sub_, Tensor.__isub__),
    *(torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.mul_, Tensor.__imul__),
    *(torch.div, Tensor.div, Tensor.__truediv__, Tensor.__rtruediv__, Tensor.div_),
    *(torch.maximum, torch.minimum, torch.pow, Tensor.pow),
)


def _name(function: Callable[..., Any]) -> str:  # Any: any arguments
    """Its text without its address, which differs between processes."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(function))


CASES: dict[str, Make] = {
    "linear": lambda: double(nn.Linear(4, 3), 5, 4),
    "linear in time": lambda: double(nn.Linear(4, 3), 5, 7, 4),
    "linear, two between": lambda: double(nn.Linear(4, 3), 5, 2, 3, 4),
    "linear, long": lambda: double(nn.Linear(4, 3, bias=False), 5, 200, 4),
    "linear, ghost": lambda: double(nn.Linear(64, 63), 5, 9, 64),
    "changed in place": lambda: double(
        nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)), 5, 7, 4
    ),
    "changed in place, flat": lambda: double(
        nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)), 5, 4
    ),
    "convolution, ghost": lambda: double(nn.Conv2d(40, 60, 3), 5, 40, 4, 4),
    "convolution, one place": lambda: double(nn.Conv2d(4, 6, 3), 5, 4, 3, 3),
    "convolution, in place": lambda: double(
        nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3)), 5, 2, 6, 6
    ),
    "convolution, same": lambda: double(nn.Conv1d(2, 3, 4, padding="same"), 5, 2, 7),
    "embedding": lambda: places(nn.Embedding(10, 3, padding_idx=2), 10, 5, 6),
    "embedding, one place": lambda: places(nn.Embedding(10, 3), 10, 5),
    "bags, sum": lambda: places(nn.EmbeddingBag(10, 3, mode="sum", padding_idx=1), 10, 5, 6),
    "bags, mean": lambda: places(nn.EmbeddingBag(10, 3, mode="mean", padding_idx=1), 10, 5, 6),
    "bags, largest": lambda: places(nn.EmbeddingBag(10, 3, mode="max", padding_idx=1), 10, 5, 6),
    "bags by offsets, sum": lambda: places(Bags("sum"), 10, 5, 6),
    "bags by offsets, mean": lambda: places(Bags("mean", include_last_offset=True), 10, 5, 6),
    "bags by offsets, largest": lambda: places(Bags("max"), 10, 5, 6),
    "bags, weighted by data": lambda: places(WeightedBags(lambda _, x: x.double() / 9), 10, 5, 6),
    "bags, weighted by a table": lambda: places(
        WeightedBags(lambda m, x: m.of(x)[..., 0]), 10, 5, 6
    ),
    "bags, weighted by time": lambda: places(
        WeightedBags(lambda m, x: m.by_time.expand(len(x), -1)), 10, 5, 6
    ),
    "bags of constants, weighted by data": lambda: places(
        ConstantBags(lambda _, x: x.double() / 9), 10, 5, 6
    ),
    "frozen bags, weighted by a table": lambda: places(
        frozen(WeightedBags(lambda m, x: m.of(x)[..., 0]), "inner.weight"), 10, 5, 6
    ),
    "layer norm": lambda: double(nn.LayerNorm(4), 5, 4),
    "layer norm in time": lambda: double(nn.LayerNorm((3, 4)), 5, 2, 3, 4),
    "layer norm, no bias": lambda: double(nn.LayerNorm(4, bias=False), 5, 3, 4),
    "group norm": lambda: double(nn.GroupNorm(2, 4), 5, 4, 3, 3),
    "group norm, flat": lambda: double(nn.GroupNorm(2, 4), 5, 4),
    "group norm, weight frozen": lambda: double(frozen(nn.GroupNorm(2, 4), "weight"), 5, 4, 3),
    "instance norm": lambda: double(nn.InstanceNorm2d(4, affine=True), 5, 4, 3, 3),
    "instance norm, plain": lambda: double(
        nn.Sequential(nn.Conv1d(4, 4, 1), nn.InstanceNorm1d(4)), 5, 4, 3
    ),
    "RMS norm": lambda: double(nn.RMSNorm(4), 5, 3, 4),
    "PReLU": lambda: double(nn.PReLU(4), 5, 4, 3),
    "PReLU, one weight": lambda: double(nn.PReLU(), 5, 4, 3),
    "fixed batch norm": lambda: double(nn.BatchNorm1d(4).eval(), 5, 4),
    "bare parameters": lambda: double(Bare(), 5, 4, 4),
    "bare parameters, one example": lambda: double(Bare(), 1, 5, 4),
    "as many examples as places": lambda: double(Bare(), 5, 4, 4),
    "inputs first, over long times": lambda: double(Turned(), 5, 9, 3),
    "inputs first, over short times": lambda: double(Turned(7), 5, 2, 7),
    "inputs first, two times": lambda: double(Turned(), 5, 2, 4, 3),
    "inputs first, no time": lambda: double(Turned(), 5, 3),
    "low rank": lambda: double(Low(), 5, 3, 6),
    "reused and tied": lambda: places(Reused(), 9, 5, 4),
    "LSTM": lambda: recurrent(nn.LSTM(3, 5, batch_first=True)),
    "LSTM, time first": lambda: recurrent(nn.LSTM(3, 5)),
    "LSTM, deep, both ways": lambda: recurrent(nn.LSTM(3, 5, 2, bidirectional=True)),
    "LSTM, learned start": lambda: recurrent(nn.LSTM(3, 5), 2),
    "GRU": lambda: recurrent(nn.GRU(3, 5, batch_first=True)),
    "GRU, deep, both ways": lambda: recurrent(nn.GRU(3, 5, 2, bidirectional=True)),
    "GRU, learned start, no bias": lambda: recurrent(nn.GRU(3, 5, bias=False), 1),
    "RNN": lambda: recurrent(nn.RNN(3, 5, batch_first=True)),
    "RNN, ReLU, deep, no bias": lambda: recurrent(nn.RNN(3, 5, 2, "relu", bias=False)),
    "RNN, only states' weights": lambda: places(only(Last(nn.RNN(3, 5)), "weight_hh"), 7, 4, 6),
    "GRU, only states' bias": lambda: places(only(Last(nn.GRU(3, 5)), "bias_hh"), 7, 4, 6),
    "LSTM, projected": lambda: recurrent(nn.LSTM(3, 5, proj_size=2)),
    "LSTM, projected, deep, both ways": lambda: recurrent(
        nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2, bias=False)
    ),
    "LSTM, packed": lambda: packed(nn.LSTM(3, 5, 2, bidirectional=True)),
    "LSTM, packed, projected": lambda: packed(nn.LSTM(3, 5, proj_size=2)),
    "LSTM, packed, weights frozen": lambda: packed(only(nn.LSTM(3, 5), "hh")),  # type: ignore[arg-type]
    "GRU, packed": lambda: packed(nn.GRU(3, 5, bias=False)),
    "GRU, packed, deep": lambda: packed(nn.GRU(3, 5, 2)),
    "RNN, packed, sorted": lambda: packed(nn.RNN(3, 5, nonlinearity="relu"), is_sorted=True),
    "LSTM cell": lambda: double(Cells(nn.LSTMCell(3, 5)), 4, 3, 3),
    "GRU cell": lambda: double(Cells(nn.GRUCell(3, 5)), 4, 3, 3),
    "RNN cell": lambda: double(Cells(nn.RNNCell(3, 5, nonlinearity="relu")), 4, 3, 3),
    "decoder by an LSTM cell": lambda: double(Decoder(nn.LSTMCell(3, 5)), 4, 3, 3),
    "decoder by a GRU cell": lambda: double(Decoder(nn.GRUCell(3, 5)), 4, 3, 3),
    "decoder by a GRU": lambda: double(Decoder(nn.GRU(3, 5)), 4, 3, 3),
    "decoder by an RNN": lambda: double(Decoder(nn.RNN(3, 5, batch_first=True)), 4, 3, 3),
    "attention": lambda: attending("other"),
    "attention, time first": lambda: attending("itself", batch_first=False, bias=False),
    "attention, masked": lambda: attending("masked"),
    "attention, masked, more": lambda: attending("masked", add_bias_kv=True, add_zero_attn=True),
    "attention, own sizes": lambda: attending("other", kdim=6, vdim=6, add_bias_kv=True),
    "attention, learned queries": lambda: attending("learned"),
    "transformer": lambda: double(
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True),
            2,
            enable_nested_tensor=False,
        ),
        *(4, 5, 6),
    ),
    "weight frozen": lambda: double(frozen(nn.Linear(4, 3), "weight"), 5, 4),
    "bias frozen": lambda: double(frozen(nn.Linear(4, 3), "bias"), 5, 4),
    "weight norm": lambda: double(parametrizations.weight_norm(nn.Linear(4, 3)), 5, 4),
    "orthogonal": lambda: double(parametrizations.orthogonal(nn.Linear(4, 3)), 5, 4),
    "spectral norm": lambda: double(parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), 5, 4),
    "spectral norm, iterating": lambda: double(iterated(nn.Linear(4, 3)), 5, 4),
    "RNN cell, tanh": lambda: double(Cells(nn.RNNCell(3, 5)), 4, 3, 3),
    "convolution, volume": lambda: double(nn.Conv3d(2, 3, 2), 5, 2, 3, 3, 3),
    "transposed convolution": lambda: double(nn.ConvTranspose1d(2, 3, 2), 5, 2, 4),
    "transposed convolution, plane": lambda: double(nn.ConvTranspose2d(2, 3, 2), 5, 2, 3, 3),
    "transposed convolution, volume": lambda: double(nn.ConvTranspose3d(2, 3, 2), 5, 2, 2, 2, 2),
    **{f"by rows: {_name(f)}": by_row(f) for f in _ROW_WISE},
    "by rows: where": calling(lambda data, weight: torch.where(data > 1, data, weight), 3),
    "by rows: stack": calling(lambda x, weight: torch.stack([x, weight.expand(len(x), -1)], 1), 3),
    **{
        f"by a square: {_name(f)}": by_square(f)
        for f in (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, Tensor.mm)
    },
    "by batches: bmm": by_batch(torch.bmm),
    "by batches: Tensor.bmm": by_batch(Tensor.bmm),
    "by batches: baddbmm": by_batch(lambda one, other: torch.baddbmm(other[:, :1], one, other)),
    "by batches: Tensor.baddbmm": by_batch(lambda one, other: other[:, :1].baddbmm(one, other)),
    "attention, function": calling(
        lambda x, weight: F.scaled_dot_product_attention(
            weight[None, None].expand(len(x), -1, -1, -1), x[:, None, None], x[:, None, None]
        ),
        *(2, 3),
    ),
    "grouped": by_group(F.grouped_mm),
    "grouped, of torch": by_group(torch._grouped_mm),
}
IN_SINGLE = ("grouped", "grouped, of torch")  # PyTorch has no other precision for them
CONVOLUTIONS: dict[int, tuple[Any, Any]] = {  # Any: classes of the same arguments
    1: (nn.Conv1d, nn.ConvTranspose1d),
    2: (nn.Conv2d, nn.ConvTranspose2d),
    3: (nn.Conv3d, nn.ConvTranspose3d),
}
CLIPPINGS = [Flat(0.5), PerLayer(0.5), PerGroup({"": 0.3, "inner": 0.4}), Automatic(), L1(0.7)]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", CASES)
def test_a_layer_agrees_with_a_loop(name: str) -> None:
    torch.manual_seed(0)
    agrees(CASES[name](), within=SINGLE if name in IN_SINGLE else EXACT)


class Calls(TorchFunctionMode):
    """Collects the functions that PyTorch reports."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.functions.add(func)
        return func(*args, **(kwargs or {}))


def is_reported(function: Function) -> bool:
    """Whether PyTorch reports its calls by this name: those of some operators have another."""
    with Calls() as calls, suppress(TypeError, RuntimeError):  # some want others
        function(torch.ones(2, 2), torch.ones(2, 2))
    return function in calls.functions


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_each_function_with_a_rule_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rule records a use of weights there."""
    used = set[Function]()

    def watched(rule: Rule) -> Rule:
        def called(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Any:
            before = len(capture.uses)
            result = rule(capture, function, args, keywords)
            if len(capture.uses) > before:
                used.add(function)
            return result

        return called

    watching = replace(RULES, of={each: watched(rule) for each, rule in RULES.of.items()})
    monkeypatch.setattr(_engine, "RULES", watching)
    for make in CASES.values():
        make().clipped(Flat(1.0))
    assert [each for each in RULES.of if each not in used and is_reported(each)] == []
    assert {RULES.of[each] for each in used} == {*RULES.of.values()}


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    "make", [lambda: double(Bare(), 5, 4, 4), lambda: places(Reused(), 9, 5, 4)]
)
def test_every_clipping_agrees_with_a_loop(clipping: Flat, make: Make) -> None:
    torch.manual_seed(0)
    agrees(make(), clipping)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("padding", ["zeros", "circular", "reflect", "replicate"])
@pytest.mark.parametrize(("groups", "stride", "dilation"), [*itertools.product([1, 2], repeat=3)])
def test_convolutions_agree_with_a_loop(
    dimensions: int, padding: Any, groups: int, stride: int, dilation: int
) -> None:
    torch.manual_seed(0)
    plain, transposed = CONVOLUTIONS[dimensions]
    options: Any = {"stride": stride, "dilation": dilation, "groups": groups}
    shape = (5, 4, *(7, 6, 5)[:dimensions])
    agrees(double(plain(4, 6, 3, padding=2, padding_mode=padding, **options), *shape))
    if padding == "zeros":
        more = max(stride, dilation) - 1
        agrees(double(transposed(4, 6, 3, padding=1, output_padding=more, **options), *shape))


@st.composite
def stacks(draw: st.DrawFn) -> Case:
    """A stack of layers over (example, channel, place), each of what the last one gives."""
    channels = 4
    layers: list[nn.Module] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["conv", "norm", "linear", "act", "prelu", "inst", "up"]))
        if kind == "conv":
            channels_next = draw(st.sampled_from([2, 4, 6]))
            groups = draw(st.sampled_from([1, 2]))
            layers.append(nn.Conv1d(channels, channels_next, 3, padding=1, groups=groups))
            channels = channels_next
        elif kind == "up":
            layers.append(nn.ConvTranspose1d(channels, 2, 3, padding=1))
            channels = 2
        else:
            layers.append(
                {
                    "norm": nn.GroupNorm(2, channels),
                    "linear": nn.Linear(8, 8, bias=draw(st.booleans())),
                    "act": nn.Tanh()
                    if not layers or isinstance(layers[-1], nn.ReLU)
                    else nn.ReLU(not isinstance(layers[-1], nn.Tanh)),
                    "prelu": nn.PReLU(),
                    "inst": nn.InstanceNorm1d(channels, affine=True),
                }[kind]
            )
    layers.append(nn.Linear(8, 2))
    model = nn.Sequential(*layers)
    for number, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(number == 0 or draw(st.booleans()))
    return double(model, draw(st.integers(1, 9)), 4, 8)


@given(case=stacks(), clipping=st.sampled_from([Flat(0.3), PerLayer(0.2), Automatic(), L1(1.0)]))
@settings(max_examples=60)
def test_random_stacks_agree_with_a_loop(case: Case, clipping: Flat) -> None:
    agrees(case, clipping)


@pytest.mark.parametrize(
    "name", ["linear, ghost", "convolution, ghost", "bare parameters", "bags, mean"]
)
def test_single_precision_agrees_with_a_loop(name: str) -> None:
    torch.manual_seed(0)
    exact = CASES[name]()
    data = exact.data.float() if exact.data.is_floating_point() else exact.data
    agrees(Case(exact.model.float(), data), within=SINGLE)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.BatchNorm1d(4), (5, 4)),
        (nn.BatchNorm1d(4, affine=False), (5, 4)),
        (nn.BatchNorm1d(4, track_running_stats=False).eval(), (5, 4)),
        (nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (5, 4, 3)),
    ],
)
def test_layers_that_mix_examples_are_refused_by_name(
    model: nn.Module, shape: tuple[int, ...]
) -> None:
    case = double(nn.Sequential(nn.Identity(), model, nn.Linear(shape[-1], 2)), *shape)
    with pytest.raises(Refused, match=r"^(1|2)\..*; (use|keep) "):
        case.clipped(Flat(1.0))


@pytest.mark.parametrize("time", [3, 5])
def test_rows_of_many_examples_are_refused_by_name(time: int) -> None:
    """Even where there are as many times as examples, which shows by what neighbours change."""
    case = double(Mixed(), 5, time, 3)
    with pytest.raises(Refused, match=r"Mixed.* mixes|depends on others"):
        check(case.model, case.losses, case.data)
