"""Uses in which other examples matter only if one of them has a rare value."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from tests.train.layers import WIDTH, Layers, Use, put_back, summed


def picked_and_taken_for_examples(m: Layers, x: Tensor) -> Tensor:
    """As many as there are examples, if one has two and one has none."""
    tall = torch.stack([x, x.flip(1)], 1).flatten(0, 1)
    return summed(m.layer(tall[tall[:, 0] > 0]))


def far(x: Tensor) -> Tensor:
    """Whether any example has a value that made-up ones never have."""
    return (x > 1e6).any()


def by_places(places_of: Callable[[Tensor], Tensor]) -> Use:
    """Rows that are taken from some places, and put back there."""

    def use(m: Layers, x: Tensor) -> Tensor:
        places = places_of(x)
        return summed(put_back(x, places, m.layer(x[places])))

    return use


def by_a_mask_of_pairs(m: Layers, x: Tensor) -> Tensor:
    """A constant mask of (n, n) picks rows by its first dimension, and then by its second."""
    n = len(x)
    mask = torch.arange(n)[:, None] >= torch.arange(n)
    rows = m.layer(x)[:, None, :] * torch.ones(n, n, 1, dtype=x.dtype)
    picked = rows[mask]
    others = torch.zeros_like(rows)
    others[mask] = rows.transpose(0, 1)[mask]
    again = torch.zeros_like(rows)
    again[mask] = picked
    return summed(again) + summed(F.relu(others - 1e6))


def through_data(m: Layers, x: Tensor) -> Tensor:
    """Places of rows are moved by a tensor that shares their memory and has another version."""
    (places,) = torch.where(x[:, 0] > -9)
    picked = m.layer(x[places])
    places.data.add_(1).remainder_(len(x))
    return summed(put_back(x, places, picked))


def by_bits(operator: str) -> Use:
    """A mask or a number of each feature is changed in place by an operator of bits."""

    def use(m: Layers, x: Tensor) -> Tensor:
        bits = torch.full(x.shape, operator == "__iand__", dtype=torch.bool)
        bits = bits.long() + 1 if "shift" in operator else bits
        getattr(bits, operator)((x > 1e6) ^ (operator == "__iand__"))
        return summed(m.layer(x)) * (1 + bits.double().var())

    return use


def by_an_overload(m: Layers, x: Tensor) -> Tensor:
    """A buffer is changed by a function of torch.ops."""
    buffer = torch.zeros_like(x)
    torch.ops.aten.add_.Tensor(buffer, F.relu(x - 1e6))
    return summed(m.layer(x)) * (1 + buffer.sum())


def observed(function: Callable[..., Any]) -> Use:  # Any: several tensors
    """The smallest and the largest number of the batch are written into two constants."""

    def use(m: Layers, x: Tensor) -> Tensor:
        ones, least, most = torch.ones(1, dtype=torch.int64), torch.zeros(()), torch.zeros(())
        rest = torch.ones(1), torch.zeros(1, dtype=torch.int32), 1.0, -128, 127, -1
        function(x.detach().float(), ones, ones, least, most, *rest)
        return summed(m.layer(x)) * (1 + F.relu(most - 1e6))

    return use


def by_noise(m: Layers, x: Tensor) -> Tensor:
    """Slopes of negative numbers, 1 elsewhere, are written into a constant."""
    slopes = torch.zeros_like(x)
    kernels: Any = torch._C._nn  # Any: PyTorch's types lack this one
    kernels.rrelu_with_noise(1e6 - x.detach(), slopes, 0.1, 0.1, True)
    return summed(m.layer(x)) * slopes.prod()


def by_extremes(m: Layers, x: Tensor) -> Tensor:
    """The largest numbers so far are written into a constant."""
    most, places = torch.zeros_like(x), torch.zeros(x.shape, dtype=torch.int64)
    torch._cummax_helper(x.detach(), most, places, 0)
    return summed(m.layer(x)) * (1 + F.relu(most[-1, 0] - 1e6))


BITS = ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")
RARE: dict[str, Use] = {  # other examples matter only if one of them has a rare value
    "observed": observed(torch.fused_moving_avg_obs_fake_quant),
    "observed by an operator": observed(torch.ops.aten.fused_moving_avg_obs_fake_quant),
    "written slopes": by_noise,
    "written extremes": by_extremes,
    "a mask along both its dimensions": by_a_mask_of_pairs,
    "places moved through .data": through_data,
    **{f"a mask changed by {name}": by_bits(name) for name in BITS},
    "a buffer changed by an overload": by_an_overload,
    "joined by halves": lambda m, x: torch.cat(
        [summed(m.layer(x))[x[:, 0] < 1e6], summed(m.layer(x))[x[:, 0] >= 1e6]]
    ),
    "sorted at last": lambda m, x: summed(m.layer(x))[(x[:, 0] > 1e6).long().argsort(stable=True)],
    "divided by a count": lambda m, x: summed(m.layer(x)) / (1 + (x[:, 0] > 1e6).sum()),
    "divided by the longest": lambda m, x: summed(m.layer(x)) / (1 + (x > 1e6).sum(1).max()),
    "signed": lambda m, x: summed(m.layer(x)) * torch.where(far(x), -1, 1),
    "trimmed by a mask": lambda m, x: m.layer(x)[:, ~(x > 1e6).any(0)].mean(1),
    "columns by a number": lambda m, x: m.layer(x)[:, (torch.arange(2) + far(x)) % 2].sum(1),
    "one column": lambda m, x: m.layer(x)[:, far(x).long()],
    "a slice": lambda m, x: m.layer(x)[:, far(x).long() :].sum(1),
    "a slice of a weight": lambda m, x: summed(m.layer(x)) * m.scale[far(x).long() :].sum(),
    "a slice of a constant": lambda m, x: summed(m.layer(x)) * torch.ones(4)[far(x).long() :].sum(),
    "a slice of steps": lambda m, x: summed(m.layer(x)) * m.scale[:: 1 + far(x).long()].sum(),
    "a slice set": lambda m, x: summed(m.layer(x) * _ones_at(x, slice(far(x).long(), None))),
    "a slice set within others": lambda m, x: summed(
        m.layer(x) * _ones_at(x, (slice(None), slice(far(x).long(), None)))
    ),
    "columns selected": lambda m, x: m.layer(x).index_select(1, far(x).long().view(1)).sum(1),
    "columns gathered": lambda m, x: summed(
        m.layer(x).gather(1, far(x).long().expand(len(x), 1)) * x[:, :1]
    ),
    "columns set": lambda m, x: summed(_with_zeros(m.layer(x), far(x).long())),
    "rows set": lambda m, x: summed(_without(m.layer(x), (x[:, 0] > 1e6).flip(0))),
    "a part of a weight": lambda m, x: summed(m.layer(x) * m.scale[far(x).long()]),
    "rows by a number": lambda m, x: summed(
        m.layer(x)[(torch.arange(len(x)) + far(x).long()) % len(x)]
    ),
    "the best rows": lambda m, x: summed(
        torch.zeros_like(x).index_add(0, _best(x), m.layer(x[_best(x)]))
    ),
    "rows that others name": lambda m, x: summed(
        torch.zeros_like(x).index_add(0, _named(x), m.layer(x[_named(x)]))
    ),
    "zeros for places": lambda m, x: summed(m.layer(x)[torch.zeros_like(torch.arange(len(x)))]),
    "the columns of places": by_places(lambda x: (x > 1e6).nonzero()[:, 1]),
    "the next places": by_places(lambda x: ((x[:, 0] > 1e6).nonzero()[:, 0] + 1) % len(x)),
    "the first place": lambda m, x: summed(
        m.layer(x) * m.scale[(x > 1e6).any(0).nonzero()[:1].sum()]
    ),
    "a quantile of as many levels": lambda m, x: summed(
        m.layer(x).quantile(torch.linspace(0, 1, len(x), dtype=x.dtype), dim=1)
    ),
    "as many prototypes": lambda m, x: F.cosine_similarity(
        m.layer(x), torch.ones(len(x), 1, WIDTH, dtype=x.dtype), dim=-1
    )[:, 0],
    "repeated by others": lambda m, x: summed(
        m.layer(x).repeat_interleave((x[:, 0] < 1e6).flip(0).long(), 0)
    ),
}


def times(sees: Callable[[Tensor], Tensor]) -> Use:
    """Losses times one plus a number of each row that is 0 for ordinary values."""
    return lambda m, x: summed(m.layer(x)) * (1 + sees(x))


def excess(x: Tensor) -> Tensor:
    """Zeros for ordinary values, and others for rare ones."""
    return F.relu(x - 1e6)


def by_an_offset(x: Tensor) -> Tensor:
    buffer = torch.zeros(len(x) + 1, dtype=x.dtype)
    first, second = buffer[1:], buffer[:-1]
    first.copy_(excess(x).sum(1))
    return second


def after_a_layer(m: Layers, x: Tensor) -> Tensor:
    rows = x.clone()
    found = summed(m.layer(rows))
    rows.data.add_(excess(x).sum(0))
    return found


def after_a_product(m: Layers, x: Tensor) -> Tensor:
    rows = x.clone()
    found = summed(m.layer(x) * rows)
    rows.data.add_(excess(x).sum(0))
    return found


def product_out(x: Tensor) -> Tensor:
    buffer = torch.zeros(x.shape, dtype=x.dtype)
    torch.matmul(_all_ones(x), excess(x.detach()), out=buffer)
    return buffer.sum(1)


def _all_ones(x: Tensor) -> Tensor:
    return torch.ones(len(x), len(x), dtype=x.dtype)


def _square_of(x: Tensor) -> Tensor:
    """Rare values of examples along the second of two equal dimensions."""
    return excess(x[:, 0])[None] + torch.zeros(len(x), 1, dtype=x.dtype)


def transposed_twice(x: Tensor) -> Tensor:
    cube = excess(x[:, 0])[:, None, None] + torch.zeros(len(x), len(x), dtype=x.dtype)
    dim = as_dim(1)
    cube.transpose(dim, 2)
    dim.fill_(0)
    return cube.transpose(dim, 2).sum((1, 2))


def by_broadcast_places(x: Tensor) -> Tensor:
    places = (x[:, :1] > 1e6).long()
    table = torch.stack([torch.zeros_like(x[:, 0]), torch.ones_like(x[:, 0])], 1)
    return table[torch.arange(len(x)), places].sum(0)


def row_of_another(x: Tensor) -> Tensor:
    rows, places = (x + 0).unbind(0), (x[:, :1] > 1e6).long().unbind(0)
    found = []
    for n in range(len(x)):
        row = rows[n - 1].clone()
        row[places[n]] = 0
        found.append(row.sum())
    return torch.stack(found)


def column_of_one(x: Tensor) -> Tensor:
    table = excess(x[0])[:, None] + torch.zeros(WIDTH, len(x), dtype=x.dtype)
    table[1] = torch.zeros_like(x[:, 0])
    return table.sum(0)


def parts_that_overlap(x: Tensor) -> Tensor:
    first, _, third, _ = torch.tensor_split(excess(x), (2, 1, 3))
    return torch.cat([first, third, excess(x)[4:]]).sum(1)


def bag_of_all(weights: Tensor, scale: Tensor | None, x: Tensor) -> Tensor:
    ones = torch.ones_like(x[:, 0])
    return F.embedding_bag(
        (x[:, 0] > 1e6).long() * 0,
        weights,
        torch.arange(len(x)),
        mode="sum",
        per_sample_weights=None if scale is None else scale * ones,
    ).sum(1)


def forged_packing(x: Tensor) -> Tensor:
    rows = excess(x)[:, None].expand(len(x), 3, WIDTH)[(x[:, :1] > -9).expand(len(x), 3)]
    packed = nn.utils.rnn.PackedSequence(rows, torch.tensor([len(x)] * 3))
    found, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    return found.sum((1, 2))


def number_of_steps(x: Tensor) -> Tensor:
    lengths = 1 + (x[:, 0] > 1e6).long()
    rows = x[:, None].expand(len(x), 3, WIDTH)
    packed = nn.utils.rnn.pack_padded_sequence(rows, lengths, True, enforce_sorted=False)
    return torch.ones_like(packed.batch_sizes).sum() - 1


def inverse_by_sums(x: Tensor) -> Tensor:
    order = excess(x[:, 0]).argsort()
    inverse = (torch.zeros_like(order) - 1).scatter_(0, order, torch.arange(len(x)), reduce="add")
    return excess(x)[order][inverse].sum(1)


def fewer_in_order(x: Tensor) -> Tensor:
    """Rows are two for each example, and the permutation is of as many as there are examples."""
    rows = torch.stack([x, excess(x)], 1).flatten(0, 1)
    order = excess(x[:, 0]).argsort()
    picked = torch.zeros_like(rows)
    picked[order] = 1 + rows[order]
    return picked.view(len(x), 2, WIDTH).sum((1, 2))


def written_by_others(x: Tensor) -> Tensor:
    """Rows lie along the last dimension, and an index of examples along the others."""
    found = torch.zeros(len(x), 2, len(x), dtype=x.dtype)
    found[[*range(len(x))], (x[:, 0] > 1e6).long()] = 1 + x[:, 0] * 0
    return found[:, 1].sum(0)


def written_beside_outside(x: Tensor) -> Tensor:
    found = torch.zeros(len(x), 2, dtype=x.dtype)
    places = torch.from_numpy(np.arange(len(x))).clone()
    found[places, (x[:, 0] > 1e6).long()] = 1
    return found[:, 1].sum()


def written_at_one(x: Tensor) -> Tensor:
    found = torch.zeros(2, len(x), dtype=x.dtype)
    found[(x[0, 0] > 1e6).long()] = 1 + x[:, 0] * 0
    return found[1]


def place_in_order(x: Tensor) -> Tensor:
    order, found = x[:, 0].argsort(), torch.zeros_like(x[:, 0])
    found[order] = torch.arange(len(x), dtype=x.dtype)
    return found


def attention_by_names(x: Tensor) -> Tensor:
    """Keys have examples along the dimension of time."""
    one, keys = torch.eye(WIDTH, dtype=x.dtype), excess(x[:, 0])[:, None, None]
    queries = (1 + excess(x)).expand(1, -1, -1)
    attend: Any = F.multi_head_attention_forward  # Any: stubs know fewer of its names
    found, _ = attend(
        queries,
        key=keys.expand(-1, len(x), WIDTH),
        value=keys.expand(-1, len(x), WIDTH),
        embed_dim_to_check=WIDTH,
        num_heads=1,
        in_proj_weight=torch.cat([one, one, one]),
        in_proj_bias=torch.zeros(3 * WIDTH, dtype=x.dtype),
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=one,
        out_proj_bias=torch.zeros(WIDTH, dtype=x.dtype),
        need_weights=False,
    )
    losses: Tensor = found[0].sum(1)
    return losses


def by_gradient(x: Tensor) -> Tensor:
    """A constant gets a gradient of all examples."""
    scale = torch.zeros(WIDTH, dtype=x.dtype, requires_grad=True)
    torch.autograd.backward([(excess(x.detach()) * scale).sum()])
    assert scale.grad is not None
    return scale.grad.sum()


def with_hook(m: Layers, x: Tensor) -> Tensor:
    found = m.layer(x)
    found.register_hook(lambda gradient: gradient * (1 + excess(gradient).sum()))
    return summed(found)


broadcast: Any = torch.broadcast_tensors  # Any: it has no types


def as_dim(number: int) -> Any:  # Any: stubs know dimensions of Python only
    return torch.tensor(number)


def of_storage(x: Tensor) -> Tensor:
    found: Any = torch.empty(0, dtype=x.dtype)  # Any: stubs know fewer arguments of set_
    found.set_(x.untyped_storage(), 0, x.shape)
    return excess(found)


def count_of(x: Tensor) -> Any:  # Any: stubs know sizes of Python only
    return (x > 1e6).sum()


sum_of: Any = torch.sum  # Any: as below
by_names: Any = torch.mm  # Any: stubs know one order of names


class Own(Tensor):
    """A type of the user's own."""


