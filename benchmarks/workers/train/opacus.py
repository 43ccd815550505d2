"""Training steps by Opacus, in each of its modes that takes the model."""

import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.train_models import MODELS, Gpt, Task
from benchmarks.train_steps import CLIP, MULTIPLIER, Step, peak_bytes, sgd, timed
from benchmarks.worker import serve

MODES = "hooks", "functorch", "ew", "ghost"

warnings.simplefilter("ignore")
torch.set_num_threads(1)


class ByExample(Gpt):
    """Places once for each example: Opacus takes no data without the dimension of examples."""

    def placed(self, words: Tensor) -> Tensor:
        """(example, time, width)."""
        places = torch.arange(words.shape[1]).expand(words.shape).contiguous()
        found: Tensor = self.places(places)
        return found


class Mean(nn.Module):
    """Cross entropy in the shape that Opacus asks for, over time each example's mean."""

    def __init__(self) -> None:
        super().__init__()
        self.reduction = "mean"

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The losses, or their mean."""
        losses = Task.cross_entropies(scores, labels)
        return losses if self.reduction == "none" else losses.mean()


def step_of(task: Task, mode: str) -> Step:
    """As the manual has it: two lines of the engine's, then an ordinary loop."""
    model: Any = task.model
    if isinstance(model, Gpt):
        model.__class__ = ByExample
    model = ModuleValidator.fix(model)
    task = Task(model, task.data, task.labels)
    wrapped, optimizer, *rest = PrivacyEngine().make_private(
        module=model,
        optimizer=sgd(task),
        criterion=Mean(),
        data_loader=DataLoader(TensorDataset(task.data, task.labels), batch_size=task.examples),
        noise_multiplier=MULTIPLIER,
        max_grad_norm=CLIP,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    criterion = rest[0] if mode == "ghost" else Mean()

    def step() -> None:
        optimizer.zero_grad()
        criterion(wrapped(task.data), task.labels).backward()
        optimizer.step()

    return step


def all_steps() -> dict[str, tuple[Task, Step]]:
    """Of all models in all modes, each with a model of its own."""
    found = {}
    for name, make in MODELS.items():
        for mode in MODES:
            task = make()
            found[f"{name}-{mode}"] = task, step_of(task, mode)
    return found


STEPS = all_steps()
serve(timed(STEPS), figures=peak_bytes(STEPS))
