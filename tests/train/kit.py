"""Models of all kinds, with data of theirs, and the comparison with a plain loop."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet.train import Clipping, Contribution, Flat, clipped_sum, one_by_one

EXACT, SINGLE = 1e-10, 1e-5  # relative: in float64 and in float32


@dataclass(frozen=True)
class Case:
    """A model and a batch for it; losses are squared distances from made-up targets."""

    model: nn.Module
    data: Tensor

    def losses(self, data: Tensor) -> Tensor:
        outcome = self.model(data)
        like = {"dtype": outcome.dtype, "device": outcome.device}
        target = torch.linspace(-1, 1, outcome[0].numel(), **like)
        losses: Tensor = (outcome.flatten(1) - target).square().mean(1)
        return losses

    def of(self, number: int) -> Tensor:
        return self.losses(self.data[number : number + 1])

    def clipped(self, clipping: Clipping) -> Contribution:
        return clipped_sum(self.model, lambda: self.losses(self.data), len(self.data), clipping)

    def looped(self, clipping: Clipping) -> Contribution:
        return one_by_one(self.model, self.of, len(self.data), clipping)


Make = Callable[[], Case]


def agrees(case: Case, clipping: Clipping | None = None, within: float = EXACT) -> None:
    """Engine and loop give the same, and some but not all examples are clipped."""
    clipping = clipping or Flat(median_norm(case))
    same(case.clipped(clipping), case.looped(clipping), within)


def agrees_in_batch(model: nn.Module, data: Tensor) -> None:
    """The engine, given the batch, and a loop over its examples give the same."""

    def alone(place: int) -> Tensor:
        found: Tensor = model(data[place : place + 1])
        return found

    clipping = Flat(0.3)
    found = clipped_sum(model, lambda: model(data), len(data), clipping, batch=data)
    same(found, one_by_one(model, alone, len(data), clipping))


def same(found: Contribution, wanted: Contribution, within: float = EXACT) -> None:
    size = torch.stack([each.double().norm() for each in wanted.sums]).norm()
    for one, other in zip(found.sums, wanted.sums, strict=True):
        assert one.shape == other.shape
        assert float((one.double() - other.double()).norm()) <= within * float(size)
    assert found.squared_norms.shape == wanted.squared_norms.shape
    torch.testing.assert_close(
        found.squared_norms, wanted.squared_norms, rtol=2 * within, atol=within * float(size) ** 2
    )


def median_norm(case: Case) -> float:
    """A norm that clips about half of the examples."""
    return float(case.looped(Flat(1.0)).squared_norms.sqrt().median()) or 1.0


def double(model: nn.Module, *shape: int, seed: int = 0) -> Case:
    """The model in float64, with normal data."""
    data = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Case(model.double(), data)


def places(model: nn.Module, size: int, *shape: int) -> Case:
    """The model in float64, with places in a table."""
    return Case(
        model.double(), torch.randint(size, shape, generator=torch.Generator().manual_seed(0))
    )
