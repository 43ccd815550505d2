"""Private training steps beside plain ones on a GPU, in bfloat16: `python -m benchmarks.train_gpu`.

The models of `benchmarks.train`, and a GPT of 12 layers of width 1 024. Forward passes are within
autocast. A private step is that of `benchmarks.train`, its noise from the cipher of this machine's
processor. Both kinds take turns, a few steps at once between two events on the GPU, and the
median of their ratios counts. Memory is the most that was allocated there, all in all, while only
this model was there.
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
    """What a device's time and memory are measured by."""

    def seconds(self, run: Step) -> float:
        """How long it takes there, until all of it is done."""
        ...

    def peak(self, run: Step) -> float:
        """The most bytes that are held there meanwhile, by anything."""
        ...


class Cuda:
    """The GPU's own events and its allocator."""

    def seconds(self, run: Step) -> float:
        """Between two events."""
        start, end = _event(), _event()
        torch.cuda.synchronize()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1000

    def peak(self, run: Step) -> float:
        """As the allocator has it."""
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
        """The task there."""
        return Mixed(task.model.to(device), task.data.to(device), task.labels.to(device))

    def losses(self) -> Tensor:
        """Each example's, within autocast: (example,)."""
        with torch.autocast(self.data.device.type, torch.bfloat16):
            return super().losses()


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of step took: seconds of a step in each round, and bytes."""

    seconds: list[float]
    peak: float


@dataclass(frozen=True, slots=True)
class Row:
    """One model's steps."""

    examples: int
    plain: Kind
    private: Kind

    @property
    def ratio(self) -> float:
        """The private step's time to the plain one's, which was measured right before."""
        pairs = zip(self.private.seconds, self.plain.seconds, strict=True)
        return median(private / plain for private, plain in pairs)

    def rate(self, kind: Kind) -> float:
        """Examples per second."""
        return self.examples / median(kind.seconds)


def main() -> None:
    """Print all rows, and last the worst ratio, the device and the date."""
    if not torch.cuda.is_available():
        sys.exit("train_gpu: no CUDA device is here, so nothing was measured; run it where one is")
    rows = {}
    with progress() as bar:
        for name in bar.track(LARGER, description="train_gpu"):
            rows[name] = measured(Mixed.on(torch.device("cuda"), LARGER[name]()), Cuda())
            torch.cuda.empty_cache()
    told(rows, torch.cuda.get_device_name())


def measured(task: Task, meter: Meter, rounds: int = ROUNDS, at_once: int = AT_ONCE) -> Row:
    """Both kinds of steps of one model, in turns; a round before the first warms up."""
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


def told(rows: Mapping[str, Row], device: str) -> None:
    """The table, and the last line."""
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
