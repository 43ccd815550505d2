"""Limits of how many examples an expert takes are refused, whatever the weights are."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import fit
from tests.mechanisms.kit import FakePayer
from tests.train.steps import sgd, short

BATCH, SEEDS = 100, range(6)


class Experts(nn.Module):
    """Two experts; each example goes to the one that it scores higher, if that has room."""

    def __init__(self, chosen: str, capacity: int) -> None:
        super().__init__()
        self.router = nn.Linear(4, 2)
        self.experts = nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
        self.chosen, self.capacity = chosen, capacity

    def forward(self, x: Tensor) -> Tensor:
        scores = self.router(x).softmax(-1)
        found, wanted = torch.zeros(len(x), 1), scores.argmax(1)
        for number, expert in enumerate(self.experts):
            places = (wanted == number).nonzero()[:, 0]
            own = scores[places, number]
            if self.chosen == "first":
                places = places[: self.capacity]
            elif self.chosen == "last":
                places = places[-self.capacity :]
            elif self.chosen in {"best", "worst"}:
                most = min(self.capacity, len(places))
                places = places[own.topk(most, largest=self.chosen == "best").indices]
            weight = scores[places, number : number + 1]
            found = found.index_add(0, places, weight * expert(x[places]))
        return found[:, 0]


def losses(model: nn.Module, part: Any) -> Tensor:
    squares: Tensor = (model(part.x) - part.y).square()
    return squares


def trained(seed: int, chosen: str, capacity: int, **more: Any) -> FakePayer:
    generator = torch.Generator().manual_seed(seed)
    given = {
        "x": torch.randn(400, 4, generator=generator),
        "y": torch.randn(400, generator=generator),
    }
    torch.manual_seed(seed)
    model, payer = Experts(chosen, capacity), FakePayer()
    plan = short(records=400, batch=BATCH, steps=1)
    fit(model, sgd(model, 0.01), given, plan, losses=losses, payer=payer, **more)
    return payer


@pytest.mark.parametrize("has_like", [False, True])
@pytest.mark.parametrize("capacity", [3, 64, 90])
@pytest.mark.parametrize("chosen", ["first", "last", "best", "worst"])
def test_capacities_are_refused_whatever_the_weights(
    chosen: str, capacity: int, has_like: bool
) -> None:
    """The compared examples may be the best, the worst or one of many that are equal."""
    for seed in SEEDS[:2] if has_like else SEEDS:
        generator = torch.Generator().manual_seed(seed + 100)
        rows = {
            "x": torch.randn(20, 4, generator=generator),
            "y": torch.randn(20, generator=generator),
        }
        more = {"like": rows} if has_like else {}
        with pytest.raises(Refused):
            trained(seed, chosen, capacity, **more)


def test_experts_without_a_limit_train() -> None:
    for seed in SEEDS[:3]:
        assert trained(seed, "all", 0).events == ["charge"]
