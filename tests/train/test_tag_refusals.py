"""Uses in which examples may touch are refused by structure, whatever the values.

Where the engine accepts a use all the same, no example moves the sum by more than the norm.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import InvalidArgument, Refused
from discreet.train import Flat, clipped_sum
from tests.train.layers import WIDTH, Layers, Use, of, summed
from tests.train.rare_uses import RARE, excess, picked_and_taken_for_examples


def test_lists_in_objects_of_a_batch_are_of_examples() -> None:
    model, data = Layers(lambda m, x: summed(m.layer(x))).double(), of(6, WIDTH)
    batch = SimpleNamespace(x=data, more=[data.clone()])
    with pytest.raises(Refused):
        clipped_sum(
            model,
            lambda: model(batch.x) * (1 + excess(batch.more[0]).sum()),
            6,
            Flat(1.0),
            batch=batch,
        )


def test_memory_of_data_that_were_freed_is_not_of_data() -> None:
    """PyTorch uses it again, also for constants from functions that nothing intercepts."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found = summed(m.layer(x))
        for _ in range(50):
            x.clone().data.mul(2)
            with torch._C.DisableTorchFunction():
                one = torch.ones_like(x)
            found = found * one.data.add(0)[:, 0]
        return found

    model, data = Layers(use).double(), of(6, WIDTH)
    clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


def test_tensors_from_before_are_the_same_for_all() -> None:
    before = torch.linspace(0.5, 1, 6, dtype=torch.float64)[:WIDTH]
    model, data = Layers(lambda m, x: summed(m.layer(x) * before)).double(), of(6, WIDTH)
    assert len(clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data).sums)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The reduce argument")
@pytest.mark.parametrize("number", [WIDTH, 6])
@pytest.mark.parametrize("name", RARE)
def test_models_that_may_mix_are_refused_by_structure(name: str, number: int) -> None:
    """No value shows it: the refusal comes from what functions do, also in mid-run."""
    model, data = Layers(RARE[name]).double(), of(number, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), number, Flat(1.0), batch=data)


ByANumber = Callable[[Layers, Tensor, Any], Tensor]  # Any: stubs know numbers of Python only


def square(m: Layers, x: Tensor) -> Tensor:
    """Rows (example, 2, 2) after a layer."""
    found: Tensor = m.layer(x).view(-1, 2, 2)
    return found


def _zeros(x: Tensor) -> Tensor:
    return torch.zeros(len(x), 2, 2, dtype=torch.long)


