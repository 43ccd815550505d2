"""Training steps by discreet, and the same without privacy."""

from fractions import Fraction

import torch

from benchmarks.train_models import MODELS, Task
from benchmarks.train_steps import CLIP, MULTIPLIER, Step, bytes_held, plain_step, sgd, timed
from benchmarks.worker import serve
from discreet.noise import SecureBits
from discreet.train import Flat, FloatGaussian, clipped_sum

BITS = SecureBits()


def private_step(task: Task) -> Step:
    """Clipped gradients of single examples, noise, the optimizer's own step."""
    optimizer, clipping, noise = sgd(task), Flat(CLIP), FloatGaussian()
    parameters = [p for p in task.model.parameters() if p.requires_grad]
    scale = Fraction(MULTIPLIER) * Fraction(CLIP)

    def step() -> None:
        optimizer.zero_grad()
        found = clipped_sum(task.model, task.losses, task.examples, clipping)
        noise.add(found.sums, scale, BITS)
        for parameter, total in zip(parameters, found.sums, strict=True):
            parameter.grad = total.div_(task.examples)
        optimizer.step()

    return step


def all_steps() -> dict[str, tuple[Task, Step]]:
    """Plain and private ones of every model."""
    found = {}
    for name, make in MODELS.items():
        task = make()
        found[f"{name}-plain"] = task, plain_step(task)
        found[f"{name}-private"] = task, private_step(task)
    return found


torch.set_num_threads(1)
STEPS = all_steps()
serve(timed(STEPS), figures=bytes_held(STEPS))
