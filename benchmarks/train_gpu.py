"""Private training steps beside plain ones on a GPU, in bfloat16: `python -m benchmarks.train_gpu`.

The models of `benchmarks.train`, and a GPT of 12 layers of width 1 024. Forward passes use
autocast. A private step is that of `benchmarks.train`; its noise comes from the cipher on the CPU.
The two kinds of steps take turns, a few steps at once between two events on the GPU, and the figure
is the median of their ratios. Memory is the peak of all allocations while only this model exists.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Protocol

import torch
from torch import Tensor

from benchmarks.rounds import progress
from benchmarks.tables import duration, show, table
from benchmarks.train_models import MODELS, Task, large_gpt
from benchmarks.train_private import private_step
from benchmarks.train_steps import Step, plain_step, repeated

ROUNDS = 9
AT_ONCE = 10  # steps between two events

LARGER: Mapping[str, Callable[[], Task]] = {**MODELS, "GPT 1024": large_gpt}


class Meter(Protocol):
    """The role of a device's clock and memory counter."""

    def seconds(self, run: Step) -> float:
        """The time of this work on the device, until all of it is done."""
        ...

    def peak(self, run: Step) -> float:
        """The largest number of bytes allocated on the device meanwhile, by anything."""
        ...


class Cuda:
    """The GPU's own events and its allocator."""

    def seconds(self, run: Step) -> float:
        """The time between two events."""
        start, end = _event(), _event()
        torch.cuda.synchronize()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1000

    def peak(self, run: Step) -> float:
        """The peak that the allocator reports."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        run()
        torch.cuda.synchronize()
        return float(torch.cuda.max_memory_allocated())


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class Mixed(Task):
    """A task whose forward pass is in bfloat16."""

    @staticmethod
    def on(device: torch.device, task: Task) -> "Mixed":
        """The task on that device."""
        return Mixed(task.model.to(device), task.data.to(device), task.labels.to(device))

    def losses(self) -> Tensor:
        """Per-example losses within autocast, shape (example,)."""
        with torch.autocast(self.data.device.type, torch.bfloat16):
            return super().losses()


@dataclass(frozen=True, slots=True)
class Kind:
    """The measurements of one kind of step: seconds of a step in each round, and bytes."""

    seconds: list[float]
    peak: float


@dataclass(frozen=True, slots=True)
class Row:
    """The steps of one model."""

    examples: int
    plain: Kind
    private: Kind

    @property
    def ratio(self) -> float:
        """The median ratio of a private step's time to that of the plain one, measured right before
        it."""
        pairs = zip(self.private.seconds, self.plain.seconds, strict=True)
        return median(private / plain for private, plain in pairs)

    def rate(self, kind: Kind) -> float:
        """Examples per second."""
        return self.examples / median(kind.seconds)


def main() -> None:
    """Print all rows, and on the last line the worst ratio, the device and the date."""
    if not torch.cuda.is_available():
        sys.exit("train_gpu: no CUDA device is here, so nothing was measured; run it where one is")
    rows = {}
    with progress() as bar:
        for name in bar.track(LARGER, description="train_gpu"):
            rows[name] = measured(Mixed.on(torch.device("cuda"), LARGER[name]()), Cuda())
            torch.cuda.empty_cache()
    print_report(rows, torch.cuda.get_device_name())


def measured(task: Task, meter: Meter, rounds: int = ROUNDS, at_once: int = AT_ONCE) -> Row:
    """Both kinds of steps of one model, taking turns. A first round warms up."""
    steps = plain_step(task), private_step(task)
    seconds: tuple[list[float], list[float]] = [], []
    for turn in range(rounds + 1):
        for step, found in zip(steps, seconds, strict=True):
            taken = meter.seconds(repeated(step, at_once)) / at_once
            found.extend([taken] if turn else [])
    plain, private = (
        Kind(found, meter.peak(step)) for step, found in zip(steps, seconds, strict=True)
    )
    return Row(task.examples, plain, private)


def print_report(rows: Mapping[str, Row], device: str) -> None:
    """Print the table, and the last line."""
    made = table(
        *("model", "plain step", "private", "examples/s", "private", "memory", "private", "ratio")
    )
    for name, row in rows.items():
        made.add_row(name, *cells(row))
    show(made)
    print("private step and private memory (ratio): in units of the plain step's; in bfloat16")
    worst = max(row.ratio for row in rows.values())
    when = datetime.now(UTC).date()
    print(f"train_gpu: worst ratio = {worst:.2f}, {device}, torch {torch.__version__}, {when}")


def cells(row: Row) -> list[str]:
    """The cells of a row."""
    plain, private = row.plain, row.private
    return [
        duration(median(plain.seconds)),
        f"{row.ratio:.2f}",
        *(f"{row.rate(kind):,.0f}" for kind in (plain, private)),
        *(f"{kind.peak / 2**30:.2f} GiB" for kind in (plain, private)),
        f"{private.peak / plain.peak:.2f}",
    ]


if __name__ == "__main__":
    main()
