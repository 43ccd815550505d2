"""Each row is credited to its example, by structure.

Each use of data is wrapped in layers with weights. The engine's sum of clipped gradients is that of
a plain loop in which each loss is computed on its example alone. `test_tag_refusals` has the uses
for which it is not.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, Use, of, put_back, summed

# Uses in which each example is alone, of data (example, feature)


def picked_by_mask(m: Layers, x: Tensor) -> Tensor:
    mask = x[:, 0] > 0
    found = torch.zeros_like(x)
    found[mask] = m.layer(x[mask])
    return summed(found)


def picked_by_places(m: Layers, x: Tensor) -> Tensor:
    (places,) = torch.where(x[:, 0] > 0)
    return summed(put_back(x, places, m.layer(x[places])))


def picked_none(m: Layers, x: Tensor) -> Tensor:
    mask = x[:, 0] > 9
    found = x.clone()
    found[mask] = m.norm(m.layer(x[mask])) * m.scale
    return summed(found)


def picked_above(m: Layers, x: Tensor) -> Tensor:
    mask, found = x[:, 0] > 0, x.clone()
    found[mask] = m.norm(m.layer(x[mask])) * m.scale
    return summed(found)


def ordered_and_back(m: Layers, x: Tensor) -> Tensor:
    order = x.norm(dim=1).argsort()
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order))
    return summed(m.layer(m.layer(x[order]))[back])


def mixture(m: Layers, x: Tensor) -> Tensor:
    """A loop over experts, each of which takes those rows that choose it."""
    chosen, found = x.argmax(1) % 3, torch.zeros_like(x)
    for number, expert in enumerate(m.experts):
        (places,) = torch.where(chosen == number)
        found.index_add_(0, places, expert(x[places]) * x.amax(1)[places, None])
    return summed(found)


def mixture_of_two(m: Layers, x: Tensor) -> Tensor:
    """Each row in two experts, whose matrices are in one table; only those that are hit."""
    _, best = x[:, :3].topk(2)
    hot, found = F.one_hot(best, 3).permute(2, 1, 0), torch.zeros_like(x)
    for (hit,) in (hot.sum((1, 2)) > 0).nonzero():
        if hit == len(m.table):
            continue
        place, row = torch.where(hot[hit])
        found.index_add_(0, row, F.linear(x[row], m.table[hit]) * x[row, place, None])
    return summed(found)


def cut_and_joined(m: Layers, x: Tensor) -> Tensor:
    halves = torch.cat([m.layer(x[:2]), m.layer(x[2:])])
    return summed(halves * x)


def one_at_a_time(m: Layers, x: Tensor) -> Tensor:
    return summed(torch.cat([m.layer(x[n : n + 1]) for n in range(len(x))]) + x)


def listed_in_order(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(torch.stack([row * 2 for row in x])) + x)


def two_views(m: Layers, x: Tensor) -> Tensor:
    first, second = m.layer(torch.cat([x, 2 * x])).chunk(2)
    found: Tensor = (first * second).sum(1)
    return found


def column_by_column(m: Layers, x: Tensor) -> Tensor:
    """Several rows of each example: (example * feature, feature)."""
    rows = x.repeat_interleave(WIDTH, 0)
    return summed(m.norm(m.layer(rows)).view(len(x), WIDTH, WIDTH) * m.scale)


def turned_and_back(m: Layers, x: Tensor) -> Tensor:
    return summed((m.layer(x.t().t()) + m.scale[:, None].expand(-1, len(x)).t()).mT.mT)


def filtered(m: Layers, x: Tensor) -> Tensor:
    windows = x.repeat_interleave(2, 0)[:, None]  # (example * 2, 1, feature)
    return summed(m.filter(windows).view(len(x), -1))


def filtered_when_picked(m: Layers, x: Tensor) -> Tensor:
    (places,) = torch.where(x[:, 1] > 0)
    found = torch.zeros(len(x), 2 * WIDTH, dtype=x.dtype)
    return summed(found.index_add(0, places, m.filter(x[places][:, None]).flatten(1)))


def scaled_in_place(m: Layers, x: Tensor) -> Tensor:
    buffer = torch.zeros(len(x), 2, WIDTH, dtype=x.dtype)
    buffer[:, 0] = x
    buffer[:, 1].copy_(x).mul_(2)
    return summed(m.layer(buffer) * m.scale)


def by_data(m: Layers, x: Tensor) -> Tensor:
    return summed(m.layer(x) * x.data + x.detach())


def in_weighted_bags(m: Layers, x: Tensor) -> Tensor:
    weights = m.layer(x).softmax(1)
    found = F.embedding_bag(
        (x > 0).long(), m.scale[:, None] * 2, per_sample_weights=weights, mode="sum"
    )
    return summed(found)


COLUMNS: dict[str, Callable[[Tensor], Tensor]] = {
    "a column": lambda mask: mask.nonzero()[:, 0],
    "the last column": lambda mask: mask.nonzero()[..., -1],
    "squeezed": lambda mask: mask.nonzero().squeeze(1),
    "flattened": lambda mask: mask.nonzero().flatten(),
    "viewed": lambda mask: mask.nonzero().view(-1),
    "unbound": lambda mask: mask.nonzero().unbind(1)[0],
    "selected": lambda mask: torch.select(torch.argwhere(mask), 1, 0),
    "of a mask of all entries": lambda mask: _in_one_feature(mask).nonzero()[:, 0],
    "of a mask with features first": lambda mask: _in_one_feature(mask).t().nonzero()[:, 1],
    "as a tuple": lambda mask: mask.nonzero(as_tuple=True)[0],
}


def _in_one_feature(mask: Tensor) -> Tensor:
    """A mask (example, 2) of the second feature of the masked examples."""
    return mask[:, None] & (torch.arange(2) > 0)


def picked_by_column(places_of: Callable[[Tensor], Tensor]) -> Use:
    """A mixture of two layers; each takes the rows whose places are in its mask."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found, first = torch.zeros_like(x), x[:, 0] > 0
        for mask, layer in ((first, m.layer), (~first, m.experts[0])):
            places = places_of(mask)
            found = found.index_add(0, places, x[places, 1, None] * layer(x[places]))
        return summed(found)

    return use


