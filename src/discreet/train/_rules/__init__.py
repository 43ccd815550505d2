"""The rule of every function that has one: how its use of weights gives single gradients."""

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._capture import Rules
from discreet.train._fallback import by_example
from discreet.train._rules._attention import attention, scaled_dot_products
from discreet.train._rules._cells import gru_cell, lstm_cell, rnn_cell
from discreet.train._rules._convolution import convolution, transposed
from discreet.train._rules._elementwise import elementwise, joined
from discreet.train._rules._embedding import embedding, embedding_bag
from discreet.train._rules._linear import addmm, linear, matmul
from discreet.train._rules._norms import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    prelu,
    rms_norm,
)
from discreet.train._rules._recurrent import gru, lstm, rnn

_ELEMENTWISE = (
    *(torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__),
    *(torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__, Tensor.sub_, Tensor.__isub__),
    *(torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.mul_, Tensor.__imul__),
    *(torch.div, Tensor.div, Tensor.__truediv__, Tensor.__rtruediv__, Tensor.div_),
    *(torch.bmm, Tensor.bmm, torch.baddbmm, Tensor.baddbmm),
    *(torch.maximum, torch.minimum, torch.where, torch.pow, Tensor.pow),
)

RULES = Rules(
    of={
        F.linear: linear,
        torch.matmul: matmul,
        Tensor.matmul: matmul,
        Tensor.__matmul__: matmul,
        torch.addmm: addmm,
        torch.mm: matmul,
        Tensor.mm: matmul,
        torch.conv1d: convolution,
        torch.conv2d: convolution,
        torch.conv3d: convolution,
        torch.conv_transpose1d: transposed,
        torch.conv_transpose2d: transposed,
        torch.conv_transpose3d: transposed,
        F.embedding: embedding,
        F.embedding_bag: embedding_bag,
        F.layer_norm: layer_norm,
        F.rms_norm: rms_norm,
        F.group_norm: group_norm,
        F.instance_norm: instance_norm,
        F.batch_norm: batch_norm,
        torch.prelu: prelu,
        torch.lstm: lstm,
        torch.gru: gru,
        torch.rnn_tanh: rnn,
        torch.rnn_relu: rnn,
        torch.lstm_cell: lstm_cell,
        torch.gru_cell: gru_cell,
        torch.rnn_tanh_cell: rnn_cell,
        torch.rnn_relu_cell: rnn_cell,
        F.multi_head_attention_forward: attention,
        F.scaled_dot_product_attention: scaled_dot_products,
        torch.cat: joined,
        torch.stack: joined,
        **dict.fromkeys(_ELEMENTWISE, elementwise),
    },
    otherwise=by_example,
    always=frozenset({F.batch_norm, F.embedding, F.embedding_bag, F.instance_norm}),
)
