"""Two Gaussian clusters, separated by logistic regression: private beside plain."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet._budget import Limit
from discreet._exact import Number
from discreet._unit import Unit
from discreet.ledger import Ledger
from discreet.train._batches._collated import Microbatch
from discreet.train._fit import fit
from discreet.train._plans._plan import TrainingPlan, plan
from discreet.train._plans._report import Report

PointArray = npt.NDArray[np.float64]

STEPS, RATE = 60, 2.0
APART = 1.5  # from the middle to each cluster's centre, of a standard deviation of 1


@dataclass(frozen=True, slots=True)
class Boundary:
    """The line on which both clusters are equally likely: normal . point + offset = 0."""

    normal: tuple[float, float]
    offset: float

    def sides(self, points: PointArray) -> npt.NDArray[np.bool_]:
        """The sides of points, shape (point, 2)."""
        found: npt.NDArray[np.bool_] = points @ np.array(self.normal) + self.offset > 0
        return found


@dataclass(frozen=True, slots=True, repr=False)
class Clusters:
    """The points, the cluster of each, and the boundaries that were found.

    The points are made up; real ones would be private, and so would the plain boundary.
    """

    points: PointArray
    labels: npt.NDArray[np.bool_]
    private: Boundary
    plain: Boundary
    report: Report

    def right(self, boundary: Boundary) -> float:
        """The share of points that are on the right side of a boundary."""
        return float((boundary.sides(self.points) == self.labels).mean())

    def __repr__(self) -> str:
        return (
            f"{len(self.points)} points in two clusters, {self.report.plan.steps} steps\n"
            f"private: {self.right(self.private):.1%} right, at "
            f"epsilon = {self.report.epsilon:.3g}, delta = {float(self.report.plan.delta):g}\n"
            f"plain:   {self.right(self.plain):.1%} right"
        )


def main(*, epsilon: Number = 1, delta: Number = 1e-5, records: int = 500) -> Clusters:
    """Both boundaries, by the same number of steps; `discreet.plots.boundaries` draws them."""
    points, labels = made_up(records)
    made = plan(epsilon=epsilon, delta=delta, records=records, batch=records, steps=STEPS)
    x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)
    private, report = trained(x, y, made)
    return Clusters(points, labels, private, trained_plainly(x, y), report)


def made_up(records: int) -> tuple[PointArray, npt.NDArray[np.bool_]]:
    """Points of two normal clusters, and the cluster of each."""
    chance = np.random.default_rng(6)
    labels = np.arange(records) % 2 == 1
    centres = APART * np.where(labels, 1, -1)[:, None] * np.array([0.8, 0.6])
    return centres + chance.normal(size=(records, 2)), labels


def trained(x: Tensor, y: Tensor, made: TrainingPlan) -> tuple[Boundary, Report]:
    """Train by the plan's private steps."""
    model, optimizer = start()
    payer = Ledger.in_memory(unit=Unit.ROW, limit=Limit(made.target or 1, made.delta))
    report = fit(model, optimizer, {"x": x, "y": y}, made, losses=losses, payer=payer)
    return boundary(model), report


def trained_plainly(x: Tensor, y: Tensor) -> Boundary:
    """Train by the same steps without clipping and noise."""
    model, optimizer = start()
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(score(model, x, y).mean())
        optimizer.step()
    return boundary(model)


def start() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Logistic regression before its first step."""
    model = nn.Linear(2, 1)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model, torch.optim.SGD(model.parameters(), lr=RATE)


def losses(model: nn.Module, part: Microbatch) -> Tensor:
    """One loss for each example of a part."""
    return score(model, part.x, part.y)


def score(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The logistic losses."""
    return nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y, reduction="none")


def boundary(model: nn.Module) -> Boundary:
    """The boundary that a model has learned."""
    across, up, offset = (
        float(each) for p in model.parameters() for each in p.detach().reshape(-1)
    )
    return Boundary((across, up), offset)
