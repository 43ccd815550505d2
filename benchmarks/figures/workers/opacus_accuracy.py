"""The accuracy of a linear model trained by Opacus: for each line of JSON, two numbers.

A line names a setting and a file of arrays: training examples and test examples with their classes.
Opacus' own code computes, clips and adds noise, and finds the noise for an epsilon. The examples
are drawn here, each by itself with the exact rate, since Opacus' loaders round the rate.
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

Request = dict[str, Any]  # Any: JSON
Ints = npt.NDArray[np.int64]


@cache
def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least noise by Opacus' tightest accountant."""
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant="prv",
        )
    )


def trained(request: Request) -> tuple[float, float]:
    """The shares of correct predictions on the test examples, for the last iterate and for the mean
    of the last half of all iterates."""
    torch.manual_seed(request["seed"])
    arrays = np.load(request["file"])
    x, y = torch.tensor(arrays["x"], dtype=torch.float32), torch.tensor(arrays["y"])
    model = nn.Linear(x.shape[1], int(y.max()) + 1)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    mean = train(model, x, y, request)
    test_x, test_y = torch.tensor(arrays["test_x"], dtype=torch.float32), arrays["test_y"]
    return right(model, test_x, test_y), right(mean, test_x, test_y)


def right(model: nn.Module, x: torch.Tensor, y: Ints) -> float:
    """The share of correct predictions."""
    with torch.no_grad():
        return float((model(x).argmax(1).numpy() == y).mean())


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, request: Request) -> AveragedModel:
    """Train on clipped Poisson samples with noise, divided by the expected batch size; returns the
    mean of the last half of all iterates."""
    mean = AveragedModel(model)
    rate = request["batch"] / len(x)
    wrapped = GradSampleModule(model, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=request["rate"] / request["batch"]),
        noise_multiplier=multiplier(request["epsilon"], request["delta"], rate, request["steps"]),
        max_grad_norm=request["clip"],
        expected_batch_size=request["batch"],
        loss_reduction="sum",
    )
    for step in range(request["steps"]):
        drawn = torch.rand(len(x)) < rate
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(x[drawn]), y[drawn], reduction="sum")
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if 2 * step >= request["steps"]:
            mean.update_parameters(model)
    return mean


warnings.simplefilter("ignore")  # it warns of orders and hooks for every model
torch.set_num_threads(1)
for line in sys.stdin:
    print(*trained(json.loads(line)), flush=True)
