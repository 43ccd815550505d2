"""One step of Opacus on a batch, and on the batch with one more example."""

import warnings
from typing import Any, Literal

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.draws import Mechanism, serve_draws

warnings.simplefilter("ignore")
torch.set_num_threads(1)

DELTA, NOISE, CLIP, WIDTH = 1e-5, 4.0, 1.0, 8
GRID = 2**-10


class First(nn.Module):
    """The first number of each row."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """One number for each row."""
        return rows[:, 0, 0]


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """A batch of one example that is zero, and the same with one more. Its last number is next to
    the first one if padding is circular."""
    examples, targets = torch.zeros(2, 1, WIDTH), torch.zeros(2)
    examples[1, 0, :2], examples[1, 0, -1], targets[1] = 1e-3, 1.0, 1e3
    return [(examples[:count], targets[:count]) for count in (1, 2)]


def step(mode: str, padding: Literal["zeros", "circular"], *, is_seeded: bool = False) -> Mechanism:
    """The weights after one step from zero, on a grid."""
    layer = nn.Conv1d(1, 1, 3, padding=1, padding_mode=padding, bias=False)
    plain, data = nn.Sequential(layer, First()), batches()
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, *others = engine.make_private(  # the criterion comes second with "ghost"
        module=plain,
        optimizer=torch.optim.SGD(plain.parameters(), lr=1.0),
        criterion=nn.MSELoss(reduction="sum"),
        data_loader=DataLoader(TensorDataset(*data[0]), batch_size=1),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=False,
        loss_reduction="sum",
        grad_sample_mode=mode,
    )
    loss_of: Any = others[0] if mode == "ghost" else nn.MSELoss(reduction="sum")

    def draw(place: int) -> list[float]:
        examples, targets = data[place]
        if is_seeded:
            torch.manual_seed(1)
        with torch.no_grad():
            layer.weight.zero_()
        optimizer.zero_grad()
        loss_of(model(examples), targets).backward()
        optimizer.step()
        weights = (
            layer.weight.detach().flatten() / GRID
        ).round() * GRID  # the low bits of floats are another fault
        return [float(weight) for weight in weights]

    draw(0)
    return Mechanism(draw, float(engine.get_epsilon(DELTA)), DELTA)


serve_draws(
    {
        "circular-padding": step("ghost", "circular"),
        "seed-set": step("hooks", "zeros", is_seeded=True),
        "zero-padding": step("ghost", "zeros"),
    }
)
