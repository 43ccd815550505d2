"""Facts about constants hold: rows that count as equal, by how they were made, are equal.

Constants whose rows are equal may be combined with rows of examples. All chains of two functions
are made of constants of several forms, and each fact is compared with the values.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
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


@pytest.mark.parametrize("name", BASES)
def test_rows_that_count_as_equal_are_equal(name: str) -> None:
    model, facts = torch.nn.Linear(1, 1), 0
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
    assert facts > 10 or name == "columns"


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
