"""Each argument of each function, where it depends on no data: it must not differ by place.

A constant or a draw beside rows of examples is the same for all of them, or each example has its
own numbers. Only values that made-up examples never have would show the difference.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from tests.train.layers import WIDTH, Layers, of, summed
from tests.train.unfollowed import unfollowed

NUMBER = 6
Taken = Callable[[Tensor, Tensor], Tensor]  # of rows (row, WIDTH), and one number for each row


def _index(constant: Tensor) -> Tensor:
    return constant.long() % WIDTH


def _rows(data: Tensor) -> Tensor:
    return torch.arange(len(data))


def _tall(data: Tensor, steps: int = 3) -> Tensor:
    return data[:, None].expand(-1, steps, -1)


def written(data: Tensor, constant: Tensor) -> Tensor:
    found = data.clone()
    found[_rows(data), _index(constant)] = 1.0
    return found


def written_beside(data: Tensor, constant: Tensor) -> Tensor:
    found = data.new_zeros(len(data), WIDTH)
    found[_rows(data), _index(constant)] = data[:, 0]
    return found


def kept_beside(data: Tensor, constant: Tensor) -> Tensor:
    found = constant[:, None].expand(-1, 2).clone()
    found[:, 0] = data[:, 0]
    return found


def kept_where_false(data: Tensor, constant: Tensor) -> Tensor:
    found = constant.clone()
    found[data[:, 0] > 0] = 0.0
    return found


def looked_up(data: Tensor, constant: Tensor) -> Tensor:
    table = torch.randn(2, WIDTH, dtype=data.dtype)
    return table[(data[:, 0] > 0).long(), _index(constant)]


def packed(data: Tensor, constant: Tensor) -> Tensor:
    lengths = 1 + _index(constant) % 3
    parts = pack_padded_sequence(_tall(data), lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(parts, batch_first=True, total_length=3)[0]


def attended(data: Tensor, given: dict[str, Tensor]) -> Tensor:
    rows = _tall(data).transpose(0, 1)
    square, wide = torch.eye(WIDTH, dtype=data.dtype), torch.eye(WIDTH, dtype=data.dtype)
    found, _ = F.multi_head_attention_forward(
        rows,
        given.pop("key", rows),
        given.pop("value", rows),
        WIDTH,
        1,
        square.repeat(3, 1),
        None,
        None,
        None,
        False,
        0.0,
        wide,
        None,
        **given,  # type: ignore[arg-type]  # tensors by name
    )
    return found.transpose(0, 1)


def _mask(data: Tensor, constant: Tensor) -> Tensor:
    return _index(constant)[:, None] == torch.arange(3)


def _states(data: Tensor, constant: Tensor) -> Tensor:
    return constant[:, None].expand(-1, WIDTH).contiguous()


UNIT = torch.nn.GRU(WIDTH, WIDTH, batch_first=True).double().requires_grad_(False)
CELL = torch.nn.GRUCell(WIDTH, WIDTH).double().requires_grad_(False)
LSTM = torch.nn.LSTMCell(WIDTH, WIDTH).double().requires_grad_(False)
TAKEN: dict[str, Taken] = {
    "an index beside that of rows": lambda x, c: x[_rows(x), _index(c)],
    "the same, of several columns": lambda x, c: x[_rows(x)[:, None], _index(c)[:, None]],
    "written at an index": written,
    "written at an index beside": written_beside,
    "beside what is written": kept_beside,
    "where nothing is written": kept_where_false,
    "an index of a table": looked_up,
    "gather": lambda x, c: x.gather(1, _index(c)[:, None]),
    "scatter": lambda x, c: x.scatter(1, _index(c)[:, None], 1.0),
    "scatter of values": lambda x, c: x.scatter(1, torch.zeros(len(x), 1).long(), c[:, None].to(x)),
    "take_along_dim": lambda x, c: x.take_along_dim(_index(c)[:, None], 1),
    "masked_fill": lambda x, c: x.masked_fill(_index(c)[:, None] > 1, 1.0),
    "lengths of packed sequences": packed,
    "states of a GRU": lambda x, c: UNIT(_tall(x), _states(x, c)[None])[0],
    "inputs of a GRU": lambda x, c: UNIT(_tall(_states(x, c)), x[None])[0],
    "inputs of a cell": lambda x, c: CELL(_states(x, c), x),
    "a state of a cell": lambda x, c: CELL(x, _states(x, c)),
    "states of an LSTM's cell": lambda x, c: LSTM(x, (_states(x, c), x))[0],
    "a grid": lambda x, c: F.grid_sample(
        x[:, None, None].expand(-1, 1, WIDTH, -1),
        c[:, None, None, None].expand(-1, 2, 2, 2) / NUMBER,
        align_corners=True,
    ),
    "weights of a bag": lambda x, c: F.embedding_bag(
        (x > 0).long(),
        torch.eye(2, dtype=x.dtype),
        per_sample_weights=_states(x, c),
        mode="sum",
    ),
    "keys": lambda x, c: attended(x, {"key": _states(x, c).expand(3, -1, -1)}),
    "values": lambda x, c: attended(x, {"value": _states(x, c).expand(3, -1, -1)}),
    "a mask of padding": lambda x, c: attended(x, {"key_padding_mask": _mask(x, c)}),
    "a mask of pairs": lambda x, c: attended(
        x, {"attn_mask": _mask(x, c)[:, None].expand(-1, 3, -1)}
    ),
    "a mask of attention": lambda x, c: F.scaled_dot_product_attention(
        _tall(x), _tall(x), _tall(x), attn_mask=c[:, None, None].expand(-1, 3, 3).to(x)
    ),
    "probabilities in place": lambda x, c: x.clone().bernoulli_(
        (_index(c) > 1).to(x)[:, None].expand(-1, WIDTH).clone()
    ),
    "lerp": lambda x, c: x.lerp(-x, c[:, None].to(x)),
    "weights of a loss": lambda x, c: F.binary_cross_entropy(
        x.sigmoid(), x.sigmoid().detach(), weight=c[:, None].to(x), reduction="none"
    ),
    "a bilinear layer": lambda x, c: F.bilinear(
        x, _states(x, c), torch.ones(1, WIDTH, WIDTH, dtype=x.dtype)
    ),
    "outside of functions": lambda x, c: x * unfollowed(c.clone)[:, None],
    "an order": lambda x, c: x * torch.randperm(len(x))[:, None],
}
BY_PLACE: dict[str, Callable[[int], Tensor]] = {
    "counted": lambda n: 1 + torch.arange(n, dtype=torch.float64),
    "draws in pairs": lambda n: (torch.rand(n, dtype=torch.float64) * 9)[torch.arange(n) // 2],
    "draws and those of others": lambda n: _with_others(torch.rand(n, dtype=torch.float64) * 9),
    "another order": lambda n: torch.randperm(n).double(),
}
ALIKE: dict[str, Callable[[int], Tensor]] = {
    "full": lambda n: torch.full((n,), 2.0, dtype=torch.float64),
    "draws": lambda n: torch.rand(n, dtype=torch.float64) * 9,
}
BY_PLACE_IF_DRAWN = ("an order", "outside of functions", "lengths of packed sequences")


def _with_others(draws: Tensor) -> Tensor:
    return draws + draws.flip(0)


def model_of(taken: Taken, make: Callable[[int], Tensor]) -> Layers:
    """Its losses show the function's result only where values are larger than made-up ones."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found = taken(x, make(len(x)))
        return summed(m.layer(x)) + F.relu(found.reshape(len(x), -1).sum(1) - 1e9)

    return Layers(use).double()


@pytest.mark.parametrize("made", BY_PLACE)
@pytest.mark.parametrize("name", TAKEN)
def test_no_argument_differs_by_place(name: str, made: str) -> None:
    model, data = model_of(TAKEN[name], BY_PLACE[made]), of(NUMBER, WIDTH)
    with pytest.raises(Refused, match="losses"):
        clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)


@pytest.mark.parametrize("made", ALIKE)
@pytest.mark.parametrize("name", [name for name in TAKEN if name not in BY_PLACE_IF_DRAWN])
def test_arguments_that_are_alike_train(name: str, made: str) -> None:
    model, data = model_of(TAKEN[name], ALIKE[made]), of(NUMBER, WIDTH)
    clipped_sum(model, lambda: model(data), NUMBER, Flat(1.0), batch=data)