BY_A_NUMBER: dict[str, ByANumber] = {  # of a whole number n, 0 or 1
    "select": lambda m, x, n: m.layer(x).select(1, n),
    "narrow": lambda m, x, n: m.layer(x).narrow(1, n, 2).sum(1),
    "tensor_split": lambda m, x, n: m.layer(x).tensor_split((1 + n).view(1), 1)[0].sum(1),
    "split": lambda m, x, n: m.layer(x).split(1 + n, 1)[0].sum(1),
    "split by sizes": lambda m, x, n: m.layer(x).split([1 + n, 3 - n], 1)[0].sum(1),
    "chunk": lambda m, x, n: m.layer(x).chunk(1 + n, 1)[0].sum(1),
    "view": lambda m, x, n: m.layer(x).view(len(x), -1, 1 + n)[:, 0].sum(1),
    "reshape": lambda m, x, n: m.layer(x).reshape([len(x), 1 + n, -1])[:, 0].sum(1),
    "unflatten": lambda m, x, n: m.layer(x).unflatten(1, (1 + n, -1))[:, 0].sum(1),
    "expand": lambda m, x, n: m.layer(x)[:, None].expand(len(x), 1 + n, WIDTH).sum((1, 2)),
    "repeat": lambda m, x, n: m.layer(x).repeat(1, 1 + n).sum(1),
    "tile": lambda m, x, n: m.layer(x).tile((1, 1 + n)).sum(1),
    "pad": lambda m, x, n: F.pad(m.layer(x), (0, n), value=1.0).sum(1),
    "pad with it": lambda m, x, n: F.pad(m.layer(x), (0, 1), value=n).sum(1),
    "roll": lambda m, x, n: m.layer(x).roll(n, 1)[:, 0],
    "unfold": lambda m, x, n: m.layer(x).unfold(1, 1 + n, 1).sum((1, 2)),
    "permute": lambda m, x, n: square(m, x).permute(0, 1 + n, 2 - n)[:, 0, 1],
    "transpose": lambda m, x, n: square(m, x).transpose(1, 2 - n)[:, 0, 1],
    "movedim": lambda m, x, n: square(m, x).movedim(1, 2 - n)[:, 0, 1],
    "unbind": lambda m, x, n: square(m, x).unbind(1 + n)[0].sum(1),
    "flip": lambda m, x, n: square(m, x).flip(1 + n)[:, 0, 0],
    "cat": lambda m, x, n: torch.cat([square(m, x), x.view(-1, 2, 2)], 1 + n)[:, 1, 0],
    "stack": lambda m, x, n: torch.stack([m.layer(x), x], 1 + n)[:, 0, 0],
    "cumsum": lambda m, x, n: square(m, x).cumsum(1 + n)[:, 0].sum(1),
    "sum": lambda m, x, n: square(m, x).sum(1 + n)[:, 0],
    "gather": lambda m, x, n: square(m, x).gather(1 + n, _zeros(x))[:, 0, 0],
    "take_along_dim": lambda m, x, n: square(m, x).take_along_dim(_zeros(x), dim=1 + n)[:, 0, 0],
    "index_select": lambda m, x, n: square(m, x).index_select(1 + n, torch.tensor([0]))[:, 0, 0],
    "index_add": lambda m, x, n: square(m, x).index_add(
        1 + n, torch.tensor([0, 0]), x.view(-1, 2, 2)
    )[:, 0, 0],
    "scatter": lambda m, x, n: square(m, x).scatter(1 + n, _zeros(x), x.view(-1, 2, 2))[:, 0, 1],
    "repeat_interleave": lambda m, x, n: square(m, x).repeat_interleave(2, 1 + n)[:, 1, 0],
    "topk": lambda m, x, n: m.layer(x).topk(1 + n, 1).values.sum(1),
    "kthvalue": lambda m, x, n: m.layer(x).kthvalue(1 + n, 1).values,
    "triu": lambda m, x, n: square(m, x).triu(n).sum((1, 2)),
    "layer_norm": lambda m, x, n: summed(F.layer_norm(m.layer(x), (WIDTH,), eps=1e-5 + n.double())),
    "bernoulli": lambda m, x, n: summed(m.layer(x) * torch.bernoulli(x.sigmoid(), n.double())),
    "bernoulli_": lambda m, x, n: summed(m.layer(x) * torch.ones_like(x).bernoulli_(n.double())),
    "uniform_": lambda m, x, n: summed(m.layer(x) * torch.ones_like(x).uniform_(0, 1 + n)),
    "random_": lambda m, x, n: summed(m.layer(x) * torch.ones_like(x).random_(0, 1 + n)),
    "clamp": lambda m, x, n: summed(m.layer(x).clamp(max=n.double())),
    "a new tensor": lambda m, x, n: summed(m.layer(x)) + torch.stack([n, n]).sum(),
    "a tensor of a list": lambda m, x, n: summed(m.layer(x)) * torch.as_tensor([n, n]).sum(),
}
NUMBERS: dict[str, Callable[[Tensor], Tensor]] = {
    "of one example": lambda x: (x[0, 0] > 0).long(),
    "of all examples": lambda x: (x.sum() > 0).long(),
    "of one that was picked": lambda x: (x[x[:, 0] >= x[:, 0].max()][:, 0] > 9).long(),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", BY_A_NUMBER)
def test_no_argument_is_a_number_of_other_examples(name: str, number: str) -> None:
    """Sizes, places and dimensions too: a loss depends on its own example only."""
    use, of_data = BY_A_NUMBER[name], NUMBERS[number]
    model, data = Layers(lambda m, x: use(m, x, of_data(x))).double(), of(6, WIDTH)
    try:
        model(data)
    except (TypeError, RuntimeError):  # PyTorch takes no tensor of one entry in some places
        return
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


def from_outside(_: Layers, x: Tensor) -> Tensor:
    return torch.from_numpy(np.ones((len(x), WIDTH)))


INDEXED: dict[str, Callable[[Layers, Tensor], Tensor]] = {
    "rows of examples": lambda m, x: m.layer(x) * 1,
    "one example": lambda m, x: m.layer(x)[2].expand(len(x), WIDTH).clone(),
    "a constant": lambda _, x: torch.ones(len(x), WIDTH, dtype=x.dtype),
    "a tensor from outside": from_outside,
}
INDICES_BY_A_NUMBER: dict[str, Callable[[Tensor], Any]] = {  # Any: an index as Python has it
    "a flag": lambda n: n > 0,
    "a flag for columns": lambda n: (slice(None), n > 0),
    "a place": lambda n: (slice(None), n),
    "places": lambda n: (slice(None), n.view(1)),
    "places in a list": lambda n: (slice(None), [0, n]),
    "a slice": lambda n: (slice(None), slice(n, None)),
    "steps": lambda n: (slice(None), slice(None, None, 1 + n)),
    "a mask": lambda n: (slice(None), (n > 0).expand(WIDTH)),
}


@pytest.mark.parametrize("writes", [False, True], ids=["read", "written"])
@pytest.mark.parametrize("number", ["of one example", "of all examples"])
@pytest.mark.parametrize("index", INDICES_BY_A_NUMBER)
@pytest.mark.parametrize("data", INDEXED)
def test_no_index_is_of_other_examples(data: str, index: str, number: str, writes: bool) -> None:
    """A loss depends on its own example only, for each kind of indexed data."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found, where = INDEXED[data](m, x), INDICES_BY_A_NUMBER[index](NUMBERS[number](x))
        if not writes:
            return summed(m.layer(x)) * found[where].sum() * 2
        found[where] = 2
        return summed(m.layer(x) * found)

    model, rows = Layers(use).double(), of(6, WIDTH)
    model(rows)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(rows), 6, Flat(1.0), batch=rows)


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


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {  # rows (example, WIDTH), of which rows are unknown
    "diagonal": lambda q: q.diagonal(),
    "strides": lambda q: q.as_strided((len(q),), (1,)),
    "another shape": lambda q: q.view(WIDTH, -1),
    "windows": lambda q: q[:, 0].unfold(0, 2, 2),
    "half of a diagonal": lambda q: q.diagonal()[::2],
    "of a detached one": lambda q: q.detach().diagonal(),
}
INTO: dict[str, Callable[[Tensor, Tensor], object]] = {
    "copied": lambda view, factor: view.copy_(factor),
    "filled": lambda view, factor: view.fill_(factor),
    "added": lambda view, factor: view.add_(factor),
    "an item": lambda view, factor: view.__setitem__(..., factor),
    "twice": lambda view, factor: view.zero_().copy_(factor),
    "a constant by place": lambda view, _: view.copy_(
        torch.arange(view.numel()).to(view.dtype).view(view.shape)
    ),
    "its own sums": lambda view, factor: view.add_(1).cumsum_(0),
}


@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("name", VIEWS)
def test_changes_of_a_view_of_unknown_rows_are_seen_in_its_base(name: str, into: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        rows = excess(x).detach().clone()
        INTO[into](VIEWS[name](rows), excess(x).detach().sum())
        return summed(m.layer(x)) * (1 - 2 * rows.sum(1))

    model, data = Layers(use).double(), of(6, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


def test_views_within_examples_may_be_written() -> None:
    """As diagonals of each example's graph."""

    def use(m: Layers, x: Tensor) -> Tensor:
        graphs = (x[:, None] * x[:, :, None]).detach()
        graphs.diagonal(dim1=1, dim2=2).fill_(1)
        graphs.diagonal(dim1=1, dim2=2).add_(x)
        return summed(m.layer(graphs))

    model, data = Layers(use).double(), of(6, WIDTH)
    clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


NONZERO: dict[str, Callable[[Tensor], Tensor]] = {
    "a table": lambda i: i.nonzero()[:, 0],
    "a tuple": lambda i: i.nonzero(as_tuple=True)[0],
    "where": lambda i: torch.where(i)[0],
}
BY_NUMBERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of rows (example,), and numbers
    "index": lambda rows, i: rows[i],
    "selected": lambda rows, i: rows.index_select(0, i % len(rows)),
    "taken": lambda rows, i: rows.take(i % len(rows)),
    "written": lambda rows, i: torch.zeros_like(rows).index_add(0, i % len(rows), rows),
    "put": lambda rows, i: torch.zeros_like(rows).index_put_((i,), rows),
}


@pytest.mark.parametrize("nonzero", NONZERO)
@pytest.mark.parametrize("name", BY_NUMBERS)
def test_numbers_that_nonzero_looked_at_are_still_no_index(name: str, nonzero: str) -> None:
    """Each index picks the row of the last example."""

    def use(m: Layers, x: Tensor) -> Tensor:
        numbers = (x[:, 0] * 0).long() - 1
        rows = NONZERO[nonzero](numbers)
        factor = BY_NUMBERS[name](excess(x).detach().sum(1), numbers)
        found = summed(m.layer(x))[rows] * (1 - 2 * factor)
        return torch.zeros(len(x), dtype=x.dtype).index_add(0, rows, found)

    model, data = Layers(use).double(), of(6, WIDTH)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)


def test_rows_of_nonzero_numbers_are_picked_and_put_back() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        (rows,) = (x[:, 0] * 9).long().nonzero(as_tuple=True)
        return summed(torch.zeros_like(x).index_add(0, rows, m.layer(x[rows])))

    model, data = Layers(use).double(), of(6, WIDTH)
    clipped_sum(model, lambda: model(data), 6, Flat(1.0), batch=data)
