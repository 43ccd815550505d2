"""Private steps beside the same plain ones, on one thread: ``python -m benchmarks.train``.

A private step computes clipped gradients of single examples, adds Gaussian noise to their sum and
lets the optimizer step; a plain one is ``loss.mean().backward()`` and the same optimizer. They take
turns, and the median of the ratios of their CPU times counts. Memory is the most that tensors of a
step held at once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.tables import duration, show, table
from benchmarks.train_models import MODELS, Task
from discreet.train import Flat, clipped_sum

GOALS = {  # of time, and of memory
    "MLP": (1.5, 2.0),
    "CNN": (1.5, 2.5),
    "GPT": (1.2, 1.1),
    "LoRA": (1.02, 1.02),
    "LSTM": (2.5, 2.5),
}
ROUNDS = {"MLP": 60, "CNN": 9, "GPT": 7, "LoRA": 7, "LSTM": 15}
CLIP, MULTIPLIER = 1.0, 1.0

Step = Callable[[], None]


@dataclass(frozen=True)
class Ratios:
    """Of a private step to a plain one."""

    plain: float  # seconds
    time: float
    memory: float


def main() -> None:
    """Print all ratios, and last the worst by its goal."""
    torch.set_num_threads(1)
    made = table("model", "plain step", "time", "goal", "memory", "goal", "met")
    worst = 0.0
    for name, (time_goal, memory_goal) in GOALS.items():
        found = ratios(MODELS[name](), ROUNDS[name])
        worst = max(worst, found.time)
        met = found.time <= time_goal and found.memory <= memory_goal
        figures = f"{found.time:.2f}", f"{time_goal}", f"{found.memory:.2f}", f"{memory_goal}"
        made.add_row(name, duration(found.plain), *figures, "yes" if met else "NO")
    show(made)
    print(f"train: worst ratio = {worst:.2f}")


def ratios(task: Task, rounds: int) -> Ratios:
    """Of one model, after two rounds that warm up."""
    optimizer = torch.optim.SGD((p for p in task.model.parameters() if p.requires_grad), lr=1e-4)
    plain, private = plain_step(task, optimizer), private_step(task, optimizer)
    pairs = [(spent(plain), spent(private)) for _ in range(rounds + 2)][2:]
    return Ratios(
        plain=median(one for one, _ in pairs),
        time=median(other / one for one, other in pairs),
        memory=peak(private, optimizer) / peak(plain, optimizer),
    )


def plain_step(task: Task, optimizer: torch.optim.Optimizer) -> Step:
    """What one writes without privacy."""

    def step() -> None:
        optimizer.zero_grad()
        task.losses().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def private_step(task: Task, optimizer: torch.optim.Optimizer) -> Step:
    """The same with clipping and noise; noise is PyTorch's own, for its time only."""
    parameters = [p for p in task.model.parameters() if p.requires_grad]

    def step() -> None:
        optimizer.zero_grad()
        found = clipped_sum(task.model, task.losses, task.examples, Flat(CLIP))
        for parameter, total in zip(parameters, found.sums, strict=True):
            parameter.grad = noisy(total).div_(task.examples)
        optimizer.step()

    return step


def noisy(total: Tensor) -> Tensor:
    """With Gaussian noise."""
    return total.add_(torch.randn_like(total), alpha=MULTIPLIER * CLIP)


def spent(step: Step) -> float:
    """Seconds of CPU time."""
    start = time.process_time()
    step()
    return time.process_time() - start


def peak(step: Step, optimizer: torch.optim.Optimizer) -> int:
    """The most bytes that were held at once beyond model and batch."""
    optimizer.zero_grad()  # what is freed within the step would count against it
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    held, most = 0, 1
    events = found.profiler.kineto_results.events() if found.profiler else []
    changes = [(each.start_ns(), each.nbytes()) for each in events if each.name() == "[memory]"]
    for _, change in sorted(changes, key=lambda each: each[0]):
        held += change
        most = max(most, held)
    return most


if __name__ == "__main__":
    main()
