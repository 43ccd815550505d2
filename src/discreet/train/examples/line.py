"""One weight, learned by private steps that are shown one by one: y = weight x.

Each step takes every example's gradient, clips it, adds all up, adds noise, and moves the weight.
Gradients, their sum and the noise would be private: they are shown since the data are made up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet._budget import Limit
from discreet._exact import Number
from discreet._unit import Unit
from discreet.ledger import Ledger
from discreet.train._batches._collated import Microbatch
from discreet.train._plans._plan import TrainingPlan, plan
from discreet.train._run import run

X = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0)
Y = (-3.8, -3.2, -2.2, -0.6, 0.9, 1.7, 3.3, 12.0)  # about 2 x, except the last
CLIP, RATE, STEPS = 2.0, 0.5, 8


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """The figures of one step. ``noise`` is the noisy sum minus the sum of clipped gradients."""

    weight: float
    gradients: tuple[float, ...]
    clipped: tuple[float, ...]
    noise: float
    after: float

    @property
    def total(self) -> float:
        """The sum of clipped gradients."""
        return sum(self.clipped)

    def __repr__(self) -> str:
        return (
            f"weight    {self.weight:+.3f}\n"
            f"gradients {_shown(self.gradients)}\n"
            f"clipped   {_shown(self.clipped)}\n"
            f"sum       {self.total:+.3f}\n"
            f"noise     {self.noise:+.3f}\n"
            f"moved by  -{RATE:g} x ({self.total:+.3f} {self.noise:+.3f}) / {len(X)}\n"
            f"weight    {self.after:+.3f}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Line:
    """All steps, and the plan that prices them."""

    plan: TrainingPlan
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        steps = (f"step {number}\n{step!r}\n" for number, step in enumerate(self.steps, 1))
        scale = float(self.plan.scale(self.plan.phases[0]))
        return "\n".join(
            [
                f"y = weight x, of {len(X)} examples:",
                f"x         {_shown(X)}",
                f"y         {_shown(Y)}",
                f"gradients are clipped to {CLIP:g}; noise has standard deviation {scale:.3g}\n",
                *steps,
                f"epsilon = {self.plan.epsilon:.3g} at delta = {float(self.plan.delta):g}",
                f"without clipping and noise, the weight would go to {least_squares():+.3f}",
            ]
        )


def main(*, epsilon: Number = 5, delta: Number = 1e-5) -> Line:
    """A whole run; every example is in every batch."""
    made = plan(epsilon=epsilon, delta=delta, records=len(X), batch=len(X), steps=STEPS, clip=CLIP)
    return Line(made, tuple(steps_of(made)))


def steps_of(made: TrainingPlan) -> Iterator[Step]:
    """The steps, as they are made."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    data = {"x": torch.tensor(X)[:, None], "y": torch.tensor(Y)}
    payer = Ledger.in_memory(unit=Unit.ROW, limit=Limit(made.target or 1, made.delta))

    def losses(part: Microbatch) -> Tensor:
        """Half the squared distances."""
        found: Tensor = 0.5 * (model(part.x)[:, 0] - part.y).square()
        return found

    with run(model, optimizer, data, made, losses=losses, payer=payer) as training:
        for ticket in training.batches():
            before = float(model.weight.detach())
            training.step(ticket)
            assert model.weight.grad is not None
            noisy = float(model.weight.grad) * len(X)  # a step divides by the batch's size
            yield shown_step(before, noisy, float(model.weight.detach()))


def least_squares() -> float:
    """The weight that plain steps converge to."""
    return sum(x * y for x, y in zip(X, Y, strict=True)) / sum(x * x for x in X)


def shown_step(weight: float, noisy: float, after: float) -> Step:
    """A step from its weights and its noisy sum; the gradients are computed by hand."""
    gradients = tuple((weight * x - y) * x for x, y in zip(X, Y, strict=True))
    clipped = tuple(max(-CLIP, min(CLIP, gradient)) for gradient in gradients)
    return Step(weight, gradients, clipped, noisy - sum(clipped), after)


def _shown(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:+.2f}" for number in numbers)
