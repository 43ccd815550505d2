"""How often a linear model is right that Opacus trained: for each line of JSON, two numbers.

A line names a file of arrays (examples, classes, and those of the test), and a setting. Opacus'
own parts compute, clip, add noise and find the noise that an epsilon takes; examples are drawn
here, each by itself with the exact rate, since its loaders round that.
"""

import json
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from opacus import GradSampleModule
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.optim.swa_utils import AveragedModel

Asked = dict[str, Any]  # Any: JSON
Ints = npt.NDArray[np.int64]


@cache
def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """By its tightest accountant."""
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant="prv",
        )
    )


def trained(asked: Asked) -> tuple[float, float]:
    """The shares of right answers in the test, of the last iterate and of the mean of a half."""
    torch.manual_seed(asked["seed"])
    arrays = np.load(asked["file"])
    x, y = torch.tensor(arrays["x"], dtype=torch.float32), torch.tensor(arrays["y"])
    model = nn.Linear(x.shape[1], int(y.max()) + 1)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    mean = train(model, x, y, asked)
    test_x, test_y = torch.tensor(arrays["test_x"], dtype=torch.float32), arrays["test_y"]
    return right(model, test_x, test_y), right(mean, test_x, test_y)


def right(model: nn.Module, x: torch.Tensor, y: Ints) -> float:
    """The share of right answers."""
    with torch.no_grad():
        return float((model(x).argmax(1).numpy() == y).mean())


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, asked: Asked) -> AveragedModel:
    """Poisson samples, clipped, with noise, divided by the batch that is expected; gives the mean
    of the last half of all iterates."""
    mean = AveragedModel(model)
    rate = asked["batch"] / len(x)
    wrapped = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=asked["rate"] / asked["batch"]),
        noise_multiplier=multiplier(asked["epsilon"], asked["delta"], rate, asked["steps"]),
        max_grad_norm=asked["clip"],
        expected_batch_size=asked["batch"],
        loss_reduction="sum",
    )
    for step in range(asked["steps"]):
        drawn = torch.rand(len(x)) < rate
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(x[drawn]), y[drawn], reduction="sum")
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if 2 * step >= asked["steps"]:
            mean.update_parameters(model)
    return mean


warnings.simplefilter("ignore")  # of orders and hooks, for every model anew
torch.set_num_threads(1)
for line in sys.stdin:
    print(*trained(json.loads(line)), flush=True)
