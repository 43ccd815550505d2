"""Uses in which examples touch are refused before the charge."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from discreet.errors import InvalidArgument, Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, Use, of, put_back, summed
from tests.train.rare_uses import picked_and_taken_for_examples


def permuted(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(x[x.norm(dim=1).argsort()]) * x)


def swapped(m: Layers, x: Tensor) -> Tensor:
    order = torch.arange(len(x)).roll(1)
    return summed(m.layer(x[order]) + x)


def put_elsewhere(m: Layers, x: Tensor) -> Tensor:
    (places,) = torch.where(x[:, 0] > -9)
    return summed(put_back(x, places.flip(0), m.layer(x[places])) * x)


def by_memory(m: Layers, x: Tensor) -> Tensor:
    buffer = torch.zeros_like(x)
    buffer.copy_(x)
    buffer.flip(0).copy_(x)
    view = buffer.view(-1)
    view[:WIDTH] = x[-1]
    return summed(m.layer(buffer) * x)


def by_assignment(m: Layers, x: Tensor) -> Tensor:
    other = x.clone()
    other.data = x.flip(0)
    return summed(m.layer(other) * x)


def by_strides(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(x.as_strided(x.shape, (1, len(x)))) + x)


def through_lists(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(torch.tensor(x.tolist()[::-1], dtype=x.dtype)) * x)


def through_arrays(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(torch.from_numpy(x.detach().numpy()[::-1].copy())) * x)


def mapped(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(torch.vmap(torch.sin)(x.flip(0))) * x)


def in_bags_weighted_by(weights: Callable[[Tensor], Tensor]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        places = (x > 0).long()
        rows = F.embedding_bag(places, m.layer.weight, per_sample_weights=weights(x), mode="sum")
        return summed(rows)

    return use


TOUCHING: dict[str, Use] = {
    "a mask with two of one": picked_and_taken_for_examples,
    "permuted": permuted,
    "swapped": swapped,
    "put elsewhere": put_elsewhere,
    "by memory": by_memory,
    "by assignment": by_assignment,
    "by strides": by_strides,
    "lists": through_lists,
    "arrays": through_arrays,
    "vmap": mapped,
    "flipped": lambda m, x: summed(m.layer(x.flip(0)) * x),
    "rolled": lambda m, x: summed(m.layer(x.roll(1, 0)) * x),
    "sorted": lambda m, x: summed(m.layer(x.sort(0).values) * x),
    "ranked": lambda m, x: summed(m.layer(x * x.argsort(0).argsort(0))),
    "listed backwards": lambda m, x: summed(m.layer(torch.stack([*reversed(x.unbind(0))])) * x),
    "cut and swapped": lambda m, x: summed(m.layer(torch.cat([x[1:], x[:1]])) * x),
    "turned": lambda m, x: summed(m.layer(x.t().reshape(x.shape)) * x),
    "reshaped": lambda m, x: summed(m.layer(x.t().reshape(-1, WIDTH)).view(x.shape) * x),
    "gathered": lambda m, x: summed(m.layer(x.gather(0, x.argsort(0))) * x),
    "windows over examples": lambda m, x: summed(
        m.layer(F.pad(x, (0, 0, 0, 1)).unfold(0, 2, 1).sum(2)) * x
    ),
    "mean of others": lambda m, x: summed(m.layer(x - x.mean(0))),
    "a product of examples": lambda m, x: summed((m.layer(x) @ x.t()) @ x),
    "summed up": lambda m, x: summed(m.layer(x.cumsum(0)) + x),
    "a softmax over examples": lambda m, x: summed(m.layer(x.softmax(0)) + x),
    "bags weighted by others": in_bags_weighted_by(lambda x: x.flip(0)),
    "bags weighted by a mean": in_bags_weighted_by(lambda x: x.mean(0).expand_as(x)),
    "bags weighted by place": in_bags_weighted_by(
        lambda x: torch.arange(x.numel(), dtype=x.dtype).view(x.shape)
    ),
    "scattered": lambda m, x: summed(m.layer(torch.zeros_like(x).scatter(0, x.argsort(0), x)) * x),
    "einsum over examples": lambda m, x: summed(m.layer(torch.einsum("ij,ik->jk", x, x))[: len(x)]),
}


@pytest.mark.parametrize("number", [WIDTH, 6])
@pytest.mark.parametrize("name", TOUCHING)
def test_mixing_models_are_refused_before_payment(name: str, number: int) -> None:
    """Even where there are as many examples as features."""
    model = Layers(TOUCHING[name]).double()
    with pytest.raises((Refused, InvalidArgument, RuntimeError)):
        check(model, model, of(number, WIDTH))


def on_one_graph(name: str) -> Use:
    """Each example is a graph with edges from each node to the next, as parts of one graph."""

    def use(m: Layers, x: Tensor) -> Tensor:
        nodes = m.layer(x.view(-1, 1).expand(-1, WIDTH))
        start = torch.arange(len(x))[:, None] * WIDTH
        index = (start + torch.arange(WIDTH).roll(1)).flatten()
        rows = nodes[(start + torch.arange(WIDTH)).flatten()]
        if name.startswith("scatter"):
            index = index[:, None].expand(-1, WIDTH)
        found = getattr(torch.zeros_like(nodes), name)(0, index, rows)
        return summed(found.view(len(x), -1))

    return use


@pytest.mark.parametrize("name", ["index_add", "index_add_", "scatter_add", "scatter_add_"])
def test_the_refusal_of_one_graph_of_all_examples_says_what_to_write(name: str) -> None:
    model = Layers(on_one_graph(name)).double()
    plain = name.rstrip("_")
    with pytest.raises(Refused, match=rf"{plain}\(1, \.\.\.\) of \(example, node, feature\)"):
        check(model, model, of(6, WIDTH))


Ends = Callable[[Tensor, Tensor], Tensor]
ENDS: dict[str, Ends] = {  # from keys, and sorted keys: where each of three groups ends
    "a value of all": lambda k, _: torch.where(k.max() > 1, 0, torch.tensor([1, 2, len(k)])),
    "other keys": lambda k, _: torch.bincount((k + 1) % 3, minlength=3).cumsum(0),
    "counts in another order": lambda k, _: torch.bincount(k, minlength=3).flip(0).cumsum(0),
    "a range of the data": lambda _, s: torch.histc(s.float(), 3).cumsum(0),
    "weighted": lambda k, _: torch.bincount(k, k.double(), 3).cumsum(0),
    "changed": lambda k, _: torch.bincount(k, minlength=3).cumsum(0).mul_(2),
    "keys that are changed": lambda k, _: torch.bincount(k.clamp_(max=1), minlength=3).cumsum(0),
}


def by_groups(ends: Ends) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        keys = x[:, :3].argmax(1)
        values, order = torch.sort(keys)
        rows = F.grouped_mm(x[order], m.table, offs=ends(keys, values).int())
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return summed(rows[back])

    return use


@pytest.mark.parametrize("is_frozen", [True, False])
@pytest.mark.parametrize("name", ENDS)
def test_groups_of_other_rows_are_refused(name: str, is_frozen: bool) -> None:
    """The ends decide by which matrix each row is multiplied."""
    model, data = Layers(by_groups(ENDS[name])), of(6, WIDTH).float()
    model.table.requires_grad_(not is_frozen)
    with pytest.raises(Refused, match="grouped_mm with groups that are not known"):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


BETWEEN: dict[str, Callable[[Tensor, Tensor], object]] = {
    "keys": lambda keys, mask: keys.add_(1),
    "keys, as data": lambda keys, mask: keys.data.add_(1),
    "keys, as a view": lambda keys, mask: keys[1:].add_(1),
    "the first mask": lambda keys, mask: mask.logical_and_(keys < 9),
    "the first mask, as data": lambda keys, mask: mask.data.logical_and_(keys < 9),
}


def by_two_masks(change: Callable[[Tensor, Tensor], object], *, is_late: bool) -> Use:
    """The second mask puts back the rows of the first one; here both hold nothing."""

    def use(m: Layers, x: Tensor) -> Tensor:
        keys, found = (x[:, 0] > 1e6).long(), torch.zeros_like(x)
        first, second = keys == 3, keys == 3
        change(keys, first)
        found[keys == 3 if is_late else second] = m.layer(x[first])
        return summed(m.layer(x) + found)

    return use


@pytest.mark.parametrize("name", BETWEEN)
def test_masks_of_changed_keys_pick_other_rows(name: str) -> None:
    """So does a mask that was changed after an equal one was computed."""
    uses = (
        by_two_masks(lambda keys, mask: None, is_late=True),
        by_two_masks(BETWEEN[name], is_late=name.startswith("keys")),
    )
    agreeing, other = (Layers(use).double() for use in uses)
    data = of(5, WIDTH)
    clipped_sum(agreeing, lambda: agreeing(data), 5, Flat(1.0), batch=data)
    with pytest.raises(Refused, match="rows written to those of other examples"):
        clipped_sum(other, lambda: other(data), 5, Flat(1.0), batch=data)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("is_packed", [True, False])
def test_packed_sequences_made_by_hand_are_refused(kind: Any, is_packed: bool) -> None:
    """A frozen layer would take rows of several examples for steps of one sequence."""
    unit = kind(WIDTH, WIDTH).double().requires_grad_(requires_grad=False)

    def use(m: Layers, x: Tensor) -> Tensor:
        ones = torch.ones(len(x), dtype=torch.long)
        rows = pack_padded_sequence(x[None], ones, enforce_sorted=False).data if is_packed else x
        return summed(m.layer(unit(PackedSequence(rows, ones))[0].data))

    model, data = Layers(use).double(), of(5, WIDTH)
    with pytest.raises(Refused, match="a packed sequence that was made by hand"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


def test_refusals_name_the_call_that_lost_the_tags() -> None:
    model = Layers(TOUCHING["sorted"])
    with pytest.raises(Refused, match="were made by sort over examples"):
        check(model, model, torch.zeros(5, WIDTH))
    model = Layers(through_lists).double()
    with pytest.raises(Refused, match="read values of data, by tolist"):
        check(model, model, of(5, WIDTH))


def test_halves_of_a_mask_are_refused_with_the_way_out() -> None:
    def halves(m: Layers, x: Tensor) -> Tensor:
        mask, found = x[:, 0] > 0, torch.zeros_like(x)
        found[mask] = m.layer(x[mask])
        found[~mask] = m.first(x[~mask])
        return summed(found)

    model, data = Layers(halves).double(), of(6, WIDTH)
    with pytest.raises(Refused, match=r"torch\.where\(mask\[:, None\], f\(x\), g\(x\)\)"):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)
    model.use = lambda m, x: summed(torch.where(x[:, :1] > 0, m.layer(x), m.first(x)))
    same(
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data),
        one_by_one(model, lambda k: model(data[k : k + 1]), 6, Flat(1.0)),
    )
