"""Facts about constants hold: rows that count as equal, by how they were made, are equal.

Constants whose rows are equal may be combined with rows of examples. All chains of two functions
are made of constants of several forms, and each fact is compared with the values. So may blocks of
rows that repeat for each example, such as a table of positions for each head.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum, one_by_one
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._layouts import ExampleOrder, RowLayout
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, of, summed

N = 6
Make = Callable[[Tensor], Any]  # Any: one tensor or several
BASES: dict[str, Callable[[], Tensor]] = {
    "rows": lambda: torch.arange(4.0).expand(N, 4),
    "columns": lambda: torch.arange(N).float()[:, None].expand(N, 4),
    "blocks": lambda: torch.arange(8.0).view(2, 1, 4).expand(2, N, 4),
    "copies": lambda: torch.arange(4.0).repeat(N, 1),
    "alike": lambda: torch.zeros(N, 4),
    "masks": lambda: (torch.arange(4) % 2 > 0).expand(N, 4),
}
STEPS: dict[str, Make] = {
    "as it is": lambda c: c,
    "flatten": lambda c: c.flatten(),
    "flatten some": lambda c: c.flatten(-2),
    "ravel": torch.ravel,
    "reshape": lambda c: c.reshape(c.shape[-1], -1),
    "view back": lambda c: c.reshape(-1, 4),
    "halves": lambda c: c.reshape(2, -1),
    "unflatten": lambda c: c.unflatten(-1, (2, -1)),  # type: ignore[no-untyped-call]  # PyTorch has no type
    "transpose": lambda c: c.mT if c.dim() > 1 else c,
    "reversed": lambda c: c.permute(*reversed(range(c.dim()))),
    "cat": lambda c: torch.cat([c, c + 1]),
    "cat behind": lambda c: torch.cat([c, c + 1], -1),
    "cat of one row": lambda c: torch.cat([c, c[:1] * 2]),
    "vstack": lambda c: torch.vstack([c, c + 1]),
    "hstack": lambda c: torch.hstack([c, c + 1]),
    "stack": lambda c: torch.stack([c, c + 1]),
    "stack behind": lambda c: torch.stack([c, c + 1], -1),
    "where": lambda c: torch.where(c > 1),
    "nonzero": torch.nonzero,
    "choice": lambda c: torch.where(c > 1, c, c * 2),
    "chosen": lambda c: c[c > 1],
    "first": lambda c: c[0],
    "last": lambda c: c[..., -1],
    "some": lambda c: c[1:],
    "each second": lambda c: c[::2],
    "picked": lambda c: c[torch.tensor([1, 0])],
    "selected": lambda c: c.index_select(-1, torch.tensor([1, 0])),
    "cumsum": lambda c: c.cumsum(0),
    "cumsum behind": lambda c: c.cumsum(-1),
    "sum": lambda c: c.sum(0),
    "sum behind": lambda c: c.sum(-1),
    "sort": lambda c: c.sort(-1),
    "triangle": lambda c: c.tril() if c.dim() > 1 else c,
    "repeated": lambda c: c.repeat_interleave(2, 0),
    "tiled": lambda c: c.repeat(2, *[1] * (c.dim() - 1)),
    "parts": lambda c: c.chunk(2),
    "unbound": lambda c: c.unbind(-1),
    "roll": lambda c: c.roll(1, 0),
    "unfold": lambda c: c.unfold(0, 2, 1),
    "diagonal": lambda c: c.diagonal() if c.dim() > 1 else c,
    "product": lambda c: c.double() @ torch.arange(float(c.shape[-1])).double(),
    "grid": lambda c: torch.meshgrid(c.flatten(), torch.arange(3).to(c.dtype), indexing="ij"),
    "expanded": lambda c: c.expand(2, *c.shape),
    "padded": lambda c: torch.nn.functional.pad(c, (1, 0)),
}


def tensors(found: object) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    return [one for one in found if isinstance(one, Tensor)] if isinstance(found, tuple) else []


def made(step: Make, given: Tensor) -> list[Tensor]:
    try:
        return tensors(step(given))
    except (RuntimeError, IndexError, TypeError, ValueError):  # not for this shape or type
        return []


def layouts(length: int) -> Iterator[RowLayout]:
    """All layouts with this number of rows, of 2 examples or more."""
    for size in (n for n in range(2, length + 1) if length % n == 0):
        for inner in (n for n in range(1, length // size + 1) if length // size % n == 0):
            yield RowLayout(ExampleOrder(size), length // size // inner, inner)


def are_alike(values: Tensor, dim: int, layout: RowLayout) -> bool:
    """Whether each example has the same rows."""
    rows = values.movedim(dim, 0).reshape(layout.outer, layout.order.size, layout.inner, -1)
    return bool((rows == rows[:, :1]).all())


@pytest.mark.parametrize("name", BASES)
def test_rows_that_count_as_equal_are_equal(name: str) -> None:
    model, facts, blocks = torch.nn.Linear(1, 1), 0, 0
    for first in STEPS.values():
        capture = Capture(model, dict(model.named_parameters()), N, RULES, batch=torch.zeros(N, 1))
        with capture:
            middle = made(first, BASES[name]())
            found = [
                one for given in middle for step in STEPS.values() for one in made(step, given)
            ]
        for one in (*middle, *found):
            for dim in range(one.dim()):
                if one.shape[dim] > 1 and capture.tags.indices.has_alike_rows(one, dim):
                    facts += 1
                    assert bool((one == one.narrow(dim, 0, 1)).all()), (name, dim, one)
                known = capture.tags.indices.alike_blocks(one, dim)
                for layout in layouts(one.shape[dim]) if known else ():
                    if capture.tags.indices.has_alike_blocks(one, dim, layout):
                        blocks += layout.inner > 1
                        assert are_alike(one, dim, layout), (name, dim, layout, one)
    assert facts > 10 or name == "columns"
    assert blocks > 10


PLACES: dict[str, Callable[[int], Tensor]] = {  # whether an example's place is odd
    "flattened": lambda n: torch.arange(n).expand(2, n).flatten()[:n],
    "reshaped": lambda n: torch.arange(n).expand(2, n).t().reshape(-1)[:n],
    "joined": lambda n: torch.cat([torch.zeros(1, 1).expand(n, 1), torch.ones(1, 1).expand(n, 1)])[
        n // 2 : n // 2 + n, 0
    ],
    "where": lambda n: torch.where(torch.tensor([[True]]).expand(n, 1))[0],
    "a grid": lambda n: torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")[
        0
    ].flatten()[::n],
}


@pytest.mark.parametrize("name", PLACES)
def test_places_in_the_batch_are_refused(name: str) -> None:
    model = Layers(lambda m, x: summed(m.layer(x)) * (PLACES[name](len(x)) % 2)).double()
    data = of(N, WIDTH)
    with pytest.raises(Refused, match="differs by place"):
        clipped_sum(model, lambda: model(data), N, Flat(1.0), batch=data)


HEADS = 2
Table = Callable[[Layers, int], Tensor]  # for a number of examples: (example * head, WIDTH)
Within = Callable[[Layers, Tensor, Table], Tensor]


def over_heads(m: Layers, x: Tensor, table: Table) -> Tensor:
    """Rows of each example for several heads, times a table that the layers make."""
    heads = m.layer(x).view(-1, HEADS, WIDTH // HEADS).repeat(1, 1, HEADS).view(-1, WIDTH)
    return summed((heads * table(m, len(x))).view(len(x), HEADS * WIDTH))


def over_some(m: Layers, x: Tensor, table: Table) -> Tensor:
    """The same for rows that a mask picks."""
    found, some = x.sum(1), x[:, 0] > 0
    found[some] = over_heads(m, x[some], table)
    return found


def positions(m: Layers) -> Tensor:
    """One row of weights for each head."""
    return m.table[0, :HEADS]


def changed(table: Tensor, change: Callable[[Tensor], object]) -> Tensor:
    change(table)
    return table


FOR_HEADS: dict[str, Table] = {
    "repeated": lambda m, n: positions(m).repeat(n, 1),
    "tiled": lambda m, n: positions(m).tile((n, 1)),
    "repeated and merged": lambda m, n: positions(m)[None].repeat(n, 1, 1).view(-1, WIDTH),
    "expanded and merged": lambda m, n: positions(m).expand(n, -1, -1).reshape(-1, WIDTH),
    "turned": lambda m, n: positions(m).repeat(n, 1).T.contiguous().mT,
    "a sum": lambda m, n: positions(m).repeat(n, 1) + positions(m).sin().repeat(n, 1) + m.scale,
    "a constant": lambda m, n: torch.arange(HEADS * WIDTH).view(HEADS, -1).repeat(n, 1),
}
BY_PLACE: dict[str, Table] = {
    "each row repeated": lambda m, n: positions(m).repeat_interleave(n, 0),
    "another period": lambda m, n: m.table[0, :3].repeat(n, 1)[: n * HEADS],
    "two examples' rows": lambda m, n: m.table[0].repeat(n // 2 + 1, 1)[: n * HEADS],
    "heads first": lambda m, n: positions(m)[:, None].repeat(1, n, 1).view(-1, WIDTH),
    "mixed": lambda m, n: positions(m).repeat(n, 1).view(HEADS, n, -1).mT.reshape(-1, WIDTH),
    "turned and cut": lambda m, n: positions(m).repeat(n, 1).T.reshape(-1, WIDTH),
    "times places": lambda m, n: positions(m).repeat(n, 1) * torch.arange(n * HEADS)[:, None],
    "times places in place": lambda m, n: changed(
        positions(m).repeat(n, 1), lambda t: t.mul_(torch.arange(n * HEADS)[:, None])
    ),
    "a row written": lambda m, n: changed(
        positions(m).repeat(n, 1), lambda t: t.view(n, HEADS, -1)[0].mul_(3)
    ),
    "a row of its data written": lambda m, n: changed(
        positions(m).repeat(n, 1), lambda t: t.data[-1].mul_(3)
    ),
    "a constant written": lambda m, n: changed(
        torch.ones(HEADS, 1).repeat(n, 1), lambda t: t[-1].mul_(3)
    ),
    "joined": lambda m, n: torch.cat([positions(m), positions(m).repeat(n, 1) * 2])[: n * HEADS],
    "a running sum": lambda m, n: positions(m).repeat(n, 1).cumsum(0),
    "draws for two examples": lambda m, n: torch.rand(2 * HEADS, 1).repeat(n // 2 + 1, 1)[
        : n * HEADS
    ],
}


@pytest.mark.parametrize("within", [over_heads, over_some])
@pytest.mark.parametrize("name", FOR_HEADS)
def test_tables_for_each_head_train(name: str, within: Within) -> None:
    """As positions in DeBERTa and WavLM: the table of all heads is repeated for each example."""
    model, data = Layers(lambda m, x: within(m, x, FOR_HEADS[name])).double(), of(N, WIDTH)
    found = clipped_sum(model, lambda: model(data), N, Flat(1.0), batch=data)
    same(found, one_by_one(model, lambda k: model(data[k : k + 1]), N, Flat(1.0)))


@pytest.mark.parametrize("within", [over_heads, over_some])
@pytest.mark.parametrize("name", BY_PLACE)
def test_tables_that_differ_by_place_are_refused(name: str, within: Within) -> None:
    model, data = Layers(lambda m, x: within(m, x, BY_PLACE[name])).double(), of(N, WIDTH)
    with pytest.raises(Refused, match="differs by place"):
        clipped_sum(model, lambda: model(data), N, Flat(1.0), batch=data)


def test_draws_of_heads_are_not_those_of_examples_too() -> None:
    """If there are as many heads as examples, their draws may be of either, not of both."""

    def use(m: Layers, x: Tensor) -> Tensor:
        draws = torch.rand(HEADS, 1, dtype=torch.float64)
        return over_heads(m, x, lambda _, n: draws.repeat(n, 1)) + (draws * x).sum(1)

    model, data = Layers(use).double(), of(HEADS, WIDTH)
    with pytest.raises(Refused, match=r"differs by place|random numbers"):
        clipped_sum(model, lambda: model(data), HEADS, Flat(1.0), batch=data)