def masked_twice(m: Layers, x: Tensor) -> Tensor:
    """A mixture of experts that writes each mask anew."""
    shares = m.first(x).softmax(-1)
    keys, found = shares.argmax(-1), torch.zeros_like(x)
    for key in range(3):
        found[keys == key] = m.layer(x[keys == key]) * shares[keys == key, key : key + 1]
        found[torch.gt(keys, key)] += m.scale * x[keys > key]
    return summed(found)


def in_a_loop(m: Layers, x: Tensor) -> Tensor:
    """Layers of single examples: with a dimension of one example, and without."""
    found = []
    for number, row in enumerate(x):
        hidden = m.norm(m.layer(row)) * m.scale + x[number]
        wide = m.filter(hidden[None, None]).flatten(1)[:, :WIDTH]
        time = m.unit(wide[None])[0][0] + m.experts[0](wide)
        found.append(summed(torch.cat([time, m.scale[None] * row[None]], 1)).mean())
    return torch.stack(found)


def in_complex_numbers(m: Layers, x: Tensor) -> Tensor:
    """Rotary positions."""
    pairs = torch.view_as_complex(m.layer(x).reshape(len(x), 2, 2))
    turns = torch.polar(torch.ones(2), torch.arange(2.0)).to(pairs.dtype)
    return summed(m.norm(torch.view_as_real(pairs * turns).flatten(1)))


def gathered_from_weights(m: Layers, x: Tensor) -> Tensor:
    labels = x.argmax(1)
    own = m.table.flatten(1).mT.gather(0, labels[:, None].expand(-1, 3))
    return summed(m.layer(x)) * own.sum(1) + m.scale.gather(0, labels) * x[:, 0]


def taken_from_weights(m: Layers, x: Tensor) -> Tensor:
    labels = x.argmax(1)
    return summed(m.layer(x) * torch.take_along_dim(m.table[0], labels[:, None], 0))


