"""Small data and models, plans, and doors with known bits, for the tests of runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.ledger import Ledger
from discreet.mechanisms import Door
from discreet.train._batches._units import Units
from discreet.train._plans._plan import TrainingPlan, plan
from discreet.train._run import run_through
from discreet.train._training_run import TrainingRun
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.noise.fit import QuickBits

Losses = Callable[[Any], Tensor]


def data(rows: int = 60, seed: int = 0) -> dict[str, Tensor]:
    """Points and whether they lie on one side."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 3, generator=generator)
    return {"x": x, "y": (x.sum(1) > 0).float()}


def of_persons(rows: int = 60, persons: int = 12, **more: BadValue) -> Units:
    """The same, each row of one of some people."""
    ids = [f"p{row * 7 % persons}" for row in range(rows)]
    return Units(data(rows), ids, **{"column": "person", "most": 3, **more})


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


def short(**changes: BadValue) -> TrainingPlan:
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


class Guarded:
    """Data that may not be looked at before they are paid."""

    def __init__(self, payer: FakePayer | None) -> None:
        self.payer = payer
        self.inner = data()

    def __len__(self) -> int:
        assert self.payer is not None
        assert self.payer.charges, "looked at before it was paid"
        return len(self.inner["x"])

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        assert len(self)
        return self.inner["x"][place], self.inner["y"][place]


def pair_losses(model: nn.Module) -> Callable[[Any], Tensor]:
    """For parts that are lists of x and y."""
    return lambda part: nn.functional.binary_cross_entropy_with_logits(
        model(part[0])[:, 0], part[1], reduction="none"
    )


class Replaceable:
    """Losses that a test replaces in the middle of a run."""

    def __init__(self, now: Losses) -> None:
        self.now = now

    def __call__(self, part: Any) -> Tensor:
        return self.now(part)

    def step(self, training: TrainingRun, now: Losses) -> None:
        """Make the next step with other losses."""
        self.now = now
        training.step(next(training.batches()))


def pairs(rows: int = 5) -> list[tuple[Tensor, Tensor]]:
    """Public examples for them."""
    return [*zip(*data(rows, seed=1).values(), strict=True)]


def by_hand(model: nn.Module, given: dict[str, Tensor], places: list[int], norm: float) -> Tensor:
    """One after the other, clipped and summed."""
    total = torch.zeros(4)
    for place in places:
        x, y = given["x"][place], given["y"][place]
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[0], y)
        found = torch.autograd.grad(loss, list(model.parameters()))
        gradient = torch.cat([part.reshape(-1) for part in found])
        total += gradient * min(1.0, norm / float(gradient.norm()))
    return total


@contextmanager
def known(
    model: nn.Module,
    given: BadValue,
    made: TrainingPlan,
    seed: int = 1,
    losses: Losses | None = None,
    **more: BadValue,
) -> Iterator[TrainingRun]:
    """A run whose bits are known, by default of logistic losses."""
    door, of = Door(FakePayer(), QuickBits(seed), None), losses or losses_of(model)
    with run_through(door, model, sgd(model), given, made, losses=of, **more) as training:
        yield training


def trained(made: TrainingPlan, given: BadValue, seed: int = 1, physical: int = 1024) -> Tensor:
    """The weights after a whole run with known bits."""
    model = linear()
    with known(model, given, made, seed) as training:
        training._size.rows = physical
        for ticket in training.batches():
            training.step(ticket)
    return weights(model)
