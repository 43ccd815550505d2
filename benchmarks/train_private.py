"""A private training step by discreet, to compare with the plain step of `train_steps`."""

from fractions import Fraction

from benchmarks.train_models import Task
from benchmarks.train_steps import CLIP, MULTIPLIER, Step, sgd
from discreet.noise import SecureBits
from discreet.train import Flat, FloatGaussian, clipped_sum

BITS = SecureBits()


def private_step(task: Task) -> Step:
    """A step with clipped per-example gradients, noise, and the optimizer's own step."""
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