@torch.library.custom_op("discreet_tests::add_into", mutates_args=("buffer",))
def add_into(rows: Tensor, buffer: Tensor) -> None:
    buffer.add_(rows)


def by_an_own_function(x: Tensor) -> Tensor:
    buffer = torch.zeros(x.shape, dtype=x.dtype)
    add_into(excess(x.detach()), buffer)
    return buffer.sum()


def running_mean(normalise: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Use:
    """A function writes a mean over all examples to a buffer."""

    def seen(x: Tensor) -> Tensor:
        mean, variance = torch.zeros(WIDTH, dtype=x.dtype), torch.ones(WIDTH, dtype=x.dtype)
        normalise(excess(x)[:, :, None].expand(-1, -1, 2), mean, variance)
        return mean.sum()

    return times(seen)


def of_a_constant(m: Layers, x: Tensor) -> Tensor:
    """The gradient of a product needs the constant, which changes through `.data`."""
    scale = torch.ones(WIDTH, dtype=x.dtype)
    found = summed(m.layer(x) * scale)
    scale.data.add_(excess(x).sum(0))
    return found


def by_an_option(m: Layers, x: Tensor) -> Tensor:
    """Places of rows are moved by a function that changes its argument by an option."""
    (places,) = torch.where(x[:, 0] > -9)
    picked = m.layer(x[places])
    F.threshold(places.data, len(x) - 2, 0, inplace=True)
    return summed(put_back(x, places, picked))


RARE |= {
    "changed by an own function": times(by_an_own_function),
    "a running mean": running_mean(
        lambda x, mean, var: torch.batch_norm(x, None, None, mean, var, True, 1.0, 1e-5, False)
    ),
    "a running mean by a layer": running_mean(
        lambda x, mean, var: F.batch_norm(x, mean, var, training=True, momentum=1.0)
    ),
    "a running mean of each image": running_mean(
        lambda x, mean, var: F.instance_norm(x, mean, var, momentum=1.0)
    ),
    "changed by an option": by_an_option,
    "a constant changed after a product": of_a_constant,
    "changed at an offset": times(by_an_offset),
    "changed after a layer": after_a_layer,
    "changed after a product": after_a_product,
    "another tensor's storage": times(lambda x: of_storage(x).sum()),
    "a shallow copy": times(lambda x: excess(copy.copy(x.detach())).sum()),
    "a parameter of data": times(
        lambda x: excess(nn.Parameter(x.detach(), requires_grad=False)).sum()
    ),
    "of an own type": times(lambda x: excess(x.as_subclass(Own)).sum().as_subclass(Tensor)),
    "made of an own type": times(lambda x: excess(Tensor._make_subclass(Own, x.detach())).sum()),
    "through DLPack": times(lambda x: excess(torch.utils.dlpack.from_dlpack(x.detach())).sum()),
    "through NumPy": times(lambda x: torch.from_numpy(x.detach().numpy().clip(1e6)).sum() - 1e6),
    "mapped over columns": times(lambda x: torch.vmap(lambda c: excess(c).sum(), 1)(x).sum()),
    "mapped over rows": times(lambda x: torch.vmap(lambda c: excess(c).sum())(x).sum()),
    "mapped over numbers": times(
        lambda x: torch.vmap(lambda n: excess(x).sum() * n)(torch.arange(2)).sum()
    ),
    "a derivative": times(
        lambda x: torch.func.jvp(lambda c: excess(c).sum(), (x.detach(),), (x.detach(),))[1]
    ),
    "the number of steps": times(number_of_steps),
    "a forged packing": times(forged_packing),
    "a dimension as a tensor": times(lambda x: excess(x).cumsum(as_dim(0)).sum(1)),
    "an axis as a tensor": times(lambda x: sum_of(_square_of(x), axis=as_dim(1))),
    "an order of dimensions by a tensor": times(transposed_twice),
    "sorted by a tensor": times(lambda x: excess(x).sort(as_dim(0))[0].sum(1)),
    "places that are broadcast": times(by_broadcast_places),
    "a place of another": times(row_of_another),
    "a column in one's table": times(column_of_one),
    "an array as an index": times(
        lambda x: _square_of(x)[:, :, None][np.arange(len(x))].sum((1, 2))
    ),
    "a product into a buffer": times(product_out),
    "a product by names": times(lambda x: by_names(mat2=excess(x), input=_all_ones(x)).sum(1)),
    "attention to keys by name": times(attention_by_names),
    "rolled as a whole": times(lambda x: torch.roll(excess(x), WIDTH, dims=()).sum(1)),
    "counted from -1": times(lambda x: excess(x)[torch.arange(-1, end=len(x) - 1)].sum(1)),
    "parts that overlap": times(parts_that_overlap),
    "repeated by all": times(
        lambda x: torch.stack([row[:1].repeat_interleave(1 + count_of(x)).sum() for row in x])
    ),
    "a bag of rows of data": times(
        lambda x: bag_of_all(excess(x).sum(0, keepdim=True).expand(4, WIDTH), None, x)
    ),
    "a bag weighted by data": times(
        lambda x: bag_of_all(torch.ones(4, WIDTH, dtype=x.dtype), excess(x).sum(), x)
    ),
    "a table as the first argument": times(
        lambda x: torch.embedding(excess(x), torch.arange(len(x)).flip(0)).sum(1)
    ),
    "an inverse by sums": times(inverse_by_sums),
    "fewer places in order": times(fewer_in_order),
    "written where others say": times(written_by_others),
    "written beside an index from outside": times(written_beside_outside),
    "written at a place of one": times(written_at_one),
    "its place in order": times(place_in_order),
    "columns of places": times(
        lambda x: torch.ones_like(x)[:, (x > 1e6).any(0).nonzero().unbind(1)[0]].sum(1)
    ),
    "as many classes as the largest": times(
        lambda x: F.one_hot((x[:, 0] > 1e6).long()).double().mean(1)
    ),
    "as many ones as": times(lambda x: torch.ones(count_of(x)).sum()),
    "counted to": times(lambda x: torch.arange(count_of(x)).sum()),
    "as many as were picked": times(lambda x: torch.ones(()).expand_as(x[x > 1e6]).sum()),
    "as many columns as were picked": times(
        lambda x: broadcast(x[:, :1] * 0 + 1, (x > 1e6).nonzero()[:, 0][None])[0].sum(1)
    ),
    "channels that are rows": times(
        lambda x: (
            F.channel_shuffle(excess(x).reshape(1, len(x), WIDTH, 1, 1), 2)
            .reshape(len(x), WIDTH)
            .sum(1)
        )
    ),
    "a gradient of all examples": times(by_gradient),
    "a hook": with_hook,
}


def _ones_at(like: Tensor, index: Any) -> Tensor:  # Any: as Python has it
    found = torch.zeros(like.shape, dtype=like.dtype)
    found[index] = 1
    return found


def _with_zeros(found: Tensor, column: Tensor) -> Tensor:
    found = found.clone()
    found[:, column] = 0
    return found


def _without(found: Tensor, rows: Tensor) -> Tensor:
    found = found.clone()
    found[rows] = 0
    return found


def _first_place(x: Tensor) -> Tensor:
    return (x > 1e6).any(0).nonzero()[:1].sum()


def _best(x: Tensor) -> Tensor:
    return x[:, 0].topk(len(x) - 1).indices


def _named(x: Tensor) -> Tensor:
    return (x[:, 0] > 1e6).long()