def put_at_an_index(m: Layers, x: Tensor) -> Tensor:
    rows = torch.arange(len(x))
    found = m.layer(x).index_put((rows, x.argmax(1)), torch.zeros((), dtype=x.dtype))
    mask = x[:, 0] > 0
    found = found.index_put((mask,), m.layer(x)[mask], accumulate=True)
    return summed(found.index_put_((rows, x.argmin(1)), torch.ones((), dtype=x.dtype)))


def in_triplets(m: Layers, x: Tensor) -> Tensor:
    def distance(one: Tensor, other: Tensor) -> Tensor:
        return summed(m.layer(one - other))

    made = nn.TripletMarginWithDistanceLoss(
        distance_function=distance, margin=20, swap=True, reduction="none"
    )
    found: Tensor = made(m.norm(x), x + 0.1, x - 1)
    return found


ALONE: list[Use] = [
    in_a_loop,
    in_complex_numbers,
    gathered_from_weights,
    taken_from_weights,
    put_at_an_index,
    in_triplets,
    *map(picked_by_column, COLUMNS.values()),
    picked_by_mask,
    picked_by_places,
    picked_none,
    picked_above,
    ordered_and_back,
    mixture,
    mixture_of_two,
    cut_and_joined,
    one_at_a_time,
    listed_in_order,
    two_views,
    column_by_column,
    turned_and_back,
    filtered,
    filtered_when_picked,
    scaled_in_place,
    by_data,
    in_weighted_bags,
    masked_twice,
]


# The same of data (example, time, feature)


def merged_with_time(m: Layers, x: Tensor) -> Tensor:
    return summed(m.norm(m.layer(x.view(-1, WIDTH))).view(x.shape) * m.scale)


def time_first(m: Layers, x: Tensor) -> Tensor:
    turned = x.transpose(0, 1)
    flat = m.layer(m.norm(turned) * m.scale).reshape(-1, WIDTH)
    return summed(m.layer(flat).view(turned.shape).permute(1, 0, 2))


def in_windows(m: Layers, x: Tensor) -> Tensor:
    """As Swin does: each pair of times a row of its own."""
    pairs = x[:, :4].reshape(len(x), 2, 2, WIDTH).transpose(1, 2).reshape(-1, 2, WIDTH)
    scores = torch.softmax(m.layer(pairs) @ pairs.mT + m.scale[:2], -1) @ pairs
    return summed(scores.view(len(x), 2, 2, WIDTH))


def picked_times(m: Layers, x: Tensor) -> Tensor:
    mask = x[:, :, 0] > 0.5
    found = torch.zeros_like(x)
    found[mask] = m.norm(m.layer(x[mask])) * m.scale
    return summed(found)


def ends(m: Layers, x: Tensor) -> Tensor:
    """The last place that counts, by example."""
    last = (x[:, :, 0] > 0).sum(1).clamp(min=1) - 1
    return summed(m.layer(x[torch.arange(len(x)), last]) + m.layer(x[:, -1]))


def packed(m: Layers, x: Tensor) -> Tensor:
    lengths = (x[:, :, 0] > 0).sum(1).clamp(min=1)
    rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    rows = rows._replace(data=m.layer(rows.data))
    result, _ = pad_packed_sequence(m.unit(rows)[0], batch_first=True, total_length=x.shape[1])
    return summed(m.layer(result))


def grouped(m: Layers, x: Tensor) -> Tensor:
    """Rows in the order of their experts, as libraries do it."""
    flat = x.float().view(-1, WIDTH)
    _, best = flat[:, :3].topk(2)
    experts, order = torch.sort(best.reshape(-1))
    rows = flat[order // 2]
    ends = torch.histc(experts.float(), 3, 0, 2).cumsum(0, dtype=torch.int32)
    product = F.grouped_mm(rows, m.table.float(), offs=ends)
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order))
    found: Tensor = product[back].view(*x.shape[:2], 2, WIDTH).sum(2)
    return summed(found).to(x.dtype)


