"""Layers that tests wrap around a use of data."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from discreet.train import Flat, clipped_sum

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


def of(number: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(number, *shape, generator=generator, dtype=torch.float64)


class Direct(Layers):
    """Layers that get the data as they are."""

    def forward(self, data: Tensor) -> Tensor:
        found: Tensor = self.use(self, data)
        return found


def total(use: Use, data: Tensor) -> None:
    """Sum clipped gradients of losses that use the layers in this way."""
    model = Direct(use).double()
    clipped_sum(model, lambda: model(data), len(data), Flat(1.0), batch=data)


def victim(rows: int = 5) -> Tensor:
    """Ordinary examples, and a last one far from them."""
    data = of(rows, WIDTH)
    data[-1] = 100.0
    return data
