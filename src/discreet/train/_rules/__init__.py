"""The rule of each function: how to compute per-example gradients of the weights that it uses.

Read `_linear` first, then `_gradients` for the compact forms. The others follow their pattern:
`_convolution`, `_embedding`, `_norms`, `_elementwise`, `_attention`, `_groups` (mixtures of
experts), `_cells`, `_recurrent` and `_packed`. `_fallback` is for functions without a rule.
"""

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Keywords, named
from discreet.train._forward._arranged import ruled
from discreet.train._forward._capture import Rules
from discreet.train._rules._attention import NAMES, attention, scaled_dot_products
from discreet.train._rules._cells import gru_cell, lstm_cell, rnn_cell
from discreet.train._rules._convolution import convolution
from discreet.train._rules._elementwise import elementwise, joined
from discreet.train._rules._embedding import embedding, embedding_bag
from discreet.train._rules._fallback import by_example
from discreet.train._rules._groups import grouped
from discreet.train._rules._linear import addmm, linear, matmul
from discreet.train._rules._norms import (
    batch_norm,
    group_norm,
    instance_norm,
    over_last,
    prelu,
)
from discreet.train._rules._recurrent import gru, lstm, rnn

_ELEMENTWISE = (
    *(torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__),
    *(torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__, Tensor.sub_, Tensor.__isub__),
    *(torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.mul_, Tensor.__imul__),
    *(torch.div, Tensor.div, Tensor.__truediv__, Tensor.__rtruediv__, Tensor.div_),
    *(torch.maximum, torch.minimum, torch.where, torch.pow, Tensor.pow),
)
_CONVOLUTIONS = (
    *(torch.conv1d, torch.conv2d, torch.conv3d),
    *(torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
)
_MATMUL = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, Tensor.mm)
_PRODUCTS = (torch.bmm, Tensor.bmm, torch.baddbmm, Tensor.baddbmm)


def _normalised(args: Args, keywords: Keywords) -> int:
    shape = named("input normalized_shape", args, keywords)["normalized_shape"]
    return 1 if isinstance(shape, int) else len(shape)


def _in_attention(args: Args, keywords: Keywords) -> list[tuple[Tensor, int]]:
    """Queries, keys and values are (time, example, feature), the padding mask (example, time)."""
    given = named(NAMES, args, keywords)
    several = [(given[name], 1) for name in ("query", "key", "value")]
    padding = given.get("key_padding_mask")
    return several if padding is None else [*several, (padding, 0)]


def _in_recurrent(args: Args, _: Keywords) -> list[tuple[Tensor, int]]:
    """Data have examples or time first, states are (layer, example, hidden); packed rows have an
    order of their own."""
    if isinstance(args[3], (list, tuple)):
        return [(args[0], 0)]
    states = args[1] if isinstance(args[1], (list, tuple)) else (args[1],)
    return [(args[0], 0 if args[8] else 1), *((state, 1) for state in states)]


def _in_bags(args: Args, keywords: Keywords) -> list[tuple[Tensor, int]]:
    """Indices and their weights; offsets have no rows of examples."""
    given = named("input weight offsets", args, keywords)
    shares = given.get("per_sample_weights", args[8] if len(args) > 8 else None)
    return [(given["input"], 0)] if shares is None else [(given["input"], 0), (shares, 0)]


def _in_groups(args: Args, keywords: Keywords) -> list[tuple[Tensor, int]]:
    """Rows, group after group; the ends of groups have no rows of examples."""
    return [(named("input mat2", args, keywords)["input"], 0)]


_GROUPED = (torch._grouped_mm, F.grouped_mm)  # noqa: SLF001  as libraries call it
_RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)

RULES = Rules(
    of={
        F.linear: linear,
        **dict.fromkeys(_MATMUL, matmul),
        torch.addmm: addmm,
        **dict.fromkeys(_CONVOLUTIONS, convolution),
        F.embedding: embedding,
        F.embedding_bag: embedding_bag,
        F.layer_norm: over_last,
        F.rms_norm: over_last,
        F.group_norm: group_norm,
        F.instance_norm: instance_norm,
        F.batch_norm: batch_norm,
        torch.prelu: prelu,
        **dict.fromkeys(_GROUPED, grouped),
        torch.lstm: lstm,
        torch.gru: gru,
        **dict.fromkeys((torch.rnn_tanh, torch.rnn_relu), rnn),
        torch.lstm_cell: lstm_cell,
        torch.gru_cell: gru_cell,
        **dict.fromkeys((torch.rnn_tanh_cell, torch.rnn_relu_cell), rnn_cell),
        F.multi_head_attention_forward: attention,
        F.scaled_dot_product_attention: scaled_dot_products,
        **dict.fromkeys((torch.cat, torch.stack), joined),
        **dict.fromkeys((*_ELEMENTWISE, *_PRODUCTS), elementwise),
    },
    otherwise=by_example,
    ruled=ruled,
    features={
        F.linear: ("input", 0, lambda _, __: 1),
        **dict.fromkeys(_MATMUL, ("input", 0, lambda _, __: 1)),
        torch.addmm: ("mat1", 1, lambda _, __: 1),
        F.embedding: ("input", 0, lambda _, __: 0),
        F.layer_norm: ("input", 0, _normalised),
        F.rms_norm: ("input", 0, _normalised),
    },
    broadcast=frozenset({*_ELEMENTWISE, torch.cat, torch.stack}),
    products=frozenset(_PRODUCTS),
    elsewhere={
        **dict.fromkeys(_GROUPED, _in_groups),
        F.multi_head_attention_forward: _in_attention,
        F.embedding_bag: _in_bags,
        **dict.fromkeys(_RECURRENT, _in_recurrent),
    },
    always=frozenset({F.batch_norm, F.embedding, F.embedding_bag, F.instance_norm, *_GROUPED}),
)