ALONE_IN_TIME: list[Use] = [
    merged_with_time,
    time_first,
    in_windows,
    picked_times,
    ends,
    packed,
]


@pytest.mark.parametrize("number", [1, 4, 5, 8])
@pytest.mark.parametrize("use", [*ALONE, *ALONE_IN_TIME], ids=lambda use: use.__name__)
def test_rows_are_credited_to_their_examples(use: Use, number: int) -> None:
    """With as many examples as features, and with other numbers."""
    data = of(number, *((4,) if use in ALONE_IN_TIME else ()), WIDTH)
    model = Layers(use).double()
    agrees_with_a_loop(model, data)


Rows = Callable[[Layers, Tensor], Tensor]


def of_rows(m: Layers, rows: Tensor) -> Tensor:
    found: Tensor = m.norm(m.layer(rows)) * m.scale
    return found


def looked_up(m: Layers, rows: Tensor) -> Tensor:
    return F.embedding((rows > 0).sum(-1) % WIDTH, m.layer.weight)


def looked_up_but_padding(m: Layers, rows: Tensor) -> Tensor:
    found: Tensor = m.layer(F.embedding((rows > 0).sum(-1) % WIDTH, m.layer.weight, padding_idx=-2))
    return found


def bags(m: Layers, rows: Tensor) -> Tensor:
    numbers = (rows > 0).sum(-1) % WIDTH
    numbers = numbers[:, None] if numbers.dim() == 1 else numbers
    found = F.embedding_bag(numbers, m.layer.weight, mode="sum")
    return found.view(len(rows), *(1,) * (rows.dim() - 2), WIDTH).expand(rows.shape)


def in_pairs(of: Rows, m: Layers, x: Tensor) -> Tensor:
    """Chosen and rejected answers in one batch, as preferences are trained."""
    chosen, rejected = of(m, torch.cat([x[:, :2], x[:, 2:]])).chunk(2)
    return summed(chosen) - summed(rejected)


def merged(of: Rows, m: Layers, x: Tensor) -> Tensor:
    """Choices or sentences of each example."""
    return summed(of(m, x.view(-1, 2, WIDTH)).reshape(x.shape))


def masked_rows(of: Rows, m: Layers, x: Tensor) -> Tensor:
    mask = x[:, 0, 0] > 0
    return summed(put_back(x, mask.nonzero()[:, 0], of(m, x[mask])))


def masked_times(of: Rows, m: Layers, x: Tensor) -> Tensor:
    mask, found = x[:, :, 0] > 0, x.clone()
    found[mask] = of(m, x[mask])
    return summed(found)


def no_rows(of: Rows, m: Layers, x: Tensor) -> Tensor:
    mask, found = x[:, :, 0] > 9, x.clone()
    found[mask] = of(m, x[mask])
    return summed(found)


def by_domain(of: Rows, m: Layers, x: Tensor) -> Tensor:
    domain, found = x[:, 0].argmax(1), torch.zeros_like(x)
    for number in range(WIDTH):
        found[domain == number] = of(m, x[domain == number]) * number
    return summed(found)


@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("of", [of_rows, looked_up, looked_up_but_padding, bags])
@pytest.mark.parametrize(
    "arranged", [in_pairs, merged, masked_rows, masked_times, no_rows, by_domain]
)
def test_rows_in_other_numbers_than_examples_are_credited_to_these(
    arranged: Callable[[Rows, Layers, Tensor], Tensor], of: Rows, number: int
) -> None:
    data = torch.randn(number, 4, WIDTH, dtype=torch.float64)
    agrees_with_a_loop(Layers(partial(arranged, of)).double(), data)


@pytest.mark.parametrize("number", [1, 4, 7])
def test_rows_in_groups_are_credited_to_their_examples(number: int) -> None:
    model, data = Layers(grouped), of(number, 5, WIDTH).float()
    agrees_with_a_loop(model, data, within=1e-4)
    model.table.requires_grad_(False)
    agrees_with_a_loop(model, data, within=1e-4)
    check(model, model, data)


