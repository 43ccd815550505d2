"""A training step without privacy, and what steps are measured by.

Every contestant's worker has this file, whatever environment it runs in.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.train_models import Task
from benchmarks.worker import Case

CLIP, MULTIPLIER = 1.0, 1.0
AT_ONCE = {"MLP": 10, "CNN": 3, "GPT": 2, "LoRA": 2, "LSTM": 5}  # the first finds caches cold

Step = Callable[[], None]
Steps = Mapping[str, tuple[Task, Step]]  # by case: model-kind


def sgd(task: Task) -> torch.optim.Optimizer:
    """Plain SGD of what is trained, so slow that nothing changes."""
    return torch.optim.SGD((p for p in task.model.parameters() if p.requires_grad), lr=1e-4)


def plain_step(task: Task) -> Step:
    """What one writes without privacy."""
    optimizer = sgd(task)

    def step() -> None:
        optimizer.zero_grad()
        task.losses().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def timed(steps: Steps) -> dict[str, Case]:
    """Each case, several steps at once."""
    numbers = {case: AT_ONCE[case.split("-")[0]] for case in steps}
    return {
        case: (numbers[case], repeated(step, numbers[case])) for case, (_, step) in steps.items()
    }


def repeated(step: Step, times: int) -> Step:
    """So many steps, one after the other."""

    def run() -> None:
        for _ in range(times):
            step()

    return run


def bytes_held(steps: Steps) -> dict[str, Callable[[], float]]:
    """Each case's peak."""
    return {f"{case}-bytes": partial(peak, *each) for case, each in steps.items()}


def peak(task: Task, step: Step) -> float:
    """The most bytes that a step held at once, beyond model and batch.

    A step before it warms up; gradients that it left are freed first, since what is freed within
    the measured step would count against it.
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
