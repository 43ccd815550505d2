"""Logistic regression by private steps, with the boundary after each step.

Each boundary is the result of private steps, so it may be shown at the price of the whole run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from discreet._budget import Limit, Receipt
from discreet._exact import Number
from discreet._unit import Unit
from discreet.ledger import Ledger
from discreet.train._batches._collated import Microbatch
from discreet.train._plans._plan import TrainingPlan, plan
from discreet.train._run import run
from discreet.train._step_ticket import StepTicket
from discreet.train.examples.clusters import (
    Boundary,
    PointArray,
    boundary,
    losses,
    made_up,
    start,
)

RECORDS, STEPS, DELTA = 200, 30, 1e-5


@dataclass(frozen=True, slots=True, repr=False)
class Boundaries:
    """The boundary after each step, and the plan that prices the steps."""

    plan: TrainingPlan
    boundaries: tuple[Boundary, ...]
    points: PointArray
    labels: npt.NDArray[np.bool_]

    def right(self, step: int) -> float:
        """The share of points on the right side of the boundary after this step; the first is 1."""
        return float((self.boundaries[step - 1].sides(self.points) == self.labels).mean())

    def __repr__(self) -> str:
        """One line for every fifth step."""
        lines = [
            f"{step:4} {self.plan.epsilon_after(step):10.3f} {self.right(step):8.1%}"
            for step in range(5, len(self.boundaries) + 1, 5)
        ]
        return "\n".join(["step    epsilon    right", *lines])


@dataclass(frozen=True, slots=True)
class ChargesOnly:
    """A payer that charges, and leaves the count of steps to the run.

    The ledger and the run end with the process, so counting steps in it would protect nothing more.
    """

    charge: Callable[..., Receipt]
    keep: Callable[..., None]
    lock: Callable[..., None]


def main(
    *, multiplier: Number = 2, clip: Number = 1, batch: int = 50, rate: float = 2
) -> Boundaries:
    """One run on made-up points."""
    points, labels = made_up(RECORDS)
    made = plan(
        multiplier=multiplier, delta=DELTA, records=RECORDS, batch=batch, steps=STEPS, clip=clip
    )
    return Boundaries(made, private_steps(points, labels, made, rate), points, labels)


def private_steps(
    points: PointArray, labels: npt.NDArray[np.bool_], made: TrainingPlan, rate: float
) -> tuple[Boundary, ...]:
    """The boundary after each private step, for a plan with a single phase."""
    [found] = private_runs(points, labels, made, [rate])
    return found


def private_runs(
    points: PointArray,
    labels: npt.NDArray[np.bool_],
    made: TrainingPlan,
    rates: Sequence[float],
) -> Iterator[tuple[Boundary, ...]]:
    """The boundary after each private step, for each phase of the plan.

    Each phase begins with the untrained model, at a learning rate of its own, as a run by itself
    would. The whole plan is charged to a ledger of its own, and the model is checked once.
    """
    model, optimizer = start()
    untrained = {name: value.clone() for name, value in model.state_dict().items()}
    limit = Limit(epsilon=max(1.0, 2 * made.epsilon), delta=2 * made.delta)
    data = {
        "x": torch.tensor(points, dtype=torch.float32),
        "y": torch.tensor(labels, dtype=torch.float32),
    }

    def of_part(part: Microbatch) -> Tensor:
        """The losses of the model in training."""
        return losses(model, part)

    def boundary_after(ticket: StepTicket) -> Boundary:
        training.step(ticket)
        return boundary(model)

    ledger = Ledger.in_memory(unit=Unit.ROW, limit=limit)
    payer = ChargesOnly(ledger.charge, ledger.keep, ledger.lock)
    watched = run(model, optimizer, data, made, losses=of_part, payer=payer)
    with _one_thread(), watched as training:
        tickets = training.batches()
        for phase, rate in zip(made.phases, rates, strict=True):
            model.load_state_dict(untrained)
            for group in optimizer.param_groups:
                group["lr"] = rate
            yield tuple(map(boundary_after, islice(tickets, phase.steps)))


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch with one thread: for so few points, several take three times the processor's time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