def test_rows_in_no_group_become_zeros() -> None:
    """PyTorch leaves their memory as it is."""

    def use(m: Layers, x: Tensor) -> Tensor:
        keys, order = torch.sort((x[:, 0] * 4).round().long())
        ends = torch.histc(keys.float(), 3, 0, 2).cumsum(0, dtype=torch.int32)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        found.append((x, F.grouped_mm(x[order], m.table, offs=ends)[back]))
        return summed(found[-1][1])

    found = list[tuple[Tensor, Tensor]]()
    model, data = Layers(use), 2 * of(9, WIDTH).float()
    clipped_sum(model, lambda: model(data), 9, Flat(1.0), batch=data)
    x, rows = found[0]
    keys = (x[:, 0] * 4).round().long()
    assert min(keys) < 0 < 3 <= max(keys)
    for row, key, result in zip(x, keys, rows, strict=True):
        wanted = row @ model.table[key] if key in (0, 1, 2) else torch.zeros(WIDTH)
        torch.testing.assert_close(result, wanted)


def agrees_with_a_loop(model: nn.Module, data: Tensor, within: float = 1e-10) -> None:
    def alone(place: int) -> Tensor:
        found: Tensor = model(data[place : place + 1])
        return found

    norms = one_by_one(model, alone, len(data), Flat(1.0)).squared_norms.sqrt()
    clipping = Flat(float(norms.median()) or float(norms.max()) or 1.0)
    found = clipped_sum(model, lambda: model(data), len(data), clipping, batch=data)
    same(found, one_by_one(model, alone, len(data), clipping), within)


def test_all_and_no_rows_picked_are_the_same_to_the_engine() -> None:
    """How many rows a mask picks decides nothing but what is summed: no refusal, no type."""
    model = Layers(picked_above).double()
    for sign in (-1.0, 1.0):
        model.first.weight.data.zero_()
        model.first.bias.data.fill_(sign)
        data = of(4, WIDTH)
        found = clipped_sum(model, lambda: model(data), 4, Flat(1.0), batch=data)  # noqa: B023
        wanted = one_by_one(model, lambda n: model(data[n : n + 1]), 4, Flat(1.0))  # noqa: B023
        same(found, wanted)


OFFSETS: dict[str, Callable[[Tensor], Tensor]] = {
    "by lengths": lambda lengths: lengths.cumsum(0) - lengths,
    "moved": lambda lengths: (lengths.cumsum(0) - lengths + (lengths.max() > 1)).clamp(max=2),
}


@pytest.mark.parametrize("moved", [-1, 0, 1])
def test_bags_by_constant_offsets_are_those_of_examples(moved: int) -> None:
    """Otherwise a bag has a row of another example."""

    def use(m: Layers, x: Tensor) -> Tensor:
        offsets = WIDTH * torch.arange(len(x)) + moved * (torch.arange(len(x)) > 0)
        table = m.experts[0].get_parameter("weight")
        return summed(m.layer(F.embedding_bag((x > 0).long().view(-1), table, offsets)))

    model, data = Layers(use).double(), of(6, WIDTH)
    if moved:
        with pytest.raises(Refused, match="bags whose examples are not known"):
            clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)
    else:
        agrees_with_a_loop(model, data)


@pytest.mark.parametrize("is_frozen", [True, False])
@pytest.mark.parametrize("name", OFFSETS)
def test_bags_hold_the_rows_of_their_own_example(name: str, is_frozen: bool) -> None:
    """Whatever offsets of data say: no value of one example moves another's rows."""

    def use(m: Layers, x: Tensor) -> Tensor:
        mask = x > 0
        offsets = OFFSETS[name](mask.sum(1)) * (torch.arange(len(x)) > 0)
        picked = torch.arange(WIDTH).expand_as(x)[mask]
        table = m.experts[0].get_parameter("weight")
        return summed(m.layer(F.embedding_bag(picked, table, offsets)))

    model, data = Layers(use).double(), of(6, WIDTH)
    model.experts[0].weight.requires_grad_(not is_frozen)
    wanted = one_by_one(model, lambda n: model(data[n : n + 1]), 6, Flat(1.0))
    found = clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)
    same(found, wanted)
