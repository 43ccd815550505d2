"""A training step without privacy, and the measurement of steps.

Every contestant's worker uses this file, in its own environment.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.train_models import Task
from benchmarks.worker import Case

CLIP, MULTIPLIER = 1.0, 1.0
AT_ONCE = {"MLP": 10, "CNN": 3, "GPT": 2, "LoRA": 2, "LSTM": 5}  # the first has cold caches

Step = Callable[[], None]
Steps = Mapping[str, tuple[Task, Step]]  # by case: model-kind


def sgd(task: Task) -> torch.optim.Optimizer:
    """Plain SGD on the trained parameters, with a rate so small that nothing changes."""
    return torch.optim.SGD((p for p in task.model.parameters() if p.requires_grad), lr=1e-4)


def plain_step(task: Task) -> Step:
    """An ordinary training step without privacy."""
    optimizer = sgd(task)

    def step() -> None:
        optimizer.zero_grad()
        task.losses().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def timed(steps: Steps) -> dict[str, Case]:
    """Each case, as several steps at once."""
    numbers = {case: AT_ONCE[case.split("-")[0]] for case in steps}
    return {
        case: (numbers[case], repeated(step, numbers[case])) for case, (_, step) in steps.items()
    }


def repeated(step: Step, times: int) -> Step:
    """This number of steps, one after the other."""

    def run() -> None:
        for _ in range(times):
            step()

    return run


def peak_bytes(steps: Steps) -> dict[str, Callable[[], float]]:
    """The peak memory of each case."""
    return {f"{case}-bytes": partial(peak, *each) for case, each in steps.items()}


def peak(task: Task, step: Step) -> float:
    """The peak number of bytes during a step, beyond model and batch.

    A step before it warms up. Its gradients are freed before the measured step, since memory freed
    within that step would reduce the figure.
    """
    step()
    for parameter in task.model.parameters():
        parameter.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    held, most = 0, 1
    events = found.profiler.kineto_results.events() if found.profiler else []
    changes = [(each.start_ns(), each.nbytes()) for each in events if each.name() == "[memory]"]
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        most = max(most, held)
    return float(most)
