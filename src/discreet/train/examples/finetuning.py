"""Learn features from public data, and classes from private data.

Points of two dimensions belong to rings. The classes of the rings differ between public and private
data. A network that was trained on public data has features for rings already, and only its last
layer is trained privately: few weights, and so little noise.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet._budget import Limit
from discreet._exact import Number
from discreet._unit import Unit
from discreet.ledger import Ledger
from discreet.train._batches._collated import Microbatch
from discreet.train._fit import fit
from discreet.train._plans._plan import TrainingPlan, plan

WIDTH, RINGS = 64, 6
PRIVATE = (0, 1, 1, 0, 1, 0)  # the class of each ring, in the private data
STEPS, RATE, PUBLIC_STEPS = 80, 4.0, 400

LabelledPoints = dict[str, Tensor]


@dataclass(frozen=True, slots=True, repr=False)
class FineTuning:
    """Shares of right answers on fresh points, by how the model was trained."""

    fine_tuned: float
    from_nothing: float
    plan: TrainingPlan

    def __repr__(self) -> str:
        price = f"epsilon = {self.plan.epsilon:.3g}, delta = {float(self.plan.delta):g}"
        return (
            f"right answers at {price}\n"
            f"pre-trained in public, its last layer trained privately: {self.fine_tuned:.1%}\n"
            f"all layers trained privately, from nothing:              {self.from_nothing:.1%}"
        )


def main(*, epsilon: Number = 1, delta: Number = 1e-5, records: int = 1500) -> FineTuning:
    """Both models, of the same shape, by the same plan."""
    chance = torch.Generator().manual_seed(6)
    private, fresh = points(records, chance), points(2000, chance)
    made = plan(epsilon=epsilon, delta=delta, records=records, batch=records // 2, steps=STEPS)
    tuned = nn.Sequential(pre_trained(points(3000, chance)), nn.Linear(WIDTH, 2))
    tuned[0].requires_grad_(requires_grad=False)
    whole = nn.Sequential(features(), nn.Linear(WIDTH, 2))
    return FineTuning(
        right(trained(tuned, private, made), fresh),
        right(trained(whole, private, made), fresh),
        made,
    )


def points(count: int, chance: torch.Generator) -> LabelledPoints:
    """Points (point, 2) on rings around the middle, with the ring of each, and its class."""
    ring = torch.randint(RINGS, (count,), generator=chance)
    radius = (ring + 0.5 + 0.15 * torch.randn(count, generator=chance)) / RINGS
    angle = 2 * torch.pi * torch.rand(count, generator=chance)
    x = 2 * radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return {"x": x, "ring": ring, "y": torch.tensor(PRIVATE)[ring]}


def features() -> nn.Module:
    """Two layers, before their first step."""
    return nn.Sequential(nn.Linear(2, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())


def pre_trained(public: LabelledPoints) -> nn.Module:
    """Features that separate the rings of public data; trained without privacy."""
    found = features()
    model = nn.Sequential(found, nn.Linear(WIDTH, RINGS))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(PUBLIC_STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(public["x"]), public["ring"])
        torch.autograd.backward(loss)
        optimizer.step()
    return found


def trained(model: nn.Module, private: LabelledPoints, made: TrainingPlan) -> nn.Module:
    """Train by private steps; parameters that don't require gradients stay."""
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=RATE)
    payer = Ledger.in_memory(unit=Unit.ROW, limit=Limit(made.target or 1, made.delta))
    fit(model, optimizer, private, made, losses=losses, payer=payer)
    return model


def losses(model: nn.Module, part: Microbatch) -> Tensor:
    """One loss for each example of a part."""
    return nn.functional.cross_entropy(model(part.x), part.y, reduction="none")


def right(model: nn.Module, data: LabelledPoints) -> float:
    """The share of right answers."""
    with torch.no_grad():
        return float((model(data["x"]).argmax(1) == data["y"]).double().mean())
