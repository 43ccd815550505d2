"""What the tests of runs share: small data and models, plans, and doors of known bits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from discreet.ledger import Ledger
from discreet.mechanisms import Door
from discreet.payment import Limit
from discreet.train.plan import TrainingPlan, plan
from discreet.train.run import TrainingRun, run_through
from discreet.unit import Unit
from tests.mechanisms.kit import FakePayer
from tests.noise.test_fit import QuickBits

Wrong = Any  # of a type that nobody may give there, on purpose
Losses = Callable[[Any], Tensor]


def data(rows: int = 60, seed: int = 0) -> dict[str, Tensor]:
    """Points and whether they lie on one side."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 3, generator=generator)
    return {"x": x, "y": (x.sum(1) > 0).float()}


def linear() -> nn.Module:
    """A model of four weights, all 0."""
    model = nn.Linear(3, 1)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def losses_of(model: nn.Module) -> Losses:
    """The logistic loss of each example."""
    return lambda part: nn.functional.binary_cross_entropy_with_logits(
        model(part.x)[:, 0], part.y, reduction="none"
    )


def short(**changes: Wrong) -> TrainingPlan:
    """A plan of a few steps with hardly any noise, so that sums can be compared."""
    facts = {"multiplier": 1e-7, "delta": 1e-5, "records": 60, "batch": 20, "steps": 6}
    return plan(**{**facts, **changes})


def book(unit: Unit = Unit.ROW) -> Ledger:
    """A ledger that admits whatever these tests charge."""
    return Ledger.in_memory(unit=unit, limit=Limit(epsilon=10**20, delta=0.5))


def sgd(model: nn.Module, rate: float = 1.0) -> torch.optim.Optimizer:
    """Plain steps."""
    return torch.optim.SGD(model.parameters(), lr=rate)


def weights(model: nn.Module) -> Tensor:
    """All of them."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


@contextmanager
def known(
    model: nn.Module, given: Wrong, made: TrainingPlan, seed: int = 1, **more: Wrong
) -> Iterator[TrainingRun]:
    """A run whose bits are known."""
    door = Door(FakePayer(), QuickBits(seed), None)
    with run_through(door, model, sgd(model), given, made, **more) as training:
        yield training


def trained(made: TrainingPlan, given: Wrong, seed: int = 1, physical: int = 1024) -> Tensor:
    """The weights after a whole run with known bits."""
    model = linear()
    with known(model, given, made, seed) as training:
        training._physical.size = physical
        for batch in training.batches():
            training.step(batch, losses_of(model))
    return weights(model)
