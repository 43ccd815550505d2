"""Whose rows are whose is known by structure: credited rightly, or refused before the charge.

Each use of data is wrapped in layers with weights. If the engine accepts it, its sum of clipped
gradients is that of a plain loop in which each loss is computed on its example alone; where this is
not so, `check` has refused it on made-up examples, of whatever number.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from discreet.errors import InvalidArgument, Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from tests.train.kit import same

WIDTH = 4
Use = Callable[["Layers", Tensor], Tensor]


class Layers(nn.Module):
    """Layers that uses of data take: one loss for each example at the end."""

    def __init__(self, use: Use) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.layer = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.scale = nn.LayerNorm(WIDTH), nn.Parameter(torch.randn(WIDTH))
        self.filter = nn.Conv1d(1, 2, 3, padding=1)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.table = nn.Parameter(torch.randn(3, WIDTH, WIDTH))
        self.unit = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.use = use

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.use(self, torch.tanh(self.first(data)))
        return found


def summed(rows: Tensor) -> Tensor:
    """One loss for each row."""
    return rows.square().flatten(1).sum(1)


def put_back(like: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    return torch.zeros_like(like).index_add(0, index, rows)


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


ALONE: list[Use] = [
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


def of(number: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(number, *shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("number", [1, 4, 5, 8])
@pytest.mark.parametrize("use", [*ALONE, *ALONE_IN_TIME], ids=lambda use: use.__name__)
def test_rows_are_credited_to_their_examples(use: Use, number: int) -> None:
    """With as many examples as features, and with other numbers."""
    data = of(number, *((4,) if use in ALONE_IN_TIME else ()), WIDTH)
    model = Layers(use).double()
    agrees_with_a_loop(model, data)


@pytest.mark.parametrize("number", [1, 4, 7])
def test_rows_in_groups_are_credited_to_their_examples(number: int) -> None:
    model, data = Layers(grouped), of(number, 5, WIDTH).float()
    agrees_with_a_loop(model, data, within=1e-4)


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


# Uses in which examples touch, or in which rows are put where others' are


def picked_and_taken_for_examples(m: Layers, x: Tensor) -> Tensor:
    """As many as there are examples, if one has two and one has none."""
    tall = torch.stack([x, x.flip(1)], 1).flatten(0, 1)
    return summed(m.layer(tall[tall[:, 0] > 0]))


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
    "scattered": lambda m, x: summed(m.layer(torch.zeros_like(x).scatter(0, x.argsort(0), x)) * x),
    "einsum over examples": lambda m, x: summed(m.layer(torch.einsum("ij,ik->jk", x, x))[: len(x)]),
}


@pytest.mark.parametrize("number", [WIDTH, 6])
@pytest.mark.parametrize("name", TOUCHING)
def test_what_touches_is_refused_before_it_is_paid(name: str, number: int) -> None:
    """Even where there are as many examples as features."""
    model = Layers(TOUCHING[name]).double()
    with pytest.raises((Refused, InvalidArgument, RuntimeError)):
        check(model, model, of(number, WIDTH))


def far(x: Tensor) -> Tensor:
    """Whether any example has a value that made-up ones never have."""
    return (x > 1e6).any()


RARE: dict[str, Use] = {  # other examples matter only if one of them has a rare value
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


@pytest.mark.parametrize("number", [WIDTH, 6])
@pytest.mark.parametrize("name", RARE)
def test_what_may_touch_is_refused_by_structure(name: str, number: int) -> None:
    """No value shows it: the refusal comes from what functions do, also in mid-run."""
    model, data = Layers(RARE[name]).double(), of(number, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), number, Flat(1.0), batch=data)


def by_index(make: Callable[[int], Tensor]) -> Use:
    """Rows picked by an index that follows from their number."""
    return lambda m, x: summed(m.layer(x[make(len(x))]))


INDICES: dict[str, Callable[[int], Tensor]] = {
    "zeros like a count": lambda n: torch.zeros_like(torch.arange(n)),
    "a count, zeroed": lambda n: torch.arange(n).zero_(),
    "ones like a count": lambda n: torch.ones_like(torch.arange(n)),
    "a count of one, repeated": lambda n: torch.arange(1).expand(n),
    "a count in few bits": lambda n: (torch.arange(n) * 43).to(torch.int8).long() % n,
    "draws like a count": lambda n: torch.randint_like(torch.arange(n), 1),
}
REORDERED: dict[str, Use] = {
    **{name: by_index(make) for name, make in INDICES.items()},
    "permuted": lambda m, x: summed(m.layer(x[x.norm(dim=1).argsort()])),
    "rolled": lambda m, x: summed(m.layer(x.roll(1, 0))),
    "listed backwards": lambda m, x: summed(m.layer(torch.stack([*reversed(x.unbind(0))]))),
    "cut and swapped": lambda m, x: summed(m.layer(torch.cat([x[1:], x[:1]]))),
    "picked twice": lambda m, x: summed(m.layer(x[torch.zeros(len(x), dtype=torch.long)])),
    "by a mask": picked_and_taken_for_examples,
}


@pytest.mark.parametrize("name", REORDERED)
def test_no_example_moves_the_sum_by_more_than_the_norm(name: str) -> None:
    """Rows that were picked or put in order, and whose losses are as many as examples."""
    model, data = Layers(REORDERED[name]).double(), of(6, WIDTH)
    try:
        found = clipped_sum(model, lambda: model(data), 6, Flat(1e-3), batch=data)
    except (Refused, InvalidArgument):
        return
    for place in range(3):
        other = data.clone()
        other[place] = -100 * other[place].flip(0)
        moved = clipped_sum(model, lambda: model(other), 6, Flat(1e-3), batch=other)  # noqa: B023
        pairs = zip(found.sums, moved.sums, strict=True)
        assert sum(float((a - b).norm()) ** 2 for a, b in pairs) ** 0.5 <= 2e-3


def test_what_lost_them_is_named() -> None:
    model = Layers(TOUCHING["sorted"])
    with pytest.raises(Refused, match="were made by sort over examples"):
        check(model, model, torch.zeros(5, WIDTH))
    model = Layers(through_lists).double()
    with pytest.raises(Refused, match=r"^layer\.weight gets data that .* no part of the batch"):
        check(model, model, of(5, WIDTH))
